"""The ledger's store on a PostgreSQL server, for many writers on many machines.

Durable means durable: every write transaction runs with `synchronous_commit` on, and an append returns after the
server has acknowledged its commit. Where the answer to a commit is lost, Aver waits until that transaction has ended,
looks for the record, and so learns whether it was written: it is never written twice, and never said not to be written
when it was. Writers wait for each other only where they write to the same chain.

Every read is one statement. What is read in several is only ever added to, so it makes no difference that others write
meanwhile. Writing goes to the primary alone; a replica can be read, and says that it is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import psycopg

from aver.capsule.blobs import Blob
from aver.errors import BadInput, IntegrityError, Unavailable
from aver.ledger.forks import mind_forks
from aver.ledger.postgres.address import Address, Conflict, address_of
from aver.ledger.postgres.catalogue import differences, foreign_programs
from aver.ledger.postgres.health import Remark, health
from aver.ledger.postgres.opening import check_server, made_ready
from aver.ledger.postgres.pool import Connection, Pool
from aver.ledger.postgres.rows import CHAIN, RECORD, chain_row, record_row
from aver.ledger.postgres.soundness import disagreements, unchecked
from aver.ledger.postgres.text import from_column, to_column
from aver.ledger.postgres.transaction import Ids, PostgresTransaction, Proof
from aver.ledger.rows import ChainRow, Row
from aver.ledger.search import Search, conditions
from aver.ledger.store import Expected, LookupColumn

__all__ = ["PostgresStore"]

ROWS_AT_ONCE = 200
"""Records fetched in one statement: even the largest, 200 of 256 KiB, take 50 MiB."""

REPEATED_MAX = 100
"""Records that stand twice which a verdict names; one is enough for it to fail."""

PAUSE = 0.05
"""Seconds between two attempts to reach a server that has just been lost."""

LONGEST = 2**63 - 1

Result = TypeVar("Result")


class PostgresStore:
    """One ledger in a database, shared by any number of threads, processes and machines."""

    read_by = frozenset({"index records_by_place", "index chains_by_name"})

    def __init__(self, address: Address, *, timeout: float) -> None:
        self.name = address.name
        self.url = address.url
        self.is_replica = False
        self._address = address
        self._timeout = timeout
        self._pool = Pool(address, timeout=timeout)
        self._ledger_id: str | None = None
        mind_forks(self)

    # --- opening and closing

    @classmethod
    def open(cls, url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> PostgresStore:
        """Open a ledger, making its tables first if `create` and there are none. Never makes any otherwise."""
        store = cls(address_of(url), timeout=timeout)
        try:
            connection = store._pool.first()
            store.is_replica = check_server(connection, store.name)
            made_ready(connection, store.name, create=create, facts=facts)
        except psycopg.Error as error:
            store.close()
            raise store._address.failure(error) from error
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

    def write(self, work: Callable[[PostgresTransaction], Result], expected: Expected) -> Result:
        # So that one answer that never came leaves time for another try.
        deadline = time.monotonic() + 3 * self._timeout
        ids: Ids = "assumed new"
        while True:
            try:
                with self._writing(expected, ids) as transaction:
                    return work(transaction)
            except Conflict:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
                ids = "looked up"

    def writing(self, expected: Expected | None = None) -> AbstractContextManager[PostgresTransaction]:
        return self._writing(expected, "looked up")

    @contextmanager
    def _writing(self, expected: Expected | None, ids: Ids) -> Iterator[PostgresTransaction]:
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
                    self._refuse_programs(connection)
                    transaction.begin(expected)
                    yield transaction
                    transaction.commit()
                except BaseException:
                    transaction.undo()
                    raise
            except psycopg.Error as error:
                if not (transaction.is_committing and _is_lost(connection)):
                    raise self._not_written(error, connection) from error
                failure = error
            else:
                return
        if not self._was_committed(transaction.proof):
            raise self._not_written(failure, None) from failure

    def _refuse_programs(self, connection: Connection) -> None:
        """Once for each connection: see that nothing but Aver's guards runs when a record is added."""
        if not connection.may_write:
            if strange := foreign_programs(connection):
                raise IntegrityError(
                    "SCHEMA_INVALID",
                    f"{self.name} was tampered with: the {ascii(strange[0])[1:81]} would run at every append",
                    evidence=strange,
                    advice="nothing was recorded; restore the database from a copy",
                )
            connection.may_write = True

    def _not_written(self, error: psycopg.Error, connection: Connection | None) -> Exception:
        if connection is None or _is_lost(connection) or error.sqlstate in _WORTH_ANOTHER_TRY:
            words = f"the ledger {self.name} cannot be used: {self._address.words(error)}"
            return Conflict(words, advice="nothing was recorded; try again")
        if error.sqlstate == _LOCKED:
            words = f"another writer has held a chain of the ledger {self.name} for {self._timeout:g} seconds"
            return Unavailable(words, advice="nothing was recorded; pg_stat_activity on the server tells who it is")
        return self._address.failure(error)

    def _was_committed(self, proof: Proof | None) -> bool:
        """Whether a transaction whose commit was not answered was committed.

        It held the lock on its chain. Whoever gets that lock now knows that it has ended, one way or the other.
        """
        deadline = time.monotonic() + 2 * self._timeout
        while proof is not None and time.monotonic() < deadline:
            try:
                with self._pool.connection(patience=2 * self._timeout) as connection:
                    connection.execute(_END_IT, (proof.backend, proof.began))
                    transaction = PostgresTransaction(connection, timeout=self._timeout)
                    try:
                        transaction.begin(Expected(proof.tenant, frozenset({proof.chain})))
                        return transaction.has(proof)
                    finally:
                        transaction.undo()
            except (psycopg.Error, Unavailable):
                time.sleep(PAUSE)
        raise Unavailable(
            f"the connection to {self.name} was lost while it committed, and it is not known whether that was recorded",
            advice="look the record up by its key or id before you try again",
        )

    # --- reading

    def _fetch(self, query: str, values: Sequence[Any] = (), *, patience: float | None = None) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return self._read(lambda connection: connection.execute(query, values, binary=True).fetchall(), patience)

    def _read(self, look: Callable[[Connection], Result], patience: float | None = None) -> Result:
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
                raise self._address.failure(error) from error
            time.sleep(PAUSE)

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        rows = self._fetch(f"SELECT {CHAIN} FROM aver.chains WHERE tenant = %s AND name = %s", (tenant, name))
        return chain_row(rows[0]) if rows else None

    def chains(self, tenant: str) -> list[ChainRow]:
        return [
            chain_row(row)
            for row in self._fetch(f"SELECT {CHAIN} FROM aver.chains WHERE tenant = %s ORDER BY name", (tenant,))
        ]

    def tenants(self) -> list[str]:
        return [row[0] for row in self._fetch("SELECT DISTINCT tenant FROM aver.chains ORDER BY tenant")]

    @contextmanager
    def rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[Iterator[Row]]:
        yield self._rows(chain, min(start, LONGEST), min(stop, LONGEST))

    def _rows(self, chain: ChainRow, start: int, stop: int) -> Iterator[Row]:
        query = f"SELECT {RECORD} FROM aver.records WHERE chain = %s AND sequence >= %s AND sequence < %s"
        while start < stop:
            found = self._fetch(f"{query} ORDER BY sequence LIMIT {ROWS_AT_ONCE}", (chain.number, start, stop))
            yield from map(record_row, found)
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
        found = self._at("hash", chain, sequence)
        return None if found is None else from_column(found)

    def number_at(self, chain: ChainRow, sequence: int) -> int | None:
        found = self._at("record", chain, sequence)
        return None if found is None else int(found)

    def _at(self, column: str, chain: ChainRow, sequence: int) -> Any:
        if sequence > LONGEST:
            return None  # further than PostgreSQL counts
        query = f"SELECT {column} FROM aver.records WHERE chain = %s AND sequence = %s"
        rows = self._fetch(query, (chain.number, sequence))
        return rows[0][0] if rows else None

    def first(self, tenant: str, column: LookupColumn, value: str) -> tuple[str, Row] | None:
        rows = self._page(tenant, [("records.tenant = ?", tenant), (f"records.{column} = ?", value)], limit=1)
        return rows[0][1:] if rows else None

    def page(self, tenant: str, search: Search, *, newer_than: int, limit: int) -> list[tuple[int, str, Row]]:
        return self._page(tenant, [("record > ?", newer_than), *conditions(search)], limit=limit)

    def _page(self, tenant: str, wanted: list[tuple[str, str | int]], *, limit: int) -> list[tuple[int, str, Row]]:
        condition = " AND ".join(text.replace("?", "%s") for text, _ in wanted)
        values = (to_column(value) if isinstance(value, str) else value for _, value in wanted)
        rows = self._fetch(
            f"SELECT record, chains.name, {RECORD} FROM aver.records JOIN aver.chains USING (chain)"
            f" WHERE chains.tenant = %s AND {condition} ORDER BY record LIMIT %s",
            (tenant, *values, limit),
        )
        return [(row[0], row[1], record_row(row[2:])) for row in rows]

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

    def orphans(self, tenant: str) -> int:
        rows = self._scan(
            "SELECT count(*) FROM aver.records WHERE tenant = %s"
            " AND NOT EXISTS (SELECT FROM aver.chains WHERE chains.chain = records.chain)",
            (tenant,),
        )
        return int(rows[0][0])

    def repeated(self, tenant: str) -> list[tuple[str, str, int]]:
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

    def altered(self) -> list[str]:
        return self._read(differences, FOR_A_TABLE)

    def damage(self) -> list[str]:
        return self._read(disagreements, FOR_A_TABLE)

    def remarks(self) -> list[str]:
        replica = ["read from a replica, which may lag behind its primary"] if self.is_replica else []
        return [*replica, *self._read(unchecked, FOR_A_TABLE)]

    def health(self) -> list[Remark]:
        """What `aver doctor` says of the server."""
        return self._read(lambda connection: list(health(connection)), FOR_A_TABLE)

    def _scan(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement that reads whole tables, and takes as long as that takes."""
        return self._fetch(query, values, patience=FOR_A_TABLE)


FOR_A_TABLE = 6 * 60 * 60.0
"""Seconds for a statement that reads whole tables: more than any should take."""

_LOCKED = "55P03"
_WORTH_ANOTHER_TRY = frozenset({"23505", "40001", "40P01"})
"""Another writer used the same key or id first, or waited for us while we waited for it."""

_END_IT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
_END_IT += " WHERE pid = %s AND xact_start = %s AND state LIKE 'idle in transaction%%'"
"""End a transaction whose client is gone, unless it is at work: then it ends by itself."""


def _is_lost(connection: Connection) -> bool:
    return connection.closed or connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.UNKNOWN
