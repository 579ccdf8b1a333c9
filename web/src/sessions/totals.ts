/** The figures of a session. The twin of the second half of `aver.sessions.sessions`: a call counts once. */

import { compareCodePoints } from "../verify/json.ts";
import { cutText, strip } from "../verify/text.ts";
import { type SessionChains, chainNames } from "./chains.ts";
import { type RecordedDecision, isObserved, refuses } from "./decisions.ts";
import { toOneLine } from "./labels.ts";
import { type Consumption, type Step, UNKNOWN_CONSUMPTION, addConsumption, isCommand, isEdit, maxConsumption } from "./step.ts";

/** The longest title that is made from a prompt or a call, in characters. */
const TITLE_MAX = 120;
/** Characters of a text that are read for a title: an answer may be long. */
const TITLE_SOURCE_MAX = 4 * TITLE_MAX;
/** Digits after the point of a total cost, to remove rounding errors of the addition. */
const COST_DIGITS = 9;
/** Tools whose records by agent-capsule repeat the token count of the whole session. */
const CUMULATIVE_TOOLS = new Set(["codex"]);
const LINE_END = /\r\n|[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;

/** Figures of a session, with its subagents. */
export interface SessionTotals {
  tool: string;
  session: string;
  title: string;
  started: string | null;
  ended: string | null;
  prompts: number;
  actions: number;
  edits: number;
  linesAdded: number;
  linesRemoved: number;
  commands: number;
  failures: number;
  denials: number;
  /** Actions that the gate decided about before they were done. */
  gated: number;
  /** Decisions in the mode `observe`, which held nothing back. */
  observed: number;
  tokensIn: number | null;
  tokensOut: number | null;
  costUsd: number | null;
  models: string[];
  subagents: number;
  /** Records of a kind that Aver did not know when it sealed them. */
  unknown: number;
  unreadable: number;
  records: number;
  imported: boolean;
  chains: string[];
}

/** Counts the steps of a session, one by one. */
export class SessionCounter {
  private readonly sum = { prompts: 0, actions: 0, edits: 0, linesAdded: 0, linesRemoved: 0, commands: 0, failures: 0, denials: 0, gated: 0, observed: 0, unknown: 0, unreadable: 0, records: 0 };
  private spent: Consumption = UNKNOWN_CONSUMPTION;
  private growing: Consumption = UNKNOWN_CONSUMPTION;
  private sessionCost: number | null = null;
  private title = "";
  private firstPrompt = "";
  /** The first call or answer: the title of a session without a prompt, such as one that only hooks have seen. */
  private firstText = "";
  private times: [string, string] | null = null;
  private sealed: [string, string] | null = null;
  private readonly models = new Set<string>();
  /** Ids of calls whose outcome is not known yet. */
  private readonly openCalls = new Set<string>();
  private readonly byMessage = new Map<string, Consumption>();
  private lastAsked = "";

  /** Count a step of a chain, and the decision about it. */
  add(step: Step, isMain: boolean, decision: RecordedDecision | null): void {
    const { sum } = this;
    sum.records++;
    if (step.what === "unknown") sum.unknown++;
    if (step.what === "unreadable") sum.unreadable++;
    if (step.model) this.models.add(step.model);
    if (!this.firstText && (step.what === "call" || step.what === "answer")) this.firstText = toOneLine(cutText(step.summary || step.text || step.call, TITLE_SOURCE_MAX));
    this.times = widenSpan(this.times, step.at);
    this.sealed = widenSpan(this.sealed, step.signedAt);
    this.addConsumption(step);
    if (step.what === "call") this.addCall(step, decision);
    else if (step.addition !== null && this.openCalls.delete(step.addition.to)) {
      // Count the outcome of a call that was pending.
      if (step.addition.status === "failure") sum.failures++;
      if (step.addition.status === "blocked") sum.denials++;
    }
    if (step.what === "prompt" && step.own) sum.prompts++;
    else if (step.asked && step.asked !== this.lastAsked) {
      this.lastAsked = step.asked;
      sum.prompts++;
    }
    if (!isMain) return;
    this.title = step.title || this.title;
    if (!this.firstPrompt && step.asked) this.firstPrompt = step.asked.split(LINE_END).map(strip).find(Boolean) ?? "";
  }

  /** Count records that are no steps, those of the decisions' chain. */
  addRecords(count: number): void {
    this.sum.records += count;
  }

  private addConsumption(step: Step): void {
    // Aver's records have each count once. agent-capsule repeats a growing count: of the session for some tools, of the
    // message for others. There the largest count is the complete one.
    if (step.own || (!step.message && !CUMULATIVE_TOOLS.has(step.toolName))) this.spent = addConsumption(this.spent, step.spent);
    else if (!step.message) this.growing = maxConsumption(this.growing, step.spent);
    else this.byMessage.set(step.message, maxConsumption(this.byMessage.get(step.message) ?? UNKNOWN_CONSUMPTION, step.spent));
    if (step.sessionCost !== null) this.sessionCost = Math.max(step.sessionCost, this.sessionCost ?? 0);
  }

  private addCall(step: Step, decision: RecordedDecision | null): void {
    const { sum } = this;
    sum.actions++;
    if (decision !== null) sum.gated++;
    if (decision !== null && isObserved(decision)) sum.observed++;
    if (isCommand(step)) sum.commands++;
    if (step.status === "failure") sum.failures++;
    if (step.status === "blocked") sum.denials++;
    if (step.status === "pending") this.openCalls.add(step.id);
    if (isEdit(step)) {
      sum.edits++;
      sum.linesAdded += step.lines?.[0] ?? 0;
      sum.linesRemoved += step.lines?.[1] ?? 0;
    }
  }

  /** The totals. `left` are the decisions that no call took. */
  finish(chains: SessionChains, left: RecordedDecision[]): SessionTotals {
    let spent = addConsumption(this.spent, this.growing);
    for (const each of this.byMessage.values()) spent = addConsumption(spent, each);
    // The total that the agent reports is better than the sum of the steps, some of which have no cost.
    const costUsd = this.sessionCost ?? (spent.costUsd === null ? null : Number(spent.costUsd.toFixed(COST_DIGITS)));
    const [started, ended] = this.times ?? this.sealed ?? [null, null];
    return {
      ...this.sum,
      tool: chains.tool,
      session: chains.session,
      title: this.title || cutText(this.firstPrompt, TITLE_MAX) || cutText(this.firstText, TITLE_MAX),
      started,
      ended,
      denials: this.sum.denials + left.filter((decision) => refuses(decision) && !isObserved(decision)).length,
      observed: this.sum.observed + left.filter(isObserved).length,
      tokensIn: spent.tokensIn,
      tokensOut: spent.tokensOut,
      costUsd,
      models: [...this.models],
      subagents: chains.agents.length,
      imported: chains.imported,
      chains: chainNames(chains),
    };
  }
}

/** The earliest and the latest moment. */
function widenSpan(ends: [string, string] | null, moment: string | null): [string, string] | null {
  if (!moment) return ends;
  if (ends === null) return [moment, moment];
  return [compareCodePoints(moment, ends[0]) < 0 ? moment : ends[0], compareCodePoints(moment, ends[1]) > 0 ? moment : ends[1]];
}
