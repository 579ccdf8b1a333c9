/**
 * Rows of known heights in a box that scrolls: only those near the window are in the page.
 *
 * The heights are known before anything is drawn, so that sums and a search by halves are all it takes. A library for
 * lists that must be measured would be a twentieth of the page's size.
 */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

/** Rows beyond the window that stay in the page, so that scrolling shows no blank. */
const OVERSCAN = 12;
/** Pixels before and after a row that are seen with it. */
const BESIDE_MAX = 56;
/** Rows in the page at most, however tall the window is. */
export const ROWS_MAX = 120;

interface VirtualRow {
  index: number;
  start: number;
  size: number;
}

interface VirtualRows {
  rows: VirtualRow[];
  total: number;
  /** Scroll so that a row can be seen, with the one before and after it. */
  reveal(index: number): void;
}

/** `heights` has the height of each row; `box` returns the element that scrolls. */
export function useVirtualRows(heights: readonly number[], box: () => HTMLElement | null): VirtualRows {
  const tops = useMemo(() => sumUp(heights), [heights]);
  const known = useRef(tops);
  known.current = tops;
  const [{ top, height }, setWindow] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = box();
    if (element === null) return;
    const update = () => {
      const next = { top: element.scrollTop, height: element.clientHeight };
      // Nothing is drawn anew while the same rows are near the window.
      setWindow((before) => (isSameRange(visibleRange(known.current, before.top, before.height), visibleRange(known.current, next.top, next.height)) ? before : next));
    };
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener("scroll", update, { passive: true });
    update();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", update);
    };
  }, []);
  const [from, to] = visibleRange(tops, top, height);
  const rows = Array.from({ length: to - from }, (_, at) => ({ index: from + at, start: tops[from + at] as number, size: heights[from + at] as number }));
  const reveal = (index: number) => {
    const element = box();
    const [start, size] = [tops[index] ?? 0, heights[index] ?? 0];
    if (element === null) return;
    const room = Math.min(size, BESIDE_MAX);
    const end = start + size + room - element.clientHeight;
    // Of a row that is taller than the box, the beginning is seen.
    if (start < element.scrollTop + room) element.scrollTop = start - room;
    else if (end > element.scrollTop) element.scrollTop = Math.min(end, start - room);
  };
  return { rows, total: tops[heights.length] ?? 0, reveal };
}

function isSameRange(one: [number, number], other: [number, number]): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

/** The place where each row begins; the last is the height of all. */
function sumUp(heights: readonly number[]): Float64Array {
  const tops = new Float64Array(heights.length + 1);
  heights.forEach((height, at) => { tops[at + 1] = (tops[at] as number) + height; });
  return tops;
}

/** The rows to draw, from the first up to and without the last. `tops` are the places where they begin. */
export function visibleRange(tops: Float64Array, top: number, height: number): [number, number] {
  const count = tops.length - 1;
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] as number) <= top) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < count && (tops[end] as number) < top + height) end++;
  const from = Math.max(0, low - OVERSCAN);
  return [from, Math.min(count, end + OVERSCAN, from + ROWS_MAX)];
}
