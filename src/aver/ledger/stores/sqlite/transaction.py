"""Rows of an SQLite ledger: reading them safely, and writing them in a transaction.

SQLite keeps any type in any column, and an attacker who can write the file can put anything there. The functions here
convert each value to the type that it should have. So the verifier can judge it, and one bad row never keeps other rows
from being read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.ledger.stores.protocol import SEAL_COLUMNS, SEARCH_COLUMNS, ChainRow, RecordRow
from aver.ledger.stores.sqlite import schema

_DELETE_GUARDS = (
    "SELECT name, sql FROM sqlite_schema"
    " WHERE type = 'trigger' AND name IN ('records_stay', 'chains_stay', 'blobs_stay')"
)
_BLOB_GUARD = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'blobs_stay_as_they_are'"
_CANONICAL_OF_CHAIN = "SELECT canonical FROM records WHERE chain = ?"

VALUES_PER_QUERY = 500
"""How many ids or keys one statement looks up; every SQLite takes at least 999 values."""

_KEY_COLUMN = SEARCH_COLUMNS.split(", ").index("key")

# Text is read as bytes, because it may not be UTF-8. A value that is not text is quoted: no lookup by name finds such a
# row, so it must not look like a normal name. And a name of any length must not fill the memory.
_SAFE_NAME = "CASE typeof({0}) WHEN 'text' THEN substr(CAST({0} AS BLOB), 1, 300) ELSE quote(substr({0}, 1, 80)) END"
TENANT_COLUMN = _SAFE_NAME.format("tenant")
CHAIN_COLUMNS = (
    f"chain, {TENANT_COLUMN}, {_SAFE_NAME.format('name')}, count, CAST(head AS BLOB), frozen, CAST(origin AS BLOB)"
)


def parse_chain_row(row: Sequence[Any]) -> ChainRow:
    """Read a row of `CHAIN_COLUMNS`. An invalid count becomes 0, and the verifier finds the records beyond it."""
    number, tenant, name, count, head, frozen, origin = row
    count = count if type(count) is int and count >= 0 else 0
    head = None if head is None else to_text(head)
    origin = None if origin is None else to_text(origin)
    return ChainRow(number, to_text(tenant), to_text(name), count, head, bool(frozen), origin)


def parse_record_row(row: tuple[Any, ...]) -> RecordRow:
    """Read a row of sequence, `SEARCH_COLUMNS`, `SEAL_COLUMNS` and perhaps tenant. The seal becomes text."""
    canonical, digest, signature, signature_pq, signed_at, signed_by = row[7:13]
    if not type(digest) is type(signature) is type(signature_pq) is type(signed_at) is type(signed_by) is str:
        digest, signature, signature_pq, signed_at, signed_by = map(str, row[8:13])
    if type(canonical) is not bytes:
        canonical = to_bytes(canonical)
    sealed = Sealed(canonical, digest, signature, signature_pq, signed_at, signed_by)
    return RecordRow(row[0], sealed, row[1:7], *row[13:])


def to_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


class SqliteTransaction:
    """A write transaction. `SqliteStore.transaction` makes it and ends it. `Transaction` documents the methods."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def migrate(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        schema.migrate(self._connection, version)

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        row = self._connection.execute(
            f"SELECT {CHAIN_COLUMNS} FROM chains WHERE tenant = ? AND name = ?", (tenant, name)
        ).fetchone()
        return None if row is None else parse_chain_row(row)

    def chains(self, tenant: str) -> list[ChainRow]:
        rows = self._connection.execute(f"SELECT {CHAIN_COLUMNS} FROM chains WHERE tenant = ? ORDER BY name", (tenant,))
        return [parse_chain_row(row) for row in rows]

    def add_chain(self, tenant: str, name: str) -> ChainRow:
        cursor = self._connection.execute("INSERT INTO chains (tenant, name) VALUES (?, ?)", (tenant, name))
        return ChainRow(int(cursor.lastrowid or 0), tenant, name, 0, None)

    def find_by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, tuple[str, RecordRow]]:
        found: dict[str, tuple[str, RecordRow]] = {}
        for start in range(0, len(keys), VALUES_PER_QUERY):
            part = keys[start : start + VALUES_PER_QUERY]
            marks = ", ".join("?" * len(part))
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
        for start in range(0, len(ids), VALUES_PER_QUERY):
            part = ids[start : start + VALUES_PER_QUERY]
            marks = ", ".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT id FROM records WHERE id IN ({marks}) AND tenant = ?", (*part, tenant)
            )
            found.update(row[0] for row in rows)
        return found

    def has_blob(self, tenant: str, digest: str) -> bool:
        query = "SELECT 1 FROM blobs WHERE tenant = ? AND digest = ?"
        return self._connection.execute(query, (tenant, digest)).fetchone() is not None

    def compare_blobs(self, tenant: str, blobs: Mapping[str, Blob]) -> dict[str, bool]:
        query = "SELECT data IS ? FROM blobs WHERE tenant = ? AND digest = ?"
        found = {}
        for digest, blob in blobs.items():
            row = self._connection.execute(query, (blob.data, tenant, digest)).fetchone()
            if row is not None:
                found[digest] = bool(row[0])
        return found

    def restore_blob(self, tenant: str, blob: Blob) -> bool:
        # As in `remove_chains`: the guard is gone and back within this transaction.
        guards = self._connection.execute(_BLOB_GUARD).fetchall()
        for name, _ in guards:
            self._connection.execute(f"DROP TRIGGER {name}")
        self._connection.execute(
            "UPDATE blobs SET data = ? WHERE tenant = ? AND digest = ?", (blob.data, tenant, blob.digest)
        )
        for _, sql in guards:
            self._connection.execute(sql)
        return True

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        self._connection.executemany(
            "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(tenant, digest, blob.media, blob.data) for digest, blob in blobs],
        )

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        rows = []
        for sealed, columns in records:
            # The place comes from the chain's row, not from the record: a gap is impossible.
            seal = (sealed.canonical, sealed.hash, sealed.signature, sealed.signature_pq)
            rows.append((chain.number, chain.count, chain.tenant, *columns, *seal, sealed.signed_at, sealed.signed_by))
            chain.count += 1
            chain.head = sealed.hash
        # OR ROLLBACK: a conflict ends the whole transaction. Undoing one statement would make every insert slower.
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

    def remove_chains(self, tenant: str, chains: Sequence[ChainRow]) -> int:
        # Imported here: hooks load this module, and never remove anything.
        from aver.ledger.stores.mentions import find_references, leave_unmentioned

        run = self._connection.execute
        # SQLite cannot turn a trigger off. To drop and create it again is part of this transaction, so no other
        # connection ever sees the ledger without it, and a crash brings it back.
        guards = run(_DELETE_GUARDS).fetchall()
        for name, _ in guards:
            run(f"DROP TRIGGER {name}")
        numbers = [(chain.number,) for chain in chains]
        mentioned: set[str] = set()
        for number in numbers:
            mentioned |= find_references(to_bytes(row[0]) for row in run(_CANONICAL_OF_CHAIN, number))
        self._connection.executemany("DELETE FROM records WHERE chain = ?", numbers)
        self._connection.executemany("DELETE FROM chains WHERE chain = ?", numbers)
        stored = {digest for digest in mentioned if self.has_blob(tenant, digest)}
        rest = (to_bytes(row[0]) for row in run("SELECT canonical FROM records WHERE tenant = ?", (tenant,)))
        unneeded = sorted(leave_unmentioned(stored, rest))
        self._connection.executemany(
            "DELETE FROM blobs WHERE tenant = ? AND digest = ?", [(tenant, digest) for digest in unneeded]
        )
        for _, sql in guards:
            run(sql)
        return len(unneeded)
