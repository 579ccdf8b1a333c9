/** The Merkle tree of RFC 6962. The twin of `aver.capsule.merkle`. */

import { sha256Bytes } from "./digest.ts";

const EMPTY_ROOT = sha256Bytes(new Uint8Array());

function hashWith(prefix: number, ...parts: Uint8Array[]): Uint8Array {
  const data = new Uint8Array(1 + parts.reduce((size, part) => size + part.length, 0));
  data[0] = prefix;
  let at = 1;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  return sha256Bytes(data);
}

/** The hash of a leaf. */
export function leafHash(data: Uint8Array): Uint8Array {
  return hashWith(0, data);
}

/** A growing tree. It keeps only the roots of its complete subtrees. */
export class MerkleTree {
  size = 0;
  private readonly peaks: Uint8Array[] = [];

  /** Add a leaf by its hash. */
  add(leaf: Uint8Array): void {
    let node = leaf;
    for (let size = this.size; size % 2 === 1; size = Math.floor(size / 2)) {
      node = hashWith(1, this.peaks.pop() as Uint8Array, node);
    }
    this.peaks.push(node);
    this.size++;
  }

  get root(): Uint8Array {
    let node: Uint8Array | null = null;
    for (const peak of [...this.peaks].reverse()) node = node === null ? peak : hashWith(1, peak, node);
    return node ?? EMPTY_ROOT;
  }
}

/** Compute the root from a leaf, its index and its path (RFC 9162, 2.1.3.2); null if the path has a wrong length. */
export function rootFromPath(leaf: Uint8Array, index: number, size: number, path: Uint8Array[]): Uint8Array | null {
  if (!(index >= 0 && index < size)) return null;
  let node = leaf;
  let last = size - 1;
  for (const sibling of path) {
    if (last === 0) return null;
    if (index % 2 === 1 || index === last) {
      node = hashWith(1, sibling, node);
      while (index % 2 === 0) {
        index = Math.floor(index / 2);
        last = Math.floor(last / 2);
      }
    } else node = hashWith(1, node, sibling);
    index = Math.floor(index / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 ? node : null;
}
