/**
 * Judge a run record by record: its receipts, its capsules, its gate decisions and its proof. The twin of
 * `aver.actions.verify_run`, whose text says what each check means.
 */

import { readBlock, readKind } from "../block.ts";
import { canonicalJson } from "../canonical.ts";
import { ChainJudge, REST_UNREAD, type Rules, UNREADABLE_MAX } from "../chain.ts";
import { type Head, equalHeads } from "../heads.ts";
import { BadInput, type JsonObject, encoder, isObject } from "../json.ts";
import type { Sealed } from "../sealed.ts";
import { type Count, Tally, place } from "../verdict.ts";
import { type ActionLine, type AgentAction, RECEIPT_KEY_COUNT, hasZone, readActionLine } from "./action.ts";
import {
  ACTION_KIND,
  type GateReference,
  OPEN_KIND,
  type RecordedDecision,
  type RunSeal,
  SEAL_KIND,
  compareWithDecision,
  isTrue,
  readDecision,
  readRunSeal,
  readSealedAction,
} from "./capsules.ts";
import { Trace, traceProblem } from "./trace.ts";

const ACTIONS_MAX = 1_000_000;
const DECISIONS_MAX = 200_000;
/** Most bytes that the lists of files in actions and decisions may have together. */
const FILES_BYTES_MAX = 32 * 1024 * 1024;
const VERDICT_RANK = new Map<string | null, number>([[null, 0], ["PROOF_ONLY", 1], ["POLICY_ENFORCED", 2], ["FULLY_VERIFIED", 3]]);

interface GatedAction {
  number: number;
  action: AgentAction;
  mark: GateReference;
  isFirstUse: boolean;
}

/** The findings, in the order of their report. */
interface RunTallies {
  records: Tally;
  capsules: Tally;
  ending: Tally;
}

/** Judges lines in order: receipts and parents. */
export class ReceiptJudge {
  readonly tally: Tally;
  readonly trace = new Trace();
  readonly keys = new Set<number>();
  count = 0;
  lastReceipt: string | null = null;
  private readonly chain: string | null;
  private readonly source: string | null;
  private readonly ids = new Set<string>();
  private last: ActionLine | null = null;
  private unreadable = 0;
  private unzoned = 0;

  constructor(tally: Tally, { chain = null, source = null }: { chain?: string | null; source?: string | null }) {
    this.tally = tally;
    this.chain = chain;
    this.source = source;
  }

  /** Judge the next line. Returns it if it could be read. */
  take(raw: Uint8Array | BadInput): ActionLine | null {
    const { last } = this;
    let line: ActionLine | null = null;
    try {
      if (raw instanceof BadInput) throw raw;
      line = readActionLine(raw);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.unreadable++;
      this.fail("receipts", error.code, error.message);
    }
    if (line !== null) {
      const { action } = line;
      this.keys.add(line.keys);
      if (!hasZone(action.timestamp)) this.unzoned++;
      if (line.problem !== null) this.fail("receipts", "RECEIPT_MISMATCH", line.problem, action);
      if (this.ids.has(action.action_id)) this.fail("parents", "DUPLICATE_RECORD", "an action before it has the same id", action);
      this.ids.add(action.action_id);
      if (this.count === 0) {
        if (action.parent_receipt_hash !== null || action.parent_action_id !== null) {
          this.fail("parents", "GENESIS_INVALID", "the first action names a parent", action);
        }
      } else if (last === null) {
        // The line before it cannot be read, and that is reported.
      } else if (action.parent_receipt_hash !== last.receiptHash) {
        this.fail("parents", "CHAIN_BREAK", "its parent's receipt is not that of the action before", action);
      } else if (action.parent_action_id !== last.action.action_id) {
        this.fail("parents", "CHAIN_BREAK", "its parent's id is not that of the action before", action);
      }
      this.lastReceipt = line.receiptHash;
      if (line.keys === RECEIPT_KEY_COUNT && line.problem === null) this.trace.take(action, line.texts);
    }
    this.last = line;
    this.count++;
    return line;
  }

  /** Judge lines one by one and yield each, or null for an unreadable one, until too many are unreadable. */
  *takeAll(lines: Iterable<Uint8Array | BadInput>): Generator<ActionLine | null> {
    for (const raw of lines) {
      yield this.take(raw);
      if (this.unreadable > UNREADABLE_MAX) {
        this.fail("receipts", "NOT_READ", REST_UNREAD);
        return;
      }
      if (this.count >= ACTIONS_MAX) {
        this.fail("receipts", "NOT_READ", `it has ${ACTIONS_MAX} actions or more; the rest was not read`);
        return;
      }
    }
  }

  /** Count the checks that were made. */
  finish(): void {
    if (!this.count) return;
    this.tally.countDone("receipts", this.count);
    this.tally.countDone("parents", this.count);
    const covered = [...this.keys].sort((one, other) => one - other).map((count) => `over ${count} keys`).join(" and ");
    const isOwn = this.keys.size === 1 && this.keys.has(RECEIPT_KEY_COUNT);
    const zones = this.unzoned ? `; ${this.unzoned} times without a zone` : "";
    this.tally.notes.set("receipts", `${this.count} checked, ${isOwn ? "over the protocol's 12 keys" : covered || "none"}${zones}`);
  }

  private fail(check: string, code: string, words: string, action: AgentAction | null = null): void {
    const named = action === null ? "" : ` (${action.action_id})`;
    const where = this.source ? `${this.source}, ` : "";
    this.tally.fail(check, code, words, place(this.chain, null, `${where}action ${this.count}${named}`));
  }
}

/** Judges a run's chain together with its lines. */
export class RunJudge {
  /** The findings of this room. */
  tally = new Tally();
  readonly receipts: ReceiptJudge;
  readonly capsules = new Tally();
  /** The hashes of the decisions that actions name and that were not taken yet, in that order. */
  readonly wanted = new Set<string>();
  count = 0;
  /** How many capsules of actions there are. */
  actions = 0;
  head: string | null = null;
  seal: RunSeal | null = null;
  /** How many calls waited for a person by a framework's own means, and how many went on after such a wait. */
  waiting = 0;
  waited = 0;
  private readonly name: string;
  private readonly rules: Rules;
  private readonly runId: string;
  private readonly identity: Head;
  private readonly isValid: boolean;
  private readonly judge: ChainJudge | null;
  private gateJudge: ChainJudge | null = null;
  private hasGateChain = false;
  private readonly gated: GatedAction[] = [];
  private unmarked = 0;
  private readonly enforced: boolean[] = [];
  private readonly decided = new Map<string, RecordedDecision>();
  private gateCount = 0;
  private gateHead: string | null = null;
  private filesLeft = FILES_BYTES_MAX;
  private isOverfull = false;

  /** `isValid`: the records were judged before, and each holds. */
  constructor(rules: Rules, runId: string, identity: Head, { storedAs = "", isValid = false } = {}) {
    this.rules = rules;
    this.runId = runId;
    this.identity = identity;
    this.isValid = isValid;
    this.name = storedAs || identity.chain;
    this.receipts = new ReceiptJudge(this.tally, { chain: this.name });
    this.judge = isValid ? null : this.newChainJudge(identity.chain);
  }

  private newChainJudge(chain: string): ChainJudge {
    const identity = { name: chain, ledger: this.identity.ledger, tenant: this.identity.tenant };
    return new ChainJudge(this.rules, { chain, identity, needsBlock: true });
  }

  /** Whether so many records cannot be read that the caller must stop. Then a finding says so. */
  stopsReading(): boolean {
    return (this.judge?.stopsReading() ?? false) || (this.gateJudge?.stopsReading() ?? false);
  }

  /** The content of a record that holds; null for another. */
  private static takeRecord(judge: ChainJudge | null, record: Sealed): JsonObject | null {
    if (judge === null) return record.content;
    const before = countFailures(judge.tally);
    const content = judge.judge(record);
    return countFailures(judge.tally) > before ? null : content;
  }

  /** Judge the next record of the chain. `text` is the sealed form of the action of `line`. */
  take(record: Sealed, line: ActionLine | null, text: string | null): void {
    const content = RunJudge.takeRecord(this.judge, record);
    const at = this.count;
    const before = this.head;
    this.count = at + 1;
    this.head = record.hash;
    if (content === null) return; // Reported.
    const kind = readKind(content);
    try {
      if (this.seal !== null) this.fail("sealed", "STATE_VIOLATION", "a record follows the run's seal", at);
      else if (kind === ACTION_KIND && at > 0) this.takeAction(content, line, text, at);
      else if (kind === SEAL_KIND && at > 0) this.takeSeal(content, at, before);
      else if (kind === OPEN_KIND && at === 0) {
        const result = (content.get("outcome") as JsonObject).get("result");
        const runId = result instanceof Map ? result.get("run_id") : undefined;
        if (runId === undefined) throw new BadInput("it lacks keys of a record of its kind");
        if (runId !== this.runId) this.fail("sealed", "CHAIN_IDENTITY", "the chain was opened for another run", at);
      } else this.fail("sealed", "STATE_VIOLATION", `a record of kind ${kind.slice(0, 40)} does not belong here`, at);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.fail("sealed", "SCHEMA_INVALID", error.message, at);
    }
  }

  private takeSeal(content: JsonObject, at: number, before: string | null): void {
    const { ledger, tenant, chain } = this.identity;
    const seal = readRunSeal(content, { ledger, tenant, chain });
    this.seal = seal;
    this.tally.countDone("sealed");
    if (seal.runId !== this.runId) this.fail("sealed", "CHAIN_IDENTITY", "the seal is of another run", at);
    if (!equalHeads(seal.head, { ledger, tenant, chain, count: at, hash: before })) {
      this.fail("sealed", "TRUNCATED", "the seal says another head of the chain than it has", at);
    }
  }

  private takeAction(content: JsonObject, line: ActionLine | null, text: string | null, at: number): void {
    this.actions++;
    if (this.receipts.count < this.actions) this.fail("sealed", "TRUNCATED", "there is no line for it", at);
    if (line === null || text === null) return; // The line cannot be read or is missing, and that is reported.
    let { action } = line;
    const { fields, receiptHash, gate: mark } = readSealedAction(content);
    if (canonicalJson(fields) !== text) {
      this.fail("sealed", "RECEIPT_MISMATCH", "the line is not the action that was sealed", at);
      return;
    }
    if (receiptHash !== line.receiptHash) this.fail("sealed", "RECEIPT_MISMATCH", "the capsule has another receipt than the line", at);
    if (action.metadata?.has("waiting")) this.waiting++;
    const refs = readBlock(content)?.get("refs");
    if (isObject(refs) && refs.has("waited")) this.waited++;
    this.enforced.push(action.policy_verdict === "POLICY_ENFORCED");
    const files = action.metadata?.get("files_affected");
    if (mark !== null) {
      if (this.canKeep(files, this.gated.length)) {
        const metadata = files === undefined || files === null ? null : new Map([["files_affected", files]]);
        action = { ...action, metadata };
        const isFirstUse = readBlock(content)?.get("key") === `gate-use:${mark.gateId}`;
        this.gated.push({ number: at - 1, action, mark, isFirstUse });
        this.wanted.add(mark.record);
      }
      return;
    }
    if (action.gate_decision !== null || action.gate_score !== null) this.unmarked++;
    if (action.policy_verdict === "POLICY_ENFORCED" || action.policy_verdict === "FULLY_VERIFIED") {
      this.fail("gates", "CLAIM_UNPROVEN", `it says ${action.policy_verdict}, but names no decision of the gate`, at);
    }
  }

  /** Whether one more action or decision, with the list of files in it, may stay in memory. If not, report it. */
  private canKeep(files: Parameters<typeof isTrue>[0], count: number): boolean {
    if (isTrue(files)) this.filesLeft -= encoder.encode(canonicalJson(files ?? null)).length;
    if (this.filesLeft >= 0 && count < DECISIONS_MAX) return true;
    if (!this.isOverfull) {
      this.isOverfull = true;
      const words = `it has more than ${DECISIONS_MAX} decisions, or ${FILES_BYTES_MAX} bytes of files in them`;
      this.tally.fail("gates", "NOT_READ", `${words}: the rest was not compared`, place(this.name));
    }
    return false;
  }

  /** Judge a record of the gate: the next of the run's own gate chain, or one of another chain. */
  takeGateRecord(record: Sealed, { isOwn }: { isOwn: boolean }): void {
    let content: JsonObject | null;
    if (isOwn && this.seal !== null && this.seal.gates !== null) {
      if (!this.hasGateChain) {
        this.hasGateChain = true;
        this.gateJudge = this.isValid ? null : this.newChainJudge(this.seal.gates.chain);
      }
      this.gateCount++;
      this.gateHead = record.hash;
      content = RunJudge.takeRecord(this.gateJudge, record);
    } else if (this.isValid) {
      content = record.content;
    } else {
      // A record of another session's chain, whose neighbours are not here.
      const judge = new ChainJudge(this.rules, { chain: record.chain, start: null, needsBlock: true });
      content = judge.judge(record);
      if (judge.tally.hasFailed()) content = null;
      this.capsules.merge(judge.finish());
      if (!this.wanted.has(record.hash)) {
        this.tally.fail("gates", "STATE_VIOLATION", "the run refers to no such record", place(record.chain));
      }
    }
    if (content !== null) {
      const decision = readDecision(content);
      if (decision === null) return; // Some other record of that chain, such as one that was put there by hand.
      if (this.canKeep(decision.files, this.decided.size)) this.decided.set(record.hash, decision);
    }
    this.wanted.delete(record.hash);
  }

  /** Compare actions with their decisions. Returns the numbers of the actions that no decision allows. */
  private checkDecisions(isComplete: boolean): Set<number> {
    const unproven = new Set<number>();
    const used = new Set<string>();
    let [observed, reported] = [0, 0];
    for (const { number, action, mark, isFirstUse } of this.gated) {
      const decided = this.decided.get(mark.record) ?? null;
      const problem = gateProblem(action, mark, decided, isFirstUse && !used.has(mark.record));
      used.add(mark.record);
      if (problem !== null || decided === null || !allows(decided) || decided.isObserved) unproven.add(number);
      if (decided?.isObserved) observed++;
      if (problem !== null) this.fail("gates", problem[0], `${action.action_id}: ${problem[1]}`, number + 1);
      else if (mark.hasClientAnswer && decided !== null) {
        reported++;
        const words = `${action.action_id}: only the client says that a person agreed`;
        this.tally.warn("gates", "UNCONFIRMED", words, place(this.name, number + 1));
      }
    }
    const count = this.gated.length;
    if (count) this.tally.countDone("gates", count);
    const approved = this.gated.filter(({ mark }) => mark.decision === "human_approved").length;
    const notes = [
      ...(approved ? [`${approved} approved by a human`] : []),
      ...(reported ? [`${reported} on the word of the client`] : []),
      ...(observed ? [`${observed} in the mode observe: nothing was held back`] : []),
    ];
    if (notes.length) this.tally.notes.set("gates", `${count} checked, ${notes.join(", ")}`);
    const words = `${this.wanted.size} decisions that actions name are not here`;
    if (this.wanted.size && isComplete) this.tally.fail("gates", "ARTIFACT_MISSING", words, place(this.name));
    else if (this.wanted.size) this.tally.skip("gates", words, { matters: true });
    if (this.unmarked) {
      const claim = `${this.unmarked} actions claim a decision of the gate without naming its record`;
      this.tally.warn("gates", "CLAIM_UNPROVEN", claim, place(this.name));
    }
    return unproven;
  }

  /** Return the findings. With `isComplete`, the run must be sealed, and everything it refers to must be here. */
  finish({ isComplete }: { isComplete: boolean }): RunTallies {
    const taken = this.tally;
    this.receipts.finish();
    this.tally = new Tally();
    if (this.actions) taken.countDone("sealed", this.actions);
    const unproven = this.checkDecisions(isComplete);
    skipAnswers(this.tally, this.waiting, this.waited, this.waited > 0);
    if (this.judge !== null) this.capsules.merge(this.judge.finish());
    this.capsules.chains++;
    if (this.hasGateChain) {
      if (this.gateJudge !== null) this.capsules.merge(this.gateJudge.finish());
      this.capsules.chains++;
    }
    if (this.seal === null) {
      const words = "the run is not sealed: actions may be missing at its end";
      if (isComplete) this.fail("sealed", "TRUNCATED", words, this.count);
      else this.tally.skip("sealed", words, { matters: true });
      this.tally.skip("proof", "the run is not sealed, so nothing is stated about it", { matters: false });
    } else this.checkSeal(this.seal, unproven);
    return { records: taken, capsules: this.capsules, ending: this.tally };
  }

  private checkSeal(seal: RunSeal, unproven: Set<number>): void {
    const { receipts } = this;
    const at = seal.head.count;
    const actions = Number(at) - 1;
    if (!(seal.numActions === actions && actions === receipts.count)) {
      const words = `the seal counts ${seal.numActions} actions; ${actions} capsules and ${receipts.count} lines are here`;
      this.fail("sealed", "TRUNCATED", words, at);
    } else if (seal.finalReceiptHash !== receipts.lastReceipt) {
      this.fail("sealed", "RECEIPT_MISMATCH", "the seal names another last receipt", at);
    }
    // The seal may claim less than the actions earn, but not more.
    const areAllEnforced = this.enforced.length > 0 && this.enforced.every((isSaid, index) => isSaid && !unproven.has(index));
    const isProved = seal.statement !== null;
    const earned = areAllEnforced ? (isProved ? "FULLY_VERIFIED" : "POLICY_ENFORCED") : isProved ? "PROOF_ONLY" : null;
    const rank = (verdict: string | null) => VERDICT_RANK.get(verdict) ?? 0;
    if (seal.policyVerdict !== earned && rank(seal.policyVerdict) > rank(earned)) {
      this.fail("gates", "CLAIM_UNPROVEN", `the seal says ${seal.policyVerdict}; the records support only ${earned}`, at);
    }
    if (seal.gates !== null && (this.gateCount !== seal.gates.count || this.gateHead !== seal.gates.hash)) {
      const words = `the seal counts ${seal.gates.count} records of the gate; ${this.gateCount} are here`;
      this.fail("gates", "TRUNCATED", words, at);
    }
    if (seal.statement === null) {
      this.tally.skip("proof", "the run was sealed without one", { matters: false });
      return;
    }
    this.tally.countDone("proof", receipts.count);
    if (seal.statement.runId !== this.runId) this.fail("proof", "PROOF_INVALID", "the statement is about another run", at);
    const problem = traceProblem(seal.statement, receipts.trace);
    if (problem !== null) this.fail("proof", "PROOF_INVALID", problem, at);
  }

  private fail(check: string, code: string, words: string, at: Count): void {
    this.tally.fail(check, code, words, place(this.name, at));
  }
}

/** Say that persons were asked by a framework's own means, and that their answers are not in these records. */
export function skipAnswers(tally: Tally, waiting: number, waited: number, matters: boolean): void {
  if (!waiting && !waited) return;
  const words = `${waiting} calls waited for a person by the framework's own means, and ${waited} went on`;
  tally.skip("answers", `${words}: the person's answers are not in these records`, { matters });
}

function countFailures(tally: Tally): number {
  let count = 0;
  for (const counted of tally.counts.values()) if (counted.status === "failed") count += counted.count;
  return count;
}

function allows(decided: RecordedDecision): boolean {
  return decided.decision === "pass" || decided.decision === "human_approved";
}

/** Why an action does not fit the decision that it names, as a code and words; null if it fits. */
function gateProblem(
  action: AgentAction,
  mark: GateReference,
  decided: RecordedDecision | null,
  isFirstUse: boolean,
): [string, string] | null {
  if (decided === null) return null; // A missing or invalid decision is reported elsewhere.
  const { mismatch, isConclusive } = compareWithDecision(action, mark, decided);
  const saysEnforced = action.policy_verdict === "POLICY_ENFORCED";
  if (mismatch !== null) return ["EVIDENCE_INVALID", `it differs from the gated: ${mismatch}`];
  if (!isFirstUse) return ["REPLAY", "its decision was used before"];
  if (decided.isObserved) {
    return saysEnforced ? ["CLAIM_UNPROVEN", "it says that policy was enforced; the gate only observed"] : null;
  }
  if (allows(decided)) {
    if (isConclusive || !saysEnforced) return null;
    return ["CLAIM_UNPROVEN", "it says that policy was enforced; only its type matches"];
  }
  if (action.success && !mark.hasClientAnswer) return ["ROLE_POLICY_VIOLATION", `it was done, though the gate said ${decided.decision}`];
  return saysEnforced ? ["CLAIM_UNPROVEN", `it says that policy was enforced; the gate said ${decided.decision}`] : null;
}
