/**
 * The keys that the reader pinned, with where they came from and when. They are kept in this browser, per origin; on
 * file://, where pages may share one store, nothing is kept. The same store remembers the head of each ledger's meta chain.
 */

import { signal } from "@preact/signals";
import { readJson } from "../verify/json.ts";
import { PublicKey, readRingEntry } from "../verify/ring.ts";
import type { PinnedKey, RememberedHead } from "../worker/protocol.ts";

export interface Pin extends PinnedKey {
  origin: string;
  at: string;
}

export const pins = signal<Pin[]>([]);

const KEPT = location.protocol !== "file:";

function openStore(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("aver", 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore("pins", { keyPath: "publicKey" });
      opening.result.createObjectStore("heads", { keyPath: "ledger" });
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

/** Load the pins of earlier visits. Storage that is refused is no error: the page then keeps nothing. */
export async function loadPins(): Promise<void> {
  if (!KEPT) return;
  try {
    const store = await openStore();
    const asking = store.transaction("pins").objectStore("pins").getAll();
    asking.onsuccess = () => {
      pins.value = asking.result as Pin[];
    };
  } catch {
    // Private windows refuse it.
  }
}

/** Pin a key, or change nothing if it is pinned. */
export function pinKey(key: PublicKey, origin: string): void {
  if (pins.value.some((pin) => pin.publicKey === key.ed25519 && (pin.publicKeyPq || !key.mlDsa))) return;
  const pin: Pin = { publicKey: key.ed25519, publicKeyPq: key.mlDsa, origin, at: new Date().toISOString() };
  pins.value = [...pins.value.filter((one) => one.publicKey !== pin.publicKey), pin];
  void change((store) => store.put(pin));
}

export function unpinKey(publicKey: string): void {
  pins.value = pins.value.filter((pin) => pin.publicKey !== publicKey);
  void change((store) => store.delete(publicKey));
}

async function change(work: (store: IDBObjectStore) => void): Promise<void> {
  if (!KEPT) return;
  try {
    work((await openStore()).transaction("pins", "readwrite").objectStore("pins"));
  } catch {
    // The pin holds for this visit.
  }
}

/** The head of a ledger's meta chain that this browser saw last; null where it saw none. */
export async function recallHead(ledger: string): Promise<RememberedHead | null> {
  if (!KEPT) return null;
  try {
    const asking = (await openStore()).transaction("heads").objectStore("heads").get(ledger);
    return await new Promise((resolve) => {
      asking.onsuccess = () => resolve((asking.result as RememberedHead | undefined) ?? null);
      asking.onerror = () => resolve(null);
    });
  } catch {
    return null;
  }
}

/** Remember the head of a ledger's meta chain, unless a longer one is remembered. */
export async function rememberHead(ledger: string, head: RememberedHead): Promise<void> {
  const before = await recallHead(ledger);
  if (!KEPT || (before !== null && before.count >= head.count)) return;
  try {
    (await openStore()).transaction("heads", "readwrite").objectStore("heads").put({ ledger, count: head.count, hash: head.hash });
  } catch {
    // The next visit has nothing to compare with.
  }
}

/** The keys in a text: 64 digits, or a file of `aver keys export` or known keys. Raises an error that says why not. */
export function readKeys(text: string): PublicKey[] {
  const plain = text.trim();
  if (/^[0-9a-f]{16}$/.test(plain)) throw new Error("These 16 digits are only a fingerprint. Ask for the whole key: 64 digits.");
  if (/^[0-9A-Fa-f]{64}$/.test(plain)) return [new PublicKey(plain.toLowerCase())];
  const data = readJson(plain);
  const found: PublicKey[] = [];
  const look = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(look);
    else if (value instanceof Map) {
      if (value.has("identity") && value.has("public_key")) found.push(readRingEntry(value).key);
      else if (typeof value.get("public_key") === "string" && value.has("public_key_pq")) {
        found.push(new PublicKey(value.get("public_key"), value.get("public_key_pq")));
      } else for (const item of value.values()) look(item);
    } else if (typeof value === "string" && /^[0-9a-f]{64}$/.test(value)) found.push(new PublicKey(value));
  };
  look(data);
  if (!found.length) throw new Error("There is no key in it. Give 64 hex digits, or the file that aver keys export writes.");
  return found;
}
