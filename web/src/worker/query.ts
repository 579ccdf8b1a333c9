/**
 * The language of a search, the twin of `aver.explorer.index.query`; docs/search.md explains it. Words, "phrases", `begin*`,
 * and `tool: kind: outcome: path: since:`. All must hold; of several values of one condition, one.
 *
 * Words are those of SQLite's tokenizer: letters and digits, in lower case, without a mark upon a Latin letter.
 */

import type { Step } from "../sessions/step.ts";
import type { RecordTexts } from "../sessions/texts.ts";
import { asText, toUtc } from "../sessions/values.ts";
import { BadInput } from "../verify/json.ts";
import { codePoints } from "../verify/text.ts";
import type { Excerpt } from "./protocol.ts";

/** Longest query, in characters. */
const QUERY_MAX = 1000;
/** The most words, phrases and conditions of a query. */
const TERMS_MAX = 32;
/** Characters of the text around a hit, to each side. */
const AROUND = 60;
/** Words that people use for an outcome, and the outcome that records have. */
const OUTCOME_WORDS = new Map([["denied", "blocked"], ["refused", "blocked"], ["failed", "failure"], ["ok", "success"], ["done", "success"]]);

const TERM = /(?:(?<name>tool|kind|outcome|path|since):)?(?:"(?<phrase>[^"]*)(?:"|$)|(?<word>[^\s"]+))(?<star>\*)?/gu;
const LETTER = "[\\p{L}\\p{N}\\p{Co}]";
const WORDS = new RegExp(`${LETTER}+`, "gu");
const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** A word or phrase that must occur; with `isPrefix`, its last word may go on. */
interface Term {
  text: string;
  isPrefix: boolean;
}

/** A query that was read. */
interface Query {
  words: Term[];
  path: Term[];
  tool: string[];
  kind: string[];
  outcome: string[];
  since: string | null;
  /** Words that have nothing to search for, such as `->`. */
  ignored: string[];
}

/** Read a query. Raises `BadInput` for one that is empty, too long, or names no time after `since:`. */
export function parseQuery(given: string, now = Date.now()): Query {
  if (codePoints(given) > QUERY_MAX) throw new BadInput(`a query has at most ${QUERY_MAX} characters (search for fewer words)`);
  if (given.includes("\0") || !given.isWellFormed()) throw new BadInput("a query is text, and this one has characters that no text has");
  const query: Query = { words: [], path: [], tool: [], kind: [], outcome: [], since: null, ignored: [] };
  let count = 0;
  for (const [whole, name = "words", phrase, word, star] of given.matchAll(TERM)) {
    if (++count > TERMS_MAX) throw new BadInput(`a query has at most ${TERMS_MAX} words and conditions (search for fewer words)`);
    const text = (phrase ?? (word as string).replace(/\*$/, "")).trim().replace(/\s+/g, " ");
    const isText = name === "words" || name === "path";
    if (isText ? !/[\p{L}\p{N}]/u.test(text) : !text) query.ignored.push(whole);
    else if (isText) query[name].push({ text, isPrefix: star !== undefined || word?.endsWith("*") === true });
    else if (name === "since") {
      const since = parseMoment(text, now);
      if (query.since === null || since > query.since) query.since = since;
    } else {
      const value = text.toLowerCase();
      query[name as "tool"].push(name === "outcome" ? (OUTCOME_WORDS.get(value) ?? value) : value);
    }
  }
  if (count === query.ignored.length) throw new BadInput('the query has no word to search for (try: aver search "permission denied" tool:Bash)');
  return query;
}

/** A time that a person typed, such as `2026-05-31` or `2h` for two hours ago, in the form that records use. */
function parseMoment(given: string, now: number): string {
  const [, number, unit = ""] = /^([0-9]{1,6})([smhdw])$/.exec(given) ?? [];
  const moment = number === undefined ? given : new Date(now - Number(number) * 1000 * (UNIT_SECONDS[unit] ?? 0)).toISOString();
  const found = toUtc(moment);
  if (found !== null) return found;
  const quote = given.includes("'") ? '"' : "'";
  throw new BadInput(`${quote}${[...given].slice(0, 80).join("").replaceAll("\\", "\\\\")}${quote} is not a time: use 2026-05-31, 2026-05-31T09:00 or 2h (s, m, h, d, w) ago`);
}

/** Whether a record fits: the conditions by its step, the words by its texts. Texts are read only if the conditions hold. */
export function makeFilter(query: Query): { fitsStep: (step: Step) => boolean; fitsTexts: (texts: RecordTexts) => boolean } {
  const [words, paths] = [query.words, query.path].map((terms) => terms.map((term) => patternOf({ ...term, text: fold(term.text) }, "u"))) as [RegExp[], RegExp[]];
  const isAny = (values: string[], fits: (value: string) => boolean) => !values.length || values.some(fits);
  return {
    fitsStep: (step) => {
      const kind = step.kind || step.what;
      const outcome = (step.status || step.addition?.status || "").toLowerCase();
      const names = [step.toolName, ...step.calls.map((call) => asText(call.get("tool")))].map((name) => name.toLowerCase());
      return (
        isAny(query.tool, (value) => names.includes(value)) &&
        isAny(query.kind, (value) => kind === value || kind.startsWith(`${value}.`)) &&
        isAny(query.outcome, (value) => outcome === value) &&
        (query.since === null || secondsOf(step.at ?? toUtc(step.signedAt)) >= secondsOf(query.since))
      );
    },
    fitsTexts: ({ text, paths: named }) => {
      const folded = words.length ? fold(text) : "";
      return words.every((word) => word.test(folded)) && (!paths.length || paths.some((path) => path.test(fold(named))));
    },
  };
}

function secondsOf(moment: string | null): number {
  return moment === null ? 0 : Math.max(0, Math.floor(Date.parse(moment) / 1000));
}

/** A text as the index compares it: in lower case; a Latin letter loses its mark, and every mark that stands alone goes. */
function fold(text: string): string {
  const lower = text.toLowerCase();
  if (/^[\0-\x7f]*$/.test(lower)) return lower;
  const plain = lower.replace(/[^\0-\x7f]/gu, (letter) => /^([a-z])[\u0300-\u0331]$/.exec(letter.normalize("NFD"))?.[1] ?? letter);
  return plain.replace(/[\u0300-\u0331]/g, "").replaceAll("ς", "σ");
}

/** Finds the words of a term side by side, with anything but letters and digits between them. */
function patternOf({ text, isPrefix }: Term, flags: string): RegExp {
  const words = (text.match(WORDS) ?? []).join(`${LETTER.replace("[", "[^")}+`);
  return new RegExp(`(?<!${LETTER})${words}${isPrefix ? "" : `(?!${LETTER})`}`, flags);
}

/** A few words around the first word of a query, or else around its first path; null where they do not stand there so. */
export function cutExcerpt(texts: RecordTexts, { words: [word], path: [path] }: Query): Excerpt | null {
  for (const [term, text] of [[word, texts.text], [path, texts.paths]] as const) {
    const found = term === undefined ? null : patternOf(term, "iu").exec(text);
    if (found === null) continue;
    const [before, after] = [text.slice(0, found.index), text.slice(found.index + found[0].length)];
    // A cut may go through a character that takes two units.
    const parts = [before.slice(-AROUND), found[0], after.slice(0, AROUND)].map((part) => part.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "").replace(/\s+/g, " "));
    return [`${before.length > AROUND ? "… " : ""}${parts[0]}`, parts[1] as string, `${parts[2]}${after.length > AROUND ? " …" : ""}`];
  }
  return null;
}
