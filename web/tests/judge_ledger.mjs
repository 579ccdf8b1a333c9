// Judge the ledger behind a server as the page does, and print the verdict; or print rows of a chain.
//
//     node judge_ledger.mjs ORIGIN TOKEN [CHAIN…] -- KEY…
//     node judge_ledger.mjs ORIGIN TOKEN --rows CHAIN START STOP

import { dumpVerdict } from "../src/node/main.ts";
import { PublicKey, Ring } from "../src/verify/ring.ts";
import { openEd25519, verifyDirectory } from "../src/verify/verify.ts";
import { Library } from "../src/worker/library.ts";
import { LiveDirectory } from "../src/worker/live.ts";

const [origin, token, ...rest] = process.argv.slice(2);
const ed25519 = await openEd25519();

async function judge() {
  const chains = rest.slice(0, rest.indexOf("--"));
  const keys = rest.slice(rest.indexOf("--") + 1);
  const live = await LiveDirectory.fetch({ origin, token }, "ledger");
  const ring = new Ring(keys.map((key) => new PublicKey(key)));
  const directory = chains.length ? live.limitTo(chains) : live;
  return dumpVerdict(await verifyDirectory(directory, { ring, ed25519 }));
}

async function list() {
  const [, chain, start, stop] = rest;
  const library = new Library(ed25519);
  await library.open({ name: "ledger", files: [], isFolder: true, live: { origin, token } });
  return JSON.stringify(await library.rows(chain, Number(start), Number(stop)));
}

process.stdout.write(await (rest[0] === "--rows" ? list() : judge()));
