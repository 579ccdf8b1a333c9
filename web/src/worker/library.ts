/** The thing that the page has open, as its worker sees it: what it holds, its records, and the verdict on it. */

import { at, domainOf } from "../verify/block.ts";
import { readOwner } from "../verify/bundle/chain_file.ts";
import { fileOf, readChainFile, readIndex } from "../verify/bundle/layout.ts";
import { BlobSource, type ByteSource, type Directory, FileMap, readStart } from "../verify/bytes.ts";
import { readCapsuleItems } from "../verify/capsules.ts";
import { ChainJudge, plainRules } from "../verify/chain.ts";
import type { Crew } from "../verify/crew.ts";
import { sha256Hex } from "../verify/digest.ts";
import type { Ed25519 } from "../verify/ed25519.ts";
import { BadInput, NotFound, readJson } from "../verify/json.ts";
import { NotJudged, type Progress } from "../verify/options.ts";
import { PublicKey, Ring, readRingEntry } from "../verify/ring.ts";
import { splitReport } from "../verify/report.ts";
import { readWhole } from "../verify/run/verify.ts";
import { Sealed } from "../verify/sealed.ts";
import { BEGINNING_BYTES, type Format, jsonOpening, recogniseFile } from "../verify/subject.ts";
import type { Verdict } from "../verify/verdict.ts";
import { verifyDirectory, verifyFile } from "../verify/verify.ts";
import type { Api } from "./api.ts";
import { ActionItem, readActions, readCap, readProof } from "./actions.ts";
import { changeChain, rollBack } from "./changes.ts";
import { HeadWitness } from "./head_witness.ts";
import { HeldRecords } from "./held.ts";
import { LiveChainSource, LiveDirectory } from "./live.ts";
import { describeOther } from "./other_files.ts";
import type {
  Change,
  Contents,
  ListedChain,
  OpenedThing,
  PinnedKey,
  RecordAddress,
  RecordDetail,
  RecordRow,
  RecordText,
  RememberedHeads,
  Results,
} from "./protocol.ts";
import { type Item, describeRow, safeContent, text } from "./rows.ts";

/** Records of a file's chain that the page lists. A longer chain is verified whole, and listed up to here. */
const LISTED_MAX = 50_000;
/** Records of a chain that stay in memory. Of a longer chain, only the rows do, and a record is read again when opened. */
const KEPT_MAX = 5_000;
/** Bytes of a blob that are given to the page. */
const BLOB_MAX = 16 * 1024 * 1024;
/** Bytes of a chain that is copied into memory to be changed. */
const CHANGED_MAX = 64 * 1024 * 1024;

export class Library {
  private readonly ed25519: Ed25519;
  private thing: OpenedThing | null = null;
  private contents: Contents | null = null;
  private live: LiveDirectory | null = null;
  /** The keys that came along, by fingerprint. */
  private keysAlong: ReadonlyMap<string, string> = new Map();
  /** The bundle inside a report. */
  private inner: FileMap | null = null;
  /** The rows of the file's chain that was listed last, its records if it is short, and what is not read yet. */
  private kept: { chain: string; rows: RecordRow[]; items: Item[] | null; rest: AsyncGenerator<Item[]> | null } | null = null;

  /** Other workers that compute beside this one. */
  crew: Crew | null = null;
  /** What the views of a ledger are held to. */
  held = new HeldRecords();
  /** Awaited between two batches of records. It raises an error where nobody waits for the rest. */
  private giveWay: () => Promise<void> = async () => {};

  constructor(ed25519: Ed25519) {
    this.ed25519 = ed25519;
  }

  /** Look at a thing and say what it holds. Raises `NotJudged` if a page cannot read it. */
  async open(thing: OpenedThing): Promise<Contents> {
    if (thing !== this.thing) this.held = new HeldRecords(thing.held);
    this.thing = thing;
    this.contents = null;
    this.kept = null;
    this.inner = null;
    this.live = thing.live ? await LiveDirectory.fetch(thing.live, thing.name) : null;
    if (this.live !== null) this.contents = listLedger(thing.name, this.live);
    else this.contents = thing.isFolder ? await this.listBundle(thing) : await this.listFile(thing);
    this.keysAlong = new Map(this.contents.keys);
    return this.contents;
  }

  /**
   * What is open now, for a reader of many records that works beside other requests. A ledger that is looked at again, and
   * the rows that are kept, are none of its business. `giveWay` is told whether something else was opened meanwhile.
   */
  beside(giveWay: (isClosed: () => boolean) => Promise<void>): Library {
    const { thing, contents, live, keysAlong, inner, held } = this;
    return Object.assign(new Library(this.ed25519), { thing, contents, live, keysAlong, inner, held, giveWay: () => giveWay(() => this.thing !== thing) });
  }

  /** Look again at a ledger that has grown. */
  async refresh(): Promise<Contents> {
    return this.open(this.opened);
  }

  private get directory(): Directory {
    if (this.live !== null) return this.live;
    if (this.inner !== null) return this.inner;
    const { name, files } = this.opened;
    return new FileMap(name, new Map(files.map(([path, blob]) => [path, new BlobSource(blob)])));
  }

  private get opened(): OpenedThing {
    if (this.thing === null) throw new NotJudged("nothing is open");
    return this.thing;
  }

  get chains(): ListedChain[] {
    return this.contents?.chains ?? [];
  }

  get owner(): { ledger: string; tenant: string } {
    return { ledger: this.contents?.ledger ?? "", tenant: this.contents?.tenant ?? "" };
  }

  /** The server of the ledger; null for files. */
  get api(): Api | null {
    return this.live?.api ?? null;
  }

  get verifier(): Ed25519 {
    return this.ed25519;
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
          head: claim.headHash,
          origin: claim.origin,
          startedAt: claim.startedAt ?? "",
          endedAt: claim.endedAt ?? "",
          signers: claim.signedBy ?? [],
        };
      });
      if (index.meta !== null) {
        const { length, headHash, signedBy, startedAt, endedAt } = index.meta;
        chains.push({ ...bareChain("meta"), title: "heads of all chains", length, head: headHash, startedAt: startedAt ?? "", endedAt: endedAt ?? "", signers: signedBy ?? [] });
      }
      const keys = new Map(index.keys ?? []);
      if (index.publicKey && index.fingerprint) keys.set(index.fingerprint, index.publicKey);
      return { ...bare, ...(await readOwner(this.directory, index)), isPart: index.isPart, chains, keys: [...keys], pqKeys: [...(index.pqKeys ?? [])] };
    } catch (error) {
      if (error instanceof NotFound) {
        throw new NotJudged(`${thing.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify ${thing.name}`);
      }
      if (!(error instanceof BadInput)) throw error;
      return { ...bare, chains: [] }; // The verdict says why the index cannot be read.
    }
  }

  private async listFile(thing: OpenedThing): Promise<Contents> {
    const { name, source, format } = await this.recognise(thing);
    if (format === "report") {
      try {
        this.inner = new FileMap(name, splitReport(await source.read(0, source.size)).files);
        return { ...(await this.listBundle(thing)), format };
      } catch (error) {
        if (!(error instanceof BadInput || error instanceof NotJudged)) throw error; // The verdict says why it cannot be read.
      }
    }
    const bare = { name, keys: [], pqKeys: [] };
    const listed = format === "cap" ? await listCap(name, source) : { format, chains: [{ ...bareChain(name), tool: format }] };
    // A report that cannot be read has no records.
    if (format === "report") listed.chains = [];
    const [chain] = listed.chains;
    const first = chain === undefined ? null : await this.readFirst(chain.id);
    const named = at(first instanceof Sealed ? safeContent(first) : undefined, "context", "environment", "aver", "chain");
    const [id, ledger, tenant] = ["name", "ledger", "tenant"].map((key) => text(at(named, key)));
    // The first record of a chain names it, and its ledger. So a record has the same address behind every door.
    if (chain !== undefined && id && format !== "cap") chain.id = id;
    return { ...bare, ...listed, ledger: ledger || null, tenant: tenant || null };
  }

  private async recognise(thing: OpenedThing): Promise<{ name: string; source: ByteSource; format: Format; opening: string }> {
    const [name, blob] = thing.files[0] as [string, Blob];
    const source = new BlobSource(blob);
    const beginning = await readStart(source, BEGINNING_BYTES);
    const other = describeOther(name, beginning);
    if (other !== null) throw new NotJudged(other);
    const format = recogniseFile(name, beginning);
    if (format === null) throw new NotJudged(`${name} is nothing that Aver can verify.`);
    if (format === "elsewhere") throw new NotJudged(`A page cannot judge ${name}. Run: aver verify ${name}`);
    return { name, source, format, opening: jsonOpening(beginning) };
  }

  /** The verdict on the whole thing, or on some chains of it. */
  async verify(
    keys: PinnedKey[],
    remembered: RememberedHeads,
    chains: string[] | null,
    progress: (progress: Progress) => void,
  ): Promise<Results["verify"]> {
    const thing = this.opened;
    const seen = new HeadWitness(remembered);
    const ring = makeRing(keys);
    const fits = new Map<string, [matching: number, others: number]>();
    const signers = new Set<string>();
    const witness = (chain: string, place: number, record: Sealed) => {
      seen.take(chain, place, record.hash);
      signers.add(record.signed_by);
      const isMatching = this.matchOwnKey(record, ring);
      const [matching, others] = fits.get(record.signed_by) ?? [0, 0];
      if (isMatching !== null) fits.set(record.signed_by, isMatching ? [matching + 1, others] : [matching, others + 1]);
    };
    const options = { ring, ed25519: this.ed25519, progress, witness, crew: this.crew, along: this.keysAlong };
    const [name, blob] = thing.files[0] ?? ["", new Blob()];
    const verdict = thing.isFolder
      ? await verifyDirectory(this.live !== null && chains !== null ? this.live.limitTo(chains) : this.directory, options)
      : await verifyFile(name, new BlobSource(blob), options);
    // A part of a ledger lacks chains that this browser may remember.
    seen.addTo(verdict, chains ?? (this.contents?.isPart ? this.chains.map(({ id }) => id) : null));
    if (thing.areCopies || thing.site) noteLimits(verdict, Boolean(thing.areCopies));
    const [heads, held] = verdict.status === "failed" ? [[], []] : [seen.heads, this.live === null ? [] : seen.notes.digests];
    return { verdict, usesPlatform: this.ed25519.usesPlatform, heads, held, fits: [...fits], signers: [...signers].flatMap((name) => ring.lookup(name).map((key) => key.ed25519)), strangers: [...signers].filter((name) => !ring.lookup(name).length) };
  }

  /** The first record of a chain; null where there is none. */
  async readFirst(chain: string): Promise<Item | null> {
    try {
      for await (const items of this.readBatches(chain, 0, 1)) if (items[0]) return items[0];
    } catch (error) {
      if (!(error instanceof BadInput)) throw error; // The verdict says why it cannot be read.
    }
    return null;
  }

  /** A copy of the chain's file with one change in it. The thing itself stays as it is. */
  async change(chain: string, place: number, change: Change): Promise<Results["change"]> {
    const thing = this.opened;
    const name = thing.isFolder ? (chain === "meta" ? "meta.json" : `${chain}.json`) : (thing.files[0]?.[0] ?? "");
    const file = thing.files.find(([path]) => path === name)?.[1];
    if (file === undefined) throw new NotJudged(`there is no ${name} that could be copied`);
    if (file.size > CHANGED_MAX) throw new NotJudged("this chain is too large to be copied into a page's memory");
    if (change === "rollback" && thing.isFolder) {
      const inside = new Map(thing.files);
      let size = 0;
      const read = async (path: string): Promise<string> => {
        const found = inside.get(path);
        if (found === undefined) throw new NotJudged(`there is no ${path} that could be copied`);
        if ((size += found.size) > CHANGED_MAX) throw new NotJudged("this bundle is too large to be copied into a page's memory");
        return found.text();
      };
      const older = await rollBack([...inside.keys()], read, chain, place);
      return { files: older.map(([path, text]) => [path, text === null ? null : new Blob([text])]) };
    }
    return { files: [[name, new Blob([await changeChain(await file.text(), place, change)])]] };
  }

  /** Records of a chain as rows. */
  async rows(chain: string, start: number, stop: number): Promise<Results["rows"]> {
    if (this.live !== null) {
      const total = this.live.chains.get(chain)?.count ?? 0;
      const rows: RecordRow[] = [];
      const fill = (end: number) => { while (start + rows.length < end) rows.push(describeRow(new NotFound("this record is missing"), start + rows.length)); };
      for await (const batch of this.readBatches(chain, start, stop)) {
        for (const item of batch) {
          const row = describeRow(item, start + rows.length);
          // A ledger numbers its records without a gap, so that those in between are missing.
          if (Number(row.sequence) < Math.min(stop, total)) fill(Number(row.sequence));
          rows.push({ ...row, place: start + rows.length });
        }
      }
      fill(Math.min(stop, total));
      return { rows, total, isMore: false, isCut: false };
    }
    if (this.kept?.chain !== chain) this.kept = { chain, rows: [], items: [], rest: this.readBatches(chain) };
    const { kept } = this;
    // Only as far as it is needed: the first rows of a long chain are there as soon as those of a short one.
    while (kept.rest !== null && kept.rows.length < stop) {
      const next = await kept.rest.next();
      if (next.done) {
        kept.rest = null;
        break;
      }
      for (const item of next.value) kept.rows.push(describeRow(item, kept.rows.length));
      kept.items = kept.items !== null && kept.rows.length <= KEPT_MAX ? [...kept.items, ...next.value] : null;
      if (kept.rows.length >= LISTED_MAX) kept.rest = null;
    }
    const isCut = kept.rows.length >= LISTED_MAX;
    if (isCut) kept.rows.length = LISTED_MAX;
    const claimed = Math.min(this.chains.find((one) => one.id === chain)?.length ?? 0, LISTED_MAX);
    const total = kept.rest === null ? kept.rows.length : Math.max(kept.rows.length, claimed);
    return { rows: kept.rows.slice(start, stop), total, isMore: kept.rest !== null, isCut };
  }

  /** The records of a chain, where all of them are in memory. */
  private keptItems(chain: string): Item[] | null {
    return this.kept?.chain === chain && this.kept.rest === null ? this.kept.items : null;
  }

  /** The exact texts of records, with their seals. */
  async records(chain: string, start: number, stop: number): Promise<RecordText[]> {
    const found: RecordText[] = [];
    let place = this.live === null ? 0 : start;
    const known = this.keptItems(chain);
    for await (const batch of known ? [known] : this.readBatches(chain, start, stop)) {
      for (const item of batch) {
        if (place >= stop) return found;
        if (place >= start) found.push(describeText(item, place));
        place++;
      }
    }
    return found;
  }

  /** The bytes of a blob, if they are those of its digest. */
  async blob(digest: string): Promise<Uint8Array> {
    const file = await this.directory.open("blobs", digest);
    if (file.size > BLOB_MAX) throw new NotJudged(`the blob is larger than ${BLOB_MAX / 1024 ** 2} MiB, and is not shown`);
    const data = await file.read(0, file.size);
    if (sha256Hex(data) !== digest) throw new NotJudged(`the blob stored as ${digest} has other bytes`);
    return data;
  }

  /** The record at an address, and its place in the file. */
  private async findRecord(chain: string, address: RecordAddress): Promise<{ item: Item; place: number } | null> {
    if (this.live !== null) {
      // A ledger numbers its records without a gap, so that a number is a place. `record` holds it to that.
      const place = "place" in address ? address.place : Number(address.sequence);
      for await (const batch of this.readBatches(chain, place, place + 1)) if (batch[0]) return { item: batch[0], place };
      return null;
    }
    const isWanted = (item: Item, place: number) =>
      // An action has no number of its own.
      "place" in address ? place === address.place : item instanceof Sealed && (item instanceof ActionItem ? String(place) : text(at(safeContent(item), "sequence"))) === address.sequence;
    let place = 0;
    const known = this.keptItems(chain);
    for await (const batch of known ? [known] : this.readBatches(chain)) {
      // In an intact chain a record lies where its number says: try that place first.
      const likely = "sequence" in address ? Number(address.sequence) - place : -1;
      if (batch[likely] !== undefined && isWanted(batch[likely], place + likely)) return { item: batch[likely], place: place + likely };
      for (const item of batch) {
        if (isWanted(item, place)) return { item, place };
        place++;
      }
    }
    return null;
  }

  /** One record, judged by itself. */
  async record(chain: string, address: RecordAddress, keys: PinnedKey[]): Promise<RecordDetail> {
    const found = await this.findRecord(chain, address);
    if (found === null) throw new NotJudged(`there is no such record in ${chain}`);
    const { item, place } = found;
    if (item instanceof BadInput) throw new NotJudged(`this record cannot be read: ${item.message}`);
    if (item instanceof ActionItem) return describeAction(item, place);
    const ring = makeRing(keys);
    const judge = new ChainJudge(plainRules(ring, this.ed25519), { chain, start: this.live === null ? null : place });
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
    const key = this.keysAlong.get(record.signed_by);
    // A signature over a hash that the text does not have says nothing about the text.
    return key === undefined || !record.signature || record.computedHash !== record.hash ? null : this.ed25519.verify(key, record.hash, record.signature);
  }

  /** The records of a chain, in batches. Only a ledger reads from `start`; a file is read from its beginning. */
  async *readBatches(chain: string, start = 0, stop?: number): AsyncGenerator<Item[]> {
    await this.giveWay();
    for await (const items of this.readStored(chain, start, stop)) {
      yield items;
      await this.giveWay();
    }
  }

  private async *readStored(chain: string, start: number, stop?: number): AsyncGenerator<Item[]> {
    const thing = this.opened;
    if (this.live !== null) {
      const count = this.live.chains.get(chain)?.count ?? 0;
      const end = Math.min(stop ?? count, count);
      const part = new LiveChainSource(this.live.api, chain, end, start);
      if (start < end) yield* this.held.check(chain, start, end, keepRecords(readChainFile(part)));
      return;
    }
    if (thing.isFolder || this.inner !== null) {
      const file = await this.directory.open(chain === "meta" ? "meta.json" : fileOf({ id: chain } as Parameters<typeof fileOf>[0]));
      yield* keepRecords(readChainFile(file));
      return;
    }
    const { source, format, opening } = await this.recognise(thing);
    if (format === "chain") yield* keepRecords(readChainFile(source));
    else if (format === "capsules") {
      for await (const items of readCapsuleItems(source, opening)) yield items.map(({ item }) => item);
    } else if (format === "cap") {
      for await (const part of readCap(await readWhole(thing.name, source), thing.name)) if (part.chain === chain) yield part.items;
    } else if (format === "actions") yield* readActions(await readWhole(thing.name, source));
    else if (format === "proof") yield readProof(await readWhole(thing.name, source));
  }
}

function describeAction(item: ActionItem, place: number): RecordDetail {
  const { canonical, hash, computedHash, findings, keys } = item;
  const unsigned = { signature: "", signaturePq: "", signedAt: "", signedBy: "", matchesOwnKey: null };
  const previousHash = text(at(item.content, "outcome", "result", "parent_receipt_hash"));
  return { ...unsigned, row: describeRow(item, place), canonical, hash, computedHash, previousHash, findings, receiptKeys: keys };
}

function bareChain(id: string): ListedChain {
  return { id, title: id, tool: domainOf(id), length: null, head: null, origin: null, startedAt: "", endedAt: "", signers: [] };
}

function listLedger(name: string, live: LiveDirectory): Contents {
  const chains = [...live.chains.values()].map((chain): ListedChain => {
    return { ...bareChain(chain.name), tool: domainOf(chain.origin ?? chain.name), length: chain.count, head: chain.head, origin: chain.origin };
  });
  return { name, format: "ledger", ledger: live.about.ledger, tenant: live.about.tenant, chains, keys: live.keys, pqKeys: live.pqKeys };
}

async function* keepRecords(batches: ReturnType<typeof readChainFile>): AsyncGenerator<Item[]> {
  for await (const items of batches) yield items.flatMap((item) => (item instanceof Sealed || item instanceof BadInput ? [item] : []));
}

/** The chains of a `.cap` file: those of its records, or one with the actions of CapSeal. */
async function listCap(name: string, source: ByteSource): Promise<Pick<Contents, "format" | "chains">> {
  const lengths = new Map<string, number>();
  let isPublic = false;
  try {
    for await (const { chain, items } of readCap(await readWhole(name, source), name)) {
      lengths.set(chain, (lengths.get(chain) ?? 0) + items.length);
      isPublic ||= items[0] instanceof ActionItem;
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error; // The verdict says why it cannot be read.
  }
  const chains = [...(lengths.size ? lengths : [[name, 0] as const])].map(([chain, length]) => ({ ...bareChain(chain), length }));
  return { format: isPublic ? "capseal" : "cap", chains };
}

function describeText(item: Item, place: number): RecordText {
  const bare = { place, canonical: "", hash: "", signature: "", signaturePq: "", signedAt: "", signedBy: "", problem: "" };
  if (item instanceof BadInput) return { ...bare, problem: item.message };
  const { canonical, hash } = item;
  if (item instanceof ActionItem) return { ...bare, canonical, hash };
  const { signature } = item;
  return { ...bare, canonical, hash, signature, signaturePq: item.signature_pq, signedAt: item.signed_at, signedBy: item.signed_by };
}

/**
 * Say what the page of a site cannot check. Where it judged copies, the bundle's own files may differ (check `page`): such a
 * verdict is at most `qualified`. Files beside those that a site lists are no part of what was judged.
 */
function noteLimits(verdict: Verdict, matters: boolean): void {
  const [name, reason] = matters
    ? ["page", "the page judged its own copies in explorer/data, and cannot read the bundle's files to compare them"]
    : ["unlisted_files", "a web server does not tell whether it has files that this site does not list; this page shows none of them"];
  verdict.checks.push({ name, status: "not_checked", reason, code: null, place: null, count: 0, matters });
  if (matters && verdict.status === "verified") verdict.status = "qualified";
}

export function makeRing(keys: PinnedKey[]): Ring {
  return new Ring(keys.flatMap(({ publicKey, publicKeyPq, entry }) => [new PublicKey(publicKey, publicKeyPq), ...(entry ? [readRingEntry(readJson(entry))] : [])]));
}
