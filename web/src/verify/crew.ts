/**
 * Others that hash and check signatures beside the thread that judges: the page's further workers.
 *
 * They only compute. The judge reads, decides and reports, so that its verdict is the same with any number of them.
 */

import type { SignatureQuestion } from "./ed25519.ts";

export interface CrewAnswers {
  /** SHA3-256 of each text, as hex. */
  hashes: string[];
  /** Whether each signature is valid under the rule. */
  answers: boolean[];
}

export interface Crew {
  readonly size: number;
  /** Whether all of them have as much to do as they can take. Then the judge computes itself, instead of waiting. */
  readonly isBusy: boolean;
  /** Raises `NotJudged` if one of the crew is lost. */
  work(texts: string[], questions: SignatureQuestion[]): Promise<CrewAnswers>;
  /** Begin nothing for a moment: the reader scrolls, and drawing goes first. */
  rest(): void;
  /** Wait until the next batch may begin: at once, unless there is a rest. */
  rested(): Promise<void>;
}
