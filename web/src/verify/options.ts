/** How to verify a subject. */

import type { Directory } from "./bytes.ts";
import type { Crew } from "./crew.ts";
import type { Ed25519 } from "./ed25519.ts";
import type { Ring } from "./ring.ts";
import type { Sealed } from "./sealed.ts";
import type { Tally } from "./verdict.ts";

export interface VerifyOptions {
  ring: Ring;
  ed25519: Ed25519;
  requirePq?: boolean;
  /** Called with the number of records judged so far, and the bytes read and in all. */
  progress?: (progress: Progress) => void;
  /** Others that compute beside this thread; null or nothing where there are none. */
  crew?: Crew | null;
  /** Warns of a page in the directory that is none of Aver's. A page cannot judge itself, so only the command has this. */
  checkPage?: (directory: Directory, tally: Tally) => Promise<void>;
  /** Called with each record of a bundle, its chain and its place. */
  witness?: (chain: string, place: number, record: Sealed) => void;
  /** Keys that came with the records, by fingerprint. They are asked about for a witness, and decide nothing. */
  along?: ReadonlyMap<string, string>;
  /** Ends the verification: nothing is judged then. */
  signal?: AbortSignal;
}

export interface Progress {
  records: number;
  bytes: number;
  totalBytes: number;
}

/** The reader has stopped the verification. There is no verdict. */
class Stopped extends Error {}

/** The thing is too large or of a sort that this verifier does not judge. There is no verdict. */
export class NotJudged extends Error {}

/** Counts what was read, tells the caller, and stops when the caller wants it. */
export class ProgressMeter {
  private readonly options: VerifyOptions;
  private readonly totalBytes: number;
  private bytes = 0;
  private records = 0;

  constructor(options: VerifyOptions, totalBytes: number) {
    this.options = options;
    this.totalBytes = totalBytes;
  }

  /** Note that so many records, of so many bytes, were judged. Raises `Stopped`. */
  add(records: number, bytes: number): void {
    this.records += records;
    this.bytes = Math.min(this.bytes + bytes, this.totalBytes);
    if (this.options.signal?.aborted) throw new Stopped("stopped by the reader");
    this.options.progress?.({ records: this.records, bytes: this.bytes, totalBytes: this.totalBytes });
  }
}
