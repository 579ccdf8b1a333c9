/** Try to change it: on a marked copy, change one record and see where the verification breaks. */

import type { JSX } from "preact";
import { changed, contents, tryChange, undoChange } from "../state.ts";
import type { Change } from "../worker/protocol.ts";
import { Text } from "./text.tsx";

const CHANGES: [Change, string, string][] = [
  ["flip", "Flip a character", "one character of its text was changed"],
  ["edit", "Edit its summary", "its summary was edited"],
  ["resign", "Edit it, and give it the right hash", "its summary was edited, and its hash computed anew"],
  ["drop", "Drop it", "it was dropped"],
  ["double", "Insert it twice", "it was inserted twice"],
  ["swap", "Swap it with the next", "it was swapped with the next record"],
  ["cut", "Cut the chain here", "the chain was cut before it"],
];

/** The strip on every screen of a changed copy. */
export function CopyStrip(): JSX.Element | null {
  if (!changed.value) return null;
  return (
    <p class="copy" role="status">
      <strong>copy</strong> You changed this copy: <Text>{changed.value}</Text>. The records themselves are untouched.{" "}
      <button type="button" class="small" onClick={() => void undoChange()}>Back to the records</button>
    </p>
  );
}

/** The changes that can be tried on a record. */
export function TryToChange({ chain, place, sequence }: { chain: string; place: number; sequence: string }): JSX.Element | null {
  const format = contents.value?.format;
  if (format !== "bundle" && format !== "chain") return null;
  return (
    <section class="section">
      <h2>Try to change it</h2>
      <p>The page changes a copy in memory, verifies it, and shows where it breaks.</p>
      <p class="buttons">
        {CHANGES.map(([change, label, words]) => (
          <button key={change} type="button" onClick={() => {
            location.hash = "#/";
            void tryChange(chain, place, change, `record ${sequence} of ${chain}: ${words}`);
          }}>{label}</button>
        ))}
      </p>
    </section>
  );
}
