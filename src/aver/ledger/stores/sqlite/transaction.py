"""What may be done inside a write transaction of the embedded ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.ledger.stores.rows import (
    CHAIN_COLUMNS,
    SEAL_COLUMNS,
    SEARCH_COLUMNS,
    ChainRow,
    RecordRow,
    find_chain_row,
    parse_chain_row,
    parse_record_row,
)
from aver.ledger.stores.sqlite import schema

__all__ = ["SqliteTransaction"]

VALUES_PER_QUERY = 500
"""How many ids or keys are looked up at once; SQLite takes at least 999 values in one statement."""


class SqliteTransaction:
    """Get one from `SqliteStore.writing`; it ends with that context."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def migrate(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        schema.migrate(self._connection, version)

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        return find_chain_row(self._connection, tenant, name)

    def chains(self, tenant: str) -> list[ChainRow]:
        rows = self._connection.execute(f"SELECT {CHAIN_COLUMNS} FROM chains WHERE tenant = ? ORDER BY name", (tenant,))
        return [parse_chain_row(row) for row in rows]

    def add_chain(self, tenant: str, name: str) -> ChainRow:
        cursor = self._connection.execute("INSERT INTO chains (tenant, name) VALUES (?, ?)", (tenant, name))
        return ChainRow(int(cursor.lastrowid or 0), tenant, name, 0, None)

    def find_by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, tuple[str, RecordRow]]:
        found: dict[str, tuple[str, RecordRow]] = {}
        for part, marks in _split_values(keys):
            rows = self._connection.execute(
                f"SELECT chains.name, sequence, {SEARCH_COLUMNS}, {SEAL_COLUMNS} FROM records JOIN chains USING (chain)"
                f" WHERE records.tenant = ? AND key IN ({marks})",
                (tenant, *part),
            )
            for chain, *row in rows:
                stored = parse_record_row(row)
                found[stored.columns[_KEY_COLUMN]] = chain, stored
        return found

    def taken_ids(self, tenant: str, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part, marks in _split_values(ids):
            rows = self._connection.execute(
                f"SELECT id FROM records WHERE id IN ({marks}) AND tenant = ?", (*part, tenant)
            )
            found.update(row[0] for row in rows)
        return found

    def has_blob(self, tenant: str, digest: str) -> bool:
        query = "SELECT 1 FROM blobs WHERE tenant = ? AND digest = ?"
        return self._connection.execute(query, (tenant, digest)).fetchone() is not None

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        self._connection.executemany(
            "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(tenant, digest, blob.media, blob.data) for digest, blob in blobs],
        )

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        rows = []
        for sealed, columns in records:
            seal = (sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq)
            rows.append((chain.number, chain.count, chain.tenant, *columns, *seal, sealed.signed_at, sealed.signed_by))
            chain.count += 1
            chain.head = sealed.hash
        self._connection.executemany(
            f"INSERT OR ROLLBACK INTO records (chain, sequence, tenant, {SEARCH_COLUMNS}, {SEAL_COLUMNS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def update_head(self, chain: ChainRow) -> None:
        self._connection.execute(
            "UPDATE chains SET count = ?, head = ? WHERE chain = ?", (chain.count, chain.head, chain.number)
        )

    def freeze(self, chain: ChainRow, origin: str) -> None:
        self._connection.execute("UPDATE chains SET frozen = 1, origin = ? WHERE chain = ?", (origin, chain.number))


_KEY_COLUMN = SEARCH_COLUMNS.split(", ").index("key")


def _split_values(values: Sequence[str]) -> Iterator[tuple[Sequence[str], str]]:
    """So many values as one statement takes, and the marks that stand for them in it."""
    for start in range(0, len(values), VALUES_PER_QUERY):
        part = values[start : start + VALUES_PER_QUERY]
        yield part, ", ".join("?" * len(part))
