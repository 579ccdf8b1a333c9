/**
 * The points of edwards25519, from its parameters. noble's ready-made module brings signing and further protocols: more
 * than the page has room for.
 */

import { edwards } from "@noble/curves/abstract/edwards.js";

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
