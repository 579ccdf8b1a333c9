"""The ledger's store on a PostgreSQL server, for many writers on many machines.

Durable means durable: every write transaction runs with `synchronous_commit` on, and an append returns after the
server has acknowledged its commit. Where the answer to a commit is lost, Aver waits until that transaction has ended,
looks for the record, and so learns whether it was written: it is never written twice, and never said not to be written
when it was. Writers wait for each other only where they write to the same chain.

Every read is one statement. What is read in several is only ever added to, so it makes no difference that others write
meanwhile. Writing goes to the primary alone; a replica can be read, and says that it is one.

Opening a ledger on a server: is this a server that will do, are the tables there, are they ours, which version.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.errors import InsufficientPrivilege

from aver.capsule.blobs import Blob
from aver.clock import new_id, now
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.ledger.stores.forks import register_for_forks
from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.address import Address, WriteConflict, parse_address
from aver.ledger.stores.postgres.catalogue import find_differences, find_foreign_programs
from aver.ledger.stores.postgres.health import HealthRemark, check_health
from aver.ledger.stores.postgres.pool import Pool, PoolConnection
from aver.ledger.stores.postgres.soundness import find_disagreements, list_unchecked
from aver.ledger.stores.postgres.transaction import (
    CHAIN_COLUMNS,
    RECORD_COLUMNS,
    CommitProof,
    IdCheck,
    PostgresTransaction,
    from_column,
    parse_chain_row,
    parse_record_row,
    to_column,
)
from aver.ledger.stores.protocol import ExpectedWrites, LookupColumn
from aver.ledger.stores.rows import ChainRow, RecordRow, Search, sql_conditions

__all__ = ["PostgresStore", "check_server", "prepare_tables"]


ROWS_AT_ONCE = 200
"""Records fetched in one statement: even the largest, 200 of 256 KiB, take 50 MiB."""

REPEATED_MAX = 100
"""Records that stand twice which a verdict names; one is enough for it to fail."""

PAUSE = 0.05
"""Seconds between two attempts to reach a server that has just been lost."""

SEQUENCE_MAX = 2**63 - 1

Result = TypeVar("Result")


class PostgresStore:
    """One ledger in a database, shared by any number of threads, processes and machines."""

    essential_indexes = frozenset({"index records_by_place", "index chains_by_name"})

    def __init__(self, address: Address, *, timeout: float) -> None:
        self.name = address.name
        self.url = address.url
        self.is_replica = False
        self._address = address
        self._timeout = timeout
        self._pool = Pool(address, timeout=timeout)
        self._ledger_id: str | None = None
        register_for_forks(self)

    # --- opening and closing

    @classmethod
    def open(cls, url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> PostgresStore:
        """Open a ledger, making its tables first if `create` and there are none. Never makes any otherwise."""
        store = cls(parse_address(url), timeout=timeout)
        try:
            connection = store._pool.connect_first()
            store.is_replica = check_server(connection, store.name)
            prepare_tables(connection, store.name, create=create, facts=facts)
        except psycopg.Error as error:
            store.close()
            raise store._address.to_unavailable(error) from error
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._pool.close()

    def before_fork(self) -> None:
        self._pool.before_fork()

    def after_fork_in_parent(self) -> None:
        self._pool.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        self._pool.after_fork_in_child()

    @property
    def ledger_id(self) -> str:
        if self._ledger_id is None:
            self._ledger_id = self.facts()["id"]
        return self._ledger_id

    def facts(self) -> dict[str, str]:
        found: dict[str, str] = dict(self._fetch("SELECT name, value FROM aver.ledger"))
        if "id" not in found:
            raise BadInput(f"{self.name} has lost its ledger id", advice="restore it from a copy")
        return found

    # --- writing

    def write(self, work: Callable[[PostgresTransaction], Result], expected: ExpectedWrites) -> Result:
        # So that one answer that never came leaves time for another try.
        deadline = time.monotonic() + 3 * self._timeout
        ids: IdCheck = "assumed new"
        while True:
            try:
                with self._transaction(expected, ids) as transaction:
                    return work(transaction)
            except WriteConflict:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
                ids = "looked up"

    def transaction(self, expected: ExpectedWrites | None = None) -> AbstractContextManager[PostgresTransaction]:
        return self._transaction(expected, "looked up")

    @contextmanager
    def _transaction(self, expected: ExpectedWrites | None, ids: IdCheck) -> Iterator[PostgresTransaction]:
        """One durable transaction. When the context ends without an error, what was written is on disk."""
        if self.is_replica:
            raise Unavailable(
                f"the ledger {self.name} may only be read: it is a replica",
                advice="write to the primary; with several hosts in the URL add target_session_attrs=read-write",
            )
        with self._pool.connection(patience=2 * self._timeout) as connection:
            transaction = PostgresTransaction(connection, timeout=self._timeout, ids=ids)
            try:
                try:
                    self._refuse_foreign_programs(connection)
                    transaction.begin(expected)
                    yield transaction
                    transaction.commit()
                except BaseException:
                    transaction.roll_back()
                    raise
            except psycopg.Error as error:
                if not (transaction.is_committing and _is_lost(connection)):
                    raise self._not_written_error(error, connection) from error
                failure = error
            else:
                return
        if not self._was_committed(transaction.commit_proof):
            raise self._not_written_error(failure, None) from failure

    def _refuse_foreign_programs(self, connection: PoolConnection) -> None:
        """Once for each connection: see that nothing but Aver's guards runs when a record is added."""
        if not connection.may_write:
            if strange := find_foreign_programs(connection):
                raise IntegrityError(
                    "SCHEMA_INVALID",
                    f"{self.name} was tampered with: the {ascii(strange[0])[1:81]} would run at every append",
                    evidence=strange,
                    advice="nothing was recorded; restore the database from a copy",
                )
            connection.may_write = True

    def _not_written_error(self, error: psycopg.Error, connection: PoolConnection | None) -> Exception:
        if connection is None or _is_lost(connection) or error.sqlstate in _RETRYABLE_CODES:
            words = f"the ledger {self.name} cannot be used: {self._address.error_text(error)}"
            return WriteConflict(words, advice="nothing was recorded; try again")
        if error.sqlstate == _LOCK_TIMEOUT_CODE:
            words = f"another writer has held a chain of the ledger {self.name} for {self._timeout:g} seconds"
            return Unavailable(words, advice="nothing was recorded; pg_stat_activity on the server tells who it is")
        return self._address.to_unavailable(error)

    def _was_committed(self, proof: CommitProof | None) -> bool:
        """Whether a transaction whose commit was not answered was committed.

        It held the lock on its chain. Whoever gets that lock now knows that it has ended, one way or the other.
        """
        deadline = time.monotonic() + 2 * self._timeout
        while proof is not None and time.monotonic() < deadline:
            try:
                with self._pool.connection(patience=2 * self._timeout) as connection:
                    connection.execute(_TERMINATE_BACKEND, (proof.backend, proof.began))
                    transaction = PostgresTransaction(connection, timeout=self._timeout)
                    try:
                        transaction.begin(ExpectedWrites(proof.tenant, frozenset({proof.chain})))
                        return transaction.has_committed(proof)
                    finally:
                        transaction.roll_back()
            except (psycopg.Error, Unavailable):
                time.sleep(PAUSE)
        raise Unavailable(
            f"the connection to {self.name} was lost while it committed, and it is not known whether that was recorded",
            advice="look the record up by its key or id before you try again",
        )

    # --- reading

    def _fetch(self, query: str, values: Sequence[Any] = (), *, patience: float | None = None) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return self._run_read(lambda connection: connection.execute(query, values, binary=True).fetchall(), patience)

    def _run_read(self, look: Callable[[PoolConnection], Result], patience: float | None = None) -> Result:
        """What is seen through a connection. One that turns out to be dead is replaced."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with self._pool.connection(patience=patience or 2 * self._timeout) as connection:
                    try:
                        return look(connection)
                    except psycopg.Error:
                        if not _is_lost(connection) or time.monotonic() > deadline:
                            raise
            except psycopg.Error as error:
                raise self._address.to_unavailable(error) from error
            time.sleep(PAUSE)

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        rows = self._fetch(f"SELECT {CHAIN_COLUMNS} FROM aver.chains WHERE tenant = %s AND name = %s", (tenant, name))
        return parse_chain_row(rows[0]) if rows else None

    def chains(self, tenant: str) -> list[ChainRow]:
        return [
            parse_chain_row(row)
            for row in self._fetch(
                f"SELECT {CHAIN_COLUMNS} FROM aver.chains WHERE tenant = %s ORDER BY name", (tenant,)
            )
        ]

    def tenants(self) -> list[str]:
        return [row[0] for row in self._fetch("SELECT DISTINCT tenant FROM aver.chains ORDER BY tenant")]

    @contextmanager
    def read_rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[Iterator[RecordRow]]:
        yield self._read_rows(chain, min(start, SEQUENCE_MAX), min(stop, SEQUENCE_MAX))

    def _read_rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[RecordRow]:
        query = f"SELECT {RECORD_COLUMNS} FROM aver.records WHERE chain = %s AND sequence >= %s AND sequence < %s"
        while start < stop:
            found = self._fetch(f"{query} ORDER BY sequence LIMIT {ROWS_AT_ONCE}", (chain.number, start, stop))
            yield from map(parse_record_row, found)
            if len(found) < ROWS_AT_ONCE:
                return
            start = found[-1][0] + 1

    def next_sequence(self, chain: ChainRow, start: int) -> int | None:
        rows = self._fetch(
            "SELECT min(sequence) FROM aver.records WHERE chain = %s AND sequence >= %s AND sequence < %s",
            (chain.number, start, chain.count),
        )
        return None if rows[0][0] is None else int(rows[0][0])

    def hash_at(self, chain: ChainRow, sequence: int) -> str | None:
        found = self._value_at("hash", chain, sequence)
        return None if found is None else from_column(found)

    def row_number_at(self, chain: ChainRow, sequence: int) -> int | None:
        found = self._value_at("record", chain, sequence)
        return None if found is None else int(found)

    def _value_at(self, column: str, chain: ChainRow, sequence: int) -> Any:
        if sequence > SEQUENCE_MAX:
            return None  # further than PostgreSQL counts
        query = f"SELECT {column} FROM aver.records WHERE chain = %s AND sequence = %s"
        rows = self._fetch(query, (chain.number, sequence))
        return rows[0][0] if rows else None

    def find_first(self, tenant: str, column: LookupColumn, value: str) -> tuple[str, RecordRow] | None:
        rows = self._read_page(tenant, [("records.tenant = ?", tenant), (f"records.{column} = ?", value)], limit=1)
        return rows[0][1:] if rows else None

    def read_page(
        self, tenant: str, search: Search, *, newer_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        return self._read_page(tenant, [("record > ?", newer_than), *sql_conditions(search)], limit=limit)

    def _read_page(
        self, tenant: str, wanted: list[tuple[str, str | int]], *, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        condition = " AND ".join(text.replace("?", "%s") for text, _ in wanted)
        values = (to_column(value) if isinstance(value, str) else value for _, value in wanted)
        rows = self._fetch(
            f"SELECT record, chains.name, {RECORD_COLUMNS} FROM aver.records JOIN aver.chains USING (chain)"
            f" WHERE chains.tenant = %s AND {condition} ORDER BY record LIMIT %s",
            (tenant, *values, limit),
        )
        return [(row[0], row[1], parse_record_row(row[2:])) for row in rows]

    def blob(self, tenant: str, digest: str) -> Blob | None:
        rows = self._fetch("SELECT data, media FROM aver.blobs WHERE tenant = %s AND digest = %s", (tenant, digest))
        return Blob(rows[0][0], from_column(rows[0][1])) if rows else None

    # --- for verification

    def has_record_beyond(self, chain: ChainRow) -> bool:
        return bool(
            self._fetch(
                "SELECT FROM aver.records JOIN aver.chains USING (chain)"
                " WHERE chain = %s AND (sequence < 0 OR sequence >= greatest(chains.count, 0)) LIMIT 1",
                (chain.number,),
            )
        )

    def count_orphans(self, tenant: str) -> int:
        rows = self._scan(
            "SELECT count(*) FROM aver.records WHERE tenant = %s"
            " AND NOT EXISTS (SELECT FROM aver.chains WHERE chains.chain = records.chain)",
            (tenant,),
        )
        return int(rows[0][0])

    def find_repeated(self, tenant: str) -> list[tuple[str, str, int]]:
        found: list[tuple[str, str, int]] = []
        for column in ("id", "key"):
            later = self._scan(
                f"SELECT name, sequence FROM (SELECT chain, sequence, record, row_number() OVER (PARTITION BY {column}"
                f" ORDER BY record) AS time FROM aver.records WHERE tenant = %s AND {column} IN (SELECT {column}"
                f" FROM aver.records WHERE tenant = %s GROUP BY {column} HAVING count(*) > 1 LIMIT {REPEATED_MAX}))"
                f" AS twice JOIN aver.chains USING (chain) WHERE time > 1 ORDER BY record LIMIT {REPEATED_MAX}",
                (tenant, tenant),
            )
            found.extend((column, name, sequence) for name, sequence in later)
        return found[:REPEATED_MAX]

    def schema_differences(self) -> list[str]:
        return self._run_read(find_differences, TABLE_SCAN_TIMEOUT)

    def find_damage(self) -> list[str]:
        return self._run_read(find_disagreements, TABLE_SCAN_TIMEOUT)

    def limitations(self) -> list[str]:
        replica = ["read from a replica, which may lag behind its primary"] if self.is_replica else []
        return [*replica, *self._run_read(list_unchecked, TABLE_SCAN_TIMEOUT)]

    def check_health(self) -> list[HealthRemark]:
        """What `aver doctor` says of the server."""
        return self._run_read(lambda connection: list(check_health(connection)), TABLE_SCAN_TIMEOUT)

    def _scan(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement that reads whole tables, and takes as long as that takes."""
        return self._fetch(query, values, patience=TABLE_SCAN_TIMEOUT)


TABLE_SCAN_TIMEOUT = 6 * 60 * 60.0
"""Seconds for a statement that reads whole tables: more than any should take."""

_LOCK_TIMEOUT_CODE = "55P03"
_RETRYABLE_CODES = frozenset({"23505", "40001", "40P01"})
"""Another writer used the same key or id first, or waited for us while we waited for it."""

_TERMINATE_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
_TERMINATE_BACKEND += " WHERE pid = %s AND xact_start = %s AND state LIKE 'idle in transaction%%'"
"""End a transaction whose client is gone, unless it is at work: then it ends by itself."""


def _is_lost(connection: PoolConnection) -> bool:
    return connection.closed or connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.UNKNOWN


OLDEST_VERSION = 140000
"""PostgreSQL 14: the oldest whose makers still mend it, as this is written."""

_SERVER_QUERY = """
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
       current_setting('server_encoding'), pg_is_in_recovery()
"""
_NON_TABLE_QUERY = """
SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
       WHEN 'p' THEN 'partitioned table' ELSE 'relation' END || ' ' || relname
FROM pg_class WHERE relnamespace = to_regnamespace('aver') AND relname = ANY (%s) AND relkind <> 'r' LIMIT 1
"""


def check_server(connection: PoolConnection, name: str) -> bool:
    """Refuse a server that will not do. Tells whether it is a replica."""
    number, version, encoding, is_replica = connection.execute(_SERVER_QUERY).fetchone() or (0, "?", "?", False)
    if number < OLDEST_VERSION:
        raise BadInput(f"{name} is PostgreSQL {version}", advice=f"use PostgreSQL {OLDEST_VERSION // 10000} or newer")
    if encoding != "UTF8":
        raise BadInput(
            f"{name} is a database in {encoding}, which cannot hold every text",
            advice="create one WITH ENCODING 'UTF8' TEMPLATE template0",
        )
    return bool(is_replica)


def prepare_tables(connection: PoolConnection, name: str, *, create: bool, facts: Mapping[str, str] | None) -> None:
    """See that the ledger's tables are there and named; make or migrate them if `create`.

    `facts` is what a new ledger says of itself, where it is to be a copy of another.
    """
    strange = connection.execute(_NON_TABLE_QUERY, (list(schema.TABLES),)).fetchone()
    if strange is not None:
        raise IntegrityError(
            "SCHEMA_INVALID",
            f"{name} was tampered with: {strange[0]} is not a table of the ledger",
            evidence=strange[0],
            advice="restore the database from a copy",
        )
    version = schema.read_version(connection)
    if version > schema.VERSION:
        raise BadInput(
            f"{name} was written by a newer Aver (schema {version}, this one knows {schema.VERSION})",
            advice="upgrade Aver",
        )
    if version < schema.VERSION and create:
        _migrate_tables(connection, name, version)
        version = schema.VERSION
    if version == 0:
        advice = "aver seal makes one, where its role may; or else its owner: aver doctor --setup-sql"
        raise NotFound(f"there is no ledger at {name}", advice=advice)
    if not _ensure_ledger_id(connection, facts, create=create):
        raise NotFound(
            f"there is no ledger at {name} yet; its tables are ready", advice="the first aver seal begins it"
        )


def _migrate_tables(connection: PoolConnection, name: str, version: int) -> None:
    try:
        schema.migrate(connection)
    except InsufficientPrivilege as error:
        if version == 0:
            words, advice = f"there is no ledger at {name}, and this role may not make one", "--setup-sql"
        else:
            words = f"{name} has schema {version}, this Aver needs {schema.VERSION}, and this role may not change it"
            advice = "--setup-sql, or open it once as the owner of its tables"
        raise Unavailable(words, advice=f"have its owner run: aver doctor {advice}") from error


def _ensure_ledger_id(connection: PoolConnection, facts: Mapping[str, str] | None, *, create: bool) -> bool:
    """Whether the ledger has its id. Whoever comes first gives it one, for ever."""
    query = "SELECT value FROM aver.ledger WHERE name = 'id'"
    if connection.execute(query).fetchone() is None and create:
        given = facts or {"id": new_id(), "created_at": now()}
        with connection.transaction():
            # One row decides between several who try; the others' facts are not mixed with it.
            first = connection.execute(
                "INSERT INTO aver.ledger VALUES ('id', %s) ON CONFLICT DO NOTHING", (given["id"],)
            )
            if first.rowcount:
                rest = [(name, value) for name, value in given.items() if name != "id"]
                connection.cursor().executemany("INSERT INTO aver.ledger VALUES (%s, %s) ON CONFLICT DO NOTHING", rest)
    return connection.execute(query).fetchone() is not None
