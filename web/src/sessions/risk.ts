/**
 * The gate's decisions with their scores, and what came of the actions. Pure.
 *
 * The outcome of a decision is known where a record says it: a `gate.outcome` reports a failure, and the record of the
 * call or act that names the decision has a status. A decision that refused has no outcome. `reliability` compares the
 * scores with these outcomes, and says nothing below `OUTCOMES_MIN` of them.
 */

import { at, readBlock, readKind } from "../verify/block.ts";
import { JsonNumber, type JsonObject } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { DECISION_KIND, type RecordedDecision, actionLine, readDecision, refuses } from "./decisions.ts";
import { asObject, asText, contentOf } from "./values.ts";

/** Outcomes below which nothing is said about how reliable the scores are. */
export const OUTCOMES_MIN = 30;
/** Scores that are compared together. */
const BINS = 10;
/** Standard errors on either side of a rate that its 95 % interval covers. */
const NORMAL_95 = 1.96;

export interface RiskDecision extends RecordedDecision {
  gateId: string;
  /** The digest of the learned state that the score is from, which is stored beside the record. */
  state: string;
  workspace: string;
  /** The action in one line. */
  line: string;
}

export type RiskOutcome = "well" | "failed";

/**
 * What the rules see of a score: `low` if even the upper end of its interval is at most the one threshold, `high` if even
 * the lower end is above the other, else `unsure`; empty where there is no interval. As `aver.gate.decide` computes it.
 */
export function riskClass({ interval, thresholds }: RecordedDecision): "low" | "unsure" | "high" | "" {
  const [low, high] = Array.isArray(interval) ? interval : [];
  const [pass, skip] = [at(thresholds, "pass_below"), at(thresholds, "skip_above")];
  if (!(low instanceof JsonNumber) || !(high instanceof JsonNumber) || !(pass instanceof JsonNumber)) return "";
  if (high.value <= pass.value) return "low";
  return skip instanceof JsonNumber && low.value > skip.value ? "high" : "unsure";
}

/** Collects decisions and outcomes from records of any chain. */
export class RiskReader {
  readonly decisions: RiskDecision[] = [];
  private readonly byRecord = new Map<string, RiskOutcome>();
  private readonly byGate = new Map<string, RiskOutcome>();

  add(record: Sealed): void {
    const content = contentOf(record);
    if (content === null) return;
    const kind = readKind(content);
    if (kind === DECISION_KIND) {
      const decision = readDecision(record);
      if (decision !== null) this.decisions.push(describe(decision, content));
      return;
    }
    const result = at(content, "outcome", "result");
    if (kind === "gate.outcome") {
      // Only a report has features. The others say how a person answered.
      if (at(result, "features") !== undefined) this.byGate.set(asText(at(result, "gate_id")), "failed");
      return;
    }
    const decided = asText(at(readBlock(content) ?? undefined, "refs", "decision"));
    const status = asText(at(content, "outcome", "status"));
    if (decided && (status === "success" || status === "failure")) this.byRecord.set(decided, status === "success" ? "well" : "failed");
  }

  /** The outcome of a decision; null where none is known. */
  outcomeOf(decision: RiskDecision): RiskOutcome | null {
    if (refuses(decision)) return null;
    return this.byGate.get(decision.gateId) ?? this.byRecord.get(decision.id) ?? null;
  }
}

function describe(decision: RecordedDecision, content: JsonObject): RiskDecision {
  const result = at(content, "outcome", "result");
  return {
    ...decision,
    gateId: asText(at(result, "gate_id")),
    state: asText(at(result, "basis", "state", "blob", "digest")),
    workspace: asText(at(result, "action", "workspace")),
    line: actionLine(asObject(at(result, "action"))),
  };
}

interface Bin {
  low: number;
  high: number;
  count: number;
  predicted: number;
  happened: number;
  interval: [number, number];
}

/** How often actions failed, by their scores; null where too few outcomes are known. */
export function reliability(cases: { score: number; outcome: RiskOutcome }[]): Bin[] | null {
  if (cases.length < OUTCOMES_MIN) return null;
  return Array.from({ length: BINS }, (_, index) => {
    const [low, high] = [index / BINS, (index + 1) / BINS];
    const inside = cases.filter(({ score }) => score >= low && (score < high || (index === BINS - 1 && score <= 1)));
    const failed = inside.filter(({ outcome }) => outcome === "failed").length;
    const predicted = inside.reduce((sum, { score }) => sum + score, 0) / (inside.length || 1);
    return { low, high, count: inside.length, predicted, happened: inside.length ? failed / inside.length : 0, interval: wilson(failed, inside.length) };
  }).filter((bin) => bin.count > 0);
}

/** The 95 % interval of a rate, by Wilson: it stays inside 0 and 1, also for few cases. */
export function wilson(failed: number, count: number): [number, number] {
  if (!count) return [0, 1];
  const rate = failed / count;
  const square = NORMAL_95 ** 2;
  const middle = rate + square / (2 * count);
  const spread = NORMAL_95 * Math.sqrt((rate * (1 - rate)) / count + square / (4 * count ** 2));
  const whole = 1 + square / count;
  return [Math.max(0, (middle - spread) / whole), Math.min(1, (middle + spread) / whole)];
}
