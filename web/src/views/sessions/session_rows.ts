/** The sessions as rows: by the index of a server, which is marked, or else counted from the records. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { DECISION_DOMAIN, type SessionChains, chainNames } from "../../sessions/chains.ts";
import { type Indexed, type IndexedSession, askSessions } from "../../source/index_answers.ts";
import { connection, contents, news, server, thing } from "../../state.ts";
import type { SessionFigures } from "../../worker/protocol.ts";

/** The figures of a row. */
interface RowFigures {
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
  /** When it began, by the claim of a bundle's index: the order of what is not counted. Empty where nothing claims it. */
  claimed: string;
}

/** All sessions of the open thing, newest first as far as known; null until they are known. */
export const sessionRows = signal<SessionRow[] | null>(null);
/** How much the index has read, where the rows are from it; null where the page counted. */
export const indexed = signal<Indexed | null>(null);
/** Whether the server has more sessions than the page asked for. */
export const areCut = signal(false);
export const sessionsProblem = signal("");
/** Counts how often the reader asked for the sessions again. */
const tried = signal(0);

export function readSessionsAgain(): void {
  tried.value++;
}

/** The thing whose sessions these are. */
let readFor: unknown = null;
let groups = new Map<string, SessionChains>();
/** By chain, the number of records that were counted, and the figures; null where they could not be read. */
const counted = new Map<string, { length: number; figures: RowFigures | null }>();
/** How many records each session has, by claims. */
let lengths = new Map<string, number>();
/** Sessions whose figures the view wants, the first ones first. */
let wanted: readonly string[] = [];
let isCounting = false;
/** Milliseconds between two drawings while the page counts. */
const DRAWN_EVERY = 200;

/** Whether the page has yet to count a session, or to count it anew because it has grown. */
export function isUncounted(chain: string): boolean {
  return indexed.value === null && counted.get(chain)?.length !== lengths.get(chain);
}

/** Read the sessions, and count those that `choose` wants of them where no index did. */
export function useSessions(choose: (rows: SessionRow[]) => string[]): void {
  const listed = contents.value;
  const reason = server.value === null ? 0 : news.value.index;
  useEffect(() => {
    if (listed === null) return;
    if (readFor !== thing.value) {
      sessionRows.value = null;
      [groups, lengths] = [new Map(), new Map()];
      counted.clear();
    }
    readFor = thing.value;
    sessionsProblem.value = "";
    readSessions().then(
      () => { sessionsProblem.value = ""; },
      (error: Error) => { sessionsProblem.value = error.message; },
    );
  }, [listed, reason, tried.value]);
  useEffect(() => {
    wanted = choose(sessionRows.value ?? []);
    void countWanted();
  });
  useEffect(() => () => { wanted = []; }, []);
}

/** Count what is wanted, one session after the other, so that the worker has time for other views between two. */
async function countWanted(): Promise<void> {
  if (isCounting) return;
  isCounting = true;
  let drawn = performance.now();
  for (let chain = wanted.find(isUncounted); chain !== undefined; chain = wanted.find(isUncounted)) {
    const [group, length, open] = [groups.get(chain), lengths.get(chain) ?? 0, readFor];
    if (group === undefined) break;
    const figures = await connection.ask({ type: "figures", session: group }).then(fromRecords, () => null);
    if (open !== readFor) continue; // Another thing was opened meanwhile.
    counted.set(chain, { length, figures: figures ?? counted.get(chain)?.figures ?? null });
    if (performance.now() - drawn < DRAWN_EVERY && wanted.some(isUncounted)) continue;
    drawn = performance.now();
    sessionRows.value = listRows();
  }
  isCounting = false;
}

async function readSessions(): Promise<void> {
  const answer = server.value === null ? null : await askSessions(server.value.api);
  if (answer !== null) {
    indexed.value = answer.indexed;
    areCut.value = answer.isCut;
    sessionRows.value = answer.sessions.map((session) => ({ tool: session.tool, session: session.session, chain: session.name, chains: findByName(session.name, session.session), figures: fromIndex(session), claimed: "" }));
    return;
  }
  const found = await connection.ask({ type: "sessions" });
  const sizes = new Map((contents.value?.chains ?? []).map((chain) => [chain.id, chain.length ?? 0]));
  [indexed.value, areCut.value] = [null, false];
  groups = new Map(orderByTime(found).map((group) => [mainChain(group), group]));
  lengths = new Map([...groups].map(([chain, group]) => [chain, chainNames(group).reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0)]));
  sessionRows.value = listRows();
}

/** The chains that may be those of a session, by their names. One too many can make its mark worse, and never better. */
function findByName(chain: string, session: string): string[] {
  const names = (contents.value?.chains ?? []).map(({ id }) => id);
  return names.filter((name) => name === chain || name.startsWith(`${chain}.`) || name === `${DECISION_DOMAIN}.${session}`);
}

function listRows(): SessionRow[] {
  const starts = new Map((contents.value?.chains ?? []).map((chain) => [chain.id, chain.startedAt]));
  return [...groups].map(([chain, group]) => ({ tool: group.tool, session: group.session, chain, chains: chainNames(group), figures: counted.get(chain)?.figures ?? null, claimed: starts.get(chain) ?? "" }));
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

/** The index of a bundle has times; the chains of a ledger come by name. */
function orderByTime(found: SessionChains[]): SessionChains[] {
  const ends = new Map((contents.value?.chains ?? []).map((chain) => [chain.id, chain.endedAt]));
  const end = (session: SessionChains) => ends.get(mainChain(session)) ?? "";
  return [...found].sort((one, other) => (end(one) < end(other) ? 1 : -1));
}
