/**
 * Passkeys: keys that an authenticator holds. They sign statements, and nothing else. The twin of `aver.keys.passkey`.
 *
 * This module has their form, and needs no curve: the page's own thread uses it. `passkey_signature` verifies.
 */

import { fromHex, sha256Bytes, toHex } from "./digest.ts";
import { BadInput, type Json } from "./json.ts";
import { checkObject, textField } from "./statement.ts";

export const ES256 = "ES256";
export const EDDSA = "EdDSA";
/** Most characters of the three parts of a signature together. */
const SIGNATURE_MAX = 4096;
/** Most characters of a credential's id: 1,023 bytes, the limit of WebAuthn, in base64url. */
const CREDENTIAL_MAX = 1364;
const RP_ID_MAX = 253;
/** The order of P-256. */
export const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const BASE64URL = /^[A-Za-z0-9_-]+$/;
const P256_PUBLIC = /^04[0-9a-f]{128}$/;
const ED25519_PUBLIC = /^[0-9a-f]{64}$/;
// A name that ends with a number is an address, and WebAuthn takes no addresses. So the last label begins with a letter.
export const RP_ID = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Encode bytes as base64url without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of base64url without padding. Raises `BadInput` for any other text, also for one with stray bits at its end. */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> {
  if (!BASE64URL.test(text) || text.length % 4 === 1) throw new BadInput("it is not base64url without padding");
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (unit) => unit.charCodeAt(0));
  if (encodeBase64url(bytes) !== text) throw new BadInput("its base64url has stray bits at the end");
  return bytes;
}

/** The public half of a passkey, the name of the site that it belongs to, and the id of its credential. */
export class Passkey {
  readonly alg: string;
  readonly publicKey: string;
  readonly rpId: string;
  readonly credential: string;
  readonly fingerprint: string;

  constructor(data: Json | undefined, where: string) {
    const object = checkObject(data, `${where}.passkey`, ["alg", "public_key", "rp_id", "credential"]);
    const alg = object.get("alg");
    if (alg !== ES256 && alg !== EDDSA) throw new BadInput(`${where}: passkey.alg must be one of ${ES256}, ${EDDSA}`);
    this.alg = alg;
    this.publicKey = textField(object.get("public_key"), `${where}: passkey.public_key`, alg === ES256 ? P256_PUBLIC : ED25519_PUBLIC);
    this.rpId = textField(object.get("rp_id"), `${where}: passkey.rp_id`, RP_ID);
    this.credential = textField(object.get("credential"), `${where}: passkey.credential`, BASE64URL);
    if (this.rpId.length > RP_ID_MAX || this.credential.length > CREDENTIAL_MAX) throw new BadInput(`${where}: the passkey is too long`);
    decodeBase64url(this.credential);
    this.fingerprint = toHex(sha256Bytes(fromHex(this.publicKey))).slice(0, 16);
  }

  /** The passkey as JSON, as a record holds it. */
  fields(): Json {
    return new Map<string, Json>([
      ["alg", this.alg],
      ["public_key", this.publicKey],
      ["rp_id", this.rpId],
      ["credential", this.credential],
    ]);
  }

  equals(other: unknown): boolean {
    return (
      other instanceof Passkey &&
      other.alg === this.alg &&
      other.publicKey === this.publicKey &&
      other.rpId === this.rpId &&
      other.credential === this.credential
    );
  }
}

/** What an authenticator and its browser give for one statement. Each part is base64url without padding. */
export interface PasskeySignature {
  authenticator_data: string;
  client_data: string;
  signature: string;
}

/** Read the form of a signature. Raises `BadInput`; `passkeyProblem` checks what it says. */
export function readPasskeySignature(data: Json | undefined, where: string): PasskeySignature {
  const object = checkObject(data, where, ["authenticator_data", "client_data", "signature"]);
  const part = (name: string) => textField(object.get(name), `${where}.${name}`, BASE64URL);
  const signed = { authenticator_data: part("authenticator_data"), client_data: part("client_data"), signature: part("signature") };
  const size = Object.values(signed).reduce((sum, text) => sum + text.length, 0);
  if (size > SIGNATURE_MAX) throw new BadInput(`${where} has more than ${SIGNATURE_MAX} characters`);
  return signed;
}

/** The challenge that a browser gets for the bytes of a statement: base64url of their SHA-256. */
export function statementChallenge(message: Uint8Array): string {
  return encodeBase64url(sha256Bytes(message));
}

/** R and S of a signature in DER; null if it has another form, or one of them is out of range. */
export function readDer(bytes: Uint8Array): { r: bigint; s: bigint } | null {
  let place = 2;
  const readInteger = (): bigint | null => {
    const size = bytes[place + 1] ?? 0;
    const digits = bytes.subarray(place + 2, place + 2 + size);
    // At least one byte, none missing, not negative, and no zero that is not needed. 33 bytes are enough for P-256.
    if (bytes[place] !== 0x02 || size < 1 || size > 33 || digits.length !== size) return null;
    if ((digits[0] as number) & 0x80 || (digits[0] === 0 && size > 1 && !((digits[1] as number) & 0x80))) return null;
    place += 2 + size;
    const value = BigInt(`0x${toHex(digits)}`);
    return value >= 1n && value < P256_ORDER ? value : null;
  };
  if (bytes[0] !== 0x30 || bytes[1] !== bytes.length - 2) return null;
  const r = readInteger();
  const s = r === null ? null : readInteger();
  return r === null || s === null || place !== bytes.length ? null : { r, s };
}

/** The signature of an authenticator in the one form that Aver takes: with the low S. */
export function normaliseEs256(bytes: Uint8Array): Uint8Array {
  const read = readDer(bytes);
  if (read === null) throw new BadInput("the authenticator's signature is not in DER");
  const { r, s } = read;
  const parts = [r, s > P256_ORDER / 2n ? P256_ORDER - s : s].map((value) => {
    const even = value.toString(16).length % 2 ? `0${value.toString(16)}` : value.toString(16);
    const hex = Number.parseInt(even.slice(0, 2), 16) & 0x80 ? `00${even}` : even;
    return `02${(hex.length / 2).toString(16).padStart(2, "0")}${hex}`;
  });
  const body = parts.join("");
  return fromHex(`30${(body.length / 2).toString(16).padStart(2, "0")}${body}`);
}
