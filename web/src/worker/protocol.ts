/** What the page and its worker say to each other. */

import type { Progress } from "../verify/options.ts";
import type { Verdict } from "../verify/verdict.ts";

/** A key that the reader pinned. */
export interface PinnedKey {
  publicKey: string;
  publicKeyPq: string;
}

/** A thing to open: the files of one folder, or one file. */
export interface OpenedThing {
  name: string;
  /** Paths inside the folder; a single file has its own name. */
  files: [string, Blob][];
  isFolder: boolean;
}

/** A chain as it is listed, by claims that a verdict compares. */
export interface ListedChain {
  id: string;
  title: string;
  tool: string;
  length: number | null;
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

/** What the records of a chain add up to, counted from the records themselves. */
export interface Figures {
  records: number;
  calls: number;
  failures: number;
  denials: number;
  tokensIn: number;
  tokensOut: number;
  startedAt: string;
  endedAt: string;
}

/** The head of a bundle's meta chain, and what this browser remembered of it. */
export interface RememberedHead {
  count: number;
  hash: string;
}

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
}

export type Request =
  | { id: number; type: "open"; thing: OpenedThing }
  | { id: number; type: "verify"; keys: PinnedKey[]; remembered: RememberedHead | null }
  | { id: number; type: "figures"; chain: string }
  | { id: number; type: "change"; chain: string; place: number; change: Change }
  | { id: number; type: "rows"; chain: string }
  | { id: number; type: "record"; chain: string; place: number; keys: PinnedKey[] };

/** A change of a copy, to see where it breaks. */
export type Change = "flip" | "edit" | "drop" | "double" | "swap" | "cut" | "resign";

export type Answer =
  | { id: number; type: "progress"; progress: Progress }
  | { id: number; type: "done"; result: unknown }
  | { id: number; type: "failed"; words: string; isNotJudged: boolean };

export interface Results {
  open: Contents;
  verify: { verdict: Verdict; usesPlatform: boolean; head: RememberedHead | null };
  figures: Figures;
  /** The file of the chain, with the change in it. */
  change: { name: string; file: Blob };
  rows: { rows: RecordRow[]; isCut: boolean };
  record: RecordDetail;
}
