/** The signed heads of a bundle, `head.json`. The twin of `aver.ledger.bundle.head_file` and of `ledger.checkpoint`. */

import { at } from "../block.ts";
import { type Directory, readStart } from "../bytes.ts";
import { type Rules, roleOf } from "../chain.ts";
import { sortedKeys } from "../canonical.ts";
import { dumpAsItStands, orderKeys, readExactly } from "../documents.ts";
import { type Head, checkHead, readHead } from "../heads.ts";
import { BadInput, ELEMENT_MAX, type Json, JsonNumber, type JsonObject, NotFound, equalJson, isObject } from "../json.ts";
import { type KeyHistory, rulesOf } from "../key_history.ts";
import type { Sealed } from "../sealed.ts";
import { type Statement, checkStatement, readStatement, statementFields } from "../statement.ts";
import { show } from "../text.ts";
import { type Count, type Tally, place } from "../verdict.ts";
import { HEAD } from "./layout.ts";

const CHECK = "head";
/** Most keys of a bundle's `keys` chain that are noted. */
const RECORDED_MAX = 10_000;
const WHERE = place(null, null, HEAD);

/** A statement read as a checkpoint. */
export interface Checkpoint {
  statement: Statement;
  at: string;
  ledger: string;
  tenant: string;
  heads: Head[];
  /** Whether it lists only some chains of the ledger. */
  isPart: boolean;
}

/** A key that the `keys` chain records. */
export interface RecordedKey {
  publicKey: string;
  publicKeyPq: string;
}

/** Note the key that came into use by a record of a `keys` chain, by fingerprint. The first record counts. */
export function noteRecordedKey(record: Sealed, found: Map<string, RecordedKey>): void {
  if (!["key.create", "key.rotate"].includes(record.kind)) return;
  const [key, pq, fingerprint] = ["public_key", "public_key_pq", "fingerprint"].map((name) =>
    at(record.content, "outcome", "result", name),
  );
  if (typeof key !== "string" || typeof pq !== "string" || typeof fingerprint !== "string") return;
  if (found.size < RECORDED_MAX && !found.has(fingerprint)) found.set(fingerprint, { publicKey: key, publicKeyPq: pq });
}

/** Read a statement as a checkpoint. Raises `BadInput`. */
function readCheckpoint(statement: Statement, where: string): Checkpoint {
  const { content } = statement;
  if (statement.purpose !== "checkpoint" || !equalJson(content.get("v"), new JsonNumber("1"))) {
    throw new BadInput(`${where} is a statement, but not a checkpoint`);
  }
  const [heads, when, since = null] = ["heads", "at", "since"].map((name) => content.get(name));
  if (!isObject(heads) || typeof when !== "string" || !(since === null || typeof since === "string")) {
    throw new BadInput(`${where} does not list heads and its time`);
  }
  const [ledger, tenant] = ["ledger", "tenant"].map((name) => content.get(name));
  if (typeof ledger !== "string" || typeof tenant !== "string") throw new BadInput(`${where} does not name a ledger and a tenant`);
  const listed = [...heads].map(([chain, head]) => {
    if (!isObject(head) || head.size !== 2 || !head.has("count") || !head.has("hash")) {
      throw new BadInput(`${where}: its head of ${show(chain)} is not valid`);
    }
    return readHead(new Map<string, Json>([["ledger", ledger], ["tenant", tenant], ["chain", chain], ...head]));
  });
  // Anything but a plain false counts as a part: a part proves less.
  const isPart = content.has("part") && content.get("part") !== false;
  return { statement, at: when, ledger, tenant, heads: listed, isPart };
}

/** Read the `head.json` of a bundle; null if there is none. Raises `BadInput` if it is not of its form. */
export async function readBundleHead(directory: Directory): Promise<Checkpoint | null> {
  let raw: Uint8Array;
  try {
    raw = await readStart(await directory.open(HEAD), ELEMENT_MAX + 1);
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
  return readExactly(raw, HEAD, readContent, ({ statement }) => {
    const content = orderKeys(statement.content, ["v", "ledger", "tenant", "at", "heads", "part"]);
    content.set("heads", orderHeads(content.get("heads")));
    return dumpAsItStands(statementFields({ ...statement, content }));
  });
}

/** The heads in a statement, in the order of `names`, or by their names. */
export function orderHeads(heads: Json | undefined, names: Iterable<string> = sortedKeys(heads as JsonObject)): JsonObject {
  const ordered = orderKeys(heads as JsonObject, names);
  for (const [name, head] of ordered) ordered.set(name, orderKeys(head as JsonObject, ["count", "hash"]));
  return ordered;
}

function readContent(data: Json): Checkpoint {
  const statement = readStatement(data, HEAD);
  const found = readCheckpoint(statement, HEAD);
  const keys = ["v", "ledger", "tenant", "part", "heads", "at"];
  const { content } = statement;
  if (content.size !== keys.length || !keys.every((key) => content.has(key)) || typeof content.get("part") !== "boolean") {
    throw new BadInput(`${HEAD} does not state exactly ${keys.join(", ")}`);
  }
  return found;
}

/** Compare the chains of a bundle, by their ids, with its `head.json`. */
export function checkBundleHead(
  head: Checkpoint,
  heads: ReadonlyMap<string, Head>,
  tally: Tally,
  of: { ledger: string | null; tenant: string | null },
  rules: Rules,
  history: KeyHistory,
): void {
  tally.countDone(CHECK);
  if (head.ledger !== of.ledger || head.tenant !== of.tenant) {
    tally.fail(CHECK, "CHAIN_IDENTITY", `${HEAD} is of ledger ${show(head.ledger)}; this is another`, WHERE);
    return;
  }
  if (!checkSigners(head, rules, tally, history, { check: CHECK, name: HEAD })) return;
  const listed = new Map(head.heads.map((one) => [one.chain, one]));
  for (const [chain, stated] of listed) {
    const actual = heads.get(chain) ?? null;
    if (actual !== null && actual.count > stated.count) {
      const words = `${HEAD} states ${stated.count} records of this chain; ${actual.count} are here`;
      tally.fail(CHECK, "HEAD_MISMATCH", words, place(chain, stated.count), { stated: { ...stated }, actual: { ...actual } });
    } else {
      checkHead(stated, actual, actual?.hash ?? null, tally, CHECK, HEAD);
    }
  }
  for (const chain of heads.keys()) {
    if (!listed.has(chain)) {
      tally.fail(CHECK, "HEAD_MISMATCH", `${HEAD} does not list this chain: it was added after the export`, place(chain));
    }
  }
  const which = head.isPart ? "a part of the ledger" : "the whole ledger";
  tally.notes.set(CHECK, `${listed.size} chains, ${which}, as signed at ${head.at}`);
}

/** Check who signed a statement about the chains of a bundle. Returns false if its heads must not be used. */
export function checkSigners(
  stated: { statement: Statement; at: string; heads: Iterable<{ chain: string; count: Count }> },
  rules: Rules,
  tally: Tally,
  history: KeyHistory,
  named: { check: string; name: string },
): boolean {
  if (!checkSignatures(stated, rules, tally, history, named)) return false;
  const { check, name } = named;
  const where = place(null, null, name);
  for (const { key } of checkStatement(stated.statement, rules.ring, rules.ed25519)) {
    if (key === null) continue;
    if (!history.roles.has(key.ed25519)) {
      const words = `${name} was signed by ${key.fingerprint}, which the keys chain of the bundle does not record`;
      tally.warn(check, "UNKNOWN_SIGNER", words, where);
    }
    const limits = history.retired.get(key.ed25519)?.limits ?? null;
    // Its time may be false. But it names records that were sealed after the key had ended.
    if (limits !== null && [...stated.heads].some(({ chain, count }) => count > (limits.get(chain) ?? 0))) {
      const words = `${name} was signed by ${key.fingerprint}, and has records from after that key was retired`;
      tally.fail(check, "KEY_RETIRED", words, where);
    }
  }
  return true;
}

/** Check every signature of a statement that only the ledger may make. Returns false if its heads must not be used. */
function checkSignatures(
  { statement, at: madeAt }: { statement: Statement; at: string },
  given: Rules,
  tally: Tally,
  history: KeyHistory,
  { check, name }: { check: string; name: string },
): boolean {
  const where = place(null, null, name);
  const results = checkStatement(statement, given.ring, given.ed25519);
  const fail = (code: string, words: string) => {
    tally.fail(check, code, words, where);
    return false;
  };
  if (!results.length) return fail("SIG_MISSING", `${name} is not signed`);
  const rules = rulesOf(history, given);
  for (const { by, key, outcome } of results) {
    if (outcome === "invalid") {
      return fail("SIG_INVALID", `the signature of ${name} was not made by ${by}`);
    }
    if (key === null) {
      const words = `${name} was signed by ${by}, whose key is not known here`;
      tally.add({ check, status: "not_checked", code: "UNKNOWN_SIGNER", words, place: where });
      continue;
    }
    const role = roleOf(rules, key);
    if (role !== null && !role.mayAttest) {
      return fail("KEY_MISMATCH", `${name} was signed by ${by}, a key of ${role}; only the ledger's key may`);
    }
    const retiredAt = rules.retired.get(key.ed25519)?.retiredAt ?? null;
    // The thief of an old key could otherwise sign new checkpoints.
    if (retiredAt !== null && madeAt > retiredAt) {
      return fail("KEY_RETIRED", `${name} says it was made at ${madeAt}; ${by}, who signed it, was retired at ${retiredAt}`);
    }
  }
  return true;
}
