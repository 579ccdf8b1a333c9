// The page's own SHA3-256 beside noble's: node --test web/tests

import assert from "node:assert/strict";
import { test } from "node:test";
import { sha3_256 } from "../node_modules/@noble/hashes/sha3.js";
import { toHex } from "../src/verify/digest.ts";
import { sha3 } from "../src/verify/sha3.ts";

const encoder = new TextEncoder();

test("texts of FIPS 202 have their hashes", () => {
  assert.equal(toHex(sha3(encoder.encode(""))), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
  assert.equal(toHex(sha3(encoder.encode("abc"))), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
  assert.equal(toHex(sha3(new Uint8Array(200).fill(0xa3))), "79f38adec5c20307a98ef76e8324afbfd46cfd81b22e3973c65fa1bd9de31787");
});

test("every length up to five blocks has noble's hash, wherever the bytes lie in their buffer", () => {
  const bytes = Uint8Array.from({ length: 700 }, (_, at) => (at * 167 + (at >> 3)) & 255);
  for (let length = 0; length <= 680; length++) {
    const data = bytes.subarray(length % 9, (length % 9) + length);
    assert.equal(toHex(sha3(data)), toHex(sha3_256(data)), `${length} bytes`);
  }
});

test("each bit of a block counts, as it does for noble", () => {
  for (let bit = 0; bit < 8 * 137; bit++) {
    const data = new Uint8Array(137);
    data[bit >> 3] = 1 << (bit & 7);
    assert.equal(toHex(sha3(data)), toHex(sha3_256(data)), `bit ${bit}`);
  }
});

test("random bytes have noble's hash", () => {
  for (let round = 0; round < 200; round++) {
    const data = crypto.getRandomValues(new Uint8Array(Math.floor(Math.random() * 20_000)));
    assert.equal(toHex(sha3(data)), toHex(sha3_256(data)), toHex(data));
  }
});
