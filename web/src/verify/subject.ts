/** Recognise a thing by its name and its first bytes, as `aver.check` does. */

import { findValueEnd, skipSpace } from "./json.ts";

/** How many bytes at the beginning of a file are read to recognise its format. */
export const BEGINNING_BYTES = 64 * 1024;

export type Format = "chain" | "cap" | "proof" | "actions" | "report" | "capsules" | "elsewhere";

const SQLITE_MAGIC = "SQLite format 3\0";
/** The first keys of the file of an act. */
const ACT_KEYS = new Set(["act_file", "action_id", "approved_in", "blobs"]);

/** Each says at the beginning of a page that it is a report, also where a byte of the other was changed. */
const REPORT_MARKS = ['<meta name="aver" content="report 1">', '<p class="meta">Report \u00c2\u00b7 '];

/** `{` or `[` if the bytes look like a JSON object or array, otherwise empty. */
export function jsonOpening(beginning: Uint8Array): string {
  let at = beginning[0] === 0xef && beginning[1] === 0xbb && beginning[2] === 0xbf ? 3 : 0;
  while (at < beginning.length && (beginning[at] === 0x20 || ((beginning[at] as number) >= 9 && (beginning[at] as number) <= 13))) at++;
  return beginning[at] === 0x7b ? "{" : beginning[at] === 0x5b ? "[" : "";
}

/** The keys of a JSON object that its beginning contains. The text may break off anywhere. */
export function firstKeys(beginning: Uint8Array): string[] {
  if (jsonOpening(beginning) !== "{") return [];
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(beginning);
  const keys: string[] = [];
  let at = text.indexOf("{") + 1;
  const readValue = (): unknown => {
    const end = findValueEnd(text, at);
    if (end === null) throw new Error("the text ends");
    const value: unknown = JSON.parse(text.slice(at, end)); // Only the keys count here: the judge reads strictly.
    at = end;
    return value;
  };
  try {
    for (;;) {
      at = skipSpace(text, at);
      if (text[at] !== '"') return keys;
      const key = readValue() as string;
      at = skipSpace(text, at);
      if (text[at] !== ":") return keys;
      keys.push(key);
      at = skipSpace(text, at + 1);
      if (at >= text.length) return keys;
      readValue();
      at = skipSpace(text, at);
      if (text[at] !== ",") return keys;
      at++;
    }
  } catch {
    return keys;
  }
}

/** The format of a file; null if Aver does not know it. */
export function recogniseFile(name: string, beginning: Uint8Array): Format | null {
  const start = new TextDecoder("latin1").decode(beginning);
  const opening = jsonOpening(beginning);
  // A database has a header of 100 bytes; something shorter only begins like one.
  const isDatabase = start.startsWith(SQLITE_MAGIC) && beginning.length >= 100;
  if (isDatabase || (name === "ledger.db" && !opening)) return "elsewhere";
  const keys = firstKeys(beginning);
  const has = (...names: string[]) => names.every((key) => keys.includes(key));
  if (has("capsules")) return "chain";
  if (has("v", "purpose") && /"purpose"\s*:\s*"checkpoint"/.test(start)) return "elsewhere";
  if (name.endsWith(".cap") || (beginning[0] === 0x1f && beginning[1] === 0x8b)) return "cap";
  if (new Set(keys.slice(0, 4).filter((key) => ACT_KEYS.has(key))).size > 1) return "elsewhere";
  if (REPORT_MARKS.some((mark) => start.includes(mark))) return "report";
  if (has("proof_type", "statement", "path")) return "proof";
  if (name === "actions.jsonl" || has("action_id", "receipt_hash")) return "actions";
  return opening || beginning.every((byte) => byte === 0x20 || (byte >= 9 && byte <= 13)) ? "capsules" : null;
}
