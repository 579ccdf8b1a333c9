/** A long list as a grid: only the rows near the window are in the page, and the whole is one tab stop. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useVirtualRows } from "./virtual_rows.ts";

export interface VirtualHandle {
  scrollTo(index: number): void;
}

interface Props {
  /** The height of each row. The same array as long as nothing changes: a new one is summed up again. */
  heights: readonly number[];
  /** Draws a row. The same function as long as every row looks the same: rows that were drawn by it are kept. */
  row: (index: number) => JSX.Element;
  label: string;
  handle?: (handle: VirtualHandle) => void;
  /** Told of the rows that are near the window, from and up to. */
  onRange?: (start: number, stop: number) => void;
  isBusy?: boolean;
  /** The selected row, -1 for none; not given where rows are not selected. `row` is another function for each. */
  selected?: number;
}

export function VirtualRows({ heights, row, label, handle, onRange, isBusy = false, selected }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { rows, total, reveal } = useVirtualRows(heights, () => box.current);
  // A row that stays near the window is the same element as before, so that scrolling draws only the rows that come.
  const drawn = useRef<{ row: Props["row"]; heights: readonly number[]; entries: ReadonlyMap<number, JSX.Element> }>({ row, heights, entries: new Map() });
  const before = drawn.current.row === row && drawn.current.heights === heights ? drawn.current.entries : new Map<number, JSX.Element>();
  const entries = new Map(rows.map((one) => [one.index, before.get(one.index) ?? (
    <div key={one.index} id={`row-${one.index}`} class="entry" role="row" aria-rowindex={one.index + 1} aria-selected={selected === undefined ? undefined : one.index === selected} style={{ top: `${one.start}px`, height: `${one.size}px` }}>
      <div role="gridcell">{row(one.index)}</div>
    </div>
  )]));
  drawn.current = { row, heights, entries };
  const [start, stop] = [rows[0]?.index ?? 0, (rows.at(-1)?.index ?? -1) + 1];
  useLayoutEffect(() => onRange?.(start, stop), [start, stop, heights]);
  useLayoutEffect(() => handle?.({ scrollTo: reveal }));
  return (
    <div ref={box} class="virtual" role="grid" aria-label={label} aria-rowcount={heights.length} aria-busy={isBusy} aria-activedescendant={(selected ?? -1) < 0 ? undefined : `row-${selected}`} tabIndex={0}>
      <div class="space" role="rowgroup" style={{ height: `${total}px` }}>
        {[...entries.values()]}
      </div>
    </div>
  );
}

/** Whether the page has one column, and its rows two lines. The style sheet has the same bound. */
export function isPhone(): boolean {
  return matchMedia("(max-width: 719px)").matches;
}
