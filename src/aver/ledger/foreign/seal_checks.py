"""Checks on records and databases from outside, before a verifier looks at them.

A record is taken only if a seal can look like its seal. A database is opened only if the files beside it, which SQLite
opens unasked, are regular files. `aver.files.regular` opens the files themselves.
"""

from __future__ import annotations

import stat
from pathlib import Path

from aver.capsule.json_reader import DuplicateKey, Unreadable
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput
from aver.files.regular import is_file_name, open_error

SEAL_TEXT_MAX = 16 * 1024
"""Longest field of a seal. An ML-DSA-65 signature, the longest there is, has 6,618 hex digits."""

SQLITE_COMPANIONS = ("-journal", "-wal", "-shm")
"""The endings of the files that SQLite opens beside a database."""


def check_companions(database: Path) -> set[str]:
    """Which companions lie beside an SQLite database, by their endings. `BadInput` if one is not a plain file.

    SQLite opens them unasked, beside the file that a link leads to; on a pipe it would wait for ever.
    """
    real = database.resolve()
    found = set()
    for ending in SQLITE_COMPANIONS:
        companion = real.with_name(real.name + ending)
        try:
            mode = companion.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise open_error(companion, error) from error
        if not stat.S_ISREG(mode):
            raise BadInput(f"{companion} is not a regular file", advice="remove it, or copy the database elsewhere")
        found.add(ending)
    return found


def check_file_name(name: object) -> str:
    """Return a name that `is_file_name` allows; `Unreadable` for any other."""
    if not isinstance(name, str) or not is_file_name(name):
        raise Unreadable(f"{ascii(name)[:80]} is not a name that a file may have here")
    return name


def check_seal_fields(sealed: Sealed) -> Sealed:
    """Return the record. Raises `Unreadable` if a field of its seal is far too long or not printable."""
    if not isinstance(sealed.canonical, bytes):
        raise Unreadable("its canonical form is not bytes")
    for key in SEAL_KEYS:
        value = getattr(sealed, key)
        if not isinstance(value, str) or len(value) > SEAL_TEXT_MAX or not value.isprintable():
            raise Unreadable(f"its {key} cannot be part of a seal")
    return sealed


def unreadable_code(error: BadInput) -> str:
    """The finding code for a record that cannot be read."""
    return "DUPLICATE_KEY" if isinstance(error, DuplicateKey) else "SCHEMA_INVALID"
