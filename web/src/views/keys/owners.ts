/** Whose key it is, as the records and the server say. A name proves nothing: only a pinned key does. */

import { chainsOf, readRecords } from "../../records.ts";
import { asText, contentOf } from "../../sessions/values.ts";
import { contents, server } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { type Json, isObject } from "../../verify/json.ts";
import { Sealed } from "../../verify/sealed.ts";

export interface Owner {
  identity: string;
  /** Whether another key has replaced it. */
  isRetired: boolean;
  /** Who says so: a chain of the records, or the server. */
  from: string;
  key: string;
  keyPq: string;
}

interface ServerKey {
  public_key: string;
  public_key_pq?: string;
  identity: string;
  status: string;
}

/** The chains whose records tell keys: of the ledger and of imported ones, of approvers and of those who joined a trace. */
const TELLING = /^(?:keys$|(?:approvers|approvals|protocol)\.)/;
/** Records of these chains that are read. */
const READ_MAX = 10_000;

/** What was read of the thing that is open. */
let last: { open: unknown; owners: Promise<Map<string, Owner>> } | null = null;

/** The owners of keys by the first 16 digits of the key. */
export function readOwners(): Promise<Map<string, Owner>> {
  if (last === null || last.open !== contents.value) last = { open: contents.value, owners: collectOwners() };
  last.owners.catch(() => { last = null; });
  return last.owners;
}

/** The records say more than the server, so they are read last. */
async function collectOwners(): Promise<Map<string, Owner>> {
  const owners = new Map<string, Owner>();
  const listed = (await server.value?.api.json<{ keys: ServerKey[] }>("keys").catch(() => null))?.keys ?? [];
  for (const { public_key: key, public_key_pq: keyPq = "", identity, status } of listed) {
    owners.set(key.slice(0, 16), { identity, isRetired: status !== "active" && status !== "trusted", from: "the server", key, keyPq });
  }
  let records = 0;
  for (const chain of chainsOf(TELLING)) {
    for await (const batch of readRecords(chain)) {
      for (const record of batch) if (record instanceof Sealed) noteOwner(record, chain, owners);
      if ((records += batch.length) >= READ_MAX) return owners;
    }
  }
  return owners;
}

/** The keys in a record, and in the statements that came with it. */
function noteOwner(record: Sealed, chain: string, owners: Map<string, Owner>): void {
  const content = contentOf(record) ?? undefined;
  const note = (value: Json | undefined, identity: string): void => {
    if (Array.isArray(value)) for (const item of value) note(item, identity);
    if (!isObject(value)) return;
    const [key, keyPq, named] = [asText(value.get("public_key")), asText(value.get("public_key_pq")), asText(value.get("identity")) || asText(value.get("agent")) || identity];
    if (named && /^[0-9a-f]{64}$/.test(key)) owners.set(key.slice(0, 16), { identity: named, isRetired: false, from: `the chain ${chain}`, key, keyPq });
    // Nobody can pin a passkey: it is known by the key of the person who endorsed it.
    for (const [name, item] of value) if (name !== "passkey") note(item, name.startsWith("person:") ? name : named);
  };
  const result = at(content, "outcome", "result");
  note(at(content, "authority", "chain"), "");
  note(result, "");
  const replaced = asText(at(result, "replaces"));
  const before = owners.get(replaced);
  if (before) owners.set(replaced, { ...before, isRetired: true });
}
