/**
 * Verifies the signatures of passkeys. The twin of `aver.keys.passkey`, which lists the rules in order.
 */

import { mulAddUnsafe } from "@noble/curves/abstract/curve.js";
import { P256 } from "./curves.ts";
import { sha256Bytes, toHex } from "./digest.ts";
import type { Ed25519 } from "./ed25519.ts";
import { BadInput, type Json, encoder, isObject, readJson } from "./json.ts";
import { ES256, P256_ORDER, type Passkey, type PasskeySignature, RP_ID, decodeBase64url, readDer, statementChallenge } from "./passkey.ts";

const AUTHENTICATOR_DATA_MIN = 37;
const FLAGS_AT = 32;
const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const PORT_MAX = 65_535;
const ORIGIN = /^(https?):\/\/([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?$/;

/** Whether the bytes of a P-256 key are a point of the curve. */
export function isP256Point(publicKey: string): boolean {
  try {
    P256.fromHex(publicKey).assertValidity();
    return true;
  } catch {
    return false;
  }
}

/** Why a signature of the bytes of a statement does not hold; null if it holds. Raises nothing. */
export function passkeyProblem(passkey: Passkey, message: Uint8Array, signed: PasskeySignature, ed25519: Ed25519): string | null {
  try {
    const data = decodeBase64url(signed.authenticator_data);
    const client = decodeBase64url(signed.client_data);
    const signature = decodeBase64url(signed.signature);
    const problem = clientDataProblem(client, passkey.rpId, statementChallenge(message)) ?? authenticatorDataProblem(data, passkey.rpId);
    if (problem !== null) return problem;
    // 5. Last, because it costs the most.
    const covered = new Uint8Array(data.length + 32);
    covered.set(data);
    covered.set(sha256Bytes(client), data.length);
    if (passkey.alg === ES256) return es256Problem(passkey.publicKey, covered, signature);
    return ed25519.verify(passkey.publicKey, covered, toHex(signature)) ? null : "its signature is not that of the key";
  } catch (error) {
    if (error instanceof BadInput) return error.message;
    throw error;
  }
}

function clientDataProblem(client: Uint8Array, rpId: string, challenge: string): string | null {
  // 1. The reader refuses repeated keys: two readers could see two origins.
  const found = readJson(client);
  if (!isObject(found)) return "client_data is not an object";
  if (found.get("type") !== "webauthn.get") return "client_data is not of the type webauthn.get";
  // 2.
  if (found.get("challenge") !== challenge) return "it was signed for another statement";
  // 3. The value must be false itself.
  if (found.has("crossOrigin") && found.get("crossOrigin") !== false) return "it was signed inside a page of another origin";
  return isOriginOf(found.get("origin"), rpId) ? null : `it was signed on a page that does not belong to ${rpId}`;
}

/** Whether a page of this origin may use the passkeys of `rpId`. */
function isOriginOf(origin: Json | undefined, rpId: string): boolean {
  const match = typeof origin === "string" ? ORIGIN.exec(origin) : null;
  if (match === null) return false;
  const [, scheme, host, port] = match as unknown as [string, string, string, string | undefined];
  if (port !== undefined && Number(port) > PORT_MAX) return false;
  if (rpId === "localhost") return scheme === "http" && host === "localhost";
  return scheme === "https" && (host === rpId || (host.endsWith(`.${rpId}`) && RP_ID.test(host)));
}

function authenticatorDataProblem(data: Uint8Array, rpId: string): string | null {
  // 4.
  const site = toHex(sha256Bytes(encoder.encode(rpId)));
  if (data.length < AUTHENTICATOR_DATA_MIN || toHex(data.subarray(0, FLAGS_AT)) !== site) return `authenticator_data is not that of ${rpId}`;
  const flags = data[FLAGS_AT] as number;
  if (!(flags & USER_PRESENT)) return "nobody was present at the authenticator";
  return flags & USER_VERIFIED ? null : "the authenticator did not verify the person";
}

function es256Problem(publicKey: string, message: Uint8Array, signature: Uint8Array): string | null {
  const read = readDer(signature);
  if (read === null) return "its signature is not in DER";
  const { r, s } = read;
  // (r, n - s) verifies as well. Of the two forms one is refused, so that nobody can rewrite a sealed signature.
  if (s > P256_ORDER / 2n) return "its signature has a high S: write n - S instead";
  if (r < 1n || r >= P256_ORDER || s < 1n) return "its signature is not that of the key";
  try {
    // ECDSA: the point (e/s)G + (r/s)Q must have r as its x, where e is the digest of the message.
    const inverse = P256.Fn.inv(s);
    const digest = BigInt(`0x${toHex(sha256Bytes(message))}`) % P256_ORDER;
    const key = P256.fromHex(publicKey);
    key.assertValidity();
    const sum = mulAddUnsafe(P256, [P256.BASE, key], [P256.Fn.mul(digest, inverse), P256.Fn.mul(r, inverse)]);
    const holds = !sum.equals(P256.ZERO) && sum.toAffine().x % P256_ORDER === r;
    return holds ? null : "its signature is not that of the key";
  } catch {
    return "its signature is not that of the key"; // The bytes of the key are no point of the curve.
  }
}
