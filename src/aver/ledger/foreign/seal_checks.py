"""Checks on records and databases from outside, before a verifier looks at them.

A record is taken only if a seal can look like its seal. A database is opened only if the files beside it, which SQLite
opens unasked, are regular files. `aver.files.regular` opens the files themselves.
"""

from __future__ import annotations

import stat
from pathlib import Path

from aver.capsule.json_reader import DuplicateKey, Unreadable
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotExact
from aver.files.open_databases import may_open_beside
from aver.files.regular import is_file_name, open_error, open_file

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


def check_schema_size(database: Path) -> None:
    """Raise `Unreadable` if the schema of an SQLite file takes more pages than `SCHEMA_PAGES_MAX`.

    SQLite reads and keeps the whole schema before it answers the first question. The schema is a tree that begins on
    the first page: either a leaf, or a page that points to leaves. A file that SQLite has open here was examined
    before.
    """
    with may_open_beside(database) as may_open:
        if may_open:
            _check_schema_pages(database)


def _check_schema_pages(database: Path) -> None:
    with open_file(database) as file:
        first = file.read(SQLITE_HEADER + 12)
        if len(first) < SQLITE_HEADER + 12 or first[SQLITE_HEADER] != _INTERIOR_PAGE:
            return
        size = int.from_bytes(first[16:18], "big")
        size = 65_536 if size == 1 else size
        count = int.from_bytes(first[SQLITE_HEADER + 3 : SQLITE_HEADER + 5], "big")
        page = first + file.read(max(size - len(first), 0))
        cells = [page[SQLITE_HEADER + 12 + 2 * at :][:2] for at in range(count)]
        children = [page[int.from_bytes(cell, "big") :][:4] for cell in cells] + [page[SQLITE_HEADER + 8 :][:4]]
        for child in children[: SCHEMA_PAGES_MAX + 1]:
            file.seek(max(int.from_bytes(child, "big") - 1, 0) * size)
            if count >= SCHEMA_PAGES_MAX or file.read(1) == bytes([_INTERIOR_PAGE]):
                raise Unreadable(f"{database.name} has a schema of more than {SCHEMA_PAGES_MAX} pages: it is too large")


SQLITE_HEADER = 100
"""Bytes of an SQLite file before the tree of its first page."""

_INTERIOR_PAGE = 0x05

SCHEMA_PAGES_MAX = 100
"""Most pages of a schema. Those of ledgers and of the known tools have one or two."""


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
    """The finding code for a record or a signed document that cannot be read."""
    if isinstance(error, NotExact):
        return "NOT_CANONICAL"
    return "DUPLICATE_KEY" if isinstance(error, DuplicateKey) else "SCHEMA_INVALID"
