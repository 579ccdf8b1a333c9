/** The output of a command, in its colours. The text is only ever text: see `terminal_text.ts`. */

import type { JSX } from "preact";
import { cutText } from "../verify/text.ts";
import { TERMINAL_MAX, type TerminalPiece, hasEscapes, parseTerminal } from "./terminal_text.ts";
import { Linked, count } from "./text.tsx";

export function Terminal({ text, label = "Output" }: { text: string; label?: string }): JSX.Element {
  const shown = cutText(text, TERMINAL_MAX);
  return (
    <div class="terminal-box">
      <pre class="terminal" tabIndex={0} role="region" aria-label={label}>
        {hasEscapes(shown) ? parseTerminal(shown).map((piece, at) => <Piece key={at} piece={piece} />) : <Linked>{shown.replaceAll("\r\n", "\n")}</Linked>}
      </pre>
      {text.length > TERMINAL_MAX ? <p class="beside">{count(text.length - TERMINAL_MAX)} more characters are not laid out. The exact bytes of the record have them.</p> : null}
    </div>
  );
}

function Piece({ piece }: { piece: TerminalPiece }): JSX.Element | string {
  const { text, front, ground, isBold, isFaint, isItalic, isUnderlined, isMark } = piece;
  const names = [
    front === undefined ? "" : `front-${front}`,
    ground === undefined ? "" : `ground-${ground}`,
    isBold ? "bold" : "",
    isFaint ? "faint" : "",
    isItalic ? "italic" : "",
    isUnderlined ? "underlined" : "",
    isMark ? "escape" : "",
  ];
  const name = names.filter(Boolean).join(" ");
  return name ? <span class={name}><Linked>{text}</Linked></span> : <Linked>{text}</Linked>;
}
