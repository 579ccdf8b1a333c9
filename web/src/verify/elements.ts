/**
 * Read a JSON array, at the top or under one key, element by element from chunks of bytes.
 *
 * The readers are plain generators over a window of text. They yield elements, or `undefined` when the window needs more
 * text. `readBatches` feeds them, and gives the elements that one chunk has completed together.
 */

import type { ByteSource } from "./bytes.ts";
import { readChunks } from "./bytes.ts";
import {
  BadInput,
  DuplicateKey,
  ELEMENT_MAX,
  type Json,
  type JsonObject,
  TOKENS_MAX,
  Unreadable,
  byteLength,
  checkTokenCount,
  countTokens,
  findValueEnd,
  isTooLarge,
  parseBounded,
  skipSpace,
} from "./json.ts";

/** Characters of a stream kept at a time, as long as each value ends within them. */
const WINDOW_CHARS = 65_536;

/** The text of an element, or the members beside the array, which come last. */
type ElementItem = { text: string; value: Json } | { others: JsonObject };
type Steps<Item, Result = void> = Generator<Item | undefined, Result, void>;

/** A window over chunks of text, refilled only when a value does not end inside it. */
class TextWindow {
  text = "";
  at = 0;
  isDone = false;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  /** How many characters the window should have after the next filling. */
  get wanted(): number {
    return Math.min(Math.max(2 * (this.text.length - this.at), WINDOW_CHARS), ELEMENT_MAX + WINDOW_CHARS);
  }

  add(chunk: Uint8Array | null): void {
    let more: string;
    try {
      more = chunk === null ? this.decoder.decode() : this.decoder.decode(chunk, { stream: true });
    } catch {
      throw new Unreadable("not UTF-8");
    }
    this.text = this.text.slice(this.at) + more;
    this.at = 0;
    if (chunk === null) this.isDone = true;
  }
}

/** The texts of the elements of an array: within the limits, but not parsed. */
function* readArrayTexts(window: TextWindow): Steps<string> {
  yield* expect(window, "[");
  if ((yield* peek(window)) === "]") {
    window.at++;
    return;
  }
  for (;;) {
    yield yield* readValue(window);
    if ((yield* peek(window)) === ",") window.at++;
    else {
      yield* expect(window, "]");
      return;
    }
  }
}

function* readTopArrayTexts(window: TextWindow): Steps<string> {
  yield* readArrayTexts(window);
  yield* end(window);
}

function* readTopArray(window: TextWindow): Steps<ElementItem> {
  for (const steps = readTopArrayTexts(window); ; ) {
    const step = steps.next();
    if (step.done) return;
    yield step.value === undefined ? undefined : { text: step.value, value: parseBounded(step.value) };
  }
}

/** The elements of the array under `key` of an object, then its other members. */
function* readObjectWithArray(window: TextWindow, key: string): Steps<ElementItem> {
  const others: JsonObject = new Map();
  const seen = new Set<string>();
  let size = 0;
  let tokens = 0;
  yield* expect(window, "{");
  if ((yield* peek(window)) === "}") window.at++;
  else {
    for (;;) {
      const name = parseBounded(yield* readValue(window));
      if (typeof name !== "string") throw new Unreadable("an object key is not a string");
      if (seen.has(name)) throw new DuplicateKey(`the key ${JSON.stringify(name.slice(0, 80))} occurs twice in one object`);
      seen.add(name);
      yield* expect(window, ":");
      if (name === key) {
        for (const steps = readArrayTexts(window); ; ) {
          const step = steps.next();
          if (step.done) break;
          yield step.value === undefined ? undefined : { text: step.value, value: parseBounded(step.value) };
        }
      } else {
        const text = yield* readValue(window);
        size += name.length + text.length;
        tokens += 1 + countTokens(text);
        if (size > ELEMENT_MAX || tokens > TOKENS_MAX) {
          throw new Unreadable(`the members beside '${key}' have more than ${ELEMENT_MAX} bytes or ${TOKENS_MAX} values`);
        }
        others.set(name, parseBounded(text));
      }
      if ((yield* peek(window)) === ",") window.at++;
      else {
        yield* expect(window, "}");
        break;
      }
    }
  }
  if (!seen.has(key)) throw new Unreadable(`has no '${key}'`);
  yield { others };
  yield* end(window);
}

/** The next character that is not white space; empty at the end. */
function* peek(window: TextWindow): Steps<never, string> {
  for (;;) {
    window.at = skipSpace(window.text, window.at);
    if (window.at < window.text.length) return window.text[window.at] as string;
    if (window.isDone) return "";
    yield undefined;
  }
}

function* expect(window: TextWindow, character: string): Steps<never> {
  const found = yield* peek(window);
  if (found !== character) throw new Unreadable(`expected '${character}', found '${found || "the end"}'`);
  window.at++;
}

function* end(window: TextWindow): Steps<never> {
  if (yield* peek(window)) throw new Unreadable("something follows the end of the document");
}

/** The text of the next value, within all bounds. */
function* readValue(window: TextWindow): Steps<never, string> {
  if (!(yield* peek(window))) throw new Unreadable("the document ends early");
  let found = findValueEnd(window.text, window.at);
  while (found === null) {
    if (byteLength(window.text.slice(window.at)) > ELEMENT_MAX) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`);
    if (window.isDone) throw new Unreadable("the document ends early");
    yield undefined;
    found = findValueEnd(window.text, window.at);
  }
  const text = window.text.slice(window.at, found);
  if (isTooLarge(text)) throw new Unreadable(`an element is larger than ${ELEMENT_MAX} bytes`);
  checkTokenCount(text);
  window.at = found;
  return text;
}

interface Batch<Item> {
  items: Item[];
  /** The reason why the rest cannot be read; then this is the last batch. */
  error: BadInput | null;
}

async function* readBatches<Item>(source: ByteSource, read: (window: TextWindow) => Steps<Item>): AsyncGenerator<Batch<Item>> {
  const window = new TextWindow();
  const steps = read(window);
  const chunks = readChunks(source);
  let items: Item[] = [];
  try {
    for (;;) {
      const step = steps.next();
      if (step.done) break;
      if (step.value !== undefined) {
        items.push(step.value);
        continue;
      }
      if (items.length) {
        yield { items, error: null };
        items = [];
      }
      for (const wanted = window.wanted; !window.isDone && window.text.length - window.at < wanted; ) {
        const chunk = await chunks.next();
        window.add(chunk.done ? null : chunk.value);
      }
    }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    yield { items, error };
    return;
  }
  if (items.length) yield { items, error: null };
}

/** Stream the elements of an array, parsed. */
export function readElements(source: ByteSource): AsyncGenerator<Batch<ElementItem>> {
  return readBatches(source, readTopArray);
}

/** Stream the texts of the elements of an array. They may not be valid JSON. */
export function readElementTexts(source: ByteSource): AsyncGenerator<Batch<string>> {
  return readBatches(source, readTopArrayTexts);
}

/** Stream the elements of the array under a key of an object, and at last the object's other members. */
export function readMemberElements(source: ByteSource, key: string): AsyncGenerator<Batch<ElementItem>> {
  return readBatches(source, (window) => readObjectWithArray(window, key));
}
