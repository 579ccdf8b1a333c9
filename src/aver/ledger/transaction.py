"""What may be done inside a write transaction of the embedded ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.ledger import schema
from aver.ledger.rows import CHAIN, COLUMNS, SEAL, ChainRow, Row, chain_named, chain_row, stored_row

__all__ = ["Transaction"]

IDS_PER_QUERY = 500
"""How many ids are looked up at once; SQLite takes at least 999 values in one statement."""


class Transaction:
    """Get one from `SqliteStore.writing`; it ends with that context."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def migrate(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        schema.migrate(self._connection, version)

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        return chain_named(self._connection, tenant, name)

    def chains(self, tenant: str) -> list[ChainRow]:
        rows = self._connection.execute(f"SELECT {CHAIN} FROM chains WHERE tenant = ? ORDER BY name", (tenant,))
        return [chain_row(row) for row in rows]

    def add_chain(self, tenant: str, name: str) -> ChainRow:
        cursor = self._connection.execute("INSERT INTO chains (tenant, name) VALUES (?, ?)", (tenant, name))
        return ChainRow(int(cursor.lastrowid or 0), tenant, name, 0, None)

    def by_key(self, tenant: str, key: str) -> tuple[str, Row] | None:
        row = self._connection.execute(
            f"SELECT chains.name, sequence, {COLUMNS}, {SEAL} FROM records JOIN chains USING (chain)"
            " WHERE records.tenant = ? AND key = ?",
            (tenant, key),
        ).fetchone()
        return None if row is None else (row[0], stored_row(row[1:]))

    def taken_ids(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Those of these record ids that the tenant has already."""
        found: set[str] = set()
        for start in range(0, len(ids), IDS_PER_QUERY):
            part = ids[start : start + IDS_PER_QUERY]
            marks = ", ".join("?" * len(part))
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
        """Add records, with their columns, at the chain's end. The head row follows with `advance`."""
        rows = []
        for sealed, columns in records:
            seal = (sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq)
            rows.append((chain.number, chain.count, chain.tenant, *columns, *seal, sealed.signed_at, sealed.signed_by))
            chain.count += 1
            chain.head = sealed.hash
        self._connection.executemany(
            f"INSERT OR ROLLBACK INTO records (chain, sequence, tenant, {COLUMNS}, {SEAL})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def advance(self, chain: ChainRow) -> None:
        self._connection.execute(
            "UPDATE chains SET count = ?, head = ? WHERE chain = ?", (chain.count, chain.head, chain.number)
        )

    def freeze(self, chain: ChainRow, origin: str) -> None:
        """Close an imported chain for good."""
        self._connection.execute("UPDATE chains SET frozen = 1, origin = ? WHERE chain = ?", (origin, chain.number))
