/** Changes of a copy, to see where it breaks. The thing itself is never touched. */

import { sha3Hex } from "../verify/digest.ts";
import { encoder } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import type { Change } from "./protocol.ts";

/** The text of a chain's file with one record changed. */
export function changeChain(source: string, place: number, change: Change): string {
  const document = JSON.parse(source) as { capsules?: Record<string, string>[] };
  const records = document.capsules;
  const record = records?.[place];
  if (!records || !record) throw new NotJudged("only a record of a bundle's chain can be changed here");
  const canonical = record["canonical"] ?? "";
  const middle = Math.floor(canonical.length / 2);
  if (change === "flip") {
    record["canonical"] = canonical.slice(0, middle) + (canonical[middle] === "a" ? "b" : "a") + canonical.slice(middle + 1);
  } else if (change === "edit" || change === "resign") {
    record["canonical"] = canonical.replace(/"summary":"/, '"summary":"(changed) ');
    // With the right hash for the changed text, and the old signature: nobody without the key can do better.
    if (change === "resign") record["hash"] = sha3Hex(encoder.encode(record["canonical"]));
  } else if (change === "drop") records.splice(place, 1);
  else if (change === "double") records.splice(place, 0, { ...record });
  else if (change === "swap") records.splice(place, 2, ...records.slice(place, place + 2).reverse());
  else records.length = place; // cut, rollback
  return JSON.stringify(document);
}

