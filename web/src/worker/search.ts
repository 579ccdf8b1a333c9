/**
 * Search in records that no index covers: a bundle, a site, a file. It reads every record.
 *
 * The words are those of `aver search`: words, "phrases", `prefix*`, and `tool: kind: outcome: path: since:`. All must be
 * in the record. Case does not matter, and punctuation separates words: `read_step` means `read` and `step` side by side.
 */

import { BadInput, type Json, isObject } from "../verify/json.ts";
import { at } from "../verify/block.ts";
import type { Library } from "./library.ts";
import type { Excerpt, Hit, Results } from "./protocol.ts";
import { describeRow, safeContent, text } from "./rows.ts";

/** Records that one search reads. */
const SEARCHED_MAX = 200_000;
/** Characters of the text around a hit, to each side. */
const AROUND = 60;

const FIELDS = ["tool", "kind", "outcome", "path", "since", "until"] as const;
type Field = (typeof FIELDS)[number];

interface Query {
  words: RegExp[];
  fields: [Field, string][];
}

/** Read a query. A word that is not a field's is looked for as it stands. */
export function readQuery(given: string): Query {
  const words: RegExp[] = [];
  const fields: [Field, string][] = [];
  for (const [, field, quoted, bare] of given.matchAll(/(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/g)) {
    const value = quoted ?? bare ?? "";
    if (field !== undefined && (FIELDS as readonly string[]).includes(field)) {
      fields.push([field as Field, value.toLowerCase()]);
      continue;
    }
    const whole = field === undefined ? value : `${field}:${value}`;
    const isPrefix = quoted === undefined && whole.endsWith("*");
    const plain = whole.match(/[\p{L}\p{N}\p{M}]+/gu)?.join("[^\\p{L}\\p{N}]+");
    if (plain) words.push(new RegExp(`(?<![\\p{L}\\p{N}])${plain}${isPrefix ? "" : "(?![\\p{L}\\p{N}])"}`, "iu"));
  }
  return { words, fields };
}

export async function search(library: Library, given: string, limit: number): Promise<Results["search"]> {
  const query = readQuery(given);
  const hits: Hit[] = [];
  let searched = 0;
  if (!query.words.length && !query.fields.length) return { hits, searched, isCut: false };
  for (const { id: chain } of library.chains) {
    let place = -1;
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        place++;
        searched++;
        if (item instanceof BadInput) continue;
        // An escape, such as that of a line end, must not stick to the word after it.
        const written = item.canonical.includes("\\") ? item.canonical.replace(/\\(?:u.{4}|.)/g, "  ") : item.canonical;
        if (!query.words.every((word) => word.test(written))) continue;
        const row = describeRow(item, place);
        const content = safeContent(item);
        if (!query.fields.every(([field, value]) => hasField(field, value, row.at, item.canonical, row, content))) continue;
        hits.push({ chain, row, excerpt: cutExcerpt(content, query) });
        if (hits.length >= limit) return { hits, searched, isCut: true };
      }
      if (searched >= SEARCHED_MAX) return { hits, searched, isCut: true };
    }
  }
  return { hits, searched, isCut: false };
}

function hasField(field: Field, value: string, when: string, canonical: string, row: Hit["row"], content: Parameters<typeof at>[0]): boolean {
  switch (field) {
    case "tool":
      return row.tool.toLowerCase() === value || text(at(content, "domain")).toLowerCase() === value;
    case "kind":
      return row.kind === value || row.kind.startsWith(`${value}.`);
    case "outcome":
      return row.status === value;
    case "path":
      return canonical.toLowerCase().includes(value);
    case "since":
      return when >= value.toUpperCase();
    case "until":
      return when <= value.toUpperCase();
  }
}

/** The record at a place that an index named, with a few words around the hit. */
export async function readHit(library: Library, chain: string, place: number, given: string): Promise<Results["hit"]> {
  for await (const [item] of library.readBatches(chain, place, place + 1)) {
    if (item === undefined) continue;
    const row = describeRow(item, place);
    if (item instanceof BadInput) return { chain, row, excerpt: null, hasHash: false };
    return { chain, row, excerpt: cutExcerpt(safeContent(item), readQuery(given)), hasHash: item.computedHash === item.hash };
  }
  return null;
}

/** A few words around the first word of a query, in the first text of a record that has it. */
function cutExcerpt(content: Json | undefined, { words: [word] }: Query): Excerpt | null {
  if (word === undefined) return null;
  for (const value of listTexts(content)) {
    const found = word.exec(value);
    if (found === null) continue;
    const [start, end] = [found.index, found.index + found[0].length];
    const before = value.slice(Math.max(0, start - AROUND), start);
    const after = value.slice(end, end + AROUND);
    return [`${start > AROUND ? "… " : ""}${before}`, found[0], `${after}${end + AROUND < value.length ? " …" : ""}`];
  }
  return null;
}

function* listTexts(value: Json | undefined): Generator<string> {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) for (const item of value) yield* listTexts(item);
  else if (isObject(value)) for (const item of value.values()) yield* listTexts(item);
}
