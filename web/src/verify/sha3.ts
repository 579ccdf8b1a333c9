/**
 * SHA3-256 as FIPS 202 has it, written for speed: half of the time of a verification is this hash, and noble's takes two to
 * three times as long. Tests hold it to noble's and to Python's for every length up to some blocks.
 *
 * The state is 25 lanes of 64 bits, x + 5y is the number of the lane in column x and row y. JavaScript has fast integers of 32
 * bits only, so a lane is kept as two of them: its even bits (`e`) and its odd bits (`o`). A rotation of a lane by 2n is a
 * rotation of both by n; one by 2n + 1 also exchanges them. Processors have an instruction for that, and none for a rotation
 * across two halves.
 */

/** Bytes of a block: the state's 200, less twice the bytes of the hash. */
const BLOCK = 136;
const HASH_BYTES = 32;
const ROUNDS = 24;

/** The constants of the rounds, each as its even and its odd bits: bits 0, 1, 3, 7, 15, 31 and 63 come from a shift register. */
const IOTA = new Int32Array(2 * ROUNDS);
for (let round = 0, register = 1; round < ROUNDS; round++) {
  for (let power = 0; power < 7; power++) {
    const bit = 2 ** power - 1;
    if (register & 1) IOTA[2 * round + (bit & 1)]! |= 1 << (bit >> 1);
    register = (register << 1) ^ ((register >> 7) * 0x171);
  }
}

/** The even bits of a number, put together in its lower half. */
function gatherEven(bits: number): number {
  let even = bits & 0x55555555;
  even = (even | (even >>> 1)) & 0x33333333;
  even = (even | (even >>> 2)) & 0x0f0f0f0f;
  even = (even | (even >>> 4)) & 0x00ff00ff;
  return (even | (even >>> 8)) & 0xffff;
}

/** The lower half of a number, spread over the even bits. */
function spreadEven(half: number): number {
  let bits = half & 0xffff;
  bits = (bits | (bits << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}

/** Keccak-f[1600]. Every lane is a variable: a loop over an array would take twice as long. */
function permute(state: Int32Array): void {
  let e0 = state[0]!, o0 = state[1]!, e1 = state[2]!, o1 = state[3]!, e2 = state[4]!, o2 = state[5]!, e3 = state[6]!, o3 = state[7]!, e4 = state[8]!, o4 = state[9]!;
  let e5 = state[10]!, o5 = state[11]!, e6 = state[12]!, o6 = state[13]!, e7 = state[14]!, o7 = state[15]!, e8 = state[16]!, o8 = state[17]!, e9 = state[18]!, o9 = state[19]!;
  let e10 = state[20]!, o10 = state[21]!, e11 = state[22]!, o11 = state[23]!, e12 = state[24]!, o12 = state[25]!, e13 = state[26]!, o13 = state[27]!, e14 = state[28]!, o14 = state[29]!;
  let e15 = state[30]!, o15 = state[31]!, e16 = state[32]!, o16 = state[33]!, e17 = state[34]!, o17 = state[35]!, e18 = state[36]!, o18 = state[37]!, e19 = state[38]!, o19 = state[39]!;
  let e20 = state[40]!, o20 = state[41]!, e21 = state[42]!, o21 = state[43]!, e22 = state[44]!, o22 = state[45]!, e23 = state[46]!, o23 = state[47]!, e24 = state[48]!, o24 = state[49]!;
  for (let round = 0; round < 2 * ROUNDS; round += 2) {
    // Theta: every lane is added to the parities of two columns.
    const p0 = e0 ^ e5 ^ e10 ^ e15 ^ e20, q0 = o0 ^ o5 ^ o10 ^ o15 ^ o20;
    const p1 = e1 ^ e6 ^ e11 ^ e16 ^ e21, q1 = o1 ^ o6 ^ o11 ^ o16 ^ o21;
    const p2 = e2 ^ e7 ^ e12 ^ e17 ^ e22, q2 = o2 ^ o7 ^ o12 ^ o17 ^ o22;
    const p3 = e3 ^ e8 ^ e13 ^ e18 ^ e23, q3 = o3 ^ o8 ^ o13 ^ o18 ^ o23;
    const p4 = e4 ^ e9 ^ e14 ^ e19 ^ e24, q4 = o4 ^ o9 ^ o14 ^ o19 ^ o24;
    const s0 = p4 ^ ((q1 << 1) | (q1 >>> 31)), t0 = q4 ^ p1;
    const s1 = p0 ^ ((q2 << 1) | (q2 >>> 31)), t1 = q0 ^ p2;
    const s2 = p1 ^ ((q3 << 1) | (q3 >>> 31)), t2 = q1 ^ p3;
    const s3 = p2 ^ ((q4 << 1) | (q4 >>> 31)), t3 = q2 ^ p4;
    const s4 = p3 ^ ((q0 << 1) | (q0 >>> 31)), t4 = q3 ^ p0;
    e0 ^= s0; o0 ^= t0; e1 ^= s1; o1 ^= t1; e2 ^= s2; o2 ^= t2; e3 ^= s3; o3 ^= t3; e4 ^= s4; o4 ^= t4;
    e5 ^= s0; o5 ^= t0; e6 ^= s1; o6 ^= t1; e7 ^= s2; o7 ^= t2; e8 ^= s3; o8 ^= t3; e9 ^= s4; o9 ^= t4;
    e10 ^= s0; o10 ^= t0; e11 ^= s1; o11 ^= t1; e12 ^= s2; o12 ^= t2; e13 ^= s3; o13 ^= t3; e14 ^= s4; o14 ^= t4;
    e15 ^= s0; o15 ^= t0; e16 ^= s1; o16 ^= t1; e17 ^= s2; o17 ^= t2; e18 ^= s3; o18 ^= t3; e19 ^= s4; o19 ^= t4;
    e20 ^= s0; o20 ^= t0; e21 ^= s1; o21 ^= t1; e22 ^= s2; o22 ^= t2; e23 ^= s3; o23 ^= t3; e24 ^= s4; o24 ^= t4;
    // Rho and pi: each lane is rotated and goes to another place. An odd distance makes even bits odd.
    const f0 = e0, g0 = o0;
    const f1 = (e6 << 22) | (e6 >>> 10), g1 = (o6 << 22) | (o6 >>> 10);
    const f2 = (o12 << 22) | (o12 >>> 10), g2 = (e12 << 21) | (e12 >>> 11);
    const f3 = (o18 << 11) | (o18 >>> 21), g3 = (e18 << 10) | (e18 >>> 22);
    const f4 = (e24 << 7) | (e24 >>> 25), g4 = (o24 << 7) | (o24 >>> 25);
    const f5 = (e3 << 14) | (e3 >>> 18), g5 = (o3 << 14) | (o3 >>> 18);
    const f6 = (e9 << 10) | (e9 >>> 22), g6 = (o9 << 10) | (o9 >>> 22);
    const f7 = (o10 << 2) | (o10 >>> 30), g7 = (e10 << 1) | (e10 >>> 31);
    const f8 = (o16 << 23) | (o16 >>> 9), g8 = (e16 << 22) | (e16 >>> 10);
    const f9 = (o22 << 31) | (o22 >>> 1), g9 = (e22 << 30) | (e22 >>> 2);
    const f10 = (o1 << 1) | (o1 >>> 31), g10 = e1;
    const f11 = (e7 << 3) | (e7 >>> 29), g11 = (o7 << 3) | (o7 >>> 29);
    const f12 = (o13 << 13) | (o13 >>> 19), g12 = (e13 << 12) | (e13 >>> 20);
    const f13 = (e19 << 4) | (e19 >>> 28), g13 = (o19 << 4) | (o19 >>> 28);
    const f14 = (e20 << 9) | (e20 >>> 23), g14 = (o20 << 9) | (o20 >>> 23);
    const f15 = (o4 << 14) | (o4 >>> 18), g15 = (e4 << 13) | (e4 >>> 19);
    const f16 = (e5 << 18) | (e5 >>> 14), g16 = (o5 << 18) | (o5 >>> 14);
    const f17 = (e11 << 5) | (e11 >>> 27), g17 = (o11 << 5) | (o11 >>> 27);
    const f18 = (o17 << 8) | (o17 >>> 24), g18 = (e17 << 7) | (e17 >>> 25);
    const f19 = (e23 << 28) | (e23 >>> 4), g19 = (o23 << 28) | (o23 >>> 4);
    const f20 = (e2 << 31) | (e2 >>> 1), g20 = (o2 << 31) | (o2 >>> 1);
    const f21 = (o8 << 28) | (o8 >>> 4), g21 = (e8 << 27) | (e8 >>> 5);
    const f22 = (o14 << 20) | (o14 >>> 12), g22 = (e14 << 19) | (e14 >>> 13);
    const f23 = (o15 << 21) | (o15 >>> 11), g23 = (e15 << 20) | (e15 >>> 12);
    const f24 = (e21 << 1) | (e21 >>> 31), g24 = (o21 << 1) | (o21 >>> 31);
    // Chi: each lane is changed by the next two of its row. Iota: the round's constant.
    e0 = f0 ^ (~f1 & f2) ^ (IOTA[round]!); e1 = f1 ^ (~f2 & f3); e2 = f2 ^ (~f3 & f4); e3 = f3 ^ (~f4 & f0); e4 = f4 ^ (~f0 & f1);
    o0 = g0 ^ (~g1 & g2) ^ (IOTA[round + 1]!); o1 = g1 ^ (~g2 & g3); o2 = g2 ^ (~g3 & g4); o3 = g3 ^ (~g4 & g0); o4 = g4 ^ (~g0 & g1);
    e5 = f5 ^ (~f6 & f7); e6 = f6 ^ (~f7 & f8); e7 = f7 ^ (~f8 & f9); e8 = f8 ^ (~f9 & f5); e9 = f9 ^ (~f5 & f6);
    o5 = g5 ^ (~g6 & g7); o6 = g6 ^ (~g7 & g8); o7 = g7 ^ (~g8 & g9); o8 = g8 ^ (~g9 & g5); o9 = g9 ^ (~g5 & g6);
    e10 = f10 ^ (~f11 & f12); e11 = f11 ^ (~f12 & f13); e12 = f12 ^ (~f13 & f14); e13 = f13 ^ (~f14 & f10); e14 = f14 ^ (~f10 & f11);
    o10 = g10 ^ (~g11 & g12); o11 = g11 ^ (~g12 & g13); o12 = g12 ^ (~g13 & g14); o13 = g13 ^ (~g14 & g10); o14 = g14 ^ (~g10 & g11);
    e15 = f15 ^ (~f16 & f17); e16 = f16 ^ (~f17 & f18); e17 = f17 ^ (~f18 & f19); e18 = f18 ^ (~f19 & f15); e19 = f19 ^ (~f15 & f16);
    o15 = g15 ^ (~g16 & g17); o16 = g16 ^ (~g17 & g18); o17 = g17 ^ (~g18 & g19); o18 = g18 ^ (~g19 & g15); o19 = g19 ^ (~g15 & g16);
    e20 = f20 ^ (~f21 & f22); e21 = f21 ^ (~f22 & f23); e22 = f22 ^ (~f23 & f24); e23 = f23 ^ (~f24 & f20); e24 = f24 ^ (~f20 & f21);
    o20 = g20 ^ (~g21 & g22); o21 = g21 ^ (~g22 & g23); o22 = g22 ^ (~g23 & g24); o23 = g23 ^ (~g24 & g20); o24 = g24 ^ (~g20 & g21);
  }
  state[0] = e0; state[1] = o0; state[2] = e1; state[3] = o1; state[4] = e2; state[5] = o2; state[6] = e3; state[7] = o3; state[8] = e4; state[9] = o4;
  state[10] = e5; state[11] = o5; state[12] = e6; state[13] = o6; state[14] = e7; state[15] = o7; state[16] = e8; state[17] = o8; state[18] = e9; state[19] = o9;
  state[20] = e10; state[21] = o10; state[22] = e11; state[23] = o11; state[24] = e12; state[25] = o12; state[26] = e13; state[27] = o13; state[28] = e14; state[29] = o14;
  state[30] = e15; state[31] = o15; state[32] = e16; state[33] = o16; state[34] = e17; state[35] = o17; state[36] = e18; state[37] = o18; state[38] = e19; state[39] = o19;
  state[40] = e20; state[41] = o20; state[42] = e21; state[43] = o21; state[44] = e22; state[45] = o22; state[46] = e23; state[47] = o23; state[48] = e24; state[49] = o24;
}

/** Add a block to the state and permute it. */
function absorb(state: Int32Array, block: DataView, at: number): void {
  for (let lane = 0; lane < BLOCK / 8; lane++) {
    const low = block.getInt32(at + 8 * lane, true), high = block.getInt32(at + 8 * lane + 4, true);
    state[2 * lane]! ^= gatherEven(low) | (gatherEven(high) << 16);
    state[2 * lane + 1]! ^= gatherEven(low >>> 1) | (gatherEven(high >>> 1) << 16);
  }
  permute(state);
}

/** The 32 bytes of SHA3-256. */
export function sha3(data: Uint8Array): Uint8Array {
  const state = new Int32Array(50);
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 0;
  for (; at + BLOCK <= data.length; at += BLOCK) absorb(state, view, at);
  // The last block ends with the bits 01 of SHA-3, then 1, zeros, 1.
  const last = new Uint8Array(BLOCK);
  last.set(data.subarray(at));
  last[data.length - at] = 0x06;
  last[BLOCK - 1]! |= 0x80;
  absorb(state, new DataView(last.buffer), 0);
  const hash = new DataView(new ArrayBuffer(HASH_BYTES));
  for (let lane = 0; lane < HASH_BYTES / 8; lane++) {
    const even = state[2 * lane]!, odd = state[2 * lane + 1]!;
    hash.setInt32(8 * lane, spreadEven(even) | (spreadEven(odd) << 1), true);
    hash.setInt32(8 * lane + 4, spreadEven(even >>> 16) | (spreadEven(odd >>> 16) << 1), true);
  }
  return new Uint8Array(hash.buffer);
}
