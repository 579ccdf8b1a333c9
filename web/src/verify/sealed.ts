/** A sealed record: the exact text that was hashed, and the seal over it. The twin of `aver.capsule.sealed`. */

import { canonicalNumber, splitOffKeys } from "./canonical.ts";
import { sha3Hex } from "./digest.ts";
import { BadInput, type Json, type JsonObject, Unreadable, encoder, isObject, readWithForm } from "./json.ts";
import { readKind } from "./block.ts";
import { codePoints, isPrintable } from "./text.ts";

export const SEAL_KEYS = ["hash", "signature", "signature_pq", "signed_at", "signed_by"] as const;

/** Longest field of a seal. An ML-DSA-65 signature, the longest there is, has 6,618 hex digits. */
const SEAL_TEXT_MAX = 16 * 1024;

interface Seal {
  hash: string;
  signature: string;
  signature_pq: string;
  signed_at: string;
  signed_by: string;
}

/** A record as it is stored. Anyone may have written any part of it. */
export class Sealed {
  readonly canonical: string;
  readonly hash: string;
  readonly signature: string;
  readonly signature_pq: string;
  readonly signed_at: string;
  readonly signed_by: string;
  /** The chain that it was read from. */
  chain: string | null = null;
  private parsed: Json | undefined = undefined;
  private hasCanonicalForm = false;
  private digest: string | undefined = undefined;

  constructor(canonical: string, seal: Seal, chain: string | null = null) {
    this.canonical = canonical;
    this.hash = seal.hash;
    this.signature = seal.signature;
    this.signature_pq = seal.signature_pq;
    this.signed_at = seal.signed_at;
    this.signed_by = seal.signed_by;
    this.chain = chain;
  }

  /** Take the hash that another thread computed from the same text. */
  adoptHash(digest: string): void {
    this.digest ??= digest;
  }

  /** SHA3-256 of the text. Only for one that is well formed: another has no bytes. */
  get computedHash(): string {
    this.digest ??= sha3Hex(encoder.encode(this.canonical));
    return this.digest;
  }

  /** The content as the strict reader gives it, parsed once. Raises `Unreadable`. */
  get value(): Json {
    if (this.parsed === undefined) {
      if (!this.canonical.isWellFormed()) throw new Unreadable("not UTF-8");
      const { value, isCanonical } = readWithForm(this.canonical, canonicalNumber);
      this.parsed = value;
      this.hasCanonicalForm = isCanonical;
    }
    return this.parsed;
  }

  /** Whether the text is the canonical form of its value. Raises `Unreadable`. */
  get isCanonical(): boolean {
    void this.value;
    return this.hasCanonicalForm;
  }

  /** The content. Raises `BadInput` if it is not a JSON object. */
  get content(): JsonObject {
    const value = this.value;
    if (!isObject(value)) throw new BadInput("the sealed bytes are not a JSON object");
    return value;
  }

  get kind(): string {
    return readKind(this.content);
  }

  /** The id that the content names. */
  get id(): string {
    const id = this.content.get("id");
    return typeof id === "string" ? id : String(id);
  }
}

/** Read a capsule with its seal from the JSON of one object. Takes the form that has the stored hash. */
export function sealedFromJson(data: Uint8Array | string): Sealed {
  const { parted, forms } = splitOffKeys(data, SEAL_KEYS);
  const texts = forms();
  const first = texts.next().value as string;
  const seal = readSeal(parted, (key) => new BadInput(`${key} must be a string`));
  const sealed = new Sealed(first, seal);
  for (let found = sealed; ; ) {
    if (found.computedHash === found.hash) return found;
    const next = texts.next();
    if (next.done) return sealed;
    found = new Sealed(next.value, seal);
  }
}

/** The parts of a seal in an object; a part that is missing or null is empty. */
export function readSeal(entry: JsonObject, wrongType: (key: string) => BadInput): Seal {
  const seal = { hash: "", signature: "", signature_pq: "", signed_at: "", signed_by: "" };
  for (const key of SEAL_KEYS) {
    const value = entry.get(key) ?? "";
    if (typeof value !== "string") throw wrongType(key);
    seal[key] = value;
  }
  return seal;
}

/** Return the record. Raises `Unreadable` if a field of its seal is far too long or not printable. */
export function checkSealFields(sealed: Sealed): Sealed {
  for (const key of SEAL_KEYS) {
    const { length } = sealed[key];
    if ((length > SEAL_TEXT_MAX && codePoints(sealed[key]) > SEAL_TEXT_MAX) || !isPrintable(sealed[key])) {
      throw new Unreadable(`its ${key} cannot be part of a seal`);
    }
  }
  return sealed;
}
