"""The owner of a bundle: the ledger and tenant that exported it, and the keys that they had.

The index names the owner, unsigned. Where it leaves something out, the first record of an Aver chain counts. A chain
whose first record names another ledger was imported there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from aver.capsule.aver_block import RESERVED_CHAINS
from aver.capsule.json_reader import Unreadable, read_json
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.regular import open_inside
from aver.keys import Ring
from aver.ledger.bundle.layout import META, BundleIndex, ChainClaim, read_chain_file
from aver.ledger.bundle.reader import read_blob
from aver.ledger.key_history import read_history
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.slices import KeyHistories, identify_source
from aver.verdict.chain import UNREADABLE_MAX
from aver.verdict.examiner import read_chain_identity


@dataclass(frozen=True, slots=True)
class BundleOwner:
    """The ledger and tenant that exported a bundle; None where nothing tells."""

    ledger: str | None = None
    tenant: str | None = None

    def has_made(self, named: Mapping[str, Any] | None) -> bool:
        """Whether a chain with this in its first record was made by the exporting ledger itself."""
        if named is None or self.ledger is None or named.get("ledger") != self.ledger:
            return False
        return self.tenant is None or named.get("tenant") == self.tenant


def find_owner(directory: Path, index: BundleIndex) -> BundleOwner:
    """Whose bundle it is: as the index says, and where it does not, as the first chain that was made there does."""
    if index.ledger is not None and index.tenant is not None:
        return BundleOwner(index.ledger, index.tenant)
    own = [claim.file for claim in index.chains if claim.origin is None or claim.id in RESERVED_CHAINS]
    # The first chain that can be read tells. A hostile index may list very many that are not here.
    for name in (own if index.meta is None else [META, *own])[:UNREADABLE_MAX]:
        try:
            with open_inside(directory, name) as file:
                named, _ = peek_chain_identity(file)
        except BadInput:
            continue  # Reported where the chain itself is judged.
        ledger, tenant = (named or {}).get("ledger"), (named or {}).get("tenant")
        if isinstance(ledger, str) and isinstance(tenant, str):
            return BundleOwner(
                ledger if index.ledger is None else index.ledger, tenant if index.tenant is None else index.tenant
            )
    return BundleOwner(index.ledger, index.tenant)


def read_histories(directory: Path, index: BundleIndex, ring: Ring) -> KeyHistories:
    """The history of keys in every `keys` chain of a bundle, by its source. The bundle's own has no digits."""
    found: KeyHistories = {}
    for claim in index.chains:
        if KEYS_CHAIN not in (claim.id, claim.origin):
            continue
        try:
            with open_inside(directory, claim.file) as file:
                named, items = peek_chain_identity(file)
                source = identify_source(claim.id, named or {})
                # Streamed: a hostile bundle may make it as long as it likes.
                records = (item for item in items if isinstance(item, Sealed))
                identity = dict(zip(("ledger", "tenant"), source[1:], strict=True))
                history = read_history(ring, records, partial(read_blob, directory), identity)
        except BadInput:
            continue  # Reported where the chain itself is judged.
        found.setdefault(source, history)
    return found


def _is_unambiguous(record: Sealed) -> bool:
    try:
        read_json(record.canonical)
    except Unreadable:
        return False
    return True


def peek_chain_identity(
    file: BinaryIO, unknown: dict[str, int] | None = None
) -> tuple[Mapping[str, Any] | None, Iterator[Sealed | BadInput | ChainClaim]]:
    """Return the identity in a chain's first record, if it has one, and all items of the chain's file.

    A record that two readers can read in two ways, such as one with a key twice, names no chain. `unknown` is that of
    `read_chain_file`.
    """
    items = read_chain_file(file, unknown)
    first = next(items, None)
    named = read_chain_identity(first) if isinstance(first, Sealed) and _is_unambiguous(first) else None
    return named or None, chain(() if first is None else (first,), items)
