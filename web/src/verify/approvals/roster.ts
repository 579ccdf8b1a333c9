/** The roster: the people whose approvals count, from the chain `approvers.<tenant>`. The twin of `gate.approvals.roster`. */

import { ed25519 } from "@noble/curves/ed25519.js";
import { at } from "../block.ts";
import type { Ed25519 } from "../ed25519.ts";
import { BadInput, type Json, type JsonObject, equalJson, isObject } from "../json.ts";
import { PublicKey, Ring } from "../ring.ts";
import type { Sealed } from "../sealed.ts";
import { type Statement, checkObject, checkStatement, readStatement, timeField } from "../statement.ts";

export const CUSTODIES = ["passphrase", "ssh-agent", "file"];
const PERSON = /^person:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** A person, their public key, and how the private key is kept. */
export interface Approver {
  identity: string;
  key: PublicKey;
  custody: string;
}

export function isPerson(value: Json | undefined): value is string {
  return typeof value === "string" && PERSON.test(value);
}

/** Read an approver. Raises `BadInput`. */
export function readApprover(identity: Json | undefined, data: Json | undefined, where: string): Approver {
  const object = checkObject(data, where, ["public_key", "custody"], ["public_key_pq"]);
  if (!isPerson(identity)) throw new BadInput(`${where}: it names no person`);
  const key = new PublicKey(object.get("public_key"), object.has("public_key_pq") ? object.get("public_key_pq") : "");
  const custody = object.get("custody");
  if (typeof custody !== "string" || !CUSTODIES.includes(custody)) throw new BadInput(`${where}.custody is none`);
  return { identity, key, custody };
}

function approverKey({ identity, key }: { identity: string; key: PublicKey }): string {
  return `${identity}\n${key.ed25519}\n${key.mlDsa}`;
}

/** The people who may approve now, and the keys that no longer count. */
export class Roster {
  readonly approvers = new Map<string, Approver>();
  /** The times at which keys were replaced or withdrawn, by fingerprint. */
  readonly ended = new Map<string, string>();
  private readonly known = new Set<string>();
  private readonly fingerprints = new Set<string>();
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
    for (const name of ["public_key", "public_key_pq", "custody"]) described.set(name, need(content, name));
    const approver = readApprover(need(content, "identity"), described, "enrolment");
    // The content is compared as a whole, so a signature never covers a field that nobody reads.
    const expected = new Map<string, Json>([
      ["identity", approver.identity],
      ["public_key", approver.key.ed25519],
      ["public_key_pq", approver.key.mlDsa],
      ["custody", approver.custody],
      ["ledger", this.ledger],
      ["tenant", this.tenant],
      ["at", need(content, "at")],
    ]);
    if (!equalJson(content, expected)) throw new BadInput("the enrolment says more than it should");
    if (!isUsable(approver.key)) throw new BadInput(`${approver.key.fingerprint} is not a usable Ed25519 public key`);
    if (!this.isSigned(statement, approver.key)) throw new BadInput("the enrolment is not signed by the key itself");
    // The first person needs no endorser: there is none.
    if (this.known.size && !this.isEndorsed(statement, new Set([...ended, approver.key.ed25519]))) {
      throw new BadInput("the enrolment is not signed by anyone who was on the roster");
    }
    // A key never comes back: it may have been withdrawn because it was stolen.
    if (this.fingerprints.has(approver.key.fingerprint)) throw new BadInput("the key was on the roster before");
    return this.put(approver, need(content, "at") as string);
  }

  private rotate(statement: Statement): Approver {
    const { content } = statement;
    const before = this.approvers.get(need(content, "identity") as string);
    if (before === undefined) throw new BadInput("it cannot be read");
    const [old, next] = [readKey(need(content, "old")), readKey(need(content, "new"))];
    const when = timeField(need(content, "at"), "rotation.at");
    // The old key must be the current one: an older rotation must not bring back an older key.
    if (statement.purpose !== "rotation" || !old.equals(before.key)) throw new BadInput("the rotation is not of the key that is on the roster");
    if (this.fingerprints.has(next.fingerprint)) throw new BadInput("the key was on the roster before");
    if (!this.isSigned(statement, old) || !this.isSigned(statement, next)) throw new BadInput("the rotation is not signed by both keys");
    return this.put({ ...before, key: next }, when);
  }

  private withdraw(statement: Statement, ended: Set<string>): void {
    const content = this.readContent(statement, "withdrawal");
    const gone = this.approvers.get(need(content, "identity") as string);
    if (gone === undefined) throw new BadInput("it cannot be read");
    if (gone.key.fingerprint !== need(content, "fingerprint")) throw new BadInput("the withdrawal is not of the key that is on the roster");
    if (!this.isEndorsed(statement, ended)) throw new BadInput("the withdrawal is not signed by anyone on the roster");
    // Without an approver, no one could be endorsed any more.
    if (this.approvers.size === 1) throw new BadInput(`${gone.identity} is the last approver`);
    this.approvers.delete(gone.identity);
    this.ended.set(gone.key.fingerprint, need(content, "at") as string);
  }

  private put(approver: Approver, when: string): Approver {
    const before = this.approvers.get(approver.identity);
    if (before !== undefined) this.ended.set(before.key.fingerprint, when);
    this.approvers.set(approver.identity, approver);
    this.known.add(approverKey(approver));
    this.fingerprints.add(approver.key.fingerprint);
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

  private isSigned(statement: Statement, key: PublicKey): boolean {
    const results = checkStatement(statement, new Ring([key], { isClosed: true }), this.verifier);
    return results.some((result) => result.by === key.fingerprint && result.outcome === "valid");
  }

  private isEndorsed(statement: Statement, but: ReadonlySet<string>): boolean {
    const ring = new Ring([...this.approvers.values()].map((approver) => approver.key), { isClosed: true });
    const results = checkStatement(statement, ring, this.verifier);
    return results.some(({ key, outcome }) => outcome === "valid" && key !== null && !but.has(key.ed25519));
  }
}

/** The value of a key that must be there. Raises `BadInput`. */
export function need(data: JsonObject, name: string): Json {
  const value = data.get(name);
  if (value === undefined) throw new BadInput("it cannot be read");
  return value;
}

function readKey(data: Json): PublicKey {
  if (!isObject(data)) throw new BadInput("it cannot be read");
  return new PublicKey(need(data, "public_key"), need(data, "public_key_pq"));
}

/** Whether the bytes of a key can be the public half of a key pair. */
function isUsable(key: PublicKey): boolean {
  try {
    const point = ed25519.Point.fromHex(key.ed25519, false);
    return point.isTorsionFree() && !point.isSmallOrder();
  } catch {
    return false;
  }
}
