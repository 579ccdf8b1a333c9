"""Intents without an outcome: what is still running, or was cut off by a crash."""

from __future__ import annotations

from collections.abc import Iterator

from aver.capsule.block import RESERVED_CHAINS
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.ledger.ledger import Ledger

__all__ = ["unfinished_intents"]


def unfinished_intents(ledger: Ledger, chain: str | None = None) -> Iterator[Sealed]:
    """The `audit.intent` records whose `audit.outcome` is not in the chain, oldest first, chain by chain.

    Each is a call that is running now, or one whose process ended in it: nobody but the world can tell what it did.
    Only intents that are open at the same time are held in memory.
    """
    for name in [chain] if chain is not None else ledger.chains():
        if name not in RESERVED_CHAINS:
            yield from _open_in(ledger, name)


def _open_in(ledger: Ledger, chain: str) -> list[Sealed]:
    intents: dict[str, Sealed] = {}
    for record in ledger.read(chain):
        try:
            kind, content = record.kind, record.to_dict()
            if kind == "audit.intent":
                intents[record.id] = record
            elif kind == "audit.outcome":
                intents.pop(str(content["parent_id"]), None)
        except (AverError, KeyError, TypeError, AttributeError):
            continue  # It cannot be read; a verdict tells.
    return list(intents.values())
