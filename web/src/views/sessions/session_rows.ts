/** The sessions as rows: by the index of a server, which is marked, or else counted from the records. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { DECISION_DOMAIN, type SessionChains, chainNames } from "../../sessions/chains.ts";
import { type Indexed, type IndexedSession, askSessions } from "../../source/index_answers.ts";
import { connection, contents, news, server } from "../../state.ts";
import type { SessionFigures } from "../../worker/protocol.ts";

/** The figures of a row. */
export interface RowFigures {
  title: string;
  started: string | null;
  ended: string | null;
  actions: number;
  edits: number;
  denials: number;
  tokens: number | null;
  costUsd: number | null;
  risk: number | null;
  workspace: string;
}

export interface SessionRow {
  tool: string;
  session: string;
  /** The chain that the session's page opens. */
  chain: string;
  /** All its chains: those of subagents and of the gate's decisions, too. */
  chains: string[];
  /** Null until they are counted. */
  figures: RowFigures | null;
}

/** All sessions of the open thing, newest first as far as known; null until they are known. */
export const sessionRows = signal<SessionRow[] | null>(null);
/** How much the index has read, where the rows are from it; null where the page counted. */
export const indexed = signal<Indexed | null>(null);
export const sessionsProblem = signal("");
/** Counts how often the reader asked for the sessions again. */
const tried = signal(0);

export function readSessionsAgain(): void {
  tried.value++;
}

let readFor: unknown = null;
let groups: SessionChains[] = [];
/** By chain, the number of records that were counted. */
const counted = new Map<string, { length: number; figures: RowFigures }>();

/** Read the sessions, and count the first `wanted` of them where no index did. */
export function useSessions(wanted: number): void {
  const listed = contents.value;
  const reason = server.value === null ? 0 : news.value.index;
  useEffect(() => {
    if (listed === null) return;
    if (readFor !== listed.ledger + listed.name) {
      sessionRows.value = null;
      counted.clear();
    }
    readFor = listed.ledger + listed.name;
    sessionsProblem.value = "";
    readSessions().then(
      () => { sessionsProblem.value = ""; },
      (error: Error) => { sessionsProblem.value = error.message; },
    );
  }, [listed, reason, tried.value]);
  useEffect(() => {
    let isCurrent = true;
    void (async () => {
      for (const group of indexed.value === null ? groups.slice(0, wanted) : []) {
        const chain = mainChain(group);
        const length = lengthOf(group);
        if (counted.get(chain)?.length === length) continue;
        const figures = await connection.ask({ type: "figures", session: group }).catch(() => null);
        if (!isCurrent) return;
        if (figures === null) continue;
        counted.set(chain, { length, figures: fromRecords(figures) });
        sessionRows.value = rowsOf(groups);
      }
    })();
    return () => { isCurrent = false; };
  }, [sessionRows.value === null, groups, wanted]);
}

async function readSessions(): Promise<void> {
  const answer = server.value === null ? null : await askSessions(server.value.api);
  if (answer !== null) {
    indexed.value = answer.indexed;
    sessionRows.value = answer.sessions.map((session) => ({ tool: session.tool, session: session.session, chain: session.name, chains: findByName(session.name, session.session), figures: fromIndex(session) }));
    return;
  }
  indexed.value = null;
  groups = orderByTime(await connection.ask({ type: "sessions" }));
  sessionRows.value = rowsOf(groups);
}

/** The chains that may be those of a session, by their names. One too many can make its mark worse, and never better. */
function findByName(chain: string, session: string): string[] {
  const names = (contents.value?.chains ?? []).map(({ id }) => id);
  return names.filter((name) => name === chain || name.startsWith(`${chain}.`) || name === `${DECISION_DOMAIN}.${session}`);
}

function rowsOf(found: SessionChains[]): SessionRow[] {
  return found.map((group) => {
    const chain = mainChain(group);
    return { tool: group.tool, session: group.session, chain, chains: chainNames(group), figures: counted.get(chain)?.figures ?? null };
  });
}

function fromRecords({ title, started, ended, actions, edits, denials, tokensIn, tokensOut, costUsd, risk, workspace }: SessionFigures): RowFigures {
  return { title, started, ended, actions, edits, denials, tokens: addTokens(tokensIn, tokensOut), costUsd, risk, workspace };
}

function fromIndex({ title, started, ended, actions, edits, denials, tokens_in, tokens_out, cost_usd, highest_risk, workspace }: IndexedSession): RowFigures {
  return { title, started, ended, actions, edits, denials, tokens: addTokens(tokens_in, tokens_out), costUsd: cost_usd, risk: highest_risk, workspace };
}

function addTokens(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

/** The chain by which a session is opened. */
function mainChain(session: SessionChains): string {
  return session.main ?? session.agents[0]?.[1] ?? session.decisions ?? "";
}

function lengthOf(session: SessionChains): number {
  const names = new Set(chainNames(session));
  return (contents.value?.chains ?? []).reduce((sum, chain) => sum + (names.has(chain.id) ? (chain.length ?? 0) : 0), 0);
}

/** The index of a bundle has times; the chains of a ledger come by name. */
function orderByTime(found: SessionChains[]): SessionChains[] {
  const ends = new Map((contents.value?.chains ?? []).map((chain) => [chain.id, chain.endedAt]));
  const end = (session: SessionChains) => ends.get(mainChain(session)) ?? "";
  return [...found].sort((one, other) => (end(one) < end(other) ? 1 : -1));
}
