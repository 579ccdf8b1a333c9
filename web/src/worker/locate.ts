/** Find the record that a `capsule://` URI names: by the server of a ledger, or by looking through what is here. */

import { at } from "../verify/block.ts";
import { BadInput } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import { type CapsuleUri, parseUri } from "../verify/uri.ts";
import { ApiError, query } from "./api.ts";
import type { Library } from "./library.ts";
import type { Results } from "./protocol.ts";
import { type Item, describeRow, safeContent, text } from "./rows.ts";

/** Records that are looked through. */
const LOOKED_MAX = 200_000;

export async function locate(library: Library, text: string): Promise<Results["locate"]> {
  const uri = parseUri(text);
  if (library.api !== null) return { found: await askServer(library, text, uri), isCut: false };
  let looked = 0;
  for (const { id: chain } of library.chains) {
    if (uri.chain !== null && chain !== uri.chain) continue;
    let place = -1;
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        place++;
        if (isNamed(item, uri)) return { found: { chain, row: describeRow(item, place) }, isCut: false };
      }
      if ((looked += items.length) >= LOOKED_MAX) return { found: null, isCut: true };
    }
  }
  return { found: null, isCut: false };
}

/** The server names a place. The record there must be the one that was asked for. */
async function askServer(library: Library, text: string, uri: CapsuleUri): Promise<Results["locate"]["found"]> {
  let place: { chain: unknown; sequence: unknown };
  try {
    place = (await library.api?.json(`locate${query({ ref: text })}`)) ?? { chain: null, sequence: null };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
  const { chain, sequence } = place;
  if (typeof chain !== "string" || !Number.isSafeInteger(sequence)) throw new NotJudged("the server's answer names no record");
  const start = sequence as number;
  for await (const [item] of library.readBatches(chain, start, start + 1)) {
    if (item !== undefined && (uri.chain === null || uri.chain === chain) && isNamed(item, uri)) return { chain, row: describeRow(item, start) };
  }
  throw new NotJudged(`the server says that it is record ${start} of ${chain}, and another record is there`);
}

/** Whether a record of the chain is the one. */
function isNamed(item: Item, { hash, sequence, id }: CapsuleUri): boolean {
  if (item instanceof BadInput) return false;
  if (hash !== null) return item.hash === hash;
  const content = safeContent(item);
  return sequence !== null ? text(at(content, "sequence")) === sequence : text(at(content, "id")) === id;
}
