"""The tree of RFC 6962: published roots, every small tree in full, and paths that lead nowhere."""

from __future__ import annotations

import hashlib

import pytest

from aver.capsule.merkle import EMPTY_ROOT, MerkleTree, inclusion_path, leaf_hash, root_from_path

PUBLISHED = [b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43", bytes(range(0x50, 0x58))]
PUBLISHED.append(bytes(range(0x60, 0x70)))
"""The entries of the test tree that the reference implementations of Certificate Transparency share."""

ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def tree_of(leaves: list[bytes]) -> MerkleTree:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree


def root_by_definition(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1, word by word."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = root_by_definition(leaves[:split]), root_by_definition(leaves[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()


def test_published_roots() -> None:
    assert MerkleTree().root == EMPTY_ROOT == hashlib.sha256().digest()
    leaves = [leaf_hash(entry) for entry in PUBLISHED]
    assert [tree_of(leaves[:size]).root.hex() for size in range(1, 9)] == ROOTS


@pytest.mark.parametrize("size", range(1, 34))
def test_every_place_of_every_small_tree(size: int) -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(size)]
    root = root_by_definition(leaves)
    assert tree_of(leaves).root == root
    for index in range(size):
        path = inclusion_path(leaves, index)
        assert root_from_path(leaves[index], index, size, path) == root
        for other in range(size):
            if other != index:
                assert root_from_path(leaves[index], other, size, path) != root
                assert root_from_path(leaves[other], index, size, path) != root
        assert root_from_path(leaves[index], index, size, path[:-1]) != root or size == 1
        assert root_from_path(leaves[index], index, size, [*path, EMPTY_ROOT]) is None
        for at in range(len(path)):
            wrong = [*path[:at], EMPTY_ROOT, *path[at + 1 :]]
            assert root_from_path(leaves[index], index, size, wrong) != root


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0), (5, 2)])
def test_places_that_no_tree_has(index: int, size: int) -> None:
    assert root_from_path(EMPTY_ROOT, index, size, []) is None


def test_a_leaf_is_not_a_node() -> None:
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert leaf_hash(left + right) != tree_of([left, right]).root


def test_a_doubled_last_leaf_is_another_tree() -> None:
    """Where odd leaves are doubled, two lists have one root."""
    leaves = [leaf_hash(bytes([number])) for number in range(3)]
    assert tree_of(leaves).root != tree_of([*leaves, leaves[-1]]).root
