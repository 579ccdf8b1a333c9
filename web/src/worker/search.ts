/**
 * Search in records that no index covers: a bundle, a site, a file. It reads every record.
 *
 * The words are those of `aver search`: words, "phrases", `prefix*`, and `tool: kind: outcome: path: since:`. All must be
 * in the record. Case does not matter.
 */

import { BadInput } from "../verify/json.ts";
import { at } from "../verify/block.ts";
import type { Library } from "./library.ts";
import type { Hit, Results } from "./protocol.ts";
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
    const plain = (isPrefix ? whole.slice(0, -1) : whole).replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+");
    if (plain) words.push(new RegExp(`(?<![\\p{L}\\p{N}_])${plain}${isPrefix ? "" : "(?![\\p{L}\\p{N}_])"}`, "iu"));
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
        // The text has escapes where the record has line ends; the words of a query rarely meet one.
        const found = query.words.map((word) => word.exec(item.canonical));
        if (found.includes(null)) continue;
        const row = describeRow(item, place);
        if (!query.fields.every(([field, value]) => hasField(field, value, row.at, item.canonical, row, safeContent(item)))) continue;
        hits.push({ chain, row, excerpt: cutAround(item.canonical, found[0]?.index ?? -1) });
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

function cutAround(canonical: string, index: number): string {
  if (index < 0) return "";
  const start = Math.max(0, index - AROUND);
  return `${start > 0 ? "… " : ""}${canonical.slice(start, index + AROUND * 2)}${index + AROUND * 2 < canonical.length ? " …" : ""}`;
}
