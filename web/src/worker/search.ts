/** Search in records that no index covers: a bundle, a site, a file. It reads every record, and finds what `aver search` finds. */

import { readStep } from "../sessions/step.ts";
import { readTexts } from "../sessions/texts.ts";
import { BadInput } from "../verify/json.ts";
import type { Library } from "./library.ts";
import type { Hit, Results } from "./protocol.ts";
import { cutExcerpt, makeFilter, parseQuery } from "./query.ts";
import { describeRow } from "./rows.ts";

/** Records that one search reads. */
const SEARCHED_MAX = 200_000;

/** Search some chains, or all. Raises `BadInput` for a query that says nothing to search for. */
export async function search(library: Library, given: string, limit: number, chains: string[] | null): Promise<Results["search"]> {
  const query = parseQuery(given);
  const { fitsStep, fitsTexts } = makeFilter(query);
  const hits: Hit[] = [];
  let searched = 0;
  for (const chain of chains ?? library.chains.map(({ id }) => id)) {
    let place = -1;
    let lastAsked = "";
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        place++;
        searched++;
        if (item instanceof BadInput) continue;
        const step = readStep(item);
        const asked = lastAsked;
        lastAsked = step.asked || asked;
        if (!fitsStep(step)) continue;
        const texts = await readTexts(step, readBlobOf(library), asked);
        if (!fitsTexts(texts)) continue;
        hits.push({ chain, row: describeRow(item, place), excerpt: cutExcerpt(texts, query) });
        if (hits.length >= limit) return { hits, searched, isCut: true };
      }
      if (searched >= SEARCHED_MAX) return { hits, searched, isCut: true };
    }
  }
  return { hits, searched, isCut: false };
}

/** The record at a place that an index named, with a few words around the hit. */
export async function readHit(library: Library, chain: string, place: number, given: string): Promise<Results["hit"]> {
  for await (const [item] of library.readBatches(chain, place, place + 1)) {
    if (item === undefined) continue;
    const row = describeRow(item, place);
    if (item instanceof BadInput) return { chain, row, excerpt: null, hasHash: false };
    const texts = await readTexts(readStep(item), readBlobOf(library), "");
    return { chain, row, excerpt: cutExcerpt(texts, parseQuery(given)), hasHash: item.computedHash === item.hash };
  }
  return null;
}

/** Reads blobs; null for one that is missing, damaged or too large. */
function readBlobOf(library: Library): (digest: string) => Promise<Uint8Array | null> {
  return (digest) => library.blob(digest).catch(() => null);
}
