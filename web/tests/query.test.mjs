// The language of a search, by the table that the tests of `aver search` read, too: node --test web/tests

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BadInput } from "../src/verify/json.ts";
import { cutExcerpt, makeFilter, parseQuery } from "../src/worker/query.ts";

const table = JSON.parse(readFileSync(new URL("../../tests/explorer/search_queries.json", import.meta.url), "utf8"));
const NOW = Date.UTC(2026, 4, 31, 9);

const write = ({ text, isPrefix }) => `${text.includes(" ") ? `"${text}"` : text}${isPrefix ? "*" : ""}`;

for (const { query, ago, since, ...lists } of table.understood) {
  test(`understood: ${query}`, () => {
    const found = parseQuery(query, NOW);
    for (const name of ["words", "path"]) assert.deepEqual(found[name].map(write), lists[name] ?? [], name);
    for (const name of ["tool", "kind", "outcome", "ignored"]) assert.deepEqual(found[name], lists[name] ?? [], name);
    assert.equal(found.since, ago === undefined ? (since ?? null) : new Date(NOW - ago * 1000).toISOString().replace(".000Z", "+00:00"));
  });
}

for (const { query, times = 1, words } of table.refused) {
  test(`refused: ${query}`, () => {
    assert.throws(() => parseQuery(query.repeat(times)), (error) => error instanceof BadInput && error.message === words);
  });
}

test("half a character is no text", () => {
  assert.throws(() => parseQuery("half\ud800"), /characters that no text has/);
});

test("the excerpt is of the first word, or else of the first path", () => {
  const texts = { text: `${"x ".repeat(50)}Make totals round\nhalf up`, paths: "/w/shop/sum.py" };
  assert.deepEqual(cutExcerpt(texts, parseQuery('"round half" up')), [`… ${"x ".repeat(24)}Make totals `, "round half", " up"]);
  assert.deepEqual(cutExcerpt(texts, parseQuery("path:sum.py")), ["/w/shop/", "sum.py", ""]);
  assert.equal(cutExcerpt(texts, parseQuery("kind:call")), null);
});

test("words are whole, phrases side by side, and a beginning begins a word", () => {
  const fits = (query, text) => makeFilter(parseQuery(query)).fitsTexts({ text, paths: "" });
  assert.ok(fits("login", "a Login b") && !fits("login", "logins"));
  assert.ok(fits('"two  words"', "two words") && !fits('"two words"', "two other words"));
  assert.ok(fits("pre*", "prefix") && !fits("pre*", "a supre"));
  assert.ok(fits("http://x", "see http://x now"));
});
