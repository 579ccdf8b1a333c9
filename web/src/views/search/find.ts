/** Find records: by the index of a server, or else by reading every record. */

import { connection, server } from "../../state.ts";
import { ApiError, query } from "../../worker/api.ts";

export interface Found {
  hits: { chain: string; place: number; sequence: string; title: string; excerpt: string; kind: string; tool: string; at: string }[];
  searched: number;
  isCut: boolean;
  by: "index" | "records";
  /** Whether the index has not caught up with the ledger. */
  isBehind: boolean;
}

/** A hit as the server's index gives it. Every field is a claim. */
interface IndexHit {
  chain: string;
  sequence: number;
  excerpt?: string;
  kind?: string;
  tool?: string;
  at?: string;
}

interface IndexAnswer {
  hits: IndexHit[];
  next?: string | null;
  index?: { state?: string; records?: number };
}

/** Records that have all these words. Raises an error that says why it cannot be told. */
export async function findRecords(words: string, limit: number): Promise<Found> {
  if (!words) return { hits: [], searched: 0, isCut: false, by: "records", isBehind: false };
  if (server.value !== null) {
    try {
      const found = await server.value.api.json<IndexAnswer>(`search${query({ q: words, limit: Math.min(limit, 500) })}`);
      return {
        hits: found.hits.map(({ chain, sequence, excerpt = "", kind = "", tool = "", at = "" }) => ({ chain, place: sequence, sequence: String(sequence), title: "", excerpt, kind, tool, at })),
        searched: found.index?.records ?? 0,
        isCut: found.next != null,
        by: "index",
        isBehind: found.index?.state !== "current",
      };
    } catch (error) {
      // A server without an index: the page reads the records itself.
      if (!(error instanceof ApiError) || ![404, 503].includes(error.status)) throw error;
    }
  }
  const found = await connection.ask({ type: "search", words, limit });
  return {
    ...{ searched: found.searched, isCut: found.isCut, by: "records" as const, isBehind: false },
    hits: found.hits.map(({ chain, row, excerpt }) => ({ chain, place: row.place, sequence: row.sequence || String(row.place), title: row.summary, excerpt, kind: row.kind, tool: row.tool, at: row.at })),
  };
}
