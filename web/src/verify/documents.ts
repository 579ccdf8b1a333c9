/**
 * JSON documents as Aver writes them, byte for byte. The twin of `aver.capsule.json_document`.
 *
 * A signature covers a document's content, not its bytes. So `readExactly` takes one only in its maker's form.
 */

import { areSameBytes } from "./bytes.ts";
import { asciiString, canonicalNumber, compactJson, sortedKeys } from "./canonical.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, encoder, isObject, readJson } from "./json.ts";

/** A signed document in other bytes than its maker's. */
class NotExact extends BadInput {
  override get code(): string {
    return "NOT_CANONICAL";
  }
}

/** Read a document that is good only in the bytes that one of `forms` makes of what `read` found. Raises `BadInput`. */
export function readExactly<T>(raw: Uint8Array, where: string, read: (data: Json) => T, ...forms: ((found: T) => string)[]): T {
  const found = read(readJson(raw));
  if (!forms.some((form) => areSameBytes(raw, encoder.encode(form(found))))) {
    throw new NotExact(`${where} is not written, byte for byte, as Aver writes it: it was changed on its way`);
  }
  return found;
}

/** An object with these keys in this order, as far as it has them. */
export function orderKeys(value: JsonObject, names: Iterable<string>): JsonObject {
  const found: JsonObject = new Map();
  for (const name of names) if (value.has(name)) found.set(name, value.get(name) as Json);
  return found;
}

/** A document as Aver writes it to a file: in ASCII, keys sorted, indented by two, with a final line feed. */
export function dumpDocument(value: Json): string {
  return `${indent(value, "\n", sortedKeys, scalar)}\n`;
}

/** The same in UTF-8, with the keys as they stand. */
export function dumpAsItStands(value: Json): string {
  return `${indent(value, "\n", (object) => [...object.keys()], compactJson)}\n`;
}

function scalar(value: Json): string {
  if (typeof value === "string") return asciiString(value);
  return value instanceof JsonNumber ? canonicalNumber(value) : String(value);
}

function indent(value: Json, line: string, keysOf: (object: JsonObject) => string[], write: (value: Json) => string): string {
  const inner = `${line}  `;
  const join = (items: string[], [open, close]: string) => (items.length ? open + inner + items.join(`,${inner}`) + line + close : `${open}${close}`);
  const nested = (item: Json) => indent(item, inner, keysOf, write);
  if (isObject(value)) return join(keysOf(value).map((key) => `${write(key)}: ${nested(value.get(key) as Json)}`), "{}");
  return Array.isArray(value) ? join(value.map(nested), "[]") : write(value);
}

/** One line, with a space after each separator, as CapSeal hashes documents. */
export function dumpSpaced(value: Json): string {
  if (isObject(value)) {
    return `{${sortedKeys(value).map((key) => `${asciiString(key)}: ${dumpSpaced(value.get(key) as Json)}`).join(", ")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(dumpSpaced).join(", ")}]`;
  return scalar(value);
}
