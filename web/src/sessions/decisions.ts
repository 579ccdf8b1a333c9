/**
 * The gate's decisions about a session's calls, and which call each decision is about. The twin of
 * `aver.sessions.decisions` and of the reading half of `aver.gate.decision_record`.
 *
 * A decision and a call that share a call id belong together: hooks record it. Sessions without it are matched by
 * likeness: a call takes the oldest decision about the same tool with the same arguments, and each decision is taken
 * once. Of a command or a patch only the text is compared, because Codex names the tools for them differently in its
 * hooks and in its transcripts. Decisions that no call took are listed by themselves.
 */

import { at, readBlock, readKind } from "../verify/block.ts";
import { blobReferences } from "../verify/blobs.ts";
import { asciiJson } from "../verify/canonical.ts";
import { sha256Hex } from "../verify/digest.ts";
import { BadInput, type Json, type JsonObject, byteLength, compareCodePoints, isObject, readJson } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { takesCommand, takesPatch } from "./known_tools.ts";
import { valueText } from "./labels.ts";
import { type Step, isBlobReference } from "./step.ts";
import { asCount, asList, asObject, asText, contentOf, isTruthy, lookUp } from "./values.ts";

export const DECISION_KIND = "gate.decision";
/** Longest string inside a capsule, in bytes. A longer one is a blob. */
const INLINE_MAX = 16 * 1024;
/** A reason that never decides alone, and so does not help a reader. */
const NO_OUTCOMES_REASON = "no outcomes of this workspace are known yet";

/** A decision as its record has it. */
export interface RecordedDecision {
  id: string;
  hash: string;
  chain: string | null;
  sequence: number | null;
  signedBy: string;
  /** When it was decided; empty where the record does not say. */
  at: string;
  callId: string;
  decision: string;
  digest: string;
  score: Json;
  interval: Json;
  thresholds: Json;
  reasons: string[];
  rules: string[];
  tool: string;
  arguments: JsonObject;
  mode: string;
  answer: string;
}

/** Read a decision's record; null where it is none, or not whole. */
export function readDecision(record: Sealed): RecordedDecision | null {
  const content = contentOf(record);
  if (content === null || readKind(content) !== DECISION_KIND) return null;
  const result = at(content, "outcome", "result");
  const action = at(result, "action");
  const policy = at(result, "policy");
  const isWhole = isObject(result) && isObject(action) && (!isTruthy(policy) || isObject(policy)) && isObject(content.get("trigger"));
  const texts = [at(result, "gate_id"), at(result, "decision"), at(result, "digest")];
  const needed = ["score", "instruction_sha256", "input_sha256"].every((name) => at(result, name) !== undefined);
  if (!isWhole || !needed || texts.some((text) => typeof text !== "string")) return null;
  return {
    id: asText(content.get("id")),
    hash: record.hash,
    chain: record.chain,
    sequence: asCount(content.get("sequence")),
    signedBy: record.signed_by,
    at: asText(at(content, "trigger", "timestamp")),
    callId: asText(result.get("call_id")),
    decision: asText(result.get("decision")),
    digest: asText(result.get("digest")),
    score: result.get("score") ?? null,
    interval: result.get("interval") ?? null,
    thresholds: result.get("thresholds") ?? null,
    reasons: asList(result.get("reasons")).map(valueText),
    rules: asList(at(policy, "rules")).map(valueText),
    tool: asText(action.get("tool")),
    arguments: asObject(action.get("arguments")),
    mode: asText(result.get("mode")) || "enforce",
    answer: asText(result.get("answer")),
  };
}

export function refuses({ decision }: RecordedDecision): boolean {
  return decision === "skip" || decision === "skipped";
}

export function isObserved({ mode }: RecordedDecision): boolean {
  return mode === "observe";
}

/** The reasons for people, without those that do not help them. */
export function shownReasons({ reasons }: RecordedDecision): string[] {
  return reasons.filter((reason) => reason !== NO_OUTCOMES_REASON);
}

/** The id of a record that an earlier record of the same call carries, by Aver's block. */
export function refsOf(content: JsonObject): [string, string][] {
  const refs = asObject(readBlock(content)?.get("refs"));
  return [...refs].filter((entry): entry is [string, string] => typeof entry[1] === "string");
}

/** Reads a blob by its digest; null where it is missing, damaged or too large. */
export type ReadBlob = (digest: string) => Promise<Uint8Array | null>;

/** The decisions that no call has taken yet. */
export class DecisionMatcher {
  private readonly byCall = new Map<string, RecordedDecision[]>();
  private readonly byLikeness = new Map<string, RecordedDecision[]>();
  private readonly blob: ReadBlob;

  constructor(decisions: Iterable<RecordedDecision>, blob: ReadBlob) {
    this.blob = blob;
    for (const decision of decisions) {
      // An id with a colon is that of a coding agent's call. Others were made up for the decision.
      const [table, key] = decision.callId.includes(":") ? [this.byCall, decision.callId] : [this.byLikeness, matchKey(decision.tool, decision.arguments)];
      table.set(key, [...(table.get(key) ?? []), decision]);
    }
  }

  /** The decision about a call, which then counts as taken; null if there is none. */
  async take(step: Step): Promise<RecordedDecision | null> {
    if (!this.byCall.size && !this.byLikeness.size) return null;
    const key = matchKey(step.call, await this.readArguments(step.arguments));
    const suffix = `@${step.chain}`;
    const callId = step.key.endsWith(suffix) ? step.key.slice(0, -suffix.length) : step.key;
    const about = this.byCall.get(callId);
    if (about?.length) {
      const newestFirst = [...about].reverse();
      // An id that was used once needs no likeness: another hook may have changed the arguments since.
      const taken = newestFirst.find((found) => matchKey(found.tool, found.arguments) === key) ?? (newestFirst[0] as RecordedDecision);
      // Earlier decisions about the same attempt led to this one, such as that a person must approve.
      this.byCall.set(callId, about.filter((decision) => decision.digest !== taken.digest));
      return taken;
    }
    return this.byLikeness.get(key)?.shift() ?? null;
  }

  /** The decisions that no call took, the oldest first. */
  listUnmatched(): RecordedDecision[] {
    const left = [...this.byLikeness.values(), ...this.byCall.values()].flat();
    return left.sort((one, other) => compareCodePoints(one.chain ?? "", other.chain ?? "") || (one.sequence ?? 0) - (other.sequence ?? 0));
  }

  /** Large arguments are one blob. Without it, a call is compared by its reference, and finds no decision by likeness. */
  private async readArguments(value: Json): Promise<Json> {
    if (!isBlobReference(value)) return value;
    const [reference] = [...blobReferences(value)];
    const data = reference === undefined ? null : await this.blob(reference.digest);
    try {
      return data === null ? value : nameLongTexts(readJson(data));
    } catch (error) {
      if (error instanceof BadInput) return value;
      throw error;
    }
  }
}

/** The value with each long text named by its digest, as the record of a decision has it. */
function nameLongTexts(value: Json): Json {
  if (typeof value === "string") return byteLength(value) <= INLINE_MAX ? value : `sha256 ${sha256Hex(value)}`;
  if (Array.isArray(value)) return value.map(nameLongTexts);
  return isObject(value) ? new Map([...value].map(([name, item]) => [name, nameLongTexts(item)])) : value;
}

/** The key by which a call and the decision about it are compared. */
function matchKey(tool: string, given: Json): string {
  const values = asObject(replaceBlobs(given));
  const command = takesCommand(tool) ? commandLine(values) : "";
  if (command) return `a command\n${command}`;
  const patch = takesPatch(tool) ? ["patch", "input"].map((name) => values.get(name)).find((text) => typeof text === "string") : "";
  if (patch) return `a patch\n${patch}`;
  const without = new Map([...values].filter(([name]) => name !== "cwd"));
  return `${tool.replace(/^mcp__/, "")}\n\n${asciiJson(without)}`;
}

function replaceBlobs(value: Json): Json {
  if (isObject(value)) {
    const [kept] = value.size === 1 && value.has("blob") ? [...blobReferences(value)] : [];
    return kept ? `sha256 ${kept.digest}` : new Map([...value].map(([name, item]) => [name, replaceBlobs(item)]));
  }
  return Array.isArray(value) ? value.map(replaceBlobs) : value;
}

/** The command that a call runs, as a person writes it; empty if it runs none. The twin of `aver.ingest.command_line`. */
export function commandLine(values: JsonObject): string {
  const command = isTruthy(values.get("cmd")) ? values.get("cmd") : values.get("command");
  if (typeof command === "string") return command;
  if (!Array.isArray(command) || !command.every((word) => typeof word === "string")) return "";
  if (command.length === 3 && ["-lc", "-c"].includes(command[1] as string)) return command[2] as string;
  return command.map((word) => (word === "" ? "''" : /[^A-Za-z0-9_@%+=:,./-]/.test(word) ? `'${word.replaceAll("'", "'\"'\"'")}'` : word)).join(" ");
}

/** Arguments that name the thing which a call is about, the most telling first. */
const TELLING = ["file_path", "relpath", "path", "notebook_path", "url", "recipient", "domain", "query", "pattern", "name", "id"];

/** Types of an action as a verb. An action without the name of a tool is one of these. */
const VERBS: Record<string, string> = { file_read: "read", code_edit: "edit", file_delete: "delete", shell_exec: "run", api_request: "send" };

/** The address of a request to a web server; empty for any other call. The path alone does not say where it goes. */
function webTarget(given: JsonObject): string {
  const domain = asText(given.get("domain"));
  const path = ["resource_id", "path"].map((name) => given.get(name)).find((value) => typeof value === "string");
  return domain && path !== undefined ? `${domain}/${asText(path).replace(/^\//, "")}` : "";
}

/**
 * An action in one line: its command, or the tool and the thing that it is about, such as `Edit deploy/prod.yaml`. An
 * action of the protocol's own tools names no tool, and the files beside its arguments: `read shop.py`.
 */
export function actionLine(action: JsonObject): string {
  const given = asObject(action.get("arguments"));
  const command = commandLine(given);
  if (command) return command;
  const type = asText(action.get("type"));
  const files = asList(action.get("files")).map(asText).filter(Boolean);
  const about = webTarget(given) || TELLING.map((name) => asText(given.get(name))).find(Boolean) || (files.length > 1 ? `${files[0]} and ${files.length - 1} more` : (files[0] ?? ""));
  return [asText(action.get("tool")) || lookUp(VERBS, type) || type.replaceAll("_", " ") || "an action", about].filter(Boolean).join(" ");
}
