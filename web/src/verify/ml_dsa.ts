/** ML-DSA-65: pure FIPS 204 with an empty context. The twin of `aver.keys.algorithms`. */

import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { fromHex } from "./digest.ts";

const SIGNATURE = /^[0-9a-f]{6618}$/;
const PUBLIC = /^[0-9a-f]{3904}$/;

/** Whether it has the form of a signature. Checks no key. */
export function isMlDsaSignatureHex(signature: string): boolean {
  return SIGNATURE.test(signature);
}

/** Whether the signature is valid. */
export function verifyMlDsa(publicHex: string, message: Uint8Array, signature: string): boolean {
  if (!PUBLIC.test(publicHex) || !SIGNATURE.test(signature)) return false;
  try {
    return ml_dsa65.verify(fromHex(signature), message, fromHex(publicHex));
  } catch {
    return false;
  }
}
