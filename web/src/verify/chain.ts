/**
 * Judge the records of a chain, one at a time. The twin of `aver.verdict.chain`.
 *
 * For each record, the judge reports the first of these rules that is broken, and goes on with the next record:
 *
 *     1. the text is one JSON object with a capsule's keys           SCHEMA_INVALID, DUPLICATE_KEY
 *     2. it has the stored hash                                      HASH_MISMATCH
 *     3. the stored hash was signed by the key it names              SIG_MISSING, SIG_INVALID (UNKNOWN_SIGNER: unchecked)
 *     4. the seal's copies match the values inside the hash          SEAL_MISMATCH
 *     5. the sequence number is the next one                         SEQUENCE_GAP
 *     6. the link is the hash of the record before                   CHAIN_BREAK, GENESIS_INVALID
 *     7. the first record names this chain                           CHAIN_IDENTITY
 *     8. the key was made for this, and was still valid              KEY_MISMATCH, KEY_RETIRED
 *
 * Rule 9 of the Python judge compares the columns of a store, which no file has.
 */

import { RESERVED_CHAINS, readKind } from "./block.ts";
import type { Crew } from "./crew.ts";
import { type Ed25519, type SignatureQuestion, isSignatureHex } from "./ed25519.ts";
import { BadInput, DuplicateKey, type Json, type JsonNumber, type JsonObject, Unreadable, encoder, equalJson, isObject } from "./json.ts";
import { isMlDsaSignatureHex, verifyMlDsa } from "./ml_dsa.ts";
import { examineProfile, readRecord } from "./record.ts";
import { HYBRID, type KeyRole, type PublicKey, type Ring } from "./ring.ts";
import type { Sealed } from "./sealed.ts";
import { cutText, isPrintable } from "./text.ts";
import { type CheckStatus, type Count, type Level, Tally, place, unrecordedKey } from "./verdict.ts";

/** How long a retired key was valid: up to the recorded count of each chain, or else only by its time. */
export interface Retirement {
  retiredAt: string | null;
  limits: ReadonlyMap<string, Count> | null;
}

/** The rules of one verification: known keys, level, and the history of keys, each by its 64 digits. */
export interface Rules {
  ring: Ring;
  ed25519: Ed25519;
  level: Level;
  requirePq: boolean;
  retired: ReadonlyMap<string, Retirement>;
  roles: ReadonlyMap<string, KeyRole>;
  /** The keys that an intact `keys` chain records. The tally names every other signer. Null demands no record. */
  recorded: ReadonlySet<string> | null;
  /** How many records each chain had when a key came into use by a rotation. */
  began: ReadonlyMap<string, ReadonlyMap<string, Count>>;
  /** Others that hash and check signatures beside this thread. */
  crew: Crew | null;
  /** Keys that came with the records, by fingerprint. No verdict rests on them. */
  along: ReadonlyMap<string, string>;
}

export function roleOf(rules: Rules, key: PublicKey): KeyRole | null {
  return rules.ring.roleOf(key) ?? rules.roles.get(key.ed25519) ?? null;
}

/** The rules with nothing but keys. */
export function plainRules(ring: Ring, ed25519: Ed25519, more: Partial<Rules> = {}): Rules {
  const nothing = { retired: new Map(), roles: new Map(), recorded: null, began: new Map(), crew: null, along: new Map() };
  return { ring, ed25519, level: "signature", requirePq: false, ...nothing, ...more };
}

/** Records that cannot be read, or have not their hash, after which a verifier of a file reads no further. */
export const UNREADABLE_MAX = 1000;
export const REST_UNREAD = `more than ${UNREADABLE_MAX} records cannot be read or have not their hash; the rest was not read`;
/** Longest text of a finding. It may quote a record, which must not flood the report. */
const WORDS_MAX = 400;

/** Shorten a text that may quote a record, and escape its unprintable characters. */
export function makePrintable(words: string): string {
  const short = words.length > WORDS_MAX ? `${cutText(words, WORDS_MAX)} …` : words;
  if (isPrintable(short)) return short;
  return [...short].map((one) => (isPrintable(one) ? one : `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)).join("");
}

/** A check, a code and words. */
type Problem = [string, string, string];

interface JudgeOptions {
  chain?: string | null;
  /** The sequence number of the first record; null takes it from that record. */
  start?: number | null;
  /** The hash that the first record must link to; null with `start` > 0 leaves that one link unchecked. */
  previous?: string | null;
  /** The identity that the block of record 0 must name; only its keys are compared. */
  identity?: Record<string, string>;
  source?: string | null;
  /** Whether each record needs the block that a ledger adds when it appends. */
  needsBlock?: boolean;
}

/** Judges the records of one chain, or of a part of it, in order. */
export class ChainJudge {
  readonly tally = new Tally();
  private readonly rules: Rules;
  private readonly chain: string | null;
  private readonly source: string | null;
  private readonly identity: Record<string, string>;
  private readonly needsBlock: boolean;
  private readonly beforeFirst: boolean;
  private expected: bigint | null;
  private previous: string | null;
  private isFirst = true;
  private unreadableCount = 0;
  private unparsedCount = 0;
  private validCount = 0;
  private readonly counts = { content: 0, signature: 0, links: 0, keys: 0 };
  private verified: PublicKey | null = null;

  constructor(rules: Rules, options: JudgeOptions = {}) {
    const { chain = null, start = 0, previous = null, identity = {}, source = null, needsBlock = false } = options;
    this.rules = rules;
    this.chain = chain;
    this.source = source;
    this.identity = identity;
    this.needsBlock = needsBlock;
    this.expected = start === null ? null : BigInt(start);
    this.beforeFirst = start === null;
    this.previous = previous;
  }

  /** The signatures that judging this record will ask about. */
  static *questions(rules: Rules, record: Sealed): Generator<SignatureQuestion> {
    if (rules.level !== "signature" || !record.signature) return;
    const known = rules.ring.lookup(record.signed_by);
    for (const key of known.length ? known : rules.ring.keys) {
      yield { publicHex: key.ed25519, message: record.hash, signature: record.signature };
    }
    const publicHex = rules.along.get(record.signed_by);
    if (!known.length && publicHex !== undefined) yield { publicHex, message: record.hash, signature: record.signature };
  }

  /** Judge the next record. Returns its content if it could be read. */
  judge(record: Sealed): JsonObject | null {
    this.tally.records++;
    let sequence = this.expected;
    let content: JsonObject | null = null;
    try {
      const reading = readRecord(record); // Rule 1.
      content = reading.content;
      if (this.expected === null) sequence = this.expected = BigInt((content.get("sequence") as JsonNumber).text);
      if (!reading.isCanonical) {
        this.add("canonical", "warning", "NOT_CANONICAL", "signed bytes are not in canonical form", sequence);
      }
      const problem = this.findProblem(record, content);
      if (problem !== null) {
        if (problem[1] === "HASH_MISMATCH") this.unreadableCount++;
        this.add(problem[0], "failed", problem[1], problem[2], sequence);
      } else if (reading.isValid) {
        this.validCount++;
      } else {
        const { profile, problem: invalid } = examineProfile(content);
        this.tally.profiles.set(profile, (this.tally.profiles.get(profile) ?? 0) + 1);
        if (invalid) this.add("profile", "warning", "NOT_VALID_CPS", `not valid by CPS: ${invalid}`, sequence);
      }
    } catch (error) {
      this.unreadableCount++;
      if (error instanceof DuplicateKey) {
        this.add("canonical", "failed", "DUPLICATE_KEY", error.message, sequence);
      } else if (error instanceof Unreadable) {
        this.unparsedCount++;
        this.add("schema", "failed", "SCHEMA_INVALID", error.message, sequence);
      } else {
        // A record that breaks the judge fails, and only it.
        this.unparsedCount++;
        this.add("schema", "failed", "SCHEMA_INVALID", `the record cannot be judged (${(error as Error).name})`, sequence);
        content = null;
      }
    }
    this.isFirst = false;
    this.previous = record.hash;
    this.expected = sequence === null ? null : sequence + 1n;
    return content;
  }

  /** The key that signed the record judged last, if its signature is valid. */
  get signer(): PublicKey | null {
    return this.verified;
  }

  /** Report that the next record is there and cannot be read. */
  unreadable(error: BadInput, where = ""): void {
    this.tally.records++;
    this.unreadableCount++;
    const check = error.code === "DUPLICATE_KEY" ? "canonical" : "schema";
    this.unparsedCount += Number(check === "schema");
    this.add(check, "failed", error.code, where + error.message, this.expected);
    this.expected = this.expected === null ? null : this.expected + 1n;
    this.previous = null;
    this.isFirst = false;
  }

  /** Whether so many records cannot be read that the caller must stop. Then a finding says so, in their place. */
  stopsReading(): boolean {
    if (this.unreadableCount <= UNREADABLE_MAX) return false;
    this.add("schema", "failed", "NOT_READ", REST_UNREAD, this.expected);
    return true;
  }

  /** Return the tally with the number of records on which each check was carried out. */
  finish(): Tally {
    const { tally, counts, rules } = this;
    const times = tally.records;
    if (times) {
      tally.countDone("schema", times);
      tally.countDone("canonical", times - this.unparsedCount);
      if (times === 1 && this.beforeFirst) {
        counts.links = 0;
        tally.skip("links", "a record on its own: its neighbours are not here", { matters: false });
      }
      for (const [check, count] of Object.entries(counts)) if (count) tally.countDone(check, count);
      if (this.validCount) tally.profiles.set("cps", (tally.profiles.get("cps") ?? 0) + this.validCount);
    }
    if (rules.level === "structural") {
      tally.skip("content", "structural level: stored hashes were trusted", { matters: true });
    }
    if (rules.level !== "signature") {
      tally.skip("signature", `${rules.level} level: signatures were not checked`, { matters: true });
    }
    return tally;
  }

  /** The first rule from 2 to 8 that the record breaks. */
  private findProblem(record: Sealed, content: JsonObject): Problem | null {
    const { counts, rules } = this;
    if (rules.level !== "structural") {
      counts.content++; // Rule 2.
      if (record.computedHash !== record.hash) {
        return ["content", "HASH_MISMATCH", "the content does not have the stored hash"];
      }
    }
    if (rules.level === "signature") {
      const problem = this.signatureProblem(record); // Rule 3.
      if (problem !== null) return problem;
    }
    const environment = (content.get("context") as JsonObject).get("environment");
    const found = isObject(environment) ? environment.get("aver") : undefined;
    const block = isObject(found) ? found : null;
    if (block === null) {
      if (this.needsBlock) {
        return ["identity", "CHAIN_IDENTITY", "not sealed by a ledger: it lacks the block that appending adds"];
      }
    } else if (this.needsBlock && !(block.has("at") && block.has("by") && block.has("kind"))) {
      return ["identity", "CHAIN_IDENTITY", "not sealed by a ledger: its block lacks what appending adds"];
    } else if (block.has("at") && block.get("at") !== record.signed_at) {
      return ["signature", "SEAL_MISMATCH", `signed_at says ${record.signed_at}, the record another time`]; // Rule 4.
    } else if (block.has("by") && block.get("by") !== record.signed_by) {
      return ["signature", "SEAL_MISMATCH", `signed_by says ${record.signed_by}, the record another signer`];
    }
    counts.links++;
    let problem = this.placeProblem(content); // Rules 5 and 6.
    if (problem === null && this.isFirst) problem = this.identityProblem(content, block); // Rule 7.
    if (problem === null && this.verified !== null) {
      counts.keys++; // Rule 8.
      problem = this.keyProblem(record, this.verified, content, block);
    }
    return problem;
  }

  /** Rule 3. Stores the key that verified: `signed_by` is only a hint which key to try. */
  private signatureProblem(record: Sealed): Problem | null {
    const { ring, ed25519, requirePq } = this.rules;
    this.verified = null;
    this.counts.signature++;
    if (!record.signature) return ["signature", "SIG_MISSING", "the record is not signed"];
    const known = ring.lookup(record.signed_by);
    for (const key of known.length ? known : ring.keys) {
      if (!ed25519.verify(key.ed25519, record.hash, record.signature)) continue;
      this.verified = key;
      if (!known.length) {
        const note = `signer '${record.signed_by}' is the known key ${key.fingerprint}`;
        this.tally.notes.set("signature", makePrintable(note));
      }
      // A ring with only the Ed25519 half may still tell of the other, by an export or the `keys` chain.
      const isPqSigner = key.mlDsa !== "" || roleOf(this.rules, key)?.algorithm === HYBRID;
      return record.signature_pq || isPqSigner || requirePq ? this.pqProblem(record, key, isPqSigner) : null;
    }
    if (known.length) return ["signature", "SIG_INVALID", `the signature is not ${record.signed_by}'s over this hash`];
    if (!isSignatureHex(record.signature)) {
      return ["signature", "SIG_INVALID", "the signature is not one that any key can have made"];
    }
    this.counts.signature--; // It was not checked after all.
    const words = `the key of signer ${record.signed_by || "unnamed"} is not known here`;
    this.add("signature", "not_checked", "UNKNOWN_SIGNER", words, this.expected);
    return this.pqProblem(record, null, false);
  }

  /** The second half of rule 3: the ML-DSA-65 signature, by the key whose Ed25519 signature is valid. */
  private pqProblem(record: Sealed, signer: PublicKey | null, isPqSigner: boolean): Problem | null {
    const name = record.signed_by || "the signer";
    const { requirePq } = this.rules;
    if (!record.signature_pq) {
      const words = "there is no post-quantum signature";
      if (requirePq) return ["signature_pq", "SIG_MISSING", `${words}, and one is required`];
      if (signer !== null && isPqSigner) {
        const more = `${words}, though ${name} signs with ML-DSA-65 too: it may have been stripped`;
        this.add("signature_pq", "warning", "SIG_MISSING", more, this.expected);
      }
    } else if (signer !== null && signer.mlDsa) {
      if (!verifyMlDsa(signer.mlDsa, encoder.encode(record.hash), record.signature_pq)) {
        return ["signature_pq", "SIG_INVALID", `the ML-DSA-65 signature is not ${name}'s over this hash`];
      }
      this.tally.countDone("signature_pq");
    } else if (requirePq) {
      return ["signature_pq", "SIG_INVALID", `no ML-DSA-65 key of ${name} is known`];
    } else if (!isMlDsaSignatureHex(record.signature_pq)) {
      return ["signature_pq", "SIG_INVALID", "the ML-DSA-65 signature is not one that any key can have made"];
    } else {
      this.add("signature_pq", "not_checked", "UNKNOWN_SIGNER", `no ML-DSA-65 key of ${name} is known here`, this.expected);
    }
    return null;
  }

  private placeProblem(content: JsonObject): Problem | null {
    const sequence = BigInt((content.get("sequence") as JsonNumber).text);
    const link = content.get("previous_hash") as string | null;
    if (sequence !== this.expected) {
      return ["links", "SEQUENCE_GAP", `expected sequence ${this.expected}, the record says ${sequence}`];
    }
    if (sequence === 0n) {
      this.tally.countDone("genesis");
      if (link !== null) return ["genesis", "GENESIS_INVALID", "the first record points at a predecessor"];
    } else if (link === null) {
      return ["genesis", "GENESIS_INVALID", `record ${sequence} claims to be the first`];
    } else if (this.previous === null) {
      this.tally.skip("links", `the record before sequence ${sequence} is not here`, { matters: false });
    } else if (link !== this.previous) {
      return ["links", "CHAIN_BREAK", "previous_hash is not the hash of the record before"];
    }
    return null;
  }

  private identityProblem(content: JsonObject, block: JsonObject | null): Problem | null {
    const names = Object.entries(this.identity);
    if (BigInt((content.get("sequence") as JsonNumber).text) !== 0n || !names.length) return null;
    const named = block?.get("chain");
    if (!isObject(named)) {
      if (this.needsBlock) return ["identity", "CHAIN_IDENTITY", "the first record does not say which chain it begins"];
      this.tally.skip("identity", "made by other software, which does not name its chain", { matters: false });
      return null;
    }
    this.tally.countDone("identity");
    for (const [key, value] of names) {
      if (named.get(key) !== value) return ["identity", "CHAIN_IDENTITY", `stored as ${key} '${value}', but says it is another`];
    }
    return null;
  }

  private keyProblem(record: Sealed, verified: PublicKey, content: JsonObject, block: JsonObject | null): Problem | null {
    const { rules } = this;
    const key = verified.ed25519;
    const signer = verified.fingerprint;
    const name = this.identity["name"] ?? this.chain;
    const sequence = BigInt((content.get("sequence") as JsonNumber).text);
    const began = rules.began.get(key);
    let isRecorded = rules.recorded === null || rules.recorded.has(key);
    // A key is recorded before it seals. If it is recorded after that, the `keys` chain was cut and written anew.
    if (began !== undefined && name !== null && sequence < BigInt(began.get(name) ?? 0)) isRecorded = false;
    if (!isRecorded) {
      // In a trace of the protocol, a participant's join may stand for the record. So each trace counts by itself.
      const unrecorded = unrecordedKey(key, name?.startsWith("protocol.") ? this.chain : null);
      if (!this.tally.unrecorded.has(unrecorded)) this.tally.unrecorded.set(unrecorded, place(this.chain, this.expected, this.source));
    }
    const role = roleOf(rules, verified);
    if (role !== null && (!role.maySeal || name === null || RESERVED_CHAINS.has(name))) {
      const problem = findMisuse(role, verified, content, name ?? (content.get("domain") as string));
      if (problem !== null) return ["keys", "KEY_MISMATCH", `${signer} is a key of ${role}: ${problem}`];
    }
    const retirement = rules.retired.get(key);
    if (retirement === undefined) return null;
    if (retirement.limits !== null && name !== null) {
      const limit = retirement.limits.get(name) ?? 0;
      return sequence >= BigInt(limit)
        ? ["keys", "KEY_RETIRED", `${signer} was retired when this chain had ${limit} records`]
        : null;
    }
    const at: Json | undefined = block?.has("at") ? block.get("at") : record.signed_at;
    if (retirement.retiredAt && !(typeof at === "string" && at <= retirement.retiredAt)) {
      return ["keys", "KEY_RETIRED", `${signer} was retired at ${retirement.retiredAt}`];
    }
    // The holder of the key could have written any time. This proves nothing, and the verdict must say so.
    const words = `how far the retired key ${signer} was good is not recorded here; only times were compared`;
    this.tally.skip("keys", words, { matters: true });
    return null;
  }

  private add(check: string, status: CheckStatus, code: string, words: string, sequence: bigint | null): void {
    this.tally.add({ check, status, code, words: makePrintable(words), place: place(this.chain, sequence, this.source) });
  }
}

/** Records of a batch under which it is not worth giving them to others. */
const SHARED_MIN = 8;

/** Ask about the signatures of records that are judged next, and hash the records meanwhile. */
export async function prepareRecords(rules: Rules, records: Sealed[]): Promise<void> {
  const questions = records.flatMap((record) => [...ChainJudge.questions(rules, record)]);
  if (rules.crew?.isBusy === false && records.length >= SHARED_MIN && rules.ed25519.usesPlatform) {
    const { hashes, answers } = await rules.crew.work(records.map((record) => record.canonical), questions);
    records.forEach((record, at) => record.adoptHash(hashes[at] as string));
    rules.ed25519.adopt(questions, answers);
    return;
  }
  const asked = rules.ed25519.prefetch(questions);
  for (const record of records) void record.computedHash;
  await asked;
}

/** Batches for each of a crew that are prepared ahead: those that it has, and one that the judge prepares meanwhile. */
const AHEAD_EACH = 5;

/**
 * Batches in their order, each prepared before it is given. With a crew, the next ones are prepared meanwhile: a few for
 * each of the crew, so that memory stays bounded.
 */
export async function* prepareBatches<Item>(
  rules: Rules,
  batches: AsyncIterable<Item[]>,
  pick: (items: Item[]) => Sealed[],
): AsyncGenerator<Item[]> {
  const ahead = AHEAD_EACH * (rules.crew?.size ?? 0);
  const waiting: { items: Item[]; ready: Promise<void> }[] = [];
  for await (const items of batches) {
    // Neither the crew nor this thread begins another batch in a rest, and nothing more is read.
    await rules.crew?.rested();
    const ready = prepareRecords(rules, pick(items));
    ready.catch(() => {}); // It is raised where it is awaited.
    waiting.push({ items, ready });
    while (waiting.length > ahead) {
      const next = waiting.shift() as (typeof waiting)[number];
      await next.ready;
      yield next.items;
    }
  }
  for (const { items, ready } of waiting) {
    await ready;
    yield items;
  }
}

/** The reason why a key with this role must not have sealed a record of this chain; null if it may. */
function findMisuse(role: KeyRole, key: PublicKey, content: JsonObject, chain: string): string | null {
  if (!RESERVED_CHAINS.has(chain)) return role.maySeal ? null : "it must not seal records";
  if (role.mayAttest) return null;
  if (chain === "keys" && role.maySeal && describesKey(content, role, key)) return null;
  return `only the ledger's key seals the chain ${chain}`;
}

/** Whether a record is about the use of this very key, or about an earlier key of the same identity. */
function describesKey(content: JsonObject, role: KeyRole, key: PublicKey): boolean {
  const result = (content.get("outcome") as JsonObject).get("result");
  const kind = readKind(content);
  if (!["key.create", "key.rotate", "key.retire"].includes(kind) || !isObject(result)) return false;
  const isOwn = result.get("public_key") === key.ed25519 || kind !== "key.create";
  return isOwn && equalJson(result.get("identity"), role.identity) && equalJson(result.get("purpose"), role.purpose);
}
