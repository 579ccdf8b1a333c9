/** Packed files are read by the platform. An older one is looser than the standard wants, and must not make the verifier so. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Duplex } from "node:stream";
import test from "node:test";
import { createGunzip, createInflateRaw, gzipSync } from "node:zlib";
import { Unreadable } from "../src/verify/json.ts";

/** What Node.js had before version 24. */
class LooseStream {
  constructor(format) {
    Object.assign(this, Duplex.toWeb(format === "gzip" ? createGunzip() : createInflateRaw()));
  }
}

let unpackGzip;
/** One test for each platform. The module looks at its platform once, so each has a module of its own. */
function testOnBoth(name, body) {
  for (const [platform, Stream] of [["strict", DecompressionStream], ["loose", LooseStream]]) {
    test(`${name} (${platform} platform)`, async (context) => {
      context.mock.property(globalThis, "DecompressionStream", Stream);
      ({ unpackGzip } = await import(`../src/verify/gzip.ts?${platform}`));
      await body();
    });
  }
}

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

testOnBoth("a file comes out as it went in, whatever pieces it comes in", async () => {
  for (const size of [1, 7, 1000, PACKED.length]) assert.deepEqual(await unpack(cut(PACKED, size)), FILE);
  assert.equal((await unpack([new Uint8Array(gzipSync(""))])).length, 0);
});

testOnBoth("each cut and each changed byte of the frame is refused", async () => {
  const small = new Uint8Array(gzipSync("one record"));
  for (let end = 0; end < small.length; end++) await assert.rejects(unpack([small.subarray(0, end)]), Unreadable, `cut to ${end}`);
  for (const at of [0, 1, 2, small.length - 8, small.length - 4, small.length - 1]) {
    await assert.rejects(unpack([small.map((byte, here) => (here === at ? byte ^ 1 : byte))]), Unreadable, `byte ${at}`);
  }
});

testOnBoth("nothing may follow the packed file", async () => {
  const empty = new Uint8Array(gzipSync(""));
  for (const more of [[0], [0, 0, 0, 0], empty, PACKED, [0x1f], [0x41]]) {
    await assert.rejects(unpack([PACKED, Uint8Array.from(more)]), Unreadable);
    await assert.rejects(unpack([Uint8Array.from([...PACKED, ...more])]), Unreadable);
  }
  await assert.rejects(unpack([empty, PACKED]), Unreadable);
});

testOnBoth("each part of the header is skipped, and nothing may hide behind it", async () => {
  const plain = new Uint8Array(gzipSync("one record"));
  const [content, trailer] = [plain.subarray(10, -8), plain.subarray(-8)];
  const text = [...new TextEncoder().encode("name"), 0];
  for (const [flags, ...parts] of [[0], [4, 3, 0, 7, 7, 7], [8, ...text], [16, ...text], [28, 1, 0, 9, ...text, ...text]]) {
    const head = Uint8Array.from([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3, ...parts]);
    assert.equal(new TextDecoder().decode(await unpack([Uint8Array.from([...head, ...content, ...trailer])])), "one record");
    for (const between of [[0], [0, 0, 0, 0], trailer, plain]) {
      await assert.rejects(unpack([Uint8Array.from([...head, ...content, ...trailer, ...between])]), Unreadable);
      await assert.rejects(unpack([Uint8Array.from([...head, ...content, ...between, ...trailer])]), Unreadable);
    }
  }
});

testOnBoth("what the source raises comes through, and a reader that stops is no error", async () => {
  const failing = unpackGzip(async () => { throw new Error("the disk is gone"); });
  await assert.rejects(failing.next(), /the disk is gone/);
  const pieces = cut(new Uint8Array(gzipSync(randomBytes(4_000_000))), 4096);
  let taken = 0;
  for await (const bytes of unpackGzip(async () => pieces[taken++] ?? null)) if (bytes.length) break;
  assert.ok(taken < pieces.length / 4, `${taken} of ${pieces.length} pieces were read ahead`);
});

testOnBoth("a reader may stop anywhere, and no piece comes afterwards", async () => {
  for (const data of [randomBytes(200_000), new Uint8Array(2_000_000)]) {
    for (let stop = 1; stop < 6; stop++) {
      const pieces = cut(new Uint8Array(gzipSync(data)), 24_576);
      let taken = 0;
      for await (const _ of unpackGzip(async () => pieces.shift() ?? null)) {
        // At first the reader waits for the file that it compares; then it has the next bytes of that at once.
        if (taken === 0) await new Promise((goOn) => setTimeout(goOn, 2));
        if (++taken === stop) break;
      }
    }
  }
  await new Promise((goOn) => setTimeout(goOn, 20));
});
