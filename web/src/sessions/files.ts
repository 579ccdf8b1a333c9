/** The files that a session touched: by what its steps say that they edited, wrote, added or deleted. */

import type { LineCounts } from "./changed_lines.ts";
import { type Step, isEdit } from "./step.ts";
import type { StoryEntry } from "./story.ts";

/** One file with the steps that changed it, in order. */
export interface TouchedFile {
  path: string;
  edits: StoryEntry[];
  lines: LineCounts;
}

/** Stands for the file of an edit whose record names none. */
const UNNAMED_FILE = "a file that the record does not name";

const EFFECT = /^(?:edited|wrote|added|deleted) (.+)$/s;
/** agent-capsule names the file only in the summary: `Edit: a.py (+3/-1)`. */
const SUMMARY = /^[A-Za-z_]+: (.+?)(?: \(\+\d+\/-\d+\))?$/;

/** The paths that a step changed. */
export function changedPaths(step: Step): string[] {
  const named = step.sideEffects.flatMap((effect) => EFFECT.exec(effect)?.[1] ?? []);
  if (named.length) return [...new Set(named)];
  const summary = SUMMARY.exec(step.summary)?.[1];
  return [summary ?? UNNAMED_FILE];
}

/** Each file touched, in the order in which it was touched first. An edit that took place counts, no other. */
export function listFiles(entries: StoryEntry[]): TouchedFile[] {
  const files = new Map<string, TouchedFile>();
  for (const entry of entries) {
    const { step } = entry;
    if (step === null || !isEdit(step)) continue;
    const paths = changedPaths(step);
    for (const path of paths) {
      const file = files.get(path) ?? files.set(path, { path, edits: [], lines: [0, 0] }).get(path) as TouchedFile;
      file.edits.push(entry);
      // The lines of a step that changed several files cannot be told apart before its diff is read.
      if (paths.length === 1) file.lines = [file.lines[0] + (step.lines?.[0] ?? 0), file.lines[1] + (step.lines?.[1] ?? 0)];
    }
  }
  return [...files.values()];
}

/** The parts of a diff that are about one file; the whole diff where it names no files. */
export function diffOfFile(diff: string, path: string): string {
  const parts = diff.split(/^(?=--- )/m).filter((part) => part.startsWith("--- "));
  if (parts.length < 2) return diff;
  const isAbout = (part: string) => part.split("\n", 2).some((line) => /^(?:---|\+\+\+) /.test(line) && (line.slice(4).replace(/^[ab]\//, "") === path.replace(/^\/+/, "") || line.slice(4).endsWith(path)));
  const own = parts.filter(isAbout);
  return own.length ? own.join("") : diff;
}
