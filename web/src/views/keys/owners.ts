/** Whose key it is, as the records and the server say. A name proves nothing: only a pinned key does. */

import { readRecords } from "../../records.ts";
import { asObject, asText, contentOf } from "../../sessions/values.ts";
import { contents, server } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { Sealed } from "../../verify/sealed.ts";

export interface Owner {
  identity: string;
  /** Whether another key has replaced it. */
  isRetired: boolean;
  /** Who says so: a chain of the records, or the server. */
  from: string;
}

interface ServerKey {
  public_key: string;
  identity: string;
  status: string;
}

/** Records of a chain that are read for owners. */
const READ_MAX = 2_000;

/** The owners of keys by the first 16 digits of the key. The records say more than the server, so they are read last. */
export async function readOwners(): Promise<Map<string, Owner>> {
  const owners = new Map<string, Owner>();
  const listed = (await server.value?.api.json<{ keys: ServerKey[] }>("keys").catch(() => null))?.keys ?? [];
  for (const { public_key, identity, status } of listed) {
    owners.set(public_key.slice(0, 16), { identity, isRetired: status !== "active" && status !== "trusted", from: "the server" });
  }
  for (const { id } of contents.value?.chains ?? []) {
    if (id === "keys" || id.startsWith("approvers.")) await collectOwners(id, owners);
  }
  return owners;
}

async function collectOwners(chain: string, owners: Map<string, Owner>): Promise<void> {
  let records = 0;
  for await (const batch of readRecords(chain)) {
    for (const record of batch) {
      if (record instanceof Sealed) noteOwner(record, chain, owners);
    }
    if ((records += batch.length) >= READ_MAX) return;
  }
}

/** A record of `keys` has the key in its result, one of `approvers.…` in the statement of the newcomer. */
function noteOwner(record: Sealed, chain: string, owners: Map<string, Owner>): void {
  const content = contentOf(record) ?? undefined;
  const result = asObject(at(content, "outcome", "result"));
  const statements = at(content, "authority", "chain");
  const enrolled = Array.isArray(statements) ? asText(at(statements[0], "content", "public_key")) : "";
  const [identity, key] = [asText(result.get("identity")), asText(result.get("public_key")) || enrolled];
  if (identity && key) owners.set(key.slice(0, 16), { identity, isRetired: false, from: `the chain ${chain}` });
  const before = owners.get(asText(result.get("replaces")));
  if (before) owners.set(asText(result.get("replaces")), { ...before, isRetired: true });
}
