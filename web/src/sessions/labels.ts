/** The words for the parts of a session. The twin of `aver.sessions.labels`. Nothing is escaped here: texts stay texts. */

import { at } from "../verify/block.ts";
import { plainJson } from "../verify/canonical.ts";
import { type Json, JsonNumber, isObject } from "../verify/json.ts";
import { codePoints, cutText } from "../verify/text.ts";
import { type Consumption, type Step, isBlobReference } from "./step.ts";
import type { SessionTotals } from "./totals.ts";
import { lookUp } from "./values.ts";

/** Characters of the arguments that are added to a summary that does not name them. */
const ARGUMENTS_MAX = 160;

const SPACES = /[\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** A text on one line, with single spaces. */
export function toOneLine(text: string): string {
  return text.replace(SPACES, " ").replace(/^ | $/g, "");
}

function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${count === 1 ? noun : `${noun}s`}`;
}

function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** One figure of a session; `sort` names the steps that it counts, where there are such. */
export interface Figure {
  words: string;
  sort: "call" | "edit" | "command" | "failure" | "denial" | "agent" | "unknown" | "unreadable" | "spent" | "record" | `model ${string}` | "";
}

/** The totals of a session. Zeros and unknown values are left out. */
export function totalFigures(session: SessionTotals): Figure[] {
  const figures: Figure[] = [{ words: plural(session.actions, "action"), sort: "call" }];
  if (session.edits) figures.push({ words: `${plural(session.edits, "edit")} (+${session.linesAdded}/-${session.linesRemoved})`, sort: "edit" });
  const counted: [number, string, Figure["sort"]][] = [
    [session.commands, "command", "command"],
    [session.failures, "failure", "failure"],
    [session.denials, "denial", "denial"],
    [session.subagents, "subagent", "agent"],
    [session.unknown, "unknown record", "unknown"],
    [session.unreadable, "unreadable record", "unreadable"],
  ];
  for (const [count, noun, sort] of counted) if (count) figures.push({ words: plural(count, noun), sort });
  const tokens = tokensLabel(session.tokensIn, session.tokensOut);
  if (tokens) figures.push({ words: `tokens: ${tokens}`, sort: "spent" });
  if (session.costUsd !== null) figures.push({ words: formatMoney(session.costUsd), sort: "spent" });
  for (const model of session.models) figures.push({ words: model, sort: `model ${model}` });
  figures.push({ words: plural(session.records, "record"), sort: "record" });
  if (session.imported) figures.push({ words: "imported", sort: "" });
  return figures;
}

/** One line that describes a step. */
export function stepSummary(step: Step): string {
  let summary = toOneLine(step.summary) || step.call || step.what;
  if (summary === step.call && !isEmpty(step.arguments)) summary = `${summary}: ${shortenArguments(step.arguments)}`;
  return step.status === "blocked" ? `denied: ${summary.replace(/ \(denied\)$/, "")}` : summary;
}

/** The arguments of a call on one line. A single text argument stands without its name. */
export function shortenArguments(given: Json): string {
  const values = isObject(given) ? [...given.values()] : [];
  const commands = isObject(given) && given.size === 1 ? given.get("commands") : null;
  // Cline's list of commands, as in a shell.
  const only = Array.isArray(commands) && commands.every((one) => typeof one === "string") ? commands.join("; ") : values.length === 1 ? values[0] : null;
  const line = toOneLine(cutText(typeof only === "string" ? only : valueText(given), 2 * ARGUMENTS_MAX));
  return codePoints(line) <= ARGUMENTS_MAX ? line : `${cutText(line, ARGUMENTS_MAX - 1)}…`;
}

export function formatDuration(milliseconds: number): string {
  return milliseconds >= 1000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${milliseconds} ms`;
}

const REFUSED_BY: Record<string, string> = { human_approved: "by a person", policy: "by a rule" };

/** Who or what allowed or refused a step; empty if not known. */
export function authorityLabel({ authority, status, rule }: Pick<Step, "authority" | "status" | "rule">): string {
  const words = status === "blocked" ? (lookUp(REFUSED_BY, authority) ?? "") : authority === "unknown" ? "" : authority.replaceAll("_", " ");
  return words && rule ? `${words} (${rule})` : words || rule;
}

const DECISIONS: Record<string, string> = {
  pass: "allowed",
  human_approved: "allowed by a person",
  human_review: "needs approval",
  skip: "denied",
  skipped: "denied, asked too often",
};

/** A decision of the gate in words for people. */
export function decisionLabel(decision: string): string {
  return lookUp(DECISIONS, decision) ?? decision;
}

/** Tokens and money, as far as known. */
export function consumptionLabel(spent: Consumption): string {
  const cost = spent.costUsd === null ? "" : formatMoney(spent.costUsd);
  return [tokensLabel(spent.tokensIn, spent.tokensOut), cost].filter(Boolean).join(", ");
}

function tokensLabel(wentIn: number | null, cameOut: number | null): string {
  return [wentIn === null ? "" : `${formatCount(wentIn)} in`, cameOut === null ? "" : `${formatCount(cameOut)} out`].filter(Boolean).join(", ");
}

export function formatMoney(dollars: number): string {
  return dollars >= 0.01 || dollars === 0 ? `$${dollars.toFixed(2)}` : "<$0.01";
}

const UNNAMED_OUTPUTS = ["stdout", "output", "content", "text"];
const OUTPUTS = new Set([...UNNAMED_OUTPUTS, "stderr"]);

/** A text from a value, with its name if it needs one. `isAside` marks minor facts on one line. */
interface LabelledText {
  name: string;
  text: string;
  isAside: boolean;
}

/** A value as texts: first the outputs of a command, then other facts on one line. */
export function labelledTexts(value: Json): LabelledText[] {
  if (Array.isArray(value) && value.length && value.every(isQueryResult)) {
    return value.map((result) => {
      const query = at(result, "query") as string;
      const name = at(result, "success") === true ? query : `${query} (failed)`;
      const [output, error] = [at(result, "result") ?? null, valueText(at(result, "error") || "")];
      const text = isEmpty(output) ? "" : valueText(output);
      return { name, text: text.includes(error) ? text : `${text}\n${error}`.replace(/^\n+|\n+$/g, ""), isAside: false };
    });
  }
  if (!isObject(value) || isBlobReference(value)) {
    return isEmpty(value) ? [] : [{ name: "", text: valueText(value), isAside: typeof value !== "string" }];
  }
  // A text counts as output if its name says so or if it has several lines. Unnamed outputs come first.
  const outputs = [...value].filter((entry): entry is [string, string] => typeof entry[1] === "string" && (OUTPUTS.has(entry[0]) || entry[1].trim().includes("\n")));
  outputs.sort(([one], [other]) => Number(!UNNAMED_OUTPUTS.includes(one)) - Number(!UNNAMED_OUTPUTS.includes(other)));
  // Two outputs are often the same text, one with a few words before it. Only the longer one is shown.
  const shown = outputs.filter(([, text]) => text.trim() && !outputs.some(([, other]) => other.trim().endsWith(`\n${text.trim()}`)));
  const texts = shown.map(([name, text]) => ({ name: UNNAMED_OUTPUTS.includes(name) ? "" : name, text, isAside: false }));
  const names = new Set(outputs.map(([name]) => name));
  const rest = [...value].filter(([name, item]) => !names.has(name) && !isEmpty(item)).map(([name, item]) => `${name.replaceAll("_", " ")} ${valueText(item)}`);
  return rest.length ? [...texts, { name: "", text: rest.join(", "), isAside: true }] : texts;
}

/** Whether the value is one of Cline's results: `{query, result, success, error}`. */
function isQueryResult(value: Json): boolean {
  return isObject(value) && typeof value.get("query") === "string" && typeof value.get("success") === "boolean";
}

/** The exit code in the summary of a call; empty if there is none. */
function summaryExitCode(step: Step): string {
  return /\(exit (\d+)\)/.exec(step.summary)?.[1] ?? "";
}

/** The error of a call; empty if there is none or if its summary already says it. */
export function stepError(step: Step): string {
  return step.error === "OUTCOME_UNKNOWN" || step.error.toLowerCase() === `exit code ${summaryExitCode(step)}` ? "" : step.error;
}

/** The result of a call, without what its summary and its error already say. */
export function resultTexts(step: Step, result: Json): LabelledText[] {
  const error = step.error.trim();
  let shown = result;
  if (isObject(shown)) {
    const code = shown.get("exit_code");
    const isSaid = code instanceof JsonNumber && code.text === summaryExitCode(step);
    if (isSaid) shown = new Map([...shown].filter(([name]) => name !== "exit_code"));
  }
  if (isQueryResult(shown)) shown = new Map([...(shown as Map<string, Json>)].filter(([name, value]) => name !== "success" && name !== "query" && !(name === "error" && value === step.error)));
  return labelledTexts(shown).filter((part) => !error || part.text.trim().replace(/^result /, "") !== error);
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || (Array.isArray(value) && !value.length) || (isObject(value) && !value.size);
}

/** A value as JSON text, with each number as it is written. */
export function valueText(value: Json): string {
  if (isBlobReference(value)) {
    const size = at(value, "blob", "size") as JsonNumber;
    return `${size.text} bytes of ${String(at(value, "blob", "media"))}, stored as a blob, sha256 ${String(at(value, "blob", "digest"))}`;
  }
  return typeof value === "string" ? value : plainJson(value);
}
