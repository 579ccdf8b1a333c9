/** Texts as Python treats them: printable characters, code points, white space, line ends, and how it writes values. */

import { canonicalNumber } from "./canonical.ts";
import { type Json, JsonNumber, isObject } from "./json.ts";

/** Whether every character may be shown: no control, format, private or unassigned one, and no space but U+0020. */
export function isPrintable(text: string): boolean {
  return !/[^ -~]/.test(text) || /^(?:[^\p{C}\p{Z}]| )*$/u.test(text);
}

/** How many code points a text has. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    const isLow = unit >= 0xdc00 && unit < 0xe000;
    const before = isLow && at > 0 ? text.charCodeAt(at - 1) : 0;
    if (!(isLow && before >= 0xd800 && before < 0xdc00)) count++;
  }
  return count;
}

/** The first code points of a text. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  let out = "";
  let count = 0;
  for (const character of text) {
    if (count++ >= most) break;
    out += character;
  }
  return out;
}

const PYTHON_SPACE = "\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const AROUND = new RegExp(`^[${PYTHON_SPACE}]+|[${PYTHON_SPACE}]+$`, "g");
const LINE_END = /[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;

/** A text without the white space around it, as Python's `strip` knows it. */
export function strip(text: string): string {
  return text.replace(AROUND, "");
}

/** The text up to its first line end. */
export function firstLine(text: string): string {
  return text.split(LINE_END, 1)[0] ?? "";
}

const E_MAIL = /[\p{L}\p{N}_.%+-]{1,64}@[\p{L}\p{N}_-]{1,63}(?:\.[\p{L}\p{N}_-]{1,63}){1,8}/gu;
const HOME = new RegExp(`(?:/home|/Users|[A-Za-z]:\\\\Users)[/\\\\][^/\\\\${PYTHON_SPACE}]+`, "gu");

/** A title without e-mail addresses and home directories. */
export function cleanTitle(line: string, most: number): string {
  const cleaned = line.replace(E_MAIL, "[e-mail]").replace(HOME, "~");
  // A lone surrogate has no bytes, and Python writes `?` for it.
  return cutText(cleaned.isWellFormed() ? cleaned : replaceSurrogates(cleaned), most);
}

function replaceSurrogates(text: string): string {
  let out = "";
  for (const character of text) out += character.isWellFormed() ? character : "?";
  return out;
}

const FILE_NAME_MAX = 240;

/** Whether it is one plain file name and nothing else: no separator, no `..`, not hidden, printable. */
export function isFileName(name: unknown): name is string {
  return (
    typeof name === "string" &&
    isPrintable(name) &&
    name !== "" &&
    !name.startsWith(".") &&
    !name.includes("/") &&
    !name.includes("\\") &&
    new TextEncoder().encode(name).length <= FILE_NAME_MAX
  );
}

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A character that is not printed in ASCII, as Python escapes it. */
function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) as number;
  const digits = code.toString(16);
  return ESCAPES[character] ?? (code < 0x100 ? `\\x${digits.padStart(2, "0")}` : code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`);
}

/** A value as Python's `repr` writes it, such as `{'id': [1, None]}`. `escaped` are the characters that it escapes. */
function writePython(value: Json | undefined, escaped: RegExp): string {
  const write = (item: Json | undefined) => writePython(item, escaped);
  if (typeof value === "string") {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const text = value.replace(escaped, escapeCharacter);
    return quote + (quote === "'" ? text.replaceAll("'", "\\'") : text) + quote;
  }
  if (value instanceof JsonNumber) return canonicalNumber(value);
  if (Array.isArray(value)) return `[${value.map(write).join(", ")}]`;
  if (isObject(value)) return `{${[...value].map(([name, item]) => `${write(name)}: ${write(item)}`).join(", ")}}`;
  return value === true ? "True" : value === false ? "False" : "None";
}

/** A value as Python's `str` writes it. */
export function pythonText(value: Json | undefined): string {
  return typeof value === "string" ? value : writePython(value, /\\|(?! )[\p{C}\p{Z}]/gu);
}

/** A value for a message, as Python's `ascii` writes it: shortened. */
export function show(value: Json | undefined, most = 80): string {
  return writePython(value, /[^ -[\]-~]/gu).slice(0, most);
}
