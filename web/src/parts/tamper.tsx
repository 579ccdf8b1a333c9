/** Try to change it: on a marked copy, change one record and see where the verification breaks. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { changed, contents, tryChange, undoChange } from "../state.ts";
import type { Change } from "../worker/protocol.ts";
import { Problem } from "./states.tsx";
import { Text } from "./text.tsx";

/** Each change: its button, what it did, and what an attacker would hope for. */
const CHANGES: [Change, string, string, string][] = [
  ["flip", "Flip a character", "one character of its text was changed", "One bit of what happened is another."],
  ["edit", "Edit its summary", "its summary was edited", "The record tells another story."],
  ["resign", "Edit it, and give it the right hash", "its summary was edited, and its hash computed anew", "The hash fits again; the signature needs the key."],
  ["forge", "Edit it, and sign it with another key", "its summary was edited, and it was signed by a key made just now", "Hash and signature fit; nobody pinned that key."],
  ["drop", "Drop it", "it was dropped", "It never happened."],
  ["double", "Insert it twice", "it was inserted twice", "It happened twice."],
  ["swap", "Swap it with the next", "it was swapped with the next record", "It happened in another order."],
  ["cut", "Cut the chain here", "the chain was cut before it", "Nothing happened from here on."],
  ["rollback", "Roll everything back to here", "every chain was taken back to the time before it, and the signed heads were left out", "The whole copy is an older one, which fits in itself."],
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
export function TryToChange({ chain, place, sequence, title = "Try to change it" }: { chain: string; place: number; sequence: string; title?: string }): JSX.Element | null {
  const [words, setWords] = useState("");
  const format = contents.value?.format;
  if (format !== "bundle" && format !== "chain") return null;
  return (
    <section class="section">
      <h2>{title}</h2>
      <p>The page changes a copy in memory, verifies it, and shows where it breaks.</p>
      <div class="changes">
        {CHANGES.map(([change, label, did, hope]) => (
          <div key={change}>
            <button type="button" onClick={() => {
              setWords("");
              tryChange(chain, place, change, `record ${sequence} of ${chain}: ${did}`).catch((error: Error) => setWords(error.message));
            }}>{label}</button>
            <span class="beside">{hope}</span>
          </div>
        ))}
      </div>
      {words ? <Problem words={words} /> : null}
    </section>
  );
}
