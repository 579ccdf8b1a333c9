/**
 * The keys of the keyboard. A view claims keys while it is shown; the one that claimed last has them. No key works with a
 * modifier held, nor while the reader types; Escape then only leaves the field.
 *
 *     useKeys({ j: () => move(1), k: () => move(-1) });
 */

import { useLayoutEffect, useRef } from "preact/hooks";

type KeyMap = Record<string, (event: KeyboardEvent) => void>;

const claims: { keys: KeyMap }[] = [];

/** Claim keys for as long as the component is shown. */
export function useKeys(keys: KeyMap): void {
  const claim = useRef({ keys });
  claim.current.keys = keys;
  // Before the browser draws: a reader may press a key as soon as the view can be seen.
  useLayoutEffect(() => {
    const mine = claim.current;
    claims.push(mine);
    return () => {
      claims.splice(claims.indexOf(mine), 1);
    };
  }, []);
}

/** Give the focus to the list of the view, so that a screen reader says which row is selected. */
export function focusGrid(): void {
  document.querySelector<HTMLElement>("main [role=grid]")?.focus({ preventScroll: true });
}

/** Claim keys that move the selection of the view's list. */
export function useGridKeys(keys: KeyMap): void {
  useKeys(Object.fromEntries(Object.entries(keys).map(([key, move]) => [key, (event) => {
    move(event);
    focusGrid();
  }])));
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select"));
}

/** Keys that a focused link or button uses itself. */
function isOwnKey(event: KeyboardEvent): boolean {
  return (event.key === "Enter" || event.key === " ") && event.target instanceof HTMLElement && event.target.matches("a, button, summary");
}

/** Start to listen. `go` gets the letter after `g`, and says whether there is such a view. `keys` are those of every view. */
export function listenToKeys(go: (letter: string) => boolean, keys: KeyMap): void {
  let isGoing = false;
  claims.unshift({ keys });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key !== "Escape") return;
      // Not the browser's own work: it would take the words out of the field.
      event.preventDefault();
      document.getElementById("main")?.focus({ preventScroll: true });
      return;
    }
    if (isOwnKey(event)) return;
    const wasGoing = isGoing;
    isGoing = event.key === "g" && !wasGoing;
    if (isGoing) return;
    if (wasGoing && go(event.key)) {
      event.preventDefault();
      return;
    }
    const claim = claims.findLast(({ keys }) => event.key in keys);
    if (claim === undefined) return;
    event.preventDefault();
    claim.keys[event.key]?.(event);
  });
}
