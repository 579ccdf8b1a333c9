/** What the meta chain recorded of each chain, last, beside what is here. */

import { META_CHAIN, RESERVED_CHAINS, at, readKind } from "../verify/block.ts";
import { DROP_KIND, collectHeads } from "../verify/bundle/imports.ts";
import { claimedName } from "../verify/bundle/layout.ts";
import type { Head } from "../verify/heads.ts";
import { BadInput, isObject } from "../verify/json.ts";
import type { Library } from "./library.ts";
import type { MetaEntry, Results } from "./protocol.ts";
import { safeContent } from "./rows.ts";

/** Entries that are listed. */
const ENTRIES_MAX = 20_000;

export async function listMeta(library: Library): Promise<Results["meta"]> {
  // The meta chain of the public tool knows a chain by another name than its bundle.
  const here = new Map(library.chains.map((chain) => [claimedName(chain), chain]));
  const entries = new Map<string, MetaEntry>();
  let records = 0;
  for await (const items of here.has(META_CHAIN) ? library.readBatches(META_CHAIN) : []) {
    for (const item of items) {
      records++;
      const content = item instanceof BadInput ? undefined : safeContent(item);
      if (item instanceof BadInput || !isObject(content)) continue;
      const kind = readKind(content);
      const dropped = kind === DROP_KIND ? at(content, "outcome", "result", "chains") : null;
      if (isObject(dropped)) for (const name of dropped.keys()) noteDrop(entries.get(name));
      const found = new Map<string, Head>();
      collectHeads(content, found, "", "");
      for (const { chain: name, count, hash } of found.values()) {
        if (entries.size >= ENTRIES_MAX && !entries.has(name)) continue;
        const listed = here.get(name);
        entries.set(name, { chain: listed?.id ?? name, count: Number(count), hash, at: item.signed_at, kind, here: listed?.length ?? null });
      }
    }
  }
  // `keys` and `meta` are recorded by rotations and checkpoints only, so that their want of an entry says nothing.
  const unrecorded = [...here.keys()].filter((name) => !entries.has(name) && !RESERVED_CHAINS.has(name)).length;
  return { entries: [...entries.values()], records, unrecorded, isCut: entries.size >= ENTRIES_MAX };
}

/** Note that an entry says that an imported chain was dropped. Whether it may say so is for the verdict. */
function noteDrop(entry: MetaEntry | undefined): void {
  if (entry !== undefined) entry.kind = DROP_KIND;
}
