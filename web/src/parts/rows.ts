/** Keys for a list of links: `j` and `k` move the focus, and in a list of hits `n` and `N`. `Enter` opens, as a link does by itself. */

import type { RefObject } from "preact";
import { useKeys } from "./keyboard.ts";

/** Move the focus through the links marked `data-row` inside an element. Only one of them is a tab stop. */
export function useRowKeys(box: RefObject<HTMLElement | null>): void {
  const move = (step: number) => {
    const rows = [...(box.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    if (!rows.length) return;
    const now = rows.indexOf(document.activeElement as HTMLElement);
    const next = now < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(now + step, 0), rows.length - 1);
    rows.forEach((row, at) => { row.tabIndex = at === next ? 0 : -1; });
    rows[next]?.focus();
    rows[next]?.scrollIntoView({ block: "nearest" });
  };
  useKeys({ j: () => move(1), k: () => move(-1), n: () => move(1), N: () => move(-1) });
}
