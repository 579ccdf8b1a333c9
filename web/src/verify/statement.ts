/**
 * Signed statements: everything a key signs that is not a capsule. The twin of `aver.keys.statement`.
 *
 * The signed message is `aver/<purpose>/v1`, a line feed, and the canonical JSON of the content. A key with an ML-DSA-65
 * half signs with both halves, and both must be valid. A passkey signs only statements of `PASSKEY_PURPOSES`. No ring has a
 * passkey, so `checkStatement` never calls such a signature valid: `passkeyProblem` checks it.
 */

import { canonicalJson } from "./canonical.ts";
import type { Ed25519 } from "./ed25519.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, encoder, isInteger, isObject } from "./json.ts";
import { verifyMlDsa } from "./ml_dsa.ts";
import { type PasskeySignature, readPasskeySignature } from "./passkey.ts";
import type { PublicKey, Ring } from "./ring.ts";
import { show } from "./text.ts";

/** Most signatures on one statement. */
const SIGNATURES_MAX = 64;
/** Largest content of a statement, in canonical bytes; a checkpoint or a report is not stored in a capsule, and may be larger. */
const STATEMENT_MAX = 256 * 1024;
const CHECKPOINT_MAX = 12 * 1024 * 1024;

const PASSKEY_PURPOSES = ["approval", "enrolment", "withdrawal"];

const PURPOSE = /^[a-z][a-z0-9-]{0,31}$/;
const FINGERPRINT = /^[0-9a-f]{16}$/;
const ED25519 = /^[0-9a-f]{128}$/;
const ML_DSA_65 = /^[0-9a-f]{6618}$/;

/** The signer's fingerprint, and its signatures in lower-case hex; or the signature of a passkey alone. */
export interface StatementSignature {
  by: string;
  ed25519: string;
  ml_dsa_65: string;
  passkey: PasskeySignature | null;
}

/** A signature as JSON, as a record holds it. */
function signatureFields({ by, ed25519, ml_dsa_65, passkey }: StatementSignature): JsonObject {
  if (passkey === null) return new Map<string, Json>(Object.entries({ by, ed25519, ml_dsa_65 }));
  return new Map<string, Json>([
    ["by", by],
    ["passkey", new Map<string, Json>(Object.entries(passkey))],
  ]);
}

/** A statement as JSON, as a record holds it. */
export function statementFields({ purpose, content, signatures }: Statement): JsonObject {
  return new Map<string, Json>([
    ["v", new JsonNumber("1")],
    ["purpose", purpose],
    ["content", content],
    ["signatures", signatures.map(signatureFields)],
  ]);
}

export interface Statement {
  purpose: string;
  content: JsonObject;
  signatures: StatementSignature[];
}

type SignatureOutcome = "valid" | "invalid" | "unknown";

interface SignatureResult {
  by: string;
  outcome: SignatureOutcome;
  /** The key that made a valid signature. `by` is only its fingerprint, which other keys may have, too. */
  key: PublicKey | null;
}

/** Return `value` if it is an object with every required key and no others but the optional ones. */
export function checkObject(value: Json | undefined, where: string, required: string[], optional: string[] = []): JsonObject {
  if (!isObject(value)) throw new BadInput(`${where} must be an object`);
  for (const name of required) if (!value.has(name)) throw new BadInput(`${where} lacks '${name}'`);
  for (const name of value.keys()) {
    if (!required.includes(name) && !optional.includes(name)) throw new BadInput(`${where} has an unknown key ${show(name)}`);
  }
  return value;
}

/** Raises `BadInput` unless the version is 1, the only one there is. */
export function checkVersion(value: Json | undefined, where: string): void {
  if (!isInteger(value) || value.text !== "1") throw new BadInput(`${where} is of a version that this page does not read`);
}

/** Return a string that matches the whole pattern. */
export function textField(value: Json | undefined, where: string, pattern: RegExp): string {
  if (typeof value !== "string" || !pattern.test(value)) throw new BadInput(`${where} has a bad value`);
  return value;
}

const TIME = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d{6})?\+00:00$/;

/** Return a UTC timestamp as Aver writes it. */
export function timeField(value: Json | undefined, where: string): string {
  const text = textField(value, where, TIME);
  if (!isCalendarTime(text)) throw new BadInput(`${where} is not a point in time`);
  return text;
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Whether the first 19 characters, `YYYY-MM-DDTHH:MM:SS`, are a time of the calendar. */
export function isCalendarTime(text: string): boolean {
  const [year, month, day] = [Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10))];
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0);
  // Two digits compare as texts.
  return year >= 1 && day >= 1 && day <= days && text.slice(11, 13) <= "23" && text.slice(14, 16) <= "59" && text.slice(17, 19) <= "59";
}

/** Read a statement. Raises `BadInput`. */
export function readStatement(data: Json | undefined, where = "statement"): Statement {
  const object = checkObject(data, where, ["v", "purpose", "content", "signatures"]);
  checkVersion(object.get("v"), where);
  const purpose = textField(object.get("purpose"), `${where}.purpose`, PURPOSE);
  const signatures = object.get("signatures");
  if (!Array.isArray(signatures) || signatures.length > SIGNATURES_MAX) {
    throw new BadInput(`${where}.signatures must be a list of at most ${SIGNATURES_MAX}`);
  }
  const content = object.get("content") as Json;
  statementBytes(purpose, content);
  return {
    purpose,
    content: content as JsonObject,
    signatures: signatures.map((item, at) => readSignature(item, `${where}.signatures[${at}]`, purpose)),
  };
}

function readSignature(item: Json, where: string, purpose: string): StatementSignature {
  if (PASSKEY_PURPOSES.includes(purpose) && isObject(item) && item.has("passkey")) {
    const object = checkObject(item, where, ["by", "passkey"]);
    return {
      by: textField(object.get("by"), `${where}.by`, FINGERPRINT),
      ed25519: "",
      ml_dsa_65: "",
      passkey: readPasskeySignature(object.get("passkey"), `${where}.passkey`),
    };
  }
  const object = checkObject(item, where, ["by", "ed25519", "ml_dsa_65"]);
  const second = object.get("ml_dsa_65");
  return {
    by: textField(object.get("by"), `${where}.by`, FINGERPRINT),
    ed25519: textField(object.get("ed25519"), `${where}.ed25519`, ED25519),
    ml_dsa_65: second === "" ? "" : textField(second, `${where}.ml_dsa_65`, ML_DSA_65),
    passkey: null,
  };
}

/** The message that is signed. Raises `BadInput` if the content has no canonical form or is too large. */
export function statementBytes(purpose: string, content: Json): Uint8Array {
  if (!isObject(content)) throw new BadInput("a statement's content is an object");
  const canonical = encoder.encode(canonicalJson(content));
  const limit = purpose === "checkpoint" || purpose === "report" ? CHECKPOINT_MAX : STATEMENT_MAX;
  if (canonical.length > limit) throw new BadInput(`a ${purpose} statement's content is at most ${limit} bytes`);
  const start = encoder.encode(`aver/${purpose}/v1\n`);
  const message = new Uint8Array(start.length + canonical.length);
  message.set(start);
  message.set(canonical, start.length);
  return message;
}

/** Check every signature. Returns one result for each, in order. */
export function checkStatement(statement: Statement, ring: Ring, ed25519: Ed25519): SignatureResult[] {
  const message = statementBytes(statement.purpose, statement.content);
  return statement.signatures.map((signature) => {
    const candidates = ring.lookup(signature.by);
    const holds = (key: PublicKey) => ed25519.verify(key.ed25519, message, signature.ed25519) && (key.mlDsa === "" || verifyMlDsa(key.mlDsa, message, signature.ml_dsa_65));
    const key = candidates.find(holds);
    if (key !== undefined) return { by: signature.by, outcome: "valid", key };
    // Nobody signs the name of the signer. A known key under a name of nobody's was renamed.
    if (!candidates.length && !ring.keys.some(holds)) return { by: signature.by, outcome: "unknown", key: null };
    return { by: signature.by, outcome: "invalid", key: null };
  });
}
