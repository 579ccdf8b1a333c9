/** What the page knows and shows: the open thing, the verdicts on it, and whether it is live. */

import { computed, signal } from "@preact/signals";
import { Connection, NotJudgedHere, crewSize } from "./source/connection.ts";
import { NOTHING_OPEN, NO_LEDGER, enterScope, pins, recallHeads, rememberHeads } from "./source/pins.ts";
import type { Progress } from "./verify/options.ts";
import type { Finding, Place, Verdict } from "./verify/verdict.ts";
import type { Api } from "./worker/api.ts";
import type { About } from "./worker/live.ts";
import type { Change, Contents, KeyFits, OpenedThing, PinnedKey, RememberedHeads } from "./worker/protocol.ts";

export { link, recordLink, route } from "./route.ts";

export type Judgement =
  | { state: "none" }
  | { state: "working"; progress: Progress | null }
  | { state: "done"; verdict: Verdict; usesPlatform: boolean; fits: KeyFits; signers: string[]; strangers: string[]; at: Date }
  | { state: "not judged"; words: string };

/** Records up to which everything is verified when it is opened. More are verified when the reader asks for it. */
export const VERIFIED_AT_ONCE = 20_000;
/** Records of a chain up to which it is verified again each time that it grows, where not everything is. */
const JUDGED_AGAIN_MAX = 2_000;

/** Reads records for the views. */
export const connection = new Connection();
/** Judges, beside the one that reads, with as many workers as there are cores. */
const judges = new Connection(crewSize());

export const thing = signal<OpenedThing | null>(null);
export const contents = signal<Contents | null>(null);
/** The verdict on everything that is open. */
export const judgement = signal<Judgement>({ state: "none" });
/** The verdicts on single chains of a ledger that is too large to be verified at once. */
const chainJudgements = signal<ReadonlyMap<string, Judgement>>(new Map());
export const opening = signal<string>("");
export const problem = signal<string>("");
/** Opens again what this page came with, after it could not be opened; null where that has not happened. */
export const retryOpening = signal<(() => void) | null>(null);
/** What was changed in the copy that is open; empty for the thing itself. */
export const changed = signal("");
/** Heads that the reader's copy was at, which a copy that was rolled back is compared with. */
let copyHeads: RememberedHeads = [];
/** What a screen reader is told: verdicts, and how long work is. */
export const spoken = signal("");
/** How many approvals wait for an answer. */
export const waiting = signal(0);
/** The server that this page came from, and what it says about itself; null behind the other doors. */
export const doorServer = signal<{ api: Api; about: About } | null>(null);
/** The server of what is open; null where that is no live ledger, such as a file that was dropped. */
export const server = computed(() => (thing.value?.live ? doorServer.value : null));
/** What this page came with: a ledger or a site. The reader may open files meanwhile, and go back. */
export const home = signal<OpenedThing | null>(null);
/** Whether the server tells of news, since when not, and why not. */
export const liveState = signal<{ isLive: boolean; since: string; words: string }>({ isLive: false, since: "", words: "" });
/** Counts the news of the server, by their sorts. A view that shows one reads again when its number changes. */
export const news = signal({ heads: 0, approvals: 0, index: 0 });
/** Records that came after the verdict on everything. */
export const unjudged = signal(0);
let original: OpenedThing | null = null;
let retryLive: () => void = () => {};
let beforeHome: (isLatest: () => boolean) => Promise<void> = async () => {};

/** How often something was opened. The latest thing wins: work for an earlier one changes nothing any more. */
let turns = 0;

/** Returns a function that tells whether nothing else was opened since. */
function watchTurn(): () => boolean {
  const mine = turns;
  return () => mine === turns;
}

/** Begin to open something. Returns a function that tells whether it is still the latest thing. */
export function takeTurn(): () => boolean {
  turns++;
  return watchTurn();
}

/** The verdict, if there is one. */
export const verdict = computed(() => (judgement.value.state === "done" ? judgement.value.verdict : null));
export const totalRecords = computed(() => (contents.value?.chains ?? []).reduce((sum, chain) => sum + (chain.length ?? 0), 0));

/** The verdict that says most about a chain: the one on it alone, or the one on everything. */
export function judgementOf(chain: string): Judgement {
  const own = chainJudgements.value.get(chain);
  return own !== undefined && judgement.value.state !== "done" ? own : judgement.value;
}

/** The findings about a chain. */
export function findingsOf(chain: string): Finding[] {
  const found = judgementOf(chain);
  if (found.state !== "done") return [];
  return found.verdict.findings.filter((finding) => finding.place.chain === chain || (isAlone() && finding.place.chain === null)).map((finding) => ({ ...finding, place: placeInChain(finding.place) }));
}

/** Whether one file is open that has no chain to name: its findings have the file as their source. */
export function isAlone(): boolean {
  return !["bundle", "ledger", "report", "cap"].includes(contents.value?.format ?? "");
}

/** Whether lines of actions are open: they have receipts, and no signatures. */
export function isOfActions(): boolean {
  return ["actions", "capseal"].includes(contents.value?.format ?? "");
}

/** A place with its number in the chain. Findings about the actions of a run count these: record 0 of a run's chain opens it. */
export function placeInChain(place: Place): Place {
  const { name = "", format = "" } = contents.value ?? {};
  const prefix = place.chain !== null ? "" : `${format === "capseal" ? "actions.jsonl" : name}, `;
  if (place.sequence !== null || !place.source?.startsWith(`${prefix}action `)) return place;
  const number = Number.parseInt(place.source.slice(`${prefix}action `.length));
  return { ...place, sequence: place.chain === null ? number : number + 1 };
}

export function pinnedKeys(): PinnedKey[] {
  return pins.value.map(({ origin: _, at: __, ...key }) => key);
}

/** The name under which pins and heads of the open thing are kept. */
function scopeOf({ ledger, tenant }: Contents): string {
  return ledger === null ? NO_LEDGER : `${ledger}/${tenant}`;
}

/**
 * The names under which its heads are remembered; the first is the one that it is compared with. A copy may be older than
 * the ledger itself, but not older than a copy that was seen. A report or a single file tells of some moment, and has none.
 */
function headScopes(found: OpenedThing, listed: Contents): string[] {
  if (!found.isFolder || listed.ledger === null) return [];
  return found.live ? [scopeOf(listed)] : [`copies of ${scopeOf(listed)}`, scopeOf(listed)];
}

/** Start the workers while the page still reads what it came with. */
export function warmWorkers(): void {
  connection.warm();
  judges.warm();
}

/** Open a thing, show what it holds, and verify it. */
export async function openThing(found: OpenedThing, change = ""): Promise<void> {
  const isLatest = takeTurn();
  connection.leave();
  judges.leave();
  changed.value = change;
  if (!change) [copyHeads, original] = [[], null];
  thing.value = found;
  contents.value = null;
  judgement.value = { state: "none" };
  chainJudgements.value = new Map();
  unjudged.value = 0;
  problem.value = "";
  retryOpening.value = null;
  opening.value = `Reading ${found.name}`;
  try {
    const listing = connection.ask({ type: "open", thing: found });
    if (!found.live) judges.warm(); // After the one that reads, so that rows come first.
    const listed = await listing;
    if (!isLatest()) return;
    if (!change) await enterScope(scopeOf(listed));
    if (!isLatest()) return;
    contents.value = listed;
    opening.value = "";
    const isVerified = totalRecords.value <= VERIFIED_AT_ONCE || !found.live;
    if (isVerified) judges.warm();
    const prepared = found === home.value ? beforeHome(isLatest) : Promise.resolve();
    const judging = prepared.then(() => (isVerified && isLatest() ? verifyThing() : undefined));
    firstJudging = judging.catch(() => {}); // The line below says what went wrong.
    await judging;
  } catch (error) {
    if (!isLatest()) return;
    opening.value = "";
    [thing.value, contents.value] = [null, null];
    problem.value = (error as Error).message;
    if (found === home.value) retryOpening.value = () => void openThing(found, change);
    await enterScope(NOTHING_OPEN);
  }
}

/** Verify everything that is open with the pinned keys. */
export async function verifyThing(): Promise<void> {
  const [found, listed] = [thing.value, contents.value];
  if (found === null || listed === null || judgement.value.state === "working") return;
  const [keys, records, isLatest] = [pins.value, totalRecords.value, watchTurn()];
  chainJudgements.value = new Map();
  judgement.value = { state: "working", progress: null };
  spoken.value = "Verifying";
  const done = await judge(found, listed, null, isLatest, (next) => { judgement.value = next; });
  if (!isLatest()) return;
  judgement.value = done;
  // The bound was fixed at the beginning: records that came meanwhile are not judged.
  unjudged.value = Math.max(0, totalRecords.value - Math.max(records, done.state === "done" ? done.verdict.records : 0));
  spoken.value = done.state === "done" ? `Verdict: ${done.verdict.status}` : "Not judged";
  // The reader pinned or unpinned a key meanwhile, so that this verdict is about other keys.
  if (done.state === "done" && pins.value !== keys) await verifyThing();
}

/** Verify one chain, where not everything was verified, unless it was verified as it is now. */
export async function verifyChain(chain: string): Promise<void> {
  const [found, listed] = [thing.value, contents.value];
  if (found === null || listed === null || judgement.value.state === "done" || judgement.value.state === "working") return;
  if (["working", "done"].includes(chainJudgements.value.get(chain)?.state ?? "")) return;
  const [keys, head, isLatest] = [pins.value, headOf(chain), watchTurn()];
  const set = (next: Judgement) => { chainJudgements.value = new Map(chainJudgements.value).set(chain, next); };
  set({ state: "working", progress: null });
  const done = await judge(found, listed, [chain], isLatest, set);
  if (!isLatest()) return;
  // The reader pinned or unpinned a key meanwhile, or the chain has changed.
  const isOld = done.state === "done" && (pins.value !== keys || headOf(chain) !== head);
  set(isOld ? { state: "none" } : done);
  if (isOld) return verifyChain(chain);
  spoken.value = done.state === "done" ? `Verdict on this chain: ${done.verdict.status}` : "Not judged";
}

/** Those of these chains that no verdict is about, but perhaps one on everything. */
export function unjudgedOf(chains: string[]): string[] {
  return chains.filter((chain) => (chainJudgements.value.get(chain)?.state ?? "none") === "none");
}

async function judge(found: OpenedThing, listed: Contents, chains: string[] | null, isLatest: () => boolean, report: (now: Judgement) => void): Promise<Judgement> {
  const scopes = headScopes(found, listed);
  // The workers, the pins and the heads of a copy are those of the latest thing. Another one must not be judged by them.
  const stay = () => { if (!isLatest()) throw new NotJudgedHere("another thing was opened"); };
  try {
    const remembered = changed.value ? copyHeads : scopes[0] ? await recallHeads(scopes[0]) : [];
    stay();
    await judges.ask({ type: "open", thing: found });
    stay();
    const { heads, held, ...result } = await judges.ask({ type: "verify", keys: pinnedKeys(), remembered, chains }, (progress) => {
      if (isLatest()) report({ state: "working", progress });
    });
    stay();
    if (found.live) {
      found.held = [...(chains === null ? [] : (found.held ?? []).filter(([name]) => !chains.includes(name))), ...held];
      const other = await connection.ask({ type: "hold", held: found.held });
      if (other) throw new NotJudgedHere(`the server gave this page another ${other} than it gave to be verified`);
      stay();
    }
    if (!changed.value) {
      copyHeads = heads;
      if (isSignedByPins(result.verdict)) for (const scope of scopes) await rememberHeads(scope, heads);
    }
    return { state: "done", ...result, at: new Date() };
  } catch (error) {
    const words = error instanceof NotJudgedHere ? error.message : `the verifier broke down: ${(error as Error).message}`;
    return { state: "not judged", words };
  }
}

/**
 * Whether nothing failed, and a pinned key signed every record. Only then heads are worth remembering: else anyone could
 * fill the memory. A ledger with decisions of the gate is `qualified` on every page, so its status alone says too little.
 */
function isSignedByPins({ status, checks }: Verdict): boolean {
  return status !== "failed" && checks.some((check) => check.name === "signature" && check.status === "passed" && check.count > 0);
}

/** Cores from which on reading beside a verification takes no time from it: the judge, one of its crew, and a reader. */
const CORES_MIN = 3;

/** The first verification of the open thing. */
let firstJudging: Promise<void> = Promise.resolve();

/** Resolves when a reader of all records may begin. With few cores, the first verdict goes first. */
export function waitForTurn(): Promise<void> {
  return crewSize() + 1 < CORES_MIN ? firstJudging : Promise.resolve();
}

/** Stop the verification. The workers that judge are ended; views go on. */
export function stopVerifying(): void {
  judges.stop("you stopped it");
}

/** Milliseconds between two requests for rest. */
const REST_EVERY = 50;
let restAsked = 0;

/** Let a verification wait while the reader scrolls: on a machine with few cores it would take frames away. */
export function yieldToScrolling(): void {
  const now = performance.now();
  if (now - restAsked < REST_EVERY) return;
  restAsked = now;
  judges.rest();
}

/** How long a chain is and how it ends, by the list; empty where it is not listed. */
function headOf(chain: string): string {
  const found = contents.value?.chains.find((one) => one.id === chain);
  return found === undefined ? "" : `${found.length} ${found.head}`;
}

/** Look again at a ledger. Returns whether it has changed; if not, everything stays as it is. */
export async function refreshContents(): Promise<boolean> {
  const [before, isLatest] = [contents.value, watchTurn()];
  const listed = await connection.ask({ type: "refresh" }).catch((error: Error) => {
    if (isLatest()) throw error;
    return null;
  });
  if (before === null || listed === null || !isLatest()) return false;
  const heads = new Map(listed.chains.map((one) => [one.id, one]));
  const changed = before.chains.filter(({ id, length, head }) => heads.get(id)?.length !== length || heads.get(id)?.head !== head);
  if (!changed.length && before.chains.length === listed.chains.length) return false;
  const records = totalRecords.value;
  contents.value = listed;
  const judged = new Map(chainJudgements.value);
  for (const { id, length } of changed) {
    const now = heads.get(id)?.length ?? 0;
    // A chain only grows. One that has another end at the same length is another chain.
    const isOther = (length ?? 0) >= now;
    const next: Judgement = { state: "not judged", words: isOther ? `the server has fewer records of ${id} than before, or others` : `${id} has grown since it was verified` };
    if (isOther && judgement.value.state === "done") judgement.value = next;
    // A view that shows it verifies it again by itself, if that is short work.
    if (judged.get(id)?.state === "done") judged.set(id, isOther || now > JUDGED_AGAIN_MAX ? next : { state: "none" });
  }
  chainJudgements.value = judged;
  unjudged.value += Math.max(0, totalRecords.value - records);
  return true;
}

/** Open a copy of the open thing with one record changed, to see where it breaks. */
export async function tryChange(chain: string, place: number, change: Change, words: string): Promise<void> {
  const [found, isLatest] = [thing.value, watchTurn()];
  if (found === null) return;
  const { files } = await connection.ask({ type: "change", chain, place, change });
  if (!isLatest()) return;
  const replaced = new Map(files);
  original ??= found;
  location.hash = "#/";
  await openThing({ ...found, files: found.files.flatMap(([path, blob]): [string, Blob][] => {
    const other = replaced.has(path) ? replaced.get(path) : blob;
    return other ? [[path, other]] : [];
  }) }, changed.value ? `${changed.value}; then ${words}` : words);
}

/** Go back from a changed copy to the thing itself. */
export async function undoChange(): Promise<void> {
  const found = original;
  original = null;
  if (found !== null) await openThing(found);
}

/** Say how to connect again, and what to do before the ledger is judged; the live door calls this once. */
export function setLiveSteps(retry: () => void, before: typeof beforeHome): void {
  [retryLive, beforeHome] = [retry, before];
}

export function reconnect(): void {
  retryLive();
}
