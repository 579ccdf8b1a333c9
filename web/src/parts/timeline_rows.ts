/**
 * The rows of a session's timeline, from its story and the findings about its chains. Pure, so that Node tests it.
 *
 * A break stands before the record that it is about; the rows of that chain after it are marked. Records that are missing
 * are one row that counts them. Aver's own notes are left out, unless something is wrong with them.
 */

import { type Figure, decisionLabel } from "../sessions/labels.ts";
import { isBookkeeping, isCommand, isEdit } from "../sessions/step.ts";
import { isObserved, refuses } from "../sessions/decisions.ts";
import type { StoryEntry } from "../sessions/story.ts";
import type { Finding } from "../verify/verdict.ts";

const ROW_HEIGHT = 36;
/** Rows are taller where fingers choose them. */
const PHONE_ROW_HEIGHT = 56;
const LINE_HEIGHT = 22;
/** Pixels of a character of the text font, somewhat more than the mean, so that a band is rather too tall than too short. */
const CHARACTER_WIDTH = 8.4;

export type RowSort = "prompt" | "edit" | "command" | "call" | "answer" | "note" | "unknown" | "unreadable" | "agent" | "decision" | "break" | "missing" | "end";

export interface TimelineRow {
  sort: RowSort;
  depth: number;
  chain: string;
  entry: StoryEntry | null;
  findings: Finding[];
  /** For breaks and missing records. */
  finding: Finding | null;
  /** For a break, the place of the record that fails; null beyond the last record. */
  place: number | null;
  words: string;
  isDenied: boolean;
  isFailed: boolean;
  isAfterBreak: boolean;
  /** The number of the turn that it belongs to, from 1; 0 before the first prompt. */
  turn: number;
}

/** Lay out the story. */
export function arrangeStory(entries: StoryEntry[], findingsOf: (chain: string) => Finding[]): TimelineRow[] {
  const rows: TimelineRow[] = [];
  const byChain = new Map<string, ChainFindings>();
  let turn = 0;
  for (const entry of entries) {
    const { chain, depth, step } = entry;
    const found = byChain.get(chain) ?? byChain.set(chain, new ChainFindings(findingsOf(chain))).get(chain) as ChainFindings;
    const bare = { depth, chain, entry: null, findings: [], finding: null, place: null, words: "", isDenied: false, isFailed: false, isAfterBreak: found.isBroken, turn };
    if (step === null) {
      const { decision } = entry;
      if (decision === null) rows.push({ ...bare, sort: "agent", entry, words: `subagent ${entry.agent}` });
      else rows.push({ ...bare, sort: "decision", entry, words: `${decisionLabel(decision.decision)}: ${decision.tool}`, isDenied: refuses(decision) && !isObserved(decision) });
      continue;
    }
    const missing = found.findMissing(step.sequence, entry.place);
    if (missing) rows.push({ ...bare, sort: "missing", words: missing });
    const here = found.take(entry.place);
    const failed = here.filter((finding) => finding.status === "failed");
    for (const finding of failed.slice(0, 1)) rows.push({ ...bare, sort: "break", finding, place: entry.place, isAfterBreak: true });
    if (!failed.length && isBookkeeping(step)) continue;
    if (step.what === "prompt" && depth === 0) turn++;
    const sort = stepSort(entry);
    rows.push({
      ...bare,
      sort,
      entry,
      findings: failed,
      words: "",
      isDenied: step.status === "blocked",
      isFailed: step.status === "failure",
      isAfterBreak: found.isBroken,
      turn,
    });
  }
  // Findings beyond the last record: the end was cut. Several places may say so; one card for each code is enough.
  for (const [chain, found] of byChain) {
    const rest = found.rest();
    const last = rows.findLastIndex((row) => row.chain === chain);
    const bare = { depth: rows[last]?.depth ?? 0, chain, entry: null, findings: [], finding: null, place: null, words: "", isDenied: false, isFailed: false, isAfterBreak: true, turn: rows[last]?.turn ?? turn };
    const cut = rest.find((finding) => finding.code === "TRUNCATED");
    rows.splice(last + 1, 0,
      ...rest.map((finding) => ({ ...bare, sort: "break" as const, finding })),
      ...(cut ? [{ ...bare, sort: "end" as const, words: `The end was cut: ${cut.words}` }] : []));
  }
  return rows;
}

/** The findings about one chain, by the place where a record should be. */
class ChainFindings {
  isBroken = false;
  private readonly byPlace = new Map<string, Finding[]>();
  private said: number | null = null;

  constructor(findings: Finding[]) {
    for (const finding of findings) {
      if (finding.place.sequence === null || finding.status !== "failed") continue;
      const key = String(finding.place.sequence);
      this.byPlace.set(key, [...(this.byPlace.get(key) ?? []), finding]);
    }
  }

  /** Words about records that are missing before this one; empty if none are. Only for chains in stored order. */
  findMissing(sequence: number | null, place: number): string {
    const before = this.said;
    if (sequence !== null) this.said = sequence;
    // In an intact chain the number is the place, and the story may have another order.
    if (sequence === null || sequence === place || (before !== null && sequence <= before + 1) || (before === null && place > 0)) return "";
    const first = before === null ? 0 : before + 1;
    return first === sequence - 1 ? `record ${first} is missing` : `records ${first} to ${sequence - 1} are missing`;
  }

  take(place: number): Finding[] {
    const key = String(place);
    // After a gap every record is in another place than expected. Only the first of them is a break.
    const found = (this.byPlace.get(key) ?? []).filter((finding) => !(this.isBroken && finding.code === "SEQUENCE_GAP"));
    this.byPlace.delete(key);
    if (found.length) this.isBroken = true;
    return found;
  }

  /** What no record has taken: one finding of each code. */
  rest(): Finding[] {
    const left = [...this.byPlace.values()].flat();
    return [...new Map(left.reverse().map((finding) => [finding.code, finding])).values()].filter((finding) => !(this.isBroken && finding.code === "SEQUENCE_GAP"));
  }
}

function stepSort({ step }: StoryEntry): RowSort {
  if (step === null) return "note";
  if (step.what === "call") return isEdit(step) ? "edit" : isCommand(step) ? "command" : "call";
  if (step.what === "prompt" || step.what === "answer" || step.what === "unknown" || step.what === "unreadable") return step.what;
  return "note";
}

/** The height of a row that is no break. `width` is that of the text of a prompt, `write` what is written for a text. */
export function rowHeight(row: TimelineRow, width: number, isPhone: boolean, write: (text: string) => string = (text) => text): number {
  if (row.sort !== "prompt") return isPhone ? PHONE_ROW_HEIGHT : ROW_HEIGHT;
  const { asked = "", askedLeft = 0 } = row.entry?.step ?? {};
  // Lines break at words, so that not every line is full.
  const perLine = Math.max(16, Math.floor((0.85 * width) / CHARACTER_WIDTH));
  // Characters of the East are twice as wide.
  const lines = write(asked).replace(/[\u1100-\uffff]/g, "$&$&").split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / perLine)), 0);
  return 16 + LINE_HEIGHT * (lines + (askedLeft === 0 ? 0 : 1));
}

/** What a reader can look for. `spent` are the steps that used tokens, `observed` those with a decision that held nothing back. */
export type Wanted = Exclude<Figure["sort"], "record"> | "break" | "prompt" | "observed";

export function isWanted(row: TimelineRow, wanted: Wanted): boolean {
  if (wanted.startsWith("model ")) return row.entry?.step?.model === wanted.slice("model ".length);
  switch (wanted) {
    case "": return true;
    case "observed": return row.entry?.decision != null && isObserved(row.entry.decision);
    case "failure": return row.isFailed;
    case "denial": return row.isDenied;
    case "call": return row.sort === "call" || row.sort === "edit" || row.sort === "command" || (row.entry?.step?.what === "call");
    case "spent": return row.entry?.step != null && (row.entry.step.spent.tokensIn !== null || row.entry.step.spent.tokensOut !== null || row.entry.step.spent.costUsd !== null);
    case "command": return row.entry?.step != null && isCommand(row.entry.step);
    default: return row.sort === wanted;
  }
}
