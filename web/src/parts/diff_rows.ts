/**
 * The lines of a unified diff as rows, with the words that changed inside a line. Pure, so that Node tests it.
 *
 * Removed lines that added lines follow are paired: the first with the first. A pair is compared word by word.
 */

import { diffWordsWithSpace } from "diff/lib/diff/word.js"; // Not from the index, which brings what nobody uses.
import { type DiffLine, readDiff } from "../sessions/changed_lines.ts";

/** A piece of a line; `isChanged` marks the words that the other line does not have. */
export interface LinePiece {
  text: string;
  isChanged: boolean;
}

export interface MarkedLine extends Omit<DiffLine, "text"> {
  pieces: LinePiece[];
}

/** One row of both versions side by side; a header has the same line on both sides. */
export type SplitRow = [left: MarkedLine | null, right: MarkedLine | null];

/** Characters of a line that is compared word by word. A longer one is marked whole: comparing takes square time. */
const WORDS_MAX = 1_000;
/** Pairs of one diff that are compared word by word. */
const PAIRS_MAX = 400;
/** A pair that has less than this share in common is marked whole: marks on nearly every word say nothing. */
const COMMON_MIN = 0.3;

/** Read a diff, and mark the changed words. */
export function markDiff(diff: string): MarkedLine[] {
  const lines = readDiff(diff).map(({ text, ...line }): MarkedLine => ({ ...line, pieces: [{ text, isChanged: false }] }));
  let pairs = 0;
  for (const [removed, added] of findPairs(lines)) {
    if (++pairs > PAIRS_MAX) break;
    const [before, after] = [textOf(removed), textOf(added)];
    if (Math.max(before.length, after.length) > WORDS_MAX) continue;
    const changes = diffWordsWithSpace(before, after);
    const common = changes.reduce((sum, change) => sum + (change.added || change.removed ? 0 : change.value.length), 0);
    if (common < COMMON_MIN * Math.max(before.length, after.length)) continue;
    removed.pieces = changes.filter((change) => !change.added).map((change) => ({ text: change.value, isChanged: change.removed }));
    added.pieces = changes.filter((change) => !change.removed).map((change) => ({ text: change.value, isChanged: change.added }));
  }
  return lines;
}

/** Removed and added lines that stand for each other. */
function* findPairs(lines: MarkedLine[]): Generator<[MarkedLine, MarkedLine]> {
  for (let at = 0; at < lines.length; ) {
    const removed: MarkedLine[] = [];
    const added: MarkedLine[] = [];
    while (lines[at]?.sort === "removed") removed.push(lines[at++] as MarkedLine);
    while (lines[at]?.sort === "added") added.push(lines[at++] as MarkedLine);
    for (let pair = 0; pair < Math.min(removed.length, added.length); pair++) yield [removed[pair] as MarkedLine, added[pair] as MarkedLine];
    if (!removed.length && !added.length) at++;
  }
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
