/** Values in messages are written as Python writes them: `ascii` and `str` of the same JSON. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "../src/verify/json.ts";
import { pythonText, show } from "../src/verify/text.ts";

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
