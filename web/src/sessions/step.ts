/**
 * Reads one record of a session as a step for people. The twin of `aver.sessions.step`.
 *
 * `readStep` reads Aver's records and those of the agent-capsule tool, which have fewer keys and loose sections. It never
 * raises: an unreadable record becomes a step that says so. Nothing is verified here.
 */

import { readBlock, readKind } from "../verify/block.ts";
import { blobReferences } from "../verify/blobs.ts";
import { BadInput, type Json, type JsonObject, equalJson, isObject } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { type LineCounts, countChangedLines } from "./changed_lines.ts";
import { takesCommand } from "./known_tools.ts";
import { asCost, asCount, asList, asObject, asText, asTexts, isTruthy, lookUp, toUtc } from "./values.ts";

/** Tokens and money. Null means not known, which is not zero. */
export interface Consumption {
  tokensIn: number | null;
  tokensOut: number | null;
  costUsd: number | null;
}

export const UNKNOWN_CONSUMPTION: Consumption = { tokensIn: null, tokensOut: null, costUsd: null };

type Known = number | null;
const addKnown = (one: Known, other: Known): Known => (one === null ? other : other === null ? one : one + other);
const maxKnown = (one: Known, other: Known): Known => (one === null ? other : other === null ? one : Math.max(one, other));

function join(one: Consumption, other: Consumption, by: (one: Known, other: Known) => Known): Consumption {
  return {
    tokensIn: by(one.tokensIn, other.tokensIn),
    tokensOut: by(one.tokensOut, other.tokensOut),
    costUsd: by(one.costUsd, other.costUsd),
  };
}

export function addConsumption(one: Consumption, other: Consumption): Consumption {
  return join(one, other, addKnown);
}

/** The larger value of each count, for tools that report running totals. */
export function maxConsumption(one: Consumption, other: Consumption): Consumption {
  return join(one, other, maxKnown);
}

/** Names of input tokens, cached or not. The first group with any known name is summed. */
const TOKENS_IN = [
  ["tokens_in"],
  ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_writes", "cache_reads"],
  ["tokensIn", "cacheWrites", "cacheReads"],
  ["inputTokens"],
];
const TOKENS_OUT = [["tokens_out"], ["output_tokens"], ["tokensOut"], ["outputTokens"]];
const COST = ["cost_usd", "cost", "total_cost_usd"];

/** Read `execution.resources_used`, with the names of CPS or those of a tool. */
function readConsumption(used: JsonObject): Consumption {
  const sum = (groups: string[][]): number | null => {
    for (const group of groups) {
      const found = group.map((name) => asCount(used.get(name))).filter((count) => count !== null);
      if (found.length) return found.reduce((one, other) => one + other);
    }
    return null;
  };
  const costUsd = COST.map((name) => asCost(used.get(name))).find((cost) => cost !== null) ?? null;
  return { tokensIn: sum(TOKENS_IN), tokensOut: sum(TOKENS_OUT), costUsd };
}

type StepKind = "prompt" | "call" | "answer" | "session" | "note" | "unknown" | "addition" | "unreadable";

/** The fields that a later record adds to an earlier one: the transcript to a hook's, or the other way round. */
interface Addition {
  /** The id of the earlier record. */
  to: string;
  /** Where the addition comes from: `transcript` or `hook`. */
  via: string;
  /** The names of fields in which the two disagree. */
  differs: string[];
  /** The fields that differ, and those that the earlier record lacks. */
  says: JsonObject;
  /** The lines that the diff in it adds and removes. */
  lines: LineCounts | null;
  /** The outcome of a call that was pending, and its error. */
  status: string;
  error: string;
}

/** One step of a session. A text may be cut; `cut` then names the blob with the whole text. */
export interface Step {
  what: StepKind;
  /** The kind of the record, such as `call` or `gate.decision`. */
  kind: string;
  id: string;
  chain: string | null;
  sequence: number | null;
  hash: string;
  signedBy: string;
  signedAt: string;
  /** Whether Aver sealed it. Other tools' capsules repeat the prompt in every record that follows it. */
  own: boolean;
  /** When it happened; null if the record does not say. */
  at: string | null;
  /** The coding agent, such as `claude-code`. */
  toolName: string;
  session: string;
  agent: string;
  key: string;
  summary: string;
  /** The text of a prompt. In other tools' records, the prompt that they follow. */
  asked: string;
  /** Lines of what was asked that a story left out; null where the rest of it could not be read. */
  askedLeft: number | null;
  text: string;
  thinking: string;
  redacted: boolean;
  model: string;
  /** The name of the tool that was called. */
  call: string;
  callId: string;
  arguments: Json;
  result: Json;
  diff: Json;
  /** Lines added and removed by an edit that took place. */
  lines: LineCounts | null;
  status: string;
  error: string;
  sideEffects: string[];
  authority: string;
  rule: string;
  durationMs: number | null;
  spent: Consumption;
  /** The API message of the tokens, in other tools' records. Several records may repeat its count. */
  message: string;
  title: string;
  /** The directory in which the agent worked. */
  workspace: string;
  /** The chain of the subagent that this call started. */
  subagent: string;
  addition: Addition | null;
  /** Other content of a step that is not a call. */
  more: Json;
  /** The cost of the whole session so far, if the tool reports it. */
  sessionCost: number | null;
  /** By field, the digest of the whole text. */
  cut: ReadonlyMap<string, string>;
  /** All calls of tools, whatever the type of the record. */
  calls: JsonObject[];
  /** What the sections tell besides, for a search: a request that is no prompt, options, approver, metrics and so on. */
  others: Json[];
}

const EDIT_VERBS = ["edited ", "wrote ", "added ", "deleted "];
const CUT_FIELDS: Record<string, string> = {
  "trigger.request": "asked",
  "reasoning.analysis": "text",
  "reasoning.reasoning": "thinking",
  "outcome.error": "error",
};

export function hasHappened(status: string): boolean {
  return status !== "blocked" && status !== "failure";
}

/** Whether it is Aver's own note, such as how far a transcript was read. People need not see it. */
export function isBookkeeping(step: Step): boolean {
  const prefix = `${step.toolName}:${step.session}:`;
  const own = step.key.startsWith(prefix) ? step.key.slice(prefix.length) : step.key;
  return step.what === "note" && (own.startsWith("read:") || own.endsWith(":launched"));
}

export function isEdit(step: Step): boolean {
  return step.what === "call" && hasHappened(step.status) && (step.lines !== null || hasEffect(step, EDIT_VERBS));
}

export function isCommand(step: Step): boolean {
  return step.what === "call" && step.status !== "blocked" && (hasEffect(step, ["ran "]) || takesCommand(step.call));
}

function hasEffect(step: Step, beginnings: string[]): boolean {
  return step.sideEffects.some((effect) => beginnings.some((beginning) => effect.startsWith(beginning)));
}

const EMPTY: Step = {
  what: "unreadable", kind: "", id: "", chain: null, sequence: null, hash: "", signedBy: "", signedAt: "", own: false, at: null,
  toolName: "", session: "", agent: "", key: "", summary: "", asked: "", askedLeft: 0, text: "", thinking: "", redacted: false, model: "",
  call: "", callId: "", arguments: null, result: null, diff: null, lines: null, status: "", error: "", sideEffects: [],
  authority: "", rule: "", durationMs: null, spent: UNKNOWN_CONSUMPTION, message: "", title: "", workspace: "", subagent: "", addition: null,
  more: null, sessionCost: null, cut: new Map(), calls: [], others: [],
};

/** A prompt that the record of another tool repeats, as a step of its own with that record's seal. */
export function promptOf({ id, chain, sequence, hash, signedBy, signedAt, at, asked, askedLeft }: Step): Step {
  return { ...EMPTY, what: "prompt", id, chain, sequence, hash, signedBy, signedAt, at, asked, askedLeft };
}

/** A record that could not even be read as one. */
export function unreadableStep(chain: string, words: string): Step {
  return { ...EMPTY, chain, summary: `this record cannot be read: ${words}` };
}

/** Read a record as a step. Never raises. */
export function readStep(record: Sealed): Step {
  const seal = { chain: record.chain, hash: record.hash, signedBy: record.signed_by, signedAt: record.signed_at };
  let content: JsonObject;
  try {
    content = record.content;
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return { ...EMPTY, ...seal, summary: `this record cannot be read: ${error.message}` };
  }
  // Capsules of other tools may lack sections, or have values of other types. So every value is checked.
  const sections = ["trigger", "context", "reasoning", "authority", "execution", "outcome"].map((name) => asObject(content.get(name))) as Sections;
  const [trigger, context, reasoning, authority, execution, outcome] = sections;
  const environment = asObject(context.get("environment"));
  const block = readBlock(content);
  const what = stepKind(content, trigger, environment, block);
  const calls = asList(execution.get("tool_calls")).map(asObject);
  const call = asObject(calls[0]);
  const { diff, result, more } = splitResult(call, outcome, block !== null);
  const status = asText(outcome.get("status"));
  const agent = asText(context.get("agent_id"));
  const slash = agent.indexOf("/");
  const request = asText(trigger.get("request"));
  const key = asText(block?.get("key"));
  const cut = cutDigests(what, outcome, block);
  const others = listOthers(sections, environment, cut);
  if (what === "call") others.push(more);
  if (what === "answer") others.push(reasoning.get("analysis"));
  // The records of a coding agent repeat the first line of the prompt that they follow, and name it by its hash.
  const followsPrompt = key.startsWith(`${asText(content.get("domain"))}:`) && (reasoning.get("prompt_hash") ?? null) !== null;
  if (what !== "prompt" && block !== null && !followsPrompt) others.unshift(request);
  return {
    ...seal,
    what,
    kind: block?.size ? asText(block.get("kind")) : readKind(content),
    id: asText(content.get("id")),
    sequence: asCount(content.get("sequence")),
    own: block !== null,
    at: environment.get("time_known") === false ? null : (toUtc(trigger.get("timestamp")) ?? toUtc(environment.get("timestamp"))),
    toolName: asText(content.get("domain")),
    session: asText(context.get("session_id")),
    agent: slash < 0 ? "" : agent.slice(slash + 1),
    key,
    summary: asText(outcome.get("summary")),
    asked: what === "prompt" || block === null ? request : "",
    askedLeft: 0,
    text: (what === "answer" && asText(answerValue(outcome))) || asText(reasoning.get("analysis")),
    thinking: asText(reasoning.get("reasoning")),
    redacted: environment.get("thinking_redacted") === true,
    model: asText(reasoning.get("model")) || asText(environment.get("model")),
    call: what === "call" ? asText(call.get("tool")) : "",
    callId: asText(environment.get("tool_call_id")),
    arguments: call.get("arguments") ?? null,
    result: result ?? null,
    diff: diff ?? null,
    lines: hasHappened(status) ? changedLines(outcome, diff) : null,
    status,
    error: asText(outcome.get("error")) || asText(call.get("error")),
    sideEffects: asTexts(outcome.get("side_effects")),
    authority: asText(authority.get("type")),
    rule: asText(authority.get("policy_reference")),
    durationMs: environment.get("duration_known") === false ? null : (asCount(execution.get("duration_ms")) || asCount(call.get("duration_ms")) || null),
    spent: readConsumption(asObject(execution.get("resources_used"))),
    message: block === null || !block.size ? asText(environment.get("request_id")) : "",
    title: asText(environment.get("title")),
    workspace: asText(environment.get("cwd")),
    subagent: asText(asObject(environment.get("subagent")).get("chain")),
    addition: readAddition(block, outcome),
    more: what === "call" ? null : (more ?? null),
    sessionCost: asCost(environment.get("session_cost_usd")),
    cut,
    calls,
    others: others.filter((value) => value !== undefined),
  };
}

type Sections = [trigger: JsonObject, context: JsonObject, reasoning: JsonObject, authority: JsonObject, execution: JsonObject, outcome: JsonObject];

/** The values that no other field of the step has. Those that all records of a session repeat are left out. */
function listOthers([trigger, context, reasoning, authority, execution, outcome]: Sections, environment: JsonObject, cut: ReadonlyMap<string, string>): (Json | undefined)[] {
  const found = [
    isTruthy(reasoning.get("options")) ? reasoning.get("options") : reasoning.get("options_considered"),
    reasoning.get("selected_option"), trigger.get("user_id"), authority.get("approver"), authority.get("escalation_reason"),
    // Of a signed statement its content; the rest is signatures.
    ...asList(authority.get("chain")).map((entry) => (isTruthy(asObject(entry).get("content")) ? asObject(entry).get("content") : entry)),
  ];
  // The lines that changed stand in every edit.
  for (const [name, value] of asObject(outcome.get("metrics"))) if (name !== "lines_added" && name !== "lines_removed") found.push(name, value);
  if (!isTruthy(context.get("session_id"))) {
    found.push(trigger.get("source"), context.get("agent_id"), execution.get("resources_used"));
    for (const [name, value] of environment) if (name !== "aver") found.push(value);
  }
  for (const [path, reference] of asObject(asObject(environment.get("aver")).get("whole"))) if (!cut.has(lookUp(CUT_FIELDS, path) ?? "")) found.push(reference);
  return found;
}

function stepKind(content: JsonObject, trigger: JsonObject, environment: JsonObject, block: JsonObject | null): StepKind {
  if (block !== null && isTruthy(asObject(block.get("refs")).get("adds_to"))) return "addition";
  if (environment.has("unknown_record")) return "unknown";
  const kind = content.get("type");
  if (kind === "tool") return "call";
  if (kind === "chat") {
    if (block === null) return environment.get("role") === "user" ? "prompt" : "answer";
    // A prompt starts a turn, and the turn's id is the key of its prompt.
    const key = block.get("key") ?? null;
    return key !== null && key === trigger.get("correlation_id") ? "prompt" : "answer";
  }
  return kind === "workflow" ? "session" : "note";
}

/** An answer with more content beside its text is `{"text", "more"}`. */
function answerValue(outcome: JsonObject): Json | undefined {
  const result = outcome.get("result");
  return isObject(result) && result.has("text") ? result.get("text") : result;
}

/** The diff, the result of the call and other content. Other tools' records have the diff as the result. */
function splitResult(call: JsonObject, outcome: JsonObject, own: boolean): Record<"diff" | "result" | "more", Json | undefined> {
  const kept = outcome.get("result");
  const result = call.get("result");
  if (own && equalJson(kept ?? null, result ?? null)) return { diff: undefined, result, more: null };
  if (own) {
    const mapping = asObject(kept);
    return { diff: mapping.get("diff"), result, more: mapping.has("more") ? mapping.get("more") : mapping.has("diff") ? null : kept };
  }
  if (typeof result === "string" && (result.startsWith("--- ") || result.startsWith("@@ ")) && result.includes("@@ ")) {
    return { diff: result, result: null, more: kept };
  }
  return { diff: null, result, more: kept };
}

function changedLines(outcome: JsonObject, diff: Json | undefined): LineCounts | null {
  const metrics = asObject(outcome.get("metrics"));
  const [added, removed] = [asCount(metrics.get("lines_added")), asCount(metrics.get("lines_removed"))];
  if (added !== null && removed !== null) return [added, removed];
  if (typeof diff === "string") return countChangedLines(diff);
  // agent-capsule keeps the counts only in the summary: `Edit: a.py (+3/-1)`.
  const counts = /\(\+([0-9]{1,9})\/-([0-9]{1,9})\)/.exec(asText(outcome.get("summary")));
  return counts ? [Number(counts[1]), Number(counts[2])] : null;
}

function readAddition(block: JsonObject | null, outcome: JsonObject): Addition | null {
  const to = asText(asObject(block?.get("refs")).get("adds_to"));
  if (!to) return null;
  const result = asObject(outcome.get("result"));
  const ended = asObject(result.get("outcome"));
  const says = asObject(result.get("says"));
  const diff = says.get("diff");
  return {
    to,
    via: asText(result.get("via")),
    differs: asTexts(result.get("differs")),
    says,
    lines: typeof diff === "string" ? countChangedLines(diff) : null,
    status: asText(ended.get("status")),
    error: asText(ended.get("error")),
  };
}

function cutDigests(what: StepKind, outcome: JsonObject, block: JsonObject | null): Map<string, string> {
  const found = new Map<string, string>();
  const answer = what === "answer" ? answerValue(outcome) : null;
  if (isBlobReference(answer)) for (const { digest } of blobReferences(answer)) found.set("text", digest);
  for (const [path, reference] of asObject(block?.get("whole"))) {
    const name = lookUp(CUT_FIELDS, path);
    for (const { digest } of blobReferences(reference)) {
      if (name !== undefined && (name !== "asked" || what === "prompt")) found.set(name, digest);
    }
  }
  return found;
}

/** Whether the value is a reference to a blob that is stored beside the record. */
export function isBlobReference(value: Json | undefined): boolean {
  return isObject(value) && value.size === 1 && isObject(value.get("blob")) && !blobReferences(value).next().done;
}
