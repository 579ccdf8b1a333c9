/** Verify runs: `.cap` files, lines of actions, proofs of inclusion, and chains of runs in bundles. */

import { readKind } from "../block.ts";
import type { ByteSource } from "../bytes.ts";
import { asciiJson } from "../canonical.ts";
import { ChainJudge, plainRules } from "../chain.ts";
import { type Examination, type ExaminedChain, type Examiner, guard, selectChains } from "../examiner.ts";
import { BadInput, type Json, NotFound, encoder, isInteger, isObject, readJson } from "../json.ts";
import { retirementsByTime } from "../key_history.ts";
import { NotJudged, type VerifyOptions } from "../options.ts";
import { SEAL_KEYS, Sealed, checkSealFields } from "../sealed.ts";
import { CHECKS, DOES_NOT_APPLY, RUN_CHECKS, Tally, type Verdict, conclude, place } from "../verdict.ts";
import {
  ACTION_LINE_MAX,
  type ActionLine,
  actionFields,
  encodeAction,
  readAction,
  readRawLines,
  receiptHash,
  sealForm,
} from "./action.ts";
import { readArchive } from "./archive.ts";
import { ACTION_KIND, SEAL_KIND, loadAction, readRunSeal, readSealedAction, runChain } from "./capsules.ts";
import { CAPSEAL_MEMBERS, isCapseal, judgeCapseal } from "./capseal.ts";
import { ARCHIVE_CHECK, MEMBER_ORDER, judgeFiles } from "./files.ts";
import { ReceiptJudge, RunJudge, skipAnswers } from "./judge.ts";
import { inclusionProblem, readRunStatement } from "./trace.ts";

/** Bytes of a file that a page reads whole. `aver verify` streams such files. */
const WHOLE_MAX = 256 * 1024 ** 2;
const PROOF_MAX = 16 * 1024 * 1024;

/** The bytes of a file. Raises `NotJudged` if it is too large for a page. */
export async function readWhole(name: string, source: ByteSource): Promise<Uint8Array> {
  if (source.size > WHOLE_MAX) throw new NotJudged(`${name} is larger than a page can hold; run: aver verify ${name}`);
  return source.read(0, source.size);
}

/** The verdict on a `.cap` file, of Aver or of the public CapSeal tool. */
export async function judgeArchive(name: string, source: ByteSource, options: VerifyOptions, examiners: Examiner[]): Promise<Verdict> {
  try {
    const archive = await readArchive(await readWhole(name, source), new Set(MEMBER_ORDER), CAPSEAL_MEMBERS);
    return isCapseal(archive) ? await judgeCapseal(name, archive, options) : await judgeFiles(name, archive, options, examiners);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    const tally = new Tally();
    tally.fail(ARCHIVE_CHECK, error.code, error.message, place(null, null, name));
    return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS, ARCHIVE_CHECK]);
  }
}

/** The verdict on lines of actions by themselves. */
export async function judgeActions(name: string, source: ByteSource): Promise<Verdict> {
  const tally = new Tally();
  const receipts = new ReceiptJudge(tally, { source: name });
  for (const _ of receipts.takeAll(readRawLines(await readWhole(name, source), ACTION_LINE_MAX)));
  tally.records = receipts.count;
  receipts.finish();
  const why = "it is alone, and nothing says where it is sealed";
  tally.skip("sealed", `receipts and links can be made by anyone: ${why}`, { matters: true });
  tally.skip("signature", "lines of actions are not signed", { matters: true });
  return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS]);
}

/** The verdict on a proof that a run has an action. */
export async function judgeProof(name: string, source: ByteSource, options: VerifyOptions): Promise<Verdict> {
  const tally = new Tally();
  try {
    judgeProofDocument(readJson(await source.read(0, Math.min(source.size, PROOF_MAX + 1))), name, options, tally);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    tally.fail("proof", error.code, error.message, place(null, null, name));
  }
  tally.skip("sealed", "the other actions of the run are not here", { matters: false });
  tally.skip("links", "the run's seal is on its own here", { matters: false });
  tally.skip("gates", "the gate's records are not here", { matters: false });
  return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS]);
}

function judgeProofDocument(document: Json, name: string, options: VerifyOptions, tally: Tally): void {
  const keys = ["v", "proof_type", "statement", "index", "action", "receipt_hash", "path", "seal"];
  if (!isObject(document) || document.size !== keys.length || !keys.every((key) => document.has(key))) {
    throw new BadInput("a proof of inclusion has other keys");
  }
  const [version, type, stated, index, acted, receipt, path, entry] = keys.map((key) => document.get(key) as Json);
  if (!isInteger(version) || version.text !== "1" || type !== "inclusion") throw new BadInput("this is a proof of another sort or version");
  if (!Array.isArray(path) || !isInteger(index)) throw new BadInput("a proof of inclusion has a place and a path");
  const where = place(null, null, name);
  const action = readAction(acted);
  tally.countDone("receipts");
  if (receiptHash(action) !== receipt) {
    tally.fail("receipts", "RECEIPT_MISMATCH", "the receipt is not that of the action", where);
  }
  const statement = readRunStatement(stated);
  const chain = runChain(statement.runId);
  const retired = retirementsByTime(options.ring, options.ed25519);
  const rules = plainRules(options.ring, options.ed25519, { retired, requirePq: options.requirePq ?? false });
  const judge = new ChainJudge(rules, { chain, start: null, source: name, needsBlock: true });
  const parts = ["canonical", ...SEAL_KEYS];
  if (!isObject(entry) || entry.size !== parts.length || !parts.every((key) => entry.has(key))) {
    throw new BadInput("a proof's seal is a capsule with its canonical text");
  }
  const [canonical, hash, signature, signature_pq, signed_at, signed_by] = parts.map((key) => entry.get(key));
  if (![canonical, hash, signature, signature_pq, signed_at, signed_by].every((value) => typeof value === "string")) {
    throw new BadInput("the parts of a seal are strings");
  }
  const seal = { hash, signature, signature_pq, signed_at, signed_by } as Record<(typeof SEAL_KEYS)[number], string>;
  const content = judge.judge(checkSealFields(new Sealed(canonical as string, seal)));
  tally.merge(judge.finish());
  tally.countDone("proof");
  const fail = (words: string) => tally.fail("proof", "PROOF_INVALID", words, where);
  if (content === null || readKind(content) !== SEAL_KIND) {
    fail("the seal is not that of a run");
    return;
  }
  const sealed = readRunSeal(content, { ledger: "", tenant: "", chain });
  const theirs = sealed.statement;
  const isSame =
    theirs !== null &&
    theirs.runId === statement.runId &&
    theirs.numActions === statement.numActions &&
    theirs.finalReceiptHash === statement.finalReceiptHash &&
    theirs.rowRoot === statement.rowRoot;
  if (!isSame || sealed.runId !== statement.runId || sealed.numActions !== statement.numActions) {
    fail("the run's seal says another statement");
  }
  const problem = inclusionProblem(statement, index.value, action, path);
  if (problem !== null) fail(problem);
}

/** The examiner of the chains of runs in a bundle. */
export const RUN_EXAMINER: Examiner = { domains: ["actions"], checks: RUN_CHECKS, examine: examineRuns };

async function examineRuns(examination: Examination): Promise<Tally> {
  const tally = new Tally();
  let unsealed = 0;
  let waiting = 0;
  let waited = 0;
  for (const chain of selectChains(examination, "actions")) {
    if (!chain.count) continue;
    await guard(tally, "sealed", place(chain.name), async () => {
      const { run, judge } = await examineRun(examination, chain);
      unsealed += Number(judge !== null && judge.seal === null);
      waiting += judge?.waiting ?? 0;
      waited += judge?.waited ?? 0;
      tally.merge(run);
    });
  }
  if (examination.isSingle) {
    for (const check of RUN_CHECKS) if (!tally.done.has(check)) tally.skip(check, DOES_NOT_APPLY, { matters: false });
    return tally;
  }
  skipAnswers(tally, waiting, waited, false);
  if (unsealed) {
    tally.notes.set("sealed", `${tally.done.get("sealed") ?? 0} checked; ${unsealed} runs are not sealed yet`);
  }
  return tally;
}

async function examineRun(examination: Examination, chain: ExaminedChain): Promise<{ run: Tally; judge: RunJudge | null }> {
  const { reader, ledger, tenant } = examination;
  let runId: Json | undefined;
  try {
    for await (const first of reader.read(chain.origin)) {
      const result = (first.content.get("outcome") as Map<string, Json>).get("result");
      runId = isObject(result) ? result.get("run_id") : undefined;
      break;
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
  }
  if (runId === undefined) {
    const run = new Tally();
    run.fail("sealed", "CHAIN_IDENTITY", "the chain does not begin as a run does", place(chain.name, 0));
    return { run, judge: null };
  }
  const identity = { ledger, tenant, chain: chain.origin, count: 0, hash: null };
  const judge = new RunJudge(examination.rules, String(runId), identity, { storedAs: chain.name, isValid: true });
  let count = 0;
  for await (const record of reader.read(chain.origin)) {
    if (count++ >= chain.count) break;
    const line = await takeLine(judge, record, (digest) => reader.blob(digest));
    judge.take(record, line, line === null ? null : sealForm(line.action, line.texts));
  }
  await takeGateRecords(examination, judge);
  const { records: tally, ending } = judge.finish({ isComplete: false });
  if (!examination.isSingle) {
    // The words about one run would appear as words about all runs.
    tally.notes.clear();
    ending.skipped.delete("sealed");
    ending.skipped.delete("answers");
  }
  tally.merge(ending);
  if (judge.receipts.count !== judge.actions) {
    const words = `the file has ${judge.receipts.count} actions; ${judge.actions} are sealed`;
    tally.fail("sealed", "TRUNCATED", words, place(chain.name, chain.count));
  }
  return { run: tally, judge };
}

/** Judge the line that follows from the record of an action. */
async function takeLine(judge: RunJudge, record: Sealed, blob: (digest: string) => Promise<Uint8Array>): Promise<ActionLine | null> {
  try {
    if (record.kind !== ACTION_KIND) return null;
    const action = await loadAction(readSealedAction(record.content), blob);
    const texts = encodeAction(action);
    const line = `${asciiJson(actionFields(action)).slice(0, -1)},"receipt_hash":"${texts.receiptHash}","canonical_fields":${texts.receipt}}`;
    return judge.receipts.take(encoder.encode(line));
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    return judge.receipts.take(new BadInput(error.message));
  }
}

/** Take the gate's own chain as far as the seal counts it, and the decisions of other chains that actions name. */
async function takeGateRecords({ reader }: Examination, judge: RunJudge): Promise<void> {
  const gates = judge.seal?.gates ?? null;
  if (gates !== null) {
    try {
      let count = 0;
      for await (const record of reader.read(gates.chain)) {
        if (count++ >= gates.count) break;
        judge.takeGateRecord(record, { isOwn: true });
      }
    } catch (error) {
      if (!(error instanceof NotFound)) throw error; // The seal's count shows that it is missing.
    }
  }
  for (const digest of [...judge.wanted]) {
    const found = await reader.get(digest);
    if (found !== null) judge.takeGateRecord(found, { isOwn: false });
  }
}
