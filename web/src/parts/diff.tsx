/** A unified diff: one column, or both versions side by side, with marks inside the lines. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type LineCounts, countChangedLines } from "../sessions/changed_lines.ts";
import { cutText } from "../verify/text.ts";
import { type MarkedLine, headPath, markDiff, splitRows } from "./diff_rows.ts";
import { Text, count, plural, visible } from "./text.tsx";

/** Lines that are shown at first. A diff may have thousands. */
const LINES_SHOWN = 300;
/** Characters of a diff that are laid out at all. */
const DIFF_MAX = 1_000_000;

/** How the reader wants diffs; side by side needs a wide window. */
const form = signal<"unified" | "split">("unified");

export function Counts({ lines }: { lines: LineCounts | null }): JSX.Element | null {
  if (lines === null) return null;
  return (
    <span class="counts figure">
      <span class="added">+{lines[0]}</span> <span class="removed">−{lines[1]}</span>
    </span>
  );
}

/** `title` says which file it is about, or which edit; `paths` are those that the record names. */
export function DiffView({ diff, title = "", paths = [] }: { diff: string; title?: string; paths?: string[] }): JSX.Element {
  const [shown, setShown] = useState(LINES_SHOWN);
  const lines = useMemo(() => markDiff(cutText(diff, DIFF_MAX)), [diff]);
  const names = lines.filter((line) => line.sort === "file").map((line) => line.pieces[0]?.text ?? "");
  const path = names.map((name) => headPath(name, paths)).find((name) => name && name !== "/dev/null");
  // The caption names the only file. With several, each keeps its own lines, or nobody could tell what belongs to which.
  const isOfOne = names.filter((name) => name.startsWith("+++ ")).length <= 1;
  const body = isOfOne ? lines.filter((line) => line.sort !== "file" || !/^(?:--- |\+\+\+ )/.test(line.pieces[0]?.text ?? "")) : lines;
  const isSplit = form.value === "split";
  const rows = isSplit ? splitRows(body) : body;
  return (
    <figure class={`diff-box${isSplit ? " split" : ""}`}>
      <figcaption>
        <span class="path"><Text>{title || (isOfOne ? path : plural(names.filter((name) => name.startsWith("+++ ")).length, "file")) || "change"}</Text></span>
        <Counts lines={countChangedLines(diff)} />
        <button type="button" class="small" aria-pressed={isSplit} onClick={() => { form.value = isSplit ? "unified" : "split"; }}>Side by side</button>
      </figcaption>
      <div class="diff-scroll" tabIndex={0} role="region" aria-label={`Change of ${visible(title || path || "a file")}`}>
        <table class="diff">
          <tbody>
            {isSplit
              ? splitRows(body).slice(0, shown).map(([left, right], at) => <SplitLine key={at} left={left} right={right} />)
              : body.slice(0, shown).map((line, at) => <UnifiedLine key={at} line={line} />)}
          </tbody>
        </table>
      </div>
      {rows.length > shown ? (
        <button type="button" class="small more" onClick={() => setShown(shown + 10 * LINES_SHOWN)}>Show {count(Math.min(rows.length - shown, 10 * LINES_SHOWN))} more lines</button>
      ) : null}
      {diff.length > DIFF_MAX ? <p class="beside">The change is longer than this page lays out. The exact bytes of the record have all of it.</p> : null}
    </figure>
  );
}

const SIGNS: Record<MarkedLine["sort"], string> = { added: "+", removed: "−", same: " ", place: "", file: "" };

function Pieces({ line }: { line: MarkedLine }): JSX.Element {
  const tag = line.sort === "added" ? "ins" : "del";
  return (
    <>
      {line.pieces.map((piece, at) => {
        const text = visible(piece.text);
        if (!piece.isChanged) return text;
        return tag === "ins" ? <ins key={at}>{text}</ins> : <del key={at}>{text}</del>;
      })}
    </>
  );
}

/** Line numbers begin at 1. A change whose place in the file nobody knows has 0, which is not shown. */
function UnifiedLine({ line }: { line: MarkedLine }): JSX.Element {
  if (line.sort === "place" || line.sort === "file") return <tr class={line.sort}><td colSpan={4}><Pieces line={line} /></td></tr>;
  return (
    <tr class={line.sort}>
      <td class="n">{line.old || ""}</td>
      <td class="n">{line.next || ""}</td>
      <td class="sign">{SIGNS[line.sort]}</td>
      <td class="text"><Pieces line={line} /></td>
    </tr>
  );
}

function SplitLine({ left, right }: { left: MarkedLine | null; right: MarkedLine | null }): JSX.Element {
  if (left !== null && (left.sort === "place" || left.sort === "file")) return <tr class={left.sort}><td colSpan={6}><Pieces line={left} /></td></tr>;
  const half = (line: MarkedLine | null, number: number | null) => (
    <>
      <td class={`n ${line?.sort ?? "none"}`}>{number || ""}</td>
      <td class={`sign ${line?.sort ?? "none"}`}>{line === null ? "" : SIGNS[line.sort]}</td>
      <td class={`text ${line?.sort ?? "none"}`}>{line === null ? "" : <Pieces line={line} />}</td>
    </>
  );
  return <tr>{half(left, left?.old ?? null)}{half(right, right?.next ?? null)}</tr>;
}
