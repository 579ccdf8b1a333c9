/** The worker answers the requests of views while a scan reads every record, and ends scans that nobody waits for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { startWorker } from "../src/worker/main.ts";

const RECORDS = 20_000;

function makeThing(name, count, word) {
  const lines = Array.from({ length: count }, (_, sequence) => {
    const content = { type: "tool", sequence, outcome: { status: "success", summary: `${word} ${sequence}` } };
    return JSON.stringify({ ...content, hash: "0".repeat(64), signature: "", signature_pq: "", signed_at: "2026-05-31T09:00:00Z", signed_by: "" });
  });
  return { name, files: [[name, new Blob([lines.join("\n")])]], isFolder: false };
}

/** Start a worker in this process. `ask` sends a request; `answered` has the ids of the answers in their order. */
function start() {
  const waiting = new Map();
  const answered = [];
  let listener;
  let nextId = 1;
  globalThis.setInterval = () => 0; // Signs of life would keep this process alive.
  globalThis.self = {
    postMessage: (answer) => {
      answered.push(answer.id);
      waiting.get(answer.id)?.(answer);
    },
    addEventListener: (_, given) => { listener = given; },
  };
  startWorker();
  const ask = (request) => {
    const id = nextId++;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    // As a browser does: in a task of its own.
    setTimeout(() => listener({ data: { ...request, id } }));
    return answer;
  };
  return { ask, answered };
}

const large = makeThing("capsules.jsonl", RECORDS, "word");
const chain = "capsules.jsonl";
const { ask, answered } = start();

test("a view's rows and record come before the end of a search that was begun earlier", async () => {
  await ask({ type: "open", thing: large });
  const search = ask({ type: "search", words: "absent", limit: 10 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  const reads = [{ type: "rows", chain, start: 0, stop: 50 }, { type: "record", chain, at: { place: 3 }, keys: [] }, { type: "records", chain, start: 0, stop: 2 }];
  const found = await Promise.all(reads.map(ask));
  assert.deepEqual(found.map(({ type }) => type), ["done", "done", "done"]);
  assert.equal(found[0].result.rows[49].summary, "word 49");
  assert.ok(!answered.includes(2), "the search had ended already");
  assert.deepEqual((await search).result, { hits: [], searched: RECORDS, isCut: false });
});

test("scans are carried out beside each other, with the answers that each has alone", async () => {
  const [activity, search, sessions] = await Promise.all([{ type: "activity" }, { type: "search", words: `"word ${RECORDS - 1}"`, limit: 10 }, { type: "sessions" }].map(ask));
  assert.equal(activity.result.records, RECORDS);
  assert.deepEqual(search.result.hits.map(({ row }) => row.place), [RECORDS - 1]);
  assert.equal(sessions.type, "done");
});

test("a newer search ends an older one", async () => {
  const older = ask({ type: "search", words: "absent", limit: 10 });
  const newer = ask({ type: "search", words: `"word 7"`, limit: 1 });
  const ended = await older;
  assert.deepEqual([ended.type, ended.words, ended.isNotJudged], ["failed", "a newer search was begun", true]);
  assert.equal((await newer).result.hits[0].row.summary, "word 7");
});

test("a scan of a thing that was closed ends, and answers nothing of it", async () => {
  const scans = [{ type: "search", words: "word", limit: RECORDS }, { type: "activity" }].map(ask);
  await new Promise((resolve) => setTimeout(resolve, 30));
  const opened = await ask({ type: "open", thing: makeThing("other.jsonl", 3, "other") });
  assert.equal(opened.result.name, "other.jsonl");
  for (const answer of await Promise.all(scans)) assert.deepEqual([answer.type, answer.words], ["failed", "another thing was opened"]);
  const { result } = await ask({ type: "search", words: "other", limit: 10 });
  assert.equal(result.hits.length, 3);
});
