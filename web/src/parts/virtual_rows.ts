/** Rows of known heights in a box that scrolls: only those near the window are in the page. */

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useReducer, useState } from "preact/hooks";

/** Rows beyond the window that stay in the page, so that scrolling shows no blank. */
const OVERSCAN = 12;
/** Rows in the page at most, however tall the window is. */
export const ROWS_MAX = 120;

export interface VirtualRow {
  index: number;
  start: number;
  size: number;
}

export interface VirtualRows {
  rows: VirtualRow[];
  total: number;
  /** Scroll so that a row can be seen. */
  reveal(index: number, align?: "auto" | "center" | "start"): void;
}

/** `heights` has the height of each row; `box` returns the element that scrolls. */
export function useVirtualRows(heights: readonly number[], box: () => HTMLElement | null): VirtualRows {
  const [, render] = useReducer((turn: number) => turn + 1, 0);
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options(heights, box, render as () => void)));
  virtualizer.setOptions(options(heights, box, render as () => void));
  useEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  // The heights are known, never measured. Where they changed, the sums are made anew.
  useLayoutEffect(() => virtualizer.measure(), [heights]);
  return {
    rows: virtualizer.getVirtualItems().slice(0, ROWS_MAX),
    total: virtualizer.getTotalSize(),
    reveal: (index, align = "auto") => virtualizer.scrollToIndex(index, { align }),
  };
}

function options(heights: readonly number[], box: () => HTMLElement | null, render: () => void) {
  return {
    count: heights.length,
    getScrollElement: box,
    estimateSize: (index: number) => heights[index] ?? 0,
    overscan: OVERSCAN,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: render,
  };
}
