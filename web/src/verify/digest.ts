/** The hashes: SHA3-256 for capsules, SHA-256 for receipts and blobs; both as lower-case hex. */

import { sha256 } from "@noble/hashes/sha2.js";
import { encoder } from "./json.ts";
import { sha3 } from "./sha3.ts";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function toHex(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) out += HEX[byte];
  return out;
}

/** The value of a hex digit. */
function readDigit(unit: number): number {
  return unit < 0x3a ? unit - 0x30 : (unit | 0x20) - 0x57;
}

/** The bytes of a text that is known to be lower-case hex. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = 16 * readDigit(text.charCodeAt(2 * at)) + readDigit(text.charCodeAt(2 * at + 1));
  return bytes;
}

export function sha3Hex(data: Uint8Array): string {
  return toHex(sha3(data));
}

export function sha256Bytes(data: Uint8Array): Uint8Array {
  return sha256(data);
}

export function sha256Hex(data: Uint8Array | string): string {
  return toHex(sha256(typeof data === "string" ? encoder.encode(data) : data));
}

/** SHA-256 of data that comes in pieces. */
export function startSha256(): { update(data: Uint8Array): void; hex(): string } {
  const hash = sha256.create();
  return { update: (data) => void hash.update(data), hex: () => toHex(hash.digest()) };
}

/** The bytes of base64 with its padding, and without white space; null for any other text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  const digits = text.endsWith("==") ? text.slice(0, -2) : text.endsWith("=") ? text.slice(0, -1) : text;
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(digits)) return null;
  const units = atob(text);
  const bytes = new Uint8Array(units.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = units.charCodeAt(at);
  return bytes;
}

export const HEX64 = /^[0-9a-f]{64}$/;
