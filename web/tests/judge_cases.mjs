// Judge recorded cases by the shipped verifier, and report each verdict as one line of JSON.
//
//     node judge_cases.mjs VERIFY_MJS DIRECTORY
//
// Each folder of DIRECTORY has `case.json` and the thing itself: see tests/support/recorded_cases.py.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [verifier, directory] = process.argv.slice(2);
const { PublicKey, Ring, dumpVerdict, openEd25519, readJson, readRingEntry, verifyPath } = await import(
  pathToFileURL(verifier).href
);
const ed25519 = await openEd25519();
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
  const options = { ring: new Ring(keys, { isClosed: ring.get("closed") }), requirePq: wanted.get("require_pq"), ed25519 };
  let answer;
  try {
    const verdict = await verifyPath(join(directory, name, "thing", wanted.get("thing")), options);
    const matters = JSON.stringify(verdict.checks.filter((check) => check.matters).map((check) => check.name));
    answer = `{"case":${JSON.stringify(name)},"matters":${matters},"verdict":${dumpVerdict(verdict).replaceAll("\n", " ")}}`;
  } catch (error) {
    answer = JSON.stringify({ case: name, error: `${error.name}: ${error.message}`, stack: error.stack });
  }
  process.stdout.write(`${answer}\n`);
}
