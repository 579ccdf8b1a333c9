/** One step, whole: what was asked, thought, done and changed, what the gate decided, and what later records add. */

import type { JSX } from "preact";
import { BreakCard } from "../../parts/break.tsx";
import { DiffView } from "../../parts/diff.tsx";
import { Value } from "../../parts/json.tsx";
import { Problem, useAnswer } from "../../parts/states.tsx";
import { Terminal } from "../../parts/terminal.tsx";
import { Copy, Linked, Text, Time, count } from "../../parts/text.tsx";
import { SortIcon } from "../../parts/timeline_icon.tsx";
import type { TimelineRow } from "../../parts/timeline_rows.ts";
import { readBlob, readRecordAt } from "../../records.ts";
import { fetchStep } from "../../sessions/blobs.ts";
import { commandLine } from "../../sessions/decisions.ts";
import { authorityLabel, consumptionLabel, formatDuration, resultTexts, stepError, stepSummary } from "../../sessions/labels.ts";
import { changedPaths } from "../../sessions/files.ts";
import { type Step, promptOf, readStep } from "../../sessions/step.ts";
import { applyAdditions, type StoryEntry } from "../../sessions/story.ts";
import { isObject } from "../../verify/json.ts";
import { Sealed } from "../../verify/sealed.ts";
import { cutText } from "../../verify/text.ts";
import type { Finding } from "../../verify/verdict.ts";
import { link } from "../../state.ts";
import { DecisionCard } from "../capsule/decision.tsx";

/** Bytes of a long text beside the record that is fetched to be shown. */
const SHOWN_BLOB_MAX = 1024 * 1024;

interface WholeStep {
  step: Step;
  additions: Step[];
}

/** Read a step of the story again from its records, with its long texts. */
export async function readWholeStep(entry: StoryEntry): Promise<WholeStep> {
  const read = async (place: number): Promise<Step | null> => {
    const record = await readRecordAt(entry.chain, place);
    return record instanceof Sealed ? readStep(record) : null;
  };
  const own = await read(entry.place);
  const additions = (await Promise.all(entry.additions.map(read))).filter((step) => step !== null);
  const shown = entry.step as Step;
  // A prompt that another tool's record repeats is a step of its own.
  const base = own === null ? shown : shown.what !== own.what ? promptOf(own) : applyAdditions(own, additions);
  return { step: await fetchStep(base, readBlob, SHOWN_BLOB_MAX), additions };
}

/** A break, whole, with the way to the records around it. */
function BreakDetail({ row, finding }: { row: TimelineRow; finding: Finding }): JSX.Element {
  return (
    <>
      <h2>The chain breaks here</h2>
      <div class="break-detail"><BreakCard chain={row.chain} finding={finding} place={row.place} /></div>
      <p>Records after this place keep their own marks: intact in themselves, no longer tied to what came before.</p>
      <p>
        {row.place === null ? null : <><a href={link("c", row.chain, `p${row.place}`)}>The record at this place</a> · </>}
        <a href={link("chain", row.chain)}>The chain as it is stored</a>
      </p>
    </>
  );
}

export function StepDetail({ row }: { row: TimelineRow }): JSX.Element {
  const { entry } = row;
  const { value: whole, words, retry } = useAnswer(async () => (entry?.step ? readWholeStep(entry) : null), [entry]);
  if (row.finding !== null) return <BreakDetail row={row} finding={row.finding} />;
  if (entry === null) return <p class="strip">{row.words || "Choose a row to see the whole of it."}</p>;
  if (entry.step === null) {
    return entry.decision === null
      ? <><h2>Subagent <Text>{entry.agent}</Text></h2><p>Its part of the session starts here, in a chain of its own: <a href={link("chain", entry.chain)}><Text>{entry.chain}</Text></a>.</p></>
      : <><h2>A decision about a call that is in no transcript</h2><DecisionCard decision={entry.decision} /></>;
  }
  const step = whole?.step ?? entry.step;
  const isCurrent = whole !== null && whole.step.hash === entry.step.hash;
  return (
    <article class="step-detail" aria-busy={!isCurrent}>
      <header>
        <h2><SortIcon sort={row.sort} isStruck={row.isDenied} /> <Text>{step.what === "prompt" ? "Prompt" : step.what === "answer" ? "Answer" : stepSummary(step)}</Text></h2>
        <p class="beside">
          {step.at ? <Time>{step.at}</Time> : "at a time that the record does not say"}
          {step.model ? <> · <Text>{step.model}</Text></> : null}
          {step.durationMs === null ? null : <> · {formatDuration(step.durationMs)}</>}
          {consumptionLabel(step.spent) ? <> · {consumptionLabel(step.spent)}</> : null}
        </p>
        <p class="buttons">
          <a class="button small" href={recordAddress(entry)}>Open the record</a>
          <Copy text={`capsule://${entry.chain}/${step.sequence ?? entry.place}`} label="Copy its address" />
        </p>
      </header>
      {words ? <Problem words={words} retry={retry} /> : null}
      {isCurrent && step.cut.size ? <Problem words="The rest of a long text of this step is missing, damaged or too large to be shown." retry={retry} /> : null}
      {isCurrent ? <StepBody step={step} /> : <div class="placeholder tall" />}
      {entry.decision === null ? null : <section><h3>The gate</h3><DecisionCard decision={entry.decision} /></section>}
      {isCurrent && whole.additions.length ? <Additions steps={whole.additions} chain={entry.chain} places={entry.additions} /> : null}
    </article>
  );
}

/** The address of a step's record. */
export function recordAddress({ chain, place, step }: StoryEntry): string {
  return link("c", chain, step !== null && step.sequence === place ? place : `p${place}`);
}

/** Characters of a text that are laid out. All of them can be copied. */
const PROSE_MAX = 200_000;

function Prose({ text }: { text: string }): JSX.Element {
  return (
    <>
      <div class="prose"><Linked>{cutText(text, PROSE_MAX)}</Linked></div>
      {text.length > PROSE_MAX ? <p class="beside">Only the first {count(PROSE_MAX)} characters are laid out. <Copy text={text} label="copy the whole text" /></p> : null}
    </>
  );
}

/** The content of a step. */
function StepBody({ step }: { step: Step }): JSX.Element {
  const given = isObject(step.arguments) ? step.arguments : null;
  const command = step.what === "call" && given !== null ? commandLine(given) : "";
  const results = resultTexts(step, step.result);
  const error = stepError(step);
  return (
    <>
      {step.what === "prompt" ? <Prose text={step.asked} /> : null}
      {step.text && step.what !== "prompt" ? <Prose text={step.text} /> : null}
      {step.thinking ? <details class="thinking" open={!step.text && step.what !== "call"}><summary>What the model thought</summary><Prose text={step.thinking} /></details> : null}
      {step.redacted ? <p class="beside">The model thought here, and its tool redacted the text. The record keeps the proof of it.</p> : null}
      {typeof step.diff === "string" && step.diff ? <DiffView diff={step.diff} paths={changedPaths(step)} /> : null}
      {command ? <><h3>Command</h3><pre class="command-line" tabIndex={0}><Text>{command}</Text></pre></> : null}
      {step.what === "call" && !command && given?.size && typeof step.diff !== "string" ? <><h3>Arguments</h3><Value value={given} /></> : null}
      {error ? <><h3>Error</h3><Terminal text={error} label="Error" /></> : null}
      {results.map((part, at) => (
        <section key={at}>
          <h3>{part.name ? <Text>{part.name}</Text> : part.isAside ? "Result" : "Output"}</h3>
          {part.isAside ? <p class="beside"><Linked>{part.text}</Linked></p> : <Terminal text={part.text} />}
        </section>
      ))}
      {typeof step.diff !== "string" && step.diff !== null ? <><h3>Change</h3><Value value={step.diff} /></> : null}
      {step.what !== "call" && step.more !== null ? <><h3>More</h3><Value value={step.more} /></> : null}
      <dl class="facts">
        {authorityLabel(step) ? <div><dt>{step.status === "blocked" ? "Denied" : "Allowed"}</dt><dd><Text>{authorityLabel(step)}</Text></dd></div> : null}
        {step.status ? <div><dt>Outcome</dt><dd><Text>{step.status === "blocked" ? "denied" : step.status}</Text></dd></div> : null}
        {step.sideEffects.length ? <div><dt>Side effects</dt><dd><ul>{step.sideEffects.slice(0, 50).map((effect, at) => <li key={at}><Text>{effect}</Text></li>)}</ul></dd></div> : null}
      </dl>
    </>
  );
}

function Additions({ steps, chain, places }: { steps: Step[]; chain: string; places: number[] }): JSX.Element {
  return (
    <section>
      <h3>Later records about the same step</h3>
      <ul>
        {steps.map((step, at) => (
          <li key={step.hash || at}>
            <a href={link("c", chain, `p${places[at] ?? 0}`)}>record {places[at]}</a> from the <Text>{step.addition?.via || "transcript"}</Text>
            {step.addition?.status ? <>; it says that the call ended with <strong><Text>{step.addition.status}</Text></strong></> : null}
            {step.addition?.differs.length ? <span class="warn">; both disagree in <Text>{step.addition.differs.join(", ")}</Text></span> : null}
          </li>
        ))}
      </ul>
    </section>
  );
}
