/** The icon of a row's sort: a shape of 16 pixels, in the colour of the text. A denied one is struck. */

import type { JSX } from "preact";
import type { RowSort } from "./timeline_rows.ts";

/** Breaks, missing records and a cut end have no icon. */
const PATHS: Partial<Record<RowSort, string>> = {
  prompt: "M3 3h10v7H7l-3 3v-3H3z",
  answer: "M3 4h10M3 8h10M3 12h6",
  edit: "M3 13l1-3 7-7 2 2-7 7z",
  command: "M3 5l3 3-3 3M8 11h5",
  call: "M8 3v10M3 8h10",
  note: "M8 7v5M8 4v.5",
  unknown: "M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M8 12.5v.5",
  unreadable: "M8 2l6 11H2zM8 6v3.5M8 11v.5",
  agent: "M4 3v4a3 3 0 0 0 3 3h5M9.5 7.5L12 10l-2.5 2.5",
  decision: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
};

const NAMES: Partial<Record<RowSort, string>> = {
  prompt: "prompt",
  answer: "answer",
  edit: "edit",
  command: "command",
  call: "tool call",
  note: "note",
  unknown: "unknown record",
  unreadable: "unreadable record",
  agent: "subagent",
  decision: "decision",
};

export function SortIcon({ sort, isStruck = false }: { sort: RowSort; isStruck?: boolean }): JSX.Element {
  return (
    <svg class={`sort-icon ${sort}${isStruck ? " struck" : ""}`} viewBox="0 0 16 16" width="16" height="16" role="img" aria-label={NAMES[sort]}>
      <path d={PATHS[sort]} />
      {isStruck ? <path class="strike" d="M2 14L14 2" /> : null}
    </svg>
  );
}
