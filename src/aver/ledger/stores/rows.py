"""Rows of the ledger's tables, as they are stored.

SQLite keeps any type in any column, and whoever can write the file can put anything there. So what is read here is
made into the type it should have, to be judged, and never keeps other rows from being read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.fast_dataclass import dataclass

__all__ = [
    "CHAIN_COLUMNS",
    "SEAL_COLUMNS",
    "SEARCH_COLUMNS",
    "TENANT_COLUMN",
    "ChainRow",
    "RecordRow",
    "find_chain_row",
    "parse_chain_row",
    "parse_record_row",
    "to_bytes",
    "to_text",
]


@dataclass(slots=True)
class ChainRow:
    """A chain as its head row says it is. `number` is its row; `count` and `head` move as records are added."""

    number: int
    tenant: str
    name: str
    count: int
    head: str | None
    frozen: bool = False
    origin: str | None = None
    """The name of a frozen chain where it came from, if it had to be renamed here."""


class RecordRow(NamedTuple):
    """A stored record with its place and with the columns that the store searches by."""

    sequence: int
    sealed: Sealed
    columns: tuple[Any, ...]
    tenant: Any = None
    """Whose the row says it is; by this column, keys are looked up."""


SEAL_COLUMNS = "canonical, hash, signature, signature_pq, signed_at, signed_by"
SEARCH_COLUMNS = "id, type, kind, key, session, at"
_SAFE_NAME = "CASE typeof({0}) WHEN 'text' THEN substr(CAST({0} AS BLOB), 1, 300) ELSE quote(substr({0}, 1, 80)) END"
TENANT_COLUMN = _SAFE_NAME.format("tenant")
"""Text as bytes: what is stored there may be anything, and must not keep the other chains from being read. What is not
text is never met when a chain is looked up, so it is not given back as the name that it looks like; nor is a name
beyond all bounds given back whole."""
CHAIN_COLUMNS = (
    f"chain, {TENANT_COLUMN}, {_SAFE_NAME.format('name')}, count, CAST(head AS BLOB), frozen, CAST(origin AS BLOB)"
)


def find_chain_row(connection: sqlite3.Connection, tenant: str, name: str) -> ChainRow | None:
    row = connection.execute(
        f"SELECT {CHAIN_COLUMNS} FROM chains WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else parse_chain_row(row)


def parse_chain_row(row: Sequence[Any]) -> ChainRow:
    """A head row as it is stored. A count that is none counts no records: those that are there then lie beyond it."""
    number, tenant, name, count, head, frozen, origin = row
    count = count if type(count) is int and count >= 0 else 0
    head, origin = (None if value is None else to_text(value) for value in (head, origin))
    return ChainRow(number, to_text(tenant), to_text(name), count, head, bool(frozen), origin)


def to_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def parse_record_row(row: Sequence[Any]) -> RecordRow:
    """A row as it is stored. SQLite keeps any type in any column: what is not text there is made text to be judged."""
    seal = row[8:13]
    if set(map(type, seal)) != _ALL_TEXT:
        seal = tuple(str(value) for value in seal)
    return RecordRow(row[0], Sealed(to_bytes(row[7]), *seal), tuple(row[1:7]), *row[13:])


_ALL_TEXT = {str}
