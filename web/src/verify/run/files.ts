/** Judge a sealed run by its files in a `.cap`. The twin of `aver.actions.verify_files`, with the same six steps. */

import { areSameBytes } from "../bytes.ts";
import { ChainJudge, REST_UNREAD, type Rules, UNREADABLE_MAX, plainRules, roleOf } from "../chain.ts";
import { sha256Hex } from "../digest.ts";
import { dumpDocument, readExactly } from "../documents.ts";
import { type ExaminedChain, type Examiner, ValidRecords, examine } from "../examiner.ts";
import { type Head, readHead } from "../heads.ts";
import { BadInput, type Json, JsonNumber, encoder, equalJson, isInteger, isObject, readJson } from "../json.ts";
import { retirementsByTime } from "../key_history.ts";
import type { VerifyOptions } from "../options.ts";
import type { Sealed } from "../sealed.ts";
import { type Statement, checkStatement, readStatement, statementFields as signedFields } from "../statement.ts";
import { CHECKS, type Count, RUN_CHECKS, Tally, type Verdict, conclude, place } from "../verdict.ts";
import { ACTION_LINE_MAX, type ActionLine, readOwnLines, sealForm } from "./action.ts";
import { type Archive, readSmall } from "./archive.ts";
import { type RunSeal, runChain } from "./capsules.ts";
import { CAPSULE_LINE_MAX, type CapsuleLine, EVIDENCE_FILE, EvidenceNeeds, RunFilesReader, judgeEvidence, readCapsuleLine } from "./evidence.ts";
import { RunJudge } from "./judge.ts";
import { AIR_ID, CONSTRAINTS, ROW_WIDTH, statementFields } from "./trace.ts";

export const ARCHIVE_CHECK = "archive";
const MANIFEST = "manifest.json";
const HEAD = "head.json";
const PROOF = "proof.json";
const COMMITMENTS = "commitments.json";
const ACTIONS = "actions.jsonl";
const CAPSULES = "capsules.jsonl";
const LISTED = [PROOF, COMMITMENTS, ACTIONS, CAPSULES];
export const MEMBER_ORDER = [MANIFEST, HEAD, ...LISTED, EVIDENCE_FILE];
export const SMALL_FILE_MAX = 1024 * 1024;
const PROOF_TYPE = "recomputation";
const EXAMINED_MAX = 64;
const CHAINS_MAX = 10_000;

interface Manifest {
  runId: string;
  head: Head;
  createdAt: string;
  /** As it is written: a number that JavaScript would round is compared by its digits. */
  numActions: JsonNumber;
  finalReceiptHash: Json;
  policyVerdict: Json;
  isProved: boolean;
  files: Map<string, { sha256: Json; size: Json }>;
}

/** Read a manifest. Raises `BadInput` if Aver would not write exactly this content. */
function readManifest(data: Json): Manifest {
  const keys = [
    ...["schema", "protocol_version", "run_id", "head", "created_at", "num_actions", "final_receipt_hash"],
    ...["policy_verdict", "proof_type", "files"],
  ];
  if (!isObject(data) || data.size !== keys.length || !keys.every((key) => data.has(key))) throw new BadInput("the manifest is not whole");
  const get = (key: string) => data.get(key) as Json;
  if (get("schema") !== "aver_cap_v1" || get("protocol_version") !== "0.4.0") {
    throw new BadInput("the manifest is of another schema or protocol");
  }
  const listed = get("files");
  if (!isObject(listed)) throw new BadInput("the manifest is not whole");
  const files = new Map<string, { sha256: Json; size: Json }>();
  for (const [name, digest] of listed) {
    if (!isObject(digest) || digest.size !== 2 || !digest.has("sha256") || !digest.has("size")) throw new BadInput("the manifest is not whole");
    files.set(name, { sha256: digest.get("sha256") as Json, size: digest.get("size") as Json });
  }
  const head = readHead(get("head"));
  const type = get("proof_type");
  const names = [...files.keys()].filter((name) => name !== EVIDENCE_FILE);
  if ((type !== null && type !== PROOF_TYPE) || names.length !== LISTED.length || !LISTED.every((name) => files.has(name))) {
    throw new BadInput("the manifest says more or less than a manifest does");
  }
  const [runId, createdAt, final, count] = ["run_id", "created_at", "final_receipt_hash", "num_actions"].map(get);
  const hasReceipt = typeof final === "string" || (isInteger(count) && count.value === 0);
  if (typeof runId !== "string" || typeof createdAt !== "string" || !hasReceipt) {
    throw new BadInput("the manifest does not name the run, its time and its last receipt");
  }
  if (!isInteger(count)) throw new BadInput("the manifest does not count the run's actions");
  return {
    runId,
    head,
    createdAt,
    numActions: count,
    finalReceiptHash: final ?? null,
    policyVerdict: get("policy_verdict"),
    isProved: type === PROOF_TYPE,
    files,
  };
}

/** `proof.json` and `commitments.json`, which follow from the seal of the run. */
function sealDocuments(seal: RunSeal, head: Head): Map<string, Uint8Array> {
  const number = (value: Count) => new JsonNumber(String(value));
  const { statement, gates } = seal;
  const one = (named: Head): Json => new Map<string, Json>([["chain", named.chain], ["count", number(named.count)], ["hash", named.hash]]);
  const proof = new Map<string, Json>([["v", number(1)], ["proof_type", null], ["statement", null], ["constraints", null]]);
  const commitments = new Map<string, Json>([
    ["v", number(1)],
    ["rows", null],
    ["capsules", one(head)],
    ["gates", gates === null ? null : one(gates)],
  ]);
  if (statement !== null) {
    proof.set("proof_type", PROOF_TYPE);
    proof.set("statement", statementFields(statement));
    proof.set("constraints", new Map(Object.entries(CONSTRAINTS)));
    commitments.set(
      "rows",
      new Map<string, Json>([
        ["air_id", AIR_ID],
        ["tree", "rfc6962"],
        ["hash", "sha256"],
        ["row_width", number(ROW_WIDTH)],
        ["count", number(statement.numActions)],
        ["root", statement.rowRoot],
      ]),
    );
  }
  return new Map([
    [PROOF, encoder.encode(dumpDocument(proof))],
    [COMMITMENTS, encoder.encode(dumpDocument(commitments))],
  ]);
}

/** The verdict on a sealed run. `files` are its members, which may be incomplete or hostile. */
export async function judgeFiles(name: string, files: Archive, options: VerifyOptions, examiners: Examiner[]): Promise<Verdict> {
  const archive = new Tally();
  archive.countDone(ARCHIVE_CHECK);
  let tally = new Tally();
  const fail = (code: string, words: string) => archive.fail(ARCHIVE_CHECK, code, words, place(null, null, MANIFEST));
  let found: { manifest: Manifest; raw: Uint8Array } | null = null;
  try {
    const raw = readSmall(files, MANIFEST, SMALL_FILE_MAX);
    if (raw === null) fail("ARTIFACT_MISSING", "there is no manifest");
    else {
      let data: Json = null;
      const manifest = readExactly(raw, "the manifest", (given) => readManifest((data = given)), () => dumpDocument(data));
      if (manifest.head.chain !== runChain(manifest.runId)) fail("CHAIN_IDENTITY", "the manifest names a chain that is not the run's");
      found = { manifest, raw };
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    fail(error.code, error.message);
  }
  if (found !== null) tally = await new RunFilesJudge(files, found.manifest, found.raw, options, archive).judge(examiners);
  tally.merge(archive);
  tally.skip("meta", "only this run was verified, not the ledger it is from", { matters: false });
  return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS, ARCHIVE_CHECK]);
}

/** Judges the files against the manifest. Findings about the files themselves go to `archive`. */
class RunFilesJudge {
  private readonly files: Archive;
  private readonly manifest: Manifest;
  private readonly raw: Uint8Array;
  private readonly options: VerifyOptions;
  private readonly archive: Tally;
  private readonly rules: Rules;
  private readonly needs = new EvidenceNeeds();
  private readonly reader: RunFilesReader;

  constructor(files: Archive, manifest: Manifest, raw: Uint8Array, options: VerifyOptions, archive: Tally) {
    this.files = files;
    this.manifest = manifest;
    this.raw = raw;
    this.options = options;
    this.archive = archive;
    const retired = retirementsByTime(options.ring, options.ed25519);
    this.rules = plainRules(options.ring, options.ed25519, { retired, requirePq: options.requirePq ?? false });
    this.reader = new RunFilesReader(manifest.head);
  }

  async judge(examiners: Examiner[]): Promise<Tally> {
    const here = [...this.files.members.keys()];
    const expected = MEMBER_ORDER.filter((name) => [MANIFEST, HEAD].includes(name) || this.manifest.files.has(name));
    for (const name of expected) if (!here.includes(name)) this.fail("ARTIFACT_MISSING", `${name} is not here`, name);
    for (const name of here) if (!expected.includes(name)) this.fail("SCHEMA_INVALID", `${name} is no part of this run`, name);
    const inOrder = expected.filter((name) => here.includes(name)).join();
    if (!this.files.isPlain || here.filter((name) => expected.includes(name)).join() !== inOrder) {
      this.fail("NOT_CANONICAL", "the archive is not packed as Aver packs it", MANIFEST);
    }
    const tally = await this.judgeRun();
    await this.prefetch(EVIDENCE_FILE);
    tally.merge(judgeEvidence(this.files, this.needs, this.reader, this.rules));
    await this.examine(examiners, tally);
    for (const [name, { sha256, size }] of this.manifest.files) {
      const file = this.files.members.get(name);
      if (file === undefined) continue;
      if (sha256Hex(file) !== sha256 || !equalJson(size, new JsonNumber(String(file.length)))) {
        this.fail("ARTIFACT_HASH_MISMATCH", "the file has other bytes than the manifest says", name);
      }
    }
    this.checkHead();
    return tally;
  }

  private fail(code: string, words: string, name: string): void {
    this.archive.fail(ARCHIVE_CHECK, code, words, place(null, null, name));
  }

  /** Ask the platform about the signatures of a file's lines before they are judged one by one. */
  private async prefetch(name: string): Promise<void> {
    const records: Sealed[] = [];
    for (const raw of readOwnLines(this.files.members.get(name) ?? new Uint8Array(), CAPSULE_LINE_MAX)) {
      try {
        if (!(raw instanceof BadInput)) records.push(readCapsuleLine(readJson(raw)).rebuild(null));
      } catch (error) {
        if (!(error instanceof BadInput)) throw error; // Reported when the line is judged.
      }
    }
    await this.options.ed25519.prefetch(records.flatMap((record) => [...ChainJudge.questions(this.rules, record)]));
  }

  private async judgeRun(): Promise<Tally> {
    const { manifest } = this;
    const tally = new Tally();
    const judge = new RunJudge(this.rules, manifest.runId, manifest.head);
    await this.prefetch(CAPSULES);
    const last = this.takeLines(judge);
    const { records, capsules, ending } = judge.finish({ isComplete: true });
    for (const part of [records, capsules, ending]) tally.merge(part);
    if (manifest.head.count !== judge.count || manifest.head.hash !== judge.head) {
      const words = `the manifest says ${manifest.head.count} capsules, or another head; ${judge.count} are here`;
      this.fail("TRUNCATED", words, MANIFEST);
    }
    const { seal } = judge;
    if (seal === null) return tally;
    const isSame =
      manifest.numActions.value === seal.numActions &&
      manifest.finalReceiptHash === seal.finalReceiptHash &&
      manifest.policyVerdict === seal.policyVerdict &&
      manifest.isProved === (seal.statement !== null);
    if (last !== null && (!isSame || manifest.createdAt !== last.signed_at)) {
      this.fail("ROLLBACK", "the manifest says something else than the run's seal", MANIFEST);
    }
    for (const [name, document] of sealDocuments(seal, manifest.head)) {
      const raw = readSmall(this.files, name, SMALL_FILE_MAX);
      if (raw !== null && !areSameBytes(raw, document)) this.fail("PROOF_INVALID", "it says something else than the run's seal", name);
    }
    return tally;
  }

  /** Judge actions and capsules side by side. Returns the last record of the run's chain. */
  private takeLines(judge: RunJudge): Sealed | null {
    const { chain } = this.manifest.head;
    const nothing = new Uint8Array();
    const actions = judge.receipts.takeAll(readOwnLines(this.files.members.get(ACTIONS) ?? nothing, ACTION_LINE_MAX));
    let last: Sealed | null = null;
    let unreadable = 0;
    let number = 0;
    for (const raw of readOwnLines(this.files.members.get(CAPSULES) ?? nothing, CAPSULE_LINE_MAX)) {
      number++;
      if (judge.stopsReading()) break;
      let capsule: CapsuleLine;
      let line: ActionLine | null;
      try {
        if (raw instanceof BadInput) throw raw;
        capsule = readCapsuleLine(readJson(raw));
        // The line of an action is needed to rebuild its capsule.
        line = capsule.hasAction && capsule.chain === chain ? (actions.next().value ?? null) : null;
      } catch (error) {
        if (!(error instanceof BadInput)) throw error;
        this.fail("SCHEMA_INVALID", `line ${number}: ${error.message}`, CAPSULES);
        if (++unreadable > UNREADABLE_MAX) {
          this.fail("NOT_READ", REST_UNREAD, CAPSULES);
          break;
        }
        continue;
      }
      const text = line === null ? null : sealForm(line.action, line.texts);
      const record = capsule.rebuild(text);
      if (capsule.chain === chain) {
        judge.take(record, line, text);
        last = record;
        continue;
      }
      judge.takeGateRecord(record, { isOwn: judge.seal?.gates?.chain === capsule.chain });
      // A record that is no JSON at all raises here, and ends the verification: nobody wrote such a file by mistake.
      this.needs.add(record);
      this.reader.addRecord(record, { hasAction: capsule.hasAction });
      if (this.reader.chains.size > CHAINS_MAX) {
        this.fail("NOT_READ", `it has records of more than ${CHAINS_MAX} chains; the rest was not read`, CAPSULES);
        break;
      }
    }
    while (!actions.next().done); // Lines after the last capsule of an action.
    return last;
  }

  /** Examine the records of the gate and of approvals. */
  private async examine(examiners: Examiner[], tally: Tally): Promise<void> {
    const gates = this.reader.select("gate").slice(0, EXAMINED_MAX);
    const names = [...gates, ...this.reader.select("approvals", "approvers")];
    const chains: ExaminedChain[] = names.map((name) => ({ name, origin: name, count: this.reader.chains.get(name)?.count ?? 0 }));
    const reader = new ValidRecords(this.reader, this.rules, new Map(names.map((name) => [name, name])), new Set(tally.doubtful));
    const { ledger, tenant } = this.manifest.head;
    const isComplete = this.manifest.files.has(EVIDENCE_FILE);
    await examine(examiners, { reader, rules: this.rules, ledger, tenant, chains, isComplete, isSingle: true }, tally);
  }

  private checkHead(): void {
    const { manifest } = this;
    let raw: Uint8Array | null;
    let statement: Statement;
    try {
      raw = readSmall(this.files, HEAD, SMALL_FILE_MAX);
      if (raw === null) return; // Reported with the members.
      statement = readExactly(raw, "the head", (data) => readStatement(data, "head"), (found) => dumpDocument(signedFields(found)));
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.fail(error.code, error.message, HEAD);
      return;
    }
    const number = (value: Count) => new JsonNumber(String(value));
    const content = new Map<string, Json>([
      ["v", number(1)],
      ["run_id", manifest.runId],
      ["ledger", manifest.head.ledger],
      ["tenant", manifest.head.tenant],
      ["chain", manifest.head.chain],
      ["count", number(manifest.head.count)],
      ["hash", manifest.head.hash],
      ["num_actions", manifest.numActions],
      ["final_receipt_hash", manifest.finalReceiptHash],
      ["manifest_sha256", sha256Hex(this.raw)],
    ]);
    if (statement.purpose !== "cap" || !equalJson(statement.content, content)) {
      this.fail("ARTIFACT_HASH_MISMATCH", "the head that was signed is not that of this manifest", HEAD);
    }
    const results = checkStatement(statement, this.rules.ring, this.rules.ed25519);
    if (!results.length) this.fail("SIG_MISSING", "the head is not signed", HEAD);
    for (const { by, key, outcome } of results) {
      const role = key === null ? null : roleOf(this.rules, key);
      const retired = key === null ? null : (this.rules.retired.get(key.ed25519)?.retiredAt ?? null);
      if (outcome === "unknown") {
        const words = `the head was signed by ${by}, whose key is not known here`;
        this.archive.add({ check: "signature", status: "not_checked", code: "UNKNOWN_SIGNER", words, place: place(null, null, HEAD) });
      } else if (outcome !== "valid") this.fail("SIG_INVALID", `the signature of the head is not ${by}'s`, HEAD);
      else if (role !== null && !role.mayAttest) {
        this.fail("KEY_MISMATCH", `${by}, who signed the head, is a key of ${role}; only the ledger's key may`, HEAD);
      } else if (retired !== null && manifest.createdAt > retired) {
        this.fail("KEY_RETIRED", `${by}, who signed the head, was retired before`, HEAD);
      }
    }
  }
}
