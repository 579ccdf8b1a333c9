/** Aver's block in a record, the kinds of records, and the names of chains. The twin of `aver.capsule.aver_block`. */

import { sha256Hex } from "./digest.ts";
import { type Json, type JsonObject, isObject } from "./json.ts";

export const RESERVED_CHAINS: ReadonlySet<string> = new Set(["meta", "keys"]);
export const META_CHAIN = "meta";
export const KEYS_CHAIN = "keys";
export const IMPORT_DOMAIN = "import";

const DOMAIN = /^[a-z0-9-]{1,32}$/;
const CHAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

/** Aver's block in a capsule's content; null where there is none. */
export function readBlock(content: JsonObject): JsonObject | null {
  const block = at(content, "context", "environment", "aver");
  return isObject(block) ? block : null;
}

/** The kind of a record. Without a block it follows from the type: `call`, `turn` or `record`. */
export function readKind(content: JsonObject): string {
  const kind = readBlock(content)?.get("kind");
  if (typeof kind === "string") return kind;
  const type = content.get("type");
  return type === "tool" ? "call" : type === "chat" ? "turn" : "record";
}

/** The value under these keys, one inside the other; undefined where a key or an object is missing. */
export function at(value: Json | undefined, ...keys: string[]): Json | undefined {
  for (const key of keys) {
    if (!isObject(value)) return undefined;
    value = value.get(key);
  }
  return value;
}

/** Domain and id; a reserved chain is its own domain and id. */
export function splitChainName(name: string): [string, string] {
  const dot = name.indexOf(".");
  return dot < 0 ? [name, name] : [name.slice(0, dot), name.slice(dot + 1) || name.slice(0, dot)];
}

/** The domain of a chain's name. */
export function domainOf(name: string): string {
  return name.split(".", 1)[0] as string;
}

/** A chain name for any identifier: the identifier itself where a chain name can hold it, otherwise its digest. */
export function chainName(domain: string, identifier: string): string | null {
  const id = CHAIN_ID.test(identifier) ? identifier : `x-${sha256Hex(identifier).slice(0, 32)}`;
  return DOMAIN.test(domain) ? `${domain}.${id}` : null;
}
