/** Records that belong to one record: its parent, its children, those of the same request, and those that it names. */

import { Left, readRecords } from "../../records.ts";
import { refsOf } from "../../sessions/decisions.ts";
import { asText, contentOf } from "../../sessions/values.ts";
import { contents } from "../../state.ts";
import { at, readKind } from "../../verify/block.ts";
import type { JsonObject } from "../../verify/json.ts";
import { Sealed } from "../../verify/sealed.ts";
import { cutText } from "../../verify/text.ts";

interface RelatedRecord {
  chain: string;
  place: number;
  relation: string;
  kind: string;
  summary: string;
  at: string;
}

/** Records that are searched without being asked. A search of more would keep the next record waiting. */
const SEARCHED_AT_ONCE = 2_000;
/** Records that are searched at most. */
const SEARCHED_MAX = 20_000;
/** Relatives that are listed. */
const FOUND_MAX = 100;

/** The chains in which relatives may be: all where they are few, else the same chain and those of the same session. */
export function relatedChains(chain: string, session: string): { names: string[]; isWhole: boolean; isQuick: boolean } {
  const all = contents.value?.chains ?? [];
  const total = all.reduce((sum, one) => sum + (one.length ?? 0), 0);
  if (total <= SEARCHED_MAX) return { names: all.map((one) => one.id).filter((id) => id !== "meta"), isWhole: true, isQuick: total <= SEARCHED_AT_ONCE };
  const names: string[] = [];
  let sum = 0;
  for (const one of [...all].sort((left, right) => Number(right.id === chain) - Number(left.id === chain))) {
    if (one.id !== chain && !(session && one.id.includes(session)) && !one.id.startsWith("approvals.")) continue;
    sum += one.length ?? 0;
    if (sum > SEARCHED_MAX && names.length) break;
    names.push(one.id);
  }
  return { names, isWhole: false, isQuick: sum <= SEARCHED_AT_ONCE };
}

/** Search chains for relatives of a record. `isWanted` is asked now and then; raises `Left` once it says no. */
export async function findRelated(chain: string, place: number, content: JsonObject, names: string[], isWanted: () => boolean): Promise<{ found: RelatedRecord[]; isCut: boolean }> {
  const id = asText(content.get("id"));
  const parent = asText(content.get("parent_id"));
  const request = asText(at(content, "trigger", "correlation_id"));
  const refs = new Map(refsOf(content).map(([name, value]) => [value, name]));
  // Only a text that has one of these ids is parsed: most records have none.
  const marks = [id, parent, request, ...refs.keys()].filter(Boolean).map((text) => JSON.stringify(text));
  const found: RelatedRecord[] = [];
  for (const name of names) {
    let index = -1;
    for await (const batch of readRecords(name)) {
      for (const record of batch) {
        index++;
        if (!(record instanceof Sealed) || (name === chain && index === place)) continue;
        if (!marks.some((mark) => record.canonical.includes(mark))) continue;
        const relation = relate(record, { id, parent, request, refs });
        if (relation === null) continue;
        found.push({ ...relation, chain: name, place: index });
        if (found.length >= FOUND_MAX) return { found, isCut: true };
      }
      if (!isWanted()) throw new Left();
    }
  }
  return { found, isCut: false };
}

function relate(record: Sealed, wanted: { id: string; parent: string; request: string; refs: Map<string, string> }): Omit<RelatedRecord, "chain" | "place"> | null {
  const content = contentOf(record);
  if (content === null) return null;
  const own = asText(content.get("id"));
  const named = refsOf(content).find(([, value]) => value === wanted.id);
  let relation = "";
  if (own && own === wanted.parent) relation = "caused this one";
  else if (own && wanted.refs.has(own)) relation = `its ${wanted.refs.get(own)?.replaceAll("_", " ")}`;
  else if (wanted.id && content.get("parent_id") === wanted.id) relation = "was caused by this one";
  else if (named) relation = `names this one as its ${named[0].replaceAll("_", " ")}`;
  else if (wanted.request && at(content, "trigger", "correlation_id") === wanted.request) relation = "of the same request";
  if (!relation) return null;
  return { relation, kind: readKind(content), summary: cutText(asText(at(content, "outcome", "summary")), 240), at: asText(at(content, "trigger", "timestamp")) || record.signed_at };
}
