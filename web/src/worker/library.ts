/** The thing that the page has open, as its worker sees it: what it holds, its records, and the verdict on it. */

import { at, domainOf, readKind } from "../verify/block.ts";
import { readIndex, readChainFile, fileOf } from "../verify/bundle/layout.ts";
import { BlobSource, type ByteSource, FileMap, readStart } from "../verify/bytes.ts";
import { readCapsuleItems } from "../verify/capsules.ts";
import { ChainJudge, plainRules } from "../verify/chain.ts";
import type { Ed25519 } from "../verify/ed25519.ts";
import { sha3Hex } from "../verify/digest.ts";
import { BadInput, type Json, JsonNumber, NotFound, encoder, readJson } from "../verify/json.ts";
import { NotJudged, type Progress } from "../verify/options.ts";
import { PublicKey, Ring } from "../verify/ring.ts";
import { readArchive } from "../verify/run/archive.ts";
import { readOwnLines, readRawLines, readActionLine, ACTION_LINE_MAX, sealForm } from "../verify/run/action.ts";
import { CAPSULE_LINE_MAX, readCapsuleLine } from "../verify/run/evidence.ts";
import { MEMBER_ORDER } from "../verify/run/files.ts";
import { CAPSEAL_MEMBERS } from "../verify/run/capseal.ts";
import { Sealed } from "../verify/sealed.ts";
import { BEGINNING_BYTES, type Format, jsonOpening, recogniseFile } from "../verify/subject.ts";
import { verifyDirectory, verifyFile } from "../verify/verify.ts";
import type { Verdict } from "../verify/verdict.ts";
import type {
  Change,
  Contents,
  Figures,
  ListedChain,
  OpenedThing,
  PinnedKey,
  RecordDetail,
  RecordRow,
  RememberedHead,
  Results,
} from "./protocol.ts";

/** Records of a chain that the page lists. A longer chain is verified whole, and listed up to here. */
const LISTED_MAX = 50_000;
/** Records of a chain that stay in memory. Of a longer chain, only the rows do, and a record is read again when opened. */
const KEPT_MAX = 5_000;
/** Characters of a summary in a row. */
const SUMMARY_MAX = 240;

type Item = Sealed | BadInput;

export class Library {
  private readonly ed25519: Ed25519;
  private thing: OpenedThing | null = null;
  private contents: Contents | null = null;
  /** The records of the short chain that was read last. */
  private kept: { chain: string; items: Item[] } | null = null;

  constructor(ed25519: Ed25519) {
    this.ed25519 = ed25519;
  }

  /** Look at a thing and say what it holds. Raises `NotJudged` if a page cannot read it. */
  async open(thing: OpenedThing): Promise<Contents> {
    this.thing = thing;
    this.kept = null;
    this.contents = thing.isFolder ? await this.listBundle(thing) : await this.listFile(thing);
    return this.contents;
  }

  private get directory(): FileMap {
    const { name, files } = this.opened;
    return new FileMap(name, new Map(files.map(([path, blob]) => [path, new BlobSource(blob)])));
  }

  private get opened(): OpenedThing {
    if (this.thing === null) throw new NotJudged("nothing is open");
    return this.thing;
  }

  private async listBundle(thing: OpenedThing): Promise<Contents> {
    const bare = { name: thing.name, format: "bundle", ledger: null, tenant: null, keys: [], pqKeys: [] };
    try {
      const index = await readIndex(this.directory);
      const chains = index.chains.map((claim): ListedChain => {
        return {
          id: claim.id,
          title: claim.title ?? claim.id,
          tool: claim.tool || domainOf(claim.id),
          length: claim.length,
          startedAt: claim.startedAt ?? "",
          endedAt: claim.endedAt ?? "",
          signers: claim.signedBy ?? [],
        };
      });
      if (index.meta !== null) {
        chains.push({ id: "meta", title: "heads of all chains", tool: "meta", length: index.meta.length, startedAt: "", endedAt: "", signers: [] });
      }
      const keys = new Map(index.keys ?? []);
      if (index.publicKey && index.fingerprint) keys.set(index.fingerprint, index.publicKey);
      return { ...bare, ledger: index.ledger, tenant: index.tenant, chains, keys: [...keys], pqKeys: [...(index.pqKeys ?? [])] };
    } catch (error) {
      if (error instanceof NotFound) {
        throw new NotJudged(`${thing.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify ${thing.name}`);
      }
      if (!(error instanceof BadInput)) throw error;
      return { ...bare, chains: [] }; // The verdict says why the index cannot be read.
    }
  }

  private async listFile(thing: OpenedThing): Promise<Contents> {
    const { name, format } = await this.recognise(thing);
    const chain: ListedChain = { id: name, title: name, tool: format, length: null, startedAt: "", endedAt: "", signers: [] };
    return { name, format, ledger: null, tenant: null, chains: format === "proof" ? [] : [chain], keys: [], pqKeys: [] };
  }

  private async recognise(thing: OpenedThing): Promise<{ name: string; source: ByteSource; format: Format; opening: string }> {
    const [name, blob] = thing.files[0] as [string, Blob];
    const source = new BlobSource(blob);
    const beginning = await readStart(source, BEGINNING_BYTES);
    const format = recogniseFile(name, beginning);
    if (format === null) throw new NotJudged(`${name} is nothing that Aver can verify.`);
    if (format === "elsewhere") throw new NotJudged(`A page cannot judge ${name}. Run: aver verify ${name}`);
    return { name, source, format, opening: jsonOpening(beginning) };
  }

  /** The verdict on the whole thing. */
  async verify(
    keys: PinnedKey[],
    remembered: RememberedHead | null,
    progress: (progress: Progress) => void,
  ): Promise<Results["verify"]> {
    const thing = this.opened;
    const ring = makeRing(keys);
    const options = { ring, ed25519: this.ed25519, progress };
    const [name, blob] = thing.files[0] ?? ["", new Blob()];
    const verdict = thing.isFolder
      ? await verifyDirectory(this.directory, options)
      : await verifyFile(name, new BlobSource(blob), options);
    const hashes = thing.isFolder ? await this.readMetaHashes() : [];
    if (remembered !== null) addRollback(verdict, remembered, hashes);
    const last = hashes.at(-1);
    const head = verdict.status === "failed" || last === undefined ? null : { count: hashes.length, hash: last };
    return { verdict, usesPlatform: this.ed25519.usesPlatform, head };
  }

  /** The hashes of the meta chain, in order; none where there is no meta chain. */
  private async readMetaHashes(): Promise<string[]> {
    const hashes: string[] = [];
    try {
      for await (const items of this.readBatches("meta")) {
        for (const item of items) hashes.push(item instanceof Sealed ? item.hash : "");
      }
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
    }
    return hashes;
  }

  /** What the records of a chain add up to. */
  async figures(chain: string): Promise<Figures> {
    const sum: Figures = { records: 0, calls: 0, failures: 0, denials: 0, tokensIn: 0, tokensOut: 0, startedAt: "", endedAt: "" };
    for await (const items of this.readBatches(chain)) {
      for (const item of items) {
        sum.records++;
        if (item instanceof BadInput) continue;
        const content = safeContent(item);
        const calls = at(content, "execution", "tool_calls");
        const status = text(at(content, "outcome", "status"));
        const usage = at(content, "execution", "resources_used");
        if (Array.isArray(calls)) sum.calls += calls.length;
        if (status === "failure") sum.failures++;
        if (status === "blocked") sum.denials++;
        sum.tokensIn += Number(text(at(usage, "tokens_in"))) || 0;
        sum.tokensOut += Number(text(at(usage, "tokens_out"))) || 0;
        sum.startedAt ||= item.signed_at;
        sum.endedAt = item.signed_at;
      }
    }
    return sum;
  }

  /** The file of a chain with one change in it. The bundle itself stays as it is. */
  async change(chain: string, place: number, change: Change): Promise<Results["change"]> {
    const thing = this.opened;
    const name = thing.isFolder ? (chain === "meta" ? "meta.json" : `${chain}.json`) : (thing.files[0]?.[0] ?? "");
    const file = thing.files.find(([path]) => path === name)?.[1];
    if (file === undefined) throw new NotJudged(`there is no ${name}`);
    return { name, file: new Blob([changeChain(await file.text(), place, change)]) };
  }

  /** The records of a chain as rows. */
  async rows(chain: string): Promise<Results["rows"]> {
    const rows: RecordRow[] = [];
    let items: Item[] = [];
    for await (const batch of this.readBatches(chain)) {
      for (const item of batch) rows.push(describeRow(item, rows.length));
      items = rows.length <= KEPT_MAX ? [...items, ...batch] : [];
      if (rows.length >= LISTED_MAX) break;
    }
    this.kept = rows.length <= KEPT_MAX ? { chain, items } : null;
    return { rows: rows.slice(0, LISTED_MAX), isCut: rows.length >= LISTED_MAX };
  }

  private async findRecord(chain: string, place: number): Promise<Item | undefined> {
    if (this.kept?.chain === chain) return this.kept.items[place];
    let before = 0;
    for await (const batch of this.readBatches(chain)) {
      if (place < before + batch.length) return batch[place - before];
      before += batch.length;
    }
    return undefined;
  }

  /** One record, judged by itself. */
  async record(chain: string, place: number, keys: PinnedKey[]): Promise<RecordDetail> {
    const item = await this.findRecord(chain, place);
    if (item === undefined) throw new NotJudged(`there is no record ${place} in ${chain}`);
    if (item instanceof BadInput) throw new NotJudged(`this record cannot be read: ${item.message}`);
    const ring = makeRing(keys);
    const judge = new ChainJudge(plainRules(ring, this.ed25519), { chain, start: null });
    judge.judge(item);
    return {
      row: describeRow(item, place),
      canonical: item.canonical,
      hash: item.hash,
      computedHash: item.canonical.isWellFormed() ? item.computedHash : "",
      signature: item.signature,
      signaturePq: item.signature_pq,
      signedAt: item.signed_at,
      signedBy: item.signed_by,
      previousHash: text(at(safeContent(item), "previous_hash")),
      findings: judge.tally.findings.map(({ check, status, code, words }) => ({ check, status, code, words })),
      matchesOwnKey: this.matchOwnKey(item, ring),
    };
  }

  /** Whether the signature fits the key that came along; null where none did, or where it is pinned. */
  private matchOwnKey(record: Sealed, ring: Ring): boolean | null {
    if (ring.lookup(record.signed_by).length) return null;
    const key = this.contents?.keys.find(([fingerprint]) => fingerprint === record.signed_by)?.[1];
    return key === undefined ? null : this.ed25519.verify(key, record.hash, record.signature);
  }

  private async *readBatches(chain: string): AsyncGenerator<Item[]> {
    const thing = this.opened;
    if (thing.isFolder) {
      const file = await this.directory.open(chain === "meta" ? "meta.json" : fileOf({ id: chain } as Parameters<typeof fileOf>[0]));
      yield* keepRecords(readChainFile(file));
      return;
    }
    const { source, format, opening } = await this.recognise(thing);
    if (format === "chain") yield* keepRecords(readChainFile(source));
    else if (format === "capsules") {
      for await (const items of readCapsuleItems(source, opening)) yield items.map(({ item }) => item);
    } else if (format === "cap") yield readCap(await source.read(0, source.size));
    else yield [];
  }
}

async function* keepRecords(batches: ReturnType<typeof readChainFile>): AsyncGenerator<Item[]> {
  for await (const items of batches) yield items.flatMap((item) => (item instanceof Sealed || item instanceof BadInput ? [item] : []));
}

/** The capsules of a sealed run, each with its action put back. */
function readCap(packed: Uint8Array): Item[] {
  const archive = readArchive(packed, new Set(MEMBER_ORDER), CAPSEAL_MEMBERS);
  const lines = readRawLines(archive.members.get("actions.jsonl") ?? new Uint8Array(), ACTION_LINE_MAX);
  const items: Item[] = [];
  for (const raw of readOwnLines(archive.members.get("capsules.jsonl") ?? new Uint8Array(), CAPSULE_LINE_MAX)) {
    try {
      if (raw instanceof BadInput) throw raw;
      const capsule = readCapsuleLine(readJson(raw));
      let action: string | null = null;
      if (capsule.hasAction) {
        const line = lines.next().value;
        if (line instanceof Uint8Array) {
          const read = readActionLine(line);
          action = sealForm(read.action, read.texts);
        }
      }
      items.push(capsule.rebuild(action));
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      items.push(error);
    }
  }
  return items;
}

/** Compare the meta chain with the head that this browser remembers. */
function addRollback(verdict: Verdict, remembered: RememberedHead, hashes: string[]): void {
  const found = hashes[remembered.count - 1];
  const plain = { name: "rollback", code: null, place: null, count: 1, matters: false };
  if (found === remembered.hash) {
    const more = hashes.length - remembered.count;
    verdict.checks.push({ ...plain, status: "passed", reason: `the meta chain has the record that this browser remembers, and ${more} more` });
    return;
  }
  const words =
    found === undefined
      ? `this browser remembers ${remembered.count} records of the meta chain; ${hashes.length} are here`
      : "this browser remembers another record of the meta chain at this place";
  const where = { chain: "meta", sequence: Math.min(remembered.count - 1, hashes.length), source: null };
  const proof = { remembered, actual: { count: hashes.length, hash: hashes.at(-1) ?? null } };
  const finding = { check: "rollback", status: "failed" as const, code: "ROLLBACK", words, place: where, proof };
  verdict.checks.push({ ...plain, status: "failed", reason: words, code: "ROLLBACK", place: where, matters: true });
  verdict.findings.push(finding);
  verdict.first_bad ??= finding;
  verdict.status = "failed";
}

/** The text of a chain's file with one record changed. */
function changeChain(source: string, place: number, change: Change): string {
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
  else records.length = place;
  return JSON.stringify(document);
}

function makeRing(keys: PinnedKey[]): Ring {
  return new Ring(keys.map((key) => new PublicKey(key.publicKey, key.publicKeyPq)));
}

function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return value instanceof JsonNumber ? value.text : "";
}

/** The content of a record, for showing. It is not kept with the record: it takes many times the memory of its text. */
function safeContent(record: Sealed): Json | undefined {
  try {
    return record.canonical.isWellFormed() ? readJson(record.canonical) : undefined;
  } catch (error) {
    if (error instanceof BadInput) return undefined;
    throw error;
  }
}

function describeRow(item: Item, place: number): RecordRow {
  const bare = { place, sequence: "", hash: "", at: "", type: "", kind: "", summary: "", status: "", tool: "", authority: "", tokens: "" };
  if (item instanceof BadInput) return { ...bare, problem: item.message };
  const content = safeContent(item);
  if (!(content instanceof Map)) return { ...bare, hash: item.hash, at: item.signed_at, problem: "this is no capsule" };
  const calls = at(content, "execution", "tool_calls");
  const usage = at(content, "execution", "resources_used");
  const request = text(at(content, "trigger", "request"));
  const summary = text(at(content, "outcome", "summary")) || text(at(content, "reasoning", "analysis")) || request;
  const [tokensIn, tokensOut] = ["tokens_in", "tokens_out"].map((name) => text(at(usage, name)));
  return {
    place,
    sequence: text(at(content, "sequence")),
    hash: item.hash,
    at: text(at(content, "trigger", "timestamp")) || item.signed_at,
    type: text(at(content, "type")),
    kind: readKind(content),
    summary: summary.slice(0, SUMMARY_MAX),
    status: text(at(content, "outcome", "status")),
    tool: Array.isArray(calls) ? text(at(calls[0], "tool")) : "",
    authority: text(at(content, "authority", "type")),
    tokens: tokensIn || tokensOut ? `${tokensIn || 0} → ${tokensOut || 0}` : "",
    problem: "",
  };
}

