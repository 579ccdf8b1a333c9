/** Files of a browser are read in blocks. Every part of them is what the file has there. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobSource, readChunks } from "../src/verify/bytes.ts";

const MIB = 1024 * 1024;
const makeBytes = (size, seed) => Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8) * seed + seed) & 255);

test("a part of a file is what the file has there, in any order and from several files at once", async () => {
  const contents = [0, 1, 300_000, MIB, MIB + 1, 3 * MIB + 77, 5].map((size, at) => makeBytes(size, at + 1));
  const sources = contents.map((bytes) => new BlobSource(new Blob([bytes])));
  let seed = 7;
  const next = (limit) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % limit;
  const reads = [];
  for (let turn = 0; turn < 400; turn++) {
    const at = next(contents.length);
    const start = next(contents[at].length + 3);
    const end = start + next([10, 70_000, 2 * MIB][turn % 3]);
    reads.push(sources[at].read(start, end).then((found) => assert.deepEqual([turn, Buffer.from(found)], [turn, Buffer.from(contents[at].slice(start, end))])));
    if (turn % 5 === 0) await Promise.all(reads.splice(0));
  }
  await Promise.all(reads);
});

test("the chunks of a file are the file", async () => {
  const bytes = makeBytes(2 * MIB + 5, 3);
  const chunks = [];
  for await (const chunk of readChunks(new BlobSource(new Blob([bytes])))) chunks.push(Buffer.from(chunk));
  assert.ok(chunks.length > 4);
  assert.deepEqual(Buffer.concat(chunks), Buffer.from(bytes));
});
