/** A decision of the gate: the word, the rules, the reasons, and the score with its interval and the thresholds. */

import type { JSX } from "preact";
import { Text, Time } from "../../parts/text.tsx";
import { type RecordedDecision, isObserved, refuses, shownReasons } from "../../sessions/decisions.ts";
import { decisionLabel } from "../../sessions/labels.ts";
import { at } from "../../verify/block.ts";
import { type Json, JsonNumber } from "../../verify/json.ts";
import { link } from "../../state.ts";

/** The place of a number on a scale from 0 to 1; null if it is none. The text that is shown is the record's own. */
export function onScale(value: Json | undefined): number | null {
  if (!(value instanceof JsonNumber)) return null;
  const number = value.value;
  return Number.isFinite(number) ? Math.min(1, Math.max(0, number)) : null;
}

/** A score with three digits after the point; the pointer shows all that the record writes. */
export function Score({ value }: { value: Json | undefined }): JSX.Element | null {
  if (!(value instanceof JsonNumber)) return null;
  const number = value.value;
  const shown = value.isInteger || value.text.length <= 5 ? value.text : number > 0 && number < 0.001 ? "<0.001" : number.toFixed(3);
  return <span class="figure" title={value.text}>{shown}</span>;
}

export function DecisionCard({ decision, isLinked = true }: { decision: RecordedDecision; isLinked?: boolean }): JSX.Element {
  const state = refuses(decision) ? "bad" : decision.decision === "human_review" ? "warn" : "good";
  const reasons = shownReasons(decision);
  return (
    <div class={`decision is-${state}`}>
      <p>
        <strong><Text>{decisionLabel(decision.decision)}</Text></strong>
        {isObserved(decision) ? <span class="warn"> The gate only observed, and held nothing back.</span> : null}
        {decision.at ? <span class="beside"> · <Time>{decision.at}</Time></span> : null}
        {isLinked && decision.chain !== null && decision.sequence !== null ? <> · <a href={link("c", decision.chain, decision.sequence)}>its record</a></> : null}
      </p>
      {reasons.length ? <ul>{reasons.map((reason, place) => <li key={place}><Text>{reason}</Text></li>)}</ul> : null}
      <dl class="facts">
        {decision.rules.length ? <div><dt>Rules</dt><dd>{decision.rules.map((rule) => <code key={rule}><Text>{rule}</Text></code>)}</dd></div> : null}
        {decision.answer ? <div><dt>Answer to the agent</dt><dd><Text>{decision.answer}</Text></dd></div> : null}
      </dl>
      {decision.score instanceof JsonNumber ? <ScoreBar score={decision.score} interval={decision.interval} thresholds={decision.thresholds} /> : <p class="beside">No risk was computed: the rules alone decided.</p>}
    </div>
  );
}

const WIDTH = 320;

/** The score on a scale from 0 to 1, with its interval and the two thresholds. The numbers stand below as text. */
export function ScoreBar({ score, interval, thresholds }: { score: JsonNumber; interval: Json; thresholds: Json }): JSX.Element {
  const [low, high] = Array.isArray(interval) ? interval : [];
  const pass = at(thresholds, "pass_below");
  const skip = at(thresholds, "skip_above");
  const toX = (value: Json | undefined) => (onScale(value) ?? 0) * WIDTH;
  return (
    <div class="score">
      <svg viewBox={`0 0 ${WIDTH} 28`} width="100%" height="28" preserveAspectRatio="none" aria-hidden="true">
        <rect class="scale" x="0" y="12" width={WIDTH} height="4" />
        {onScale(low) === null || onScale(high) === null ? null : <rect class="interval" x={toX(low)} y="9" width={Math.max(2, toX(high) - toX(low))} height="10" />}
        {onScale(pass) === null ? null : <rect class="threshold" x={toX(pass)} y="4" width="2" height="20" />}
        {onScale(skip) === null ? null : <rect class="threshold" x={toX(skip)} y="4" width="2" height="20" />}
        <rect class="value" x={toX(score) - 2} y="6" width="4" height="16" />
      </svg>
      <p class="beside">
        Risk <Score value={score} />
        {low instanceof JsonNumber ? <>, interval <Score value={low} /> to <Score value={high} /></> : null}
        {pass instanceof JsonNumber ? <>. It is low if the whole interval is at most <Score value={pass} /></> : null}
        {skip instanceof JsonNumber ? <>, and denied if the whole is above <Score value={skip} /></> : null}{pass instanceof JsonNumber ? ". The rules decide, and see this." : ""}
      </p>
    </div>
  );
}
