/**
 * The verifier: from bytes and keys to a verdict. It has no DOM and no file system, and runs in a page, a worker and Node.
 *
 *     const verdict = await verifyFile("capsules.jsonl", source, { ring, ed25519 })
 *
 * For everything that it can read, its verdict is that of `aver verify` with the same keys. Checks that only Python makes
 * are `not_checked`. A thing that it does not judge raises `NotJudged`, which names the command that does.
 */

import knownCases from "../../../tests/conformance/corpus/ed25519.json" with { type: "json" };
import { APPROVALS_EXAMINER } from "./approvals/examiner.ts";
import { judgeChainFile } from "./bundle/chain_file.ts";
import { judgeBundle } from "./bundle/judge.ts";
import { type ByteSource, type Directory, readStart } from "./bytes.ts";
import { judgeCapsules } from "./capsules.ts";
import { Ed25519 } from "./ed25519.ts";
import type { Examiner } from "./examiner.ts";
import { NotJudged, type VerifyOptions } from "./options.ts";
import { judgeReport } from "./report.ts";
import { RUN_EXAMINER, judgeActions, judgeArchive, judgeProof } from "./run/verify.ts";
import { BEGINNING_BYTES, jsonOpening, recogniseFile } from "./subject.ts";
import type { Verdict } from "./verdict.ts";

const EXAMINERS: Examiner[] = [APPROVALS_EXAMINER, RUN_EXAMINER];

/** An Ed25519 verifier that has tried the platform on the known cases. */
export async function openEd25519(): Promise<Ed25519> {
  const ed25519 = new Ed25519();
  await ed25519.checkPlatform(knownCases.cases);
  return ed25519;
}

/** The verdict on a directory: a bundle. */
export async function verifyDirectory(directory: Directory, options: VerifyOptions): Promise<Verdict> {
  const names = await directory.list();
  if (names.includes("index.json")) return judgeBundle(directory, options, EXAMINERS);
  throw new NotJudged(`${directory.name} is no bundle: it has no index.json. For a run or a ledger, run: aver verify PATH`);
}

/** The verdict on a file. */
export async function verifyFile(name: string, source: ByteSource, options: VerifyOptions): Promise<Verdict> {
  const beginning = await readStart(source, BEGINNING_BYTES);
  switch (recogniseFile(name, beginning)) {
    case "chain":
      return judgeChainFile(name, source, options);
    case "capsules":
      return judgeCapsules(name, source, jsonOpening(beginning), options);
    case "cap":
      return judgeArchive(name, source, options, EXAMINERS);
    case "actions":
      return judgeActions(name, source);
    case "report":
      return judgeReport(name, source, options, EXAMINERS);
    case "proof":
      return judgeProof(name, source, options);
    case "elsewhere":
      throw new NotJudged(`a page cannot judge ${name}; run: aver verify ${name}`);
    default:
      throw new NotJudged(`${name} is nothing that Aver can verify`);
  }
}
