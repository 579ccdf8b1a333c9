// Judge recorded cases by the shipped verifier, and report each verdict as one line of JSON.
//
//     node judge_cases.mjs VERIFY_MJS DIRECTORY [--crew]
//
// Each case is judged by one thread. With --crew it is judged once more, with a crew that hashes and checks signatures, by the
// page's sources. Both verdicts must be the same to the byte.
//
// Each folder of DIRECTORY has `case.json` and the thing itself: see tests/support/recorded_cases.py.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [verifier, directory, withCrew] = process.argv.slice(2);
const { PublicKey, Ring, dumpVerdict, openEd25519, readJson, readRingEntry, verifyPath } = await import(
  pathToFileURL(verifier).href
);
const ed25519 = await openEd25519();
const channels = withCrew ? [new MessageChannel(), new MessageChannel()] : [];
const crew = withCrew ? await gatherCrew() : null;

async function gatherCrew() {
  const { WorkerCrew, assist } = await import("../src/worker/crew.ts");
  for (const { port2 } of channels) assist(port2, await openEd25519());
  return new WorkerCrew(channels.map(({ port1 }) => port1));
}

for (const name of readdirSync(directory).sort()) {
  let text;
  try {
    text = readFileSync(join(directory, name, "case.json"));
  } catch {
    continue;
  }
  const wanted = readJson(new Uint8Array(text));
  const ring = wanted.get("ring");
  const keys = ring.get("keys").map((key) => {
    return key.has("identity") ? readRingEntry(key) : new PublicKey(key.get("public_key"), key.get("public_key_pq"));
  });
  const options = { ring: new Ring(keys), requirePq: wanted.get("require_pq"), ed25519 };
  let answer;
  try {
    const path = join(directory, name, "thing", wanted.get("thing"));
    const verdict = await verifyPath(path, options);
    if (crew !== null) {
      const shared = await verifyPath(path, { ...options, ed25519: await openEd25519(), crew });
      if (dumpVerdict(shared) !== dumpVerdict(verdict)) throw new Error(`another verdict with a crew: ${dumpVerdict(shared)}`);
    }
    const matters = JSON.stringify(verdict.checks.filter((check) => check.matters).map((check) => check.name));
    answer = `{"case":${JSON.stringify(name)},"matters":${matters},"verdict":${dumpVerdict(verdict).replaceAll("\n", " ")}}`;
  } catch (error) {
    answer = JSON.stringify({ case: name, error: `${error.name}: ${error.message}`, stack: error.stack });
  }
  process.stdout.write(`${answer}\n`);
}
for (const { port1, port2 } of channels) for (const port of [port1, port2]) port.close();
