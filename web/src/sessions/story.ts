/**
 * The story of a session: its steps in the order in which they happened. The twin of `aver.sessions.story`.
 *
 * Records are stored in the order of sealing, which is not the order of events: a hook seals a call before the transcript
 * shows the prompt. `readSession` reads each chain once, keeps of each step what a row shows, and sorts at the end. Each
 * call comes with its additions and its decision, and each subagent comes after the call that started it. The page reads
 * a record again when a person opens it.
 *
 * A record without a time follows the record before it. If records are not at the place that they claim, the chain is
 * damaged. It is then shown as it is stored, and its verdict says what is wrong.
 */

import type { Sealed } from "../verify/sealed.ts";
import { BadInput, compareCodePoints } from "../verify/json.ts";
import { cutText } from "../verify/text.ts";
import { fullTexts } from "./blobs.ts";
import type { SessionChains } from "./chains.ts";
import { DecisionMatcher, type ReadBlob, type RecordedDecision, readDecision } from "./decisions.ts";
import { stepSummary } from "./labels.ts";
import { type Step, addConsumption, hasHappened, promptOf, readStep, unreadableStep } from "./step.ts";
import { SessionCounter, type SessionTotals } from "./totals.ts";

/** Characters of a text that a row keeps. The record has the whole. */
const TEXT_MAX = 600;
/** Characters and lines of a prompt that the story keeps: more than anyone reads in a list. */
const ASKED_MAX = 100_000;
const ASKED_LINES_MAX = 200;
/** Characters of the long prompts of a session that the story keeps together. Others stay cut. */
const PROMPTS_MAX = 8_000_000;

/** One entry of a story: a step, a decision that belongs to no step, or the start of a subagent's part. */
export interface StoryEntry {
  /** 0 for the session itself, 1 for its subagents, and so on. */
  depth: number;
  chain: string;
  /** The place of the step's record in its chain; -1 without a step. */
  place: number;
  step: Step | null;
  /** The gate's decision about the step, or without a step, about a call that is in no transcript. */
  decision: RecordedDecision | null;
  /** The places of later records that add to the step. */
  additions: number[];
  /** The subagent whose part starts here. */
  agent: string;
}

export interface SessionReading {
  totals: SessionTotals;
  entries: StoryEntry[];
}

/** Reads the records of a chain in order, in batches. */
type ReadChain = (chain: string) => AsyncIterable<(Sealed | BadInput)[]>;

/** Read a session: its figures, and its story. `report` is called after each batch with the records so far. */
export async function readSession(
  chains: SessionChains,
  read: ReadChain,
  blob: ReadBlob,
  report: (records: number) => void | Promise<void> = () => {},
): Promise<SessionReading> {
  const counter = new SessionCounter();
  let records = 0;
  const decisions: RecordedDecision[] = [];
  for await (const batch of chains.decisions === null ? [] : read(chains.decisions)) {
    for (const item of batch) {
      const decision = item instanceof BadInput ? null : readDecision(item);
      if (decision !== null) decisions.push(decision);
    }
    // The verdict on the session counts these records, too, and both numbers stand side by side.
    counter.addRecords(batch.length);
    await report((records += batch.length));
  }
  const matcher = new DecisionMatcher(decisions, blob);
  const builder = new StoryBuilder(chains);
  for (const chain of [chains.main, ...chains.agents.map(([, name]) => name)]) {
    if (chain === null) continue;
    let place = 0;
    for await (const batch of read(chain)) {
      for (const item of batch) {
        const step = item instanceof BadInput ? unreadableStep(chain, item.message) : readStep(item);
        const decision = step.what === "call" ? await matcher.take(step) : null;
        counter.add(step, chain === chains.main, decision);
        builder.add(chain, place++, step, decision);
      }
      await report((records += batch.length));
    }
  }
  const left = matcher.listUnmatched();
  return { totals: counter.finish(chains, left), entries: [...builder.build(left)] };
}

interface PlannedItem {
  at: string;
  place: number;
  decision: RecordedDecision | null;
}

interface ChainPlan {
  steps: Step[];
  items: PlannedItem[];
  /** By the id of a record, the places of its additions. */
  additions: Map<string, number[]>;
  decisions: Map<number, RecordedDecision>;
  ids: Set<string>;
  last: string;
  /** Whether the records are not at the places that they claim. */
  isAsStored: boolean;
}

class StoryBuilder {
  private readonly chains: SessionChains;
  private readonly agents: Map<string, string>;
  private readonly plans = new Map<string, ChainPlan>();
  private readonly built = new Set<string>();

  constructor(chains: SessionChains) {
    this.chains = chains;
    this.agents = new Map(chains.agents.map(([agent, chain]) => [chain, agent]));
    for (const chain of [chains.main, ...this.agents.keys()]) {
      if (chain !== null) this.plans.set(chain, { steps: [], items: [], additions: new Map(), decisions: new Map(), ids: new Set(), last: "", isAsStored: false });
    }
  }

  /** Plan a step. */
  add(chain: string, place: number, step: Step, decision: RecordedDecision | null): void {
    const plan = this.plans.get(chain) as ChainPlan;
    plan.steps.push(lighten(step));
    plan.isAsStored ||= step.sequence !== place;
    plan.last = step.at ?? plan.last;
    if (step.addition !== null && plan.ids.has(step.addition.to)) {
      const { to } = step.addition;
      plan.additions.set(to, [...(plan.additions.get(to) ?? []), place]);
      return;
    }
    plan.ids.add(step.id);
    plan.items.push({ at: plan.last, place, decision: null });
    if (decision !== null) plan.decisions.set(place, decision);
  }

  /** The entries: the main chain with its subagents, then subagents that no call started. */
  *build(unmatched: RecordedDecision[]): Generator<StoryEntry> {
    for (const { items } of this.plans.values()) items.sort((one, other) => compareCodePoints(one.at, other.at) || one.place - other.place);
    // Decisions about calls that are in no transcript go into the main chain, by their time.
    const [first] = this.plans.values();
    first?.items.push(...unmatched.map((decision) => ({ at: decision.at, place: -1, decision })));
    first?.items.sort((one, other) => compareCodePoints(one.at, other.at));
    if (this.chains.main !== null) yield* this.buildChain(this.chains.main, 0);
    for (const chain of this.agents.keys()) yield* this.buildSubagent(chain, 1);
  }

  private *buildChain(chain: string, depth: number): Generator<StoryEntry> {
    this.built.add(chain);
    const plan = this.plans.get(chain) as ChainPlan;
    const bare = { depth, chain, place: -1, step: null, decision: null, additions: [], agent: "" };
    const inOrder = plan.isAsStored
      ? [...plan.items.filter((item) => item.decision !== null), ...plan.steps.map((_, place): PlannedItem => ({ at: "", place, decision: null }))]
      : plan.items;
    let asked = "";
    for (const { place, decision } of inOrder) {
      const step = plan.steps[place];
      if (decision !== null || step === undefined) {
        yield { ...bare, decision };
        continue;
      }
      // Other tools' records repeat the prompt. Show it once, before the first record that has it.
      if (!step.own && step.asked && step.asked !== asked) {
        asked = step.asked;
        yield { ...bare, place, step: promptOf(step) };
        if (step.what === "prompt") continue;
      }
      const additions = plan.isAsStored ? [] : (plan.additions.get(step.id) ?? []);
      const whole = applyAdditions(step, additions.map((one) => plan.steps[one] as Step));
      yield { ...bare, place, step: whole, decision: plan.decisions.get(place) ?? null, additions };
      if (this.agents.has(step.subagent)) yield* this.buildSubagent(step.subagent, depth + 1);
    }
  }

  private *buildSubagent(chain: string, depth: number): Generator<StoryEntry> {
    if (this.built.has(chain)) return;
    yield { depth, chain, place: -1, step: null, decision: null, additions: [], agent: this.agents.get(chain) ?? "" };
    yield* this.buildChain(chain, depth);
  }
}

/** The story with its long prompts put back: their texts are stored beside the records. `isWanted` raises an error where nobody waits. */
export async function fetchPrompts(entries: StoryEntry[], blob: ReadBlob, isWanted: () => void): Promise<StoryEntry[]> {
  const whole: StoryEntry[] = [];
  let kept = 0;
  // One after the other: each may be large, and the story keeps its beginning.
  for (const entry of entries) {
    const { step } = entry;
    if (step === null || step.what !== "prompt" || !step.cut.has("asked")) {
      whole.push(entry);
      continue;
    }
    isWanted();
    const { asked, cut } = kept < PROMPTS_MAX ? await fullTexts(step, blob) : step;
    const prompt = cut.has("asked") ? { asked, askedLeft: null } : keepPrompt(asked);
    kept += prompt.asked.length;
    whole.push({ ...entry, step: { ...step, ...prompt } });
  }
  return whole;
}

/** The beginning of a prompt that the story keeps, and how many lines it leaves out. */
function keepPrompt(whole: string): Pick<Step, "asked" | "askedLeft"> {
  const asked = cutText(whole, ASKED_MAX).split("\n", ASKED_LINES_MAX).join("\n");
  const left = whole.slice(asked.length).replace(/^\n/, "");
  return { asked, askedLeft: left ? left.split("\n").length : 0 };
}

/** What a row shows of a step. Arguments, results and diffs stay in the record. */
function lighten(step: Step): Step {
  return {
    ...step,
    summary: step.what === "call" || step.summary ? cutText(stepSummary({ ...step, status: "" }), TEXT_MAX) : "",
    ...keepPrompt(step.asked),
    text: cutText(step.text, TEXT_MAX),
    thinking: cutText(step.thinking, TEXT_MAX),
    error: cutText(step.error, TEXT_MAX),
    arguments: null,
    result: null,
    diff: null,
    more: null,
    calls: [],
    others: [],
    addition: step.addition === null ? null : { ...step.addition, says: new Map() },
  };
}

/** The step with the fields that later records add: thinking, tokens, or the outcome of a pending call. */
export function applyAdditions(step: Step, additions: Step[]): Step {
  let whole = step;
  for (const later of additions) {
    const { addition } = later;
    if (addition !== null) {
      if (whole.status === "pending" && addition.status) whole = { ...whole, status: addition.status, error: addition.error };
      // Only an edit that took place counts lines. The status above decides that, so it must be set first.
      const lines = whole.lines ?? (hasHappened(whole.status) ? addition.lines : null);
      const [result, diff] = [whole.result ?? addition.says.get("result") ?? null, whole.diff ?? addition.says.get("diff") ?? null];
      whole = { ...whole, result, diff, lines };
    }
    // The first record wins. A later one only fills gaps.
    whole = {
      ...whole,
      thinking: whole.thinking || later.thinking,
      text: whole.text || later.text,
      redacted: whole.redacted || later.redacted,
      model: whole.model || later.model,
      authority: whole.authority === "unknown" ? later.authority : whole.authority,
      rule: whole.rule || later.rule,
      durationMs: whole.durationMs ?? later.durationMs,
      spent: addConsumption(whole.spent, later.spent),
      cut: new Map([...later.cut, ...whole.cut]),
    };
  }
  return whole;
}
