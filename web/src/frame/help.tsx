/** The help: every key of the keyboard. It takes the focus, and gives it back. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { VIEWS } from "../views/registry.ts";

export const isHelpOpen = signal(false);

const KEYS: [string, string][] = [
  ["/", "search"],
  ["j k", "next and previous row or record"],
  ["J K", "next and previous turn of a session"],
  ["e", "next edit of a session"],
  ["x", "next failure or denial"],
  ["b", "next break of a chain"],
  ["n N", "next and previous hit"],
  ["Enter", "open"],
  ["Esc", "back"],
  ["v", "verify again"],
  ["?", "this help"],
];

function Rows({ rows }: { rows: [string, string][] }): JSX.Element {
  return (
    <table class="plain keys-table">
      <tbody>
        {rows.map(([keys, words]) => (
          <tr key={keys}><th scope="row">{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</th><td>{words}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    // A modal dialog keeps the focus inside, and the browser gives it back to where it came from.
    if (isHelpOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isHelpOpen.value]);
  const views = VIEWS.filter((view) => view.letter).map((view): [string, string] => [`g ${view.letter}`, view.title]);
  return (
    <dialog ref={dialog} aria-label="Keys of the keyboard" onClose={() => { isHelpOpen.value = false; }}
      onKeyDown={(event) => { event.stopPropagation(); }}>
      <div class="head"><h2>Keys of the keyboard</h2><button type="button" class="small" onClick={() => { isHelpOpen.value = false; }}>Close</button></div>
      <div class="columns">
        <Rows rows={KEYS} />
        <Rows rows={views} />
      </div>
    </dialog>
  );
}
