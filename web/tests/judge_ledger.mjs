// Judge the ledger behind a server as the page does, and print the verdict.
//
//     node judge_ledger.mjs ORIGIN TOKEN [CHAIN…] -- KEY…

import { dumpVerdict } from "../src/node/main.ts";
import { PublicKey, Ring } from "../src/verify/ring.ts";
import { openEd25519, verifyDirectory } from "../src/verify/verify.ts";
import { LiveDirectory } from "../src/worker/live.ts";

const [origin, token, ...rest] = process.argv.slice(2);
const chains = rest.slice(0, rest.indexOf("--"));
const keys = rest.slice(rest.indexOf("--") + 1);
const live = await LiveDirectory.fetch({ origin, token }, "ledger");
const ring = new Ring(keys.map((key) => new PublicKey(key)));
const directory = chains.length ? live.limitTo(chains) : live;
process.stdout.write(dumpVerdict(await verifyDirectory(directory, { ring, ed25519: await openEd25519() })));
