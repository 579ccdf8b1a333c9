/** What the meta chain recorded of each chain, last, beside what is here. */

import { readKind } from "../verify/block.ts";
import { collectHeads } from "../verify/bundle/imports.ts";
import type { Head } from "../verify/heads.ts";
import { BadInput, isObject } from "../verify/json.ts";
import type { Library } from "./library.ts";
import type { MetaEntry, Results } from "./protocol.ts";
import { safeContent } from "./rows.ts";

/** Entries that are listed. */
const ENTRIES_MAX = 20_000;

export async function listMeta(library: Library): Promise<Results["meta"]> {
  const here = new Map(library.chains.map((chain) => [chain.id, chain.length]));
  if (!here.has("meta")) return { entries: [], records: 0, isCut: false };
  const entries = new Map<string, MetaEntry>();
  let records = 0;
  for await (const items of library.readBatches("meta")) {
    for (const item of items) {
      records++;
      const content = item instanceof BadInput ? undefined : safeContent(item);
      if (item instanceof BadInput || !isObject(content)) continue;
      const found = new Map<string, Head>();
      collectHeads(content, found, "", "");
      for (const { chain, count, hash } of found.values()) {
        if (entries.size >= ENTRIES_MAX && !entries.has(chain)) continue;
        entries.set(chain, { chain, count, hash, at: item.signed_at, kind: readKind(content), here: here.has(chain) ? (here.get(chain) ?? null) : null });
      }
    }
  }
  return { entries: [...entries.values()], records, isCut: entries.size >= ENTRIES_MAX };
}
