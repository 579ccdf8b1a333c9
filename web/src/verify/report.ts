/**
 * Reports: one HTML page that carries its records as a bundle, and a signed statement about itself. The twin of
 * `aver.sessions.report_file` and `aver.sessions.report_verdict`, which describe the format.
 */

import { checkSigners, orderHeads } from "./bundle/head.ts";
import { examineBundle } from "./bundle/judge.ts";
import { type ByteSource, FileMap, MemorySource } from "./bytes.ts";
import { compactJson } from "./canonical.ts";
import { HEX64, decodeBase64, startSha256 } from "./digest.ts";
import { orderKeys, readExactly } from "./documents.ts";
import type { Examiner } from "./examiner.ts";
import { BadInput, type Json, type JsonObject, isInteger, isObject } from "./json.ts";
import { NotJudged, type VerifyOptions } from "./options.ts";
import { type Statement, readStatement, statementFields } from "./statement.ts";
import { CHECKS, Tally, type Verdict, conclude, place, toCount } from "./verdict.ts";

const CHECK = "report";
const STATEMENT = "statement";
const PAGE = place(null, null, "page");
const STATEMENT_PLACE = place(null, null, STATEMENT);

const FILE_OPENING = '<script type="application/vnd.aver.file" data-name="';
const STATEMENT_OPENING = '<script type="application/vnd.aver.statement" id="aver-report">';
const CLOSING = "</script>";
/** Largest report that is judged: its text has to fit into one string. */
const REPORT_MAX = 512 * 1024 * 1024 - 1024;
const FILES_MAX = 100_000;
const STATEMENT_MAX = 16 * 1024 * 1024;
const COUNT_END = 2n ** 63n;
const FILE_NAME = /^(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,199}|blobs\/[0-9a-f]{64})$/;
const NAME_MAX = 210;
const CONTENT_KEYS = ["v", "subject", "since", "until", "heads", "verdict", "made_at", "sha256"];
const VERDICT_KEYS = ["status", "level", "records", "chains"];

interface ReportParts {
  files: Map<string, ByteSource>;
  statement: Uint8Array;
  sha256: string;
}

/** The verdict on a report. */
export async function judgeReport(
  name: string,
  source: ByteSource,
  options: VerifyOptions,
  examiners: Examiner[],
): Promise<Verdict> {
  if (source.size > REPORT_MAX) throw new NotJudged(`${name} is too large for this verifier; run: aver verify ${name}`);
  let tally = new Tally();
  let parts: ReportParts | null = null;
  try {
    parts = splitReport(await source.read(0, source.size));
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    tally.fail(CHECK, "SCHEMA_INVALID", error.message, PAGE);
  }
  if (parts !== null) tally = await judgeParts(name, parts, options, examiners);
  return conclude(name, tally, "signature", [...CHECKS, "index", CHECK]);
}

/** Take a report apart. Raises `BadInput` if its blocks are not of their form. */
export function splitReport(data: Uint8Array): ReportParts {
  // One unit for each byte, so that a place in the text is a place in the bytes.
  const text = new TextDecoder("latin1").decode(data);
  const first = text.indexOf(STATEMENT_OPENING);
  if (first < 0 || text.indexOf(STATEMENT_OPENING, first + 1) >= 0) {
    throw new BadInput("a report has one block for its statement");
  }
  const start = first + STATEMENT_OPENING.length;
  const end = text.indexOf(CLOSING, start);
  if (end < 0 || end - start > STATEMENT_MAX) throw new BadInput("the block of the statement does not end");
  const hash = startSha256();
  hash.update(data.subarray(0, start));
  hash.update(data.subarray(end));
  const files = new Map<string, ByteSource>();
  for (let at = text.indexOf(FILE_OPENING); at >= 0; at = text.indexOf(FILE_OPENING, at)) {
    const nameStart = at + FILE_OPENING.length;
    const nameEnd = text.indexOf('">', nameStart);
    const name = nameEnd < 0 || nameEnd - nameStart > NAME_MAX ? "" : text.slice(nameStart, nameEnd);
    const bodyEnd = text.indexOf(CLOSING, nameEnd);
    const body = bodyEnd < 0 ? "" : text.slice(nameEnd + 2, bodyEnd);
    if (!FILE_NAME.test(name) || bodyEnd < 0 || /[^A-Za-z0-9+/=]/.test(body)) {
      throw new BadInput(`the block of a file at byte ${at} is not of its form`);
    }
    if (name === "blobs") throw new BadInput("the report has a file in the place of the directory blobs");
    if (files.has(name) || files.size >= FILES_MAX) throw new BadInput(`the report has the file ${name} twice, or too many files`);
    const bytes = decodeBase64(body);
    if (bytes === null) throw new BadInput(`the block of the file ${name} is not base64`);
    files.set(name, new MemorySource(bytes));
    at = bodyEnd + CLOSING.length;
  }
  return { files, statement: data.subarray(start, end), sha256: hash.hex() };
}

/** Judge the bundle, then the page and the statement about it. */
async function judgeParts(
  name: string,
  parts: ReportParts,
  options: VerifyOptions,
  examiners: Examiner[],
): Promise<Tally> {
  const { tally, heads, rules, keyHistory } = await examineBundle(new FileMap(name, parts.files), options, examiners);
  const failed = tally.hasFailed();
  const { records, chains } = tally;
  tally.countDone(CHECK);
  if (parts.statement.every((byte) => byte === 0x20 || (byte >= 9 && byte <= 13))) {
    tally.fail(CHECK, "SIG_MISSING", "the report is not signed", STATEMENT_PLACE);
    return tally;
  }
  let statement: Statement;
  try {
    const dump = (found: Statement) => dumpBlock(found);
    // Before, the heads had the order of the bundle's chains.
    statement = readExactly(parts.statement, "the statement's block", readContent, dump, (found) => dumpBlock(found, heads.keys()));
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    tally.fail(CHECK, error.code, error.message, STATEMENT_PLACE);
    return tally;
  }
  const { content } = statement;
  const text = (key: string) => content.get(key) as string;
  if (text("sha256") !== parts.sha256) {
    tally.fail(CHECK, "ARTIFACT_HASH_MISMATCH", `the file has the digest ${parts.sha256}; its statement says another`, PAGE);
  }
  const stated = content.get("heads") as JsonObject;
  const statedHeads = [...stated].map(([chain, head]) => ({ chain, count: toCount(countOf(head, "count") as bigint) }));
  checkSigners({ statement, at: text("made_at"), heads: statedHeads }, rules, tally, keyHistory, { check: CHECK, name: STATEMENT });
  for (const [chain, head] of stated) {
    const actual = heads.get(chain);
    if (actual === undefined) {
      tally.fail(CHECK, "CHAIN_MISSING", "the statement lists this chain, and it is not in the report", place(chain));
    } else if (countOf(head, "count") !== BigInt(actual.count) || (head as JsonObject).get("hash") !== actual.hash) {
      tally.fail(CHECK, "HEAD_MISMATCH", `the statement says another end; ${actual.count} records are here`, place(chain));
    }
  }
  for (const chain of heads.keys()) {
    if (!stated.has(chain)) tally.fail(CHECK, "HEAD_MISMATCH", "the statement does not list this chain", place(chain));
  }
  const verdict = content.get("verdict") as JsonObject;
  const status = verdict.get("status") as string;
  if (countOf(verdict, "records") !== BigInt(records) || countOf(verdict, "chains") !== BigInt(chains)) {
    const words = `the statement counts other records; ${records} in ${chains} chains are here`;
    tally.fail(CHECK, "CLAIM_UNPROVEN", words, STATEMENT_PLACE);
  } else if (failed && status !== "failed") {
    tally.fail(CHECK, "CLAIM_UNPROVEN", `the statement says ${status}, and the records fail`, STATEMENT_PLACE);
  }
  tally.notes.set(CHECK, `${status} as signed at ${text("made_at")}`);
  return tally;
}

/** The text of the statement's block. A browser would end it at `</SCRIPT >`: so it has no `<`. */
function dumpBlock(statement: Statement, chains?: Iterable<string>): string {
  const content = orderKeys(statement.content, CONTENT_KEYS);
  content.set("verdict", orderKeys(content.get("verdict") as JsonObject, VERDICT_KEYS));
  content.set("heads", orderHeads(content.get("heads"), chains));
  return compactJson(statementFields({ ...statement, content })).replaceAll("<", "\\u003c");
}

/** Read a statement. Raises `BadInput` unless it states exactly what a report states. */
function readContent(data: Json): Statement {
  const statement = readStatement(data);
  const { purpose, content } = statement;
  const require = (holds: boolean, words: string) => {
    if (!holds) throw new BadInput(words);
  };
  require(purpose === "report", "the statement is not for a report");
  const version = content.get("v");
  require(hasExactly(content, CONTENT_KEYS), `the statement does not state exactly ${CONTENT_KEYS.join(", ")}`);
  require(isInteger(version) && version.text === "1", "the statement is of another version");
  const texts = ["subject", "made_at", "sha256"].map((key) => content.get(key));
  require(texts.every((value) => typeof value === "string"), "the statement does not name its subject and its time");
  require(HEX64.test(content.get("sha256") as string), "the statement does not name the digest of the page");
  for (const key of ["since", "until"]) {
    const value = content.get(key);
    require(value === null || typeof value === "string", `${key} of the statement is a time or null`);
  }
  const verdict = content.get("verdict");
  require(isObject(verdict) && hasExactly(verdict, VERDICT_KEYS), "the verdict of the statement is not of its form");
  for (const key of ["status", "level"]) {
    require(typeof (verdict as JsonObject).get(key) === "string", "the verdict of the statement is not of its form");
  }
  for (const key of ["records", "chains"]) {
    require(countOf(verdict, key) !== null, "the verdict of the statement is not of its form");
  }
  const heads = content.get("heads");
  require(isObject(heads) && [...heads.values()].every(isHead), "the heads of the statement are not of their form");
  return statement;
}

function hasExactly(object: JsonObject, keys: string[]): boolean {
  return object.size === keys.length && keys.every((key) => object.has(key));
}

/** A count of records in an object; null for any other value. */
function countOf(object: Json | undefined, key: string): bigint | null {
  const value = isObject(object) ? object.get(key) : undefined;
  if (!isInteger(value)) return null;
  const count = BigInt(value.text);
  return count >= 0n && count < COUNT_END ? count : null;
}

function isHead(value: Json): boolean {
  if (!isObject(value) || !hasExactly(value, ["count", "hash"])) return false;
  const count = countOf(value, "count");
  const hash = value.get("hash");
  return count !== null && (count === 0n ? hash === null : typeof hash === "string" && HEX64.test(hash));
}
