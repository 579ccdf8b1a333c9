/**
 * The keys that the reader has pinned, and what their owners published about them. The twin of `aver.keys.ring`.
 *
 * A signer who is not listed is unknown, never invalid. A record names its signer by 16 digits, or by the four that
 * qp-capsule writes; `lookup` gives every key that it may mean.
 */

import type { Ed25519 } from "./ed25519.ts";
import { BadInput, type Json, isInteger } from "./json.ts";
import {
  type Statement,
  checkObject,
  checkStatement,
  readStatement,
  timeField,
} from "./statement.ts";

const ED25519 = /^[0-9a-f]{64}$/;
const ML_DSA_65 = /^[0-9a-f]{3904}$/;
const IDENTITY = /^(?:ledger|(?:agent|person|policy):[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/;
const PURPOSES = ["seal", "approve", "policy", "checkpoint"];
const EPOCH_MAX = 1_000_000;
export const LEDGER = "ledger";
const CLASSIC = "ed25519";
export const HYBRID = "ed25519+ml-dsa-65";

/** Both halves in lower-case hex. `mlDsa` is empty if the key has no post-quantum half. */
export class PublicKey {
  readonly ed25519: string;
  readonly mlDsa: string;

  constructor(ed25519: Json | undefined, mlDsa: Json | undefined = "") {
    if (typeof ed25519 !== "string" || !ED25519.test(ed25519)) {
      throw new BadInput("an Ed25519 public key is 64 lower-case hex digits");
    }
    if (mlDsa !== "" && (typeof mlDsa !== "string" || !ML_DSA_65.test(mlDsa))) {
      throw new BadInput("an ML-DSA-65 public key is 3904 lower-case hex digits");
    }
    this.ed25519 = ed25519;
    this.mlDsa = mlDsa;
  }

  get fingerprint(): string {
    return this.ed25519.slice(0, 16);
  }

  get algorithm(): string {
    return this.mlDsa ? HYBRID : CLASSIC;
  }

  equals(other: PublicKey): boolean {
    return this.ed25519 === other.ed25519 && this.mlDsa === other.mlDsa;
  }
}

/** Whose key it is and what for, as an export or a `keys` chain says. */
export class KeyRole {
  readonly identity: string;
  readonly purpose: string;
  readonly algorithm: string;

  constructor(identity: string, purpose: string, algorithm: string) {
    this.identity = identity;
    this.purpose = purpose;
    this.algorithm = algorithm;
  }

  /** Whether the key may seal the records of ordinary chains. */
  get maySeal(): boolean {
    return this.purpose === "seal";
  }

  /** Whether the key may speak for the ledger: seal `meta` and `keys`, and sign checkpoints. */
  get mayAttest(): boolean {
    return this.purpose === "checkpoint" || (this.identity === LEDGER && this.purpose === "seal");
  }

  toString(): string {
    return `${this.identity}, purpose ${this.purpose}`;
  }
}

/** One epoch of an identity's key, as its owner exported it. */
export interface RingEntry {
  identity: string;
  purpose: string;
  epoch: number;
  key: PublicKey;
  createdAt: string;
  retiredAt: string | null;
  statement: Statement | null;
}

const ENTRY_KEYS = [
  ...["identity", "purpose", "epoch", "created_at", "retired_at", "statement"],
  ...["public_key", "public_key_pq", "algorithm", "fingerprint", "status"],
];

/** Read the entry of a ring or of a key export. Raises `BadInput`. */
export function readRingEntry(data: Json | undefined, where = "entry"): RingEntry {
  const object = checkObject(data, where, ENTRY_KEYS);
  const get = (name: string) => object.get(name);
  const [identity, purpose, epoch, statement] = [get("identity"), get("purpose"), get("epoch"), get("statement")];
  if (typeof identity !== "string" || !IDENTITY.test(identity)) throw new BadInput(`${where} names no identity`);
  if (typeof purpose !== "string" || !PURPOSES.includes(purpose)) throw new BadInput(`${where} names no purpose`);
  if (!isInteger(epoch) || !(epoch.value >= 0 && epoch.value <= EPOCH_MAX)) throw new BadInput(`${where} has a bad epoch`);
  const entry: RingEntry = {
    identity,
    purpose,
    epoch: epoch.value,
    key: new PublicKey(get("public_key"), get("public_key_pq")),
    createdAt: timeField(get("created_at"), `${where}.created_at`),
    retiredAt: get("retired_at") === null ? null : timeField(get("retired_at"), `${where}.retired_at`),
    statement: statement === null ? null : readStatement(statement, `${where}.statement`),
  };
  const derived = {
    algorithm: entry.key.algorithm,
    fingerprint: entry.key.fingerprint,
    status: entry.retiredAt === null ? "active" : "retired",
  };
  for (const [name, value] of Object.entries(derived)) {
    if (get(name) !== value) throw new BadInput(`${where}.${name} contradicts the rest of the entry`);
  }
  return entry;
}

/** The pinned keys. */
export class Ring {
  readonly keys: readonly PublicKey[];
  readonly published: readonly RingEntry[];
  private readonly bySigner = new Map<string, PublicKey[]>();
  private readonly byKey = new Map<string, RingEntry>();

  constructor(keys: Iterable<PublicKey | RingEntry> = []) {
    const known = new Map<string, PublicKey>();
    for (const given of keys) {
      const key = given instanceof PublicKey ? given : given.key;
      if (!(given instanceof PublicKey)) this.byKey.set(key.ed25519, given);
      known.set(key.ed25519, mergeKeys(known.get(key.ed25519), key));
    }
    this.keys = [...known.values()];
    this.published = [...this.byKey.values()];
    for (const key of this.keys) {
      for (const name of [key.fingerprint, `qp_key_${key.ed25519.slice(0, 4)}`]) {
        this.bySigner.set(name, [...(this.bySigner.get(name) ?? []), key]);
      }
    }
  }

  /** Every key that a record may mean by `signed_by`; none if it is unknown. */
  lookup(signedBy: string): readonly PublicKey[] {
    return this.bySigner.get(signedBy) ?? [];
  }

  /** What its owner published about a key; null for a bare key. */
  entryOf(key: PublicKey): RingEntry | null {
    return this.byKey.get(key.ed25519) ?? null;
  }

  roleOf(key: PublicKey): KeyRole | null {
    const entry = this.entryOf(key);
    return entry === null ? null : new KeyRole(entry.identity, entry.purpose, entry.key.algorithm);
  }

  /** When each retired key was retired, by the whole key. A rotation statement retires the old key, too. */
  retirementTimes(ed25519: Ed25519): Map<string, string> {
    const times = new Map<string, string>();
    const note = (key: string, at: string | null) => {
      const before = times.get(key);
      if (at !== null) times.set(key, before !== undefined && before < at ? before : at);
    };
    for (const entry of this.published) {
      note(entry.key.ed25519, entry.retiredAt);
      const rotation = entry.statement === null ? null : readRotation(entry.statement, ed25519);
      if (rotation !== null) note(rotation.old.ed25519, rotation.at);
    }
    return times;
  }
}

function mergeKeys(known: PublicKey | undefined, key: PublicKey): PublicKey {
  if (known === undefined) return key;
  if (known.mlDsa && key.mlDsa && known.mlDsa !== key.mlDsa) {
    throw new BadInput(`the fingerprint ${key.fingerprint} already belongs to another key`);
  }
  return known.mlDsa ? known : key;
}

/** A rotation that both keys signed. */
export interface KeyRotation {
  identity: string;
  old: PublicKey;
  new: PublicKey;
  at: string;
}

/** Read a rotation statement, and check it with the keys that it names. Null unless both of them signed it. */
export function readRotation(statement: Statement, ed25519: Ed25519): KeyRotation | null {
  try {
    const side = (name: string) => {
      const described = statement.content.get(name);
      if (!(described instanceof Map)) throw new BadInput("a rotation names two keys");
      if (!described.has("public_key_pq")) throw new BadInput("a rotation names both halves");
      return new PublicKey(described.get("public_key"), described.get("public_key_pq"));
    };
    const [old, next] = [side("old"), side("new")];
    const identity = statement.content.get("identity");
    const at = timeField(statement.content.get("at"), "at");
    if (statement.purpose !== "rotation" || typeof identity !== "string" || old.ed25519 === next.ed25519) return null;
    const results = checkStatement(statement, new Ring([old, next]), ed25519);
    const signed = (key: PublicKey) => results.some((one) => one.outcome === "valid" && one.key?.equals(key));
    return signed(old) && signed(next) ? { identity, old, new: next, at } : null;
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}
