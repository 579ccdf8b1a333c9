/** The keys that `--key` names. The twin of `aver.keys.exchange.read_keys`: a file that Aver refuses is refused here, too. */

import { readFile } from "node:fs/promises";
import { isPrimeOrderPoint } from "../verify/ed25519.ts";
import { BadInput, type Json, isObject, readJson } from "../verify/json.ts";
import { readKeyList, refuseIndex } from "../verify/key_list.ts";
import { PublicKey, Ring, type RingEntry, readRingEntry } from "../verify/ring.ts";
import { checkObject, checkVersion } from "../verify/statement.ts";

const EXPORT_FORMAT = "aver-public-keys";
/** Bytes of a text that may be a key alone. */
const TEXT_MAX = 128;

/** Read a key of 64 digits, or a file of `aver keys export`, whose retirements then count. Raises `BadInput`. */
export async function readKeyOption(given: string): Promise<(PublicKey | RingEntry)[]> {
  const data = /^[0-9A-Fa-f]{64}$/.test(given) ? null : await readFile(given).catch(() => null);
  const keys = data === null ? [new PublicKey(given)] : readKeyFile(data);
  const ring = new Ring(keys);
  if (!ring.keys.length) throw new BadInput(`no public key in ${given}`);
  for (const { ed25519, fingerprint } of ring.keys) if (!isPrimeOrderPoint(ed25519)) throw new BadInput(`${fingerprint} is not a usable Ed25519 public key`);
  return keys;
}

function readKeyFile(data: Uint8Array): (PublicKey | RingEntry)[] {
  const plain = data.length <= TEXT_MAX ? Buffer.from(data).toString("latin1").trim() : "";
  if (/^[0-9A-Fa-f]{64}$/.test(plain)) return [new PublicKey(plain)];
  const document = readJson(data);
  if (!isObject(document)) throw new BadInput("it is in no format of keys that Aver reads");
  if (document.get("format") === EXPORT_FORMAT) {
    checkVersion(checkObject(document, "export", ["format", "version", "keys"]).get("version"), "export");
    const keys = document.get("keys");
    if (!Array.isArray(keys)) throw new BadInput("keys must be a list");
    return keys.map(readExported);
  }
  refuseIndex(document);
  const epochs = document.get("epochs"); // The ring of another program.
  if (epochs !== undefined) {
    checkVersion(document.get("version"), "epochs");
    if (!Array.isArray(epochs)) throw new BadInput("epochs must be a list");
    return epochs.map((epoch) => new PublicKey(isObject(epoch) ? epoch.get("public_key_hex") : null));
  }
  if (document.has("entries")) return readKeyList(data).map(({ key, entry }) => (entry === null ? key : readRingEntry(entry)));
  return [...document].map(([name, value]) => readKnown(name, value));
}

/** One of a list of known keys, such as that of a home: each under its fingerprint, or under itself. */
function readKnown(name: string, value: Json): PublicKey {
  const key = new PublicKey(value);
  if (name !== key.fingerprint && name !== key.ed25519) throw new BadInput("a known key is listed under the name of another");
  return key;
}

function readExported(item: Json): PublicKey | RingEntry {
  if (isObject(item) && item.has("identity")) return readRingEntry(item);
  const bare = checkObject(item, "key", ["algorithm", "fingerprint", "public_key", "public_key_pq"]);
  const key = new PublicKey(bare.get("public_key"), bare.get("public_key_pq"));
  if (bare.get("algorithm") !== key.algorithm || bare.get("fingerprint") !== key.fingerprint) throw new BadInput("algorithm or fingerprint contradicts the key");
  return key;
}
