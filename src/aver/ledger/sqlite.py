"""The ledger's store in one SQLite file: opening, connections, and all that is read. Writing is in `transaction`.

Durable means durable: write-ahead log, `synchronous=FULL`, and an append returns after the log was synced. Every
write transaction and every checkpoint of the log runs under the one lock beside the file (see `lock`), then under
`BEGIN IMMEDIATE`. Only the writing connection checkpoints: when it commits, and when it is closed, which is done
under the lock too.

Readers never wait for writers. Each read is a short transaction on a read-only connection of its own.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from aver.capsule.blobs import BLOB_MAX, Blob
from aver.capsule.reading import ELEMENT_MAX
from aver.clock import new_id, now
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.ledger import schema
from aver.ledger.forks import mind_forks
from aver.ledger.lock import WriteLock
from aver.ledger.making import has_journal, make_file, refuse_journal, unavailable
from aver.ledger.outside import companions_of
from aver.ledger.rows import (
    CHAIN,
    COLUMNS,
    SEAL,
    TENANT,
    ChainRow,
    Row,
    as_bytes,
    as_text,
    chain_named,
    chain_row,
    stored_row,
)
from aver.ledger.search import Search, conditions
from aver.ledger.store import Expected, LookupColumn
from aver.ledger.transaction import SqliteTransaction

__all__ = ["SqliteStore"]

LOG_PAGES = 1000
"""Length of the write-ahead log from which a commit also moves it into the main file."""

WRITER_CACHE_KIB = 16 * 1024
"""Memory for pages of the writing connection: the indexes by hash and id are hit at random."""

VALUE_MAX = BLOB_MAX + 1024 * 1024
"""Bytes of one value that is written: the largest blob and its row."""

ROW_MAX = 2 * ELEMENT_MAX
"""Bytes of one value that is read, but for blobs: the largest capsule, and the rest of its row. A file that was
tampered with must not make more of them."""

REPEATED_MAX = 100
"""Records that stand twice which a verdict names; one is enough for it to fail."""

LOCK_SUFFIX = ".lock"

Result = TypeVar("Result")

_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What `sqlite3` raises. The second, where a message about a damaged schema quotes bytes that are not text."""


_OF_THE_FILE = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN))
"""What SQLite reports where the way in which it has opened a file may be at fault."""


class SqliteStore:
    """One ledger file, shared by any number of threads and processes."""

    read_by = frozenset({"index records_by_place", "index sqlite_autoindex_chains_1"})

    def __init__(self, path: Path, *, timeout: float) -> None:
        self.path = path
        self.name = path.name
        self.url = str(path)
        # Where a link leads: whoever opens the same file by another name must meet the same lock.
        self._file = path.resolve()
        self._lock = WriteLock(self._file.with_name(self._file.name + LOCK_SUFFIX), timeout=timeout)
        self._timeout = timeout
        self._closed = False
        self._ledger_id: str | None = None
        self._without_connections()
        mind_forks(self)

    def _without_connections(self) -> None:
        self._mutex = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._readers = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0

    # --- opening and closing

    @classmethod
    def open(cls, path: Path, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> SqliteStore:
        """Open a ledger file, making it first if `create` and there is none. Never makes one otherwise."""
        store = cls(path, timeout=timeout)
        try:
            exists, is_file = path.exists(), path.is_file()
        except OSError as error:
            raise Unavailable(f"cannot look at {path}: {error.strerror}", advice="choose another --ledger") from error
        if not exists:
            if not create:
                raise NotFound(f"there is no ledger at {path}", advice="aver seal makes one")
            directory = store._file.parent
            if not directory.is_dir():
                raise NotFound(f"there is no directory {directory}", advice="make it, or choose another --ledger")
            with store._lock.held():
                make_file(store._file, facts or {"id": new_id(), "created_at": now()})
        elif not is_file:
            raise BadInput(f"{path} is not a file")
        companions_of(path)
        if has_journal(store._file):
            with store._lock.held():
                refuse_journal(store._file)
        store._check_schema(migrate=create)
        return store

    def close(self) -> None:
        """Close every connection, moving the log into the main file while no one else writes."""
        if self._closed:
            return
        self._closed = True
        with self._mutex:
            try:
                with self._readers:
                    self._close_idle()
                self._close_writer()
            finally:
                self._lock.close()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._lock.held():
                writer.close()

    def before_fork(self) -> None:
        """Wait for what is under way, then close every connection; see `forks`."""
        self._mutex.acquire()
        self._readers.acquire()
        self._readers.wait_for(lambda: self._reading == 0, self._timeout)
        self._close_idle()
        if self._writer is not None and not self._writer.in_transaction:
            try:
                self._close_writer()
            except Unavailable:
                return  # The lock is held elsewhere for longer than anyone here would wait: better to fork.

    def after_fork_in_parent(self) -> None:
        self._readers.release()
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        self._without_connections()

    @property
    def ledger_id(self) -> str:
        if self._ledger_id is None:
            self._ledger_id = self.facts()["id"]
        return self._ledger_id

    def facts(self) -> dict[str, str]:
        with self.reading() as connection:
            found = {as_text(name): as_text(value) for name, value in connection.execute("SELECT * FROM ledger")}
        if "id" not in found:
            raise BadInput(f"{self.path} has lost its ledger id", advice="restore it from a copy")
        return found

    def _check_schema(self, *, migrate: bool) -> None:
        try:
            with self.reading() as connection:
                application = connection.execute("PRAGMA application_id").fetchone()[0]
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                strange = _not_tables(connection)
        except Unavailable as error:
            self._closed = True
            if isinstance(error.__cause__, sqlite3.OperationalError):
                raise
            raise BadInput(f"{self.path} is not a ledger: {error.__cause__}") from error
        if application != schema.APPLICATION_ID:
            self.close()
            raise BadInput(f"{self.path} is an SQLite database, but not a ledger of Aver")
        if version < 1:
            self.close()
            raise BadInput(f"{self.path} has Aver's mark, but no schema of a ledger (version {version})")
        if version > schema.VERSION:
            self.close()
            raise BadInput(
                f"{self.path} was written by a newer Aver (schema {version}, this one knows {schema.VERSION})",
                advice="upgrade Aver",
            )
        if strange:
            self.close()
            raise IntegrityError(
                "SCHEMA_INVALID",
                f"{self.path} was tampered with: {strange} is not a table of the ledger",
                evidence=strange,
                advice="restore the file from a copy",
            )
        if version < schema.VERSION and migrate:
            with self.writing() as transaction:
                transaction.migrate()

    # --- connections

    def _connect(self, uri: str) -> sqlite3.Connection:
        if self._closed:
            raise Unavailable("the ledger was closed")
        try:
            connection = sqlite3.connect(
                uri, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_MAX)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except _SQLITE_ERRORS as error:
            raise unavailable(self.path, error) from error
        return connection

    def _connect_reader(self) -> tuple[sqlite3.Connection, bool]:
        """A connection to read by, and whether it will still tell the truth later.

        Where the directory does not let SQLite make its index and there is no log to miss, the file is read as it
        lies; such a connection does not see what is written meanwhile.
        """
        base = self._file.as_uri()
        try:
            return self._connect(f"{base}?mode=ro"), True
        except Unavailable:
            if self._closed or companions_of(self._file) & {"-wal", "-journal"}:
                raise
        return self._connect(f"{base}?mode=ro&immutable=1"), False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the ledger for as long as the context lasts."""
        with self._readers:
            self._reading += 1
            connection = self._idle.pop() if self._idle else None
        lasting = finished = False
        try:
            connection, lasting = (connection, True) if connection else self._connect_reader()
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            finished = True
        except _SQLITE_ERRORS as error:
            raise unavailable(self.path, error) from error
        finally:
            with self._readers:
                self._reading -= 1
                self._readers.notify_all()
                if finished and lasting and not self._closed and connection is not None:
                    self._idle.append(connection)
                elif connection is not None:
                    connection.close()

    def write(self, work: Callable[[SqliteTransaction], Result], expected: Expected) -> Result:
        with self.writing() as transaction:
            return work(transaction)

    @contextmanager
    def writing(self, expected: Expected | None = None) -> Iterator[SqliteTransaction]:
        """One durable transaction. When the context ends without an error, what was written is on disk."""
        with self._mutex, self._lock.held():
            try:
                connection = self._writer or self._open_writer()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteTransaction(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except _SQLITE_ERRORS as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_FILE:
                    self._drop_writer()
                raise unavailable(self.path, error) from error

    def _drop_writer(self) -> None:
        """Let the next transaction open its own connection: where a file could not be opened for writing for once,
        SQLite opens it for reading only, and stays with that."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(sqlite3.Error):
                writer.close()

    def _open_writer(self) -> sqlite3.Connection:
        if not os.access(self.path, os.W_OK):
            raise Unavailable(f"the ledger {self.path} may only be read", advice="check its owner and mode")
        refuse_journal(self._file)
        connection = self._connect(f"{self._file.as_uri()}?mode=rw")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX)
        if strange := schema.foreign_triggers(connection):
            connection.close()
            raise IntegrityError(
                "SCHEMA_INVALID",
                f"{self.path} was tampered with: the trigger {ascii(strange[0])[:80]} would run at every append",
                evidence=strange,
                advice="nothing was recorded; restore the file from a copy",
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        connection.execute(f"PRAGMA cache_size = {-WRITER_CACHE_KIB}")
        self._writer = connection
        return connection

    # --- reading

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        with self.reading() as connection:
            return chain_named(connection, tenant, name)

    def chains(self, tenant: str) -> list[ChainRow]:
        with self.reading() as connection:
            rows = connection.execute(f"SELECT {CHAIN} FROM chains WHERE tenant = ? ORDER BY name", (tenant,))
            return [chain_row(row) for row in rows]

    def tenants(self) -> list[str]:
        with self.reading() as connection:
            rows = connection.execute(f"SELECT DISTINCT {TENANT} FROM chains ORDER BY tenant")
            return [as_text(row[0]) for row in rows]

    @contextmanager
    def rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[Iterator[Row]]:
        with self.reading() as connection:
            cursor = connection.execute(
                f"SELECT sequence, {COLUMNS}, {SEAL}, tenant FROM records"
                " WHERE chain = ? AND sequence >= ? AND sequence < ? ORDER BY sequence",
                (chain.number, start, stop),
            )
            yield map(stored_row, cursor)

    def next_sequence(self, chain: ChainRow, start: int) -> int | None:
        with self.reading() as connection:
            row = connection.execute(
                "SELECT min(sequence) FROM records WHERE chain = ? AND sequence >= ? AND sequence < ?",
                (chain.number, start, chain.count),
            ).fetchone()
        return None if row[0] is None else int(row[0])

    def hash_at(self, chain: ChainRow, sequence: int) -> str | None:
        if sequence >= 2**63:
            return None  # further than SQLite counts
        with self.reading() as connection:
            row = connection.execute(
                "SELECT hash FROM records WHERE chain = ? AND sequence = ?", (chain.number, sequence)
            ).fetchone()
        return None if row is None else str(row[0])

    def number_at(self, chain: ChainRow, sequence: int) -> int | None:
        with self.reading() as connection:
            row = connection.execute(
                "SELECT record FROM records WHERE chain = ? AND sequence = ?", (chain.number, sequence)
            ).fetchone()
        return None if row is None else int(row[0])

    def first(self, tenant: str, column: LookupColumn, value: str) -> tuple[str, Row] | None:
        rows = self._page(tenant, [(f"records.{column} = ?", value)], limit=1)
        return rows[0][1:] if rows else None

    def has_record_beyond(self, chain: ChainRow) -> bool:
        with self.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM records JOIN chains USING (chain) WHERE chain = ? AND (sequence < 0 OR sequence >="
                " CASE WHEN typeof(chains.count) = 'integer' THEN max(chains.count, 0) ELSE 0 END) LIMIT 1",
                (chain.number,),
            ).fetchone()
        return row is not None

    def orphans(self, tenant: str) -> int:
        with self.reading() as connection:
            row = connection.execute(
                "SELECT count(*) FROM records WHERE tenant = ? AND chain NOT IN (SELECT chain FROM chains)", (tenant,)
            ).fetchone()
        return int(row[0])

    def page(self, tenant: str, search: Search, *, newer_than: int, limit: int) -> list[tuple[int, str, Row]]:
        return self._page(tenant, [("record > ?", newer_than), *conditions(search)], limit=limit)

    def _page(self, tenant: str, wanted: list[tuple[str, str | int]], *, limit: int) -> list[tuple[int, str, Row]]:
        condition = " AND ".join(text for text, _ in wanted)
        with self.reading() as connection:
            rows = connection.execute(
                f"SELECT record, chains.name, sequence, {COLUMNS}, {SEAL} FROM records JOIN chains USING (chain)"
                f" WHERE chains.tenant = ? AND {condition} ORDER BY record LIMIT ?",
                (tenant, *(value for _, value in wanted), limit),
            )
            return [(row[0], row[1], stored_row(row[2:])) for row in rows]

    def blob(self, tenant: str, digest: str) -> Blob | None:
        with self.reading() as connection:
            row = connection.execute(
                "SELECT rowid, typeof(data), media FROM blobs WHERE tenant = ? AND digest = ?", (tenant, digest)
            ).fetchone()
            if row is None:
                return None
            number, kind, media = row
            if kind in ("blob", "text"):
                # Not by a query: that would keep it in memory twice.
                with connection.blobopen("blobs", "data", number, readonly=True) as stored:
                    return Blob(stored.read(), str(media))
            (value,) = connection.execute("SELECT data FROM blobs WHERE rowid = ?", (number,)).fetchone()
            return Blob(as_bytes(value), str(media))

    def repeated(self, tenant: str) -> list[tuple[str, str, int]]:
        found: list[tuple[str, str, int]] = []
        with self.reading() as connection:
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
                    found.extend((column, as_text(name), at) for name, at in rows if type(at) is int)
        return found[:REPEATED_MAX]

    def altered(self) -> list[str]:
        """Tables and indexes that are not those that Aver makes."""
        with self.reading() as connection:
            return schema.differences(connection)

    def damage(self) -> list[str]:
        """What SQLite finds wrong with the file: pages that are damaged, tables and indexes that disagree."""
        with self.reading() as connection:
            rows = [as_text(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
            gone = connection.execute(
                "SELECT count(*) FROM records WHERE tenant NOT IN (SELECT tenant FROM chains)"
            ).fetchone()[0]
        left = [f"{gone} records are left of tenants that have no chain any more"] if gone else []
        return left if rows == ["ok"] else [*rows, *left]

    def remarks(self) -> list[str]:
        return []


def _not_tables(connection: sqlite3.Connection) -> str | None:
    """Something in the place of a table that is none, or a program hidden in the file; None if there is nothing."""
    row = connection.execute(
        "SELECT type || ' ' || name FROM sqlite_schema WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%'"
        " OR (type = 'table' AND sql LIKE '%GENERATED ALWAYS%') LIMIT 1"
    ).fetchone()
    return None if row is None else as_text(row[0])
