"""The rows of the ledger's tables that both stores share, and the conditions of a search over them."""

from __future__ import annotations

from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.fast_dataclass import dataclass

__all__ = ["SEAL_COLUMNS", "SEARCH_COLUMNS", "ChainRow", "RecordRow", "Search", "sql_conditions"]

SEAL_COLUMNS = "canonical, hash, signature, signature_pq, signed_at, signed_by"
"""The columns with a record's seal, in the order of `Sealed`'s fields."""

SEARCH_COLUMNS = "id, type, kind, key, session, at"
"""Copies of signed content, to search by. The verifier compares them with the content."""


@dataclass(slots=True)
class ChainRow:
    """A chain's head row. `number` is its primary key; `count` and `head` change as records are added."""

    number: int
    tenant: str
    name: str
    count: int
    head: str | None
    frozen: bool = False
    """The chain was imported: no record can be added here."""
    origin: str | None = None
    """The name of a frozen chain where it came from, if it was renamed here."""


class RecordRow(NamedTuple):
    """A stored record with its place and its `SEARCH_COLUMNS`."""

    sequence: int
    sealed: Sealed
    columns: tuple[Any, ...]
    tenant: Any = None
    """The row's own tenant column. Lookups by key use it, so the verifier compares it with the chain's."""


@dataclass(frozen=True, slots=True)
class Search:
    """The conditions of a search; None matches everything. Times are compared with the time of sealing."""

    chain: str | None = None
    type: str | None = None
    kind: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    start: int | None = None
    """Records from this sequence number of their chain on, and before `stop`."""
    stop: int | None = None


# Records of other software name no kind; `capsule.aver_block` derives it from the type in the same way.
_KIND_BY_TYPE = "CASE records.type WHEN 'tool' THEN 'call' WHEN 'chat' THEN 'turn' ELSE 'record' END"


def sql_conditions(search: Search) -> list[tuple[str, str | int]]:
    """A search as SQL conditions over the tables `records` and `chains`, each with one `?` and its value."""
    possible = [
        ("chains.name = ?", search.chain),
        ("records.type = ?", search.type),
        (f"coalesce(records.kind, {_KIND_BY_TYPE}) = ?", search.kind),
        ("records.session = ?", search.session),
        ("coalesce(records.at, records.signed_at) >= ?", search.since),
        ("coalesce(records.at, records.signed_at) < ?", search.until),
        ("records.sequence >= ?", search.start),
        ("records.sequence < ?", search.stop),
    ]
    return [(condition, value) for condition, value in possible if value is not None]
