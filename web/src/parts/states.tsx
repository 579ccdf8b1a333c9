/** The states that every view has: loading with the final heights, empty with the command that fills it, and an error. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { contents } from "../state.ts";
import { Command, Text } from "./text.tsx";

type Answered<Result> =
  | { state: "loading"; value: null; words: "" }
  | { state: "done"; value: Result; words: "" }
  | { state: "failed"; value: Result | null; words: string };

/**
 * Ask for something, and ask again when `reasons` change. An answer that is already here stays while the next one comes,
 * so that nothing jumps. `retry` asks again. `ask` is told whether its answer is still wanted.
 */
export function useAnswer<Result>(ask: (isCurrent: () => boolean) => Promise<Result>, reasons: readonly unknown[]): Answered<Result> & { retry: () => void } {
  const [answer, setAnswer] = useState<Answered<Result>>({ state: "loading", value: null, words: "" });
  const [tried, setTried] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    ask(() => isCurrent).then(
      (value) => { if (isCurrent) setAnswer({ state: "done", value, words: "" }); },
      (error: Error) => { if (isCurrent) setAnswer((before) => ({ state: "failed", value: before.value, words: error.message })); },
    );
    return () => { isCurrent = false; };
  }, [...reasons, tried]);
  return { ...answer, retry: () => setTried(tried + 1) };
}

/** Rows that are not here yet, with the height that they will have. */
export function Loading({ rows, words }: { rows: number; words: string }): JSX.Element {
  return (
    <div class="placeholders" aria-busy="true">
      <p class="hidden" role="status">{words} …</p>
      {Array.from({ length: rows }, (_, at) => <div key={at} class="placeholder row-height" />)}
    </div>
  );
}

/** Nothing is there, and this is how to get it. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }): JSX.Element {
  return <div class="nothing"><p>{children}</p>{command ? <p><Command>{command}</Command></p> : null}</div>;
}

/** Something went wrong: what, and what next. */
export function Problem({ words, retry }: { words: string; retry?: () => void }): JSX.Element {
  return (
    <div class="finding failed" role="alert">
      <p><Text>{words}</Text></p>
      {retry ? <p><button type="button" class="small" onClick={retry}>Try again</button></p> : null}
    </div>
  );
}

/** An address names something that the open records do not have. */
export function NotHere({ what, name }: { what: string; name: string }): JSX.Element {
  return <div class="finding warning" role="alert"><p>There is no {what} <code><Text>{name}</Text></code> in <Text>{contents.value?.name ?? "these records"}</Text>. The link is for other records, or for a longer copy of these.</p></div>;
}
