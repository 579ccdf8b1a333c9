/** The roster: the people whose approvals count, from the chain `approvers.<tenant>`. The twin of `gate.approvals.roster`. */

import { at } from "../block.ts";
import { type Ed25519, isPrimeOrderPoint } from "../ed25519.ts";
import { BadInput, type Json, type JsonObject, equalJson, isObject } from "../json.ts";
import { EDDSA, Passkey } from "../passkey.ts";
import { isP256Point, passkeyProblem } from "../passkey_signature.ts";
import { PublicKey, Ring, type RingEntry } from "../ring.ts";
import type { Sealed } from "../sealed.ts";
import { type Statement, checkObject, checkStatement, readStatement, statementBytes, timeField } from "../statement.ts";
import { enrolmentContent } from "./content.ts";

export const CUSTODIES = ["passphrase", "ssh-agent", "file", "passkey"];
export const PASSKEY = "passkey";
/** The custodies of keys that make a passkey independent by their endorsement. */
const VOUCHING = ["passphrase", "ssh-agent"];
const PERSON = /^person:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** A person, their public key, and how the private key is kept. */
export interface Approver {
  identity: string;
  key: PublicKey | Passkey;
  custody: string;
  /** The approvers who endorsed a passkey. A request does not name them. */
  endorsers: readonly Approver[];
}

/** Whether no other program of the user can have made the signatures of this approver. */
export function isIndependent({ custody, endorsers }: Approver): boolean {
  return custody === PASSKEY ? endorsers.some((endorser) => VOUCHING.includes(endorser.custody)) : custody !== "file";
}

/** The whole public key in hex. */
export function wholeKey(key: PublicKey | Passkey): string {
  return key instanceof Passkey ? key.publicKey : key.ed25519;
}

function isSameKey(one: PublicKey | Passkey, other: PublicKey | Passkey): boolean {
  return one instanceof Passkey ? one.equals(other) : other instanceof PublicKey && one.equals(other);
}

/** What the ring knows about a key. It has no passkeys, but may have the Ed25519 key of one as another's. */
export function findRingEntry(ring: Ring, key: PublicKey | Passkey): RingEntry | null {
  if (key instanceof PublicKey) return ring.entryOf(key);
  return key.alg === EDDSA ? ring.entryOf(new PublicKey(key.publicKey)) : null;
}

export function isPerson(value: Json | undefined): value is string {
  return typeof value === "string" && PERSON.test(value);
}

/** Read an approver. Raises `BadInput`. */
export function readApprover(identity: Json | undefined, data: Json | undefined, where: string): Approver {
  // The custody and the form of the key go together, so a passkey is never taken for a key of another custody.
  const isPasskey = isObject(data) && data.get("custody") === PASSKEY;
  const object = checkObject(data, where, [isPasskey ? "passkey" : "public_key", "custody"], isPasskey ? [] : ["public_key_pq"]);
  if (!isPerson(identity)) throw new BadInput(`${where}: it names no person`);
  if (isPasskey) return { identity, key: new Passkey(object.get("passkey"), where), custody: PASSKEY, endorsers: [] };
  const key = new PublicKey(object.get("public_key"), object.has("public_key_pq") ? object.get("public_key_pq") : "");
  const custody = object.get("custody");
  if (typeof custody !== "string" || !CUSTODIES.includes(custody)) throw new BadInput(`${where}.custody is none`);
  return { identity, key, custody, endorsers: [] };
}

/** A text that names a person and one key. */
export function approverKey({ identity, key }: Approver): string {
  if (key instanceof Passkey) return [identity, key.alg, key.publicKey, key.rpId, key.credential].join("\n");
  return [identity, key.ed25519, key.mlDsa].join("\n");
}

/** Why a statement has no valid signature of this key; null if it has one. */
export function signatureProblem(statement: Statement, key: PublicKey | Passkey, verifier: Ed25519): string | null {
  if (key instanceof PublicKey) {
    const results = checkStatement(statement, new Ring([key]), verifier);
    return results.some((result) => result.by === key.fingerprint && result.outcome === "valid") ? null : "it does not hold";
  }
  const message = statementBytes(statement.purpose, statement.content);
  let problem: string | null = "it is not there";
  for (const { by, passkey } of statement.signatures) {
    if (by !== key.fingerprint || passkey === null) continue;
    problem = passkeyProblem(key, message, passkey, verifier);
    if (problem === null) return null;
  }
  return problem;
}

/** The people who may approve now, and the keys that no longer count. */
export class Roster {
  readonly approvers = new Map<string, Approver>();
  /** The times at which keys were replaced or withdrawn, by fingerprint. */
  readonly ended = new Map<string, string>();
  private readonly known = new Set<string>();
  /** Fingerprints and whole keys: one Ed25519 key has two fingerprints, as a key and as a passkey. */
  private readonly keys = new Set<string>();
  private readonly verifier: Ed25519;
  private readonly ledger: string;
  private readonly tenant: string;

  constructor(verifier: Ed25519, ledger: string, tenant: string) {
    this.verifier = verifier;
    this.ledger = ledger;
    this.tenant = tenant;
  }

  /** Whether this pair of identity and key was ever on the roster. */
  hasHad(approver: Approver): boolean {
    return this.known.has(approverKey(approver));
  }

  private hasHadKey(key: PublicKey | Passkey): boolean {
    return this.keys.has(key.fingerprint) || this.keys.has(wholeKey(key));
  }

  /** Apply one more record. Returns the approver that it put on the roster. Raises `BadInput` if it changes nothing. */
  apply(record: Sealed, retired: ReadonlyMap<string, string>): Approver | null {
    const ended = new Set([...retired].filter(([, when]) => when < record.signed_at).map(([key]) => key));
    const chain = at(record.content, "authority", "chain");
    if (!Array.isArray(chain) || !chain.length) throw new BadInput("it cannot be read");
    const statement = readStatement(chain[0]);
    switch (record.kind) {
      case "key.create":
        return this.enrol(statement, ended);
      case "key.rotate":
        return this.rotate(statement);
      case "key.retire":
        this.withdraw(statement, ended);
        return null;
      default:
        throw new BadInput(`it is of the kind ${record.kind}`);
    }
  }

  private enrol(statement: Statement, ended: Set<string>): Approver {
    const content = this.readContent(statement, "enrolment");
    const described = new Map<string, Json>();
    const names = need(content, "custody") === PASSKEY ? ["passkey"] : ["public_key", "public_key_pq"];
    for (const name of [...names, "custody"]) described.set(name, need(content, name));
    const approver = readApprover(need(content, "identity"), described, "enrolment");
    // The content is compared as a whole, so a signature never covers a field that nobody reads.
    const expected = enrolmentContent(approver, this.ledger, this.tenant, need(content, "at"));
    if (!equalJson(content, expected)) throw new BadInput("the enrolment says more than it should");
    if (!isUsable(approver.key)) throw new BadInput(`${approver.key.fingerprint} is not a usable public key`);
    if (signatureProblem(statement, approver.key, this.verifier) !== null) throw new BadInput("the enrolment is not signed by the key itself");
    if (approver.custody === PASSKEY && !this.hasKeyBesidePasskeys(approver.identity)) {
      throw new BadInput("a passkey is enrolled only beside an approver whose key is no passkey");
    }
    const endorsers = this.findEndorsers(statement, new Set([...ended, wholeKey(approver.key)]));
    // The first person needs no endorser: there is none.
    if (this.known.size && !endorsers.length) throw new BadInput("the enrolment is not signed by anyone who was on the roster");
    // A key never comes back: it may have been withdrawn because it was stolen.
    if (this.hasHadKey(approver.key)) throw new BadInput("the key was on the roster before");
    return this.put({ ...approver, endorsers }, need(content, "at") as string);
  }

  private rotate(statement: Statement): Approver {
    const { content } = statement;
    const before = this.approvers.get(need(content, "identity") as string);
    if (before === undefined) throw new BadInput("it cannot be read");
    const [old, next] = [readKey(need(content, "old")), readKey(need(content, "new"))];
    const when = timeField(need(content, "at"), "rotation.at");
    // The old key must be the current one: an older rotation must not bring back an older key.
    if (statement.purpose !== "rotation" || !isSameKey(old, before.key)) throw new BadInput("the rotation is not of the key that is on the roster");
    if (this.hasHadKey(next)) throw new BadInput("the key was on the roster before");
    if ([old, next].some((key) => signatureProblem(statement, key, this.verifier) !== null)) {
      throw new BadInput("the rotation is not signed by both keys");
    }
    return this.put({ ...before, key: next, endorsers: [] }, when);
  }

  private withdraw(statement: Statement, ended: Set<string>): void {
    const content = this.readContent(statement, "withdrawal");
    const gone = this.approvers.get(need(content, "identity") as string);
    if (gone === undefined) throw new BadInput("it cannot be read");
    if (gone.key.fingerprint !== need(content, "fingerprint")) throw new BadInput("the withdrawal is not of the key that is on the roster");
    if (!this.findEndorsers(statement, ended).length) throw new BadInput("the withdrawal is not signed by anyone on the roster");
    // Without an approver, no one could be endorsed any more.
    if (this.approvers.size === 1) throw new BadInput(`${gone.identity} is the last approver`);
    if (!this.hasKeyBesidePasskeys(gone.identity)) throw new BadInput(`${gone.identity} is the last approver whose key is no passkey`);
    this.approvers.delete(gone.identity);
    this.ended.set(gone.key.fingerprint, need(content, "at") as string);
  }

  private put(approver: Approver, when: string): Approver {
    const before = this.approvers.get(approver.identity);
    if (before !== undefined) this.ended.set(before.key.fingerprint, when);
    this.approvers.set(approver.identity, approver);
    this.known.add(approverKey(approver));
    this.keys.add(approver.key.fingerprint).add(wholeKey(approver.key));
    return approver;
  }

  private readContent(statement: Statement, purpose: string): JsonObject {
    const { content } = statement;
    if (statement.purpose !== purpose) throw new BadInput(`its statement is of the purpose ${statement.purpose}, not ${purpose}`);
    // Otherwise the enrolment of another ledger could be copied here.
    if (need(content, "ledger") !== this.ledger || need(content, "tenant") !== this.tenant) {
      throw new BadInput("its statement was made for another ledger or tenant");
    }
    timeField(need(content, "at"), `${purpose}.at`);
    return content;
  }

  /** Whether somebody other than `without` is on the roster whose key is no passkey. */
  private hasKeyBesidePasskeys(without: string): boolean {
    return [...this.approvers.values()].some(({ identity, custody }) => identity !== without && custody !== PASSKEY);
  }

  /** The approvers who signed a statement with a key other than those in `but`, which has whole keys. */
  private findEndorsers(statement: Statement, but: ReadonlySet<string>): Approver[] {
    const named = new Set(statement.signatures.map((signature) => signature.by));
    return [...this.approvers.values()]
      .filter(({ key }) => named.has(key.fingerprint) && !but.has(wholeKey(key)) && signatureProblem(statement, key, this.verifier) === null)
      .map((approver) => ({ ...approver, endorsers: [] }));
  }
}

/** The value of a key that must be there. Raises `BadInput`. */
function need(data: JsonObject, name: string): Json {
  const value = data.get(name);
  if (value === undefined) throw new BadInput("it cannot be read");
  return value;
}

function readKey(data: Json): PublicKey {
  if (!isObject(data)) throw new BadInput("it cannot be read");
  return new PublicKey(need(data, "public_key"), need(data, "public_key_pq"));
}

/** Whether the bytes of a key can be the public half of a key pair. */
function isUsable(key: PublicKey | Passkey): boolean {
  return key instanceof Passkey && key.alg !== EDDSA ? isP256Point(key.publicKey) : isPrimeOrderPoint(wholeKey(key));
}
