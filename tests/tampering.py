"""Changing a ledger behind its back, as someone who can write its file would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aver import Ledger, Verdict


def unguarded(ledger: Ledger) -> sqlite3.Connection:
    """A connection for the attacker: triggers and unique indexes are gone, nothing is synced."""
    connection = sqlite3.connect(ledger.store.path, isolation_level=None)
    for kind, name in connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE type = 'trigger' OR (type = 'index' AND sql LIKE '%UNIQUE%')"
    ).fetchall():
        if name != "records_by_place":
            connection.execute(f"DROP {kind} {name}")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


@contextmanager
def changed(attacker: sqlite3.Connection, *statements: Any) -> Iterator[None]:
    """The ledger as these statements leave it; afterwards it is as before."""
    before = {
        table: attacker.execute(f"SELECT * FROM {table}").fetchall()
        for table in ("chains", "records", "blobs", "ledger")
    }
    attacker.execute("BEGIN")
    for statement in statements:
        attacker.execute(*((statement,) if isinstance(statement, str) else statement))
    attacker.execute("COMMIT")
    try:
        yield
    finally:
        attacker.execute("BEGIN")
        for table, rows in before.items():
            attacker.execute(f"DELETE FROM {table}")
            if rows:
                attacker.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
        attacker.execute("COMMIT")


def first_bad(verdict: Verdict) -> tuple[str, str | None, int | None]:
    """Code, chain and sequence of the first fault; there must be one."""
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    return verdict.first_bad.code, verdict.first_bad.place.chain, verdict.first_bad.place.sequence


def codes_at(verdict: Verdict) -> set[tuple[str, str | None, int | None]]:
    return {(f.code, f.place.chain, f.place.sequence) for f in verdict.findings if f.status == "failed"}
