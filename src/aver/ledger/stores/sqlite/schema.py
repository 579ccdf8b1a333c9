"""The ledger's tables in SQLite, and how an older file becomes a newer one.

`canonical` holds the exact bytes that were hashed. The other columns of `records` are copies to search by; a
verdict holds them to the bytes. The triggers keep honest programs from harming the ledger by mistake; they prove
nothing, because whoever can write the file can drop them. The one on insertion rolls the whole transaction back
instead of the statement: being able to undo one statement would cost each insertion more than the insertion itself.

`PRAGMA user_version` is the schema's version: the number of migrations that were applied. A file from a newer Aver
is refused, not guessed at.
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
"""`AvEr`: how `file` and Aver itself tell a ledger from another SQLite database."""

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
"""Each brings a ledger from the version of its index to the next. What has been released is never edited."""

VERSION = len(MIGRATIONS)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database, all or none."""
    connection.execute("BEGIN IMMEDIATE")
    migrate(connection, 0)
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from a version to the newest, within the transaction that is open."""
    for migration in MIGRATIONS[version:]:
        for statement in _split_statements(migration):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def find_differences(connection: sqlite3.Connection) -> list[str]:
    """Which tables and indexes of a ledger are not those that this Aver makes. A missing trigger is no matter.

    Who can write the file can put a view in the place of a table, or an index over other columns, and so show one
    thing to a verifier and another to a reader.
    """
    with sqlite3.connect(":memory:") as fresh:
        migrate(fresh, 0)
        expected = _read_objects(fresh)
    found = _read_objects(connection)
    wrong = [f"{kind} {name}" for (kind, name), sql in found.items() if expected.get((kind, name), "") != sql]
    gone = [f"{kind} {name}" for kind, name in expected if kind != "trigger" and (kind, name) not in found]
    return sorted({*wrong, *gone})


def find_foreign_triggers(connection: sqlite3.Connection) -> list[str]:
    """Triggers that no Aver made: programs that run while a record is added, and could undo it unseen."""
    triggers = [
        (name, sql or "") for (kind, name), sql in _read_objects(connection).items() if kind.lower() == "trigger"
    ]
    return [name for name, sql in triggers if not any(sql in migration for migration in MIGRATIONS)]


def _read_objects(connection: sqlite3.Connection) -> dict[tuple[str, str], str | None]:
    rows = connection.execute("SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema")
    text = [tuple(None if v is None else v.decode("utf-8", "backslashreplace") for v in row) for row in rows]
    return {(str(kind), str(name)): sql for kind, name, sql in text if (kind, name) not in _SQLITE_INTERNAL}


_SQLITE_INTERNAL = frozenset({("table", "sqlite_stat1"), ("table", "sqlite_stat4"), ("table", "sqlite_sequence")})
"""Tables that SQLite makes for itself. By their kind too: a trigger of such a name is none of them."""


def _split_statements(script: str) -> Iterator[str]:
    """`executescript` would commit first; so the script is cut where SQLite says that a statement is complete."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
