/**
 * Imported chains: their names, their sources, and what signed entries of the `meta` chain say about them. The twin of
 * `aver.ledger.imports` and of `collect_heads` in `aver.ledger.meta_chain`.
 */

import { RESERVED_CHAINS, at, readKind } from "../block.ts";
import { type Head, readHead } from "../heads.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, equalJson, isObject } from "../json.ts";
import { type Count } from "../verdict.ts";
import { readInteger } from "../key_history.ts";
import type { Ring } from "../ring.ts";
import type { Sealed } from "../sealed.ts";

export const IMPORT_KIND = "chain.import";
export const DROP_KIND = "chain.drop";
/** Stands for the source of a chain that an older version imported under a name without digits. */
export const OLD_IMPORT = "imported";

/** The digits in the stored name of an imported chain; null for other names. */
export function readDigits(chain: string): string | null {
  return /^import\.([0-9a-f]{16})\./.exec(chain)?.[1] ?? null;
}

interface ImportEntry {
  origin: string;
  count: Count;
  hash: string;
  signedBy: string;
}

interface DroppedHead {
  count: Count;
  hash: string;
}

/** Imports and drops in the order of their entries. */
export class ImportHistory {
  /** The chains that are imported after the newest entry, by their names here. */
  readonly imported = new Map<string, ImportEntry>();
  private readonly ring: Ring;
  private readonly replaced: ReadonlyMap<string, string>;

  /** `replaced` has the key that each key of the ledger replaced, by their 64 digits. */
  constructor(ring: Ring, replaced: ReadonlyMap<string, string>) {
    this.ring = ring;
    this.replaced = replaced;
  }

  /** Take up an entry. Returns the heads of the chains that it drops; an entry of another form drops none. */
  add(record: Sealed): Map<string, DroppedHead> {
    const dropped = new Map<string, DroppedHead>();
    const { content } = record;
    const result = at(content, "outcome", "result");
    if (!isObject(result)) return dropped;
    const kind = readKind(content);
    if (kind === IMPORT_KIND && result.get("kind") === "chain_import") {
      const [chain, origin, count, hash] = ["chain", "origin", "capsule_count", "head_hash"].map((name) => result.get(name));
      const number = readInteger(count);
      if (chain === undefined || origin === undefined || hash === undefined || number === null) return dropped;
      this.imported.set(text(chain), { origin: text(origin), count: number, hash: text(hash), signedBy: record.signed_by });
    } else if (kind === DROP_KIND && result.get("kind") === "chain_drop") {
      const chains = result.get("chains");
      if (!isObject(chains)) return dropped;
      for (const [name, head] of chains) {
        const known = this.imported.get(name);
        if (known === undefined) continue;
        if (!isObject(head) || !head.has("count") || !head.has("hash")) return new Map();
        const isSame = equalJson(head.get("count"), new JsonNumber(String(known.count))) && head.get("hash") === known.hash;
        if (isSame && this.mayDrop(record.signed_by, known.signedBy)) dropped.set(name, { count: known.count, hash: known.hash });
      }
    }
    for (const name of dropped.keys()) this.imported.delete(name);
    return dropped;
  }

  /** Whether a key is the importer's, or came after the importer's by rotations. Where one is unknown, nothing tells. */
  private mayDrop(key: string, importer: string): boolean {
    const [dropping, importing] = [this.ring.lookup(key), this.ring.lookup(importer).map((one) => one.ed25519)];
    return !dropping.length || !importing.length || dropping.some((one) => this.follows(one.ed25519, importing));
  }

  private follows(key: string, first: string[]): boolean {
    const seen = new Set<string>();
    for (let at: string | undefined = key; at !== undefined && !seen.has(at); at = this.replaced.get(at)) {
      if (first.includes(at)) return true;
      seen.add(at); // Forged records may form a circle.
    }
    return false;
  }
}

function text(value: Json): string {
  return typeof value === "string" ? value : value instanceof JsonNumber ? value.text : String(value);
}

/** Remove dropped chains from the heads that `meta` records, if their latest head is the one that was dropped. */
export function forgetDropped(latest: Map<string, Head>, dropped: Iterable<[string, DroppedHead]>): void {
  for (const [chain, { count, hash }] of dropped) {
    const head = latest.get(chain);
    if (head !== undefined && head.count === count && head.hash === hash) latest.delete(chain);
  }
}

/** Add the heads of one `meta` entry, Aver's or the public tool's, to `latest`. A malformed entry adds none after its flaw. */
export function collectHeads(content: JsonObject, latest: Map<string, Head>, ledger: string, tenant: string): void {
  try {
    for (const [chain, count, hash] of listHeads(at(content, "outcome", "result"))) {
      const data = new Map<string, Json>([["ledger", ledger], ["tenant", tenant]]);
      for (const [key, value] of [["chain", chain], ["count", count], ["hash", hash]] as const) {
        if (value === undefined) return;
        data.set(key, value);
      }
      latest.set(chain as string, readHead(data));
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
  }
}

function* listHeads(result: Json | undefined): Generator<[Json | undefined, Json | undefined, Json | undefined]> {
  if (!isObject(result)) return;
  const kind = result.get("kind");
  if (kind === "conversation_seal") {
    const [tool, session] = [result.get("tool"), result.get("session_id")];
    if (typeof tool !== "string" || typeof session !== "string") return;
    // A reserved chain such as `keys` has no session.
    const isReserved = tool === session && RESERVED_CHAINS.has(tool);
    yield [isReserved ? tool : `${tool}.${session}`, result.get("capsule_count"), result.get("head_hash")];
  } else if (kind === "chain_import") {
    yield [result.get("chain"), result.get("capsule_count"), result.get("head_hash")];
  } else if (kind === "checkpoint") {
    const heads = result.get("heads");
    if (!isObject(heads)) return;
    for (const [chain, head] of heads) {
      if (!isObject(head)) return;
      yield [chain, head.get("count"), head.get("hash")];
    }
  }
}

/** The chain of a public tool's entry, if that tool keeps it in a database outside its usual directory. */
export function findExternalChain(content: JsonObject): string | null {
  const result = at(content, "outcome", "result");
  if (!isObject(result)) return null;
  const [path, tool, session] = ["db", "tool", "session_id"].map((name) => result.get(name));
  if (typeof path !== "string" || typeof tool !== "string" || typeof session !== "string") return null;
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  const last = parts.at(-1) ?? "";
  const dot = last.lastIndexOf(".");
  const stem = dot > 0 && dot < last.length - 1 ? last.slice(0, dot) : last;
  const isUsual = (parts.at(-2) ?? "") === tool && stem === session;
  return isUsual ? null : `${tool}.${session}`;
}
