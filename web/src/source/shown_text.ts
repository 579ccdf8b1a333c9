/**
 * The text that a person sees before answering a request with a passkey. Its digest is `shown` in the signed statement.
 *
 * All text from the request comes after a bar (`|`), so it cannot pass for Aver's own. A `:` in place of the bar continues
 * a long line. Nothing is left out: parts that are kept apart as blobs are fetched, and held to their digests.
 */

import { at } from "../verify/block.ts";
import { plainJson } from "../verify/canonical.ts";
import { sha256Hex } from "../verify/digest.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, decodeUtf8, isObject, readJson } from "../verify/json.ts";
import type { Choice, OpenRequest } from "./passkey.ts";

const LINE_WIDTH = 300;
const DEPTH_MAX = 20;
/** Characters that hide, move or imitate others: as `aver.text.escape_invisible` knows them. */
const HIDDEN = new RegExp(
  [
    "\\p{C}",
    "(?! )\\p{Z}",
    // Letters that run from right to left, fillers and variation selectors, and marks piled upon marks.
    "[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]",
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]",
    "(?<=\\p{M}{2})\\p{M}",
  ].join("|"),
  "gu",
);

export type FetchBlob = (digest: string) => Promise<Uint8Array>;

/** Build the text. Raises `BadInput` if the request is not about the action that its digest names. */
export async function shownText(request: OpenRequest, fetchBlob: FetchBlob, given: Choice & { comment?: string } = {}): Promise<string> {
  const { content } = request;
  const action = await readPart(content.get("action"), fetchBlob);
  const beside = await readPart(content.get("beside"), fetchBlob);
  const diff = await readDiff(content.get("diff"), fetchBlob);
  if (!isObject(action)) throw new BadInput("the request holds no action");
  const { uses = 1, scope = request.scope, comment = "" } = given;
  const risk = at(content, "risk", "score");
  const lines = [
    `request ${request.id}`,
    `  opened ${request.opened}, expires ${request.expires} (UTC)`,
    ...renderLevels(content.get("levels")),
    `  risk ${risk instanceof JsonNumber ? risk.text : "not estimated"}`,
    "why a person is asked",
    ...texts(content.get("reasons")).flatMap(quote),
    ...texts(content.get("rules")).flatMap((rule) => quote(`rule ${rule}`)),
    "the action",
    ...[...action].flatMap(([name, value]) => renderField(name, value, 0)),
    ...(isObject(beside) ? ["what its digest leaves out", ...[...beside].flatMap(([name, value]) => (name === "description" && action.has(name) ? [] : renderField(name, value, 0)))] : []),
    ...(diff === null ? [] : ["its diff", ...quote(diff.replace(/\n$/, ""))]),
    ...(comment ? ["your reason", ...quote(comment)] : []),
    "what an answer is good for",
    `  ledger ${request.ledger}, tenant ${request.tenant}`,
    `  request ${request.id}`,
    ...quote(`scope: ${scope}`),
    `  ${uses === 1 ? "once" : `${uses} times`}, until ${request.expires} (UTC)`,
    `digest ${request.digest}`,
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

async function fetchWhole(digest: Json | undefined, fetchBlob: FetchBlob): Promise<string> {
  if (typeof digest !== "string") throw new BadInput("the request names a blob without its digest");
  const bytes = await fetchBlob(digest);
  if (sha256Hex(bytes) !== digest) throw new BadInput("a blob of the request has other bytes");
  return decodeUtf8(bytes);
}

function isBlob(value: Json | undefined): value is JsonObject {
  return isObject(value) && value.size === 1 && value.has("blob");
}

async function readPart(value: Json | undefined, fetchBlob: FetchBlob): Promise<Json | undefined> {
  return isBlob(value) ? readJson(await fetchWhole(at(value, "blob", "digest"), fetchBlob)) : value;
}

async function readDiff(value: Json | undefined, fetchBlob: FetchBlob): Promise<string | null> {
  if (isBlob(value)) return fetchWhole(at(value, "blob", "digest"), fetchBlob);
  return typeof value === "string" ? value : null;
}

function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map((item) => (typeof item === "string" ? item : plainJson(item))) : [];
}

function renderLevels(levels: Json | undefined): string[] {
  return (Array.isArray(levels) ? levels : []).map((level, index) => {
    const after = plainJson(at(level, "after") ?? null);
    const since = after === "0" ? "" : `, after ${after} seconds`;
    return `  level ${index + 1}${since}: ${plainJson(at(level, "quorum") ?? null)} of ${texts(at(level, "approvers")).join(", ") || "no enrolled person"}`;
  });
}

/** A name and a value: a short value beside the name, several lines below it, nested values indented. */
function renderField(name: string, value: Json, depth: number): string[] {
  const before = "  ".repeat(depth) + name;
  if (typeof value === "string") {
    if (value.includes("\n")) {
      return [...quote(`${before}:`), ...value.split("\n").flatMap((line) => quote("  ".repeat(depth + 1) + line))];
    }
    return quote(`${before}: ${needsQuotes(value) ? JSON.stringify(value) : value}`);
  }
  if (isObject(value) && value.size && depth < DEPTH_MAX) {
    return [...quote(`${before}:`), ...[...value].flatMap(([inner, item]) => renderField(inner, item, depth + 1))];
  }
  if (Array.isArray(value) && value.length && depth < DEPTH_MAX) {
    return value.flatMap((item, index) => renderField(`${name}[${index}]`, item, depth));
  }
  return quote(`${before}: ${plainJson(value)}`);
}

/** Whether a text looks like another JSON value, or has white space around it that nobody would see. */
function needsQuotes(text: string): boolean {
  if (text === "" || text !== text.trim()) return true;
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}

/** Text from outside, each line behind a bar, with the characters written out that nobody would see. */
function quote(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    // Escaped before it is cut, so that the width counts what a person sees.
    const escaped = line.replace(HIDDEN, (one) => `<U+${(one.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}>`);
    const characters = [...escaped];
    const parts = [`  | ${characters.slice(0, LINE_WIDTH).join("")}`];
    for (let start = LINE_WIDTH; start < characters.length; start += LINE_WIDTH) parts.push(`  : ${characters.slice(start, start + LINE_WIDTH).join("")}`);
    return parts;
  });
}
