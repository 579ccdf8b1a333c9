/** What the page and its worker say to each other. */

import type { SessionChains } from "../sessions/chains.ts";
import type { SessionTotals } from "../sessions/totals.ts";
import type { Progress } from "../verify/options.ts";
import type { Verdict } from "../verify/verdict.ts";

/** A key that the reader pinned. */
export interface PinnedKey {
  publicKey: string;
  publicKeyPq: string;
  /** What its owner exported with it, as canonical JSON: whose it is, what for, and until when. Nothing for a bare key. */
  entry?: string;
}

/** A thing to open: the files of one folder, one file, or a ledger behind `aver serve`. */
export interface OpenedThing {
  name: string;
  /** Paths inside the folder; a single file has its own name. A ledger has none. */
  files: [string, Blob][];
  isFolder: boolean;
  /** Whether the files are the copies in a site's `explorer/data/`. A page on file:// cannot read the bundle's own files. */
  areCopies?: boolean;
  /** The address of a site on a web server, with a slash at its end. */
  site?: string;
  live?: LiveAccess;
  /** The records of a ledger that were judged. The views are held to them. */
  held?: HeldDigests;
}

/** Parts of the hashes of a chain's records, two numbers for each, by chain. */
export type HeldDigests = [string, Float64Array][];

/** How to ask the server of a ledger. */
export interface LiveAccess {
  /** The address of the server, such as `http://localhost:4840`. A worker has no address of its own. */
  origin: string;
  token: string;
}

/** A chain as it is listed, by claims that a verdict compares. */
export interface ListedChain {
  id: string;
  title: string;
  tool: string;
  length: number | null;
  /** The hash of the last record, where it is claimed. */
  head: string | null;
  /** The chain's name where it was made, if it was imported. */
  origin: string | null;
  startedAt: string;
  endedAt: string;
  signers: string[];
}

/** What a thing holds, by its own claims. */
export interface Contents {
  name: string;
  format: string;
  ledger: string | null;
  tenant: string | null;
  /** Whether it says that it has some chains of its ledger only. */
  isPart?: boolean;
  chains: ListedChain[];
  /** Keys that came along, by fingerprint. They prove nothing until the reader pins them. */
  keys: [string, string][];
  pqKeys: [string, string][];
}

/** One record as a row of a timeline. Every text is as it was sealed; nothing here is verified. */
export interface RecordRow {
  /** Its place in the file, from 0. */
  place: number;
  sequence: string;
  hash: string;
  at: string;
  type: string;
  kind: string;
  summary: string;
  status: string;
  tool: string;
  authority: string;
  tokens: string;
  /** Why it cannot be read; empty if it can. */
  problem: string;
}

/** The figures of a session, counted from the records themselves. */
export interface SessionFigures extends SessionTotals {
  /** The highest score that the gate gave to an action; null where it decided about none. */
  risk: number | null;
  workspace: string;
}

/** How many records a chain had, and the hash of the last of them. */
export interface RememberedHead {
  count: number;
  hash: string;
}

/** The heads of a ledger that this browser has verified, by chain. */
export type RememberedHeads = [string, RememberedHead][];

/** By the fingerprint of a key that is not pinned: signatures that it fits, and that it does not. None of them counts as checked. */
export type KeyFits = [string, [matching: number, others: number]][];

/** One record with its exact text and what its own seal says. */
export interface RecordDetail {
  row: RecordRow;
  canonical: string;
  hash: string;
  computedHash: string;
  signature: string;
  signaturePq: string;
  signedAt: string;
  signedBy: string;
  previousHash: string;
  /** Checks of the record by itself, with the pinned keys. */
  findings: { check: string; status: string; code: string; words: string }[];
  /** Whether the signature fits a key that came along and is not pinned. */
  matchesOwnKey: boolean | null;
  /** Of an action that is no capsule: how many fields its receipt covers. Its hashes are receipts. */
  receiptKeys?: number;
}

/** Which record of a chain: by its place in the file, or by the sequence number that it says. */
export type RecordAddress = { place: number } | { sequence: string };

/** The exact text of one record, with its seal. Nothing here is verified. */
export interface RecordText {
  place: number;
  /** What was hashed. Empty where the record cannot be read. */
  canonical: string;
  hash: string;
  signature: string;
  signaturePq: string;
  signedAt: string;
  signedBy: string;
  /** Why it cannot be read; empty if it can. */
  problem: string;
}

/** A place that a search found. What is shown there is read from the record. */
export interface Hit {
  chain: string;
  row: RecordRow;
  /** Null where the words do not stand there so, such as with a mark upon a letter. */
  excerpt: Excerpt | null;
}

/** A few words around the first hit: before it, the hit, after it. */
export type Excerpt = [string, string, string];

/** One request for an approval, with its state as this page computed it from the records. */
export interface ApprovalCase {
  id: string;
  chain: string;
  /** The place of the request in its chain. */
  place: number;
  /** The exact text of the request's record. */
  canonical: string;
  hash: string;
  opened: string;
  expires: string;
  digest: string;
  /** pending, approved, denied, expired, closed or used. */
  state: string;
  reason: string;
  /** The level that decides now, from 1. */
  floor: number;
  levels: { approvers: string[]; quorum: number; after: number }[];
  approvers: { identity: string; fingerprint: string; custody: string }[];
  /** Whether the action in the record has the digest, and the diff is the action's. */
  isSameAction: boolean;
  /** What was said about it, in order. `problem` says why it does not count; empty if it does. */
  votes: { at: string; word: string; approver: string; level: number; place: number; problem: string }[];
  /** Whether the request's own seal holds with the pinned keys: its first problem, or empty. */
  problem: string;
  isSignerKnown: boolean;
}

/** What the meta chain recorded of one chain, last. */
export interface MetaEntry {
  chain: string;
  count: number;
  hash: string | null;
  at: string;
  kind: string;
  /** How many records are here; null if the chain is not. */
  here: number | null;
}

/** One signed statement of a record, and what its signatures say. */
export interface StatementCheck {
  purpose: string;
  /** The fingerprints of the signers. */
  by: string[];
  /** Valid by a pinned key or by one that came along, invalid by either, without a known key, or no statement at all. */
  state: "pinned" | "came along" | "invalid" | "does not match" | "unknown" | "no statement";
}

export type Request =
  | { id: number; type: "open"; thing: OpenedThing }
  /** Compute for the worker at the other end of this port. */
  | { id: number; type: "assist"; port: MessagePort }
  /** Let the workers at these ports compute, too. */
  | { id: number; type: "crew"; ports: MessagePort[] }
  /** Begin no batch of a verification for a moment: the reader scrolls. Taken at once, and not answered. */
  | { id: number; type: "rest" }
  /** Hold the views to the records that were judged. Taken at once. */
  | { id: number; type: "hold"; held: HeldDigests }
  | { id: number; type: "refresh" }
  /** `chains` are those to judge; null judges everything. */
  | { id: number; type: "verify"; keys: PinnedKey[]; remembered: RememberedHeads; chains: string[] | null }
  | { id: number; type: "sessions" }
  | { id: number; type: "figures"; session: SessionChains }
  | { id: number; type: "change"; chain: string; place: number; change: Change }
  | { id: number; type: "rows"; chain: string; start: number; stop: number }
  | { id: number; type: "records"; chain: string; start: number; stop: number }
  | { id: number; type: "blob"; digest: string }
  | { id: number; type: "search"; words: string; limit: number; chains?: string[] }
  /** The record that a `capsule://` URI names. */
  | { id: number; type: "locate"; uri: string }
  | { id: number; type: "hit"; chain: string; place: number; words: string }
  | { id: number; type: "approvals"; keys: PinnedKey[]; now: string }
  | { id: number; type: "meta" }
  | { id: number; type: "passkeys" }
  /** `text` is a JSON list of statements; `along` are public keys, each with its post-quantum one. */
  | { id: number; type: "statements"; text: string; keys: PinnedKey[]; along: [string, string][] }
  | { id: number; type: "activity" }
  | { id: number; type: "record"; chain: string; at: RecordAddress; keys: PinnedKey[] };

/** A change of a copy, to see where it breaks. */
export type Change = "flip" | "edit" | "drop" | "double" | "swap" | "cut" | "resign" | "forge" | "rollback";

export type Answer =
  | { id: number; type: "progress"; progress: Progress }
  /** The worker lives, and is at work. */
  | { id: 0; type: "alive" }
  | { id: number; type: "done"; result: unknown }
  | { id: number; type: "failed"; words: string; isNotJudged: boolean };

/** What happened on one day. */
export interface RowPlace {
  chain: string;
  row: RecordRow;
}

export interface DayActivity {
  day: string;
  records: number;
  success: number;
  failure: number;
  blocked: number;
  tokens: number;
  cost: number;
}

export interface Results {
  open: Contents;
  assist: null;
  crew: null;
  rest: null;
  /** Which record the views were given otherwise; empty if none. */
  hold: string;
  /** The chains of a ledger as they are now. */
  refresh: Contents;
  /** `fits` has, by signer, how many records match the key that came along and is not pinned, and how many do not. */
  verify: { verdict: Verdict; usesPlatform: boolean; heads: RememberedHeads; held: HeldDigests; fits: KeyFits; /** The pinned keys that records name as theirs. */ signers: string[]; /** The signers of records whose keys are not pinned. */ strangers: string[] };
  sessions: SessionChains[];
  figures: SessionFigures;
  /** The files that are others in the copy, by their names; null for one that it lacks. */
  change: { files: [string, Blob | null][] };
  /** `isMore` says that the chain is not read to its end yet, and that its total is a claim. */
  rows: { rows: RecordRow[]; total: number; isMore: boolean; isCut: boolean };
  records: RecordText[];
  blob: Uint8Array;
  search: { hits: Hit[]; searched: number; isCut: boolean };
  /** The record at the place of a hit, and whether its text has its hash; null where there is none. */
  hit: (Hit & { hasHash: boolean }) | null;
  /** `isCut` says that not all records were read. */
  locate: { found: { chain: string; row: RecordRow } | null; isCut: boolean };
  approvals: { cases: ApprovalCase[]; isCut: boolean };
  statements: StatementCheck[];
  /** The passkeys on the roster, each with the fields that make it. */
  passkeys: { identity: string; fields: [string, string][] }[];
  /** `unrecorded` counts the chains that are here and have no entry, as the verdict counts them. */
  meta: { entries: MetaEntry[]; records: number; unrecorded: number; isCut: boolean };
  activity: { days: DayActivity[]; denials: RowPlace[]; audits: RowPlace[]; last: RowPlace | null; records: number; isCut: boolean };
  record: RecordDetail;
}
