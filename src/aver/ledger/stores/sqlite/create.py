"""Making a ledger's file whole, and what may not lie beside it.

A ledger has its write-ahead log from its creation on, and so needs no rollback journal: one that lies beside it was put
there, or is another program's, and would take the ledger back as soon as someone writes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aver.errors import IntegrityError, Unavailable
from aver.files.atomic import sync_directory
from aver.ledger.stores.sqlite import schema

__all__ = ["create_ledger_file", "has_journal", "refuse_journal", "to_unavailable"]

UNFINISHED_SUFFIX = ".new"
"""How the name of a ledger in the making ends."""


def create_ledger_file(file: Path, facts: Mapping[str, str]) -> None:
    """Make an empty ledger, unless there is one: no one ever sees half of it. The ledger's lock must be held."""
    if file.exists():
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    try:
        _remove_unfinished(file)
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute("PRAGMA synchronous = FULL")
            schema.create_tables(connection)
            connection.executemany("INSERT INTO ledger VALUES (?, ?)", list(facts.items()))
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise sqlite3.OperationalError("it cannot have a write-ahead log here")
        finally:
            connection.close()
        os.replace(temporary, file)
        sync_directory(file.parent)
    except (OSError, sqlite3.Error) as error:
        raise to_unavailable(file, error) from error
    finally:
        with suppress(OSError):
            _remove_unfinished(file)


def _remove_unfinished(file: Path) -> None:
    """Remove what was left behind where making the ledger was cut short."""
    begins = f".{file.name}."
    for name in os.listdir(file.parent):
        if name.startswith(begins) and UNFINISHED_SUFFIX in name.removeprefix(begins):
            file.with_name(name).unlink(missing_ok=True)


def refuse_journal(file: Path) -> None:
    """Refuse a ledger with a rollback journal beside it: a reader would not see what a writer would make of it.

    The ledger's lock must be held: a copy that another program made may have no log yet, and then the first to write
    to it has such a journal for a moment.
    """
    if has_journal(file):
        journal = _journal_path(file)
        raise IntegrityError(
            "STORE_DAMAGED",
            f"{journal} would take the ledger back to an older state; Aver does not leave such files",
            evidence=str(journal),
            advice="find out who put it there, and move it away",
        )


def has_journal(file: Path) -> bool:
    """Whether a rollback journal with something in it lies beside a ledger."""
    try:
        return _journal_path(file).stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(f"cannot look at {_journal_path(file)}: {error.strerror}") from error


def _journal_path(file: Path) -> Path:
    return file.with_name(f"{file.name}-journal")


def to_unavailable(path: Path, error: Exception) -> Unavailable:
    """What SQLite says, in words that tell what to do."""
    text = str(error)
    advice: Mapping[str, str] = {
        "full": "free some space; nothing was recorded",
        "readonly": "check the owner and mode of the file and its directory",
        "unable to open": "check the path and that you may read it",
        "locked": "another program holds the file; close it",
        "malformed": "the file is damaged: restore it from a copy, or export what can still be read",
    }
    next_step = next((words for mark, words in advice.items() if mark in text), "nothing was recorded")
    return Unavailable(f"the ledger {path} cannot be used: {text}", advice=next_step)
