/** The passkeys on the roster of the open ledger: those that can endorse another one. */

import { chainName } from "../verify/block.ts";
import { Roster } from "../verify/approvals/roster.ts";
import { BadInput } from "../verify/json.ts";
import { Passkey } from "../verify/passkey.ts";
import type { Library } from "./library.ts";
import type { Results } from "./protocol.ts";

export async function listPasskeys(library: Library): Promise<Results["passkeys"]> {
  const { ledger, tenant } = library.owner;
  const chain = chainName("approvers", tenant);
  const roster = new Roster(library.verifier, ledger, tenant);
  if (chain === null || !library.chains.some(({ id }) => id === chain)) return [];
  for await (const items of library.readBatches(chain)) {
    for (const item of items) {
      if (item instanceof BadInput) continue;
      try {
        roster.apply(item, new Map());
      } catch (error) {
        if (!(error instanceof BadInput)) throw error; // It changes nothing. The verdict says so.
      }
    }
  }
  return [...roster.approvers.values()].flatMap(({ identity, key }) => {
    return key instanceof Passkey ? [{ identity, fields: [["alg", key.alg], ["public_key", key.publicKey], ["rp_id", key.rpId], ["credential", key.credential]] }] : [];
  });
}
