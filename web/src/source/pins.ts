/**
 * The keys that the reader pinned, with where they came from and when, and the heads that this browser has verified.
 *
 * Both belong to a ledger and its tenant, through whatever door its records come: a key that the reader pinned for one
 * ledger says nothing about another. Things that name no ledger share one scope, and no heads of them are remembered. Both
 * are kept in IndexedDB, which browsers keep apart by origin. On file://, where pages may share one store, they hold
 * until the page is closed.
 */

import { signal } from "@preact/signals";
import { canonicalJson } from "../verify/canonical.ts";
import { isPrimeOrderPoint } from "../verify/ed25519.ts";
import { BadInput, readJson } from "../verify/json.ts";
import { readKeyList, refuseIndex } from "../verify/key_list.ts";
import { PublicKey } from "../verify/ring.ts";
import type { PinnedKey, RememberedHeads } from "../worker/protocol.ts";

interface Pin extends PinnedKey {
  origin: string;
  at: string;
}

export const pins = signal<Pin[]>([]);

/** The scope of things that name no ledger. */
export const NO_LEDGER = "files";
/** The scope while nothing is open. Its pins go to the thing that is opened next. */
export const NOTHING_OPEN = "";
/** Most chains of a ledger whose heads are remembered. */
const HEADS_MAX = 20_000;

const KEPT = location.protocol !== "file:";
let scope = NOTHING_OPEN;
/** The pins and heads of this visit, by scope, for where the browser keeps none. */
const visit = { pins: new Map<string, Pin[]>(), heads: new Map<string, RememberedHeads>() };

function openStore(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("aver", 2);
    opening.onupgradeneeded = () => {
      for (const name of [...opening.result.objectStoreNames]) opening.result.deleteObjectStore(name);
      opening.result.createObjectStore("pins", { keyPath: ["scope", "publicKey"] });
      opening.result.createObjectStore("heads", { keyPath: "scope" });
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
    // Another tab has an older version of the store open: nothing waits for it.
    opening.onblocked = () => reject(new Error("the store is in use"));
  });
}

function settle<Result>(asking: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    asking.onsuccess = () => resolve(asking.result);
    asking.onerror = () => reject(asking.error);
  });
}

/** Change to the pins of a scope. Storage that is refused is no error: the page then keeps nothing. */
export async function enterScope(name: string): Promise<void> {
  if (name === scope) return;
  const carried = scope === NOTHING_OPEN ? pins.value : [];
  scope = name;
  pins.value = visit.pins.get(name) ?? [];
  if (KEPT && name !== NOTHING_OPEN) {
    try {
      const range = IDBKeyRange.bound([name], [name, []]);
      const kept = (await settle((await openStore()).transaction("pins").objectStore("pins").getAll(range))) as Pin[];
      if (scope !== name) return; // Another thing was opened meanwhile.
      pins.value = kept;
    } catch {
      // Private windows refuse it.
    }
  }
  for (const { origin, at: _, ...key } of carried) void pinKey(key, origin);
}

/** Whether a pinned key is one that its owner retired. */
export function isRetired({ entry = "" }: PinnedKey): boolean {
  return entry.includes('"status":"retired"');
}

/** Pin a key, or change nothing if as much of it is pinned. An older export does not take a retirement back. */
export async function pinKey(key: PinnedKey, origin: string): Promise<void> {
  const before = pins.value.find((pin) => pin.publicKey === key.publicKey);
  const isMore = before === undefined || (key.publicKeyPq && !before.publicKeyPq) || (key.entry && key.entry !== before.entry && !isRetired(before));
  if (!isMore) return;
  const pin: Pin = { publicKey: key.publicKey, publicKeyPq: key.publicKeyPq || (before?.publicKeyPq ?? ""), origin, at: new Date().toISOString() };
  const entry = before && isRetired(before) ? before.entry : key.entry || before?.entry;
  if (entry) pin.entry = entry;
  pins.value = [...pins.value.filter((one) => one !== before), pin];
  const kept = { scope, ...pin };
  await change((store) => store.put(kept));
}

export function unpinKey(publicKey: string): void {
  pins.value = pins.value.filter((pin) => pin.publicKey !== publicKey);
  const kept = [scope, publicKey];
  void change((store) => store.delete(kept));
}

/** Change what is kept. `work` must not ask for the scope: another thing may be open by then. */
async function change(work: (store: IDBObjectStore) => IDBRequest): Promise<void> {
  if (scope === NOTHING_OPEN) return;
  visit.pins.set(scope, pins.value);
  if (!KEPT) return;
  try {
    await settle<unknown>(work((await openStore()).transaction("pins", "readwrite").objectStore("pins")));
  } catch {
    // The pin holds for this visit.
  }
}

/** The heads of a ledger that this browser verified; none where it saw none. */
export async function recallHeads(ledger: string): Promise<RememberedHeads> {
  const seen = visit.heads.get(ledger) ?? [];
  if (!KEPT) return seen;
  try {
    const found = (await settle((await openStore()).transaction("heads").objectStore("heads").get(ledger))) as { heads?: RememberedHeads } | undefined;
    return found?.heads ?? [];
  } catch {
    return seen;
  }
}

/** Remember the heads of a ledger. A chain that was longer before keeps its longer head. */
export async function rememberHeads(ledger: string, heads: RememberedHeads): Promise<void> {
  const all = new Map(await recallHeads(ledger));
  for (const [chain, head] of heads) if ((all.get(chain)?.count ?? 0) < head.count) all.set(chain, head);
  visit.heads.set(ledger, [...all].slice(0, HEADS_MAX));
  if (!KEPT) return;
  try {
    const store = (await openStore()).transaction("heads", "readwrite").objectStore("heads");
    store.put({ scope: ledger, heads: visit.heads.get(ledger) });
  } catch {
    // The next visit has nothing to compare with.
  }
}

const NO_KEY = "This is no key. Give 64 hex digits, or the file that aver keys export writes.";

/** A key to be pinned. Raises an error where no key pair can have it, so that a typing error is found early. The twin of `PublicKey.check_usable`. */
export function toPin(key: PublicKey, entry = ""): PinnedKey {
  if (!isPrimeOrderPoint(key.ed25519)) throw new Error(`${key.fingerprint} is not a usable Ed25519 public key: nobody can sign with it. Copy the key again.`);
  return { publicKey: key.ed25519, publicKeyPq: key.mlDsa, entry };
}

/** The keys in a text: 64 digits, or a file of `aver keys export` or known keys. Raises an error that says why not. */
export function readKeys(text: string): PinnedKey[] {
  const plain = text.trim();
  if (/^[0-9a-f]{16}$/.test(plain)) throw new Error("These 16 digits are only a fingerprint. Ask for the whole key: 64 digits.");
  if (/^[0-9A-Fa-f]{64}$/.test(plain)) return [toPin(new PublicKey(plain.toLowerCase()))];
  if (!/^[[{]/.test(plain)) throw new Error(NO_KEY);
  let found: PinnedKey[];
  try {
    found = readPins(plain);
  } catch (error) {
    if (error instanceof BadInput) throw new Error(`${NO_KEY} It looks like a file, but cannot be read: ${error.message}.`);
    throw error;
  }
  if (!found.length) throw new Error(NO_KEY);
  return found;
}

/** The keys of a list, with what their owner published, to be pinned. */
export function readPins(text: Uint8Array | string): PinnedKey[] {
  refuseIndex(readJson(text));
  return readKeyList(text).map(({ key, entry }) => toPin(key, entry === null ? "" : canonicalJson(entry)));
}
