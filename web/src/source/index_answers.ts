/**
 * Answers from a server's index: sessions, places of words, and counts. They are claims, and are marked as such: the page
 * counts and verifies anew what the reader opens. A server whose index cannot answer gives null.
 */

import { type Api, ApiError, query } from "../worker/api.ts";
import type { DayActivity } from "../worker/protocol.ts";

/** How much of the ledger the index has read. */
export interface Indexed {
  records: number;
  of_records: number;
  complete: boolean;
  note: string;
  /** Records whose long texts the index has in part. */
  cut?: number;
}

export interface IndexedSession {
  tool: string;
  session: string;
  title: string;
  started: string | null;
  ended: string | null;
  actions: number;
  edits: number;
  denials: number;
  tokens_in: number | null;
  tokens_out: number | null;
  cost_usd: number | null;
  highest_risk: number | null;
  workspace: string;
  records: number;
  /** The chain by which it is opened. */
  name: string;
  chains: string[];
}

interface IndexedHit {
  chain: string;
  sequence: number;
  at: string;
  tool: string;
  call: string;
  kind: string;
  outcome: string;
}

interface Counts {
  start: string;
  records: number;
  tokens_in: number;
  tokens_out: number;
  cost_usd: number;
  outcomes: Record<string, Record<string, number>>;
  /** Deeds that were held back, each once. */
  held: number;
}

/** Sessions that are asked for in all. */
export const SESSIONS_MAX = 5_000;
/** Days that are asked for: as many as a chart shows. */
const DAYS = 60;

/** Ask the index; null where there is none, or where it cannot answer now. `name` is the list that its answer has. */
async function ask<Result extends { indexed: Indexed }>(api: Api, path: string, name: keyof Result): Promise<Result | null> {
  try {
    const answer = await api.json<Result | null>(path);
    const list = answer?.[name];
    if (Array.isArray(list) && list.every((one) => typeof one === "object" && one) && answer?.indexed) return answer;
    throw new ApiError(200, "NOT_JSON", "the server's answer has another form than it should", "Start it again: aver serve");
  } catch (error) {
    if (error instanceof ApiError && [404, 503].includes(error.status)) return null;
    throw error;
  }
}

export async function askSessions(api: Api): Promise<{ sessions: IndexedSession[]; indexed: Indexed; isCut: boolean } | null> {
  const sessions: IndexedSession[] = [];
  for (let after: string | null = null; ; ) {
    const page: { sessions: IndexedSession[]; next: string | null; indexed: Indexed } | null = await ask(api, `sessions${query({ limit: 500, after })}`, "sessions");
    if (page === null) return null;
    sessions.push(...page.sessions);
    // A page without sessions ends the list, whatever it says: a server could go on for ever.
    after = page.sessions.length ? page.next : null;
    if (after === null || sessions.length >= SESSIONS_MAX) return { sessions, indexed: page.indexed, isCut: after !== null };
  }
}

export async function askHits(api: Api, words: string, limit: number): Promise<{ hits: IndexedHit[]; next: string | null; indexed: Indexed } | null> {
  return ask(api, `search${query({ query: words, limit: Math.min(limit, 500) })}`, "hits");
}

/** What happened on each day, the earliest first, and where the newest deeds lie that were held back. */
export async function askActivity(api: Api): Promise<{ days: DayActivity[]; held: { chain: string; sequence: number }[]; indexed: Indexed } | null> {
  const page = await ask<{ counts: Counts[]; held: { chain: string; sequence: number }[]; indexed: Indexed }>(api, `counts${query({ by: "day", limit: DAYS })}`, "counts");
  if (page === null) return null;
  const days = page.counts.map(({ start, records, tokens_in, tokens_out, cost_usd, outcomes, held }) => {
    const sum = (name: string) => Object.values(outcomes).reduce((total, kinds) => total + (kinds[name] ?? 0), 0);
    return { day: start, records, success: sum("success"), failure: sum("failure"), blocked: held, tokens: tokens_in + tokens_out, cost: cost_usd };
  });
  return { days: days.reverse(), held: page.held, indexed: page.indexed };
}
