"""Whose chains a bundle holds, by what is signed.

The first record of a chain that Aver made names its ledger, tenant and chain. An index says the same, unsigned; where
it leaves something out, the first such record in the bundle says it, so that leaving it out lets nothing in. Bundles
of the public tool have no such record, and no owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from aver.capsule.block import RESERVED_CHAINS, block_of
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput
from aver.ledger.bundle.layout import META, Claim, Index, capsules_in
from aver.ledger.outside import open_inside
from aver.values import dataclass

__all__ = ["Owner", "begun", "owner_of"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The ledger and tenant that exported a bundle; None where nothing tells."""

    ledger: str | None = None
    tenant: str | None = None

    def made(self, named: Mapping[str, Any] | None) -> bool:
        """Whether a chain with this in its first record was made by the exporting ledger itself."""
        if named is None or self.ledger is None or named.get("ledger") != self.ledger:
            return False
        return self.tenant is None or named.get("tenant") == self.tenant


def owner_of(directory: Path, index: Index) -> Owner:
    """Whose bundle it is: as the index says, and where it does not, as the first chain that was made there does."""
    if index.ledger is not None and index.tenant is not None:
        return Owner(index.ledger, index.tenant)
    own = [claim.file for claim in index.chains if claim.origin is None or claim.id in RESERVED_CHAINS]
    for name in own if index.meta is None else [META, *own]:
        try:
            with open_inside(directory, name) as file:
                named, _ = begun(file)
        except BadInput:
            continue  # Reported where the chain itself is judged.
        ledger, tenant = (named or {}).get("ledger"), (named or {}).get("tenant")
        if isinstance(ledger, str) and isinstance(tenant, str):
            return Owner(
                ledger if index.ledger is None else index.ledger, tenant if index.tenant is None else index.tenant
            )
    return Owner(index.ledger, index.tenant)


def begun(file: BinaryIO) -> tuple[Mapping[str, Any] | None, Iterator[Sealed | BadInput | Claim]]:
    """What a chain's first record says about the chain, if it says anything; and all that the chain's file gives."""
    items = capsules_in(file)
    first = next(items, None)
    return _named_by(first), chain(() if first is None else (first,), items)


def _named_by(item: Sealed | BadInput | Claim | None) -> Mapping[str, Any] | None:
    if not isinstance(item, Sealed):
        return None
    try:
        named = (block_of(item.to_dict()) or {}).get("chain")
    except AverError:
        return None
    return named if isinstance(named, dict) else None
