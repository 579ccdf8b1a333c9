/** The lines of unified diffs. The twin of the reading half of `aver.diffs`. */

const HUNK = /^@@ -([0-9]{1,9}|\?)(?:,([0-9]{1,9}))? \+([0-9]{1,9}|\?)(?:,([0-9]{1,9}))? @@/;

/** Added and removed lines. */
export type LineCounts = [added: number, removed: number];

/** Count the lines that a unified diff adds and removes. */
export function countChangedLines(diff: string): LineCounts {
  // The hunk header says how many lines belong to a hunk. So a removed line `-- x` counts, and the header `--- a/x` does not.
  let [added, removed, old, next] = [0, 0, 0, 0];
  for (const line of diff.split("\n")) {
    if (old <= 0 && next <= 0) {
      const header = HUNK.exec(line);
      if (header) [old, next] = [Number(header[2] ?? 1), Number(header[4] ?? 1)];
    } else if (line.startsWith("+")) [added, next] = [added + 1, next - 1];
    else if (line.startsWith("-")) [removed, old] = [removed + 1, old - 1];
    else if (!line.startsWith("\\")) [old, next] = [old - 1, next - 1];
  }
  return [added, removed];
}

export interface DiffLine {
  sort: "added" | "removed" | "place" | "file" | "same";
  /** The line without its mark; a header as it is. */
  text: string;
  /** Line numbers before and after; null where the line is not in that version, or no header says. */
  old: number | null;
  next: number | null;
}

/** Read the lines of a diff. Inside a hunk only the first character decides. Outside, the form of the line does. */
export function readDiff(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let [oldLeft, nextLeft, old, next] = [0, 0, 0, 0];
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const isInside = oldLeft > 0 || nextLeft > 0;
    const header = isInside ? null : HUNK.exec(line);
    if (header) {
      [oldLeft, nextLeft] = [Number(header[2] ?? 1), Number(header[4] ?? 1)];
      [old, next] = [Number(header[1]), Number(header[3])];
      lines.push({ sort: "place", text: line, old: null, next: null });
    } else if (line.startsWith("\\") || (!isInside && /^(?:--- |\+\+\+ |diff |index |\*\*\* )/.test(line))) {
      lines.push({ sort: "file", text: line, old: null, next: null });
    } else {
      const sort = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : !isInside && line.startsWith("@") ? "place" : "same";
      const hasMark = sort !== "place" && (sort !== "same" || line.startsWith(" "));
      const [isOld, isNext] = [sort === "removed" || sort === "same", sort === "added" || sort === "same"];
      const number = (is: boolean, at: number) => (isInside && is && at >= 0 ? at : null); // No number where the header has `?`.
      lines.push({ sort, text: hasMark ? line.slice(1) : line, old: number(isOld, old), next: number(isNext, next) });
      if (isInside && isOld) [old, oldLeft] = [old + 1, oldLeft - 1];
      if (isInside && isNext) [next, nextLeft] = [next + 1, nextLeft - 1];
    }
  }
  return lines;
}

/** Whether a text reads as a unified diff. */
export function isDiff(text: string): boolean {
  return (text.startsWith("--- ") || text.startsWith("@@ ") || text.startsWith("diff ")) && text.includes("@@ ");
}
