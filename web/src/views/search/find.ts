/** Find records: by the index of a server, or else by reading every record. */

import { askHits } from "../../source/index_answers.ts";
import { connection, server } from "../../state.ts";
import type { Excerpt, RecordRow, Results } from "../../worker/protocol.ts";

export interface Found {
  hits: { chain: string; place: number; sequence: string; title: string; excerpt: Excerpt | null; kind: string; tool: string; at: string }[];
  searched: number;
  isCut: boolean;
  by: "index" | "records";
  /** Records of the ledger that the index has not read yet. */
  behind: number;
}

/** Records that have all these words. Raises an error that says why it cannot be told. */
export async function findRecords(words: string, limit: number): Promise<Found> {
  if (!words) return { hits: [], searched: 0, isCut: false, by: "records", behind: 0 };
  const answer = server.value === null ? null : await askHits(server.value.api, words, limit);
  if (answer === null) {
    const found = await connection.ask({ type: "search", words, limit });
    return {
      ...{ searched: found.searched, isCut: found.isCut, by: "records" as const, behind: 0 },
      hits: found.hits.map(({ chain, row, excerpt }) => ({ chain, place: row.place, sequence: row.sequence || String(row.place), title: row.summary, excerpt, kind: row.kind, tool: row.tool, at: row.at })),
    };
  }
  const { hits, next, indexed } = answer;
  return {
    hits: hits.map(({ chain, sequence, at, call, kind, tool }) => ({ chain, place: sequence, sequence: String(sequence), title: "", excerpt: null, kind, tool: call || tool, at })),
    ...{ searched: indexed.records, isCut: next !== null, by: "index" as const, behind: Math.max(0, indexed.of_records - indexed.records) },
  };
}

/** What the record itself says; null where it cannot be read. */
export async function readRow(chain: string, place: number): Promise<RecordRow | null> {
  const found = await connection.ask({ type: "rows", chain, start: place, stop: place + 1 }).catch(() => null);
  return found?.rows[0] ?? null;
}

/** The record at the place of a hit, with a few words around it; null where it cannot be read. */
export async function readHit(chain: string, place: number, words: string): Promise<Results["hit"]> {
  return connection.ask({ type: "hit", chain, place, words }).catch(() => null);
}
