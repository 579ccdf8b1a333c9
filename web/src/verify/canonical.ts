/**
 * Canonical bytes: the one form of a JSON value that Aver hashes and signs. The twin of `aver.capsule.canonical`.
 *
 *     canonicalJson({"b": [1, 2.5, null], "a": "é\n"})  is  {"a":"é\n","b":[1,2.5,null]}
 *
 * Keys are sorted by code point. Integers are written exactly, other numbers as Python's `repr` writes a float. A text
 * with a lone surrogate has no canonical form.
 */

import {
  DEPTH_MAX,
  type Json,
  JsonNumber,
  type JsonObject,
  NotCanonical,
  Unreadable,
  compareCodePoints,
  decodeBounded,
  decodeUtf8,
  isInteger,
  isObject,
  parseBounded,
} from "./json.ts";

/** The canonical text of a value. Raises `NotCanonical`. */
export function canonicalJson(value: Json): string {
  return write(value, WELL_FORMED, canonicalNumber, true, 0);
}

/** The canonical text of a capsule's content, or of any value: its float-typed fields are floats. */
export function canonicalContent(value: Json): string {
  if (!isObject(value) || !value.has("reasoning")) return canonicalJson(value);
  const coerced = coerceFloatFields(value, (number) => {
    return Number.isFinite(number.value) ? new JsonNumber(pythonRepr(number.value)) : null;
  });
  if (coerced === null) throw new NotCanonical("is too large for a float");
  return canonicalJson(coerced);
}

/** Compact JSON with the keys as they stand. */
export function compactJson(value: Json): string {
  return write(value, WELL_FORMED, canonicalNumber, false, 0);
}

/** Sorted compact JSON in pure ASCII, as receipts and request hashes use it. */
export function asciiJson(value: Json): string {
  return write(value, asciiString, canonicalNumber, true, 0);
}

/** A value as JSON for a person to read: with spaces, and with each number as it is written. */
export function plainJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(plainJson).join(", ")}]`;
  if (isObject(value)) return `{${[...value].map(([name, item]) => `${JSON.stringify(name)}: ${plainJson(item)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** The number as Python writes it. */
export function canonicalNumber(number: JsonNumber): string {
  if (number.isInteger) return number.text === "-0" ? "0" : number.text;
  return pythonRepr(number.value);
}

/** A float as Python's `repr` writes it: the shortest digits, an exponent below 1e-4 and from 1e16 on. */
export function pythonRepr(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) {
    const text = String(value); // The same digits; without a fraction, Python adds one.
    return text.includes(".") ? text : `${text}.0`;
  }
  const [mantissa = "", exponent = ""] = value.toExponential().split("e");
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

type WriteString = (text: string) => string;

function write(
  value: Json,
  string: WriteString,
  number: (number: JsonNumber) => string,
  sorted: boolean,
  depth: number,
): string {
  if (typeof value === "string") return string(value);
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (value instanceof JsonNumber) return number(value);
  if (depth >= DEPTH_MAX) throw new NotCanonical(`nested deeper than ${DEPTH_MAX} levels`);
  if (Array.isArray(value)) {
    let out = "[";
    for (let at = 0; at < value.length; at++) {
      out += (at ? "," : "") + write(value[at] as Json, string, number, sorted, depth + 1);
    }
    return `${out}]`;
  }
  let out = "{";
  for (const key of sorted ? sortedKeys(value) : value.keys()) {
    out += `${out.length > 1 ? "," : ""}${string(key)}:${write(value.get(key) as Json, string, number, sorted, depth + 1)}`;
  }
  return `${out}}`;
}

const WELL_FORMED: WriteString = (text) => {
  if (!text.isWellFormed()) throw new NotCanonical("holds a lone surrogate, which UTF-8 cannot carry");
  return JSON.stringify(text);
};

/** A string in pure ASCII. A lone surrogate is written as its escape. */
export function asciiString(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The keys of an object by code point. JavaScript's own order is that of UTF-16 units. */
export function sortedKeys(value: JsonObject): string[] {
  const keys = [...value.keys()].sort();
  return keys.some((key) => /[\ud800-\uffff]/.test(key)) ? keys.sort(compareCodePoints) : keys;
}

/** Sort texts as Python does. */
export function sortTexts(texts: Iterable<string>): string[] {
  return [...texts].sort(compareCodePoints);
}

// --- the forms of a document

/**
 * The values of some top-level keys, and every text in which the rest may have been hashed; the likeliest first.
 *
 * 1. The canonical form. 2. The same with the float-typed fields as floats: a JavaScript writer stores `1` and hashes
 * `1.0`. 3. and 4. The same two with each number as it is written. No form changes the value of a number.
 */
export function splitOffKeys(
  data: Uint8Array | string,
  keys: readonly string[],
): { parted: JsonObject; forms: () => Generator<string> } {
  const document = parseDocument(data);
  if (!isObject(document)) throw new Unreadable("a capsule must be a JSON object");
  const numbers = new NumberSurvey();
  numbers.look(document);
  const parted: JsonObject = new Map();
  for (const key of keys) {
    const value = document.get(key);
    if (value !== undefined) parted.set(key, value);
    document.delete(key);
  }
  return { parted, forms: () => iterateForms(document, numbers) };
}

/** Parse a document. White space around it that only Python's `strip` knows is accepted where the rest is compact. */
function parseDocument(data: Uint8Array | string): Json {
  if (typeof data !== "string") {
    const ends = [data[0], data[data.length - 1]];
    if (ends.some((byte) => byte === 0x0b || byte === 0x0c || isSpace(byte)) && (data.includes(0x0b) || data.includes(0x0c))) {
      let start = 0;
      let end = data.length;
      while (start < end && isStripped(data[start])) start++;
      while (end > start && isStripped(data[end - 1])) end--;
      try {
        const text = decodeUtf8(data.subarray(start, end));
        const document = parseBounded(decodeBounded(text));
        if (isObject(document) && compactJson(document) === text) return document;
      } catch {
        // The strict reader below names the problem.
      }
    }
  }
  return parseBounded(decodeBounded(data));
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function isStripped(byte: number | undefined): boolean {
  return isSpace(byte) || byte === 0x0b || byte === 0x0c;
}

/** How the numbers of a document are written. */
class NumberSurvey {
  /** Whether each is written as canonical JSON writes it. */
  isCanonical = true;
  /** Whether each has, to the last digit, the value that is written. */
  isExact = true;

  look(value: Json): void {
    if (value instanceof JsonNumber) {
      if (canonicalNumber(value) === value.text) return;
      this.isCanonical = false;
      if (!value.isInteger) this.isExact = this.isExact && isSameDecimal(value.text, pythonRepr(value.value));
    } else if (Array.isArray(value)) {
      for (const item of value) this.look(item);
    } else if (isObject(value)) {
      for (const item of value.values()) this.look(item);
    }
  }
}

/** Whether two texts of numbers mean the same decimal number. */
function isSameDecimal(one: string, other: string): boolean {
  const left = readDecimal(one);
  const right = readDecimal(other);
  return left !== null && right !== null && left === right;
}

function readDecimal(text: string): string | null {
  const match = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/.exec(text);
  if (match === null) return null;
  const [, sign = "", whole = "", fraction = "", power = "0"] = match;
  const digits = (whole + fraction).replace(/^0+/, "");
  const trimmed = digits.replace(/0+$/, "");
  if (trimmed === "") return "0";
  if (power.length > 18) return null; // No decimal number of Python has such an exponent.
  const exponent = BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - trimmed.length);
  return `${sign}${trimmed}e${exponent}`;
}

function* iterateForms(document: JsonObject, numbers: NumberSurvey): Generator<string> {
  if (numbers.isExact) {
    yield canonicalJson(document);
    const coerced = coerceFloatFields(document, (number) => {
      // An integer that no float can represent differs from its float: that form would change its value.
      return Number.isFinite(number.value) && BigInt(number.text) === BigInt(number.value)
        ? new JsonNumber(pythonRepr(number.value))
        : null;
    });
    if (coerced !== null && coerced !== document) yield canonicalJson(coerced);
  }
  if (numbers.isCanonical) return;
  const asWritten = (value: JsonObject): string => {
    try {
      return write(value, WELL_FORMED, (number) => number.text, true, 0);
    } catch {
      throw new Unreadable("a string holds a lone surrogate");
    }
  };
  yield asWritten(document);
  const coerced = coerceFloatFields(document, (number) => new JsonNumber(`${number.text}.0`));
  if (coerced !== null && coerced !== document) yield asWritten(coerced);
}

/**
 * A copy of a capsule's content with `reasoning.confidence` and `reasoning.options[].feasibility` as floats.
 *
 * The same object if there is nothing to change; null if `toFloat` refuses one of the numbers.
 */
function coerceFloatFields(content: JsonObject, toFloat: (number: JsonNumber) => JsonNumber | null): JsonObject | null {
  const reasoning = content.get("reasoning");
  if (!isObject(reasoning)) return content;
  const changed: JsonObject = new Map(reasoning);
  let isChanged = false;
  const confidence = reasoning.get("confidence");
  if (isInteger(confidence)) {
    const float = toFloat(confidence);
    if (float === null) return null;
    changed.set("confidence", float);
    isChanged = true;
  }
  const options = reasoning.get("options");
  if (Array.isArray(options)) {
    const copies: Json[] = [];
    for (const option of options) {
      const score = isObject(option) ? option.get("feasibility") : undefined;
      if (isObject(option) && isInteger(score)) {
        const float = toFloat(score);
        if (float === null) return null;
        copies.push(new Map(option).set("feasibility", float));
        isChanged = true;
      } else copies.push(option);
    }
    changed.set("options", copies);
  }
  return isChanged ? new Map(content).set("reasoning", changed) : content;
}
