/**
 * Ed25519 by the one rule: S < L, neither A nor R of small order, A canonically encoded, and R = encode([S]B − [k]A) byte
 * for byte. The twin of `aver.keys.algorithms`.
 *
 * The platform's Ed25519 is some thirty times as fast as JavaScript, but answers later and accepts points of small order.
 * So this module checks the encodings itself and asks the platform for the equation. `prefetch` asks about many signatures
 * at once; `verify` then answers at once, and computes with noble's points what nobody asked for.
 *
 * `checkPlatform` gives known cases to the platform. If one answer is wrong, or it has no Ed25519, noble computes all.
 */

import { mulAddUnsafe } from "@noble/curves/abstract/curve.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { L, Point } from "./curves.ts";
import { fromHex, toHex } from "./digest.ts";
import { encoder } from "./json.ts";

const SIGNATURE = /^[0-9a-f]{128}$/;
const PUBLIC = /^[0-9a-f]{64}$/;
/** Digits of a signature. Only these are kept by name: parts of another length could spell the name of another question. */
const SIGNATURE_DIGITS = 128;

/** The encodings of points of small order, without the bit of the sign. The last two are not canonical. */
const SMALL_ORDER = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** The hex of the field's prime, little-endian, after its first byte. */
const P_AFTER_FIRST = `${"f".repeat(60)}7f`;

/** Answers that are kept. A slice of a chain has far fewer records. */
const ANSWERS_KEPT = 20_000;
/** Imported public keys that are kept. A chain has a handful of signers. */
const KEYS_KEPT = 64;

/** Whether it has the form of a signature. Checks no key. */
export function isSignatureHex(signature: string): boolean {
  return SIGNATURE.test(signature);
}

function readLittleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let at = bytes.length - 1; at >= 0; at--) value = (value << 8n) | BigInt(bytes[at] as number);
  return value;
}

/** The hex of an encoded point without the bit of its sign, which is the highest of the last byte. */
function withoutSign(pointHex: string): string {
  const high = Number.parseInt(pointHex[62] as string, 16) & 7;
  return `${pointHex.slice(0, 62)}${high}${pointHex[63]}`;
}

/** Whether y, an encoded point without its sign, is below the field's prime, whose bytes are ed ff … ff 7f. */
function isBelowP(y: string): boolean {
  return y.slice(2) !== P_AFTER_FIRST || y.slice(0, 2) < "ed";
}

/** Whether the second half of a signature is below L. Its last byte decides in nearly every case. */
function isBelowL(scalarHex: string): boolean {
  const last = scalarHex.slice(62);
  return last < "10" || (last === "10" && readLittleEndian(fromHex(scalarHex)) < L);
}

/** Whether the encodings are those that the rule allows; the equation is not checked. */
export function hasGoodForm(publicHex: string, signature: string): boolean {
  if (!PUBLIC.test(publicHex) || !SIGNATURE.test(signature)) return false;
  const key = withoutSign(publicHex);
  if (SMALL_ORDER.has(key) || SMALL_ORDER.has(withoutSign(signature.slice(0, 64)))) return false;
  return isBelowP(key) && isBelowL(signature.slice(64));
}

/** The equation, computed with noble's points: R = encode([S]B − [k]A). */
export function holdsByPoints(publicHex: string, message: Uint8Array, signature: string): boolean {
  if (!hasGoodForm(publicHex, signature)) return false;
  try {
    const key = Point.fromHex(publicHex, true);
    const first = fromHex(signature.slice(0, 64));
    const hashed = new Uint8Array(64 + message.length);
    hashed.set(first);
    hashed.set(fromHex(publicHex), 32);
    hashed.set(message, 64);
    const k = readLittleEndian(sha512(hashed)) % L;
    const s = readLittleEndian(fromHex(signature.slice(64)));
    const sum = mulAddUnsafe(Point, [Point.BASE, key.negate()], [s, k]);
    return toHex(sum.toBytes()) === signature.slice(0, 64);
  } catch {
    return false; // The key is no point of the curve.
  }
}

/** Whether the bytes encode a point of prime order, canonically: the only ones that a key pair can have. */
export function isPrimeOrderPoint(publicHex: string): boolean {
  try {
    if (!PUBLIC.test(publicHex)) return false;
    const y = withoutSign(publicHex);
    return !SMALL_ORDER.has(y) && isBelowP(y) && Point.fromHex(publicHex, true).isTorsionFree();
  } catch {
    return false; // No point of the curve has this encoding.
  }
}

interface KnownCase {
  public: string;
  message: string;
  signature: string;
  valid: boolean;
}

export interface SignatureQuestion {
  publicHex: string;
  message: string;
  signature: string;
}

/** Verifies Ed25519 signatures, by the platform where it can be trusted to. */
export class Ed25519 {
  private isPlatformGood = false;
  private readonly answers = new Map<string, boolean>();
  private readonly keys = new Map<string, Promise<CryptoKey>>();

  /** Give the known cases to the platform. Returns whether it is used from now on. */
  async checkPlatform(cases: readonly KnownCase[]): Promise<boolean> {
    this.isPlatformGood = false;
    if (typeof globalThis.crypto?.subtle?.importKey !== "function") return false;
    for (const { public: key, message, signature, valid } of cases) {
      const isValid = hasGoodForm(key, signature) && (await this.askPlatform(key, encoder.encode(message), signature));
      if (isValid !== valid) return false;
    }
    this.isPlatformGood = cases.length > 0;
    return this.isPlatformGood;
  }

  get usesPlatform(): boolean {
    return this.isPlatformGood;
  }

  /** Ask the platform about these signatures, all at once, and keep the answers for `verify`. */
  async prefetch(questions: Iterable<SignatureQuestion>): Promise<void> {
    if (!this.isPlatformGood) return;
    if (this.answers.size > ANSWERS_KEPT) this.answers.clear();
    const waiting: Promise<void>[] = [];
    for (const { publicHex, message, signature } of questions) {
      const name = publicHex + signature + message;
      if (this.answers.has(name) || !hasGoodForm(publicHex, signature)) continue;
      waiting.push(
        this.askPlatform(publicHex, encoder.encode(message), signature).then((isValid) => {
          this.answers.set(name, isValid);
        }),
      );
    }
    await Promise.all(waiting);
  }

  /** Take the answers that another thread gave to these questions, and keep them for `verify`. */
  adopt(questions: readonly SignatureQuestion[], answers: readonly boolean[]): void {
    if (this.answers.size > ANSWERS_KEPT) this.answers.clear();
    questions.forEach(({ publicHex, message, signature }, at) => {
      if (signature.length === SIGNATURE_DIGITS) this.answers.set(publicHex + signature + message, answers[at] === true);
    });
  }

  /** Whether a signature is valid under the rule. */
  verify(publicHex: string, message: string | Uint8Array, signature: string): boolean {
    if (typeof message === "string" && signature.length === SIGNATURE_DIGITS) {
      const known = this.answers.get(publicHex + signature + message);
      if (known !== undefined) return known;
    }
    return holdsByPoints(publicHex, typeof message === "string" ? encoder.encode(message) : message, signature);
  }

  private async askPlatform(publicHex: string, message: Uint8Array<ArrayBuffer>, signature: string): Promise<boolean> {
    try {
      if (this.keys.size > KEYS_KEPT) this.keys.clear();
      let key = this.keys.get(publicHex);
      if (key === undefined) {
        key = crypto.subtle.importKey("raw", fromHex(publicHex), "Ed25519", false, ["verify"]);
        this.keys.set(publicHex, key);
      }
      return await crypto.subtle.verify("Ed25519", await key, fromHex(signature), message);
    } catch {
      return false; // The bytes are no point of the curve.
    }
  }
}
