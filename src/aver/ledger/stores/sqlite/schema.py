"""The ledger's tables in SQLite, and the migrations of older files.

`canonical` has the exact bytes that were hashed. The other columns of `records` are copies to search by; the verifier
compares them with these bytes. The triggers protect the ledger from mistakes of honest programs. They prove nothing,
because an attacker who can write the file can drop them. The trigger on insertion rolls back the whole transaction,
not the statement: to be able to undo one statement would cost more than the insertion itself.

`PRAGMA user_version` is the schema's version, the number of applied migrations. Aver refuses a file of a newer version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

__all__ = [
    "APPLICATION_ID",
    "MIGRATIONS",
    "PAGE_SIZE",
    "VERSION",
    "create_tables",
    "find_differences",
    "find_foreign_triggers",
    "migrate",
]

APPLICATION_ID = 0x41764572
"""`AvEr`: by this number `file` and Aver recognise a ledger among SQLite databases."""

PAGE_SIZE = 8192

_MIGRATION_1 = """
CREATE TABLE ledger (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE chains (
    chain  INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    count  INTEGER NOT NULL DEFAULT 0,
    head   TEXT,
    frozen INTEGER NOT NULL DEFAULT 0,
    origin TEXT,
    UNIQUE (tenant, name)
);

CREATE TABLE records (
    record       INTEGER PRIMARY KEY,
    chain        INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    hash         TEXT NOT NULL,
    signature    TEXT NOT NULL,
    signature_pq TEXT NOT NULL,
    signed_at    TEXT NOT NULL,
    signed_by    TEXT NOT NULL,
    id           TEXT NOT NULL,
    type         TEXT NOT NULL,
    kind         TEXT,
    key          TEXT,
    session      TEXT,
    at           TEXT,
    canonical    BLOB NOT NULL
);
CREATE UNIQUE INDEX records_by_place ON records (chain, sequence);
CREATE INDEX records_by_hash ON records (hash);
CREATE INDEX records_by_id ON records (id);
CREATE UNIQUE INDEX records_by_key ON records (tenant, key) WHERE key IS NOT NULL;

CREATE TABLE blobs (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    media  TEXT NOT NULL,
    data   BLOB NOT NULL
);
CREATE UNIQUE INDEX blobs_by_digest ON blobs (tenant, digest);

CREATE TRIGGER records_stay_as_they_are BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;
CREATE TRIGGER records_stay BEFORE DELETE ON records
BEGIN SELECT RAISE(ABORT, 'a record is never deleted'); END;
CREATE TRIGGER records_only_at_the_end BEFORE INSERT ON records
WHEN (SELECT frozen OR NEW.sequence < count FROM chains WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ROLLBACK, 'a record is only added at the end of an open chain'); END;
CREATE TRIGGER chains_only_grow BEFORE UPDATE ON chains
WHEN NEW.count < OLD.count OR NEW.tenant IS NOT OLD.tenant OR NEW.name IS NOT OLD.name OR NEW.frozen < OLD.frozen
BEGIN SELECT RAISE(ABORT, 'a chain only grows'); END;
CREATE TRIGGER chains_stay BEFORE DELETE ON chains
BEGIN SELECT RAISE(ABORT, 'a chain is never deleted'); END;
CREATE TRIGGER blobs_stay_as_they_are BEFORE UPDATE ON blobs
BEGIN SELECT RAISE(ABORT, 'a blob is never changed'); END;
CREATE TRIGGER blobs_stay BEFORE DELETE ON blobs
BEGIN SELECT RAISE(ABORT, 'a blob is never deleted'); END;
CREATE TRIGGER the_ledger_keeps_its_name BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'a ledger keeps its name'); END;
CREATE TRIGGER the_ledger_stays BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'a ledger keeps its name'); END;
"""

MIGRATIONS: tuple[str, ...] = (_MIGRATION_1,)
"""The migration at index N brings a ledger from version N to N + 1. A released migration is never edited."""

VERSION = len(MIGRATIONS)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    migrate(connection, 0)
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from `version` to the newest version, in the open transaction."""
    for migration in MIGRATIONS[version:]:
        for statement in _split_statements(migration):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def find_differences(connection: sqlite3.Connection) -> list[str]:
    """The tables and indexes of a ledger that differ from those that this Aver makes. A trigger may be missing.

    An attacker who can write the file could replace a table by a view, or an index by one over other columns, and so
    show the verifier other rows than a reader.
    """
    with sqlite3.connect(":memory:") as fresh:
        migrate(fresh, 0)
        expected = _read_objects(fresh)
    found = _read_objects(connection)
    wrong = [f"{kind} {name}" for (kind, name), sql in found.items() if expected.get((kind, name), "") != sql]
    gone = [f"{kind} {name}" for kind, name in expected if kind != "trigger" and (kind, name) not in found]
    return sorted({*wrong, *gone})


def find_foreign_triggers(connection: sqlite3.Connection) -> list[str]:
    """Triggers that Aver did not make. They run while a record is added, and could undo it silently."""
    triggers = [
        (name, sql or "") for (kind, name), sql in _read_objects(connection).items() if kind.lower() == "trigger"
    ]
    return [name for name, sql in triggers if not any(sql in migration for migration in MIGRATIONS)]


def _read_objects(connection: sqlite3.Connection) -> dict[tuple[str, str], str | None]:
    rows = connection.execute("SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema")
    text = [tuple(None if v is None else v.decode("utf-8", "backslashreplace") for v in row) for row in rows]
    return {(str(kind), str(name)): sql for kind, name, sql in text if (kind, name) not in _SQLITE_INTERNAL}


_SQLITE_INTERNAL = frozenset({("table", "sqlite_stat1"), ("table", "sqlite_stat4"), ("table", "sqlite_sequence")})
"""Tables that SQLite makes for itself, as (kind, name): a trigger of such a name is not one of them."""


def _split_statements(script: str) -> Iterator[str]:
    """Split a script where SQLite says that a statement is complete. (`executescript` would commit first.)"""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
