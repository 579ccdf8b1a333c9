// The ledger behind a server, as its worker reads it: node --test web/tests

import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../src/worker/api.ts";
import { LiveDirectory } from "../src/worker/live.ts";
import { encoder } from "../src/verify/json.ts";

const digestOf = (number) => number.toString(16).padStart(64, "0");
const recordOf = (number, size = 3) => JSON.stringify({ canonical: `{"x":{"blob":{"alg":"sha256","digest":"${digestOf(number)}","media":"text/plain","size":${size}}}}` });

/** A server with one chain, whose blobs come late. `most` is how many requests for blobs were open at once. */
function makeServer(records, { fails = () => false } = {}) {
  const server = { most: 0, open: 0, asked: [] };
  server.bytes = async (path) => {
    if (!path.startsWith("blobs/")) return encoder.encode(`${records.join("\n")}\n`);
    server.asked.push(path.slice(6));
    server.most = Math.max(server.most, ++server.open);
    await new Promise((resolve) => setTimeout(resolve, 5));
    server.open--;
    if (fails(path)) throw new ApiError(404, "", "not here", "");
    return encoder.encode("abc");
  };
  const chains = new Map([["c", { name: "c", count: records.length, head: null, frozen: false, origin: null }]]);
  return { server, directory: new LiveDirectory(server, "ledger", { ledger: "l", tenant: "t" }, chains, []) };
}

async function readChain(directory) {
  for await (const _ of (await directory.open("c.json")).entries());
}

test("blobs are fetched a few at once, each once, and given to the judge in any order", async () => {
  const { server, directory } = makeServer(Array.from({ length: 40 }, (_, number) => recordOf(number % 20)));
  await readChain(directory);
  for (const number of [3, 1, 0, 2, ...Array.from({ length: 16 }, (_, at) => at + 4)]) assert.equal((await directory.open("blobs", digestOf(number))).size, 3);
  assert.ok(server.most > 1 && server.most <= 7, String(server.most));
  assert.equal(new Set(server.asked).size, 20);
});

test("blobs that nobody asks for do not hold up the others", async () => {
  const { directory } = makeServer(Array.from({ length: 30 }, (_, number) => recordOf(number)));
  await readChain(directory);
  for (let number = 29; number >= 10; number--) assert.equal((await directory.open("blobs", digestOf(number))).size, 3);
});

test("a large blob is not fetched ahead, and one that is missing is missing", async () => {
  const { server, directory } = makeServer([recordOf(1, 900_000_000), recordOf(2)], { fails: (path) => path.endsWith("2") });
  await readChain(directory);
  assert.deepEqual(server.asked, [digestOf(2)]);
  assert.equal((await directory.open("blobs", digestOf(1))).size, 3);
  await assert.rejects(directory.open("blobs", digestOf(2)), /there is no blob/);
});
