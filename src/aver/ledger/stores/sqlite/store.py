"""The ledger's store in one SQLite file: opening and reading it.

`connections` opens the file and makes commits durable; `transaction` writes and parses rows. `protocol.Store`
documents the methods.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, Self, TypeVar

from aver.capsule.blobs import Blob
from aver.capsule.json_reader import Unreadable
from aver.clock import new_id, now
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.ledger.foreign.seal_checks import check_companions, check_schema_size
from aver.ledger.stores.protocol import (
    SEAL_COLUMNS,
    SEARCH_COLUMNS,
    SMALL_BLOB,
    ChainRow,
    ExpectedWrites,
    LookupColumn,
    NotALedger,
    RecordRow,
    Search,
    sql_conditions,
)
from aver.ledger.stores.sqlite import schema
from aver.ledger.stores.sqlite.connections import Connections
from aver.ledger.stores.sqlite.schema import create_ledger_file, refuse_journal
from aver.ledger.stores.sqlite.transaction import (
    CHAIN_COLUMNS,
    TENANT_COLUMN,
    SqliteTransaction,
    parse_chain_row,
    parse_record_row,
    to_bytes,
    to_text,
)
from aver.log import debug

REPEATED_MAX = 100
"""Most repeated records that a verdict names; one is enough for it to fail."""

CHAINS_MAX = 200_000
"""Most chains of one tenant. Their head rows are kept in memory, at some hundred bytes each."""

TENANTS_MAX = 10_000
"""Most tenants of a ledger in a file."""

Result = TypeVar("Result")


class SqliteStore:
    """One ledger file, shared by any number of threads and processes."""

    essential_indexes = frozenset({"index records_by_place", "index sqlite_autoindex_chains_1"})

    def __init__(self, path: Path, *, timeout: float) -> None:
        self.path = path
        self.name = path.name
        self.url = str(path)
        self._connections = Connections(path, timeout=timeout)
        self._reading = self._connections.read_transaction
        self._reading_once = self._connections.read_once
        self._ledger_id: str | None = None

    # --- opening and closing

    @classmethod
    def open(cls, path: Path, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> Self:
        """Open a ledger file. Creates it only if `create` and there is none; otherwise raises `NotFound`."""
        store = cls(path, timeout=timeout)
        file, lock = store._connections.file, store._connections.lock
        try:
            exists, is_file = path.exists(), path.is_file()
        except OSError as error:
            raise Unavailable(f"cannot look at {path}: {error.strerror}", advice="choose another --ledger") from error
        if not exists:
            if not create:
                raise NotFound(
                    f"there is no ledger at {path}", advice="the first hook, aver seal or aver ingest makes it"
                )
            directory = file.parent
            if not directory.is_dir():
                raise NotFound(f"there is no directory {directory}", advice="make it, or choose another --ledger")
            debug("ledger", "creating the ledger %s", file)
            with lock.hold():
                create_ledger_file(file, facts or {"id": new_id(), "created_at": now()})
        elif not is_file:
            raise BadInput(f"{path} is not a file")
        check_companions(path)
        try:
            check_schema_size(path)
        except Unreadable as error:
            raise NotALedger(error.message, advice="restore the file from a copy") from error
        # Look without the lock first: readers must not wait for writers in the normal case.
        try:
            refuse_journal(file)
        except IntegrityError:
            with lock.hold():
                refuse_journal(file)
        store._check_schema(migrate=create)
        return store

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    @property
    def ledger_id(self) -> str:
        if self._ledger_id is None:
            self._ledger_id = self.facts()["id"]
        return self._ledger_id

    def facts(self) -> dict[str, str]:
        with self._reading() as connection:
            found = {to_text(name): to_text(value) for name, value in connection.execute("SELECT * FROM ledger")}
        if "id" not in found:
            raise NotALedger(f"{self.path} has lost its ledger id", advice="restore it from a copy")
        return found

    def _check_schema(self, *, migrate: bool) -> None:
        """Refuse a file that is not a ledger, is of a newer Aver, or was tampered with; migrate an older one."""
        try:
            with self._reading() as connection:
                application = connection.execute("PRAGMA application_id").fetchone()[0]
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                # Before any table is read: a view, generated column or index of others could compute anything.
                foreign = schema.find_foreign_objects(connection)
        except Unavailable as error:
            self.close()
            cause = error.__cause__
            # A file that is locked or cannot be opened is no evidence against it. An unknown format is.
            is_format = getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_ERROR
            if isinstance(cause, sqlite3.OperationalError) and not is_format:
                raise
            raise NotALedger(f"{self.path} is not a ledger: {error.__cause__}") from error
        if application != schema.APPLICATION_ID:
            self.close()
            raise NotALedger(f"{self.path} is an SQLite database, but not a ledger of Aver")
        if version < 1:
            self.close()
            raise NotALedger(f"{self.path} has Aver's mark, but no schema of a ledger (version {version})")
        try:
            schema.refuse_newer_version(self.path, version)
        except NotALedger:
            self.close()
            raise
        # A trigger runs when a row is written; the writing connection refuses it. All else could run when one is read.
        computing = [name for name in foreign if not name.startswith(schema.TRIGGER_LABEL)]
        if computing:
            self.close()
            raise IntegrityError(
                "STORE_DAMAGED",
                f"{self.path} was tampered with: the {computing[0]} is not as Aver makes it",
                evidence=tuple(foreign),
                advice="restore the file from a copy; if you have added it yourself, drop it",
            )
        if version < schema.VERSION and migrate:
            debug("ledger", "migrating %s from schema %d to %d", self.path, version, schema.VERSION)
            with self.transaction() as transaction:
                transaction.migrate()

    # --- writing

    def write(self, work: Callable[[SqliteTransaction], Result], expected: ExpectedWrites) -> Result:
        # One lock excludes all other writers, so `work` never has to be repeated, and nothing is locked by name.
        with self._connections.write_transaction() as transaction:
            return work(transaction)

    def transaction(self, expected: ExpectedWrites | None = None) -> AbstractContextManager[SqliteTransaction]:
        return self._connections.write_transaction()

    # --- reading

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        with self._reading_once() as connection:
            return SqliteTransaction(connection).chain(tenant, name)

    def chains(self, tenant: str) -> list[ChainRow]:
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT {CHAIN_COLUMNS} FROM chains WHERE tenant = ? ORDER BY name LIMIT ?", (tenant, CHAINS_MAX + 1)
            )
            found = [parse_chain_row(row) for row in rows]
        if len(found) > CHAINS_MAX:
            words = f"{self.path} has more than {CHAINS_MAX} chains of one tenant: it is too large"
            raise IntegrityError("STORE_DAMAGED", words, advice="if they are yours, use a PostgreSQL ledger")
        return found

    def tenants(self) -> list[str]:
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT {TENANT_COLUMN} FROM chains ORDER BY tenant LIMIT ?", (TENANTS_MAX + 1,)
            )
            found = [to_text(row[0]) for row in rows]
        if len(found) > TENANTS_MAX:
            words = f"{self.path} has more than {TENANTS_MAX} tenants: it is too large"
            raise IntegrityError("STORE_DAMAGED", words, advice="if they are yours, use a PostgreSQL ledger")
        return found

    @contextmanager
    def read_rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[Iterator[RecordRow]]:
        with self._reading() as connection:
            cursor = connection.execute(
                f"SELECT sequence, {SEARCH_COLUMNS}, {SEAL_COLUMNS}, tenant FROM records"
                " WHERE chain = ? AND sequence >= ? AND sequence < ? ORDER BY sequence",
                (chain.number, start, stop),
            )
            yield map(parse_record_row, cursor)

    def next_sequence(self, chain: ChainRow, start: int) -> int | None:
        with self._reading_once() as connection:
            row = connection.execute(
                "SELECT min(sequence) FROM records WHERE chain = ? AND sequence >= ? AND sequence < ?",
                (chain.number, start, chain.count),
            ).fetchone()
        return None if row[0] is None else int(row[0])

    def hash_at(self, chain: ChainRow, sequence: int) -> str | None:
        if sequence >= 2**63:
            return None  # SQLite's integers end here.
        with self._reading_once() as connection:
            row = connection.execute(
                "SELECT hash FROM records WHERE chain = ? AND sequence = ?", (chain.number, sequence)
            ).fetchone()
        return None if row is None else str(row[0])

    def row_number_at(self, chain: ChainRow, sequence: int) -> int | None:
        with self._reading_once() as connection:
            row = connection.execute(
                "SELECT record FROM records WHERE chain = ? AND sequence = ?", (chain.number, sequence)
            ).fetchone()
        return None if row is None else int(row[0])

    def find_first(self, tenant: str, column: LookupColumn, value: str) -> tuple[str, RecordRow] | None:
        with self._reading_once() as connection:
            row = connection.execute(
                f"SELECT chains.name, sequence, {SEARCH_COLUMNS}, {SEAL_COLUMNS} FROM records JOIN chains USING (chain)"
                # The row's own tenant: the index by key begins with it.
                f" WHERE chains.tenant = ? AND records.tenant = ? AND records.{column} = ? ORDER BY record LIMIT 1",
                (tenant, tenant, value),
            ).fetchone()
        return None if row is None else (row[0], parse_record_row(row[1:]))

    def has_record_beyond(self, chain: ChainRow) -> bool:
        with self._reading() as connection:
            # The stored count may be of any type; like `parse_chain_row`, take an invalid one as 0.
            row = connection.execute(
                "SELECT 1 FROM records JOIN chains USING (chain) WHERE chain = ? AND (sequence < 0 OR sequence >="
                " CASE WHEN typeof(chains.count) = 'integer' THEN max(chains.count, 0) ELSE 0 END) LIMIT 1",
                (chain.number,),
            ).fetchone()
        return row is not None

    def count_orphans(self, tenant: str) -> int:
        with self._reading() as connection:
            row = connection.execute(
                "SELECT count(*) FROM records WHERE tenant = ? AND chain NOT IN (SELECT chain FROM chains)", (tenant,)
            ).fetchone()
        return int(row[0])

    def read_page(
        self, tenant: str, search: Search, *, newer_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        return self._read_page(tenant, search, ("record > ?", newer_than), "ASC", limit)

    def read_newest(
        self, tenant: str, search: Search, *, older_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        return self._read_page(tenant, search, ("record < ?", older_than), "DESC", limit)

    def _read_page(
        self, tenant: str, search: Search, bound: tuple[str, int], order: Literal["ASC", "DESC"], limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        wanted = [bound, *sql_conditions(search)]
        condition = " AND ".join(text for text, _ in wanted)
        # CROSS JOIN fixes the order of the loops, so that SQLite reads along an index and stops after `limit` rows.
        # Left to itself, it begins at the chains and sorts all their records.
        if search.chain is None:
            tables, place = "records CROSS JOIN chains USING (chain)", "record"
        else:
            tables, place = "chains CROSS JOIN records USING (chain)", "sequence"
        with self._reading_once() as connection:
            rows = connection.execute(
                f"SELECT record, chains.name, sequence, {SEARCH_COLUMNS}, {SEAL_COLUMNS} FROM {tables}"
                f" WHERE chains.tenant = ? AND {condition} ORDER BY {place} {order} LIMIT ?",
                (tenant, *(value for _, value in wanted), limit),
            )
            return [(row[0], row[1], parse_record_row(row[2:])) for row in rows]

    def newest_row_before(self, tenant: str, time: str) -> int:
        with self._reading_once() as connection:
            row = connection.execute(
                "SELECT record FROM records CROSS JOIN chains USING (chain) WHERE chains.tenant = ?"
                " AND NOT chains.frozen AND coalesce(records.at, records.signed_at) < ? ORDER BY record DESC LIMIT 1",
                (tenant, time),
            ).fetchone()
        return 0 if row is None else int(row[0])

    def blob(self, tenant: str, digest: str) -> Blob | None:
        with self._reading_once() as connection:
            row = connection.execute(
                "SELECT media, CASE WHEN typeof(data) = 'blob' AND length(data) <= ? THEN data END FROM blobs"
                " WHERE tenant = ? AND digest = ?",
                (SMALL_BLOB, tenant, digest),
            ).fetchone()
        if row is None:
            return None
        if row[1] is not None:
            return Blob(row[1], str(row[0]))
        with self._reading() as connection:
            row = connection.execute(
                "SELECT rowid, typeof(data), media FROM blobs WHERE tenant = ? AND digest = ?", (tenant, digest)
            ).fetchone()
            if row is None:
                return None
            number, kind, media = row
            if kind in ("blob", "text"):
                # A query would keep the blob in memory twice.
                with connection.blobopen("blobs", "data", number, readonly=True) as stored:
                    return Blob(stored.read(), str(media))
            (value,) = connection.execute("SELECT data FROM blobs WHERE rowid = ?", (number,)).fetchone()
            return Blob(to_bytes(value), str(media))

    def small_blobs(self, tenant: str, digests: Collection[str]) -> list[tuple[str, bytes]]:
        with self._reading_once() as connection:
            # One text for any number of digests, so that SQLite prepares it once.
            return connection.execute(
                "SELECT value, data FROM json_each(?) CROSS JOIN blobs ON digest = value"
                " WHERE tenant = ? AND typeof(data) = 'blob' AND length(data) <= ?",
                (json.dumps(list(digests)), tenant, SMALL_BLOB),
            ).fetchall()

    def change_mark(self) -> str:
        return str(self._connections.data_version())

    def find_repeated(self, tenant: str) -> list[tuple[str, str, int]]:
        found: list[tuple[str, str, int]] = []
        with self._reading() as connection:
            for column in ("id", "key"):
                twice = connection.execute(
                    f"SELECT {column} FROM records WHERE tenant = ? AND {column} IS NOT NULL"
                    f" GROUP BY {column} HAVING count(*) > 1 LIMIT {REPEATED_MAX}",
                    (tenant,),
                )
                for (value,) in twice.fetchall():
                    rows = connection.execute(
                        "SELECT CAST(name AS BLOB), sequence FROM records JOIN chains USING (chain)"
                        f" WHERE records.tenant = ? AND {column} = ? ORDER BY record LIMIT {REPEATED_MAX} OFFSET 1",
                        (tenant, value),
                    )
                    found.extend((column, to_text(name), at) for name, at in rows if type(at) is int)
        return found[:REPEATED_MAX]

    def schema_differences(self) -> list[str]:
        with self._reading() as connection:
            return schema.find_differences(connection)

    def find_damage(self) -> list[str]:
        """Damaged pages, and indexes that disagree with their tables, as SQLite's integrity check finds them."""
        with self._reading() as connection:
            # The check evaluates the expressions of a schema, so it must not meet others than Aver's.
            if foreign := schema.find_foreign_objects(connection):
                return [f"the {name} is not as Aver makes it, so SQLite's check was not run" for name in foreign]
            rows = [to_text(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
            gone = connection.execute(
                "SELECT count(*) FROM records WHERE tenant NOT IN (SELECT tenant FROM chains)"
            ).fetchone()[0]
        orphans = [f"{gone} records are left of tenants that have no chain any more"] if gone else []
        return orphans if rows == ["ok"] else [*rows, *orphans]

    def limitations(self) -> list[str]:
        return []
