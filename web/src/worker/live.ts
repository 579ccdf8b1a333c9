/**
 * The ledger behind a server, as the bundle that it would export at this moment.
 *
 * The list of chains is fetched once, and fixes the bound: records that are appended later are not read. The index is
 * built from that list, so the verifier compares the server's claims with the records. The verifier reads everything
 * from the API's bytes, in pieces, and believes none of it.
 */

import type { ByteSource, Directory } from "../verify/bytes.ts";
import { MemorySource } from "../verify/bytes.ts";
import { BLOB_REFERENCE } from "../verify/blobs.ts";
import { INDEX, META } from "../verify/bundle/layout.ts";
import { BadInput, type Json, NotFound, Unreadable, encoder, readJson } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import { Api, ApiError, query } from "./api.ts";
import type { LiveAccess } from "./protocol.ts";

/** Records that are asked for at once. The server gives at most 1,000, and at most 8 MiB. */
const PAGE = 500;
/** Answers without a record, one after the other, after which a chain ends, however long the server says that it is. */
const EMPTY_MAX = 100;
/** Chains that are asked for at once, and in all. */
const CHAINS_PAGE = 500;
const CHAINS_MAX = 200_000;
/** Bytes of a blob that are fetched. */
const BLOB_MAX = 256 * 1024 ** 2;
/** Blobs that are fetched at once before the judge asks for them, and the bytes that each of them has at most. */
const AHEAD = 6;
const AHEAD_BYTES_MAX = 4 * 1024 ** 2;
/** A reference to a blob in the text of a record. One in another form is fetched when the judge asks for it. */
const REFERENCE = /"blob":\{"alg":"sha256","digest":"([0-9a-f]{64})"(?:,"media":"[^"\\]*")?,"size":(\d{1,9})\}/g;
/** Bytes that a record has about, for showing progress. More than `SHORTEST_CHAIN`, so that no chain counts as too short. */
const RECORD_BYTES = 2_000;

interface LiveChain {
  name: string;
  count: number;
  head: string | null;
  frozen: boolean;
  origin: string | null;
}

export interface About {
  ledger: string;
  tenant: string;
  [key: string]: unknown;
}

/** A key of the server's list, as far as this page uses it. */
interface LiveKey {
  public_key: string;
  public_key_pq: string | null;
}

/** A record of the API as a value of a bundle's chain, or why it cannot be read. */
type Entry = Json | BadInput;

/** A chain of the ledger, up to the bound. It gives records, not bytes. */
export class LiveChainSource implements ByteSource {
  readonly size: number;
  private readonly api: Api;
  private readonly chain: string;
  private readonly start: number;
  private readonly stop: number;
  /** Told of the text of each record. */
  private readonly note: (canonical: string) => void;

  constructor(api: Api, chain: string, stop: number, start = 0, note: (canonical: string) => void = () => {}) {
    this.note = note;
    this.api = api;
    this.chain = chain;
    this.start = start;
    this.stop = stop;
    this.size = Math.max((stop - start) * RECORD_BYTES, 1);
  }

  async read(): Promise<Uint8Array> {
    throw new NotJudged("a ledger's chain is read by records");
  }

  /** The records in order, in batches. Where the server lacks some, those after them follow: the judge finds that. */
  async *entries(): AsyncGenerator<Entry[]> {
    let empty = 0;
    for (let at = this.start; at < this.stop && empty < EMPTY_MAX; ) {
      const { entries, next } = await this.fetchPage(at, Math.min(at + PAGE, this.stop));
      for (const entry of entries) {
        const canonical = entry instanceof Map ? entry.get("canonical") : undefined;
        if (typeof canonical === "string") this.note(canonical);
      }
      if (entries.length) yield entries;
      empty = entries.length ? 0 : empty + 1;
      at = next;
    }
  }

  /** The records of a page, and where to go on: at its end, or earlier where the answer would have been too large. */
  private async fetchPage(start: number, stop: number): Promise<{ entries: Entry[]; next: number }> {
    const path = `chains/${encodeURIComponent(this.chain)}/records${query({ start, stop })}`;
    let raw: Uint8Array;
    let next = stop;
    try {
      raw = await this.api.bytes(path, undefined, (headers) => {
        const given = Number(headers.get("Aver-Next"));
        if (given > start && given < stop) next = given;
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return { entries: [], next: this.stop };
      throw error;
    }
    const entries: Entry[] = [];
    for (let from = 0; from < raw.length && entries.length < stop - start; ) {
      const end = raw.indexOf(0x0a, from);
      const line = raw.subarray(from, end < 0 ? raw.length : end);
      from = end < 0 ? raw.length : end + 1;
      if (line.length) entries.push(readEntry(line));
    }
    return { entries, next };
  }
}

function readEntry(line: Uint8Array): Entry {
  try {
    const entry = readJson(line);
    if (entry instanceof Map && entry.has("canonical_hex")) return new Unreadable("its bytes are not UTF-8");
    return entry;
  } catch (error) {
    if (error instanceof BadInput) return error;
    throw error;
  }
}

/** A blob of the ledger. It is fetched whole when it is opened: the API gives no parts. */
async function openBlob(api: Api, digest: string, limit = BLOB_MAX): Promise<ByteSource> {
  try {
    return new MemorySource(await api.bytes(`blobs/${encodeURIComponent(digest)}`, limit));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) throw new NotFound(`there is no blob ${digest}`);
    throw error;
  }
}

/**
 * Blobs that are fetched before the judge asks for them, a few at once: one request after the other would mostly wait. A
 * blob that cannot be fetched ahead is asked for again when the judge wants it, so nothing here changes a verdict.
 */
class BlobsAhead {
  private readonly api: Api;
  private readonly seen = new Set<string>();
  private readonly queue: string[] = [];
  private readonly begun = new Map<string, Promise<ByteSource | null>>();

  constructor(api: Api) {
    this.api = api;
  }

  /** Note the blobs that a record refers to. */
  note = (canonical: string): void => {
    if (!canonical.includes(BLOB_REFERENCE)) return;
    for (const [, digest, size] of canonical.matchAll(REFERENCE)) {
      if (this.seen.has(digest as string) || Number(size) > AHEAD_BYTES_MAX) continue;
      this.seen.add(digest as string);
      this.queue.push(digest as string);
    }
    this.fill();
  };

  /** A blob: the one that was fetched ahead, or else fetched now. */
  async take(digest: string): Promise<ByteSource> {
    const begun = this.begun.get(digest);
    // One that nobody took, such as a reference that only looks like one, must not keep its place for ever.
    if (begun === undefined && this.begun.size >= AHEAD) this.begun.delete(this.begun.keys().next().value as string);
    this.begun.delete(digest);
    this.seen.add(digest);
    const source = (await begun) ?? (await openBlob(this.api, digest));
    this.fill();
    return source;
  }

  private fill(): void {
    while (this.begun.size < AHEAD && this.queue.length) {
      const digest = this.queue.shift() as string;
      this.begun.set(digest, openBlob(this.api, digest, AHEAD_BYTES_MAX).catch(() => null));
    }
  }
}

/** The ledger at one moment. */
export class LiveDirectory implements Directory {
  readonly name: string;
  readonly isLive = true;
  readonly about: About;
  readonly chains: ReadonlyMap<string, LiveChain>;
  readonly api: Api;
  private readonly listedKeys: readonly LiveKey[];
  private readonly blobs: BlobsAhead;
  /** The chains that are judged; null for all. */
  private readonly only: ReadonlySet<string> | null;

  constructor(
    api: Api,
    name: string,
    about: About,
    chains: ReadonlyMap<string, LiveChain>,
    keys: readonly LiveKey[],
    only: ReadonlySet<string> | null = null,
  ) {
    this.listedKeys = keys;
    this.api = api;
    this.blobs = new BlobsAhead(api);
    this.name = name;
    this.about = about;
    this.chains = chains;
    this.only = only;
  }

  static async fetch(access: LiveAccess, name: string): Promise<LiveDirectory> {
    const api = new Api(access);
    const { keys } = await api.json<{ keys: LiveKey[] }>("keys");
    const isKey = (key: LiveKey) => typeof key?.public_key === "string";
    if (!Array.isArray(keys) || !keys.every(isKey)) throw new NotJudged("the server's list of keys is none");
    return new LiveDirectory(api, name, await api.json<About>("about"), await fetchChains(api), keys);
  }

  /** The same moment, with some chains only. Keys are always among them: their history decides about signatures. */
  limitTo(chains: string[]): LiveDirectory {
    return new LiveDirectory(this.api, this.name, this.about, this.chains, this.listedKeys, new Set([...chains, "keys"]));
  }

  /** The keys that the server lists, by fingerprint. They prove nothing until the reader pins them. */
  get keys(): [string, string][] {
    return this.listedKeys.map((key) => [key.public_key.slice(0, 16), key.public_key]);
  }

  get pqKeys(): [string, string][] {
    return this.listedKeys.flatMap((key) => (key.public_key_pq ? [[key.public_key.slice(0, 16), key.public_key_pq] as [string, string]] : []));
  }

  private get listed(): LiveChain[] {
    return [...this.chains.values()].filter((chain) => this.only === null || this.only.has(chain.name));
  }

  async list(): Promise<string[]>;
  async list(inside: string): Promise<string[] | null>;
  async list(inside?: string): Promise<string[] | null> {
    return inside === undefined ? [INDEX, ...this.listed.map((chain) => `${chain.name}.json`)] : null;
  }

  async open(...names: string[]): Promise<ByteSource> {
    const [name = "", inside] = names;
    if (inside !== undefined) return this.blobs.take(inside);
    if (name === INDEX) return new MemorySource(encoder.encode(this.buildIndex()));
    const chain = this.chains.get(name === META ? "meta" : name.replace(/\.json$/, ""));
    if (chain === undefined) throw new NotFound(`there is no ${name}`);
    return new LiveChainSource(this.api, chain.name, chain.count, 0, this.blobs.note);
  }

  private buildIndex(): string {
    const claim = ({ name, count, head, origin }: LiveChain) => ({ id: name, length: count, head_hash: head, ...(origin && origin !== name ? { origin } : {}) });
    const meta = this.listed.find((chain) => chain.name === "meta");
    return JSON.stringify({
      ledger: this.about.ledger,
      tenant: this.about.tenant,
      part: this.only !== null,
      meta: meta === undefined ? null : claim(meta),
      chains: this.listed.filter((chain) => chain.name !== "meta").map(claim),
    });
  }
}

function isChain(chain: LiveChain): boolean {
  return typeof chain?.name === "string" && Number.isSafeInteger(chain.count) && chain.count >= 0;
}

async function fetchChains(api: Api): Promise<Map<string, LiveChain>> {
  const chains = new Map<string, LiveChain>();
  for (let after: string | null = null; ; ) {
    const page: { chains: LiveChain[]; next?: string | null } = await api.json(`chains${query({ after, limit: CHAINS_PAGE })}`);
    const known = chains.size;
    if (!Array.isArray(page.chains) || !page.chains.every(isChain)) throw new NotJudged("the server's list of chains is none");
    for (const chain of page.chains) chains.set(chain.name, chain);
    after = page.next ?? null;
    if (after === null) return chains;
    if (chains.size === known) throw new NotJudged("the server's list of chains has no end");
    if (chains.size >= CHAINS_MAX) throw new NotJudged(`the ledger has more than ${CHAINS_MAX} chains; run: aver verify`);
  }
}
