// References to records, run by their source: node --test web/tests

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readJson } from "../src/verify/json.ts";
import { parseUri, resolveFragment, splitReferences } from "../src/verify/uri.ts";

const text = readFileSync(new URL("../../tests/conformance/corpus/uri.json", import.meta.url), "utf8");
// Numbers as they are written: JavaScript would round them.
const corpus = JSON.parse(text, (_, value, { source }) => (typeof value === "number" ? source : value));
const HASH = "8c71e187dfbffca067265f576d9fb72ee8a223c3dff801dd7c5dd8fcb915f2cd";

test("the corpus of URIs is read as Python reads it", () => {
  for (const { uri, expected } of corpus.valid) {
    const { chain, hash, sequence, id, fragment } = parseUri(uri);
    assert.deepEqual(
      { chain, hash, sequence, id, fragment },
      { chain: expected.chain, hash: expected.hash_value, sequence: expected.sequence, id: expected.id, fragment: expected.fragment },
      uri,
    );
  }
  for (const { uri } of corpus.invalid) assert.throws(() => parseUri(uri), /not a capsule URI/, uri);
});

test("a fragment leads to its value", () => {
  const content = readJson('{"outcome": {"result": {"a/b": ["x", "y"], "~": null}}, "reasoning": {"é": 1}}');
  assert.equal(resolveFragment(content, "outcome/result/a~1b/1"), "y");
  assert.equal(resolveFragment(content, "outcome/result/~0"), null);
  assert.equal(resolveFragment(content, "reasoning/%C3%A9").text, "1");
  for (const nothing of ["outcome/result/a~1b/2", "outcome/result/a~1b/01", "outcome/x/y", "other", "outcome/..", "reasoning/é/a"]) {
    assert.equal(resolveFragment(content, nothing), undefined, nothing);
  }
});

test("only URIs that name a record are links", () => {
  const parts = (text) => splitReferences(text).filter((_, at) => at % 2);
  assert.deepEqual(parts(`see capsule://gate.s1/3, (capsule://sha3_${HASH}#reasoning/analysis).`), ["capsule://gate.s1/3", `capsule://sha3_${HASH}#reasoning/analysis`]);
  assert.deepEqual(parts("capsule://0f8fad5b-d9cb-469f-a165-70867728950e."), ["capsule://0f8fad5b-d9cb-469f-a165-70867728950e"]);
  for (const none of ["capsule://7", "capsule:///gate.s1/3", "capsule://gate.s1/03", "capsule://gate.s1/3x", "capsule://sha3_ABC", "https://gate.s1/3"]) {
    assert.deepEqual(parts(none), [], none);
  }
  for (const text of ["", "plain", "capsule://gate.s1/3", "a capsule://x/9#bogus b"]) assert.equal(splitReferences(text).join(""), text);
});
