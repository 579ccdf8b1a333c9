/**
 * One session as a story: its turns, its subagents, the gate's decisions at their calls, and what is wrong with its chains.
 *
 * The page reads all chains of the session, counts the figures from these records, and lays the steps out in the order in
 * which they happened. From 1200 pixels on the detail stands beside the timeline; below, it covers it.
 */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { focusGrid, useGridKeys, useKeys } from "../../parts/keyboard.ts";
import { useAnswer } from "../../parts/states.tsx";
import { Command, Text, Time, count, plural } from "../../parts/text.tsx";
import { Timeline } from "../../parts/timeline.tsx";
import { type TimelineRow, type Wanted, arrangeStory, isWanted } from "../../parts/timeline_rows.ts";
import { Mark } from "../../parts/verdict.tsx";
import { Left, countRecords, findSession, readBlob, readRecords } from "../../records.ts";
import { type SessionChains, chainNames } from "../../sessions/chains.ts";
import { totalFigures } from "../../sessions/labels.ts";
import { type SessionReading, fetchPrompts, readSession } from "../../sessions/story.ts";
import { connection, contents, findingsOf, judgement, judgementOf, link, unjudgedOf, verifyChain } from "../../state.ts";
import type { Contents } from "../../worker/protocol.ts";
import { ChainView } from "../chains/chain.tsx";
import { StepDetail, recordAddress } from "./step_detail.tsx";

/** Records of a session that are laid out as a story. A longer one is shown chain by chain. */
const STORY_MAX = 20_000;
/** Pixels from which the detail stands beside the timeline. */
const WIDE = 1200;
/** Milliseconds after the last letter until the page looks for the words. */
const TYPING_MS = 250;

type State =
  | { state: "loading"; records: number; total: number }
  | { state: "none" }
  | { state: "too large"; chains: SessionChains; total: number }
  | { state: "failed"; words: string }
  | { state: "done"; chains: SessionChains; reading: SessionReading };

/** The session that was read last. A reader who opens a record and comes back does not wait for it again. */
let last: { open: Contents; chains: SessionChains; reading: SessionReading } | null = null;

function recall(chain: string): State | null {
  return last !== null && last.open === contents.value && chainNames(last.chains).includes(chain) ? { state: "done", ...last } : null;
}

/** Read the session of a chain. While a grown one is read again, the earlier reading stays. */
export function useSession(chain: string): State & { again: () => void } {
  const [progress, setProgress] = useState({ records: 0, total: 0 });
  const { value, words, retry } = useAnswer(async (isCurrent): Promise<State> => {
    const open = contents.value;
    const recalled = recall(chain);
    if (recalled !== null) return recalled;
    const chains = await findSession(chain);
    if (open === null || chains === null) return { state: "none" };
    const total = countRecords(chainNames(chains));
    if (total > STORY_MAX) return { state: "too large", chains, total };
    const report = (records: number) => {
      if (!isCurrent()) throw new Left();
      setProgress({ records, total });
    };
    const { totals, entries } = await readSession(chains, readRecords, readBlob, report);
    const reading = { totals, entries: await fetchPrompts(entries, readBlob, () => report(total)) };
    last = { open, chains, reading };
    return { state: "done", chains, reading };
  }, [chain, contents.value]);
  return { ...(recall(chain) ?? (words ? { state: "failed", words } : value ?? { state: "loading", ...progress })), again: retry };
}

/** What stands in place of a session that cannot be told; null where it can. */
export function SessionProblem({ now, chain }: { now: ReturnType<typeof useSession>; chain: string }): JSX.Element | null {
  if (now.state === "loading") {
    return (
      <div aria-busy="true">
        <h1><Text>{chain}</Text></h1>
        <p class="beside" role="status">Reading {now.total ? `${count(now.records)} of ${plural(now.total, "record")}` : "its records"} …</p>
        {Array.from({ length: 12 }, (_, at) => <div key={at} class="story-row-loading" />)}
      </div>
    );
  }
  if (now.state === "too large") {
    return (
      <>
        <h1><Text>{now.chains.session}</Text></h1>
        <p class="strip">This session has {plural(now.total, "record")}. A page lays out at most {count(STORY_MAX)} as a story. Its chains can be read in their stored order, and this command tells all of it:</p>
        <p><Command>{`aver show ${now.chains.session} --html session.html`}</Command></p>
        <ul>{chainNames(now.chains).map((name) => <li key={name}><a href={link("chain", name)}><Text>{name}</Text></a></li>)}</ul>
      </>
    );
  }
  if (now.state === "failed") {
    return (
      <>
        <h1><Text>{chain}</Text></h1>
        <div class="finding failed" role="alert"><p>The session could not be read: <Text>{now.words}</Text></p></div>
        <p><button type="button" onClick={now.again}>Try again</button> or read <a href={link("chain", chain)}>the chain as it is stored</a>.</p>
      </>
    );
  }
  return null;
}

export function SessionView({ parts }: { parts: string[] }): JSX.Element {
  const [chain = "", wanted] = parts;
  const now = useSession(chain);
  if (now.state === "none") return <ChainView parts={parts} />;
  if (now.state !== "done") return <SessionProblem now={now} chain={chain} /> as JSX.Element;
  return <Story chain={chain} wanted={wanted ?? ""} chains={now.chains} reading={now.reading} />;
}

function Story({ chain, wanted, chains, reading }: { chain: string; wanted: string; chains: SessionChains; reading: SessionReading }): JSX.Element {
  const names = chainNames(chains);
  const [only, setOnly] = useState<Wanted>("");
  const [selected, setSelected] = useState<TimelineRow | null>(null);
  const [isOpen, setOpen] = useState(false);
  const [words, setWords] = useState("");
  const judgements = names.map(judgementOf);
  const all = useMemo(() => arrangeStory(reading.entries, findingsOf), [reading, ...judgements]);
  const rows = useMemo(() => all.filter((row) => isWanted(row, only)), [all, only]);
  const hits = useHits(words, names, all);
  const index = selected === null ? -1 : rows.indexOf(selected);
  const isWide = useIsWide();
  const unjudged = unjudgedOf(names);
  useEffect(() => { for (const name of unjudged) void verifyChain(name); }, [judgement.value.state, unjudged.join("\n")]);
  useEffect(() => {
    // An address names a record of any chain of the session: `#/s/<chain>/at-<sequence>`.
    const sequence = /^at-(\d+)$/.exec(wanted)?.[1];
    const found = sequence === undefined ? undefined : findRow(all, chain, Number(sequence));
    if (found) select(found);
    else setSelected((before) => (before === null ? null : (all.find((row) => row.entry !== null && row.entry.chain === before.entry?.chain && row.entry.place === before.entry.place && row.sort === before.sort) ?? null)));
  }, [all, wanted, chain]);

  function select(row: TimelineRow): void {
    setSelected(row);
    const step = row.entry?.step;
    if (!step || row.entry === null) return;
    // Not a new entry of the history: a reader who goes back wants to leave the session.
    history.replaceState(null, "", link("s", row.chain, `at-${step.sequence ?? row.entry.place}`));
  }
  const move = (step: number, isGood: (row: TimelineRow) => boolean = () => true) => {
    for (let at = index < 0 ? (step > 0 ? 0 : rows.length - 1) : index + step; at >= 0 && at < rows.length; at += step) {
      const row = rows[at] as TimelineRow;
      if (isGood(row)) return select(row);
    }
  };
  /** The next row of a sort; after the last, the first. */
  const seek = (step: number, isGood: (row: TimelineRow) => boolean) => {
    const order = step > 0 ? [...rows.slice(index + 1), ...rows.slice(0, index + 1)] : [...rows.slice(0, Math.max(index, 0)).reverse(), ...rows.slice(Math.max(index, 0)).reverse()];
    const found = order.find(isGood);
    if (found) select(found);
  };
  const open = (at: number) => {
    const row = rows[at];
    if (!row) return;
    if (!isWide && !isOpen) setOpen(true);
    else if (row.entry?.step) location.hash = recordAddress(row.entry);
  };
  useGridKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    J: () => move(1, (row) => row.sort === "prompt" && row.depth === 0),
    K: () => move(-1, (row) => row.sort === "prompt" && row.depth === 0),
    e: () => seek(1, (row) => row.sort === "edit"),
    x: () => seek(1, (row) => row.isFailed || row.isDenied),
    b: () => seek(1, (row) => row.sort === "break" || row.sort === "missing"),
    n: () => seek(1, (row) => hits.rows.has(row)),
    N: () => seek(-1, (row) => hits.rows.has(row)),
  });
  useKeys({
    Enter: () => open(index),
    Escape: () => {
      if (isOpen) setOpen(false);
      else if (only) setOnly("");
      else history.back();
    },
  });
  const breaks = all.filter((row) => row.sort === "break").length;
  const detail = selected === null ? <p class="strip">Choose a row to see the whole of it. <kbd>j</kbd> and <kbd>k</kbd> move, <kbd>?</kbd> lists all keys.</p> : <StepDetail row={selected} />;
  return (
    <section class="session-view">
      <SessionHead chains={chains} reading={reading} only={only} setOnly={setOnly} breaks={breaks} shown={rows.length} />
      <p class="find">
        <label>Find in this session <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Enter") seek(event.shiftKey ? -1 : 1, (row) => hits.rows.has(row)); }} /></label>
        <span class="beside" role="status">{hits.words}</span>
        {breaks ? <button type="button" class="small" onClick={() => seek(1, (row) => row.sort === "break")}>Next break (b)</button> : null}
      </p>
      <Split isWide={isWide} isOpen={isOpen && selected !== null} close={() => setOpen(false)}
        timeline={rows.length ? <Timeline rows={rows} selected={index} hits={hits.rows} label="Steps of the session" onSelect={(at) => { if (rows[at]) { select(rows[at]); if (!isWide) setOpen(true); } }} onOpen={open} /> : <p class="strip">No step is of this sort. <button type="button" class="small" onClick={() => setOnly("")}>Show all</button></p>}
        detail={detail}
      />
    </section>
  );
}

function findRow(rows: TimelineRow[], chain: string, sequence: number): TimelineRow | undefined {
  const isThere = (row: TimelineRow) => row.chain === chain && (row.entry?.step?.sequence === sequence || row.finding?.place.sequence === sequence || String(row.finding?.place.sequence) === String(sequence));
  return rows.find((row) => row.sort === "break" && isThere(row)) ?? rows.find(isThere) ?? rows.find((row) => row.entry?.decision?.chain === chain && row.entry.decision.sequence === sequence);
}

function SessionHead({ chains, reading, only, setOnly, breaks, shown }: { chains: SessionChains; reading: SessionReading; only: Wanted; setOnly: (only: Wanted) => void; breaks: number; shown: number }): JSX.Element {
  const { totals } = reading;
  const names = chainNames(chains);
  const states = names.map(judgementOf);
  const isFailed = breaks > 0 || names.some((name) => findingsOf(name).some((finding) => finding.status === "failed"));
  // The weakest word on any of its chains is the word on the session. A failure elsewhere is none of this session.
  const words = states.map((state) => (state.state !== "done" ? (state.state === "working" ? "working" : "not judged") : state.verdict.status === "failed" ? "qualified" : state.verdict.status));
  const mark = isFailed ? "failed" : ((["working", "not judged", "qualified", "empty"] as const).find((word) => words.includes(word)) ?? "verified");
  const note = { failed: "a record of it does not hold", verified: "every record of it is verified", qualified: "nothing failed in it, and not everything could be checked", empty: "it has no record", working: "being verified", "not judged": "not judged" }[mark];
  const choice = (wanted: Wanted, words: ComponentChildren, state = "") => <button key={wanted} type="button" class={`small figure ${state}`} aria-pressed={only === wanted} onClick={() => setOnly(only === wanted ? "" : wanted)}>{words}</button>;
  return (
    <header class="session-head">
      <h1><Text>{totals.title || chains.session}</Text></h1>
      <p class="beside">
        <Mark name={mark} /> <strong>{mark}</strong>, {note} · <Text>{chains.tool}</Text> <code><Text>{chains.session}</Text></code>
        {totals.started ? <> · <Time>{totals.started}</Time></> : null}
        {" · "}<a href={link("files", chains.main ?? names[0] ?? "")}>Files</a>
        {" · "}<a href={link("chain", chains.main ?? names[0] ?? "")}>As stored</a>
      </p>
      <div class="figures" role="group" aria-label="Figures; each leads to its rows">
        {totalFigures(totals).map(({ words, sort }, at) => {
          if (sort === "record") return <RecordsFigure key={at} words={words} names={names} />;
          return sort ? choice(sort, <Text>{words}</Text>) : <span key={at} class="figure">{words}</span>;
        })}
        {totals.observed ? choice("observed", `${plural(totals.observed, "decision")} only observed`, "warn") : null}
        {breaks ? choice("break", plural(breaks, "break")) : null}
        {only ? <button type="button" class="small" onClick={() => setOnly("")}>Show all steps ({plural(shown, "row")} shown)</button> : null}
      </div>
    </header>
  );
}

/** How many records the session has. The story leaves out Aver's own notes, so that this leads to its chains as they are stored. */
function RecordsFigure({ words, names }: { words: string; names: string[] }): JSX.Element {
  if (names.length === 1) return <a class="figure" href={link("chain", names[0] ?? "")}>{words}</a>;
  return (
    <details class="figure">
      <summary>{words}</summary>
      <ul>{names.map((name) => <li key={name}><a href={link("chain", name)}>{plural(countRecords([name]), "record")} in <Text>{name}</Text></a></li>)}</ul>
    </details>
  );
}

/** Rows whose records have the reader's words, by the language of searches. */
function useHits(words: string, chains: string[], rows: TimelineRow[]): { rows: ReadonlySet<TimelineRow>; words: string } {
  const wanted = words.trim();
  const answer = useAnswer(async (isCurrent) => {
    await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
    const { hits } = wanted && isCurrent() ? await connection.ask({ type: "search", words: wanted, limit: STORY_MAX, chains }) : { hits: [] };
    return { wanted, places: new Set(hits.map(({ chain, row }) => `${chain}\n${row.place}`)) };
  }, [wanted, chains.join("\n")]);
  const found = answer.value;
  const hits = useMemo(() => {
    const placesOf = (row: TimelineRow) => [row.entry?.place ?? -1, ...(row.entry?.additions ?? [])];
    return new Set(found === null ? [] : rows.filter((row) => row.entry !== null && placesOf(row).some((place) => found.places.has(`${row.chain}\n${place}`))));
  }, [found, rows]);
  return { rows: hits, words: !wanted ? "" : answer.words || (found?.wanted === wanted ? `${plural(hits.size, "hit")}; n and N go through them.` : "looking …") };
}

function useIsWide(): boolean {
  const [isWide, setWide] = useState(innerWidth >= WIDE);
  useEffect(() => {
    const query = matchMedia(`(min-width: ${WIDE}px)`);
    const update = () => setWide(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return isWide;
}

/** Take everything of the view that an element covers out of the reach of keys and pointers. Returns what undoes it. */
function hideBehind(cover: HTMLElement): () => void {
  const hidden: HTMLElement[] = [];
  for (let inside = cover; inside.id !== "main" && inside.parentElement; inside = inside.parentElement) {
    hidden.push(...([...inside.parentElement.children] as HTMLElement[]).filter((one) => one !== inside && !one.inert));
  }
  for (const one of hidden) one.inert = true;
  return () => { for (const one of hidden) one.inert = false; };
}

const DETAIL_MIN = 320;
const DETAIL_MAX = 640;
/** The width that the reader gave the detail; 0 for the usual one. */
let chosenWidth = 0;

/** Timeline and detail: side by side with a handle between them, or one that covers the other. */
function Split({ isWide, isOpen, close, timeline, detail }: { isWide: boolean; isOpen: boolean; close: () => void; timeline: ComponentChildren; detail: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(chosenWidth);
  const limit = (value: number) => Math.round(Math.min(DETAIL_MAX, Math.max(DETAIL_MIN, value)));
  const set = (value: number) => { chosenWidth = limit(value); setWidth(chosenWidth); };
  const now = () => width || limit(0.4 * (box.current?.clientWidth ?? 1200));
  const isCovered = isOpen && !isWide;
  const cover = useRef<HTMLDivElement>(null);
  const back = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (!isCovered) return;
    const before = document.activeElement as HTMLElement | null;
    const uncover = hideBehind(cover.current as HTMLElement);
    back.current?.focus();
    return () => {
      uncover();
      focusGrid();
      before?.focus({ preventScroll: true }); // It may be gone, or be the page itself: the list then keeps the focus.
    };
  }, [isCovered]);
  useLayoutEffect(() => { box.current?.style.setProperty("--detail", width ? `${width}px` : "40%"); }, [width, isWide]);
  if (!isWide) {
    return (
      <div class="session-split narrow">
        {timeline}
        {isCovered ? <div class="detail cover" ref={cover} role="dialog" aria-modal="true" aria-label="The step"><p class="close"><button type="button" ref={back} onClick={close}>Back to the timeline</button></p>{detail}</div> : null}
      </div>
    );
  }
  return (
    <div class="session-split" ref={box}>
      {timeline}
      <div
        class="handle" role="separator" aria-orientation="vertical" aria-label="Width of the detail" tabIndex={0}
        aria-valuenow={width || Math.round((DETAIL_MIN + DETAIL_MAX) / 2)} aria-valuemin={DETAIL_MIN} aria-valuemax={DETAIL_MAX}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => { if (event.buttons & 1 && box.current) set(box.current.getBoundingClientRect().right - event.clientX); }}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") set(now() + 24);
          else if (event.key === "ArrowRight") set(now() - 24);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <aside class="detail" aria-label="The step" tabIndex={0}>{detail}</aside>
    </div>
  );
}
