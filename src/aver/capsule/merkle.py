"""The Merkle tree of RFC 6962: one hash for a list, and short proofs that something is in it at its place.

    leaf   SHA-256(0x00 || data)          node   SHA-256(0x01 || left || right)

Leaves and nodes are hashed apart, and no leaf is ever doubled, so a tree of one shape never passes for another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["EMPTY_ROOT", "MerkleTree", "inclusion_path", "leaf_hash", "root_from_path"]

EMPTY_ROOT = hashlib.sha256().digest()
"""The root of a tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleTree:
    """A tree to which leaves are added. It keeps one hash for each whole part of it, and so stays small."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        found, size = leaf, self.size
        while size & 1:
            found = _node_hash(self._peaks.pop(), found)
            size >>= 1
        self._peaks.append(found)
        self.size += 1

    @property
    def root(self) -> bytes:
        if not self._peaks:
            return EMPTY_ROOT
        *before, found = self._peaks
        for peak in reversed(before):
            found = _node_hash(peak, found)
        return found


def inclusion_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes that lead from a leaf to the root, the leaf's neighbour first."""
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    path = []
    level = list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        level = _parent_level(level)
        index >>= 1
    return path


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a leaf, its place and a path lead to; None where no tree of that size has such a path."""
    if not 0 <= index < size:
        return None
    found, last, waiting = leaf, size - 1, iter(path)
    for step in waiting:
        if last == 0:
            return None
        if index & 1 or index == last:
            found = _node_hash(step, found)
            while not index & 1:  # The last leaf of an odd level goes up alone, as far as it must.
                index, last = index >> 1, last >> 1
        else:
            found = _node_hash(found, step)
        index, last = index >> 1, last >> 1
    return found if last == 0 else None


def _parent_level(level: list[bytes]) -> list[bytes]:
    """An odd one at the end goes up as it is: the shape of RFC 6962, built from below."""
    above = [_node_hash(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
    if len(level) % 2:
        above.append(level[-1])
    return above
