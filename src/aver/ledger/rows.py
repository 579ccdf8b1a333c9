"""Rows of the ledger's tables, as they are stored.

SQLite keeps any type in any column, and whoever can write the file can put anything there. So what is read here is
made into the type it should have, to be judged, and never keeps other rows from being read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.values import dataclass

__all__ = [
    "CHAIN",
    "COLUMNS",
    "SEAL",
    "TENANT",
    "ChainRow",
    "Row",
    "as_bytes",
    "as_text",
    "chain_named",
    "chain_row",
    "stored_row",
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


class Row(NamedTuple):
    """A stored record with its place and with the columns that the store searches by."""

    sequence: int
    sealed: Sealed
    columns: tuple[Any, ...]
    tenant: Any = None
    """Whose the row says it is; by this column, keys are looked up."""


SEAL = "canonical, hash, signature, signature_pq, signed_at, signed_by"
COLUMNS = "id, type, kind, key, session, at"
_NAME = "CASE typeof({0}) WHEN 'text' THEN substr(CAST({0} AS BLOB), 1, 300) ELSE quote(substr({0}, 1, 80)) END"
TENANT = _NAME.format("tenant")
"""Text as bytes: what is stored there may be anything, and must not keep the other chains from being read. What is not
text is never met when a chain is looked up, so it is not given back as the name that it looks like; nor is a name
beyond all bounds given back whole."""
CHAIN = f"chain, {TENANT}, {_NAME.format('name')}, count, CAST(head AS BLOB), frozen, CAST(origin AS BLOB)"


def chain_named(connection: sqlite3.Connection, tenant: str, name: str) -> ChainRow | None:
    row = connection.execute(f"SELECT {CHAIN} FROM chains WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
    return None if row is None else chain_row(row)


def chain_row(row: Sequence[Any]) -> ChainRow:
    """A head row as it is stored. A count that is none counts no records: those that are there then lie beyond it."""
    number, tenant, name, count, head, frozen, origin = row
    count = count if type(count) is int and count >= 0 else 0
    head, origin = (None if value is None else as_text(value) for value in (head, origin))
    return ChainRow(number, as_text(tenant), as_text(name), count, head, bool(frozen), origin)


def as_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def stored_row(row: Sequence[Any]) -> Row:
    """A row as it is stored. SQLite keeps any type in any column: what is not text there is made text to be judged."""
    seal = row[8:13]
    if set(map(type, seal)) != _ALL_TEXT:
        seal = tuple(str(value) for value in seal)
    return Row(row[0], Sealed(as_bytes(row[7]), *seal), tuple(row[1:7]), *row[13:])


_ALL_TEXT = {str}
