/**
 * Records of the open thing, for the views: read in pieces from the worker, which reads them through any of the doors.
 *
 * The page's own thread parses them in short slices, so that it answers the reader meanwhile.
 */

import { type ChainRow, type SessionChains, groupChains, sessionOfFile } from "./sessions/chains.ts";
import { type Step, readStep } from "./sessions/step.ts";
import { connection, contents } from "./state.ts";
import { BadInput, Unreadable } from "./verify/json.ts";
import { Sealed } from "./verify/sealed.ts";
import type { Contents, RecordText } from "./worker/protocol.ts";

/** Records of one request to a server, which gives no more at once. */
const LIVE_RECORDS = 1_000;
/** Records of one request to a file. It is read from its beginning for each request, so that one takes many. */
const FILE_RECORDS = 4_000;
/** Records between two looks at the clock. */
const SLICE_RECORDS = 25;
/** Milliseconds that the page's thread works before it pauses. A longer task would be felt. */
const WORK_MS = 20;

/** The reader has left the view, so that what it reads is of no use any more. */
export class Left extends Error {}

let since = performance.now();

/** Let the browser do other work, if the thread has worked long enough. */
async function pause(): Promise<void> {
  if (performance.now() - since < WORK_MS) return;
  await new Promise((resolve) => setTimeout(resolve));
  since = performance.now();
}

export function toSealed(chain: string, text: RecordText): Sealed | BadInput {
  if (text.problem) return new Unreadable(text.problem);
  const { hash, signature, signaturePq, signedAt, signedBy } = text;
  return new Sealed(text.canonical, { hash, signature, signature_pq: signaturePq, signed_at: signedAt, signed_by: signedBy }, chain);
}

/** The chains whose names begin so, also where they were imported. */
export function chainsOf(name: RegExp): string[] {
  return (contents.value?.chains ?? []).filter(({ id, origin }) => name.test((origin ?? id).replace(/^import\.[0-9a-f]{16}\./, ""))).map(({ id }) => id);
}

/** All records of a chain, in small batches. */
export async function* readRecords(chain: string): AsyncGenerator<(Sealed | BadInput)[]> {
  const isLive = contents.value?.format === "ledger";
  const step = isLive ? LIVE_RECORDS : FILE_RECORDS;
  // A ledger may lack records in the middle. A file says only at its end how many it has.
  for (let start = 0; !isLive || start < countRecords([chain]); start += step) {
    const found = await connection.ask({ type: "records", chain, start, stop: start + step });
    // An empty chain would say that nothing was ever done.
    if (!start && !found.length && countRecords([chain])) throw new Error(`no record of ${chain} can be read, though it has some`);
    for (let at = 0; at < found.length; at += SLICE_RECORDS) {
      yield found.slice(at, at + SLICE_RECORDS).map((text) => toSealed(chain, text));
      await pause();
    }
    if (!isLive && found.length < step) return;
  }
}

/** How many records cannot be read, and why the first of them cannot; empty if all can. */
export function unreadWords(records: readonly (Sealed | BadInput)[], total = records.length): string {
  const unread = records.filter((record) => record instanceof BadInput);
  return unread[0] ? `${unread.length} of ${total} records cannot be read, and are left out: ${unread[0].message}` : "";
}

/** The record at a place; null where there is none. */
export async function readRecordAt(chain: string, place: number): Promise<Sealed | BadInput | null> {
  const [found] = await connection.ask({ type: "records", chain, start: place, stop: place + 1 });
  return found === undefined ? null : toSealed(chain, found);
}

/** The bytes of a blob; null where it is missing, damaged or too large. */
export async function readBlob(digest: string): Promise<Uint8Array | null> {
  return connection.ask({ type: "blob", digest }).catch(() => null);
}

/** The chains of the open thing, as the sessions' room wants them. */
function listRows({ chains, ledger, format }: Contents): ChainRow[] {
  // All chains of the public tools' bundles are of another tool. In an Aver bundle, some were imported.
  const isForeign = format === "bundle" && ledger === null;
  return chains.map((chain) => ({ name: chain.id, origin: isForeign ? chain.id : chain.origin }));
}

const firsts = new WeakMap<Contents, Map<string, Promise<Step | null>>>();

/** The first record of a chain as a step. Each is read once; one that could not be asked for is asked for again. */
function readFirst(chain: string): Promise<Step | null> {
  const open = contents.value;
  if (open === null) return Promise.resolve(null);
  const known = firsts.get(open) ?? firsts.set(open, new Map()).get(open)!;
  const before = known.get(chain);
  if (before !== undefined) return before;
  const reading = readRecordAt(chain, 0).then((record) => (record instanceof Sealed ? readStep(record) : null), (error: Error) => {
    known.delete(chain);
    throw error;
  });
  known.set(chain, reading);
  return reading;
}

/** The session that a chain belongs to; null if it belongs to none. */
export async function findSession(chain: string): Promise<SessionChains | null> {
  const open = contents.value;
  if (open === null) return null;
  if (open.format !== "bundle" && open.format !== "ledger") {
    const first = await readFirst(chain);
    return first === null ? null : sessionOfFile(first, chain);
  }
  const rows = listRows(open);
  const isDecisions = chain.replace(/^import\.[0-9a-f]{16}\./, "").startsWith("gate.");
  const sessions = await groupChains(rows, readFirst, isDecisions ? null : chain);
  return sessions.find(({ main, agents, decisions }) => main === chain || decisions === chain || agents.some(([, name]) => name === chain)) ?? null;
}

/** How many records some chains have, by what is claimed; 0 where nothing is. */
export function countRecords(chains: string[]): number {
  return (contents.value?.chains ?? []).reduce((sum, chain) => sum + (chains.includes(chain.id) ? (chain.length ?? 0) : 0), 0);
}
