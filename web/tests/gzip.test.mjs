import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { unpackGzip } from "../src/verify/gzip.ts";
import { Unreadable } from "../src/verify/json.ts";

const FILE = new Uint8Array(100_000).map((_, at) => (at * 31) % 251);
const PACKED = new Uint8Array(gzipSync(FILE));

function cut(bytes, size) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

async function unpack(pieces) {
  const left = [...pieces];
  const found = [];
  for await (const bytes of unpackGzip(async () => left.shift() ?? null)) found.push(...bytes);
  return Uint8Array.from(found);
}

test("a file comes out as it went in, whatever pieces it comes in", async () => {
  for (const size of [1, 7, 1000, PACKED.length]) assert.deepEqual(await unpack(cut(PACKED, size)), FILE);
  assert.equal((await unpack([new Uint8Array(gzipSync(""))])).length, 0);
});

test("each cut and each changed byte of the frame is refused", async () => {
  const small = new Uint8Array(gzipSync("one record"));
  for (let end = 0; end < small.length; end++) await assert.rejects(unpack([small.subarray(0, end)]), Unreadable, `cut to ${end}`);
  for (const at of [0, 1, 2, small.length - 8, small.length - 4, small.length - 1]) {
    await assert.rejects(unpack([small.map((byte, here) => (here === at ? byte ^ 1 : byte))]), Unreadable, `byte ${at}`);
  }
});

test("nothing may follow the packed file", async () => {
  const empty = new Uint8Array(gzipSync(""));
  for (const more of [[0], [0, 0, 0, 0], empty, PACKED, [0x1f], [0x41]]) {
    await assert.rejects(unpack([PACKED, Uint8Array.from(more)]), Unreadable);
    await assert.rejects(unpack([Uint8Array.from([...PACKED, ...more])]), Unreadable);
  }
  await assert.rejects(unpack([empty, PACKED]), Unreadable);
});

test("what the source raises comes through, and a reader that stops is no error", async () => {
  const failing = unpackGzip(async () => { throw new Error("the disk is gone"); });
  await assert.rejects(failing.next(), /the disk is gone/);
  const pieces = cut(new Uint8Array(gzipSync(randomBytes(4_000_000))), 4096);
  let taken = 0;
  for await (const bytes of unpackGzip(async () => pieces[taken++] ?? null)) if (bytes.length) break;
  assert.ok(taken < pieces.length / 4, `${taken} of ${pieces.length} pieces were read ahead`);
});
