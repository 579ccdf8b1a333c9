/**
 * Read JSON from outside strictly, in bounded time and memory. The twin of `aver.capsule.json_reader`.
 *
 * These are refused as `Unreadable`:
 *
 * 1. Bytes that are not UTF-8, or not JSON.
 * 2. Duplicate keys in one object, because two readers could see two different records (`DuplicateKey`).
 * 3. NaN, Infinity, and numbers too large for a float or with absurdly many digits.
 * 4. Nesting deeper than `DEPTH_MAX`.
 * 5. A document or element larger than `ELEMENT_MAX`, or with more values than `TOKENS_MAX`.
 *
 * A number keeps its text: JavaScript would round an integer beyond 2^53, and would forget that `1.0` is no integer.
 * An object is a `Map`, so that no key such as `__proto__` has a meaning.
 */

export const ELEMENT_MAX = 16 * 1024 * 1024;
/** Most commas, colons and opening brackets outside strings in one element. It bounds the memory of the result. */
export const TOKENS_MAX = 1_000_000;
export const DEPTH_MAX = 200;
/** Most digits of an integer. Python's reader has the same limit, and the two must agree. */
const INTEGER_DIGITS_MAX = 4300;
/** Digits below which an integer is read by its characters alone. */
const SHORT_DIGITS = 16;

/** Something from outside that cannot be read. `code` is the code of the finding that it becomes. */
export class BadInput extends Error {
  get code(): string {
    return "SCHEMA_INVALID";
  }
}

/** There is no such file or record. */
export class NotFound extends BadInput {}

/** The bytes are not JSON that can be read safely. */
export class Unreadable extends BadInput {}

/** One object has the same key twice, so two readers can see two different records. */
export class DuplicateKey extends Unreadable {
  override get code(): string {
    return "DUPLICATE_KEY";
  }
}

/** A value without a canonical form. */
export class NotCanonical extends BadInput {}

/** A number, as it is written. */
export class JsonNumber {
  readonly text: string;
  readonly isInteger: boolean;

  constructor(text: string, isInteger = INTEGER.test(text)) {
    this.text = text;
    this.isInteger = isInteger;
  }

  /** Its value as JavaScript has it: exact only for integers up to 2^53. */
  get value(): number {
    return Number(this.text);
  }
}

export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

const INTEGER = /^-?[0-9]+$/;
const SPACE = /[ \t\r\n]*/y;
const CONTROL = /[\u0000-\u001f]/g;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
export const encoder = new TextEncoder();

/** Decode bytes. Raises `Unreadable` if they are not UTF-8. */
export function decodeUtf8(data: Uint8Array): string {
  try {
    return decoder.decode(data);
  } catch {
    throw new Unreadable("not UTF-8");
  }
}

/** Parse one JSON document strictly. Raises `Unreadable`. */
export function readJson(data: Uint8Array | string): Json {
  return new Parser(decodeBounded(data)).document();
}

/** Parse a text that is known to be within the bounds. */
export function parseBounded(text: string): Json {
  return new Parser(text).document();
}

/**
 * Parse one JSON document strictly, and say whether it is written as `canonicalJson` writes its value. The parser sees
 * that on its way, and writes nothing to compare. Raises `Unreadable`.
 */
export function readWithForm(text: string, writeNumber: (number: JsonNumber) => string): { value: Json; isCanonical: boolean } {
  const parser = new Parser(decodeBounded(text), writeNumber);
  const value = parser.document();
  return { value, isCanonical: parser.isCanonical };
}

/** Decode a text and check rules 1, 4 and 5. */
export function decodeBounded(data: Uint8Array | string): string {
  if (isTooLarge(data)) throw new Unreadable(`larger than ${ELEMENT_MAX} bytes`);
  const text = typeof data === "string" ? data : decodeUtf8(data);
  checkTokenCount(text);
  if (countOf(text, "[") + countOf(text, "{") > DEPTH_MAX) {
    const start = skipSpace(text, 0);
    if (start < text.length) findValueEnd(text, start);
  }
  return text;
}

/** Whether it has more than `ELEMENT_MAX` bytes. */
export function isTooLarge(data: Uint8Array | string): boolean {
  if (data.length > ELEMENT_MAX) return true;
  if (typeof data !== "string" || 3 * data.length <= ELEMENT_MAX) return false;
  return byteLength(data) > ELEMENT_MAX;
}

/** How many bytes a text has as UTF-8; a lone surrogate counts as three. */
export function byteLength(text: string): number {
  let size = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0x800) size += unit >= 0xd800 && unit < 0xe000 && isPair(text, at) ? 1 : 2;
    else if (unit >= 0x80) size += 1;
  }
  return size;
}

function isPair(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  const other = unit < 0xdc00 ? text.charCodeAt(at + 1) : text.charCodeAt(at - 1);
  return unit < 0xdc00 ? other >= 0xdc00 && other < 0xe000 : other >= 0xd800 && other < 0xdc00;
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
  return count;
}

/** Refuse a text with more tokens than `TOKENS_MAX`. */
export function checkTokenCount(text: string): void {
  if (text.length > TOKENS_MAX && countTokens(text) > TOKENS_MAX) throw tooManyValues();
}

function tooManyValues(): Unreadable {
  return new Unreadable(`holds more than ${TOKENS_MAX} values`);
}

/** Count the tokens outside strings, no further than the limit. */
export function countTokens(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length && count <= TOKENS_MAX; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) {
      const end = findStringEnd(text, at);
      if (end === null) break;
      at = end - 1;
    } else if (unit === 0x2c || unit === 0x3a || unit === 0x5b || unit === 0x7b) count++;
  }
  return count;
}

export function skipSpace(text: string, at: number): number {
  if (text.charCodeAt(at) > 0x20) return at;
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

function findStringEnd(text: string, at: number): number | null {
  for (let quote = text.indexOf('"', at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    // A quote after an odd number of backslashes belongs to the string.
    let before = quote - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    if ((quote - before) % 2 === 1) return quote + 1;
  }
  return null;
}

/** Find the end of the value that begins at `at`; null if the text ends before. Does not check its syntax. */
export function findValueEnd(text: string, at: number): number | null {
  const first = text.charCodeAt(at);
  if (first === 0x22) return findStringEnd(text, at);
  if (first !== 0x5b && first !== 0x7b) {
    let end = at;
    while (end < text.length && !' \t\r\n"[]{},:'.includes(text[end] as string)) end++;
    return end < text.length ? end : null; // The next chunk may continue the number.
  }
  let depth = 0;
  let opened = 0;
  for (let here = at; here < text.length; here++) {
    const unit = text.charCodeAt(here);
    if (unit === 0x22) {
      const end = findStringEnd(text, here);
      if (end === null) return null;
      here = end - 1;
    } else if (unit === 0x5b || unit === 0x7b) {
      depth++;
      opened++;
      if (depth > DEPTH_MAX) throw new Unreadable(`nested deeper than ${DEPTH_MAX} levels`);
      if (opened > TOKENS_MAX) throw tooManyValues();
    } else if (unit === 0x5d || unit === 0x7d) {
      depth--;
      if (depth === 0) return here + 1;
    }
  }
  return null;
}

/** The place of the first character from `at` on that no string holds as it is; the end if there is none. */
function findControl(text: string, at: number): number {
  CONTROL.lastIndex = at;
  return CONTROL.test(text) ? CONTROL.lastIndex - 1 : text.length;
}

/** The keys of the document that was read last, in their order; only those without escapes. */
const GUESSES: { key: string; written: string }[] = [];
const GUESSES_MAX = 256;
const GUESS_CHARS = 64;

class Parser {
  private readonly text: string;
  private at = 0;
  /** How many keys were read. */
  private keys = 0;
  /** The next backslash and control character that is not behind `at`; the end if there is none. */
  private nextEscape = -1;
  private nextControl = -1;
  /** How canonical JSON writes a number; null if nobody asks whether the text is canonical. */
  private readonly writeNumber: ((number: JsonNumber) => string) | null;
  /** Whether all that was read so far is written as canonical JSON writes it. */
  isCanonical = true;

  constructor(text: string, writeNumber: ((number: JsonNumber) => string) | null = null) {
    this.text = text;
    this.writeNumber = writeNumber;
  }

  document(): Json {
    this.space();
    const value = this.value();
    this.space();
    if (this.at !== this.text.length) throw this.error("something follows the end of the document");
    return value;
  }

  private space(): void {
    const unit = this.text.charCodeAt(this.at);
    if (unit === 0x20 || (unit >= 9 && unit <= 13)) {
      this.at = skipSpace(this.text, this.at);
      this.isCanonical = false;
    }
  }

  private error(words: string): Unreadable {
    return new Unreadable(`not valid JSON: ${words} (character ${this.at})`);
  }

  private value(): Json {
    const text = this.text;
    switch (text.charCodeAt(this.at)) {
      case 0x22:
        return this.string();
      case 0x7b:
        return this.object();
      case 0x5b:
        return this.array();
      case 0x74:
        return this.word("true", true);
      case 0x66:
        return this.word("false", false);
      case 0x6e:
        return this.word("null", null);
      default:
        return this.number();
    }
  }

  private word<T extends Json>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) throw this.error("expected a value");
    this.at += word.length;
    return value;
  }

  private number(): JsonNumber {
    const { text, at } = this;
    let end = at;
    for (let unit = text.charCodeAt(end); unit >= 0x30 && unit <= 0x39; unit = text.charCodeAt(++end));
    const next = text.charCodeAt(end);
    // A short integer without a sign, as most numbers are, is written as canonical JSON writes it.
    const isShort = end > at && end - at < SHORT_DIGITS && (text.charCodeAt(at) !== 0x30 || end === at + 1);
    if (isShort && next !== 0x2e && next !== 0x45 && next !== 0x65) {
      this.at = end;
      return new JsonNumber(text.slice(at, end), true);
    }
    NUMBER.lastIndex = at;
    const match = NUMBER.exec(text);
    if (match === null) throw this.error("expected a value");
    this.at = NUMBER.lastIndex;
    const number = new JsonNumber(match[0]);
    if (number.isInteger) {
      if (number.text.length - Number(number.text.startsWith("-")) > INTEGER_DIGITS_MAX) {
        throw this.error("an integer with too many digits");
      }
    } else if (!Number.isFinite(number.value)) {
      throw new Unreadable(`the number ${number.text.slice(0, 40)} is too large for a float`);
    }
    if (this.writeNumber !== null && this.isCanonical) this.isCanonical = this.writeNumber(number) === number.text;
    return number;
  }

  private string(): string {
    const { text, at } = this;
    const quote = text.indexOf('"', at + 1);
    if (this.nextEscape < at) {
      const escape = text.indexOf("\\", at);
      this.nextEscape = escape < 0 ? text.length : escape;
    }
    if (quote >= 0 && quote < this.nextEscape) {
      if (this.nextControl < at) this.nextControl = findControl(text, at);
      // Most strings have neither: then their text is their value.
      if (quote < this.nextControl) {
        this.at = quote + 1;
        return text.slice(at + 1, quote);
      }
    }
    const end = findStringEnd(text, at);
    if (end === null) throw this.error("a string has no end, or holds a control character");
    try {
      const written = text.slice(at, end);
      const value = JSON.parse(written) as string;
      this.at = end;
      if (this.writeNumber !== null && this.isCanonical) this.isCanonical = value.isWellFormed() && JSON.stringify(value) === written;
      return value;
    } catch {
      throw this.error("a string has a bad escape, or holds a control character");
    }
  }

  /** A key. Records have mostly the keys of the record before, in its order: looking for those first is faster. */
  private key(): string {
    const turn = this.keys++;
    const guess = GUESSES[turn];
    if (guess !== undefined && this.text.startsWith(guess.written, this.at)) {
      this.at += guess.written.length;
      return guess.key;
    }
    const { at } = this;
    const key = this.string();
    if (turn < GUESSES_MAX && key.length < GUESS_CHARS && this.at - at === key.length + 2) GUESSES[turn] = { key, written: this.text.slice(at, this.at) };
    return key;
  }

  private array(): Json[] {
    const items: Json[] = [];
    this.at++;
    this.space();
    if (this.text.charCodeAt(this.at) === 0x5d) {
      this.at++;
      return items;
    }
    for (;;) {
      items.push(this.value());
      this.space();
      const unit = this.text.charCodeAt(this.at);
      if (unit === 0x5d) {
        this.at++;
        return items;
      }
      if (unit !== 0x2c) throw this.error("expected a comma or the end of an array");
      this.at++;
      this.space();
    }
  }

  private object(): JsonObject {
    const members: JsonObject = new Map();
    let count = 0;
    let twice: string | null = null;
    let before: string | null = null;
    this.at++;
    this.space();
    if (this.text.charCodeAt(this.at) === 0x7d) {
      this.at++;
      return members;
    }
    for (;;) {
      if (this.text.charCodeAt(this.at) !== 0x22) throw this.error("expected a key");
      const key = this.key();
      if (this.isCanonical && before !== null) this.isCanonical = compareCodePoints(before, key) < 0;
      before = key;
      this.space();
      if (this.text.charCodeAt(this.at) !== 0x3a) throw this.error("expected a colon");
      this.at++;
      this.space();
      const value = this.value();
      count++;
      members.set(key, value);
      if (members.size !== count && twice === null) twice = key;
      this.space();
      const unit = this.text.charCodeAt(this.at);
      if (unit === 0x7d) {
        this.at++;
        // Only now: a reader that stops at the first error would report an object that never ends as such.
        if (twice !== null) throw new DuplicateKey(`the key ${JSON.stringify(twice.slice(0, 80))} occurs twice in one object`);
        return members;
      }
      if (unit !== 0x2c) throw this.error("expected a comma or the end of an object");
      this.at++;
      this.space();
    }
  }
}

// --- looking at values

/** Compare two texts by their code points. */
export function compareCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const left = one.charCodeAt(at);
    const right = other.charCodeAt(at);
    if (left === right) continue;
    // A surrogate stands for a code point above all others of one unit.
    const isLeftHigh = left >= 0xd800 && left < 0xe000;
    const isRightHigh = right >= 0xd800 && right < 0xe000;
    return isLeftHigh === isRightHigh ? left - right : isLeftHigh ? 1 : -1;
  }
  return one.length - other.length;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

export function isInteger(value: Json | undefined): value is JsonNumber {
  return value instanceof JsonNumber && value.isInteger;
}

export function isFloat(value: Json | undefined): value is JsonNumber {
  return value instanceof JsonNumber && !value.isInteger;
}

/** Whether an integer is at least 0 and below 2^63, the range of sequence numbers. */
export function isPlace(value: Json | undefined): value is JsonNumber {
  if (!isInteger(value)) return false;
  if (value.text.startsWith("-")) return value.text === "-0";
  return value.text.length < 19 || (value.text.length === 19 && value.text < "9223372036854775808");
}

/** Whether two values are equal as Python compares them: by value, with `true` as 1. */
export function equalJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  const left = asNumber(one);
  const right = asNumber(other);
  if (left !== null && right !== null) return equalNumbers(left, right);
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => equalJson(item, other[at]));
  }
  if (isObject(one) && isObject(other)) {
    if (one.size !== other.size) return false;
    for (const [key, value] of one) if (!other.has(key) || !equalJson(value, other.get(key))) return false;
    return true;
  }
  return false;
}

function asNumber(value: Json | undefined): JsonNumber | null {
  if (value instanceof JsonNumber) return value;
  return typeof value === "boolean" ? new JsonNumber(value ? "1" : "0") : null;
}

function equalNumbers(one: JsonNumber, other: JsonNumber): boolean {
  if (one.text === other.text) return true;
  if (one.isInteger && other.isInteger) return BigInt(one.text) === BigInt(other.text);
  if (!one.isInteger && !other.isInteger) return one.value === other.value;
  const [whole, real] = one.isInteger ? [one, other] : [other, one];
  return Number.isInteger(real.value) && BigInt(real.value) === BigInt(whole.text);
}

/** A JSON value as this module represents it, from plain JavaScript values. Numbers must be safe integers. */
export function toJson(value: unknown): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return new JsonNumber(String(value));
  if (value instanceof JsonNumber || value instanceof Map) return value as Json;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === "object") return new Map(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
  throw new Error(`${typeof value} is no JSON value`);
}
