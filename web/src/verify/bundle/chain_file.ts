/** The file of one chain: its records and claims as they are read, and the verdict on it alone. */

import { RESERVED_CHAINS, domainOf } from "../block.ts";
import { BLOB_REFERENCE } from "../blobs.ts";
import type { ByteSource, Directory } from "../bytes.ts";
import { ChainJudge, UNREADABLE_MAX, plainRules, prepareBatches } from "../chain.ts";
import { readChainIdentity, skipExaminers } from "../examiner.ts";
import { BadInput, type Json, type JsonObject } from "../json.ts";
import { retirementsByTime } from "../key_history.ts";
import { ProgressMeter, type VerifyOptions } from "../options.ts";
import { Sealed } from "../sealed.ts";
import { pythonText } from "../text.ts";
import { CHECKS, Tally, type Verdict, conclude, place } from "../verdict.ts";
import { type ClaimSource, checkChainClaim, checkShownClaims, warnOfMembers } from "./index_check.ts";
import { type BundleIndex, type ChainClaim, type ChainItem, META, fileOf, readChainFile } from "./layout.ts";
import type { Owner } from "./meta.ts";
import { ChainFacts } from "./summary.ts";

const UNREADABLE_CODES = new Set(["SCHEMA_INVALID", "DUPLICATE_KEY"]);

/** The content of a chain's file. The hash at the place `wanted` is compared with the meta chain's head. */
export class JudgedChain {
  readonly facts = new ChainFacts();
  readonly wanted: number;
  atWanted: string | null = null;
  ownClaim: ChainClaim | null = null;
  refersToBlobs = false;

  constructor(wanted = -1) {
    this.wanted = wanted;
  }

  /** Judge what a chain's file gives next. Returns the content of a record that could be read. */
  take(item: ChainItem, judge: ChainJudge): JsonObject | null {
    if (item instanceof Sealed) {
      if (this.facts.count === this.wanted) this.atWanted = item.hash;
      this.refersToBlobs ||= item.canonical.includes(BLOB_REFERENCE);
      const content = judge.judge(item);
      this.facts.addRecord(item, content);
      return content;
    }
    if (item instanceof BadInput) {
      judge.unreadable(item);
      this.facts.addUnreadable();
    } else this.ownClaim = item.claim;
    return null;
  }

  /** Compare the chain with the claims of the index or of its own summary. Wrong claims about what is shown go into `shown`. */
  checkClaim(claim: ChainClaim, source: ClaimSource, judge: ChainJudge, chain: string | null, name: string, shown: Tally): void {
    const codes = new Set([...judge.tally.counts.values()].map((counted) => counted.code));
    const isKnown = judge.tally.done.has("content") && ![...UNREADABLE_CODES].some((code) => codes.has(code));
    const hashesOk = isKnown ? !codes.has("HASH_MISMATCH") : null;
    checkChainClaim(claim, this.facts, source, judge.tally, chain);
    checkShownClaims(claim, this.facts, source, shown, place(chain), hashesOk, claim.id || name);
  }
}

/** Judge the first items of a chain's file to learn what its first record says that the chain is. */
export async function peekChainIdentity(
  source: ByteSource,
  unknown: Map<string, number> | null = null,
): Promise<{ named: JsonObject | null; batches: AsyncGenerator<ChainItem[]> }> {
  const batches = readChainFile(source, unknown);
  let first: ChainItem[] | null = null;
  while (first === null || first.length === 0) {
    const step = await batches.next();
    if (step.done) break;
    first = step.value;
  }
  const item = first?.[0];
  const rest = async function* () {
    if (first !== null) yield first;
    yield* batches;
  };
  return { named: readChainIdentity(item instanceof Sealed ? item : null), batches: rest() };
}

export const NO_OWNER: Owner = { ledger: null, tenant: null };

/** Whose bundle it is, by the first chain that was made there and names its ledger. The index is not believed. */
export async function readOwner(directory: Directory, index: BundleIndex): Promise<Owner> {
  const own = index.chains.filter((claim) => claim.origin === null || RESERVED_CHAINS.has(claim.id)).map(fileOf);
  const files = index.meta === null ? own : [META, ...own];
  for (const name of files.slice(0, UNREADABLE_MAX)) {
    try {
      const { named } = await peekChainIdentity(await directory.open(name));
      const [ledger, tenant] = [named?.get("ledger"), named?.get("tenant")];
      if (typeof ledger === "string" && typeof tenant === "string") return { ledger, tenant };
    } catch (error) {
      if (!(error instanceof BadInput)) throw error; // Reported where the chain itself is judged.
    }
  }
  return NO_OWNER;
}

/** The verdict on one chain of a bundle, by its file alone. */
export async function judgeChainFile(name: string, file: ByteSource, options: VerifyOptions): Promise<Verdict> {
  // No ledger is here that says up to which record a retired key was valid; only times can tell.
  const retired = retirementsByTime(options.ring, options.ed25519);
  const rules = plainRules(options.ring, options.ed25519, { retired, requirePq: options.requirePq ?? false, crew: options.crew ?? null });
  const judge = new ChainJudge(rules, { source: name });
  const seen = new JudgedChain();
  const unknown = new Map<string, number>();
  const shown = new Tally();
  const meter = new ProgressMeter(options, file.size);
  const { named, batches } = await peekChainIdentity(file, unknown);
  read: for await (const items of prepareBatches(rules, batches, (found) => found.filter((item) => item instanceof Sealed))) {
    const records = items.filter((item) => item instanceof Sealed);
    for (const item of items) {
      if (judge.stopsReading()) break read;
      seen.take(item, judge);
    }
    meter.add(items.length, records.reduce((sum, record) => sum + record.canonical.length, 0));
  }
  const tally = judge.finish();
  tally.chains = Number(seen.facts.count > 0);
  tally.countDone("index", Number(seen.ownClaim !== null && seen.facts.count > 0));
  const ownName = named?.has("name") ? pythonText(named.get("name") as Json) : "";
  if (seen.ownClaim !== null) {
    seen.checkClaim(seen.ownClaim, { name: "its summary", isAvers: named !== null }, judge, null, ownName, shown);
    checkName(seen.ownClaim, named, tally, name);
  }
  warnOfMembers(unknown, shown, null, name);
  tally.merge(shown);
  tally.skip("meta", "only one chain was verified: it may have been cut at its end", { matters: false });
  skipExaminers(domainOf(ownName), "only one chain was verified", tally);
  if (seen.refersToBlobs) tally.skip("blobs", "only one chain was verified", { matters: false });
  return conclude(`chain in ${name}`, tally, "signature", [...CHECKS, "index"]);
}

/** Hold what a chain's file says it is called to what the chain's first record says. */
function checkName(claim: ChainClaim, named: JsonObject | null, tally: Tally, source: string): void {
  if (named === null) {
    tally.skip("identity", "made by other software, which does not name its chain", { matters: false });
    return;
  }
  if (!claim.id) {
    tally.skip("identity", "the file does not say which chain it is", { matters: false });
    return;
  }
  tally.countDone("identity");
  const madeAs = claim.origin || claim.id;
  if (named.get("name") !== madeAs) {
    tally.fail("identity", "CHAIN_IDENTITY", `the file calls it '${madeAs}', its first record another name`, place(null, 0, source));
  } else if (madeAs !== claim.id) {
    tally.skip("identity", `that '${madeAs}' was imported as '${claim.id}' rests on the file's summary alone`, { matters: true });
  }
}
