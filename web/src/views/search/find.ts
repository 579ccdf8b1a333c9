/** Find records: by the index of a server, or else by reading every record. */

import { askHits } from "../../source/index_answers.ts";
import { connection, server } from "../../state.ts";
import { parseQuery } from "../../worker/query.ts";
import type { Excerpt, RecordRow, Results } from "../../worker/protocol.ts";

export interface Found {
  hits: { chain: string; place: number; sequence: string; title: string; excerpt: Excerpt | null; kind: string; tool: string; at: string }[];
  searched: number;
  isCut: boolean;
  by: "index" | "records";
  /** Records of the ledger that the index has not read yet, and those whose long texts it has in part. */
  behind: number;
  shortened: number;
  /** Words of the query that have nothing to search for, such as `->`. */
  ignored: string[];
}

/** Records that have all these words. Raises an error that says why it cannot be told. */
export async function findRecords(words: string, limit: number): Promise<Found> {
  const nothing: Found = { hits: [], searched: 0, isCut: false, by: "records", behind: 0, shortened: 0, ignored: [] };
  if (!words) return nothing;
  nothing.ignored = parseQuery(words).ignored;
  const answer = server.value === null ? null : await askHits(server.value.api, words, limit);
  if (answer === null) {
    const found = await connection.ask({ type: "search", words, limit });
    return {
      ...nothing,
      searched: found.searched,
      isCut: found.isCut,
      hits: found.hits.map(({ chain, row, excerpt }) => ({ chain, place: row.place, sequence: row.sequence || String(row.place), title: row.summary, excerpt, kind: row.kind, tool: row.tool, at: row.at })),
    };
  }
  const { hits, next, indexed } = answer;
  return {
    ...nothing,
    searched: indexed.records,
    isCut: next !== null,
    by: "index",
    behind: Math.max(0, indexed.of_records - indexed.records),
    shortened: indexed.cut ?? 0,
    hits: hits.map(({ chain, sequence, at, call, kind, tool }) => ({ chain, place: sequence, sequence: String(sequence), title: "", excerpt: null, kind, tool: call || tool, at })),
  };
}

/** What the record itself says; null where it cannot be read. */
export async function readRow(chain: string, place: number): Promise<RecordRow | null> {
  const found = await connection.ask({ type: "rows", chain, start: place, stop: place + 1 }).catch(() => null);
  return found?.rows[0] ?? null;
}

/** The hit that was asked for last. */
let reading: Promise<Results["hit"]> = Promise.resolve(null);

/**
 * The record at the place of a hit, with a few words around it; null where it cannot be read. One is read after the other,
 * so that other views do not wait for all of them; one that is no longer wanted is not read.
 */
export function readHit(chain: string, place: number, words: string, isCurrent: () => boolean): Promise<Results["hit"]> {
  reading = reading.then(() => (isCurrent() ? connection.ask({ type: "hit", chain, place, words }).catch(() => null) : null));
  return reading;
}
