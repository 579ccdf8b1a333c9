/** The keys in a list: a file of `aver keys export`, the list of a server, known keys, or those of a bundle's index. */

import { BadInput, type Json, type JsonObject, isObject, readJson } from "./json.ts";
import { PublicKey, readRingEntry } from "./ring.ts";

interface ListedKey {
  key: PublicKey;
  /** What its owner published with it: whose it is, what for, and until when. Null for a bare key. */
  entry: JsonObject | null;
}

/** Raise `BadInput` for the index of a bundle, however it is called: its keys come with the records, and vouch for nothing. */
export function refuseIndex(document: Json): void {
  if (isObject(document) && (document.has("chains") || document.has("public_key"))) {
    throw new BadInput("it is the index of a bundle, whose keys come with the records. Ask the owner for the file of aver keys export");
  }
}

/** Read a list, which may have no key: a new ledger has none before its first record. Raises `BadInput`. */
export function readKeyList(text: Uint8Array | string): ListedKey[] {
  const found: ListedKey[] = [];
  const look = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(look);
    else if (value instanceof Map) {
      // The list of a server says of each key where the server has it from. The rest of an entry is that of an export.
      const entry: JsonObject = new Map([...value].filter(([name]) => name !== "origin"));
      // A server lists a key of which it knows no owner. In an export that would be an entry which says nothing.
      const isBare = !entry.has("identity") || (value.has("origin") && entry.get("identity") === null);
      if (!isBare) found.push({ key: readRingEntry(entry).key, entry });
      else if (typeof value.get("public_key") === "string" && value.has("public_key_pq")) {
        found.push({ key: new PublicKey(value.get("public_key"), value.get("public_key_pq")), entry: null });
      } else for (const item of value.values()) look(item);
    } else if (typeof value === "string" && /^[0-9a-f]{64}$/.test(value)) found.push({ key: new PublicKey(value), entry: null });
  };
  look(readJson(text));
  return found;
}
