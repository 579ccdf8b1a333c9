/**
 * Verifying a bundle. The twin of `aver.ledger.bundle.verify`, in the same order:
 *
 * 1. The index is read. Its claims prove nothing; a wrong claim fails (check `index`).
 * 2. The meta chain is judged. It records how long each chain was.
 * 3. Every chain that the index lists is judged, and compared with the claims and with the meta chain.
 * 4. Every blob that a record refers to must have the bytes of its digest.
 * 5. The chains are compared with the signed heads in `head.json` (check `head`).
 * 6. Files that nobody lists are a warning.
 * 7. Examiners check the records of other rooms.
 *
 * Files are streamed; memory grows with the number of chains and blobs, not with their size.
 */

import { KEYS_CHAIN, META_CHAIN, RESERVED_CHAINS, domainOf } from "../block.ts";
import { BLOB_REFERENCE } from "../blobs.ts";
import type { Directory } from "../bytes.ts";
import { ChainJudge, type Retirement, type Rules, UNREADABLE_MAX, plainRules, prepareBatches, prepareRecords } from "../chain.ts";
import { EXAMINED_DOMAINS, type ExaminedChain, type Examiner, ValidRecords, examine } from "../examiner.ts";
import type { Head } from "../heads.ts";
import { noteJoins } from "../joins.ts";
import { BadInput, type Json, type JsonObject, NotFound } from "../json.ts";
import {
  HistoryReader,
  type KeyHistory,
  NO_HISTORY,
  isValidByItself,
  readReplacement,
  reportUnrecorded,
  retirementsByTime,
  rulesOf,
} from "../key_history.ts";
import { ProgressMeter, type VerifyOptions } from "../options.ts";
import { Sealed } from "../sealed.ts";
import { pythonText } from "../text.ts";
import { CHECKS, Tally, type Verdict, conclude, place } from "../verdict.ts";
import { BundleBlobs, readBundleBlob } from "./blobs.ts";
import { JudgedChain, NO_OWNER, peekChainIdentity, readOwner } from "./chain_file.ts";
import { type Checkpoint, type RecordedKey, checkBundleHead, noteRecordedKey, readBundleHead } from "./head.ts";
import { ImportHistory, OLD_IMPORT, readDigits } from "./imports.ts";
import { checkKeyClaims, checkOriginClaim, checkUnlistedFiles, warnOfMembers } from "./index_check.ts";
import { type BundleIndex, type ChainClaim, type ChainItem, HEAD, INDEX, META, SHORTEST_CHAIN, claimedName, fileOf, readIndex } from "./layout.ts";
import { MetaMemory } from "./meta.ts";
import { BundleReader } from "./reader.ts";
import { SITE_NAMES, checkSite, isSite } from "./site.ts";
import { type Source, identifySource, sourceKey } from "./sources.ts";

const SIGNERS_KEPT = 1000;
const SHORT_CHAINS_MAX = 1000;

/** A bundle under verification. */
class BundleJudge {
  private readonly directory: Directory;
  private readonly index: BundleIndex;
  private readonly options: VerifyOptions;
  private readonly meter: ProgressMeter;
  private readonly tally = new Tally();
  private readonly shown = new Tally();
  readonly heads = new Map<string, Head>();
  private readonly signers = new Set<string>();
  private readonly blobs: BundleBlobs;
  private readonly origins = new Map<string, { origin: string; ledger: string; tenant: string }>();
  private readonly histories = new Map<string, KeyHistory>();
  private readonly recorded = new Map<string, RecordedKey>();
  private meta: MetaMemory;
  keyHistory: KeyHistory;
  rules: Rules;
  private owner = NO_OWNER;
  private byIndexAlone = 0;
  private absent = 0;
  private failed = 0;
  private short = 0;

  constructor(directory: Directory, index: BundleIndex, options: VerifyOptions, meter: ProgressMeter) {
    this.directory = directory;
    this.index = index;
    this.options = options;
    this.meter = meter;
    this.keyHistory = { ...NO_HISTORY, retired: retirementsByTime(options.ring, options.ed25519) };
    const { requirePq = false } = options;
    this.rules = plainRules(options.ring, options.ed25519, { retired: this.keyHistory.retired, requirePq, crew: options.crew ?? null, along: options.along ?? new Map() });
    this.meta = new MetaMemory(new ImportHistory(options.ring, new Map()));
    this.blobs = new BundleBlobs(directory, index.areBlobsLeftOut, meter);
  }

  /** Read what has to be known before the first chain is judged: the owner, and the history of keys. */
  async prepare(): Promise<void> {
    // Whose bundle it is: as the index says, and where it does not, as the records do.
    const { ledger, tenant } = this.index;
    const signed = ledger !== null && tenant !== null ? NO_OWNER : await readOwner(this.directory, this.index);
    this.owner = { ledger: ledger ?? signed.ledger, tenant: tenant ?? signed.tenant };
    const replaced = new Map<string, string>();
    for (const claim of this.index.chains) {
      if (claim.id !== KEYS_CHAIN && claim.origin !== KEYS_CHAIN) continue;
      try {
        const file = await this.directory.open(fileOf(claim));
        const { named, batches } = await peekChainIdentity(file);
        const source = identifySource(claim.id, named);
        const identity = { ledger: source.ledger, tenant: source.tenant };
        const reader = new HistoryReader(this.options.ring, this.options.ed25519, identity);
        for await (const items of batches) {
          const records = items.filter((item) => item instanceof Sealed);
          await prepareRecords(this.rules, records);
          for (const record of records) {
            reader.take(record);
            if (claim.id !== KEYS_CHAIN) continue;
            const pair = readReplacement(record, this.rules);
            if (pair !== null) replaced.set(...pair);
            if (isValidByItself(record, this.rules)) noteRecordedKey(record, this.recorded);
          }
        }
        const key = sourceKey(source);
        const history = await reader.finish((digest) => readBundleBlob(this.directory, digest));
        if (!this.histories.has(key)) this.histories.set(key, history);
      } catch (error) {
        if (!(error instanceof BadInput)) throw error; // Reported where the chain itself is judged.
      }
    }
    this.meta = new MetaMemory(new ImportHistory(this.options.ring, replaced));
    if (this.owner.ledger !== null) {
      const own = { digits: OLD_IMPORT, ledger: this.owner.ledger, tenant: this.owner.tenant ?? "" };
      this.keyHistory = this.histories.get(sourceKey(own)) ?? this.keyHistory;
      this.rules = rulesOf(this.keyHistory, this.rules);
    }
  }

  /** Judge everything. The numbers are those of the module's text. */
  async judge(examiners: Examiner[]): Promise<Tally> {
    const { tally, index } = this;
    const where = place(null, null, INDEX);
    if (index.isUnfinished) {
      tally.fail("index", "CHAIN_MISSING", "the export did not finish", where);
      return tally;
    }
    const hasPage = await isSite(this.directory);
    if (hasPage) await this.options.checkPage?.(this.directory, tally); // First: a reader of the verdict may be about to open the page.
    if (index.meta !== null) await this.judgeChain(index.meta, META); // 2.
    const ofMeta = tally.records;
    for (const claim of index.chains) {
      const limit = this.findLimit();
      if (limit !== null) {
        tally.fail("index", "NOT_READ", `${limit}; the rest was not read`, where);
        break;
      }
      await this.judgeChain(claim, fileOf(claim)); // 3. and 4.
    }
    if (this.byIndexAlone) {
      const words = `that ${this.byIndexAlone} chains were imported under their names rests on the index alone`;
      tally.skip("identity", words, { matters: true });
    }
    const counts: [string, number | null, number, string][] = [
      ["chains", index.chainCount, index.chains.length, "CHAIN_MISSING"],
      ["capsules", index.capsuleCount, tally.records - ofMeta, "TRUNCATED"],
    ];
    for (const [what, counted, here, code] of counts) {
      if (counted !== null && counted !== here) {
        tally.fail("index", counted > here ? code : "ROLLBACK", `the index counts ${counted} ${what}; ${here} are here`, where);
      }
    }
    if (index.meta !== null) this.meta.checkMissing(index.isPart, tally);
    const head = await this.checkHead(); // 5.
    if (index.meta === null) {
      const instead = head === null ? ": chains may have been cut or left out" : `; ${HEAD} states which chains there are`;
      tally.skip("meta", `the bundle has no meta chain${instead}`, { matters: false });
    }
    tally.merge(this.shown);
    await this.checkIndex(head, hasPage); // 6., and the rest of 1.
    await this.examine(examiners); // 7.
    reportUnrecorded(tally); // After the examiners, as `aver verify` reports them.
    return tally;
  }

  /** The limit of a bundle that is exceeded; null if all are kept. Nobody's honest bundle exceeds one. */
  private findLimit(): string | null {
    if (this.absent > UNREADABLE_MAX) return `more than ${UNREADABLE_MAX} chains that it lists are not here`;
    if (this.failed > UNREADABLE_MAX) return `more than ${UNREADABLE_MAX} chains failed`;
    if (this.short > SHORT_CHAINS_MAX) {
      return `more than ${SHORT_CHAINS_MAX} chains have files of less than ${SHORTEST_CHAIN} bytes: too many`;
    }
    return null;
  }

  /** Judge one chain, and compare it with the claims about it and with the meta chain. */
  private async judgeChain(claim: ChainClaim, fileName: string): Promise<void> {
    const { tally } = this;
    const chain = claim.id;
    tally.countDone("index");
    let named: JsonObject | null;
    let name: string;
    let remembered: Head | undefined;
    let seen: JudgedChain;
    let judge: ChainJudge;
    const unknown = new Map<string, number>();
    try {
      const file = await this.directory.open(fileName);
      this.short += Number(file.size < SHORTEST_CHAIN);
      const peeked = await peekChainIdentity(file, unknown);
      named = peeked.named;
      name = named === null && this.owner.ledger === null ? claimedName(claim) : claim.id;
      remembered = this.meta.heads.get(name);
      seen = new JudgedChain(remembered === undefined ? -1 : Number(remembered.count) - 1);
      judge = this.buildJudge(claim, named);
      await this.takeAll(peeked.batches, seen, judge, chain, file.size);
    } catch (error) {
      if (error instanceof NotFound) {
        this.absent++;
        tally.fail("index", "CHAIN_MISSING", `the index lists this chain; there is no ${fileName}`, place(chain));
        return;
      }
      if (error instanceof BadInput) {
        this.failed++;
        tally.fail("schema", "SCHEMA_INVALID", error.message, place(chain));
        return;
      }
      throw error;
    }
    judge.finish();
    const isAvers = this.owner.ledger !== null;
    const origin = this.hasMade(named) ? null : (named?.get("name") ?? null);
    for (const [each, who] of [[claim, "the index"], [seen.ownClaim, "its summary"]] as const) {
      if (each === null) continue;
      const source = { name: who, isAvers };
      seen.checkClaim(each, source, judge, chain, chain, this.shown);
      if (named !== null) checkOriginClaim(each, origin, source, this.shown, place(chain));
    }
    warnOfMembers(unknown, this.shown, chain);
    this.failed += Number(judge.tally.hasFailed());
    tally.merge(judge.tally);
    tally.chains++;
    const { ledger, tenant } = this.owner;
    const { facts } = seen;
    const actual = { ledger: ledger ?? "", tenant: tenant ?? "", chain, count: facts.count, hash: facts.headHash };
    this.heads.set(chain, actual);
    this.noteOrigin(chain, name, named, claim);
    if (seen.ownClaim !== null && seen.ownClaim.id !== "" && seen.ownClaim.id !== chain) {
      tally.fail("index", "CHAIN_IDENTITY", `the file says that it is '${seen.ownClaim.id}'`, place(chain));
    }
    this.meta.compare(name, remembered, actual, seen.atWanted, tally);
  }

  private async takeAll(
    batches: AsyncGenerator<ChainItem[]>,
    seen: JudgedChain,
    judge: ChainJudge,
    chain: string,
    size: number,
  ): Promise<void> {
    let judged = 0;
    for await (const items of prepareBatches(this.rules, batches, (found) => found.filter((item) => item instanceof Sealed))) {
      let bytes = 0;
      for (const item of items) {
        if (judge.stopsReading()) return;
        const content = seen.take(item, judge);
        if (item instanceof Sealed) this.options.witness?.(chain, seen.facts.count - 1, item);
        if (content !== null && item instanceof Sealed) {
          bytes += item.canonical.length;
          this.noteRecord(item, content, chain);
          if (item.canonical.includes(BLOB_REFERENCE)) await this.blobs.check(content, chain, seen.facts.count - 1, judge.tally);
        }
      }
      judged += bytes;
      this.meter.add(items.length, bytes);
    }
    this.meter.add(0, Math.max(0, size - judged));
  }

  /** Examiners know a chain by the name in its first record, or else by the claimed one. */
  private noteOrigin(chain: string, name: string, named: JsonObject | null, claim: ChainClaim): void {
    const claimed = (key: string, otherwise: string | null) =>
      named?.has(key) ? pythonText(named.get(key) as Json) : (otherwise ?? "");
    const origin = claimed("name", claim.origin ?? name);
    if (!EXAMINED_DOMAINS.has(domainOf(origin))) return;
    // Python writes an empty text for a ledger or tenant that is null.
    const clean = (value: string) => (value === "None" ? "" : value);
    this.origins.set(chain, {
      origin,
      ledger: clean(claimed("ledger", this.owner.ledger)),
      tenant: clean(claimed("tenant", this.owner.tenant)),
    });
  }

  /** Note the signer of a record, and the heads in the meta chain's records. */
  private noteRecord(record: Sealed, content: JsonObject, chain: string): void {
    if (this.signers.size < SIGNERS_KEPT) this.signers.add(record.signed_by);
    if (chain === META_CHAIN) this.meta.take(record, content, this.owner, this.rules);
  }

  /** Whether a chain with this in its first record was made by the exporting ledger itself. */
  private hasMade(named: JsonObject | null): boolean {
    const { ledger, tenant } = this.owner;
    if (named === null || ledger === null || named.get("ledger") !== ledger) return false;
    return tenant === null || named.get("tenant") === tenant;
  }

  /**
   * The judge of a chain whose first record says this about it.
   *
   * That a chain was imported excuses its name and its ledger; so it counts only for one that was not made by the
   * exporting ledger.
   */
  private buildJudge(claim: ChainClaim, named: JsonObject | null): ChainJudge {
    const { ledger, tenant } = this.owner;
    if (claim.origin === null || RESERVED_CHAINS.has(claim.id) || this.hasMade(named)) {
      const identity: Record<string, string> = { name: claim.id };
      if (ledger !== null) identity["ledger"] = ledger;
      if (tenant !== null) identity["tenant"] = tenant;
      return new ChainJudge(this.rules, { chain: claim.id, identity, needsBlock: ledger !== null });
    }
    if (this.meta.imports.imported.get(claim.id)?.origin !== claim.origin) this.byIndexAlone++;
    const rules = this.rulesForImported(claim.id, claim.origin, named);
    return new ChainJudge(rules, { chain: claim.id, identity: { name: claim.origin } });
  }

  private rulesForImported(stored: string, origin: string, named: JsonObject | null): Rules {
    const history = this.histories.get(sourceKey(identifySource(stored, named))) ?? NO_HISTORY;
    const retired = new Map<string, Retirement>();
    for (const signer of new Set([...this.rules.retired.keys(), ...history.retired.keys()])) {
      const ours = this.rules.retired.get(signer) ?? { retiredAt: null, limits: null };
      const limit = ours.limits?.get(stored);
      retired.set(
        signer,
        limit === undefined
          ? (history.retired.get(signer) ?? { retiredAt: ours.retiredAt, limits: null })
          : { retiredAt: ours.retiredAt, limits: new Map([[origin, limit]]) },
      );
    }
    const theirLedger = named?.get("ledger");
    const recorded = theirLedger ? new Set(history.roles.keys()) : null;
    return { ...this.rules, retired, roles: history.roles, recorded, began: history.began };
  }

  /** Compare the chains with the signed heads, and return these; null if there are none. */
  private async checkHead(): Promise<Checkpoint | null> {
    const { tally, owner } = this;
    let head: Checkpoint | null;
    try {
      head = await readBundleHead(this.directory);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      tally.fail("head", error.code, error.message, place(null, null, HEAD));
      return null;
    }
    if (head === null) {
      if (this.directory.isLive) {
        const words = "a live ledger has no signed heads: its server could hold back the newest records, or whole chains that meta does not know";
        tally.skip("head", words, { matters: false });
      } else if (owner.ledger !== null) {
        tally.skip("head", `there is no ${HEAD}: chains may have been left out, or cut at their ends`, { matters: true });
      }
      return null;
    }
    checkBundleHead(head, this.heads, tally, owner, this.rules, this.keyHistory);
    return head;
  }

  /** Compare the index's keys and number of blobs with the records, and warn of files that nobody lists. */
  private async checkIndex(head: Checkpoint | null, hasPage: boolean): Promise<void> {
    const { tally, index } = this;
    if (this.owner.ledger !== null) checkKeyClaims(index, head, this.signers, this.options.ring, this.recorded, tally);
    if (!this.blobs.checkCount(index.blobs, tally)) return;
    await checkUnlistedFiles(this.directory, index, this.blobs.sizes, hasPage ? SITE_NAMES : new Set(), tally);
    if (hasPage) await checkSite(this.directory, index, this.blobs.present, tally, this.options.checkPage !== undefined);
  }


  /** Run the examiners on the chains, one examination for each ledger that the chains name. */
  private async examine(examiners: Examiner[]): Promise<void> {
    // An import must not stand in for another one that names the same ledger.
    const sources = new Map<string, Source & { names: Map<string, string> }>();
    for (const [name, { origin, ledger, tenant }] of this.origins) {
      const source = { digits: readDigits(name) ?? "", ledger, tenant };
      const key = sourceKey(source);
      const known = sources.get(key) ?? { ...source, names: new Map<string, string>() };
      sources.set(key, known);
      if (!known.names.has(origin)) known.names.set(origin, name);
    }
    const doubtful = new Set(this.tally.doubtful);
    const reader = new BundleReader(this.directory, this.heads, this.index);
    for (const { digits, ledger, tenant, names } of sources.values()) {
      const isOwn = digits === "" && ledger === this.owner.ledger && tenant === this.owner.tenant;
      const chains: ExaminedChain[] = [...names].map(([origin, name]) => {
        return { name, origin, count: (this.heads.get(name) as Head).count as number };
      });
      const theirs = this.histories.get(sourceKey({ digits: digits || OLD_IMPORT, ledger, tenant })) ?? NO_HISTORY;
      const rules = isOwn ? this.rules : { ...this.rules, roles: theirs.roles };
      const valid = new ValidRecords(reader, rules, names, doubtful);
      const isComplete = !this.index.isPart && isOwn;
      const examination = { reader: valid, rules, ledger, tenant, chains, isComplete, isSingle: false };
      await examine(examiners, examination, this.tally);
      await noteJoins(examination, this.tally);
    }
  }
}



export async function judgeBundle(directory: Directory, options: VerifyOptions, examiners: Examiner[]): Promise<Verdict> {
  const { tally } = await examineBundle(directory, options, examiners);
  return conclude(`bundle ${directory.name}`, tally, "signature", [...CHECKS, "index"]);
}

/** What judging a bundle found, for a verdict on it or on a report that carries it. */
interface ExaminedBundle {
  tally: Tally;
  heads: ReadonlyMap<string, Head>;
  rules: Rules;
  keyHistory: KeyHistory;
}

/** Judge a whole bundle. One that cannot be read is a finding. */
export async function examineBundle(
  directory: Directory,
  options: VerifyOptions,
  examiners: Examiner[],
): Promise<ExaminedBundle> {
  let judge: BundleJudge | null = null;
  try {
    const index = await readIndex(directory);
    const meter = new ProgressMeter(options, await measureBundle(directory, index));
    judge = new BundleJudge(directory, index, options, meter);
    await judge.prepare();
    const tally = await judge.judge(examiners);
    return { tally, heads: judge.heads, rules: judge.rules, keyHistory: judge.keyHistory };
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    const tally = new Tally();
    tally.fail("index", error.code, error.message, place(null, null, INDEX));
    const retired = retirementsByTime(options.ring, options.ed25519);
    const keyHistory = judge === null ? { ...NO_HISTORY, retired } : judge.keyHistory;
    return { tally, heads: new Map(), rules: plainRules(options.ring, options.ed25519, { retired }), keyHistory };
  }
}

/** The bytes of all chains, for showing progress. They fix the bound: files that appear later are not read. */
async function measureBundle(directory: Directory, index: BundleIndex): Promise<number> {
  let total = 0;
  for (const name of [...(index.meta ? [META] : []), ...index.chains.map(fileOf)]) {
    try {
      total += (await directory.open(name)).size;
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
    }
  }
  return total;
}

