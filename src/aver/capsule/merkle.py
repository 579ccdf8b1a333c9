"""The Merkle tree of RFC 6962: one hash for a list, and short proofs that an item is at its place in the list.

    leaf   SHA-256(0x00 || data)          node   SHA-256(0x01 || left || right)

Leaves and nodes have different prefixes, and no leaf is duplicated. So two lists never have the same root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

EMPTY_ROOT = hashlib.sha256().digest()
"""The root of a tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\x00" + data).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleTree:
    """A growing tree. It keeps only the roots of its complete subtrees: one for each binary digit 1 of its size."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        node, size = leaf, self.size
        while size & 1:  # Two complete subtrees of equal size become one, like carrying in binary addition.
            node = _node_hash(self._peaks.pop(), node)
            size >>= 1
        self._peaks.append(node)
        self.size += 1

    @property
    def root(self) -> bytes:
        """The root of the tree as it is now."""
        if not self._peaks:
            return EMPTY_ROOT
        *larger, node = self._peaks
        for peak in reversed(larger):
            node = _node_hash(peak, node)
        return node


def inclusion_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes that prove a leaf: those of its siblings on the way to the root, the leaf's own sibling first."""
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    path = []
    level = list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(level[sibling])
        # The next level of the tree. The last node of an odd level moves up unchanged, as in RFC 6962.
        above = [_node_hash(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            above.append(level[-1])
        level = above
        index >>= 1
    return path


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Compute the root from a leaf, its index and its path (RFC 9162, 2.1.3.2); None if the path has a wrong length."""
    if not 0 <= index < size:
        return None
    node, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            node = _node_hash(sibling, node)
            while not index & 1:  # The last node of an odd level has no sibling, and moves up alone.
                index, last = index >> 1, last >> 1
        else:
            node = _node_hash(node, sibling)
        index, last = index >> 1, last >> 1
    return node if last == 0 else None
