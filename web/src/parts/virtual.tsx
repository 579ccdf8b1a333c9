/** A long list of which only the rows near the window are in the page: never more than 120. */

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

/** Rows beyond the window that are kept, so that scrolling shows no blank. */
const OVERSCAN = 10;
/** Rows that are in the page at most. */
const ROWS_MAX = 120;

export interface VirtualHandle {
  scrollTo(index: number): void;
}

interface Props {
  count: number;
  height: (index: number) => number;
  row: (index: number) => JSX.Element;
  label: string;
  /** Changes when heights do. */
  version?: unknown;
  handle?: (handle: VirtualHandle) => void;
  /** Told of the rows that are near the window, from and up to. */
  onRange?: (start: number, stop: number) => void;
  isBusy?: boolean;
  onKeyDown?: (event: TargetedKeyboardEvent<HTMLDivElement>) => void;
}

export function VirtualRows({ count, height, row, label, version, handle, onRange, isBusy = false, onKeyDown }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const list = useRef<Virtualizer<HTMLDivElement, HTMLDivElement>>(undefined);
  const options = {
    count,
    getScrollElement: () => box.current,
    estimateSize: height,
    overscan: OVERSCAN,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    initialRect: { width: 800, height: 800 },
    onChange: () => redraw(undefined),
  };
  list.current ??= new Virtualizer(options);
  list.current.setOptions(options);
  const virtual = list.current;
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  useLayoutEffect(() => {
    virtual.measure();
    redraw(undefined);
  }, [count, version]);
  useLayoutEffect(() => handle?.({ scrollTo: (index) => virtual.scrollToIndex(index, { align: "auto" }) }), []);
  const items = virtual.getVirtualItems().slice(0, ROWS_MAX);
  const [start, stop] = [items[0]?.index ?? 0, (items.at(-1)?.index ?? -1) + 1];
  useLayoutEffect(() => onRange?.(start, stop), [start, stop, count]);
  return (
    <div ref={box} class="virtual" role="grid" aria-label={label} aria-rowcount={count} aria-busy={isBusy} tabIndex={0} onKeyDown={onKeyDown}>
      <div class="space" role="presentation" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map((item) => (
          <div key={item.key} class="entry" role="row" aria-rowindex={item.index + 1} style={{ top: `${item.start}px`, height: `${item.size}px` }}>
            <div role="gridcell">{row(item.index)}</div>
          </div>
        ))}
      </div>
    </div>
  );
}
