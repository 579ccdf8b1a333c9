/** Compare the claims of a bundle's index with its chains (check `index`). The twin of `aver.ledger.bundle.index_check`. */

import { splitChainName } from "../block.ts";
import type { Directory } from "../bytes.ts";
import { sortTexts } from "../canonical.ts";
import type { Json } from "../json.ts";
import type { Ring } from "../ring.ts";
import { codePoints, cutText, isPrintable, show } from "../text.ts";
import { type Place, type Tally, place } from "../verdict.ts";
import type { Checkpoint, RecordedKey } from "./head.ts";
import { BLOBS, type BundleIndex, type ChainClaim, HEAD, INDEX, META, fileOf } from "./layout.ts";
import { type ChainFacts, SIGNERS_MAX, TITLE_MAX } from "./summary.ts";

const CHECK = "index";
const NAME_SHOWN = 80;

/** Who claims something about a chain: the index, or the summary in the chain's own file. */
export interface ClaimSource {
  name: string;
  /** Whether the bundle is of an Aver ledger. Only there are all claims made by Aver's code. */
  isAvers: boolean;
}

/** Compare a chain's length and ends with the claims about it. If they differ, either may be wrong. */
export function checkChainClaim(claim: ChainClaim, facts: ChainFacts, source: ClaimSource, tally: Tally, chain: string | null): void {
  const { count } = facts;
  const who = source.name;
  if (claim.length !== null && claim.length !== count) {
    const code = claim.length > count ? "TRUNCATED" : "ROLLBACK";
    tally.fail(CHECK, code, `${who} claims ${claim.length} records; ${count} are here`, place(chain, Math.min(claim.length, count)));
  } else if (count && claim.headHash !== null && claim.headHash !== facts.headHash) {
    tally.fail(CHECK, "ROLLBACK", `${who} claims another last record`, place(chain, count - 1));
  }
  if (count && claim.genesisHash !== null && claim.genesisHash !== facts.genesisHash) {
    tally.fail(CHECK, "CHAIN_IDENTITY", `${who} claims another first record`, place(chain, 0));
  }
}

/** Compare the claims that a reader of the index is shown. `allHashesOk` is null if no hash was computed. */
export function checkShownClaims(
  claim: ChainClaim,
  facts: ChainFacts,
  source: ClaimSource,
  tally: Tally,
  where: Place,
  allHashesOk: boolean | null,
  name: string,
): void {
  if (source.isAvers) warnOfKeys(claim.unknown, source.name, tally, where);
  if (facts.count === 0) return;
  const fail = (what: string, claimed: Json) => {
    tally.fail(CHECK, "INDEX_MISMATCH", `${source.name} claims ${what} that the records do not have: ${show(claimed)}`, where);
  };
  if (claim.allHashesOk !== null && allHashesOk !== null && claim.allHashesOk !== allHashesOk) {
    fail("an all_hashes_ok", claim.allHashesOk);
  }
  if (claim.startedAt !== null && claim.startedAt !== facts.startedAt) fail("a time of its first record", claim.startedAt);
  if (claim.endedAt !== null && claim.endedAt !== facts.endedAt) fail("a time of its last record", claim.endedAt);
  if (facts.signers.size <= SIGNERS_MAX) {
    const actual = sortTexts(facts.signers);
    const isSame = claim.signedBy?.length === actual.length && actual.every((one, at) => claim.signedBy?.[at] === one);
    if (claim.signedBy !== null && !isSame) fail("signers", claim.signedBy);
  } else {
    tally.skip(CHECK, `a chain has more than ${SIGNERS_MAX} signers, which were not compared`, { matters: true });
  }
  if (source.isAvers && name) {
    if (claim.tool && claim.tool !== splitChainName(name)[0]) fail("a tool", claim.tool);
    if (claim.title !== null && claim.title !== (facts.title || name)) fail("a title", claim.title);
    if (claim.dbPath !== null && claim.dbPath !== "") fail("a path", claim.dbPath);
  }
  if (!source.isAvers && ![null, facts.title, cutText(facts.rawTitle, TITLE_MAX), name].includes(claim.title)) {
    const words = `${source.name} claims a title that the first request does not have: ${show(claim.title)}`;
    tally.warn(CHECK, "INDEX_MISMATCH", words, where);
  }
}

/** Compare where a chain is said to come from with its first record. `origin` is null where it was made here. */
export function checkOriginClaim(claim: ChainClaim, origin: Json, source: ClaimSource, tally: Tally, where: Place): void {
  if (claim.origin === null || claim.origin === origin) return;
  tally.fail(CHECK, "INDEX_MISMATCH", `${source.name} claims an origin that the records do not have: ${show(claim.origin)}`, where);
}

/** Warn of keys that Aver does not write: a reader may show their values, and nothing was compared. */
function warnOfKeys(unknown: string[], who: string, tally: Tally, where: Place): void {
  if (!unknown.length) return;
  const listed = unknown.map((key) => show(key)).join(", ");
  tally.warn(CHECK, "INDEX_MISMATCH", `${who} has keys that Aver does not know, and which were not compared: ${listed}`, where);
}

/** Warn of members of records that Aver does not write. No signature covers them, and a reader may show them. */
export function warnOfMembers(unknown: Map<string, number>, tally: Tally, chain: string | null, source: string | null = null): void {
  if (!unknown.size) return;
  const listed = [...unknown.keys()].map((key) => show(key)).join(", ");
  const words = `records have members beside \`canonical\` that Aver does not know, and that nobody signed: ${listed}`;
  tally.warn(CHECK, "INDEX_MISMATCH", words, place(chain, Math.min(...unknown.values()), source));
}

/** Compare the keys in an Aver ledger's index with each other and with keys that are known or recorded. */
export function checkKeyClaims(
  index: BundleIndex,
  head: Checkpoint | null,
  signers: ReadonlySet<string>,
  ring: Ring,
  recorded: ReadonlyMap<string, RecordedKey>,
  tally: Tally,
): void {
  const fail = (words: string) => tally.fail(CHECK, "INDEX_MISMATCH", words, place(null, null, INDEX));
  warnOfKeys(index.unknown, "the index", tally, place(null, null, INDEX));
  const claimed = new Map(index.keys ?? []);
  if (index.publicKey && index.fingerprint !== null) {
    if (!claimed.has(index.fingerprint)) claimed.set(index.fingerprint, index.publicKey);
    if (claimed.get(index.fingerprint) !== index.publicKey) fail("public_key and keys have two keys of one fingerprint");
  }
  if (Boolean(index.publicKey) !== Boolean(index.fingerprint)) fail("public_key and fingerprint are not those of one key");
  for (const [fingerprint, key] of claimed) {
    const known = new Set(ring.lookup(fingerprint).map((one) => one.ed25519));
    const record = recorded.get(fingerprint);
    if (record !== undefined) known.add(record.publicKey);
    if (cutText(key, 16) !== fingerprint || (known.size && !known.has(key))) {
      fail(`its key of ${show(fingerprint)} is another than that signer's`);
    } else if (!signers.has(fingerprint) && fingerprint !== index.fingerprint) {
      fail(`it lists the key ${show(fingerprint)}, which signed nothing here`);
    }
  }
  for (const [fingerprint, key] of index.pqKeys ?? []) {
    const known = new Set(ring.lookup(fingerprint).map((one) => one.mlDsa).filter(Boolean));
    const record = recorded.get(fingerprint);
    if (record !== undefined) known.add(record.publicKeyPq);
    if (!claimed.has(fingerprint) || (known.size && !known.has(key))) {
      fail(`its ML-DSA-65 key of ${show(fingerprint)} is another than that signer's`);
    }
  }
  const signersOfHead = head === null ? [] : head.statement.signatures.map((one) => one.by);
  if (head !== null && index.fingerprint !== null && !signersOfHead.includes(index.fingerprint)) {
    fail(`it claims that the ledger's key is ${show(index.fingerprint)}; another signed ${HEAD}`);
  }
  if (head !== null && index.isPart !== head.isPart) {
    fail(`it claims ${index.isPart ? "a part" : "all"} of the ledger, and ${HEAD} states otherwise`);
  }
}

/** Warn of files in the directory that the index does not list, and of blobs that no record refers to. */
export async function checkUnlistedFiles(
  directory: Directory,
  index: BundleIndex,
  blobs: { has(digest: string): boolean },
  known: ReadonlySet<string>,
  tally: Tally,
): Promise<void> {
  const listed = new Set([INDEX, HEAD, ...index.chains.map(fileOf), ...known]);
  if (index.meta !== null) listed.add(META);
  const warn = (name: string, why: string) => {
    const shown = isPrintable(name) && codePoints(name) <= NAME_SHOWN ? name : show(name, NAME_SHOWN).slice(1);
    tally.warn(CHECK, "UNLISTED_FILE", `${shown}: ${why}`, place(null, null, shown));
  };
  for (const name of await directory.list()) {
    const inside = name === BLOBS ? await directory.list(BLOBS) : null;
    if (inside !== null) {
      for (const blob of inside) if (!blobs.has(blob)) warn(`${BLOBS}/${blob}`, "no record refers to it");
    } else if (!listed.has(name)) {
      warn(name, "the index does not list it, and it was not verified");
    }
  }
}
