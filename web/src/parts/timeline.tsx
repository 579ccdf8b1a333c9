/**
 * The timeline of a session: rows of fixed heights, of which at most 120 are in the page. It is a grid with one tab stop;
 * the keys of the view move the selection.
 */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isObserved, shownReasons } from "../sessions/decisions.ts";
import { authorityLabel, decisionLabel, formatDuration, formatMoney, stepSummary } from "../sessions/labels.ts";
import type { Step } from "../sessions/step.ts";
import { BreakCard, breakHeight } from "./break.tsx";
import { Counts } from "./diff.tsx";
import { type MapMark, Minimap } from "./minimap.tsx";
import { Text, Time, count, plural, visible } from "./text.tsx";
import { SortIcon } from "./timeline_icon.tsx";
import { type TimelineRow, rowHeight } from "./timeline_rows.ts";
import { useVirtualRows } from "./virtual_rows.ts";

/** Pixels of a row that its text does not have: time, line, icon and padding; the card of a break has no icon. */
const BESIDE_TEXT = 180;
const BESIDE_BREAK = 124;
const PHONE_WIDTH = 720;

interface TimelineProps {
  rows: TimelineRow[];
  selected: number;
  /** Rows that the reader's words were found in. */
  hits: ReadonlySet<TimelineRow>;
  label: string;
  onSelect: (index: number) => void;
  onOpen: (index: number) => void;
}

export function Timeline({ rows, selected, hits, label, onSelect, onOpen }: TimelineProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [share, setShare] = useState<[number, number]>([0, 1]);
  useLayoutEffect(() => {
    const element = box.current as HTMLElement;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const isPhone = typeof window !== "undefined" && window.innerWidth < PHONE_WIDTH;
  const heights = useMemo(() => rows.map((row) => {
    const inside = width - (isPhone ? 80 : row.finding ? BESIDE_BREAK : BESIDE_TEXT) - 20 * row.depth;
    return row.finding ? breakHeight(row.finding, inside) : rowHeight(row, inside, isPhone, visible);
  }), [rows, width, isPhone]);
  const { rows: shown, total, reveal } = useVirtualRows(heights, () => box.current);
  useEffect(() => {
    if (selected >= 0) reveal(selected);
  }, [selected, heights]);
  const update = () => {
    const element = box.current;
    if (element && total) setShare([element.scrollTop / total, (element.scrollTop + element.clientHeight) / total]);
  };
  useEffect(update, [total, width]);
  const marks = useMemo(() => listMarks(rows, heights, hits), [rows, heights, hits]);
  const space = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => { if (space.current) space.current.style.height = `${total}px`; }, [total]);
  return (
    <div class="timeline-frame">
      <div
        ref={box}
        class="story"
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length}
        aria-activedescendant={selected >= 0 ? `row-${selected}` : undefined}
        tabIndex={0}
        onScroll={update}
      >
        <div ref={space} class="space" role="rowgroup">
          {shown.map(({ index, start, size }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <StoryRow key={index} row={row} index={index} top={start} height={size} isSelected={index === selected} isHit={hits.has(row)} onSelect={onSelect} onOpen={onOpen} />
            );
          })}
        </div>
      </div>
      <Minimap marks={marks} share={share} words="prompts, edits, failures, denials, hits and breaks" go={(at) => { if (box.current) box.current.scrollTop = at * total - box.current.clientHeight / 2; }} />
    </div>
  );
}

function listMarks(rows: TimelineRow[], heights: number[], hits: ReadonlySet<TimelineRow>): MapMark[] {
  const total = heights.reduce((sum, height) => sum + height, 0) || 1;
  const marks: MapMark[] = [];
  let top = 0;
  rows.forEach((row, index) => {
    const at = top / total;
    if (row.sort === "break" || row.sort === "missing") marks.push({ sort: "break", at });
    else if (row.isDenied) marks.push({ sort: "denial", at });
    else if (row.isFailed) marks.push({ sort: "failure", at });
    else if (row.sort === "edit" || row.sort === "prompt") marks.push({ sort: row.sort, at });
    if (hits.has(row)) marks.push({ sort: "hit", at });
    top += heights[index] ?? 0;
  });
  return marks;
}

interface StoryRowProps {
  row: TimelineRow;
  index: number;
  top: number;
  height: number;
  isSelected: boolean;
  isHit: boolean;
  onSelect: (index: number) => void;
  onOpen: (index: number) => void;
}

function StoryRow({ row, index, top, height, isSelected, isHit, onSelect, onOpen }: StoryRowProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { style } = element.current as HTMLElement;
    [style.transform, style.height] = [`translateY(${top}px)`, `${height}px`];
    style.setProperty("--depth", String(Math.min(row.depth, 8)));
  });
  const names = ["story-row", row.sort, isSelected ? "selected" : "", isHit ? "hit" : "", row.isAfterBreak ? "after" : "", row.findings.length ? "broken" : "", row.isDenied ? "denied" : "", row.isFailed ? "failed" : "", row.depth ? "nested" : ""];
  return (
    <div
      ref={element}
      id={`row-${index}`}
      class={names.filter(Boolean).join(" ")}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={isSelected}
      onClick={() => onSelect(index)}
      onDblClick={() => onOpen(index)}
    >
      <RowCells row={row} />
    </div>
  );
}

function RowCells({ row }: { row: TimelineRow }): JSX.Element {
  const { entry, sort } = row;
  if (sort === "break" && row.finding !== null) {
    return <div role="gridcell" class="break-card"><BreakCard chain={row.chain} finding={row.finding} place={row.place} /></div>;
  }
  if (sort === "end") return <div role="gridcell" class="cap">{row.words}</div>;
  if (sort === "missing") return <div role="gridcell" class="missing-cell">{row.words}</div>;
  const step = entry?.step ?? null;
  const at = step?.at ?? entry?.decision?.at ?? "";
  return (
    <>
      <span role="gridcell" class="time">{at ? <Time short>{at}</Time> : null}</span>
      <span role="gridcell" class="rail-line" aria-hidden="true"><span class="node" /></span>
      <span role="gridcell" class="icon"><SortIcon sort={sort} isStruck={row.isDenied} /></span>
      {step !== null && sort === "prompt" ? <span role="gridcell" class="asked">{visible(step.asked)}{step.askedLeft === 0 ? null : <span class="soft">{step.askedLeft === null ? "\n… its rest was not read; open it to try again" : `\n… ${plural(step.askedLeft, "more line")}`}</span>}</span> : <Summary row={row} />}
      {step !== null && sort !== "prompt" ? <Facts step={step} /> : null}
    </>
  );
}

function Summary({ row }: { row: TimelineRow }): JSX.Element {
  const { entry } = row;
  const step = entry?.step ?? null;
  const decision = entry?.decision ?? null;
  if (step === null) {
    const why = decision === null ? "" : shownReasons(decision)[0] ?? decision.rules.join(" ");
    return (
      <span role="gridcell" class="summary">
        {decision === null ? <strong><Text>{row.words}</Text></strong> : <>
          <Word row={row} /> <Text>{decision.tool}</Text> <span class="soft"><Text>{why}</Text></span>
        </>}
      </span>
    );
  }
  const words = step.what === "answer" && step.text ? step.text : stepSummary(step).replace(/^denied: /, "");
  return <span role="gridcell" class="summary"><Word row={row} /><Text>{words}</Text></span>;
}

/** The word that stands before the summary where the colour alone would say it. */
function Word({ row }: { row: TimelineRow }): JSX.Element | null {
  const { entry } = row;
  const step = entry?.step ?? null;
  const decision = entry?.decision ?? null;
  if (row.isDenied) {
    const who = step === null ? "by the gate" : authorityLabel(step).split(" (", 1)[0];
    return <span class="word bad">denied {who}</span>;
  }
  if (row.isFailed) return <span class="word warn">failed</span>;
  if (step?.status === "pending") return <span class="word">no outcome</span>;
  if (step === null && decision !== null) return <span class="word">{isObserved(decision) ? "observed: " : ""}<Text>{decisionLabel(decision.decision)}</Text></span>;
  return null;
}

function Facts({ step }: { step: Step }): JSX.Element {
  const { tokensIn, tokensOut, costUsd } = step.spent;
  const tokens = tokensIn === null && tokensOut === null ? "" : `${tokensIn === null ? "–" : count(tokensIn)} → ${tokensOut === null ? "–" : count(tokensOut)}`;
  return (
    <>
      <span role="gridcell" class="authority" title={visible(authorityLabel(step))}><Text>{step.status === "blocked" ? step.rule : authorityLabel(step)}</Text></span>
      <span role="gridcell" class="lines"><Counts lines={step.lines} /></span>
      <span role="gridcell" class="tokens figure" title={costUsd === null ? "tokens in and out" : `tokens in and out, ${formatMoney(costUsd)}`}>{tokens}</span>
      <span role="gridcell" class="took figure">{step.durationMs === null ? "" : formatDuration(step.durationMs)}</span>
    </>
  );
}
