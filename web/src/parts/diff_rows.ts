/**
 * The lines of a unified diff as rows, with the words that changed inside a line. Pure, so that Node tests it.
 *
 * Removed lines that added lines follow are paired: the first with the first. A pair is compared word by word.
 */

import { type DiffLine, readDiff } from "../sessions/changed_lines.ts";

/** A piece of a line; `isChanged` marks the words that the other line does not have. */
interface LinePiece {
  text: string;
  isChanged: boolean;
}

export interface MarkedLine extends Omit<DiffLine, "text"> {
  pieces: LinePiece[];
}

/** One row of both versions side by side; a header has the same line on both sides. */
type SplitRow = [left: MarkedLine | null, right: MarkedLine | null];

/** Characters of a line that is compared word by word. A longer one is marked whole: comparing takes square time. */
const WORDS_MAX = 1_000;
/** A word, white space, or another character. Together they are the whole line. */
const WORD = /[\p{L}\p{M}\p{N}_]+|\s+|[^]/gu;
/** Products of the lengths of the lines that are compared word by word in one diff: more would halt the page. */
const COMPARED_MAX = 4_000_000;
/** A pair that has less than this share in common is marked whole: marks on nearly every word say nothing. */
const COMMON_MIN = 0.3;

/** Read a diff, and mark the changed words. */
export function markDiff(diff: string): MarkedLine[] {
  const lines = readDiff(diff).map(({ text, ...line }): MarkedLine => ({ ...line, pieces: [{ text, isChanged: false }] }));
  let compared = 0;
  for (const [removed, added] of findPairs(lines)) {
    const [before, after] = [textOf(removed), textOf(added)];
    if (Math.max(before.length, after.length) > WORDS_MAX) continue;
    compared += before.length * after.length;
    if (compared > COMPARED_MAX) break;
    const marked = compareWords(before, after);
    if (marked.common < COMMON_MIN * Math.max(before.length, after.length)) continue;
    [removed.pieces, added.pieces] = [marked.before, marked.after];
  }
  return lines;
}

/** Find the words that both lines have in the same order: of all such rows of words, one with the most characters. */
function compareWords(before: string, after: string): { before: LinePiece[]; after: LinePiece[]; common: number } {
  const [left, right] = [before.match(WORD) ?? [], after.match(WORD) ?? []];
  const width = right.length + 1;
  // most[one * width + other]: characters in common of the words from `one` and from `other` on. A line is below WORDS_MAX.
  const most = new Uint16Array((left.length + 1) * width);
  for (let one = left.length - 1; one >= 0; one--) {
    const word = left[one] as string;
    for (let other = right.length - 1; other >= 0; other--) {
      const here = one * width + other;
      most[here] = word === right[other] ? (most[here + width + 1] as number) + word.length : Math.max(most[here + width] as number, most[here + 1] as number);
    }
  }
  const pieces: [LinePiece[], LinePiece[]] = [[], []];
  const add = (side: 0 | 1, text: string, isChanged: boolean): void => {
    const last = pieces[side].at(-1);
    if (last?.isChanged === isChanged) last.text += text;
    else pieces[side].push({ text, isChanged });
  };
  for (let [one, other] = [0, 0]; one < left.length || other < right.length; ) {
    const [word, next] = [left[one], right[other]];
    const isSame = word === next;
    const isRemoved = !isSame && word !== undefined && (next === undefined || (most[(one + 1) * width + other] as number) >= (most[one * width + other + 1] as number));
    if (isSame || isRemoved) add(0, left[one++] as string, isRemoved);
    if (!isRemoved) add(1, right[other++] as string, !isSame);
  }
  return { before: pieces[0], after: pieces[1], common: most[0] as number };
}

/** Removed and added lines that stand for each other. */
function findPairs(lines: MarkedLine[]): [MarkedLine, MarkedLine][] {
  return splitRows(lines).filter((row): row is [MarkedLine, MarkedLine] => row[0] !== row[1] && row[0] !== null && row[1] !== null);
}

/** The lines of both versions side by side. */
export function splitRows(lines: MarkedLine[]): SplitRow[] {
  const rows: SplitRow[] = [];
  for (let at = 0; at < lines.length; ) {
    const removed: MarkedLine[] = [];
    const added: MarkedLine[] = [];
    while (lines[at]?.sort === "removed") removed.push(lines[at++] as MarkedLine);
    while (lines[at]?.sort === "added") added.push(lines[at++] as MarkedLine);
    for (let row = 0; row < Math.max(removed.length, added.length); row++) rows.push([removed[row] ?? null, added[row] ?? null]);
    const other = lines[at];
    if (!removed.length && !added.length && other !== undefined) {
      rows.push([other, other]);
      at++;
    }
  }
  return rows;
}

/** The path that a header such as `+++ b/a.py` names. It lacks the first `/` of an absolute path, so that `known` paths come first. */
export function headPath(header: string, known: string[]): string {
  const named = /^\+\+\+ (?:b\/)?(.+)/.exec(header)?.[1] ?? "";
  return known.find((path) => path.replace(/^\/+/, "") === named) ?? named;
}

export function textOf(line: MarkedLine): string {
  return line.pieces.map((piece) => piece.text).join("");
}
