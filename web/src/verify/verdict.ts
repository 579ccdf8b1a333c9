/**
 * The verdict: the checks that passed, those that failed and where first, and those that were not made. The twin of
 * `aver.verdict.verdict`: four statuses, tallies that merge in order, and the same document.
 */

import type { Json } from "./json.ts";

type Status = "verified" | "qualified" | "failed" | "empty";
type Integrity = "intact" | "unsigned" | "failed" | "none";
export type CheckStatus = "passed" | "warning" | "failed" | "not_checked";
export type Level = "structural" | "content" | "signature";

/** Every check of a record or chain, in the order of the report. Other rooms add their own after these. */
export const CHECKS = [
  ...["schema", "canonical", "content", "signature", "signature_pq", "links", "genesis", "identity", "columns"],
  ...["store", "keys", "blobs", "meta", "profile"],
];
/** The checks that need bytes and keys alone. All others judge what the records mean. */
const INTEGRITY_CHECKS = new Set([...CHECKS, "index", "head", "page", "parts", "archive", "report", "rollback", "checkpoint"]);
INTEGRITY_CHECKS.delete("profile");
export const RUN_CHECKS = ["receipts", "parents", "sealed", "gates", "proof"];
export const ACT_CHECKS = ["evidence", "effects", "delegation"];

/** How many findings of one check and code a tally keeps; the others are only counted. */
const FINDINGS_KEPT = 100;
/** Characters of a note after which no further note is added to it. */
const NOTE_MAX = 400;
export const DOES_NOT_APPLY = "does not apply here";

export interface Place {
  chain: string | null;
  sequence: Count | null;
  source: string | null;
}

/** A whole number: a bigint only where JavaScript would round it. */
export type Count = number | bigint;

export function toCount(value: bigint): Count {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

export function place(chain: string | null = null, sequence: Count | null = null, source: string | null = null): Place {
  return { chain, sequence: typeof sequence === "bigint" ? toCount(sequence) : sequence, source };
}

export interface Finding {
  check: string;
  status: CheckStatus;
  code: string;
  words: string;
  place: Place;
  /** The evidence, where the place alone does not show it: for a rollback, both heads. */
  proof?: Json | Record<string, unknown>;
}

export interface Check {
  name: string;
  status: CheckStatus;
  reason: string;
  code: string | null;
  place: Place | null;
  count: number;
  /** Whether a check that was not made qualifies the verdict. */
  matters: boolean;
}

export interface Verdict {
  subject: string;
  status: Status;
  level: Level;
  records: number;
  earlier: number;
  chains: number;
  first_bad: Finding | null;
  checks: Check[];
  findings: Finding[];
}

/** A signer without a record in the `keys` chain: its 64 digits, and the trace that it sealed in, where a join may stand for the record. */
export function unrecordedKey(key: string, trace: string | null): string {
  return trace === null ? key : `${key} ${trace}`;
}

/** The findings and counts of one piece of verification. Merging keeps the order of the pieces. */
export class Tally {
  records = 0;
  chains = 0;
  readonly done = new Map<string, number>();
  readonly findings: Finding[] = [];
  /** How many findings there are, by check, status and code. */
  readonly counts = new Map<string, { check: string; status: CheckStatus; code: string; count: number }>();
  readonly skipped = new Map<string, { reason: string; matters: boolean }>();
  readonly notes = new Map<string, string>();
  readonly profiles = new Map<string, number>();
  /** The chains of all findings, also of those that are only counted; null for a finding without a chain. */
  readonly doubtful = new Set<string | null>();
  /** By `unrecordedKey`, the signers that an intact `keys` chain does not record, each with its first record. */
  unrecorded = new Map<string, Place>();
  /** By `unrecordedKey`, the signers of traces whose joins the trace's operator has sealed: they need no record. */
  readonly vouched = new Set<string>();

  add(finding: Finding): void {
    this.doubtful.add(finding.place.chain);
    const counted = this.countOf(finding);
    counted.count++;
    if (counted.count <= FINDINGS_KEPT) this.findings.push(finding);
  }

  private countOf({ check, status, code }: { check: string; status: CheckStatus; code: string }) {
    const name = `${check}\n${status}\n${code}`;
    let counted = this.counts.get(name);
    if (counted === undefined) this.counts.set(name, (counted = { check, status, code, count: 0 }));
    return counted;
  }

  fail(check: string, code: string, words: string, where: Place = place(), proof?: Finding["proof"]): void {
    this.add({ check, status: "failed", code, words, place: where, ...(proof === undefined ? {} : { proof }) });
  }

  warn(check: string, code: string, words: string, where: Place = place()): void {
    this.add({ check, status: "warning", code, words, place: where });
  }

  countDone(check: string, times = 1): void {
    this.done.set(check, (this.done.get(check) ?? 0) + times);
  }

  /** Note that a check was not made. A reason that matters replaces one that does not. */
  skip(check: string, reason: string, { matters }: { matters: boolean }): void {
    const before = this.skipped.get(check);
    if (before === undefined || (matters && !before.matters)) this.skipped.set(check, { reason, matters });
  }

  hasFailed(): boolean {
    return [...this.counts.values()].some((counted) => counted.status === "failed");
  }

  /** Add the tally of the next piece. */
  merge(other: Tally): void {
    this.records += other.records;
    this.chains += other.chains;
    for (const chain of other.doubtful) this.doubtful.add(chain);
    for (const [signer, where] of other.unrecorded) if (!this.unrecorded.has(signer)) this.unrecorded.set(signer, where);
    for (const signer of other.vouched) this.vouched.add(signer);
    for (const [check, times] of other.done) this.countDone(check, times);
    const room = new Map<string, number>();
    for (const finding of other.findings) {
      const name = `${finding.check}\n${finding.status}\n${finding.code}`;
      const left = (room.get(name) ?? FINDINGS_KEPT - (this.counts.get(name)?.count ?? 0)) - 1;
      room.set(name, left);
      if (left >= 0) this.findings.push(finding);
    }
    for (const counted of other.counts.values()) this.countOf(counted).count += counted.count;
    for (const [check, { reason, matters }] of other.skipped) this.skip(check, reason, { matters });
    for (const [check, note] of other.notes) {
      const before = this.notes.get(check);
      if (before === undefined) this.notes.set(check, note);
      else if (!before.includes(note) && before.length < NOTE_MAX) this.notes.set(check, `${before}; ${note}`);
    }
    for (const [profile, count] of other.profiles) this.profiles.set(profile, (this.profiles.get(profile) ?? 0) + count);
  }
}

/** Turn a tally into a verdict. An expected check that was neither made nor skipped is reported as not checked. */
export function conclude(subject: string, tally: Tally, level: Level = "signature", expected: string[] = CHECKS): Verdict {
  const names = new Set([...expected, ...tally.done.keys(), ...tally.skipped.keys(), ...tally.findings.map((one) => one.check)]);
  const checks = [...names].map((name) => buildCheck(name, tally));
  return {
    subject,
    status: statusOf(checks, tally.findings, tally.records),
    level,
    records: tally.records,
    earlier: 0,
    chains: tally.chains,
    first_bad: tally.findings.find((finding) => finding.status === "failed") ?? null,
    checks,
    findings: tally.findings,
  };
}

function isUnknown({ status, code }: Check): boolean {
  return status === "not_checked" && code === "UNKNOWN_SIGNER";
}

/** Of how many records the signature was held against a key that the reader holds. */
export function heldOf({ checks, records }: Verdict): number {
  const signed = checks.find(({ name }) => name === "signature");
  if (signed === undefined || signed.status !== "not_checked") return signed === undefined ? 0 : records;
  return isUnknown(signed) ? Math.max(records - signed.count, 0) : 0;
}

/** The result of the checks that need bytes and keys alone. */
export function integrityOf(verdict: Verdict): Integrity {
  const { records } = verdict;
  const checks = verdict.checks.filter(({ name }) => INTEGRITY_CHECKS.has(name));
  if (checks.some(({ status }) => status === "failed")) return "failed";
  if (records === 0) return "none";
  return heldOf(verdict) === records && !checks.some(isUnknown) ? "intact" : "unsigned";
}

function statusOf(checks: Check[], findings: Finding[], records: number): Status {
  // In this order: a failure outweighs everything, and nothing read is never a success.
  if (findings.some((finding) => finding.status === "failed")) return "failed";
  if (records === 0) return "empty";
  const isQualified = checks.some((check) => check.status === "warning" || (check.status === "not_checked" && check.matters));
  return isQualified ? "qualified" : "verified";
}

function buildCheck(name: string, tally: Tally): Check {
  const skipped = tally.skipped.get(name);
  for (const status of ["failed", "not_checked", "warning"] as const) {
    const first = tally.findings.find((finding) => finding.check === name && finding.status === status);
    if (first === undefined) continue;
    let count = 0;
    for (const counted of tally.counts.values()) if (counted.check === name && counted.status === status) count += counted.count;
    let more = count > 1 ? ` (${count} in all)` : "";
    // A warning must not hide that something was not checked.
    if (skipped?.matters && status !== "failed") more = `${more}; not all: ${skipped.reason}`;
    return { name, status, reason: first.words + more, code: first.code, place: first.place, count, matters: true };
  }
  const plain = { name, code: null, place: null };
  if (name === "profile" && tally.profiles.size) {
    const parts = [...tally.profiles].sort(([one], [other]) => (one < other ? -1 : 1));
    const count = parts.reduce((sum, [, times]) => sum + times, 0);
    const reason = parts.map(([profile, times]) => `${profile}: ${times}`).join(", ");
    return { ...plain, status: "passed", reason, count, matters: false };
  }
  const times = tally.done.get(name);
  // A check that was made for nothing has not passed.
  if (times) {
    if (skipped?.matters) {
      return { ...plain, status: "not_checked", reason: `not all: ${skipped.reason}`, count: times, matters: true };
    }
    return { ...plain, status: "passed", reason: tally.notes.get(name) ?? `${times} checked`, count: times, matters: false };
  }
  const { reason, matters } = skipped ?? { reason: DOES_NOT_APPLY, matters: false };
  return { ...plain, status: "not_checked", reason, count: 0, matters };
}

/** The document that `aver verify --json` prints. */
export function verdictDocument(verdict: Verdict): Record<string, unknown> {
  return {
    subject: verdict.subject,
    status: verdict.status,
    integrity: integrityOf(verdict),
    level: verdict.level,
    records: verdict.records,
    earlier: verdict.earlier,
    chains: verdict.chains,
    first_bad: verdict.first_bad,
    checks: verdict.checks.map(({ name, status, reason, code, place: where, count }) => {
      return { name, status, reason, code, place: where, count };
    }),
    findings: verdict.findings,
  };
}
