/** A run as a trace, statements about it, and their proofs. The twin of `aver.actions.proofs`. */

import { canonicalJson } from "../canonical.ts";
import { HEX64, fromHex, sha256Hex, toHex } from "../digest.ts";
import { BadInput, type Json, JsonNumber, isInteger, isObject } from "../json.ts";
import { MerkleTree, leafHash, rootFromPath } from "../merkle.ts";
import { ACTION_TYPES, type AgentAction, type EncodedAction, RECEIPT_KEY_COUNT, encodeAction } from "./action.ts";

export const AIR_ID = "aver_agent_air_v1";
export const ROW_WIDTH = 55;
export const CONSTRAINTS: Record<string, string[]> = {
  row: ["booleans", "passed_only_if_gated", "enforced_only_if_passed", "parent_only_if_linked"],
  transition: ["next_index", "next_parent_is_receipt", "next_has_parent"],
  boundary: ["first_index_is_zero", "first_has_no_parent", "last_receipt_is_final", "last_index_is_count"],
};
const PATH_MAX = 64;
const NO_PARENT = "0".repeat(64);

/** The row of an action: its numbers in order, hashes as hex. */
interface TraceRow {
  index: number;
  hasParent: boolean;
  parent: string;
  receipt: string;
  leaf: Uint8Array;
}

function buildRow(index: number, action: AgentAction, texts: EncodedAction): TraceRow {
  const parent = action.parent_receipt_hash;
  const isPassed = action.gate_decision === "pass" || action.gate_decision === "human_approved";
  // The fields that the receipt does not cover.
  const rest = sha256Hex(`{"metadata":${texts.metadata},"policy_verdict":${canonicalJson(action.policy_verdict)}}`);
  const data = new Uint8Array(8 * ROW_WIDTH);
  const view = new DataView(data.buffer);
  let column = 0;
  const put = (value: number) => view.setBigUint64(8 * column++, BigInt(value));
  put(index);
  put(1 + ACTION_TYPES.indexOf(action.action_type));
  for (const hash of [action.instruction_hash, action.input_hash, action.output_hash, parent ?? NO_PARENT, texts.receiptHash, rest]) {
    const bytes = new DataView(fromHex(hash).buffer);
    for (let limb = 0; limb < 8; limb++) put(bytes.getUint32(4 * limb));
  }
  put(Number(parent !== null));
  put(Number(action.success));
  put(Number(action.gate_decision !== null));
  put(Number(isPassed));
  put(Number(isPassed && action.policy_verdict === "POLICY_ENFORCED"));
  return { index, hasParent: parent !== null, parent: parent ?? NO_PARENT, receipt: texts.receiptHash, leaf: leafHash(data) };
}

/** Takes the actions of a run in order; computes the root of their rows and finds the first broken equation. */
export class Trace {
  count = 0;
  private problem: string | null = null;
  private readonly tree = new MerkleTree();
  private last: TraceRow | null = null;

  take(action: AgentAction, texts: EncodedAction): void {
    const row = buildRow(this.count, action, texts);
    const broken = this.problem === null ? brokenConstraint(this.last, row) : null;
    if (broken !== null) this.problem = `${broken}, row ${this.count}`;
    this.last = row;
    this.tree.add(row.leaf);
    this.count++;
  }

  get root(): string {
    return toHex(this.tree.root);
  }

  /** The first equation that does not hold, including those at the end; null if all hold. */
  problemAtEnd(count: number, finalReceipt: string): string | null {
    if (this.problem !== null) return this.problem;
    if (this.last === null || this.last.index !== count - 1) return `last_index_is_count, ${this.count} rows`;
    return this.last.receipt === finalReceipt ? null : `last_receipt_is_final, row ${this.count - 1}`;
  }
}

/** The equation that a row breaks, alone or together with the row before. Its flags are flags by construction. */
function brokenConstraint(before: TraceRow | null, row: TraceRow): string | null {
  if (before === null) return row.hasParent ? "first_has_no_parent" : null;
  if (row.parent !== before.receipt) return "next_parent_is_receipt";
  return row.hasParent ? null : "next_has_parent";
}

export interface RunStatement {
  runId: string;
  numActions: number;
  finalReceiptHash: string;
  rowRoot: string;
}

const FIXED: [string, Json][] = [
  ["air_id", AIR_ID],
  ["field", "goldilocks"],
  ["row_width", new JsonNumber(String(ROW_WIDTH))],
  ["receipt_keys", new JsonNumber(String(RECEIPT_KEY_COUNT))],
];

export function statementFields(statement: RunStatement): Json {
  return new Map<string, Json>([
    ...FIXED,
    ["run_id", statement.runId],
    ["num_actions", new JsonNumber(String(statement.numActions))],
    ["final_receipt_hash", statement.finalReceiptHash],
    ["row_root", statement.rowRoot],
  ]);
}

/** Read a statement. Raises `BadInput` if it is of another type or version. */
export function readRunStatement(data: Json | undefined): RunStatement {
  const names = ["run_id", "num_actions", "final_receipt_hash", "row_root"];
  const all = [...FIXED.map(([name]) => name), ...names];
  if (!isObject(data) || data.size !== all.length || !all.every((name) => data.has(name))) {
    throw new BadInput("a statement about a run has other keys");
  }
  for (const [name, value] of FIXED) {
    const here = data.get(name);
    const isSame = value instanceof JsonNumber ? isInteger(here) && here.text === value.text : here === value;
    if (!isSame) throw new BadInput(`the statement's ${name} is another`);
  }
  const [runId, count, final, root] = names.map((name) => data.get(name));
  if (typeof runId !== "string" || !isInteger(count) || count.value < 1) {
    throw new BadInput("a statement names a run and how many actions it has");
  }
  if (typeof final !== "string" || typeof root !== "string" || !HEX64.test(final) || !HEX64.test(root)) {
    throw new BadInput("a statement's receipt and root are 64 lower-case hex digits");
  }
  return { runId, numActions: count.value, finalReceiptHash: final, rowRoot: root };
}

/** Why a trace of all actions does not prove the statement; null if it does. */
export function traceProblem(statement: RunStatement, trace: Trace): string | null {
  if (trace.count !== statement.numActions) {
    return `the statement is about ${statement.numActions} actions; there are ${trace.count}`;
  }
  const broken = trace.problemAtEnd(statement.numActions, statement.finalReceiptHash);
  if (broken !== null) return `a constraint does not hold: ${broken}`;
  return trace.root === statement.rowRoot ? null : "the rows have another root than the statement says";
}

/** Why an action with a Merkle path is not proved to be in the run; null if it is. */
export function inclusionProblem(statement: RunStatement, index: number, action: AgentAction, path: Json[]): string | null {
  if (path.length > PATH_MAX || !path.every((step) => typeof step === "string" && HEX64.test(step))) return "the path is not one";
  if (!(index >= 0 && index < statement.numActions)) return `the run has no place ${index}`;
  const texts = encodeAction(action);
  const { leaf } = buildRow(index, action, texts);
  const root = rootFromPath(leaf, index, statement.numActions, path.map((step) => fromHex(step as string)));
  if (root === null || toHex(root) !== statement.rowRoot) return `the action does not lead to the run's root from place ${index}`;
  // The statement names only the last receipt, so only the last action can be compared with it.
  const isLast = index === statement.numActions - 1;
  return isLast && texts.receiptHash !== statement.finalReceiptHash
    ? "the last action has another receipt than the statement says"
    : null;
}
