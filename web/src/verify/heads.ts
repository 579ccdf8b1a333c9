/** A head: which chain, how many records, and the hash of the last one; and chains compared with remembered heads. */

import { HEX64 } from "./digest.ts";
import { BadInput, type Json, isObject, isPlace } from "./json.ts";
import { type Count, type Tally, place, toCount } from "./verdict.ts";

/** `hash` is null for a chain without records. */
export interface Head {
  ledger: string;
  tenant: string;
  chain: string;
  count: Count;
  hash: string | null;
}

/** Read a head from JSON of unknown origin. Raises `BadInput` unless it has exactly this form. */
export function readHead(data: Json | undefined): Head {
  const keys = ["ledger", "tenant", "chain", "count", "hash"];
  if (!isObject(data) || data.size !== keys.length || !keys.every((key) => data.has(key))) {
    throw new BadInput("a head has exactly the keys ledger, tenant, chain, count and hash");
  }
  const [ledger, tenant, chain, count, hash] = keys.map((key) => data.get(key));
  for (const name of [ledger, tenant, chain]) {
    if (typeof name !== "string" || !name.isWellFormed()) throw new BadInput("a head's ledger, tenant and chain are strings");
  }
  if (!isPlace(count)) throw new BadInput("a head's count is a number of records");
  const isEmpty = Number(count.text) === 0;
  if (isEmpty !== (hash === null) || (hash !== null && !(typeof hash === "string" && HEX64.test(hash)))) {
    throw new BadInput("a head's hash is 64 lower-case hex digits, or null when there are no records");
  }
  return { ledger: ledger as string, tenant: tenant as string, chain: chain as string, count: toCount(BigInt(count.text)), hash: hash as string | null };
}

export function equalHeads(one: Head, other: Head): boolean {
  return (
    one.ledger === other.ledger &&
    one.tenant === other.tenant &&
    one.chain === other.chain &&
    one.count === other.count &&
    one.hash === other.hash
  );
}

/**
 * Compare one chain with a remembered head. `actualHash` is the chain's hash at the head's place.
 *
 * Adds a finding where they differ. Returns whether the chain has grown since.
 */
export function checkHead(
  head: Head,
  actual: Head | null,
  actualHash: string | null,
  tally: Tally,
  check: string,
  remembered: string,
): boolean {
  tally.countDone(check);
  if (head.count === 0) return false;
  if (actual === null) {
    const words = `${remembered} has this chain with ${head.count} records; it is not here`;
    tally.fail(check, "CHAIN_MISSING", words, place(head.chain), { ...head });
    return false;
  }
  const proof = { remembered: { ...head }, actual: { ...actual } };
  if (actual.count < head.count) {
    const words = `${remembered} has ${head.count} records of this chain; ${actual.count} are here`;
    tally.fail(check, "TRUNCATED", words, place(head.chain, actual.count), proof);
  } else if (actualHash !== head.hash) {
    const words = `${remembered} has another record at this place`;
    tally.fail(check, "ROLLBACK", words, place(head.chain, BigInt(head.count) - 1n), proof);
  }
  return actual.count > head.count && actualHash === head.hash;
}
