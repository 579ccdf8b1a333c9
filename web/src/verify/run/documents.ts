/** JSON as Python's `json.dumps` writes it: in ASCII, with sorted keys, indented or with a space after each separator. */

import { asciiString, canonicalNumber, sortedKeys } from "../canonical.ts";
import { type Json, JsonNumber, encoder, isObject } from "../json.ts";

/** A document as Aver writes it to a file: indented by two, with a final line feed. */
export function dumpDocument(value: Json): Uint8Array {
  return encoder.encode(`${indent(value, "\n")}\n`);
}

function scalar(value: Json): string | null {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return asciiString(value);
  return value instanceof JsonNumber ? canonicalNumber(value) : null;
}

function indent(value: Json, line: string): string {
  const inner = `${line}  `;
  if (isObject(value)) {
    if (!value.size) return "{}";
    const pairs = sortedKeys(value).map((key) => `${asciiString(key)}: ${indent(value.get(key) as Json, inner)}`);
    return `{${inner}${pairs.join(`,${inner}`)}${line}}`;
  }
  if (Array.isArray(value)) {
    return value.length ? `[${inner}${value.map((item) => indent(item, inner)).join(`,${inner}`)}${line}]` : "[]";
  }
  return scalar(value) as string;
}

/** One line, with a space after each separator, as CapSeal hashes documents. */
export function dumpSpaced(value: Json): string {
  if (isObject(value)) {
    return `{${sortedKeys(value).map((key) => `${asciiString(key)}: ${dumpSpaced(value.get(key) as Json)}`).join(", ")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(dumpSpaced).join(", ")}]`;
  return scalar(value) as string;
}
