/** A narrow map of a whole list: where edits, failures, denials, hits and breaks are, and what the window shows. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";

type MarkSort = "edit" | "failure" | "denial" | "hit" | "break" | "prompt";

export interface MapMark {
  sort: MarkSort;
  /** Where it is in the list, from 0 to 1. */
  at: number;
}

/** Marks that are drawn. More would lie on each other: a map has some hundred pixels. */
const MARKS_MAX = 1_500;
const ORDER: MarkSort[] = ["prompt", "edit", "hit", "failure", "denial", "break"];

/** `share` is the part of the list that the window shows, from and to; `go` scrolls there. */
export function Minimap({ marks, share: [from, to], go, words }: { marks: MapMark[]; share: [number, number]; go: (at: number) => void; words: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const point = (event: PointerEvent) => {
    const { top, height } = (box.current as HTMLElement).getBoundingClientRect();
    go(Math.min(1, Math.max(0, (event.clientY - top) / height)));
  };
  useEffect(() => {
    const view = box.current?.querySelector<HTMLElement>(".view");
    if (view) [view.style.top, view.style.height] = [`${100 * from}%`, `${Math.max(1, 100 * (to - from))}%`];
  });
  // Scrolling changes only the view, and the map may have many marks.
  const map = useMemo(() => <Marks marks={marks} />, [marks]);
  return (
    <div
      ref={box}
      class="minimap"
      aria-hidden="true"
      title={words}
      onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); point(event); }}
      onPointerMove={(event) => { if (event.buttons & 1) point(event); }}
    >
      {map}
      <div class="view" />
    </div>
  );
}

const COLUMNS: Record<MarkSort, [x: number, width: number]> = { prompt: [0, 16], edit: [3, 5], hit: [6, 5], failure: [8, 5], denial: [8, 5], break: [8, 5] };

function Marks({ marks }: { marks: MapMark[] }): JSX.Element {
  // The worst come last, so that they lie on top.
  const drawn = [...marks].sort((one, other) => ORDER.indexOf(one.sort) - ORDER.indexOf(other.sort)).slice(-MARKS_MAX);
  return (
    <svg viewBox="0 0 16 1000" preserveAspectRatio="none" width="16" height="100%">
      {drawn.map(({ sort, at }, index) => <rect key={index} class={sort} x={COLUMNS[sort][0]} y={Math.round(at * 994)} width={COLUMNS[sort][1]} height="6" />)}
    </svg>
  );
}
