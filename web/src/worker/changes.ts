/** Changes of a copy, to see where it breaks. The thing itself is never touched. */

import { sha3Hex } from "../verify/digest.ts";
import { encoder } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import type { Change } from "./protocol.ts";

type StoredRecord = Record<string, string>;
type ChainDocument = Record<string, unknown> & { capsules?: StoredRecord[] };

/** Claims about a chain that a shorter chain does not have. An attacker leaves them out. */
const CLAIMS = ["ended_at", "signed_by", "all_hashes_ok"];

/** The text of a chain's file with one record changed. */
export async function changeChain(source: string, place: number, change: Change): Promise<string> {
  const document = JSON.parse(source) as ChainDocument;
  const records = document.capsules;
  const record = records?.[place];
  if (!records || !record) throw new NotJudged("only a record of a bundle's chain can be changed here");
  const canonical = record["canonical"] ?? "";
  const middle = Math.floor(canonical.length / 2);
  const edited = canonical.replace(/"summary":"/, '"summary":"(changed) ');
  switch (change) {
    case "flip":
      record["canonical"] = canonical.slice(0, middle) + (canonical[middle] === "a" ? "b" : "a") + canonical.slice(middle + 1);
      break;
    case "edit":
      record["canonical"] = edited;
      break;
    case "resign":
      // With the right hash for the changed text, and the old signature.
      record["canonical"] = edited;
      record["hash"] = sha3Hex(encoder.encode(edited));
      break;
    case "forge":
      await forge(record, edited);
      break;
    case "drop":
      records.splice(place, 1);
      break;
    case "double":
      records.splice(place, 0, { ...record });
      break;
    case "swap":
      if (place + 1 >= records.length) throw new NotJudged("this is the last record: there is no next one to swap it with");
      records.splice(place, 2, ...records.slice(place, place + 2).reverse());
      break;
    case "cut":
      records.length = place;
      break;
    case "rollback":
      if (place === 0) throw new NotJudged("this is the first record: nothing would be left");
      records.length = place;
      shorten(document, place, records.at(-1)?.["hash"] ?? null);
      break;
  }
  return JSON.stringify(document);
}

/** Give a record another text, and a seal over it by a key that is made now. */
async function forge(record: StoredRecord, text: string): Promise<void> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign"])) as CryptoKeyPair;
  const signer = toHex(await crypto.subtle.exportKey("raw", pair.publicKey)).slice(0, 16);
  const canonical = text.replaceAll(`"by":"${record["signed_by"]}"`, `"by":"${signer}"`);
  const hash = sha3Hex(encoder.encode(canonical));
  const signature = toHex(await crypto.subtle.sign("Ed25519", pair.privateKey, encoder.encode(hash)));
  Object.assign(record, { canonical, hash, signature, signature_pq: "", signed_by: signer });
}

function toHex(bytes: ArrayBuffer): string {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function shorten(claim: Record<string, unknown>, length: number, head: string | null): void {
  claim["length"] = length;
  claim["head_hash"] = head;
  for (const name of CLAIMS) delete claim[name];
}

/** The text of an index that fits a bundle in which one chain was rolled back, and which has no meta chain. */
export function rollIndexBack(source: string, chain: string, changed: string): string {
  const index = JSON.parse(source) as Record<string, unknown> & { chains?: Record<string, unknown>[] };
  const records = (JSON.parse(changed) as ChainDocument).capsules ?? [];
  const claim = index.chains?.find((one) => one["id"] === chain);
  if (claim === undefined) throw new NotJudged(`the index does not list ${chain}`);
  const before = Number(claim["length"]);
  shorten(claim, records.length, records.at(-1)?.["hash"] ?? null);
  if (typeof index["capsule_count"] === "number") index["capsule_count"] -= before - records.length;
  index["meta"] = null;
  return JSON.stringify(index);
}
