"""Files from outside: opened without surprises, and records from them taken only if a seal could look like that.

Only plain files are opened, so that a pipe or device cannot hang a verification. Inside a directory that someone
else made, no link is followed and a name is one plain name, so that nothing outside it is ever read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aver.capsule.json_reader import DuplicateKey, Unreadable
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotFound, Unavailable

__all__ = [
    "CHUNK",
    "check_companions",
    "check_file_name",
    "check_seal_fields",
    "open_file",
    "open_inside",
    "read_chunks",
    "unreadable_code",
]

CHUNK = 256 * 1024
"""Bytes read from a file at a time."""

FILE_NAME_MAX = 240
"""Longest name of a file in a bundle, in bytes: what every file system takes, with room for a suffix."""

SEAL_TEXT_MAX = 16 * 1024
"""Longest field of a seal. An ML-DSA-65 signature, the longest there is, has 6,618 hex digits."""

SQLITE_COMPANIONS = ("-journal", "-wal", "-shm")
"""What SQLite opens beside a database, by the ending of its name."""

_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def open_file(path: Path) -> BinaryIO:
    """Open a plain file that the caller named."""
    try:
        return _require_regular(os.open(path, _READ_FLAGS), path)
    except OSError as error:
        raise _open_error(path, error) from error


def open_inside(directory: Path, *names: str) -> BinaryIO:
    """Open a plain file in a directory that someone else made; the names before the last are directories in it."""
    path = directory.joinpath(*(check_file_name(name) for name in names))
    try:
        at = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        for name in names[:-1]:
            outer = at
            try:
                at = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
            finally:
                os.close(outer)
        try:
            return _require_regular(os.open(names[-1], _READ_FLAGS | os.O_NOFOLLOW, dir_fd=at), path)
        finally:
            os.close(at)
    except OSError as error:
        raise _open_error(path, error) from error


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
            raise _open_error(companion, error) from error
        if not stat.S_ISREG(mode):
            raise BadInput(f"{companion} is not a plain file", advice="remove it, or copy the database elsewhere")
        found.add(ending)
    return found


def check_file_name(name: object) -> str:
    """A name that is one plain file name and nothing else: no separator, no `..`, not hidden, printable."""
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or name[:1] in ("", ".")
        or "/" in name
        or "\\" in name
        or len(name.encode("utf-8")) > FILE_NAME_MAX
    ):
        raise Unreadable(f"{ascii(name)[:80]} is not a name that a file may have here")
    return name


def read_chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def check_seal_fields(sealed: Sealed) -> Sealed:
    """The record, unless its seal holds what no seal holds: far too much, or characters that hide or control."""
    if not isinstance(sealed.canonical, bytes):
        raise Unreadable("its canonical form is not bytes")
    for key in SEAL_KEYS:
        value = getattr(sealed, key)
        if not isinstance(value, str) or len(value) > SEAL_TEXT_MAX or not value.isprintable():
            raise Unreadable(f"its {key} is not one that a seal may have")
    return sealed


def unreadable_code(error: BadInput) -> str:
    """The code under which a record that cannot be read is reported."""
    return "DUPLICATE_KEY" if isinstance(error, DuplicateKey) else "SCHEMA_INVALID"


def _require_regular(handle: int, path: Path) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{path} is not a plain file")
    return os.fdopen(handle, "rb")


def _open_error(path: Path, error: OSError) -> BadInput | Unavailable:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"there is no {path}")
    if error.errno in (errno.ELOOP, errno.ENXIO):
        return BadInput(f"{path} is not a plain file")
    return Unavailable(f"cannot read {path}: {error.strerror}")
