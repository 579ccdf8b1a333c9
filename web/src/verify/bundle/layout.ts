/** The format of a bundle: its index, and the files of its chains. The twin of `aver.ledger.bundle.layout`. */

import type { ByteSource, Directory } from "../bytes.ts";
import { readStart } from "../bytes.ts";
import { sortTexts } from "../canonical.ts";
import { readMemberElements } from "../elements.ts";
import { BadInput, ELEMENT_MAX, type Json, type JsonObject, Unreadable, isInteger, isObject, readJson } from "../json.ts";
import { SEAL_KEYS, Sealed, checkSealFields, readSeal } from "../sealed.ts";
import { codePoints, isFileName, isPrintable, show } from "../text.ts";

export const INDEX = "index.json";
export const META = "meta.json";
export const HEAD = "head.json";
export const BLOBS = "blobs";
const RESERVED_IDS = new Set(["head", "index", "meta"]);

/** Bytes that the file of a chain has at least, if a tool wrote it. */
export const SHORTEST_CHAIN = 1200;
/** Most chains that an index may list without their files. With more, the index is not read. */
const ABSENT_MAX = 1000;
/** How many unknown keys of an index or a summary are noted. */
const UNKNOWN_KEPT = 10;
/** Most characters of a name or hash in an index. */
const CLAIM_TEXT_MAX = 256;

const INDEX_KEYS = new Set([
  ...["generated_at", "public_key", "fingerprint", "keys", "pq_keys", "chain_count", "capsule_count"],
  ...["meta", "chains", "ledger", "tenant", "part", "blobs", "unfinished", "files"],
]);
const SUMMARY_KEYS = new Set([
  ...["id", "tool", "title", "length", "head_hash", "genesis_hash", "origin"],
  ...["all_hashes_ok", "signed_by", "started_at", "ended_at", "db_path"],
]);
const RECORD_KEYS = new Set<string>([...SEAL_KEYS, "canonical"]);

/** The unsigned claims of an index, or of a chain's file, about a chain. Null means no claim. */
export interface ChainClaim {
  id: string;
  tool: string;
  length: number | null;
  headHash: string | null;
  genesisHash: string | null;
  /** The chain's original name, if the exporting ledger had imported it under another name. */
  origin: string | null;
  title: string | null;
  allHashesOk: boolean | null;
  signedBy: string[] | null;
  startedAt: string | null;
  endedAt: string | null;
  dbPath: string | null;
  unknown: string[];
}

/** `<tool>.<session>`, Aver's form of a chain's name, also for the public tool's `<tool>-<session>`. */
export function claimedName({ id, tool }: Pick<ChainClaim, "id" | "tool">): string {
  return tool && id.startsWith(`${tool}-`) ? `${tool}.${id.slice(tool.length + 1)}` : id;
}

export function fileOf(claim: ChainClaim): string {
  return `${claim.id}.json`;
}

export interface BundleIndex {
  chains: ChainClaim[];
  meta: ChainClaim | null;
  chainCount: number | null;
  capsuleCount: number | null;
  ledger: string | null;
  tenant: string | null;
  isPart: boolean;
  areBlobsLeftOut: boolean;
  blobs: number | null;
  publicKey: string | null;
  fingerprint: string | null;
  keys: Map<string, string> | null;
  pqKeys: Map<string, string> | null;
  isUnfinished: boolean;
  unknown: string[];
}

/** Return a name that a file may have here; `Unreadable` for any other value. */
export function checkFileName(name: Json | undefined): string {
  if (!isFileName(name)) throw new Unreadable(`${show(name)} is not a name that a file may have here`);
  return name;
}

/** Read and check an index. Raises `Unreadable` if it is not valid. */
export async function readIndex(directory: Directory): Promise<BundleIndex> {
  const data = readJson(await readStart(await directory.open(INDEX), ELEMENT_MAX + 1));
  const listed = isObject(data) ? data.get("chains") : null;
  if (!isObject(data) || !Array.isArray(listed)) throw new Unreadable("an index is an object that lists chains");
  const here = Math.min((await directory.list()).length, listed.length);
  if (listed.length - here > ABSENT_MAX) {
    throw new Unreadable(`it lists ${listed.length} chains, and ${here} files are here: the rest was not read`);
  }
  const chains = new Map<string, ChainClaim>();
  const names = new Set<string>();
  listed.forEach((summary, at) => {
    const claim = readClaim(summary, `chains[${at}]`);
    // Each id is the name of a file, so these would be the bundle's own files. Some systems ignore case.
    if (RESERVED_IDS.has(claim.id.toLowerCase())) throw new Unreadable(`a chain cannot have the id '${claim.id}'`);
    if (chains.has(claim.id)) throw new Unreadable("two chains have the same id");
    if (names.has(claimedName(claim))) throw new Unreadable("two chains have the same name");
    chains.set(claim.id, claim);
    names.add(claimedName(claim));
  });
  const shared = await directory.findSharedFiles?.(new Set([INDEX, META, HEAD, ...[...chains.values()].map(fileOf)]));
  if (shared) {
    throw new Unreadable(`${shared[0]} and ${shared[1]} are two names of one file; each part of a bundle has a file of its own`);
  }
  const meta = data.get("meta") ?? null;
  const files = data.has("files") ? data.get("files") : [];
  if (meta !== null && !isObject(meta)) throw new Unreadable("meta must be an object");
  if (!Array.isArray(files)) throw new Unreadable("files must be a list");
  const claimOfMeta = meta === null ? null : readClaim(new Map([...meta, ["id", "meta"], ["origin", null]]), "meta");
  files.forEach(checkFileName);
  return {
    chains: [...chains.values()],
    meta: claimOfMeta,
    chainCount: requireCount(data, "chain_count"),
    capsuleCount: requireCount(data, "capsule_count"),
    ledger: requireText(data, "ledger"),
    tenant: requireText(data, "tenant"),
    isPart: requireFlag(data, "part"),
    areBlobsLeftOut: data.get("blobs") === null,
    blobs: requireCount(data, "blobs"),
    publicKey: requireText(data, "public_key"),
    fingerprint: requireText(data, "fingerprint"),
    keys: requireTexts(data, "keys"),
    pqKeys: requireTexts(data, "pq_keys"),
    isUnfinished: requireFlag(data, "unfinished"),
    unknown: unknownKeys(data, INDEX_KEYS),
  };
}

function unknownKeys(data: JsonObject, known: ReadonlySet<string>): string[] {
  return sortTexts([...data.keys()].filter((key) => !known.has(key))).slice(0, UNKNOWN_KEPT);
}

/** Read a chain's summary in an index, or a chain file's `own` one, which need not name its chain. */
function readClaim(summary: Json, where: string, { own = false } = {}): ChainClaim {
  if (!isObject(summary)) throw new Unreadable(`${where} must be an object`);
  const id = summary.get("id");
  if (!(own && id === "")) {
    checkFileName(id); // The id becomes the name of a file: it must not lead out of the directory.
    checkFileName(`${id as string}.json`);
  }
  const text = (key: string) => requireText(summary, key, `${where}.`);
  const plain = (key: string) => {
    const value = summary.get(key) ?? null;
    if (value !== null && typeof value !== "string") throw new Unreadable(`${where}.${key} must be a text`);
    return value;
  };
  const claim: ChainClaim = {
    id: id as string,
    tool: text("tool") ?? "",
    length: requireCount(summary, "length", `${where}.`),
    headHash: text("head_hash"),
    genesisHash: text("genesis_hash"),
    origin: text("origin"),
    title: plain("title"),
    startedAt: plain("started_at"),
    endedAt: plain("ended_at"),
    dbPath: plain("db_path"),
    signedBy: null,
    allHashesOk: null,
    unknown: unknownKeys(summary, SUMMARY_KEYS),
  };
  const signers = summary.get("signed_by") ?? null;
  if (signers !== null && !(Array.isArray(signers) && signers.every((name) => typeof name === "string"))) {
    throw new Unreadable(`${where}.signed_by must be a list of texts`);
  }
  const ok = summary.get("all_hashes_ok") ?? null;
  if (ok !== null && typeof ok !== "boolean") throw new Unreadable(`${where}.all_hashes_ok must be true or false`);
  return { ...claim, signedBy: signers as string[] | null, allHashesOk: ok };
}

/** Reads a flag that may be left out. Another reader may take 1 or "no" for true. */
function requireFlag(data: JsonObject, key: string): boolean {
  const value = data.has(key) ? data.get(key) : false;
  if (typeof value !== "boolean") throw new Unreadable(`${key} must be true or false`);
  return value;
}

function requireCount(data: JsonObject, key: string, where = ""): number | null {
  const value = data.get(key) ?? null;
  if (value === null) return null;
  if (!isInteger(value) || value.value < 0) throw new Unreadable(`${where}${key} must be a count`);
  return value.value + 0;
}

function requireText(data: JsonObject, key: string, where = ""): string | null {
  const value = data.get(key) ?? null;
  if (value === null) return null;
  if (typeof value !== "string" || !isPrintable(value) || codePoints(value) > CLAIM_TEXT_MAX) {
    throw new Unreadable(`${where}${key} must be a short text`);
  }
  return value;
}

function requireTexts(data: JsonObject, key: string): Map<string, string> | null {
  const value = data.get(key) ?? null;
  if (value === null) return null;
  if (!isObject(value) || ![...value.values()].every((item) => typeof item === "string")) {
    throw new Unreadable(`${key} must be an object of texts`);
  }
  return value as Map<string, string>;
}

/** A record, the reason why one cannot be read, or the file's own claim about the chain, which comes last. */
export type ChainItem = Sealed | BadInput | { claim: ChainClaim };

/** A chain that is not a file: a server gives its records as values, in batches. */
interface RecordSource extends ByteSource {
  entries(): AsyncGenerator<(Json | BadInput)[]>;
}

function isRecordSource(source: ByteSource): source is RecordSource {
  return "entries" in source;
}

/** Read records that a server gave. There is no file, and so no claim of its own. */
async function* readEntries(source: RecordSource, unknown: Map<string, number> | null): AsyncGenerator<ChainItem[]> {
  let number = -1;
  for await (const entries of source.entries()) {
    yield entries.map((entry) => {
      number++;
      try {
        if (entry instanceof BadInput) return entry;
        const record = readBundleRecord(entry);
        if (unknown !== null) noteUnknownMembers(entry as JsonObject, number, unknown);
        return record;
      } catch (problem) {
        if (!(problem instanceof BadInput)) throw problem;
        return problem;
      }
    });
  }
}

/**
 * Stream the records of a chain's file, then the file's own claim about the chain.
 *
 * If the file itself breaks off, the last item is the error, and there is no claim. `unknown` gets the members of records
 * that Aver does not write, each with the number of the first record that has it.
 */
export async function* readChainFile(source: ByteSource, unknown: Map<string, number> | null = null): AsyncGenerator<ChainItem[]> {
  if (isRecordSource(source)) {
    yield* readEntries(source, unknown);
    return;
  }
  let number = -1;
  for await (const { items, error } of readMemberElements(source, "capsules")) {
    const found: ChainItem[] = [];
    let failure: BadInput | null = error;
    for (const item of items) {
      if ("others" in item) {
        try {
          found.push({ claim: readClaim(new Map<string, Json>([["id", ""], ...item.others]), "the chain's summary", { own: true }) });
        } catch (problem) {
          if (!(problem instanceof BadInput)) throw problem;
          failure = problem;
          break;
        }
        continue;
      }
      number++;
      try {
        found.push(readBundleRecord(item.value));
      } catch (problem) {
        if (!(problem instanceof BadInput)) throw problem;
        found.push(problem);
        continue;
      }
      if (unknown !== null) noteUnknownMembers(item.value as JsonObject, number, unknown);
    }
    if (failure !== null) found.push(failure);
    yield found;
    if (failure !== null) return;
  }
}

function noteUnknownMembers(entry: JsonObject, number: number, unknown: Map<string, number>): void {
  for (const key of entry.keys()) if (!RECORD_KEYS.has(key)) {
    const others = sortTexts([...entry.keys()].filter((name) => !RECORD_KEYS.has(name)));
    for (const name of others.slice(0, Math.max(0, UNKNOWN_KEPT - unknown.size))) {
      if (!unknown.has(name)) unknown.set(name, number);
    }
    return;
  }
}

function readBundleRecord(entry: Json): Sealed {
  const canonical = isObject(entry) ? entry.get("canonical") : null;
  if (!isObject(entry) || typeof canonical !== "string") {
    throw new Unreadable("a capsule in a bundle is an object with its seal and `canonical`");
  }
  const seal = readSeal(entry, () => new Unreadable("the parts of a seal are strings"));
  if (!canonical.isWellFormed()) throw new Unreadable("`canonical` contains a lone surrogate, which has no bytes");
  return checkSealFields(new Sealed(canonical, seal));
}
