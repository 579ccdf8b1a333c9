/**
 * The rows of a chain's list: its records, and between them what is not a record: breaks, missing records, a cut end.
 *
 * A chain may have millions of records, so only the others are kept, each with the record before which it stands. The
 * rows in between follow by counting.
 */

import type { Finding } from "../../verify/verdict.ts";
import type { RecordRow } from "../../worker/protocol.ts";

/** What stands before the record at the place `before`. `index` is its row. */
type Extra = { before: number; index: number } & (
  | { sort: "break"; finding: Finding; /** Whether the record at this place is the one that fails. */ isAtRow: boolean }
  | { sort: "missing"; words: string }
  | { sort: "end"; words: string }
);

export type Entry = { sort: "row"; place: number } | Extra;

type Bare = Omit<Extract<Extra, { sort: "break" }>, "index"> | Omit<Extract<Extra, { sort: "missing" }>, "index"> | Omit<Extract<Extra, { sort: "end" }>, "index">;

/** Put breaks and missing records where they belong. `rows` are those that are known. */
export function arrange(rows: ReadonlyMap<number, RecordRow>, total: number, findings: Finding[], isLive: boolean): Extra[] {
  const byPlace = new Map<string, Finding[]>();
  for (const finding of findings) {
    if (finding.place.sequence === null) continue;
    const key = String(finding.place.sequence);
    byPlace.set(key, [...(byPlace.get(key) ?? []), finding]);
  }
  const bare = isLive ? arrangeFindings(byPlace, total) : arrangeRows(rows, total, byPlace);
  // Findings beyond the last record: the end was cut. Index, summary, head and meta may all say so; one card is enough.
  const rest = [...byPlace.values()].flat().filter((finding) => finding.status === "failed");
  for (const code of new Set(rest.map((finding) => finding.code))) {
    const same = rest.filter((finding) => finding.code === code);
    const first = same[0] as Finding;
    const words = same.length > 1 ? `${first.words} (${same.length} places say so)` : first.words;
    bare.push({ sort: "break", before: total, isAtRow: false, finding: { ...first, words } });
  }
  const cut = rest.find((finding) => finding.code === "TRUNCATED");
  if (cut !== undefined) bare.push({ sort: "end", before: total, words: `The end was cut: ${cut.words}` });
  return bare.map((extra, at) => ({ ...extra, index: extra.before + at }) as Extra);
}

/** In a ledger a record is at the place of its number: the findings say where it breaks. */
function arrangeFindings(byPlace: Map<string, Finding[]>, total: number): Bare[] {
  const bare: Bare[] = [];
  let gap = -1;
  for (const [key, found] of [...byPlace].sort(([one], [other]) => Number(one) - Number(other))) {
    const failed = found.find((one) => one.status === "failed");
    if (Number(key) >= total) continue;
    byPlace.delete(key);
    // After a gap every record is in another place than the judge expects. Only the first of them is a break.
    const isOfGap = failed?.code === "SEQUENCE_GAP" && gap === Number(key) - 1;
    if (failed?.code === "SEQUENCE_GAP") gap = Number(key);
    if (failed !== undefined && !isOfGap) bare.push({ sort: "break", before: Number(key), isAtRow: true, finding: failed });
  }
  return bare;
}

/** In a file a record may be anywhere: what it says of itself shows what is missing before it. */
function arrangeRows(rows: ReadonlyMap<number, RecordRow>, total: number, byPlace: Map<string, Finding[]>): Bare[] {
  const bare: Bare[] = [];
  let should: bigint | null = null;
  let said: bigint | null = null;
  for (let at = 0; at < total; at++) {
    const row = rows.get(at);
    if (row === undefined) continue;
    // The judge names a record by the place where it should be, which differs from what a moved record says of itself.
    const place: bigint = should ?? BigInt(row.sequence || at);
    const says: bigint = row.sequence === "" ? place : BigInt(row.sequence);
    const isNext: boolean = said !== null && says === said + 1n;
    const first = (said ?? place - 1n) + 1n;
    if (!isNext && says > first) {
      const words = says - 1n === first ? `record ${first} is missing` : `records ${first} to ${says - 1n} are missing`;
      bare.push({ sort: "missing", before: at, words });
    }
    // After a gap every record is in another place than the judge expects. Only the first of them is a break.
    const failed = byPlace.get(String(place))?.find((one) => one.status === "failed" && !(one.code === "SEQUENCE_GAP" && isNext));
    if (failed !== undefined) bare.push({ sort: "break", before: at, isAtRow: true, finding: failed });
    byPlace.delete(String(place));
    should = place + 1n;
    said = says;
  }
  return bare;
}

/** How many rows there are in all. */
export function rowCount(total: number, extras: Extra[]): number {
  return total + extras.length;
}

/** How many of the others stand at a row before `index`. */
function extrasBefore(index: number, extras: Extra[]): number {
  let low = 0;
  for (let high = extras.length; low < high; ) {
    const middle = (low + high) >> 1;
    if ((extras[middle] as Extra).index < index) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function entryAt(index: number, extras: Extra[]): Entry {
  const before = extrasBefore(index, extras);
  const extra = extras[before];
  return extra?.index === index ? extra : { sort: "row", place: index - before };
}

/** The row of the record at a place. */
export function indexOfPlace(place: number, extras: Extra[]): number {
  return place + extras.filter((extra) => extra.before <= place).length;
}

/** The break that a finding at this sequence number made, if there is one. */
export function findExtra(extras: Extra[], sequence: number): Extra | undefined {
  return extras.find((extra) => extra.sort === "break" && Number(extra.finding.place.sequence) === sequence);
}
