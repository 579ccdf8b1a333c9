// Lists of keys as the page reads them: node --test web/tests

import assert from "node:assert/strict";
import { test } from "node:test";
import { BadInput } from "../src/verify/json.ts";
import { readKeyList } from "../src/verify/key_list.ts";

const KEY = "17ffad8068dc0de9935d36636f3ad1b5de6de3413b12388e453b05f2a4c1d3db";
const ENTRY = {
  ...{ identity: "ledger", purpose: "seal", epoch: 0, created_at: "2026-05-31T09:00:00+00:00", retired_at: "2026-06-01T09:00:00+00:00" },
  ...{ statement: null, public_key: KEY, public_key_pq: "", algorithm: "ed25519", fingerprint: KEY.slice(0, 16), status: "retired" },
};
const read = (...keys) => readKeyList(JSON.stringify({ format: "aver-public-keys", version: 1, keys }));

test("an entry keeps what its owner published", () => {
  assert.equal(read(ENTRY)[0].entry.get("status"), "retired");
});

test("an entry whose identity is no text is refused, and is no bare key", () => {
  for (const identity of [7, null, ["ledger"], { is: "ledger" }, true]) assert.throws(() => read({ ...ENTRY, identity }), BadInput);
});

test("a server lists keys of which it knows no owner", () => {
  const [{ key, entry }] = read({ ...ENTRY, identity: null, purpose: null, origin: "known" });
  assert.deepEqual([key.ed25519, entry], [KEY, null]);
});
