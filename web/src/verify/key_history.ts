/**
 * The history of keys: what an intact `keys` chain says about the keys that sealed a ledger. The twin of
 * `aver.ledger.key_history`, whose text explains which records count and why.
 */

import { IMPORT_DOMAIN, KEYS_CHAIN, at, readBlock, readKind } from "./block.ts";
import { blobReferences } from "./blobs.ts";
import { ChainJudge, type Retirement, type Rules, plainRules } from "./chain.ts";
import type { Ed25519 } from "./ed25519.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, isObject, readJson } from "./json.ts";
import { KeyRole, type KeyRotation, LEDGER, PublicKey, type Ring, readRotation } from "./ring.ts";
import type { Sealed } from "./sealed.ts";
import { readStatement } from "./statement.ts";
import { type Count, type Place, type Tally, place, toCount } from "./verdict.ts";

/** What is known about the keys that sealed a ledger. Keys are named by their 64 digits. */
export interface KeyHistory {
  retired: ReadonlyMap<string, Retirement>;
  /** The keys that the chain records. */
  roles: ReadonlyMap<string, KeyRole>;
  /** How many records each chain had when a key replaced another one. */
  began: ReadonlyMap<string, ReadonlyMap<string, Count>>;
}

export const NO_HISTORY: KeyHistory = { retired: new Map(), roles: new Map(), began: new Map() };

/** These rules for a ledger with this history. */
export function rulesOf(history: KeyHistory, rules: Rules): Rules {
  const { retired, roles, began } = history;
  return { ...rules, retired, roles, recorded: new Set(roles.keys()), began };
}

/** The retired keys that a ring knows, each limited by the time of its retirement. */
export function retirementsByTime(ring: Ring, ed25519: Ed25519): Map<string, Retirement> {
  return new Map([...ring.retirementTimes(ed25519)].map(([key, retiredAt]) => [key, { retiredAt, limits: null }]));
}

interface KeyEnd {
  key: string;
  sequence: number;
  heads: Map<string, Count>;
  at: string | null;
}

/** Loads a blob by its digest. Raises `BadInput`. */
type LoadBlob = (digest: string) => Promise<Uint8Array>;

/** Reads the history in the records of a `keys` chain, given in their order. */
export class HistoryReader {
  private readonly ring: Ring;
  private readonly rules: Rules;
  private readonly whole: ChainJudge;
  private readonly found: KeyRecord[] = [];

  /** `identity` names the ledger and tenant that the chain must belong to. */
  constructor(ring: Ring, ed25519: Ed25519, identity: Record<string, string>) {
    this.ring = ring;
    this.rules = plainRules(ring, ed25519);
    this.whole = new ChainJudge({ ...this.rules, level: "content" }, { identity: { ...identity, name: KEYS_CHAIN } });
  }

  take(record: Sealed): void {
    // Each record is judged by itself: a break in the chain must not hide the retirements after it.
    this.whole.judge(record);
    const judge = new ChainJudge(this.rules, { chain: KEYS_CHAIN, start: null });
    judge.judge(record);
    if (!judge.tally.hasFailed() && judge.signer !== null) {
      const read = readKeyRecord(record, judge.signer, this.rules);
      if (read !== null) this.found.push(read);
    }
  }

  async finish(loadBlob: LoadBlob): Promise<KeyHistory> {
    const { found, ring, rules } = this;
    const successors = new Map<string, string>();
    for (const { rotation } of found) if (rotation) successors.set(rotation.old.ed25519, rotation.new.ed25519);
    const roles = new Map<string, KeyRole>();
    // Twice: the ledger's key may record the rotation of another identity right before it records itself.
    for (const each of [...found, ...found]) {
      if (recordsKey(each, ring, roles, successors) && !roles.has(each.key.ed25519)) roles.set(each.key.ed25519, each.role);
    }
    const ends: KeyEnd[] = [];
    const began = new Map<string, Map<string, Count>>();
    for (const each of found) {
      const ended = endedKey(each, roles, successors);
      const heads = ended === null ? null : await readHeads(each.heads, loadBlob);
      if (ended === null || heads === null) continue;
      ends.push({ key: ended, sequence: each.sequence, heads, at: each.at });
      if (each.rotation !== null && !began.has(each.key.ed25519)) {
        // An import may have records that the same key sealed in another ledger.
        const own = new Map([...heads].filter(([chain]) => !chain.startsWith(`${IMPORT_DOMAIN}.`)));
        began.set(each.key.ed25519, own);
      }
    }
    const isIntact = !this.whole.tally.hasFailed();
    return { retired: retirements(ring, rules.ed25519, ends), roles: isIntact ? roles : new Map(), began };
  }
}

/** A valid record of the `keys` chain. */
interface KeyRecord {
  kind: string;
  signer: PublicKey;
  key: PublicKey;
  role: KeyRole;
  sequence: number;
  at: string;
  rotation: KeyRotation | null;
  heads: Json | undefined;
}

function text(value: Json | undefined): string {
  if (value === undefined) throw new BadInput("a key is missing");
  return typeof value === "string" ? value : value instanceof JsonNumber ? value.text : String(value);
}

function readKeyRecord(record: Sealed, signer: PublicKey, rules: Rules): KeyRecord | null {
  try {
    const content = record.content;
    const kind = readKind(content);
    const result = at(content, "outcome", "result");
    if (!["key.create", "key.rotate", "key.retire"].includes(kind)) return null;
    if (!isObject(result) || !result.has("public_key_pq")) return null;
    const key = new PublicKey(result.get("public_key"), result.get("public_key_pq"));
    const role = new KeyRole(text(result.get("identity")), text(result.get("purpose")), key.algorithm);
    const known = rules.ring.entryOf(key);
    if (known !== null && (known.identity !== role.identity || known.purpose !== role.purpose)) return null;
    let rotation: KeyRotation | null = null;
    if (kind === "key.rotate") {
      rotation = readFirstRotation(content, rules);
      if (rotation === null || rotation.new.ed25519 !== key.ed25519 || rotation.identity !== role.identity) return null;
    }
    const when = rotation === null ? text(readBlock(content)?.get("at")) : rotation.at;
    const sequence = (content.get("sequence") as JsonNumber).value;
    return { kind, signer, key, role, sequence, at: when, rotation, heads: result.get("heads") };
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

function readFirstRotation(content: JsonObject, rules: Rules): KeyRotation | null {
  const statements = at(content, "authority", "chain");
  if (!Array.isArray(statements) || !statements.length) return null;
  return readRotation(readStatement(statements[0]), rules.ed25519);
}

/** Whether this record rightly says that its key came into use. */
function recordsKey(record: KeyRecord, ring: Ring, roles: Map<string, KeyRole>, successors: Map<string, string>): boolean {
  if (record.kind === "key.retire") return false;
  if (follows(record.signer.ed25519, record.key.ed25519, successors)) return true;
  // The ledger's key recorded a key of another identity. That the other key exists must be certain.
  const isCertain = record.rotation !== null || ring.entryOf(record.key) !== null;
  return isCertain && isSealedForAnother(record, roles);
}

/** The key that this record rightly ends; null if it ends none. */
function endedKey(record: KeyRecord, roles: Map<string, KeyRole>, successors: Map<string, string>): string | null {
  const signer = record.signer.ed25519;
  if (record.rotation !== null) {
    const isRight = follows(signer, record.rotation.new.ed25519, successors) || isSealedForAnother(record, roles);
    return isRight ? record.rotation.old.ed25519 : null;
  }
  if (record.kind !== "key.retire" || signer === record.key.ed25519) return null;
  const sealer = roles.get(signer);
  if (sealer === undefined || !roles.has(record.key.ed25519)) return null;
  return sealer.identity === LEDGER || sealer.identity === record.role.identity ? record.key.ed25519 : null;
}

function isSealedForAnother(record: KeyRecord, roles: Map<string, KeyRole>): boolean {
  return roles.get(record.signer.ed25519)?.identity === LEDGER && record.role.identity !== LEDGER;
}

/** The count of every chain; null if they cannot be read. */
async function readHeads(value: Json | undefined, loadBlob: LoadBlob): Promise<Map<string, Count> | null> {
  try {
    let heads = value;
    for (const { digest } of blobReferences(value)) heads = readJson(await loadBlob(digest)); // At most one.
    if (!isObject(heads)) return null;
    const counts = new Map<string, Count>();
    for (const [chain, head] of heads) {
      if (!isObject(head) || !head.has("hash")) return null;
      const count = readInteger(head.get("count"));
      if (count === null) return null;
      counts.set(chain, count);
    }
    return counts;
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

/** An integer as Python's `int` reads it from a JSON value; null if it is none. */
export function readInteger(value: Json | undefined): Count | null {
  if (value instanceof JsonNumber) return toCount(BigInt(value.isInteger ? value.text : Math.trunc(value.value)));
  if (typeof value === "boolean") return Number(value);
  // Python reads at most 4,300 digits.
  if (typeof value !== "string" || !/^\s*[-+]?[0-9](?:_?[0-9]){0,4299}\s*$/.test(value)) return null;
  return toCount(BigInt(value.replace(/[+_]/g, "")));
}

/** Whether the signer is this key, or one that rotations lead to from it. */
function follows(signer: string, key: string, successors: Map<string, string>): boolean {
  const seen = new Set<string>();
  while (key !== signer) {
    seen.add(key);
    const next = successors.get(key);
    if (next === undefined || seen.has(next)) return false; // Forged records may form a circle.
    key = next;
  }
  return true;
}

function retirements(ring: Ring, ed25519: Ed25519, ends: KeyEnd[]): Map<string, Retirement> {
  const found = retirementsByTime(ring, ed25519);
  for (const end of ends) {
    const known = found.get(end.key) ?? { retiredAt: end.at, limits: null };
    if (known.limits !== null) continue; // Of several records about one key, the first counts.
    // The heads were taken before this record, so the `keys` chain itself is limited by its place.
    found.set(end.key, { retiredAt: known.retiredAt, limits: new Map(end.heads).set(KEYS_CHAIN, end.sequence) });
  }
  return found;
}

/** Whether a record of the `keys` or `meta` chain holds by itself, and its signer is known and the one it names. */
export function isValidByItself(record: Sealed, rules: Rules): boolean {
  const judge = new ChainJudge({ ...plainRules(rules.ring, rules.ed25519) }, { start: null });
  judge.judge(record);
  // Of a key with two halves, one may be unknown.
  return judge.tally.findings.every(({ code }) => code === "UNKNOWN_SIGNER") && judge.signer !== null && judge.signer.fingerprint === record.signed_by;
}

/**
 * The rotation that a record of `keys` records: [new key, old key]. Both have signed it, so neither need be known, and no
 * stranger can lead to another's key.
 */
export function readReplacement(record: Sealed, rules: Rules): [string, string] | null {
  try {
    if (record.kind !== "key.rotate") return null;
    const rotation = readFirstRotation(record.content, rules);
    return rotation === null ? null : [rotation.new.ed25519, rotation.old.ed25519];
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

/** Turn the signers that the `keys` chain does not record, and no trace vouches for, into a warning each. */
export function reportUnrecorded(tally: Tally): void {
  const missing = new Map<string, Place>();
  for (const [signer, where] of tally.unrecorded) {
    const key = signer.slice(0, 64);
    if (!tally.vouched.has(signer) && !missing.has(key)) missing.set(key, where);
  }
  for (const [key, where] of missing) {
    const seat = [where.chain && `chain ${where.chain}`, where.sequence !== null && `sequence ${where.sequence}`];
    const words = `no intact keys chain records that the key ${key.slice(0, 16)} came into use before it sealed ${seat.filter(Boolean).join(", ")}`;
    // Without a place of its own: the doubt concerns all that the key sealed.
    tally.warn("keys", "KEY_UNRECORDED", words, place());
  }
  tally.unrecorded = new Map();
}
