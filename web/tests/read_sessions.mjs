// Read the sessions of bundles by the page's sources, and print each as one line of JSON, as `aver show --json` has it.
//
//     node read_sessions.mjs DIRECTORY        each folder of DIRECTORY is a bundle

import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DiskDirectory } from "../src/node/files.ts";
import { chainNames, groupChains } from "../src/sessions/chains.ts";
import { totalFigures } from "../src/sessions/labels.ts";
import { readStep } from "../src/sessions/step.ts";
import { applyAdditions, readSession } from "../src/sessions/story.ts";
import { toUtc } from "../src/sessions/values.ts";
import { claimedName, fileOf, readChainFile, readIndex } from "../src/verify/bundle/layout.ts";
import { BadInput, JsonNumber } from "../src/verify/json.ts";
import { Sealed } from "../src/verify/sealed.ts";

const SNAKE = { toolName: "tool_name", signedBy: "signed_by", signedAt: "signed_at", callId: "call_id", sideEffects: "side_effects", durationMs: "duration_ms", sessionCost: "session_cost", tokensIn: "tokens_in", tokensOut: "tokens_out", costUsd: "cost_usd", linesAdded: "lines_added", linesRemoved: "lines_removed" };
const snake = (value) => Object.fromEntries(Object.entries(value).map(([name, item]) => [SNAKE[name] ?? name, item]));

/** JSON text of plain and strict values, with each number as it is written. */
function write(value) {
  if (value instanceof JsonNumber) return value.text;
  if (value instanceof Map) return write(Object.fromEntries(value));
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value !== null && typeof value === "object") return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${write(item)}`).join(",")}}`;
  return JSON.stringify(value ?? null);
}

const isEmpty = (value) => value === null || value === "" || (Array.isArray(value) && !value.length) || (value instanceof Map && !value.size);

async function* readBundle(path) {
  const directory = new DiskDirectory(path);
  const index = await readIndex(directory);
  const rows = index.chains.map((claim) => ({ name: index.ledger === null ? claimedName(claim) : claim.id, origin: index.ledger === null ? claim.id : claim.origin, file: fileOf(claim) }));
  const fileFor = new Map(rows.map((row) => [row.name, row.file]));
  async function* read(chain) {
    for await (const items of readChainFile(await directory.open(fileFor.get(chain)))) {
      const records = items.filter((item) => item instanceof Sealed || item instanceof BadInput);
      for (const record of records) record.chain = chain;
      yield records;
    }
  }
  const all = new Map();
  for (const { name } of rows) all.set(name, (await Array.fromAsync(read(name))).flat());
  const first = async (chain) => (all.get(chain)?.[0] instanceof Sealed ? readStep(all.get(chain)[0]) : null);
  const blob = async (digest) => {
    const file = join(path, "blobs", digest);
    const data = existsSync(file) ? readFileSync(file) : null;
    return data !== null && createHash("sha256").update(data).digest("hex") === digest ? new Uint8Array(data) : null;
  };
  for (const chains of await groupChains(rows, first)) {
    const { totals, entries } = await readSession(chains, read, blob);
    const steps = entries.map((entry) => describe(entry, (place) => all.get(entry.chain)[place]));
    yield { session: snake(totals), names: chainNames(chains), labels: totalFigures(totals).map((figure) => figure.words), steps };
  }
}

function describe(entry, recordAt) {
  const out = { depth: entry.depth, chain: entry.chain };
  if (entry.agent) out.subagent = entry.agent;
  if (entry.step !== null) {
    const additions = entry.additions.map((place) => readStep(recordAt(place)));
    const isRepeated = entry.step.what === "prompt" && !entry.step.own && entry.step.toolName === "";
    const item = recordAt(entry.place);
    const whole = isRepeated || !(item instanceof Sealed) ? entry.step : applyAdditions(readStep(item), additions);
    // The row that the page shows must say the same as the record.
    for (const name of ["what", "status", "lines", "authority", "rule", "durationMs", "id", "at"]) {
      if (JSON.stringify(whole[name]) !== JSON.stringify(entry.step[name])) throw new Error(`${name} of ${entry.chain} ${entry.place}`);
    }
    for (const [name, value] of Object.entries(snake(whole))) if (!isEmpty(value)) out[name] = name === "spent" ? snake(value) : value;
    out.chain = entry.chain;
    delete out.askedLeft; // Only the page's list cuts a prompt.
    for (const name of ["calls", "others"]) delete out[name]; // Only a search reads them.
    if (additions.length) out.added = additions.map(({ addition: { lines, ...addition } }) => addition);
    if (out.addition) delete out.addition.lines;
  }
  if (entry.decision !== null) {
    const { decision, mode, reasons, rules, score, tool, arguments: given, at, chain, sequence, hash, signedBy } = entry.decision;
    out.gate = { word: decision, mode, reasons, rules, score, tool, arguments: given, at: toUtc(at), chain, sequence, hash, signed_by: signedBy };
  }
  return out;
}

const [directory] = process.argv.slice(2);
for (const name of readdirSync(directory).sort()) {
  for await (const session of readBundle(join(directory, name))) process.stdout.write(`${write({ case: name, ...session })}\n`);
}
