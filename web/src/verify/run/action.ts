/** One action of an agent and its byte forms. The twin of `aver.actions.action` and `aver.actions.encodings`. */

import { blobReferences } from "../blobs.ts";
import { asciiJson, asciiString, canonicalJson, pythonRepr } from "../canonical.ts";
import { HEX64, sha256Hex } from "../digest.ts";
import {
  BadInput,
  ELEMENT_MAX,
  type Json,
  JsonNumber,
  type JsonObject,
  Unreadable,
  encoder,
  equalJson,
  isInteger,
  isObject,
  readJson,
} from "../json.ts";
import { isCalendarTime } from "../statement.ts";
import { codePoints, isPrintable, show } from "../text.ts";

export const ACTION_TYPES = [
  ...["tool_call", "code_gen", "code_edit", "api_request", "decision", "observation", "file_read", "file_write"],
  ...["file_delete", "shell_exec", "command", "browser_action", "web_request", "action", "unknown"],
];
const DECISIONS = ["pass", "skip", "human_review", "human_approved", "skipped"];
export const POLICY_VERDICTS = ["PROOF_ONLY", "POLICY_ENFORCED", "FULLY_VERIFIED"];

const FIELDS = [
  ...["action_id", "action_type", "instruction_hash", "input_hash", "output_hash", "parent_action_id"],
  ...["parent_receipt_hash", "gate_score", "gate_decision", "policy_verdict", "success", "duration_ms"],
  ...["timestamp", "metadata"],
];
const OPTIONAL = new Set([
  ...["parent_action_id", "parent_receipt_hash", "gate_score", "gate_decision", "policy_verdict", "metadata"],
]);
const ID_MAX = 256;
const DURATION_MAX = 2 ** 53;
/** Largest canonical size, in bytes, of metadata inside a capsule; larger metadata becomes a blob. */
const METADATA_INLINE = 8 * 1024;
const METADATA_MAX = 4 * 1024 * 1024;
const TIME = /^(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d)(?:(:\d\d)(?:[.,]\d+)?)?(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$/;

/** One action: fourteen fields, each checked. */
export interface AgentAction {
  action_id: string;
  action_type: string;
  instruction_hash: string;
  input_hash: string;
  output_hash: string;
  parent_action_id: string | null;
  parent_receipt_hash: string | null;
  gate_score: JsonNumber | null;
  gate_decision: string | null;
  policy_verdict: string | null;
  success: boolean;
  duration_ms: JsonNumber;
  timestamp: string;
  metadata: JsonObject | null;
}

/** The fourteen fields of an action as an object. */
export function actionFields(action: AgentAction): JsonObject {
  return new Map(FIELDS.map((name) => [name, action[name as keyof AgentAction] as Json]));
}

/** Read an action. Optional fields may be absent. Raises `BadInput`. */
export function readAction(data: Json | undefined): AgentAction {
  if (!isObject(data)) throw new BadInput("an action must be an object");
  for (const name of data.keys()) if (!FIELDS.includes(name)) throw new BadInput(`${show(name)} is not a field of an action`);
  const get = (name: string): Json => {
    const value = data.get(name);
    if (value !== undefined) return value;
    if (OPTIONAL.has(name)) return null;
    throw new BadInput(`the action lacks '${name}'`);
  };
  const check = <T extends Json>(name: string, isGood: (value: Json) => boolean): T => {
    const value = get(name);
    if (!isGood(value)) throw new BadInput(`${name} has a bad value`);
    return value as T;
  };
  const isId = (value: Json) =>
    typeof value === "string" && value !== "" && codePoints(value) <= ID_MAX && isPrintable(value);
  const isHash = (value: Json) => typeof value === "string" && HEX64.test(value);
  const orNull = (isGood: (value: Json) => boolean) => (value: Json) => value === null || isGood(value);
  const oneOf = (words: string[]) => (value: Json) => typeof value === "string" && words.includes(value);
  FIELDS.forEach(get);
  return {
    action_id: check("action_id", isId),
    parent_action_id: check("parent_action_id", orNull(isId)),
    action_type: check("action_type", oneOf(ACTION_TYPES)),
    gate_decision: check("gate_decision", orNull(oneOf(DECISIONS))),
    policy_verdict: check("policy_verdict", orNull(oneOf(POLICY_VERDICTS))),
    instruction_hash: check("instruction_hash", isHash),
    input_hash: check("input_hash", isHash),
    output_hash: check("output_hash", isHash),
    parent_receipt_hash: check("parent_receipt_hash", orNull(isHash)),
    gate_score: check(
      "gate_score",
      orNull((value) => value instanceof JsonNumber && value.value >= 0 && value.value <= 1),
    ),
    success: check("success", (value) => typeof value === "boolean"),
    duration_ms: check("duration_ms", (value) => isInteger(value) && value.value >= 0 && BigInt(value.text) <= BigInt(DURATION_MAX)),
    timestamp: check("timestamp", (value) => typeof value === "string" && isTime(value)),
    metadata: check("metadata", orNull(isObject)),
  };
}

/** Whether a text is a time of ISO 8601. Other programs write times with an offset, or without any. */
function isTime(text: string): boolean {
  const [whole, date, time = "T00:00", seconds = ":00"] = TIME.exec(text) ?? [];
  return whole !== undefined && isCalendarTime(`${date}${time}${seconds}`);
}

/** Whether a time of an action says in which zone it is. */
export const hasZone = (time: string): boolean => TIME.exec(time)?.[4] !== undefined;

/** The forms of an action that Aver hashes. */
export interface EncodedAction {
  receipt: string;
  receiptHash: string;
  metadata: string;
}

const RECEIPT_KEYS = [
  ...["action_id", "action_type", "instruction_hash", "input_hash", "output_hash", "parent_action_id"],
  ...["parent_receipt_hash", "gate_score", "gate_decision", "success", "duration_ms", "timestamp"],
];
export const RECEIPT_KEY_COUNT = RECEIPT_KEYS.length;
const CAPSEAL_KEYS = [...RECEIPT_KEYS, "policy_verdict"];

/** Encode an action. Raises `BadInput` if its metadata has no canonical form or is too large. */
export function encodeAction(action: AgentAction): EncodedAction {
  const receipt = receiptText(action);
  if (metadataBlobDigest(action.metadata) !== null) throw new BadInput("metadata must not be a reference to a blob");
  const metadata = action.metadata === null ? "null" : canonicalJson(action.metadata);
  if (encoder.encode(metadata).length > METADATA_MAX) throw new BadInput(`metadata has more than ${METADATA_MAX} bytes`);
  return { receipt, receiptHash: sha256Hex(receipt), metadata };
}

/** The exact text over which the receipt is computed. */
function receiptText(action: AgentAction): string {
  const fields = actionFields(action);
  return asciiJson(new Map(RECEIPT_KEYS.map((name) => [name, fields.get(name) as Json])));
}

export function receiptHash(action: AgentAction): string {
  return sha256Hex(receiptText(action));
}

/** The digest of the blob, if `metadata` is only a reference to one that is too large for a capsule; else null. */
export function metadataBlobDigest(metadata: Json): string | null {
  if (!isObject(metadata) || metadata.size !== 1 || !metadata.has("blob")) return null;
  for (const { digest, size } of blobReferences(metadata)) if (BigInt(size) > BigInt(METADATA_INLINE)) return digest;
  return null;
}

/** The sealed form of an action, as its capsule contains it. */
export function sealForm(action: AgentAction, texts: EncodedAction): string {
  const fields = actionFields(action);
  const data = encoder.encode(texts.metadata);
  let metadata: Json = action.metadata;
  if (data.length > METADATA_INLINE) {
    const reference: [string, Json][] = [
      ["alg", "sha256"],
      ["digest", sha256Hex(data)],
      ["size", new JsonNumber(String(data.length))],
      ["media", "application/json"],
    ];
    metadata = new Map([["blob", new Map(reference)]]);
  }
  return canonicalJson(fields.set("metadata", metadata));
}

export const ACTION_LINE_MAX = ELEMENT_MAX;

/** One line of `actions.jsonl`, as it was read. */
export interface ActionLine {
  action: AgentAction;
  texts: EncodedAction;
  /** The receipt that the line contains. */
  receiptHash: string;
  /** The number of keys that the receipt covers: 12, or 13 with `policy_verdict`. */
  keys: number;
  /** Why the receipt does not match the action; null if it matches. */
  problem: string | null;
}

/** Read a line without its line feed. Raises `Unreadable` if it is not an action with a receipt. */
export function readActionLine(raw: Uint8Array): ActionLine {
  const content = readJson(raw);
  if (!isObject(content)) throw new Unreadable("a line of actions must be a JSON object");
  const stored = content.get("receipt_hash");
  const fields = content.get("canonical_fields") ?? null;
  content.delete("receipt_hash");
  content.delete("canonical_fields");
  let action: AgentAction;
  let texts: EncodedAction;
  try {
    action = readAction(content);
    texts = encodeAction(action);
  } catch (error) {
    throw error instanceof BadInput ? new Unreadable(error.message) : error;
  }
  if (typeof stored !== "string" || !HEX64.test(stored)) {
    throw new Unreadable("the action has no receipt_hash of 64 lower-case hex digits");
  }
  const own = actionFields(action);
  const line = { action, texts, receiptHash: stored };
  if (fields === null) {
    // The line is from an older file. Its receipt covers 12 or 13 fields of the action itself.
    for (const keys of [RECEIPT_KEYS, CAPSEAL_KEYS]) {
      const covered = new Map(keys.map((name) => [name, own.get(name) as Json]));
      if (isReceipt(stored, covered, null)) return { ...line, keys: keys.length, problem: null };
    }
    return { ...line, keys: RECEIPT_KEYS.length, problem: "receipt_hash is not the hash of the action's fields" };
  }
  const hasKeys = (keys: string[]) => isObject(fields) && fields.size === keys.length && keys.every((name) => fields.has(name));
  if (!isObject(fields) || !(hasKeys(RECEIPT_KEYS) || hasKeys(CAPSEAL_KEYS))) {
    throw new Unreadable("canonical_fields are neither the 12 keys of a receipt nor those with policy_verdict");
  }
  if ([...fields.values()].some((value) => isObject(value) || Array.isArray(value))) {
    throw new Unreadable("canonical_fields hold something that is no field of an action");
  }
  return { ...line, keys: fields.size, problem: receiptProblem(own, stored, fields) };
}

function receiptProblem(own: JsonObject, stored: string, fields: JsonObject): string | null {
  if (!isReceipt(stored, fields, fields.get("gate_score") as Json)) return "receipt_hash is not the hash of canonical_fields";
  for (const [name, value] of fields) {
    const beside = own.get(name) as Json;
    if (!equalJson(value, beside) || (typeof value === "boolean") !== (typeof beside === "boolean")) {
      return `canonical_fields say another ${name} than the action`;
    }
  }
  return null;
}

/** Whether a receipt is the hash of these fields; the score may be written in the way of another language. */
function isReceipt(stored: string, fields: JsonObject, asWritten: Json): boolean {
  const value = fields.get("gate_score") as Json;
  const scores = new Set([asciiJson(value)]);
  if (asWritten instanceof JsonNumber) scores.add(asWritten.text);
  if (isInteger(value) && (value.value === 0 || value.value === 1)) scores.add(pythonRepr(value.value + 0));
  for (const score of scores) {
    const pairs = [...fields.keys()].sort().map((key) => {
      return `${asciiString(key)}:${key === "gate_score" ? score : asciiJson(fields.get(key) as Json)}`;
    });
    if (sha256Hex(`{${pairs.join(",")}}`) === stored) return true;
  }
  return false;
}

/** Yield the lines of a file without their line feeds, skipping empty ones; for a line that is too long, the reason. */
export function* readRawLines(data: Uint8Array, limit: number): Generator<Uint8Array | BadInput> {
  for (let at = 0; at < data.length; ) {
    const { line, next } = readEachLine(data, at, limit);
    at = next;
    if (!(line instanceof BadInput) && line.length === 0) {
      while (at < data.length && [0x20, 0x09, 0x0a, 0x0d].includes(data[at] as number)) at++;
    } else yield line;
  }
}

/** The same for a file that Aver wrote. An empty line is an error, and ends them. */
export function* readOwnLines(data: Uint8Array, limit: number): Generator<Uint8Array | BadInput> {
  for (let at = 0; at < data.length; ) {
    const { line, next } = readEachLine(data, at, limit);
    at = next;
    if (!(line instanceof BadInput) && line.length === 0) {
      yield new Unreadable("the line is empty, and Aver writes no empty lines; the rest was not read");
      return;
    }
    yield line;
  }
}

function readEachLine(data: Uint8Array, at: number, limit: number): { line: Uint8Array | BadInput; next: number } {
  const feed = data.indexOf(0x0a, at);
  const next = feed < 0 ? data.length : feed + 1;
  if (next - at > limit + 1) return { line: new Unreadable(`the line is longer than ${limit} bytes`), next };
  let end = next;
  while (end > at && (data[end - 1] === 0x0a || data[end - 1] === 0x0d)) end--;
  return { line: data.subarray(at, end), next };
}
