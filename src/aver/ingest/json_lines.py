"""New lines of a growing file: each once, when it is whole, without reading the file again.

A last line without its end waits until it has one. A line larger than `RECORD_MAX` is hashed in pieces and returned
without its bytes. The reader starts again at the beginning, and sets `started_anew`, if the file became shorter, is
another file under the same name, or has other bytes right before the place where it stopped. A missing file reads as
empty.

Find out from a file's status, without reading it, whether it has changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from aver.files.regular import open_if_regular
from aver.ingest.contract import RECORD_MAX, RawRecord, record_from_bytes

CHUNK_SIZE = 1024 * 1024
"""Bytes read at a time."""

TAIL_SIZE = 1024
"""Bytes before where we stopped that must still be the same: a file that was written anew is seldom alike there."""


class LineReader:
    """Where in a file reading stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._at = 0
        self._number = 0
        self._tail = b""
        self.started_anew = False
        self.unfinished = 0

    def __call__(self) -> Iterator[RawRecord]:
        self.started_anew = False
        file = open_if_regular(self._path)
        if file is None:
            return
        with file:
            status = os.fstat(file.fileno())
            file.seek(max(0, self._at - len(self._tail)))
            tail = file.read(len(self._tail))
            identity = (status.st_dev, status.st_ino)
            if self._identity is not None and (identity != self._identity or tail != self._tail):
                self._at = self._number = 0
                self._tail = b""
                self.started_anew = True
            self._identity = identity
            file.seek(self._at)
            yield from self._read_lines(file.read)

    def _read_lines(self, read: Callable[[int], bytes]) -> Iterator[RawRecord]:
        """The whole lines from here on. Memory is bounded by the longest line, and that by `RECORD_MAX`."""
        begun = bytearray()
        digest, size = None, 0
        while piece := read(CHUNK_SIZE):
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                part = piece[start:end]
                self._number += 1
                if digest is None:
                    part = bytes(begun) + part if begun else part
                    found = record_from_bytes(str(self._number), part)
                    length = len(part)
                else:
                    digest.update(part)
                    length = size + len(part)
                    found = RawRecord(str(self._number), b"", digest.hexdigest(), length)
                self._at += length + 1
                self._tail = part[-TAIL_SIZE:] + b"\n"
                begun.clear()
                digest, size = None, 0
                start = end + 1
                yield found
            rest = piece[start:]
            if digest is None and len(begun) + len(rest) > RECORD_MAX:
                digest = hashlib.sha256(begun)
                size = len(begun)
                begun.clear()
            if digest is None:
                begun += rest
            else:
                digest.update(rest)
                size += len(rest)
        self.unfinished = len(begun) + size


SETTLED_NS = 2_000_000_000
"""Age of a file's time from which an unchanged time means an unchanged file: clocks of file systems are coarse, and two
writes can have one time."""


class FileStatus(NamedTuple):
    """Values that change when a file is written or replaced."""

    inode: int
    size: int
    time_ns: int


def read_file_status(path: Path) -> FileStatus | None:
    """The status of a file; None where there is none, or it is something else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FileStatus(status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def is_settled(statuses: Iterable[FileStatus | None]) -> bool:
    """Return whether a further change of any of the files would change its status."""
    newest = max((status.time_ns for status in statuses if status is not None), default=0)
    return time.time_ns() - newest > SETTLED_NS
