/** Values in messages are written as Python writes them, and no text is cut inside of a character. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { shortenArguments } from "../src/sessions/labels.ts";
import { shownText } from "../src/source/shown_text.ts";
import { readJson } from "../src/verify/json.ts";
import { Sealed } from "../src/verify/sealed.ts";
import { pythonText, show } from "../src/verify/text.ts";
import { cutExcerpt, parseQuery } from "../src/worker/query.ts";
import { describeRow } from "../src/worker/rows.ts";

/** JSON, what Python's `ascii` writes for it, and what `str` writes. */
const CASES = [
  ['"claude-code.5d2e"', "'claude-code.5d2e'", "claude-code.5d2e"],
  ['{"id": [1, null, true, false, 2.5, 1e2]}', "{'id': [1, None, True, False, 2.5, 100.0]}", "{'id': [1, None, True, False, 2.5, 100.0]}"],
  ["{}", "{}", "{}"],
  ['"it\'s"', '"it\'s"', "it's"],
  ['["it\'s", "\\"it\'s\\""]', `["it's", '"it\\'s"']`, `["it's", '"it\\'s"']`],
  ['["é\\n\\u0007\\u202e\\\\😀\\ud800"]', "['\\xe9\\n\\x07\\u202e\\\\\\U0001f600\\ud800']", "['é\\n\\x07\\u202e\\\\😀\\ud800']"],
  ["null", "None", "None"],
];

for (const [json, ascii, text] of CASES) {
  test(`as Python writes ${json}`, () => {
    assert.equal(show(readJson(json)), ascii);
    assert.equal(pythonText(readJson(json)), text);
  });
}

test("a long value is cut", () => {
  assert.equal(show(readJson(`{"id": "${"x".repeat(200)}"}`)).length, 80);
});

const SMILE = "😀";
/** A text in which each cut at an odd number of units goes through a character. */
const SMILES = `a${SMILE.repeat(120_000)}`;

test("no cut goes through a character that takes two units", async () => {
  const canonical = JSON.stringify({ type: "tool", outcome: { status: "success", summary: SMILES.slice(0, 2001) }, trigger: { request: "x" } });
  const row = describeRow(new Sealed(canonical, { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" }), 0);
  assert.ok(row.summary.isWellFormed() && row.summary.length > 240);
  const [before, , after] = cutExcerpt({ text: `${SMILES} word ${SMILES}`, paths: "" }, parseQuery("word"));
  assert.ok(before.isWellFormed() && after.isWellFormed());
  assert.ok(`${shortenArguments(readJson(JSON.stringify({ query: SMILES })))}`.isWellFormed());
});

test("the text that a passkey signs breaks lines where Python does", async () => {
  const content = readJson(JSON.stringify({ action: { line: SMILE.repeat(350) }, reasons: [], rules: [], levels: [], risk: {} }));
  const text = await shownText({ id: "1", opened: "", expires: "", ledger: "l", tenant: "t", scope: "s", digest: "d", content }, async () => new Uint8Array());
  assert.ok(text.includes(`  | line: ${SMILE.repeat(294)}\n  : ${SMILE.repeat(56)}\n`));
});
