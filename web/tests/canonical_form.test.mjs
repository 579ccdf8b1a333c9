// The parser says whether a text is canonical, and the encodings of points are compared as hex: node --test web/tests

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Point } from "../src/verify/curves.ts";
import { canonicalJson } from "../src/verify/canonical.ts";
import { holdsByPoints, isPrimeOrderPoint } from "../src/verify/ed25519.ts";
import { BadInput, NotCanonical, readJson } from "../src/verify/json.ts";
import { Sealed } from "../src/verify/sealed.ts";

const SEAL = { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" };

/** Whether the text is what `canonicalJson` writes for its value; null if it cannot be read. */
function compare(text) {
  try {
    return canonicalJson(readJson(text)) === text;
  } catch (error) {
    if (error instanceof NotCanonical) return false;
    if (error instanceof BadInput) return null;
    throw error;
  }
}

function ask(text) {
  try {
    return new Sealed(text, SEAL).isCanonical;
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

const TEXTS = {
  canonical: ["{}", "[]", '""', "0", "-1", "1.5", "1e+16", "1e-05", "-0.0", '{"a":1,"b":{"":null}}', '"\\n\\u001f\\"\\\\"', '"é\u2028\u007f😀"', '{"\ue000":1,"😀":2}'],
  other: [
    " {}", "{} ", '{"a": 1}', "[1, 2]", '{"b":1,"a":2}', '{"😀":1,"\ue000":2}', "-0", "1.0e0", "1.50", "1E5", "1e16", "0.00001",
    '"\\/"', '"\\u0041"', '"\\u000a"', '"\\u001F"', '"\\u00e9"', '"\\ud800"', '{"\\u0061":1}', '["a\\u0000", "b"]', "\n[]",
  ],
  unreadable: ["", "{", '"', '"\\', '"\\"', '"\\x"', '"\\u12"', '"\\u12g4"', '"a\nb"', '"\t"', '{"a":1,"a":2}', "[1,]", "01", "1.", "\u000b[]", '"\\\\\\"', "nul", "[] []"],
};

test("a text is canonical where writing its value gives the same text", () => {
  for (const [expected, name] of [[true, "canonical"], [false, "other"], [null, "unreadable"]]) {
    for (const text of TEXTS[name]) {
      assert.equal(compare(text), expected, JSON.stringify(text));
      assert.equal(ask(text), expected, JSON.stringify(text));
    }
  }
});

test("every small change of a canonical text gets the same answer", () => {
  const whole = '{"a":["x\\n\\"y\\\\",-12,0.25,1e-07,true,null],"b":{"c":"\\u0001é","d":"\\t"},"é":{}}';
  assert.equal(ask(whole), true);
  const pieces = ["", " ", '"', "\\", "\\\\", "\\u", "0", "1", ".", "e", "-", ",", ":", "{", "}", "[", "]", "a", "é", "\n", "\u0001", "\\/"];
  for (let at = 0; at <= whole.length; at++) {
    for (const piece of pieces) {
      for (const drop of [0, 1]) {
        const text = whole.slice(0, at) + piece + whole.slice(at + drop);
        assert.equal(ask(text), compare(text), JSON.stringify(text));
      }
    }
  }
});

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const toHex = (value) => value.toString(16).padStart(64, "0").match(/../g).reverse().join("");

test("an encoding that is not below the prime is no key", () => {
  // P + 3 is a y of the curve, written a second time: 3 is its canonical encoding.
  assert.ok(Point.fromHex(toHex(3n), true).equals(Point.fromHex(toHex(P + 3n), true)));
  for (let more = 0n; more < 19n; more++) {
    for (const sign of [0n, 2n ** 255n]) assert.ok(!isPrimeOrderPoint(toHex(P + more + sign)), String(more));
  }
  assert.ok(isPrimeOrderPoint(Point.BASE.toHex()) && isPrimeOrderPoint(Point.BASE.negate().toHex()));
});

test("S must be below L", () => {
  const [secret, nonce] = [123456789n, 987654321n];
  const [key, r] = [secret, nonce].map((scalar) => Point.BASE.multiply(scalar).toHex());
  for (const text of ["a", "b", "c"]) {
    const message = new TextEncoder().encode(text);
    const k = BigInt(`0x${createHash("sha512").update(Buffer.from(r + key, "hex")).update(message).digest().reverse().toString("hex")}`);
    const s = (nonce + k * secret) % L;
    assert.ok(holdsByPoints(key, message, r + toHex(s)));
    assert.ok(!holdsByPoints(key, message, r + toHex(s + 1n)));
    // [S + L]B is [S]B, so that the equation holds for both.
    assert.ok(!holdsByPoints(key, message, r + toHex(s + L)));
  }
});
