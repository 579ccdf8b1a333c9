/** The `.cap` files of the public CapSeal tool. The twin of `aver.actions.capseal_files`; the best verdict is `qualified`. */

import { MemorySource } from "../bytes.ts";
import { fromHex, sha256Bytes, sha256Hex, toHex } from "../digest.ts";
import { readElements } from "../elements.ts";
import { BadInput, ELEMENT_MAX, type Json, JsonNumber, equalJson, isObject, readJson, type JsonObject } from "../json.ts";
import type { VerifyOptions } from "../options.ts";
import { CHECKS, RUN_CHECKS, Tally, type Verdict, conclude, place } from "../verdict.ts";
import { ACTION_LINE_MAX, type AgentAction, actionFields, readRawLines } from "./action.ts";
import { type Archive, readSmall } from "./archive.ts";
import { dumpSpaced } from "../documents.ts";
import { EVIDENCE_FILE } from "./evidence.ts";
import { ARCHIVE_CHECK, SMALL_FILE_MAX } from "./files.ts";
import { ReceiptJudge } from "./judge.ts";

const MANIFEST = "manifest.json";
const ACTIONS = "actions.jsonl";
const ACTIONS_JSON = "actions.json";
const CAPSULE = "agent_capsule.json";
const PROOF = "proof.json";
const METADATA = "run_metadata.json";
const ROWS = "row_archive/rows.json";
const LEVELS = "row_archive/merkle_levels.json";
export const CAPSEAL_MEMBERS = new Set([MANIFEST, ACTIONS, ACTIONS_JSON, CAPSULE, PROOF, METADATA, ROWS, LEVELS]);
const AVER_ONLY = ["head.json", "capsules.jsonl", "commitments.json", EVIDENCE_FILE];
const MODULUS = 2n ** 64n - 2n ** 32n + 1n;
const LEAVES_COMPARED_MAX = 200_000;

function readDocument(archive: Archive, name: string): Json | undefined {
  const raw = readSmall(archive, name, name === CAPSULE ? ELEMENT_MAX : SMALL_FILE_MAX);
  return raw === null ? undefined : readJson(raw);
}

/** Whether an archive was written by the CapSeal tool. One with a file that only Aver writes never was. */
export function isCapseal(archive: Archive): boolean {
  if (AVER_ONLY.some((name) => archive.members.has(name))) return false;
  if (archive.members.has(CAPSULE)) return true;
  try {
    const manifest = readDocument(archive, MANIFEST);
    return isObject(manifest) && ["run_cap_v1", "agent_cap_v1"].includes(manifest.get("schema") as string);
  } catch (error) {
    if (error instanceof BadInput) return false;
    throw error;
  }
}

/** The verdict on an archive of the CapSeal tool. */
export async function judgeCapseal(name: string, archive: Archive, _options: VerifyOptions): Promise<Verdict> {
  const judge = new CapsealJudge(archive);
  await judge.judge();
  const { tally, receipts } = judge;
  tally.records = receipts.count;
  receipts.finish();
  tally.skip("signature", "the public tool's format has no signatures: anyone can make such a file", { matters: true });
  tally.skip("sealed", "nothing is sealed in this format, and metadata are not bound", { matters: true });
  tally.skip("gates", "the gate's decisions are not recorded in this format", { matters: true });
  return conclude(name, tally, "signature", [...CHECKS, ...RUN_CHECKS, ARCHIVE_CHECK]);
}

function limbs(digest: string): bigint[] {
  const view = new DataView(fromHex(digest).buffer);
  return [view.getBigUint64(0, true) % MODULUS, view.getBigUint64(8, true) % MODULUS];
}

function buildRow(index: number, action: AgentAction, receipt: string): bigint[] {
  const flags =
    Number(action.success) |
    (Number(action.gate_decision !== "skip") << 1) |
    (Number(action.gate_score !== null) << 2) |
    (Number(action.policy_verdict !== null) << 3) |
    (Number(action.action_type === "tool_call") << 4) |
    (Number(action.action_type === "code_gen") << 5);
  const hashes = [sha256Hex(action.action_type), action.instruction_hash, action.input_hash, action.output_hash];
  const parent = action.parent_receipt_hash === null ? [0n, 0n] : limbs(action.parent_receipt_hash);
  return [BigInt(index), ...hashes.flatMap(limbs), ...parent, ...limbs(receipt), BigInt(flags)];
}

function hashRow(row: bigint[]): Uint8Array {
  const data = new Uint8Array(8 + 16 * row.length);
  const view = new DataView(data.buffer);
  view.setBigUint64(0, row[0] as bigint);
  row.forEach((value, at) => view.setBigUint64(8 + 16 * at + 8, value));
  return sha256Bytes(data);
}

/** The levels of the tool's tree, leaves first. An odd last node is paired with itself. */
function buildLevels(leaves: Uint8Array[]): Uint8Array[][] {
  const levels = [leaves];
  for (let level = leaves; level.length > 1; levels.push(level)) {
    const above: Uint8Array[] = [];
    for (let at = 0; at < level.length; at += 2) {
      const pair = new Uint8Array(64);
      pair.set(level[at] as Uint8Array);
      pair.set((level[at + 1] ?? level[at]) as Uint8Array, 32);
      above.push(sha256Bytes(pair));
    }
    level = above;
  }
  return levels;
}

/** Reads an array one element after the other; a finding says so where it is missing or invalid. */
class ArrayFile {
  private items: Json[] = [];
  private error: BadInput | null = null;
  private at = 0;
  private isReported = false;
  private readonly report: (code: string, words: string) => void;
  private readonly isMissing: boolean;

  private constructor(isMissing: boolean, report: (code: string, words: string) => void) {
    this.isMissing = isMissing;
    this.report = report;
  }

  static async open(data: Uint8Array | undefined, report: (code: string, words: string) => void): Promise<ArrayFile> {
    const file = new ArrayFile(data === undefined, report);
    if (data === undefined) return file;
    for await (const { items, error } of readElements(new MemorySource(data))) {
      for (const item of items) if ("value" in item) file.items.push(item.value);
      file.error = error;
    }
    return file;
  }

  next(): Json | undefined {
    if (this.at < this.items.length) return this.items[this.at++];
    if (!this.isReported) {
      this.isReported = true;
      if (this.isMissing) this.report("ARTIFACT_MISSING", "it is not here");
      else if (this.error !== null) this.report("SCHEMA_INVALID", this.error.message);
    }
    return undefined;
  }
}

class MissingKeys extends BadInput {}

class CapsealJudge {
  readonly tally = new Tally();
  readonly receipts = new ReceiptJudge(this.tally, { source: ACTIONS });
  private readonly archive: Archive;
  private readonly leaves: Uint8Array[] = [];

  constructor(archive: Archive) {
    this.archive = archive;
  }

  async judge(): Promise<void> {
    this.tally.countDone(ARCHIVE_CHECK);
    if (this.archive.members.has(ACTIONS)) await this.judgeLines();
    else this.fail("ARTIFACT_MISSING", "there are no actions with receipts", ACTIONS);
    this.checkDocument(MANIFEST, (data) => this.checkManifest(data));
    this.checkDocument(CAPSULE, (data) => this.checkCapsule(data));
    this.checkDocument(PROOF, (data) => this.checkProof(data));
    if (this.archive.members.has(METADATA)) this.checkDocument(METADATA, (data) => this.checkMetadata(data));
    if (this.archive.members.has(LEVELS)) await this.checkLevels();
  }

  private checkDocument(name: string, check: (data: Json) => void): void {
    try {
      const document = readDocument(this.archive, name);
      // A document that is null is none, as Python's reader says.
      if (document === undefined || document === null) this.fail("ARTIFACT_MISSING", `${name} is not here`, name);
      else check(document);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.fail("SCHEMA_INVALID", error.message, name);
    }
  }

  private fail(code: string, words: string, name: string, check = ARCHIVE_CHECK): void {
    this.tally.fail(check, code, words, place(null, null, name));
  }

  private async judgeLines(): Promise<void> {
    const open = (name: string) =>
      ArrayFile.open(this.archive.members.get(name), (code, words) => this.fail(code, words, name));
    const listed = await open(ACTIONS_JSON);
    const rows = await open(ROWS);
    const lines = readRawLines(this.archive.members.get(ACTIONS) as Uint8Array, ACTION_LINE_MAX);
    for (const line of this.receipts.takeAll(lines)) {
      const beside = listed.next(); // Advance also for an unreadable line, so that the files stay aligned.
      if (line === null) continue;
      const row = buildRow(this.leaves.length, line.action, line.receiptHash);
      this.leaves.push(hashRow(row));
      const expected = row.map((value) => new JsonNumber(String(value)));
      if (!equalJson(rows.next(), expected)) this.fail("PROOF_INVALID", `row ${row[0]} is not that of its action`, ROWS, "proof");
      if (!equalJson(beside, actionFields(line.action))) {
        this.fail("RECEIPT_MISMATCH", `action ${this.receipts.count - 1} is another one than in ${ACTIONS}`, ACTIONS_JSON);
      }
    }
    for (const [name, file] of [[ACTIONS_JSON, listed], [ROWS, rows]] as const) {
      const more = file.next();
      if (more !== undefined && more !== null) this.fail("TRUNCATED", `it has more entries than ${ACTIONS}`, name);
    }
  }

  private checkManifest(manifest: Json): void {
    if (!isObject(manifest)) throw new BadInput("it is not an object");
    const last = this.receipts.lastReceipt;
    const expected: [string, Json][] = [["chain_hash", last], ["root_hex", last], ["actions_count", this.count]];
    for (const [key, value] of expected) {
      if (manifest.has(key) && !equalJson(manifest.get(key), value)) {
        this.fail("TRUNCATED", `its ${key} is not that of the actions`, MANIFEST);
      }
    }
  }

  private checkCapsule(capsule: Json): void {
    const whole = member(capsule);
    const own = new Map([...whole].filter(([key]) => key !== "capsule_hash"));
    const statement = get(whole, "statement");
    if (get(whole, "capsule_hash") !== sha256Hex(dumpSpaced(own)) || get(whole, "statement_hash") !== sha256Hex(dumpSpaced(statement))) {
      this.fail("HASH_MISMATCH", "its hashes are not its own", CAPSULE);
    }
    const inputs = member(get(member(statement), "public_inputs"));
    if (!equalJson(get(inputs, "num_actions"), this.count) || !equalJson(get(inputs, "final_receipt_hash"), this.receipts.lastReceipt)) {
      this.fail("TRUNCATED", "it is about other actions", CAPSULE);
    }
    const root = this.rowRoot;
    if (get(member(statement), "row_commitment") !== root || get(member(get(whole, "commitment")), "row_root") !== root) {
      this.fail("PROOF_INVALID", "its root is not that of the rows", CAPSULE, "proof");
    }
    const proof = readSmall(this.archive, PROOF, SMALL_FILE_MAX) ?? new Uint8Array();
    if (get(member(get(whole, "proof")), "proof_hash") !== sha256Hex(proof)) {
      this.fail("ARTIFACT_HASH_MISMATCH", "it has the hash of another proof.json", CAPSULE, "proof");
    }
  }

  private checkProof(proof: Json): void {
    this.tally.countDone("proof", this.receipts.count);
    const whole = member(proof);
    const isGood = get(whole, "air_id") === "agent_air_v1" && get(member(get(whole, "constraint_verification")), "valid") === true;
    if (!isGood) this.fail("PROOF_INVALID", "it does not say that the constraints hold", PROOF, "proof");
    if (
      get(member(get(whole, "commitment")), "row_root") !== this.rowRoot ||
      !equalJson(get(member(get(whole, "statement")), "num_actions"), this.count)
    ) {
      this.fail("PROOF_INVALID", "it is about other rows", PROOF, "proof");
    }
  }

  private checkMetadata(metadata: Json): void {
    const whole = member(metadata);
    const expected: [string, Json][] = [["num_actions", this.count], ["final_receipt_hash", this.receipts.lastReceipt]];
    for (const [key, value] of expected) {
      if (whole.has(key) && !equalJson(whole.get(key), value)) this.fail("TRUNCATED", `its ${key} is not that of the actions`, METADATA);
    }
  }

  private async checkLevels(): Promise<void> {
    if (this.leaves.length > LEAVES_COMPARED_MAX) {
      this.tally.skip("proof", `${LEVELS} was not compared: more than ${LEAVES_COMPARED_MAX} leaves`, { matters: false });
      return;
    }
    const expected: Json[] = buildLevels(this.leaves).map((level) => level.map(toHex));
    const file = await ArrayFile.open(this.archive.members.get(LEVELS), (code, words) => this.fail(code, words, LEVELS));
    const levels: Json[] = [];
    for (let level = file.next(); level !== undefined; level = file.next()) levels.push(level);
    if (!equalJson(levels, expected)) this.fail("PROOF_INVALID", "it is not the tree over the rows", LEVELS, "proof");
  }

  private get count(): Json {
    return new JsonNumber(String(this.receipts.count));
  }

  private get rowRoot(): string {
    const top = buildLevels(this.leaves).at(-1)?.[0];
    return top === undefined ? sha256Hex("empty") : toHex(top);
  }
}

function member(value: Json): JsonObject {
  if (!isObject(value)) throw new MissingKeys("it lacks keys that the tool writes");
  return value;
}

function get(data: JsonObject, key: string): Json {
  const value = data.get(key);
  if (value === undefined) throw new MissingKeys("it lacks keys that the tool writes");
  return value;
}
