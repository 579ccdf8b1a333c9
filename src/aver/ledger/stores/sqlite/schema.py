"""The tables of a ledger in SQLite: creating them in a new file, migrating older files, finding foreign objects.

`canonical` has the exact bytes that were hashed. The other columns of `records` are copies to search by; the verifier
compares them with these bytes. The triggers protect the ledger from mistakes of honest programs. They prove nothing,
because an attacker who can write the file can drop them. The trigger on insertion rolls back the whole transaction,
not the statement: to be able to undo one statement would cost more than the insertion itself.

`PRAGMA user_version` is the schema's version, the number of applied migrations. Aver refuses a file of a newer version.

A ledger uses a write-ahead log from its creation on, and so never has a rollback journal. A journal beside it comes
from an attacker or another program. SQLite would roll the ledger back to it at the next write, so Aver refuses it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from aver.errors import IntegrityError, StoreDamaged, Unavailable
from aver.files.atomic import sync_directory
from aver.ledger.stores.protocol import NotALedger

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


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from `version` to the newest version, in the open transaction."""
    for migration in MIGRATIONS[version:]:
        # Statement by statement: `executescript` would commit first.
        statement = ""
        for line in migration.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""
    connection.execute(f"PRAGMA user_version = {VERSION}")


def refuse_newer_version(path: Path, version: int) -> None:
    """Raise `NotALedger` for a file whose tables a newer Aver has made or migrated."""
    if version > VERSION:
        raise NotALedger(
            f"{path} was written by a newer Aver (schema {version}, this one knows {VERSION})",
            advice="nothing was recorded. Upgrade Aver; if you use no newer one, somebody changed the file's header",
        )


def find_differences(connection: sqlite3.Connection) -> list[str]:
    """The tables and indexes of a ledger that differ from those that this Aver makes. A trigger may be missing.

    An attacker who can write the file could replace a table by a view, or an index by one over other columns, and so
    show the verifier other rows than a reader.
    """
    found = {(kind, name) for kind, name, _ in read_objects(connection)}
    gone = [f"{kind} {name}" for kind, name, _ in _make_objects() if kind != "trigger" and (kind, name) not in found]
    return sorted({*find_foreign_objects(connection), *gone})


def find_foreign_objects(connection: sqlite3.Connection) -> list[str]:
    """The objects in the file that Aver did not make, or made in another form, each as `<kind> <name>`.

    SQLite evaluates an expression of the schema unasked: that of a view or generated column when a row is read, that of
    a trigger, default or CHECK when one is written, that of an index when one is written and in `integrity_check`. So
    none of these may happen before this function has found nothing. Reading the schema itself evaluates nothing.
    """
    # The text of a statement decides which object SQLite makes, whatever the other columns of its row say.
    known = {statement for migration in MIGRATIONS for statement in _split_statements(migration)}
    strange = [row for row in read_objects(connection) if row[2] is not None and row[2] not in known]
    if strange:
        # ALTER TABLE rewrites a statement, so that its text is in no migration.
        known.update(str(sql) for _, _, sql in _make_objects())
    return sorted({_name_object(*row) for row in strange if row[2] not in known})


TRIGGER_LABEL = "trigger "
"""The label of a foreign object that is certainly a trigger begins so."""


def _name_object(kind: str, name: str, sql: str | None) -> str:
    """`<kind> <name>`, in which only the beginning of the SQL makes an object a trigger."""
    is_trigger = (sql or "")[:15].upper() == "CREATE TRIGGER "
    kind = "trigger" if is_trigger else "object" if kind.lower() == "trigger" else ascii(kind)[1:-1][:20]
    return f"{kind} {ascii(name)[1:-1][:80]}"


def _split_statements(migration: str) -> list[str]:
    """The statements of a migration as SQLite stores them: without the last semicolon."""
    return migration.strip().removesuffix(";").replace("\n\n", "\n").split(";\n")


def _make_objects() -> list[tuple[str, str, str | None]]:
    """The objects of a new ledger."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        migrate(fresh, 0)
        return read_objects(fresh)


def read_objects(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """The kind, name and SQL of every object in the file. As text, whatever bytes an attacker wrote."""
    rows = connection.execute("SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema")
    text = [tuple(None if v is None else v.decode("utf-8", "backslashreplace") for v in row) for row in rows]
    return [(str(kind), str(name), sql) for kind, name, sql in text if sql not in _SQLITE_OWN]


_SQLITE_OWN = frozenset(
    {
        "CREATE TABLE sqlite_sequence(name,seq)",
        "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
        "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    }
)
"""Tables that SQLite makes for itself. The whole text counts: under their names, others could hold expressions."""


UNFINISHED_SUFFIX = ".new"
"""Suffix of the temporary file in which a ledger is created."""


def create_ledger_file(file: Path, facts: Mapping[str, str]) -> None:
    """Create an empty ledger, unless it exists. No other process ever sees a part of it. The caller has the lock."""
    if file.exists():
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    try:
        _remove_unfinished(file)
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, 0)
            connection.execute("COMMIT")
            connection.executemany("INSERT INTO ledger VALUES (?, ?)", list(facts.items()))
            # WAL last: closing then leaves no log beside the temporary file, and the mode stays in the file.
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise sqlite3.OperationalError("it cannot have a write-ahead log here")
        finally:
            connection.close()
        os.replace(temporary, file)
        sync_directory(file.parent)  # Without this, a power loss could undo the rename.
    except (OSError, sqlite3.Error) as error:
        raise to_unavailable(file, error) from error
    finally:
        with suppress(OSError):
            _remove_unfinished(file)


def _remove_unfinished(file: Path) -> None:
    """Remove the temporary files of creations that were interrupted."""
    begins = f".{file.name}."
    for name in os.listdir(file.parent):
        if name.startswith(begins) and UNFINISHED_SUFFIX in name.removeprefix(begins):
            file.with_name(name).unlink(missing_ok=True)


def refuse_journal(file: Path) -> None:
    """Raise `IntegrityError` if a rollback journal lies beside the ledger: a writer would apply it, a reader not.

    Believe it only under the ledger's lock. A copy that another program made may not be in WAL mode; its first writer
    then has such a journal for a moment.
    """
    journal = file.with_name(f"{file.name}-journal")
    try:
        size = journal.stat().st_size
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unavailable(f"cannot look at {journal}: {error.strerror}") from error
    if size > 0:
        raise IntegrityError(
            "STORE_DAMAGED",
            f"{journal} would take the ledger back to an older state; Aver never writes such a file",
            evidence=str(journal),
            advice="find out who put it there, and move it away",
        )


_OUTAGE_CODES = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_AUTH,
    }
)
"""Errors of the disk, the machine or another program. They say nothing about the content of the file."""

_DAMAGED_FILE_SYSTEM = sqlite3.SQLITE_IOERR | (33 << 8)
"""`SQLITE_IOERR_CORRUPTFS`, which Python 3.11 does not name."""


def to_unavailable(path: Path, error: Exception) -> Unavailable:
    """The error with advice. It may be SQLite's or the system's, so its words are what they have in common.

    Errors that come from the content of the file become `StoreDamaged`.
    """
    if isinstance(error, MemoryError):
        return Unavailable(f"the ledger {path} cannot be used: out of memory", advice="nothing was recorded; try again")
    text = str(error)
    advice: Mapping[str, str] = {
        "full": "free some space; nothing was recorded",
        "readonly": "check the owner and mode of the file and its directory",
        "unable to open": "check the path and that you may read it",
        "locked": "another program has locked the file; close it",
        "malformed": "the file is damaged: restore it from a copy, or export what can still be read",
    }
    next_step = next((words for mark, words in advice.items() if mark in text), "nothing was recorded")
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python's own errors have no code. Text that is not UTF-8 comes from the file; misuse and the system's do not.
        is_damage = isinstance(error, UnicodeError) or type(error) is sqlite3.OperationalError
    else:
        is_damage = code == _DAMAGED_FILE_SYSTEM or code & 0xFF not in _OUTAGE_CODES
    kind = StoreDamaged if is_damage else Unavailable
    return kind(f"the ledger {path} cannot be used: {text}", advice=next_step)
