"""Files of other tools, opened such that nothing that was put in their place can hang us or be read without end."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path

from aver.errors import Unavailable

__all__ = ["open_if_regular", "read_if_regular"]

_NONBLOCKING_FLAGS = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
"""A pipe put in the file's place must not hang us. Windows knows none of these flags, and has no such pipes."""


def open_if_regular(path: Path) -> FileIO | None:
    """The file, without a buffer; None where there is none, or it is a pipe, a directory or a device."""
    try:
        handle = os.open(path, _NONBLOCKING_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb", buffering=0)


def read_if_regular(path: Path, most: int) -> bytes | None:
    """What a file holds; None where there is none, or it holds more than `most` bytes."""
    file = open_if_regular(path)
    if file is None:
        return None
    with file:
        if os.fstat(file.fileno()).st_size > most:
            return None
        pieces = list(iter(lambda: file.read(PIECE_SIZE), b""))
        return b"".join(pieces)


PIECE_SIZE = 1024 * 1024
"""Bytes read at a time."""
