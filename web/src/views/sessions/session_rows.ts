/** The sessions as rows: from the index of a live ledger where it has one, else counted from the records. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type SessionChains, chainNames } from "../../sessions/chains.ts";
import { connection, contents, news } from "../../state.ts";
import type { SessionFigures } from "../../worker/protocol.ts";

export interface SessionRow {
  session: SessionChains;
  /** The chain that the session's page opens. */
  chain: string;
  figures: SessionFigures | null;
}

/** All sessions of the open thing; null until they are known. */
export const sessions = signal<SessionChains[] | null>(null);
/** Figures by the chain of the session, each with the length that was counted. */
const counted = signal<ReadonlyMap<string, { length: number; figures: SessionFigures }>>(new Map());
export const sessionsProblem = signal("");
let listedFor: unknown = null;

/** The chain by which a session is opened. */
export function mainChain(session: SessionChains): string {
  return session.main ?? session.agents[0]?.[1] ?? session.decisions ?? "";
}

function lengthOf(session: SessionChains): number {
  const names = new Set(chainNames(session));
  return (contents.value?.chains ?? []).reduce((sum, chain) => sum + (names.has(chain.id) ? (chain.length ?? 0) : 0), 0);
}

/** The rows, newest first where their times are known. */
export function sessionRows(): SessionRow[] {
  return (sessions.value ?? []).map((session) => {
    const chain = mainChain(session);
    return { session, chain, figures: counted.value.get(chain)?.figures ?? null };
  });
}

/** Read the list of sessions, and count `wanted` of them, one after the other. */
export function useSessions(wanted: number): void {
  const listed = contents.value;
  useEffect(() => {
    if (listed === null || listedFor === listed) return;
    const isSameThing = sessions.value !== null && news.value.heads > 0;
    if (!isSameThing) {
      sessions.value = null;
      counted.value = new Map();
    }
    listedFor = listed;
    sessionsProblem.value = "";
    connection.ask({ type: "sessions" }).then(
      (found) => { sessions.value = orderByTime(found); },
      (error: Error) => { sessionsProblem.value = error.message; },
    );
  }, [listed]);
  useEffect(() => {
    let isCurrent = true;
    void (async () => {
      for (const session of (sessions.value ?? []).slice(0, wanted)) {
        const chain = mainChain(session);
        const length = lengthOf(session);
        const known = counted.value.get(chain);
        if (known !== undefined && known.length === length) continue;
        const figures = await connection.ask({ type: "figures", session }).catch(() => null);
        if (!isCurrent) return;
        if (figures !== null) counted.value = new Map(counted.value).set(chain, { length, figures });
      }
    })();
    return () => { isCurrent = false; };
  }, [sessions.value, wanted]);
}

/** The chains of a ledger come in the order in which they began; the index of a bundle has times. */
function orderByTime(found: SessionChains[]): SessionChains[] {
  const ends = new Map((contents.value?.chains ?? []).map((chain, at) => [chain.id, chain.endedAt || String(at).padStart(9, "0")]));
  const end = (session: SessionChains) => ends.get(mainChain(session)) ?? "";
  return [...found].sort((one, other) => (end(one) < end(other) ? 1 : -1));
}
