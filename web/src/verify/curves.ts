/**
 * The points of edwards25519 and of P-256, from their parameters. noble's ready-made modules bring signing, further curves
 * and further protocols: more than the page has room for.
 */

import { edwards } from "@noble/curves/abstract/edwards.js";
import { weierstrass } from "@noble/curves/abstract/weierstrass.js";
import { P256_ORDER } from "./passkey.ts";

/** The prime of the field. */
const P = 2n ** 255n - 19n;
/** The order of the base point. */
export const L = 2n ** 252n + 27742317777372353535851937790883648493n;

export const Point = edwards({
  p: P,
  n: L,
  h: 8n,
  a: P - 1n,
  d: 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3n,
  Gx: 0x216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51an,
  Gy: 0x6666666666666666666666666666666666666666666666666666666666666658n,
});

export const P256 = weierstrass({
  p: 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn,
  n: P256_ORDER,
  h: 1n,
  a: 0xffffffff00000001000000000000000000000000fffffffffffffffffffffffcn,
  b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  Gx: 0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  Gy: 0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
});
