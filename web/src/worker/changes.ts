/** Changes of a copy, to see where it breaks. The thing itself is never touched. */

import { sha3Hex } from "../verify/digest.ts";
import { encoder } from "../verify/json.ts";
import { NotJudged } from "../verify/options.ts";
import type { Change } from "./protocol.ts";

type StoredRecord = Record<string, string>;
type ChainDocument = Record<string, unknown> & { capsules?: StoredRecord[] };

/** Claims about a chain that a shorter chain does not have. An attacker leaves them out. */
const CLAIMS = ["ended_at", "signed_by", "all_hashes_ok"];

/** The text of a chain's file with one record changed. */
export async function changeChain(source: string, place: number, change: Change): Promise<string> {
  const document = JSON.parse(source) as ChainDocument;
  const records = document.capsules;
  const record = records?.[place];
  if (!records || !record) throw new NotJudged("only a record of a bundle's chain can be changed here");
  const canonical = record["canonical"] ?? "";
  const middle = Math.floor(canonical.length / 2);
  const edited = canonical.replace(/"summary":"/, '"summary":"(changed) ');
  switch (change) {
    case "flip":
      record["canonical"] = canonical.slice(0, middle) + (canonical[middle] === "a" ? "b" : "a") + canonical.slice(middle + 1);
      break;
    case "edit":
      record["canonical"] = edited;
      break;
    case "resign":
      // With the right hash for the changed text, and the old signature.
      record["canonical"] = edited;
      record["hash"] = sha3Hex(encoder.encode(edited));
      break;
    case "forge":
      await forge(record, edited);
      break;
    case "drop":
      records.splice(place, 1);
      break;
    case "double":
      records.splice(place, 0, { ...record });
      break;
    case "swap":
      if (place + 1 >= records.length) throw new NotJudged("this is the last record: there is no next one to swap it with");
      records.splice(place, 2, ...records.slice(place, place + 2).reverse());
      break;
    case "cut":
      records.length = place;
      break;
    case "rollback":
      if (place === 0) throw new NotJudged("this is the first record: nothing would be left");
      records.length = place;
      shorten(document, records);
      break;
  }
  return JSON.stringify(document);
}

/** Give a record another text, and a seal over it by a key that is made now. */
async function forge(record: StoredRecord, text: string): Promise<void> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign"])) as CryptoKeyPair;
  const signer = toHex(await crypto.subtle.exportKey("raw", pair.publicKey)).slice(0, 16);
  const canonical = text.replaceAll(`"by":"${record["signed_by"]}"`, `"by":"${signer}"`);
  const hash = sha3Hex(encoder.encode(canonical));
  const signature = toHex(await crypto.subtle.sign("Ed25519", pair.privateKey, encoder.encode(hash)));
  Object.assign(record, { canonical, hash, signature, signature_pq: "", signed_by: signer });
}

function toHex(bytes: ArrayBuffer): string {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

type Claim = Record<string, unknown>;
type Index = Claim & { chains?: Claim[]; meta?: Claim | null };

/** Files of a site that show the records. An older copy has older ones, which nobody has here. */
const PAGE_FILES = /^(?:index\.html$|explorer\/)/;
const BLOB_FILE = /^blobs\/(.+)$/;

/** Give a claim about a chain its new length and head, and leave out what the shorter chain may not have. */
function shorten(claim: Claim, records: StoredRecord[]): void {
  claim["length"] = records.length;
  claim["head_hash"] = records.at(-1)?.["hash"] ?? null;
  for (const name of CLAIMS) delete claim[name];
  // The title is the first request.
  if (!records.some(({ canonical = "" }) => /"request":"(?!")/.test(canonical))) delete claim["title"];
}

/**
 * The whole bundle as it was before a record was sealed: shorter chains, and an index, keys and blobs that fit them.
 *
 * `read` gives the text of a file. Returns the files that are others then; null for one that was not there. The signed
 * heads are left out: those of that time are not here. Only a reader who saw the newer bundle can tell.
 */
export async function rollBack(names: string[], read: (name: string) => Promise<string>, chain: string, place: number): Promise<[string, string | null][]> {
  const index = JSON.parse(await read("index.json")) as Index;
  const claims: Claim[] = [...(index.meta ? [{ ...index.meta, id: "meta" }] : []), ...(index.chains ?? [])];
  const documents = new Map<string, ChainDocument>();
  for (const { id } of claims) documents.set(String(id), JSON.parse(await read(`${id}.json`)) as ChainDocument);
  const signedAt = (record: StoredRecord) => record["signed_at"] ?? "";
  const target = documents.get(chain)?.capsules?.[place];
  if (target === undefined) throw new NotJudged("only a record of a bundle's chain can be changed here");
  if (place === 0) throw new NotJudged("this is the first record: nothing would be left");
  const moment = signedAt(target);
  let meta = "";
  const kept: Claim[] = [];
  const files: [string, string | null][] = [["head.json", null]];
  const texts: string[] = [];
  const signers = new Set([index["fingerprint"]]);
  let total = 0;
  for (const claim of claims) {
    const id = String(claim["id"]);
    const document = documents.get(id) as ChainDocument;
    const all = document.capsules ?? [];
    // The meta chain notes heads after their records. Records of an import have the times of another ledger.
    const isLater = (record: StoredRecord) => (id === "meta" ? signedAt(record) >= moment : signedAt(record) > moment);
    const end = id === chain ? place : claim["origin"] ? (meta.includes(`"${id}"`) ? -1 : 0) : all.findIndex(isLater);
    const records = end < 0 ? all : all.slice(0, end);
    if (id === "meta") meta = records.map((record) => record["canonical"]).join("\n");
    else total += records.length;
    for (const record of records) {
      texts.push(record["canonical"] ?? "");
      signers.add(record["signed_by"]);
    }
    if (records.length || !all.length) kept.push(claim);
    if (records.length === all.length) continue;
    document.capsules = records;
    for (const one of [document, claim]) shorten(one, records);
    files.push([`${id}.json`, records.length ? JSON.stringify(document) : null]);
  }
  const known = texts.join("\n");
  const blobs = names.filter((name) => BLOB_FILE.test(name));
  const lost = blobs.filter((name) => !known.includes(BLOB_FILE.exec(name)?.[1] ?? ""));
  for (const name of [...lost, ...names.filter((name) => PAGE_FILES.test(name))]) files.push([name, null]);
  if (typeof index["blobs"] === "number") index["blobs"] = blobs.length - lost.length;
  if (typeof index["capsule_count"] === "number") index["capsule_count"] = total;
  index.meta = kept.find((claim) => claim["id"] === "meta") ?? null;
  index.chains = kept.filter((claim) => claim["id"] !== "meta");
  if (typeof index["chain_count"] === "number") index["chain_count"] = index.chains.length;
  for (const name of ["keys", "pq_keys"]) {
    if (index[name]) index[name] = Object.fromEntries(Object.entries(index[name] as object).filter(([signer]) => signers.has(signer)));
  }
  return [...files, ["index.json", JSON.stringify(index)]];
}
