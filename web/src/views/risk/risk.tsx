/** The gate's decisions over time with their scores and intervals, how reliable the scores were, and what was learned. */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { type ChartPoint, ChartWithTable, PointChart, ReliabilityChart } from "../../parts/chart.tsx";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Problem, useAnswer } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { Command, Hex, Text, Time, count, formatTime, plural, visible } from "../../parts/text.tsx";
import { Left, chainsOf, countRecords, readBlob, readRecords, unreadWords } from "../../records.ts";
import { isObserved, refuses, shownReasons } from "../../sessions/decisions.ts";
import { decisionLabel } from "../../sessions/labels.ts";
import { OUTCOMES_MIN, type RiskDecision, type RiskOutcome, RiskReader, reliability, riskClass } from "../../sessions/risk.ts";
import { asObject } from "../../sessions/values.ts";
import { contents, link } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { BadInput, type Json, JsonNumber, readJson } from "../../verify/json.ts";
import { Sealed } from "../../verify/sealed.ts";
import { cutText } from "../../verify/text.ts";
import { Score, onScale } from "../capsule/decision.tsx";

/** Records that are read for this view. Above, only the decisions are, and outcomes in other chains stay unread. */
const READ_MAX = 20_000;
/** Decisions that the chart draws: the latest. */
const DRAWN_MAX = 1_000;
/** Characters of an action that a row shows. Its record has all. */
const ACTION_SHOWN = 200;
/** Decisions that the table lists at first. */
const LISTED = 20;

interface Reading {
  decisions: RiskDecision[];
  outcomes: Map<RiskDecision, RiskOutcome>;
  /** Records that were not read for outcomes. */
  unread: number;
  /** Why records cannot be read; empty if all can. */
  words: string;
}

async function readRisk(report: (records: number) => void): Promise<Reading> {
  const all = chainsOf(/^(?!(?:meta|keys)$)/);
  const gates = chainsOf(/^gate\./);
  const others = all.filter((id) => !gates.includes(id));
  const isWhole = countRecords(all) <= READ_MAX;
  const reader = new RiskReader();
  let records = 0;
  const bad: BadInput[] = [];
  for (const chain of isWhole && gates.length ? all : gates) {
    for await (const batch of readRecords(chain)) {
      for (const record of batch) {
        if (record instanceof Sealed) reader.add(record);
        else bad.push(record);
      }
      report((records += batch.length));
    }
  }
  const decisions = reader.decisions.sort((one, other) => (one.at < other.at ? -1 : 1));
  const outcomes = new Map<RiskDecision, RiskOutcome>();
  for (const decision of decisions) {
    const outcome = reader.outcomeOf(decision);
    if (outcome !== null) outcomes.set(decision, outcome);
  }
  return { decisions, outcomes, unread: isWhole ? 0 : countRecords(others), words: unreadWords(bad, records) };
}

export function RiskView(_: { parts: string[] }): JSX.Element {
  const [records, setRecords] = useState(0);
  const { value: reading, words, retry } = useAnswer((isCurrent) => readRisk((count) => {
    if (!isCurrent()) throw new Left();
    setRecords(count);
  }), [contents.value]);
  const problem = words || reading?.words;
  return (
    <section class="risk-view">
      <h1>Risk</h1>
      {problem ? <Problem words={problem} retry={retry} /> : null}
      {reading ? <Decisions reading={reading} /> : words ? null : <div aria-busy="true"><p class="beside" role="status">Reading decisions: {plural(records, "record")} so far …</p><div class="band placeholder tall" /><div class="band placeholder tall" /></div>}
    </section>
  );
}

function Decisions({ reading }: { reading: Reading }): JSX.Element | null {
  const { decisions, unread, words } = reading;
  if (!decisions.length) {
    return words ? null : <Empty command="aver install claude-code">The gate has decided about nothing in these records. This makes it decide about the calls of coding agents:</Empty>;
  }
  const refused = decisions.filter((one) => refuses(one) && !isObserved(one)).length;
  const asked = decisions.filter((one) => one.decision === "human_review").length;
  const observed = decisions.filter(isObserved).length;
  return (
    <>
      <p class="sentence">
        {plural(decisions.length, "decision")}: {count(decisions.length - refused - asked)} allowed, {count(asked)} left to a person, {count(refused)} denied.
        {observed ? ` ${plural(observed, "of them", "of them")} only observed, and held nothing back.` : ""}
      </p>
      {unread ? <p class="strip">Only the gate's own chains were read: {plural(unread, "other record")} would have to be searched for outcomes. A git history says more: <Command>aver gate report --git .</Command></p> : null}
      <h2>Over time</h2>
      <OverTime decisions={decisions} />
      <h2>How reliable</h2>
      <Reliability reading={reading} />
      <h2>What was learned</h2>
      <Learned decisions={decisions} />
    </>
  );
}

const sortOf = (decision: RiskDecision) => (refuses(decision) ? "denied" : decision.decision === "human_review" ? "asked" : "allowed");

function addressOf({ chain, sequence }: RiskDecision): string {
  return link("c", chain ?? "", sequence ?? 0);
}

function OverTime({ decisions }: { decisions: RiskDecision[] }): JSX.Element {
  const [listed, setListed] = useState(LISTED);
  const box = useRef<HTMLDivElement>(null);
  useRowKeys(box);
  const scored = useMemo(() => decisions.filter((one) => one.score instanceof JsonNumber).slice(-DRAWN_MAX), [decisions]);
  const times = scored.map((one) => Date.parse(one.at)).filter(Number.isFinite);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const points = scored.map((decision, index): ChartPoint => {
    const time = Date.parse(decision.at);
    const [low, high] = Array.isArray(decision.interval) ? decision.interval.map(onScale) : [];
    return {
      x: last > first && Number.isFinite(time) ? (time - first) / (last - first) : scored.length > 1 ? index / (scored.length - 1) : 0.5,
      y: onScale(decision.score) ?? 0,
      low: low ?? null,
      high: high ?? null,
      sort: sortOf(decision),
      words: visible(`${decision.at}: ${decisionLabel(decision.decision)}, ${decision.tool}, risk ${(decision.score as JsonNumber).text}`),
      href: addressOf(decision),
    };
  });
  const newest = scored.at(-1);
  const [pass, skip] = ["pass_below", "skip_above"].map((name) => at(newest?.thresholds, name));
  const limits = [pass, skip].map((value) => onScale(value ?? null)).filter((y) => y !== null);
  const day = (time: number) => (Number.isFinite(time) ? formatTime(new Date(time)).slice(0, 16).replace("T", " ") : "");
  const rows = [...decisions].reverse();
  return (
    <>
      {points.length ? (
        <p>
          The rules decide, and a score is only one of the things that they see. So a rule can allow an action with a high score, such as a known test, and another can ask a person about one with a low score, such as a deletion: <em>Why</em> names the rule.
          {pass instanceof JsonNumber ? <> To a rule that asks about risk, it is low only if the whole interval is at most <Score value={pass} />; else it is unsure.</> : null}
          {skip instanceof JsonNumber ? <> An action is denied by its risk if the whole interval is above <Score value={skip} />.</> : " No score denies anything by itself."}
        </p>
      ) : null}
      {points.length ? <PointChart points={points} limits={limits} ends={[day(first), day(last)]} label={`${points.length} decisions over time, by risk from 0 to 1. The table below has all of them.`} /> : <p class="strip">No decision has a score: the rules alone decided.</p>}
      <p class="beside legend"><span class="good">● allowed</span> <span class="warn">□ left to a person</span> <span class="bad">✕ denied</span> A line is the 90 % interval of the score. {limits.length ? "Dashes are at the limits named above. " : ""}{scored.length === DRAWN_MAX ? `The chart has the latest ${count(DRAWN_MAX)}.` : ""}</p>
      <div class="scroll" ref={box}>
        <table class="chains decisions">
          <thead><tr><th scope="col">When</th><th scope="col">Decision</th><th scope="col">Action</th><th scope="col" class="at-why">Why</th><th scope="col" class="number">Risk</th><th scope="col" class="number at-interval">90 % interval</th><th scope="col" class="at-class">To the rules</th></tr></thead>
          <tbody>
            {rows.slice(0, listed).map((decision, place) => (
              <tr key={decision.hash}>
                <td><a href={addressOf(decision)} data-row tabIndex={place ? -1 : 0}><Time>{decision.at}</Time></a></td>
                <td><span class={sortOf(decision)}>{isObserved(decision) ? "observed: " : ""}<Text>{decisionLabel(decision.decision)}</Text></span></td>
                <td class="action"><code><Text>{cutText(decision.line, ACTION_SHOWN)}</Text></code></td>
                <td class="at-why">{decision.rules.length ? <>by {decision.rules.map((rule) => <span key={rule}><code><Text>{rule}</Text></code> </span>)}</> : null}<Text>{shownReasons(decision).join("; ")}</Text></td>
                <td class="number"><Score value={decision.score} /></td>
                <td class="number at-interval">{Array.isArray(decision.interval) ? <><Score value={decision.interval[0]} /> to <Score value={decision.interval[1]} /></> : ""}</td>
                <td class="at-class">{riskClass(decision)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > listed ? <p><button type="button" onClick={() => setListed(listed + 5 * LISTED)}>Show {count(Math.min(5 * LISTED, rows.length - listed))} more</button></p> : null}
    </>
  );
}

function Reliability({ reading: { decisions, outcomes } }: { reading: Reading }): JSX.Element {
  const cases = decisions.flatMap((decision) => {
    const outcome = outcomes.get(decision);
    return outcome !== undefined && decision.score instanceof JsonNumber ? [{ score: decision.score.value, outcome }] : [];
  });
  const bars = reliability(cases);
  if (bars === null) {
    return (
      <p class="strip">
        Too few to say: {plural(cases.length, "outcome")} of scored actions {cases.length === 1 ? "is" : "are"} sealed here, and {OUTCOMES_MIN} are needed. An outcome is sealed with the record of a call, and by <Command>aver gate outcome GATE_ID failed</Command>
      </p>
    );
  }
  return (
    <>
      <p>{plural(cases.length, "scored action")} with an outcome that is sealed here. On the dashed line, as many failed as the scores said.</p>
      <ChartWithTable
        chart={<ReliabilityChart bars={bars} label="Failed actions against predicted risk" />}
        table={
          <Table heads={["Scores", "Actions", "Predicted", "Failed", "95 % interval"]}>
            {bars.map((bar) => <tr key={bar.low}><th scope="row">{bar.low} to {bar.high}</th><td>{bar.count}</td><td>{bar.predicted.toFixed(3)}</td><td>{bar.happened.toFixed(3)}</td><td>{bar.interval[0].toFixed(2)} to {bar.interval[1].toFixed(2)}</td></tr>)}
          </Table>
        }
      />
    </>
  );
}

interface LearnedState {
  digest: string;
  workspace: string;
  since: string;
  uses: number;
  levels: [string, Json][];
  isHere: boolean;
}

/** The states of the model, each with its levels: what the gate had learned when it decided. */
function Learned({ decisions }: { decisions: RiskDecision[] }): JSX.Element {
  const { value: states } = useAnswer(async () => {
    const found = new Map<string, LearnedState>();
    for (const { state, workspace, at: since } of decisions) {
      if (!state) continue;
      const known = found.get(state) ?? { digest: state, workspace, since, uses: 0, levels: [], isHere: false };
      found.set(state, { ...known, uses: known.uses + 1 });
    }
    const latest = [...found.values()].slice(-20).reverse();
    return Promise.all(latest.map(async (one) => ({ ...one, ...(await readLevels(one.digest)) })));
  }, [decisions]);
  if (states === null) return <div class="band placeholder" aria-busy="true" />;
  if (!states.length) return <p class="strip">No decision names a learned state.</p>;
  return (
    <>
      {states.map((one) => (
        <section key={one.digest} class="learned">
          <h3>State <Hex>{one.digest}</Hex> <span class="soft">used by {plural(one.uses, "decision")} since <Time>{one.since}</Time></span></h3>
          {!one.isHere ? <p class="beside">Its content is not here: the blob is missing, damaged or too large.</p> : null}
          {one.isHere && !one.levels.length ? <p>Nothing was learned yet in <Text>{one.workspace || "this workspace"}</Text>: the gate used the prior that Aver ships.</p> : null}
          {one.levels.length ? (
            <Table heads={["Kind of action", "Level", "Variance", "Outcomes learned from"]}>
              {one.levels.map(([kind, level]) => <tr key={kind}><th scope="row"><Text>{kind}</Text></th>{["b", "v", "observations"].map((name) => <td key={name} class="figure"><Score value={at(level, name)} /></td>)}</tr>)}
            </Table>
          ) : null}
        </section>
      ))}
    </>
  );
}

async function readLevels(digest: string): Promise<{ levels: [string, Json][]; isHere: boolean }> {
  const data = await readBlob(digest);
  try {
    return data === null ? { levels: [], isHere: false } : { levels: [...asObject(at(readJson(data), "levels"))], isHere: true };
  } catch (error) {
    if (error instanceof BadInput) return { levels: [], isHere: false };
    throw error;
  }
}
