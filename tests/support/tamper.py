"""Changing a ledger behind its back, as someone who can write its file would."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from aver import Ledger, Verdict
from aver.ledger.stores.postgres import PostgresStore

GUARDS = """SELECT type, name, sql FROM sqlite_schema
WHERE type = 'trigger' OR (type = 'index' AND sql LIKE '%UNIQUE%' AND name != 'records_by_place')"""


class Attacker:
    """Takes the triggers and unique indexes away, makes a change, and puts them back: the file looks as it should."""

    takes_any_type = True
    """Whether a column can be made to hold what is not of its type."""
    stride = 1
    """Of how many places one is tried, where there are very many: a change on a server takes longer."""

    def __init__(self, ledger: Ledger) -> None:
        self._connection = sqlite3.connect(ledger.store.path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA foreign_keys = OFF")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        if sql.startswith("SELECT"):
            return self._connection.execute(sql, parameters)
        with self._unguarded():
            return self._connection.execute(sql, parameters)

    def run(self, statements: Sequence[Any]) -> None:
        """Several changes at once. A statement is its text, or text and parameters."""
        with self._unguarded():
            for statement in statements:
                self._connection.execute(*((statement,) if isinstance(statement, str) else statement))

    def contents(self) -> dict[str, list[Any]]:
        tables = ("chains", "records", "blobs", "ledger")
        return {table: self._connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}

    def put_back(self, contents: dict[str, list[Any]]) -> None:
        with self._unguarded():
            for table, rows in contents.items():
                self._connection.execute(f"DELETE FROM {table}")
                if rows:
                    self._connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _unguarded(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        guards = self._connection.execute(GUARDS).fetchall()
        self._guards = {**getattr(self, "_guards", {}), **{(kind, name): sql for kind, name, sql in guards}}
        for kind, name, _ in guards:
            self._connection.execute(f"DROP {kind} {name}")
        yield
        for sql in self._guards.values():
            try:
                self._connection.execute(sql)
            except sqlite3.IntegrityError:
                continue  # what was inserted twice cannot be under a unique index
        self._connection.execute("COMMIT")


class ServerAttacker(Attacker):
    """The same on a server, by someone who owns it: guards do not fire for him."""

    takes_any_type = False
    stride = 53

    def __init__(self, ledger: Ledger) -> None:
        self._server = psycopg.connect(ledger.store.url, autocommit=True, options="-c search_path=aver")
        self._server.execute("SET session_replication_role = replica")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        if sql.startswith("SELECT"):
            return self._server.execute(_for_server(sql), parameters)
        self.run([(sql, parameters)])
        return None

    def run(self, statements: Sequence[Any]) -> None:
        try:
            try:
                self._run(statements)
            except psycopg.errors.UniqueViolation:
                self._run_without_unique_indexes(statements)
        except (psycopg.errors.DatatypeMismatch, psycopg.errors.InvalidTextRepresentation, psycopg.DataError):
            pytest.skip("a server holds columns to their types")

    def _run(self, statements: Sequence[Any]) -> None:
        with self._server.transaction():
            for statement in statements:
                sql, parameters = (statement, ()) if isinstance(statement, str) else statement
                if any(isinstance(value, float) for value in parameters):
                    pytest.skip("a server rounds what is not whole")
                self._server.execute(_for_server(sql), parameters)

    def _run_without_unique_indexes(self, statements: Sequence[Any]) -> None:
        indexes = self._server.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'aver' AND indexdef LIKE '%UNIQUE%'"
            " AND indexname NOT LIKE '%pkey' AND indexname <> 'records_by_place'"
        ).fetchall()
        for name, _ in indexes:
            self._server.execute(f"DROP INDEX {name}")
        self._run(statements)
        for _, definition in indexes:
            try:
                self._server.execute(definition)
            except psycopg.errors.UniqueViolation:
                self._missing = [*getattr(self, "_missing", []), definition]

    def contents(self) -> dict[str, list[Any]]:
        tables = ("chains", "records", "blobs", "ledger")
        return {table: self._server.execute(f"SELECT * FROM {table}").fetchall() for table in tables}

    def put_back(self, contents: dict[str, list[Any]]) -> None:
        with self._server.transaction(), self._server.cursor() as cursor:
            for table, rows in contents.items():
                cursor.execute(f"DELETE FROM {table}")
                if rows:
                    marks = ",".join(["%s"] * len(rows[0]))
                    cursor.executemany(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE VALUES ({marks})", rows)
            for definition in getattr(self, "_missing", []):
                cursor.execute(definition)
            self._missing: list[str] = []

    def close(self) -> None:
        self._server.close()


def _for_server(sql: str) -> str:
    """The text of a statement as psycopg takes it."""
    return sql.replace("%", "%%").replace("?", "%s").replace("frozen = 1", "frozen = true")


def unguarded(ledger: Ledger) -> Attacker:
    return ServerAttacker(ledger) if isinstance(ledger.store, PostgresStore) else Attacker(ledger)


def held_elsewhere(ledger: Ledger) -> ExitStack:
    """Hold the ledger's lock, or those of all its chains, as another writer would; `close` lets go."""
    stack = ExitStack()
    if isinstance(ledger.store, PostgresStore):
        connection = stack.enter_context(psycopg.connect(ledger.store.url))
        connection.execute("SELECT FROM aver.chains FOR UPDATE")
        stack.callback(connection.rollback)
    else:
        handle = os.open(f"{ledger.store.path}.lock", os.O_RDWR)
        stack.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)
    return stack


def forget(ledger: Ledger) -> None:
    """Make this a machine that has never verified the ledger."""
    shutil.rmtree(ledger.config.home / "verified", ignore_errors=True)
    (ledger.config.home / "seen.json").unlink(missing_ok=True)


@contextmanager
def changed(attacker: Attacker, *statements: Any) -> Iterator[None]:
    """The ledger as these statements leave it; afterwards it is as before."""
    before = attacker.contents()
    attacker.run(statements)
    try:
        yield
    finally:
        attacker.put_back(before)


def first_bad(verdict: Verdict) -> tuple[str, str | None, int | None]:
    """Code, chain and sequence of the first fault; there must be one."""
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    return verdict.first_bad.code, verdict.first_bad.place.chain, verdict.first_bad.place.sequence


def codes_at(verdict: Verdict) -> set[tuple[str, str | None, int | None]]:
    return {(f.code, f.place.chain, f.place.sequence) for f in verdict.findings if f.status == "failed"}
