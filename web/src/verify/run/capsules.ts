/** The content of a run's capsules: its actions, its seal, and the decisions that actions name. */

import { at, chainName, readKind } from "../block.ts";
import { type Head, readHead } from "../heads.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, equalJson, isInteger, isObject, readJson } from "../json.ts";
import { type AgentAction, POLICY_VERDICTS, metadataBlobDigest, readAction } from "./action.ts";
import { type RunStatement, readRunStatement } from "./trace.ts";

export const OPEN_KIND = "run.open";
export const ACTION_KIND = "action";
export const SEAL_KIND = "run.seal";
const ONE = new JsonNumber("1");

/** The name of the chain in which a run is sealed. */
export function runChain(runId: string): string {
  return chainName("actions", runId) as string;
}

/** The gate decision that an action refers to. */
export interface GateReference {
  gateId: string;
  record: string;
  digest: string;
  decision: string;
  diffSha256: string | null;
  /** Whether only the client reports that its user agreed. */
  hasClientAnswer: boolean;
}

interface SealedAction {
  fields: Json;
  receiptHash: string;
  gate: GateReference | null;
}

function hasExactly(data: JsonObject, keys: string[]): boolean {
  return data.size === keys.length && keys.every((key) => data.has(key));
}

function readResult(content: JsonObject): JsonObject {
  const result = at(content, "outcome", "result");
  if (!isObject(result) || !equalJson(result.get("v"), ONE)) throw new BadInput("the capsule's result is not one of this version");
  return result;
}

/** Read the result of an `action` capsule. This does not check the fields of the action. */
export function readSealedAction(content: JsonObject): SealedAction {
  const result = readResult(content);
  if (!hasExactly(result, ["v", "action", "receipt_hash", "gate"])) throw new BadInput("the capsule of an action has other keys in its result");
  const [fields, receiptHash, gate] = ["action", "receipt_hash", "gate"].map((name) => result.get(name) as Json);
  if (typeof receiptHash !== "string") throw new BadInput("the capsule of an action names no receipt");
  if (gate === null) return { fields: fields as Json, receiptHash, gate: null };
  const names = ["gate_id", "record", "digest", "decision", "diff_sha256"];
  const hasClientAnswer = isObject(gate) && gate.has("client_answer");
  // A client can answer only what the gate has asked.
  const canAnswer = !hasClientAnswer || (gate.get("client_answer") === "yes" && gate.get("decision") === "human_review");
  if (!isObject(gate) || !canAnswer || !hasExactly(gate, hasClientAnswer ? [...names, "client_answer"] : names)) throw new BadInput("the gate entry of an action has other keys");
  for (const name of names) {
    // Only the hash of the change may be missing: the caller need not give the change.
    const value = gate.get(name);
    if (typeof value !== "string" && !(name === "diff_sha256" && value === null)) {
      throw new BadInput("the gate entry of an action has values that are not text");
    }
  }
  const [gateId, record, digest, decision, diffSha256] = names.map((name) => gate.get(name)) as string[];
  return {
    fields: fields as Json,
    receiptHash,
    gate: { gateId, record, digest, decision, diffSha256: diffSha256 ?? null, hasClientAnswer } as GateReference,
  };
}

/** Build the action from its sealed form. `blob` loads metadata that is stored as a blob. */
export async function loadAction(sealed: SealedAction, blob: (digest: string) => Promise<Uint8Array>): Promise<AgentAction> {
  const action = readAction(sealed.fields);
  const digest = metadataBlobDigest(action.metadata);
  if (digest === null) return action;
  const metadata = readJson(await blob(digest));
  if (metadata !== null && !isObject(metadata)) throw new BadInput("metadata must be an object");
  return { ...action, metadata };
}

export interface RunSeal {
  runId: string;
  head: Head;
  numActions: number;
  finalReceiptHash: string | null;
  policyVerdict: string | null;
  statement: RunStatement | null;
  gates: Head | null;
}

/** Read the content of a `run.seal`. `of` says where the seal is stored. */
export function readRunSeal(content: JsonObject, of: { ledger: string; tenant: string; chain: string }): RunSeal {
  const result = readResult(content);
  const names = ["gates", "statement", "head", "run_id", "num_actions", "final_receipt_hash", "policy_verdict"];
  for (const name of names) if (!result.has(name)) throw new BadInput(`the run's seal cannot be read: it lacks ${name}`);
  const [gates, statement, head, runId, count, final, verdict] = names.map((name) => result.get(name) as Json);
  const place: [string, Json][] = [["ledger", of.ledger], ["tenant", of.tenant]];
  if (!isObject(head)) throw new BadInput("the run's seal cannot be read");
  if (gates !== null && !isObject(gates)) throw new BadInput("the run's seal cannot be read");
  const seal = {
    head: readHead(new Map([...place, ["chain", of.chain], ...head])),
    statement: statement === null ? null : readRunStatement(statement),
    gates: gates === null ? null : readHead(new Map([...place, ...(gates as JsonObject)])),
  };
  // A run in which every call was refused has no action, and no last receipt.
  if (typeof runId !== "string" || !isInteger(count) || (count.value === 0 ? final !== null : typeof final !== "string")) {
    throw new BadInput("the run's seal cannot be read");
  }
  if (verdict !== null && !(typeof verdict === "string" && POLICY_VERDICTS.includes(verdict))) {
    throw new BadInput("the run's seal has a verdict that is none");
  }
  return { ...seal, runId, numActions: count.value, finalReceiptHash: final as string | null, policyVerdict: verdict as string | null };
}

/** A decision of the gate, as far as an action is compared with it. */
export interface RecordedDecision {
  gateId: string;
  decision: string;
  digest: string;
  score: Json;
  type: Json | undefined;
  diffSha256: Json | undefined;
  files: Json | undefined;
  instructionHash: Json;
  inputHash: Json;
  isObserved: boolean;
}

/** Read a decision's record; null where it is no decision. */
export function readDecision(content: JsonObject): RecordedDecision | null {
  if (readKind(content) !== "gate.decision") return null;
  const result = at(content, "outcome", "result");
  if (!isObject(result)) return null;
  const needed = ["gate_id", "decision", "digest", "score", "action", "instruction_sha256", "input_sha256"];
  if (!needed.every((name) => result.has(name))) return null;
  const [gateId, decision, digest, score, action, instructionHash, inputHash] = needed.map((name) => result.get(name) as Json);
  const policy = result.get("policy");
  if (isTrue(policy) && !isObject(policy)) return null;
  const refs = at(content, "context", "environment", "aver", "refs");
  if (isTrue(refs) && !isObject(refs)) return null;
  if (!isObject(action) || ![gateId, decision, digest].every((text) => typeof text === "string")) return null;
  return {
    gateId: gateId as string,
    decision: decision as string,
    digest: digest as string,
    score: score as Json,
    type: action.get("type"),
    diffSha256: action.get("diff_sha256"),
    files: action.get("files"),
    instructionHash: instructionHash as Json,
    inputHash: inputHash as Json,
    isObserved: result.get("mode") === "observe",
  };
}

/** Whether Python takes a value for true. */
export function isTrue(value: Json | undefined): boolean {
  if (value instanceof JsonNumber) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? value.size > 0 : Boolean(value);
}

interface Comparison {
  /** In what the two differ; null where nothing tells them apart. */
  mismatch: string | null;
  /** Whether there is anything by which to tell the action from another of its type. */
  isConclusive: boolean;
}

/** Compare an action with the one that was gated. The twin of `aver.actions.binding`. */
export function compareWithDecision(action: AgentAction, mark: GateReference, decided: RecordedDecision): Comparison {
  const none = (value: Json | undefined) => value === undefined || value === null;
  const files = action.metadata?.get("files_affected");
  const areDiffsKnown = mark.diffSha256 !== null && !none(decided.diffSha256);
  const areFilesKnown = isTrue(files) && isTrue(decided.files);
  const hasHash = !none(decided.instructionHash) || !none(decided.inputHash);
  let mismatch: string | null = null;
  if (mark.gateId !== decided.gateId || mark.digest !== decided.digest) mismatch = "the decision it names is about something else";
  else if (action.gate_decision !== decided.decision || mark.decision !== decided.decision) {
    mismatch = `it says that the gate decided ${action.gate_decision}; the gate's record says ${decided.decision}`;
  } else if (!equalJson(action.gate_score, decided.score)) mismatch = "it says another score than the gate's record";
  else if (action.action_type !== decided.type) mismatch = `it is a ${action.action_type}; the gated action is another`;
  else if (["human_review", "human_approved"].includes(decided.decision as string) && mark.diffSha256 !== null && none(decided.diffSha256)) {
    mismatch = "a change was made, and the person was shown none";
  } else if (areDiffsKnown && mark.diffSha256 !== decided.diffSha256) mismatch = "the change that was made is not the one that was gated";
  else if (!none(decided.instructionHash) && decided.instructionHash !== action.instruction_hash) {
    mismatch = "its instruction is not the one that was gated";
  } else if (!none(decided.inputHash) && decided.inputHash !== action.input_hash) mismatch = "its input is not the one that was gated";
  else if (areFilesKnown && !equalJson(files, decided.files)) mismatch = "the files that it says it affects are not those that were gated";
  return { mismatch, isConclusive: hasHash || areDiffsKnown || areFilesKnown };
}
