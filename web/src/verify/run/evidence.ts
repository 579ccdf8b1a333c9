/** The evidence behind a run's gate decisions: `evidence.jsonl`. The twin of the reading half of `aver.actions.run_evidence`. */

import { at, chainName } from "../block.ts";
import { blobReferences } from "../blobs.ts";
import { ChainJudge, REST_UNREAD, type Rules, UNREADABLE_MAX } from "../chain.ts";
import { sha256Hex } from "../digest.ts";
import type { EvidenceReader } from "../examiner.ts";
import type { Head } from "../heads.ts";
import { BadInput, type Json, type JsonNumber, NotFound, Unreadable, encoder, isObject, readJson } from "../json.ts";
import { Sealed } from "../sealed.ts";
import { codePoints, cutText, isPrintable } from "../text.ts";
import { Tally, place } from "../verdict.ts";
import { readOwnLines } from "./action.ts";
import type { Archive } from "./archive.ts";

export const EVIDENCE_FILE = "evidence.jsonl";
export const CAPSULE_LINE_MAX = 1024 * 1024;
const BLOB_LINE_MAX = 8 * 1024 * 1024;
/** The maximum length of the seal and the chain name together. */
const SEAL_MAX = 16 * 1024;
const NEEDS_MAX = 100_000;
const DIGEST_SHOWN = 200;
const LINE_KEYS = ["chain", "canonical", "hash", "signature", "signature_pq", "signed_at", "signed_by"];

/** One line of `capsules.jsonl`. `parts` has two texts if an action belongs between them. */
export interface CapsuleLine {
  chain: string;
  parts: string[];
  hasAction: boolean;
  rebuild(action: string | null): Sealed;
}

/** Read a line without its line feed. Raises `Unreadable` if it is not the line of a capsule. */
export function readCapsuleLine(content: Json): CapsuleLine {
  if (!isObject(content) || content.size !== LINE_KEYS.length || !LINE_KEYS.every((key) => content.has(key))) {
    throw new Unreadable("a line of capsules has a chain, a seal and its canonical text");
  }
  const canonical = content.get("canonical") as Json;
  const parts = typeof canonical === "string" ? [canonical] : canonical;
  if (!Array.isArray(parts) || parts.length > 2 || !parts.every((part) => typeof part === "string")) {
    throw new Unreadable("a capsule's canonical text is one text, or two");
  }
  const [chain, , ...seal] = LINE_KEYS.map((key) => content.get(key) as Json);
  if (typeof chain !== "string" || !seal.every((value) => typeof value === "string")) {
    throw new Unreadable("the parts of a seal are strings");
  }
  const written = chain + seal.join("");
  if (codePoints(written) > SEAL_MAX || !isPrintable(written)) throw new Unreadable("its seal holds what no seal holds");
  const [hash = "", signature = "", signature_pq = "", signed_at = "", signed_by = ""] = seal as string[];
  return {
    chain,
    parts: parts as string[],
    hasAction: parts.length === 2,
    rebuild: (action) =>
      new Sealed((parts as string[]).join(action ?? ""), { hash, signature, signature_pq, signed_at, signed_by }, chain),
  };
}

/** The approvals and blobs that the decisions of a run rest on. */
export class EvidenceNeeds {
  readonly asked = new Set<string>();
  readonly blobs = new Set<string>();

  /** Add the needs of a decision. Records of another kind need nothing. Raises `BadInput` for one that is no JSON. */
  add(record: Sealed): void {
    if (record.kind !== "gate.decision") return;
    const result = at(record.content, "outcome", "result");
    if (!isObject(result)) return;
    if (["human_review", "human_approved"].includes(result.get("decision") as string) && this.asked.size < NEEDS_MAX) {
      this.asked.add(cutText(String(result.get("digest")), DIGEST_SHOWN));
    }
    for (const part of ["basis", "action"]) {
      if (this.blobs.size >= NEEDS_MAX) break;
      for (const { digest } of blobReferences(result.get(part))) this.blobs.add(digest);
    }
  }
}

interface StoredChain {
  count: number;
  hash: string | null;
  records: Sealed[];
}

/** Gives examiners the records and blobs in a run's files. */
export class RunFilesReader implements EvidenceReader {
  readonly home: Head;
  readonly chains = new Map<string, StoredChain>();
  readonly blobs = new Map<string, Uint8Array>();

  constructor(home: Head) {
    this.home = home;
  }

  /** Add a record of the gate or of approvals. */
  addRecord(record: Sealed, { hasAction }: { hasAction: boolean }): void {
    const name = record.chain ?? "";
    const stored = this.chains.get(name) ?? { count: 0, hash: null, records: [] };
    this.chains.set(name, stored);
    stored.count++;
    stored.hash = record.hash;
    if (!hasAction) stored.records.push(record);
  }

  /** The chains of these domains that have records here. */
  select(...domains: string[]): string[] {
    return [...this.chains.keys()].filter((name) => domains.includes(name.split(".", 1)[0] as string));
  }

  async *read(chain: string): AsyncGenerator<Sealed> {
    const stored = this.chains.get(chain);
    if (stored === undefined) throw new NotFound(`the chain ${chain} is not in the run's files`);
    yield* stored.records;
  }

  async get(hash: string): Promise<Sealed | null> {
    for (const { records } of this.chains.values()) {
      const found = records.find((record) => record.hash === hash);
      if (found !== undefined) return found;
    }
    return null;
  }

  async blob(digest: string): Promise<Uint8Array> {
    const found = this.blobs.get(digest);
    if (found === undefined) throw new NotFound(`the blob ${digest} is not in the run's files`);
    return found;
  }

  head(chain: string): Head | null {
    const stored = this.chains.get(chain);
    const { ledger, tenant } = this.home;
    return stored === undefined ? null : { ledger, tenant, chain, count: stored.count, hash: stored.hash };
  }
}

/** The digest and the bytes of a blob. Raises `Unreadable` if they do not belong together. */
function readBlobLine(content: Json): [string, Uint8Array] {
  const digest = isObject(content) ? content.get("sha256") : null;
  if (!isObject(content) || content.size !== 2 || typeof digest !== "string") throw notEvidence();
  const text = content.get("text");
  const coded = content.get("base64");
  let data: Uint8Array;
  if (typeof text === "string") {
    if (!text.isWellFormed()) throw new Unreadable("a blob is UTF-8 text, or base64");
    data = encoder.encode(text);
  } else if (typeof coded === "string") {
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(coded)) {
      throw new Unreadable("a blob is UTF-8 text, or base64");
    }
    data = Uint8Array.from(atob(coded), (unit) => unit.charCodeAt(0));
  } else throw notEvidence();
  if (sha256Hex(data) !== digest) throw new Unreadable("a blob has other bytes than its digest says");
  return [digest, data];
}

function notEvidence(): Unreadable {
  return new Unreadable("a line of evidence is a capsule or a blob");
}

/** Judge the lines of `evidence.jsonl`, and add the records and blobs to the reader. */
export function judgeEvidence(files: Archive, needs: EvidenceNeeds, reader: RunFilesReader, rules: Rules): Tally {
  const tally = new Tally();
  const file = files.members.get(EVIDENCE_FILE);
  if (file === undefined) return tally;
  const { ledger, tenant } = reader.home;
  const roster = chainName("approvers", tenant) as string;
  const approvals = chainName("approvals", tenant) as string;
  // The roster must be whole from its beginning: each record depends on those before it.
  const rosterJudge = new ChainJudge(rules, { chain: roster, identity: { name: roster, ledger, tenant }, needsBlock: true });
  const fail = (code: string, words: string) => tally.fail("archive", code, words, place(null, null, EVIDENCE_FILE));
  let number = 0;
  let last = -1n;
  let unreadable = 0;
  for (const raw of readOwnLines(file, BLOB_LINE_MAX)) {
    number++;
    try {
      if (raw instanceof BadInput) throw raw;
      const content = readJson(raw);
      if (!isObject(content) || !content.has("canonical")) {
        const [digest, data] = readBlobLine(content);
        if (!needs.blobs.has(digest)) throw new BadInput(`no decision refers to the blob ${digest}`);
        if (reader.blobs.has(digest)) throw new BadInput(`the blob ${digest} is in it twice`);
        reader.blobs.set(digest, data);
        continue;
      }
      const line = readCapsuleLine(content);
      if (line.hasAction || ![roster, approvals].includes(line.chain)) {
        throw new BadInput("the capsule is neither of the approvers nor of the approvals");
      }
      const record = line.rebuild(null);
      reader.addRecord(record, { hasAction: false });
      if (record.chain === roster) rosterJudge.judge(record);
      else last = judgeApproval(record, last, rules, tally);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      fail("SCHEMA_INVALID", `line ${number}: ${error.message}`);
      if (++unreadable > UNREADABLE_MAX) {
        fail("NOT_READ", REST_UNREAD);
        break;
      }
    }
  }
  tally.merge(rosterJudge.finish());
  tally.chains += reader.select("approvals", "approvers").length;
  return tally;
}

/** Judge a record of the approvals by itself: those about other actions are missing between them. */
function judgeApproval(record: Sealed, last: bigint, rules: Rules, tally: Tally): bigint {
  const judge = new ChainJudge(rules, { chain: record.chain, start: null, needsBlock: true });
  const content = judge.judge(record);
  tally.merge(judge.finish());
  if (content === null) return last;
  const sequence = BigInt((content.get("sequence") as JsonNumber).text);
  if (sequence <= last) tally.fail("links", "SEQUENCE_GAP", "it comes twice, or after a later record", place(record.chain, sequence));
  return sequence > last ? sequence : last;
}
