/**
 * Examiners: checks of one kind of record, beyond the seals. The twin of `aver.verdict.examiner`.
 *
 * The page makes the checks of approvals and of runs. Decisions of the gate and acts of the gateway are judged by
 * `aver verify` alone, which has the rules, the readers of commands and the policy language. Where a thing holds such
 * records, these checks are not made here, and the verdict is at most qualified.
 */

import { domainOf, readBlock } from "./block.ts";
import { ChainJudge, type Rules } from "./chain.ts";
import type { Head } from "./heads.ts";
import { BadInput, type Json, type JsonObject, NotFound, isObject } from "./json.ts";
import type { Sealed } from "./sealed.ts";
import { ACT_CHECKS, type Place, RUN_CHECKS, Tally, place } from "./verdict.ts";

/** By domain, the checks that a verdict owes to chains of it. */
export const EXAMINED_DOMAINS: ReadonlyMap<string, string[]> = new Map([
  ["gate", ["decisions"]],
  ["approvals", ["approvals"]],
  ["approvers", ["approvals"]],
  ["actions", RUN_CHECKS],
  ["gateway", ACT_CHECKS],
  ["delegations", ["delegation"]],
  ["protocol", ["protocol"]],
]);

/** The checks that only `aver verify` makes, by domain. */
const PYTHON_ALONE: ReadonlyMap<string, string[]> = new Map([
  ["gate", ["decisions", "changes"]],
  ["gateway", ACT_CHECKS],
  ["delegations", ["delegation"]],
  ["protocol", ["protocol"]],
]);
const PYTHON_WORDS = "a page cannot make this check; run: aver verify";

/** Reads records of a bundle or a `.cap` file. `read` and `blob` raise `NotFound`. */
export interface EvidenceReader {
  read(chain: string): AsyncGenerator<Sealed>;
  /** The decision with this hash. */
  get(hash: string): Promise<Sealed | null>;
  blob(digest: string): Promise<Uint8Array>;
  head(chain: string): Head | null;
}

export interface ExaminedChain {
  /** Under which it is stored here. Findings have this name. */
  name: string;
  /** The name in its first record. The reader takes this name. */
  origin: string;
  count: number;
}

/** The chains of one ledger and tenant that are to be examined, and how to read what they refer to. */
export interface Examination {
  reader: ValidRecords;
  rules: Rules;
  ledger: string;
  tenant: string;
  chains: ExaminedChain[];
  /** Whether all chains that records refer to must be here. */
  isComplete: boolean;
  /** Whether only this one chain is verified, not the whole that it belongs to. */
  isSingle: boolean;
}

export interface Examiner {
  domains: string[];
  checks: string[];
  examine(examination: Examination): Promise<Tally>;
}

export function selectChains(examination: Examination, ...domains: string[]): ExaminedChain[] {
  return examination.chains.filter((chain) => domains.includes(domainOf(chain.origin)));
}

/** Add the examiners' findings to `tally`; a check that cannot be made is added as not checked. */
export async function examine(examiners: Examiner[], examination: Examination, tally: Tally): Promise<void> {
  for (const domain of new Set(examination.chains.map((chain) => domainOf(chain.origin)))) skipPythonChecks(domain, tally);
  for (const examiner of examiners) {
    const chains = selectChains(examination, ...examiner.domains);
    if (!chains.length) continue;
    const { reader } = examination;
    reader.leftOut = null;
    try {
      await guard(tally, examiner.checks[0] as string, place((chains[0] as ExaminedChain).name), async () => {
        tally.merge(await examiner.examine(examination));
      });
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      for (const check of examiner.checks) tally.skip(check, `the records cannot be read: ${error.message}`, { matters: true });
    }
    if (reader.leftOut !== null) {
      // Without this, a check could pass that never saw the record that would have failed it.
      for (const check of examiner.checks) tally.skip(check, "records that do not hold were left out", { matters: true });
    }
  }
}

/** Report the checks that only `aver verify` makes on chains of this domain. */
function skipPythonChecks(domain: string, tally: Tally): void {
  for (const check of PYTHON_ALONE.get(domain) ?? []) tally.skip(check, PYTHON_WORDS, { matters: true });
}

/** Report the checks that chains of this domain would need as not checked. */
export function skipExaminers(domain: string, reason: string, tally: Tally): void {
  for (const check of EXAMINED_DOMAINS.get(domain) ?? []) tally.skip(check, reason, { matters: true });
}

/** Turn any exception in the judging of a record into a finding at its place; `NotFound` goes on to the caller. */
export async function guard(tally: Tally, check: string, where: Place, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof NotFound) throw error;
    const words =
      error instanceof BadInput ? error.message : `it lacks keys of a record of its kind (${(error as Error).name})`;
    tally.fail(check, "SCHEMA_INVALID", words, where);
  }
}

/** A reader that takes origins, and gives only records whose content and signature hold. */
export class ValidRecords {
  /** The first record that was asked for and does not hold. */
  leftOut: Place | null = null;
  private readonly reader: EvidenceReader;
  private readonly rules: Rules;
  private readonly names: ReadonlyMap<string, string>;
  private readonly doubtful: ReadonlySet<string | null>;

  /** `names` has the stored name of each origin. The records of the chains in `doubtful` are judged once more. */
  constructor(reader: EvidenceReader, rules: Rules, names: ReadonlyMap<string, string>, doubtful: ReadonlySet<string | null>) {
    this.reader = reader;
    // Links, places and retired keys were judged with the chain; here only the record itself counts.
    this.rules = { ...rules, retired: new Map() };
    this.names = names;
    this.doubtful = doubtful;
  }

  async *read(chain: string): AsyncGenerator<Sealed> {
    const name = this.names.get(chain);
    if (name === undefined) throw new NotFound(`the chain ${chain} is not here`);
    for await (const record of this.reader.read(name)) {
      if (!this.doubtful.has(name) || this.holds(record, name)) yield record;
    }
  }

  async get(hash: string): Promise<Sealed | null> {
    const record = await this.reader.get(hash);
    return record !== null && this.holds(record, record.chain) ? record : null;
  }

  blob(digest: string): Promise<Uint8Array> {
    return this.reader.blob(digest);
  }

  /** Whether a chain with records is here. */
  has(chain: string): boolean {
    const name = this.names.get(chain);
    return name !== undefined && (this.reader.head(name)?.count ?? 0) > 0;
  }

  private holds(record: Sealed, chain: string | null): boolean {
    const judge = new ChainJudge(this.rules, { chain, start: null });
    judge.judge(record);
    // A warning or an unknown signer does not count: the verdict reports these at the record.
    const failed = judge.tally.findings.find((finding) => finding.status === "failed");
    if (failed !== undefined) this.leftOut ??= failed.place;
    return failed === undefined;
  }
}

/** The name, ledger and tenant that a chain's first record gives it; null where it gives none. */
export function readChainIdentity(record: Sealed | null): JsonObject | null {
  let named: Json | undefined;
  try {
    named = record === null ? undefined : readBlock(record.content)?.get("chain");
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
  }
  return isObject(named) && named.size ? named : null;
}
