"""Create a ledger's file atomically, and refuse a rollback journal beside it.

A ledger uses a write-ahead log from its creation on, and so never has a rollback journal. A journal beside it comes
from an attacker or another program. SQLite would roll the ledger back to it at the next write.
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
            connection.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute("PRAGMA synchronous = FULL")
            schema.create_tables(connection)
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

    The caller must have the ledger's lock. A copy that another program made may not be in WAL mode; its first writer
    then has such a journal for a moment.
    """
    if has_journal(file):
        journal = _journal_path(file)
        raise IntegrityError(
            "STORE_DAMAGED",
            f"{journal} would take the ledger back to an older state; Aver never writes such a file",
            evidence=str(journal),
            advice="find out who put it there, and move it away",
        )


def has_journal(file: Path) -> bool:
    """Return whether a rollback journal that is not empty lies beside the ledger."""
    try:
        return _journal_path(file).stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(f"cannot look at {_journal_path(file)}: {error.strerror}") from error


def _journal_path(file: Path) -> Path:
    return file.with_name(f"{file.name}-journal")


def to_unavailable(path: Path, error: Exception) -> Unavailable:
    """The error with advice. It may be SQLite's or the system's, so its words are what they have in common."""
    text = str(error)
    advice: Mapping[str, str] = {
        "full": "free some space; nothing was recorded",
        "readonly": "check the owner and mode of the file and its directory",
        "unable to open": "check the path and that you may read it",
        "locked": "another program has locked the file; close it",
        "malformed": "the file is damaged: restore it from a copy, or export what can still be read",
    }
    next_step = next((words for mark, words in advice.items() if mark in text), "nothing was recorded")
    return Unavailable(f"the ledger {path} cannot be used: {text}", advice=next_step)
