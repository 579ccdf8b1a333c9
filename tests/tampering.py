"""Changing a ledger behind its back, as someone who can write its file would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aver import Ledger, Verdict

GUARDS = """SELECT type, name, sql FROM sqlite_schema
WHERE type = 'trigger' OR (type = 'index' AND sql LIKE '%UNIQUE%' AND name != 'records_by_place')"""


class Attacker:
    """Takes the triggers and unique indexes away, makes a change, and puts them back: the file looks as it should."""

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


def unguarded(ledger: Ledger) -> Attacker:
    return Attacker(ledger)


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
