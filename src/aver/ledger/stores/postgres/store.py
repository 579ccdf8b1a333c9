"""The ledger's store on a PostgreSQL server, for many writers on many machines.

A commit is durable: every write transaction runs with `synchronous_commit` on, and an append returns after the server
has acknowledged its commit. If the answer to a commit is lost, Aver waits until that transaction has ended and looks
for its record. So a record is never written twice, and never reported as not written when it was. Writers wait for each
other only when they write to the same chain.

Every read is one statement. Data that is read in several statements is only ever added to, so concurrent writes do no
harm. Only the primary accepts writes; a replica can be read, and the verdict says that it is one.

Opening checks the server (`check_server`), then its tables and their version (`prepare_tables`).
`protocol.Store` documents the methods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.errors import InsufficientPrivilege

from aver.capsule.blobs import Blob
from aver.clock import new_id, now
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.ledger.stores.forks import register_for_forks
from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.health import HealthRemark, check_health, find_disagreements, list_unchecked
from aver.ledger.stores.postgres.pool import Address, Pool, PoolConnection, WriteConflict, parse_address
from aver.ledger.stores.postgres.schema import find_differences, find_foreign_programs
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
from aver.ledger.stores.protocol import (
    SMALL_BLOB,
    ChainRow,
    ExpectedWrites,
    LookupColumn,
    NotALedger,
    RecordRow,
    Search,
    sql_conditions,
)
from aver.log import debug

ROWS_AT_ONCE = 200
"""Records fetched in one statement: 200 of the largest size, 256 KiB, take 50 MiB of memory."""

REPEATED_MAX = 100
"""Most repeated records that a verdict names; one is enough for it to fail."""

PAUSE = 0.05
"""Seconds between two attempts to reach a server after its connection was lost."""

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
        register_for_forks(self._pool)

    # --- opening and closing

    @classmethod
    def open(cls, url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> PostgresStore:
        """Open a ledger. Creates its tables only if `create` and there are none; otherwise raises `NotFound`."""
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

    @property
    def ledger_id(self) -> str:
        if self._ledger_id is None:
            self._ledger_id = self.facts()["id"]
        return self._ledger_id

    def facts(self) -> dict[str, str]:
        found: dict[str, str] = dict(self._fetch("SELECT name, value FROM aver.ledger"))
        if "id" not in found:
            raise NotALedger(f"{self.name} has lost its ledger id", advice="restore it from a copy")
        return found

    # --- writing

    def write(self, work: Callable[[PostgresTransaction], Result], expected: ExpectedWrites) -> Result:
        # A lost answer takes up to two timeouts (`_was_committed`); this leaves time for another attempt.
        deadline = time.monotonic() + 3 * self._timeout
        ids: IdCheck = "assumed new"
        while True:
            try:
                with self._transaction(expected, ids) as transaction:
                    return work(transaction)
            except WriteConflict as conflict:
                # Nothing was written. The conflict may be a repeated id, so look the ids up this time.
                if time.monotonic() > deadline:
                    raise
                debug("ledger", "%s: the transaction is repeated: %s", self.name, conflict)
                time.sleep(PAUSE)
                ids = "looked up"

    def transaction(self, expected: ExpectedWrites | None = None) -> AbstractContextManager[PostgresTransaction]:
        return self._transaction(expected, "looked up")

    @contextmanager
    def _transaction(self, expected: ExpectedWrites | None, ids: IdCheck) -> Iterator[PostgresTransaction]:
        """One durable transaction. If the context ends without an error, everything written is on disk."""
        if self.is_replica:
            raise Unavailable(
                f"the ledger {self.name} may only be read: it is a replica",
                advice="write to the primary; with several hosts in the URL add target_session_attrs=read-write",
            )
        with self._pool.connection(patience=2 * self._timeout) as connection:
            transaction = PostgresTransaction(connection, timeout=self._timeout, ids=ids)
            try:
                try:
                    self._refuse_foreign_programs(connection)  # Before BEGIN: it needs no lock.
                    transaction.begin(expected)
                    schema.refuse_newer_version(self.name, transaction.version)
                    yield transaction
                    transaction.commit()
                except BaseException:
                    transaction.roll_back()
                    raise
            except psycopg.Error as error:
                # Before COMMIT was sent, or with an answer of the server, it is certain that nothing was written.
                if not (transaction.is_committing and _is_lost(connection)):
                    raise self._not_written_error(error, connection) from error
                failure = error
            else:
                return
        # Here the answer to COMMIT was lost. Only the server knows whether it committed.
        debug("ledger", "%s: the answer to a commit was lost; looking for its record", self.name)
        if not self._was_committed(transaction.commit_proof):
            raise self._not_written_error(failure, None) from failure

    def _refuse_foreign_programs(self, connection: PoolConnection) -> None:
        """Raise `IntegrityError` if a trigger or rule that is not Aver's would run. Checked once per connection."""
        if not connection.may_write:
            if foreign := find_foreign_programs(connection):
                raise IntegrityError(
                    "SCHEMA_INVALID",
                    f"{self.name} was tampered with: the {ascii(foreign[0])[1:81]} would run at every append",
                    evidence=foreign,
                    advice="nothing was recorded; restore the database from a copy",
                )
            connection.may_write = True

    def _not_written_error(self, error: psycopg.Error, connection: PoolConnection | None) -> Exception:
        """The exception for a transaction that wrote nothing: `WriteConflict` if it makes sense to repeat it."""
        if connection is None or _is_lost(connection) or error.sqlstate in _RETRYABLE_CODES:
            words = f"the ledger {self.name} cannot be used: {self._address.error_text(error)}"
            return WriteConflict(words, advice="nothing was recorded; try again")
        if error.sqlstate == _LOCK_TIMEOUT_CODE:
            words = f"another writer has locked a chain of the ledger {self.name} for {self._timeout:g} seconds"
            return Unavailable(words, advice="nothing was recorded; pg_stat_activity on the server shows who it is")
        return self._address.to_unavailable(error)

    def _was_committed(self, proof: CommitProof | None) -> bool:
        """Find out whether a transaction was committed whose commit was not answered.

        That transaction had the lock on its chain. When we get this lock, it has ended, one way or the other, and the
        presence of its first record decides. Raises `Unavailable` if the server cannot be asked.
        """
        deadline = time.monotonic() + 2 * self._timeout
        while proof is not None and time.monotonic() < deadline:
            try:
                with self._pool.connection(patience=2 * self._timeout) as connection:
                    # COMMIT may never have arrived; its backend would then keep the lock until its own timeout.
                    connection.execute(_TERMINATE_BACKEND, (proof.backend, proof.began))
                    transaction = PostgresTransaction(connection, timeout=self._timeout)
                    try:
                        transaction.begin(ExpectedWrites(proof.tenant, frozenset({proof.chain})))
                        return transaction.has_committed(proof)
                    finally:
                        transaction.roll_back()
            except (psycopg.Error, Unavailable) as error:
                debug("ledger", "%s: cannot ask about the lost commit yet: %s", self.name, error)
                time.sleep(PAUSE)
        raise Unavailable(
            f"the connection to {self.name} was lost during a commit, and Aver cannot tell whether it was recorded",
            advice="look the record up by its key or id before you try again",
        )

    # --- reading

    def _fetch(self, query: str, values: Sequence[Any] = (), *, patience: float | None = None) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return self._run_read(lambda connection: connection.execute(query, values, binary=True).fetchall(), patience)

    def _run_read(self, read: Callable[[PoolConnection], Result], patience: float | None = None) -> Result:
        """The result of `read`. If the connection turns out to be dead, try again with another one."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with self._pool.connection(patience=patience or 2 * self._timeout) as connection:
                    try:
                        return read(connection)
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
            # A short page is the last one; otherwise go on after the last record, which may not be `start + 199`.
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
            return None  # PostgreSQL's bigint ends here.
        query = f"SELECT {column} FROM aver.records WHERE chain = %s AND sequence = %s"
        rows = self._fetch(query, (chain.number, sequence))
        return rows[0][0] if rows else None

    def find_first(self, tenant: str, column: LookupColumn, value: str) -> tuple[str, RecordRow] | None:
        wanted: list[tuple[str, str | int]] = [("records.tenant = ?", tenant), (f"records.{column} = ?", value)]
        rows = self._read_page(tenant, wanted, "record", limit=1)
        return rows[0][1:] if rows else None

    def read_page(
        self, tenant: str, search: Search, *, newer_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        wanted = [("record > ?", newer_than), *self._conditions(tenant, search)]
        return self._read_page(tenant, wanted, "record" if search.chain is None else "sequence", limit=limit)

    def read_newest(
        self, tenant: str, search: Search, *, older_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        wanted = [("record < ?", older_than), *self._conditions(tenant, search)]
        return self._read_page(tenant, wanted, "record DESC" if search.chain is None else "sequence DESC", limit=limit)

    def newest_row_before(self, tenant: str, time: str) -> int:
        rows = self._fetch(
            "SELECT record FROM aver.records JOIN aver.chains USING (chain) WHERE chains.tenant = %s"
            " AND NOT chains.frozen AND coalesce(records.at, records.signed_at) < %s ORDER BY record DESC LIMIT 1",
            (tenant, to_column(time)),
        )
        return int(rows[0][0]) if rows else 0

    def change_mark(self) -> str:
        # The transactions that a statement sees. A position in the log would change before its commit can be seen.
        return str(self._fetch("SELECT pg_current_snapshot()::text")[0][0])

    def _conditions(self, tenant: str, search: Search) -> list[tuple[str, str | int]]:
        found = sql_conditions(search)
        if search.chain is not None:
            # With the chain's number, the index by place gives the records in order; a join would sort them all.
            row = self.chain(tenant, search.chain)
            found.append(("records.chain = ?", -1 if row is None else row.number))
        return found

    def _read_page(
        self, tenant: str, wanted: list[tuple[str, str | int]], order: str, *, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        condition = " AND ".join(text.replace("?", "%s") for text, _ in wanted)
        values = (to_column(value) if isinstance(value, str) else value for _, value in wanted)
        rows = self._fetch(
            f"SELECT record, chains.name, {RECORD_COLUMNS} FROM aver.records JOIN aver.chains USING (chain)"
            f" WHERE chains.tenant = %s AND {condition} ORDER BY {order} LIMIT %s",
            (tenant, *values, limit),
        )
        return [(row[0], row[1], parse_record_row(row[2:])) for row in rows]

    def blob(self, tenant: str, digest: str) -> Blob | None:
        rows = self._fetch("SELECT data, media FROM aver.blobs WHERE tenant = %s AND digest = %s", (tenant, digest))
        return Blob(rows[0][0], from_column(rows[0][1])) if rows else None

    def small_blobs(self, tenant: str, digests: Collection[str]) -> list[tuple[str, bytes]]:
        return self._fetch(
            "SELECT digest, data FROM aver.blobs WHERE tenant = %s AND digest = ANY(%s) AND length(data) <= %s",
            (tenant, list(digests), SMALL_BLOB),
        )

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
        """The remarks of `aver doctor` about the server."""
        return self._run_read(lambda connection: list(check_health(connection)), TABLE_SCAN_TIMEOUT)

    def _scan(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement that reads whole tables, without the usual time limit."""
        return self._fetch(query, values, patience=TABLE_SCAN_TIMEOUT)


TABLE_SCAN_TIMEOUT = 6 * 60 * 60.0
"""Seconds for a statement that reads whole tables: more than it should ever need."""

_LOCK_TIMEOUT_CODE = "55P03"
_RETRYABLE_CODES = frozenset({"23505", "40001", "40P01"})
"""Unique violation (another writer used the same key or id first), serialization failure, deadlock."""

_TERMINATE_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
_TERMINATE_BACKEND += " WHERE pid = %s AND xact_start = %s AND state LIKE 'idle in transaction%%'"
"""End a transaction whose client is gone, unless it is executing a statement: then it ends by itself. The start time
makes sure that the process id was not given to another client meanwhile."""


def _is_lost(connection: PoolConnection) -> bool:
    return connection.closed or connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.UNKNOWN


OLDEST_VERSION = 140000
"""PostgreSQL 14: the oldest version with security updates at the time of writing."""

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
    """Raise `BadInput` for a server that Aver cannot use. Returns whether it is a replica."""
    number, version, encoding, is_replica = connection.execute(_SERVER_QUERY).fetchone() or (0, "?", "?", False)
    if number < OLDEST_VERSION:
        raise BadInput(f"{name} is PostgreSQL {version}", advice=f"use PostgreSQL {OLDEST_VERSION // 10000} or newer")
    if encoding != "UTF8":
        raise BadInput(
            f"{name} is a database in {encoding}, which cannot store every text",
            advice="create one WITH ENCODING 'UTF8' TEMPLATE template0",
        )
    return bool(is_replica)


def prepare_tables(connection: PoolConnection, name: str, *, create: bool, facts: Mapping[str, str] | None) -> None:
    """Check that the ledger's tables exist and have an id; create or migrate them if `create`.

    `facts` are the id and creation time of a new ledger that becomes a copy of another.
    """
    foreign = connection.execute(_NON_TABLE_QUERY, (list(schema.TABLES),)).fetchone()
    if foreign is not None:
        raise IntegrityError(
            "SCHEMA_INVALID",
            f"{name} was tampered with: {foreign[0]} is not a table of the ledger",
            evidence=foreign[0],
            advice="restore the database from a copy",
        )
    version = schema.read_version(connection)
    schema.refuse_newer_version(name, version)
    if version < schema.VERSION and create:
        debug("ledger", "%s: migrating from schema %d to %d", name, version, schema.VERSION)
        try:
            schema.migrate(connection)
        except InsufficientPrivilege as error:
            if version == 0:
                words, tables_advice = f"there is no ledger at {name}, and this role may not make one", "--setup-sql"
            else:
                words = (
                    f"{name} has schema {version}, this Aver needs {schema.VERSION}, and this role may not change it"
                )
                tables_advice = "--setup-sql, or open it once as the owner of its tables"
            raise Unavailable(words, advice=f"have its owner run: aver doctor {tables_advice}") from error
        version = schema.VERSION
    if version == 0:
        advice = "aver seal creates it if its role may; otherwise the owner runs: aver doctor --setup-sql"
        raise NotFound(f"there is no ledger at {name}", advice=advice)
    if not _ensure_ledger_id(connection, facts, create=create):
        raise NotFound(
            f"there is no ledger at {name} yet; its tables are ready", advice="the first aver seal begins it"
        )


def _ensure_ledger_id(connection: PoolConnection, facts: Mapping[str, str] | None, *, create: bool) -> bool:
    """Return whether the ledger has its id. With `create`, the first caller gives it one, for ever."""
    query = "SELECT value FROM aver.ledger WHERE name = 'id'"
    is_new = connection.execute(query).fetchone() is None
    if is_new and connection.execute("SELECT FROM aver.chains LIMIT 1").fetchone() is not None:
        # Another id would make every record one of another ledger.
        raise NotALedger("the database has lost its ledger id", advice="restore it from a copy")
    if is_new and create:
        given = facts or {"id": new_id(), "created_at": now()}
        with connection.transaction():
            # Of several processes that try at once, the one that inserts this row wins; only its facts are stored.
            first = connection.execute(
                "INSERT INTO aver.ledger VALUES ('id', %s) ON CONFLICT DO NOTHING", (given["id"],)
            )
            if first.rowcount:
                rest = [(name, value) for name, value in given.items() if name != "id"]
                connection.cursor().executemany("INSERT INTO aver.ledger VALUES (%s, %s) ON CONFLICT DO NOTHING", rest)
    return connection.execute(query).fetchone() is not None
