// The crew of the worker that judges: node --test web/tests

import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkerCrew, assist } from "../src/worker/crew.ts";
import { openEd25519 } from "../src/verify/verify.ts";
import { sha3Hex } from "../src/verify/digest.ts";
import { ed25519 as ed25519Points } from "../node_modules/@noble/curves/ed25519.js";
import { isPrimeOrderPoint } from "../src/verify/ed25519.ts";
import { plainRules, prepareBatches } from "../src/verify/chain.ts";
import { encoder } from "../src/verify/json.ts";
import { Ring } from "../src/verify/ring.ts";
import { Sealed } from "../src/verify/sealed.ts";

const ed25519 = await openEd25519();

test("a crew hashes and answers in the order of the questions", async () => {
  const channels = [new MessageChannel(), new MessageChannel()];
  for (const { port2 } of channels) assist(port2, ed25519);
  const crew = new WorkerCrew(channels.map(({ port1 }) => port1));
  const texts = Array.from({ length: 20 }, (_, number) => `text ${number} ü`);
  const question = { publicHex: "00".repeat(32), message: "x", signature: "00".repeat(64) };
  const found = await Promise.all([0, 1, 2].map(() => crew.work(texts, [question, question])));
  for (const { hashes, answers } of found) {
    assert.deepEqual(hashes, texts.map((text) => sha3Hex(encoder.encode(text))));
    assert.deepEqual(answers, [false, false]);
  }
  for (const { port1, port2 } of channels) for (const port of [port1, port2]) port.close();
});

test("a crew that answers too little is not believed", async () => {
  const { port1, port2 } = new MessageChannel();
  port2.onmessage = ({ data }) => port2.postMessage({ id: data.id, hashes: [], answers: [] });
  await assert.rejects(new WorkerCrew([port1]).work(["a"], []), /another number of answers/);
  port1.close();
  port2.close();
});

test("only a point of prime order can be a key", () => {
  assert.ok(isPrimeOrderPoint("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")); // The first key of RFC 8032.
  const order8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";
  const mixed = ed25519Points.Point.fromHex(order8).add(ed25519Points.Point.BASE).toHex();
  for (const bad of ["00".repeat(32), `01${"00".repeat(31)}`, `02${"00".repeat(31)}`, "ff".repeat(32), order8, mixed, "", "abc"]) {
    assert.ok(!isPrimeOrderPoint(bad), bad);
  }
});

test("in a rest no batch begins, and none is read", async () => {
  let end;
  const resting = new Promise((resolve) => { end = resolve; });
  const asked = [];
  const crew = {
    ...{ size: 1, isBusy: false, rest: () => {}, rested: () => (asked.length ? resting : Promise.resolve()) },
    work: async (texts) => { asked.push(texts.length); return { hashes: texts.map(() => ""), answers: [] }; },
  };
  let read = 0;
  const batches = (async function* () {
    for (; read < 4; read++) yield Array.from({ length: 8 }, () => new Sealed("{}", { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" }));
  })();
  const given = [];
  const done = (async () => { for await (const items of prepareBatches(plainRules(new Ring([]), ed25519, { crew }), batches, (items) => items)) given.push(items.length); })();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([asked, read, given], [[8], 1, []]);
  end();
  await done;
  assert.deepEqual([asked, given], [[8, 8, 8, 8], [8, 8, 8, 8]]);
});

test("a crew rests when it is told to, and goes on by itself", async () => {
  const crew = new WorkerCrew([]);
  // A promise that is fulfilled comes before any timer.
  const first = () => Promise.race([crew.rested().then(() => "at once"), new Promise((resolve) => setTimeout(resolve, 0, "later"))]);
  assert.equal(await first(), "at once");
  crew.rest();
  assert.equal(await first(), "later");
  await crew.rested();
  assert.equal(await first(), "at once");
});
