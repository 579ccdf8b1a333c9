// The conformance corpus, run by the shipped verifier: node --test web/tests

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as verifier from "../../src/aver/explorer/page/verify.mjs";

const load = (name) => JSON.parse(readFileSync(new URL(`../../tests/conformance/corpus/${name}.json`, import.meta.url), "utf8"));
const ed25519 = await verifier.openEd25519();

function bytesOf(entry) {
  if ("hex" in entry) return new Uint8Array(Buffer.from(entry.hex, "hex"));
  return new Uint8Array(Buffer.from(entry.parts.map(([text, times]) => text.repeat(times)).join("")));
}

function read(entry) {
  const seal = { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" };
  return verifier.readRecord(new verifier.Sealed(verifier.decodeUtf8(bytesOf(entry)), seal));
}

test("canonical forms", () => {
  for (const { name, input, canonical, sha3_256 } of load("canonical").cases) {
    const value = verifier.readJson(input);
    const forms = value instanceof Map ? [...verifier.splitOffKeys(input, []).forms()] : [verifier.canonicalJson(value)];
    assert.ok(forms.includes(canonical), name);
    assert.equal(createHash("sha3-256").update(canonical).digest("hex"), sha3_256, name);
    assert.equal(verifier.canonicalJson(verifier.readJson(canonical)), canonical, name);
  }
});

test("unreadable bytes", () => {
  for (const entry of load("reading").unreadable) {
    assert.throws(() => read(entry), (error) => error instanceof verifier.BadInput && error.code === entry.code, entry.name);
  }
});

test("readable bytes", () => {
  for (const entry of load("reading").readable) assert.ok(read(entry).content.has("id"), entry.name);
});

test("seals", () => {
  const corpus = load("seals");
  for (const { name, sealed, status, code, keys = corpus.keys, require_pq: requirePq = false } of corpus.cases) {
    const ring = new verifier.Ring(keys.map((key) => new verifier.PublicKey(key.ed25519, key.ml_dsa_65 ?? "")));
    const judge = new verifier.ChainJudge(verifier.plainRules(ring, ed25519, { requirePq }), { start: null });
    try {
      judge.judge(verifier.sealedFromJson(sealed));
    } catch (error) {
      if (!(error instanceof verifier.BadInput)) throw error;
      judge.unreadable(error);
    }
    const verdict = verifier.conclude("case", judge.finish());
    assert.equal(verdict.status, status, name);
    assert.deepEqual(verdict.findings.map((finding) => finding.code), code === null ? [] : [code], name);
  }
});

test("Ed25519, by the platform and by points", async () => {
  const { cases } = load("ed25519");
  assert.ok(ed25519.usesPlatform);
  await ed25519.prefetch(cases.map((one) => ({ publicHex: one.public, message: one.message, signature: one.signature })));
  for (const { name, public: key, message, signature, valid } of cases) {
    assert.equal(ed25519.verify(key, message, signature), valid, name);
    assert.equal(verifier.holdsByPoints(key, new TextEncoder().encode(message), signature), valid, name);
  }
});

test("passkeys", () => {
  const { purpose, content, cases } = load("passkeys");
  const message = verifier.statementBytes(purpose, verifier.readJson(JSON.stringify(content)));
  for (const { name, passkey, signature, valid } of cases) {
    const key = new verifier.Passkey(verifier.readJson(JSON.stringify(passkey)), "case");
    assert.equal(verifier.passkeyProblem(key, message, signature, ed25519) === null, valid, name);
  }
});
