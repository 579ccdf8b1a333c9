/**
 * The verifier as a command, without Python:
 *
 *     node verify.mjs THING [--key HEX|FILE]... [--require-pq]
 *
 * It prints what `aver verify THING --json` prints, and ends with the same exit codes: 0 verified or qualified, 1 failed or
 * empty, 2 bad input. Without `--key`, no key is known. FILE is one of `aver keys export`. Other programs import `verifyPath`.
 */

import { realpath, stat } from "node:fs/promises";
import { basename, dirname, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { BadInput } from "../verify/json.ts";
import { NotJudged, type VerifyOptions } from "../verify/options.ts";
import { type PublicKey, Ring, type RingEntry } from "../verify/ring.ts";
import { type Verdict, heldOf, verdictDocument } from "../verify/verdict.ts";
import { openEd25519, verifyDirectory, verifyFile } from "../verify/verify.ts";
import { DiskDirectory, openFile } from "./files.ts";
import { readKeyOption } from "./keys.ts";
import { checkPage } from "./site_page.ts";

// The names below are for the tests of the conformance corpus.
export { canonicalJson, splitOffKeys } from "../verify/canonical.ts";
export { ChainJudge, plainRules } from "../verify/chain.ts";
export { holdsByPoints } from "../verify/ed25519.ts";
export { BadInput, decodeUtf8, readJson } from "../verify/json.ts";
export { Passkey } from "../verify/passkey.ts";
export { passkeyProblem } from "../verify/passkey_signature.ts";
export { readRecord } from "../verify/record.ts";
export { PublicKey, Ring, readRingEntry } from "../verify/ring.ts";
export { Sealed, sealedFromJson } from "../verify/sealed.ts";
export { sha3 } from "../verify/sha3.ts";
export { statementBytes } from "../verify/statement.ts";
export { conclude } from "../verify/verdict.ts";
export { openEd25519, readKeyOption };

/** The verdict on a file or directory. */
export async function verifyPath(path: string, given: VerifyOptions): Promise<Verdict> {
  const options = { ...given, checkPage };
  const status = await stat(path).catch(() => null);
  if (status === null) throw new NotJudged(`there is no ${path}`);
  if (status.isDirectory()) return verifyDirectory(new DiskDirectory(path), options);
  const name = basename(path);
  if (name === "index.json") return verifyDirectory(new DiskDirectory(dirname(path)), options);
  return verifyFile(name, await openFile(path), options);
}

/** The text of a verdict. A sequence number that JavaScript would round is written digit by digit. */
export function dumpVerdict(verdict: Verdict): string {
  const digits = new Map<string, string>();
  const text = JSON.stringify(
    verdictDocument(verdict),
    (_, value: unknown) => {
      if (typeof value !== "bigint") return value;
      const mark = `\u0000${digits.size}\u0000`;
      digits.set(JSON.stringify(mark), String(value));
      return mark;
    },
    2,
  );
  return [...digits].reduce((out, [mark, number]) => out.replace(mark, number), text);
}

/** Whether a file of keys is the thing that is verified, or lies in it. */
async function isInside(file: string, thing: string): Promise<boolean> {
  const resolve = (path: string) => realpath(path).catch(() => null);
  const key = await resolve(file);
  const root = await resolve(basename(thing) === "index.json" ? dirname(thing) : thing);
  return key !== null && root !== null && (key === root || key.startsWith(`${root}${sep}`));
}

async function main(given: string[]): Promise<number> {
  const things: string[] = [];
  const files: string[] = [];
  const keys: (PublicKey | RingEntry)[] = [];
  let requirePq = false;
  try {
    for (let at = 0; at < given.length; at++) {
      const word = given[at] as string;
      if (word === "--key") {
        const key = given[++at] ?? "";
        keys.push(...(await readKeyOption(key)));
        files.push(key);
      }
      else if (word === "--require-pq") requirePq = true;
      else if (word.startsWith("-")) throw new BadInput(`there is no option ${word}`);
      else things.push(word);
    }
    const inside = await Promise.all(files.map((file) => isInside(file, things[0] ?? "")));
    if (inside.some(Boolean)) throw new BadInput("keys that come with the thing vouch for nothing: ask its owner for them");
    if (things.length !== 1) throw new BadInput("usage: node verify.mjs THING [--key HEX|FILE]... [--require-pq]");
    const ring = new Ring(keys);
    const verdict = await verifyPath(things[0] as string, { ring, requirePq, ed25519: await openEd25519() });
    process.stdout.write(`${dumpVerdict(verdict)}\n`);
    const isGood = verdict.status === "verified" || verdict.status === "qualified";
    return isGood && (!keys.length || heldOf(verdict)) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof BadInput || error instanceof NotJudged)) throw error;
    process.stderr.write(`verify.mjs: ${error.message}\n`);
    return 2;
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main(process.argv.slice(2));
}
