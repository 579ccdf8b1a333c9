"""Read the new lines of a growing file, and find out from a file's status whether it has changed.

`LineReader` returns each line once, without reading the file again from its beginning:

    {"type": "user", …}\\n        a record, with the place "1"
    {"type": "assistant", …       no line end yet: it comes with a later call, and counts as `unfinished`

A line over `RECORD_MAX` is hashed in pieces and returned without its bytes. The reader starts again at the beginning,
and sets `started_anew`, if the file became shorter, is another file under the same name, or has other bytes right
before the place where it stopped. A missing file reads as empty.
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
"""Bytes before the last place that must still be the same. In a rewritten file they rarely are."""


class LineReader:
    """Reads the lines of one file. Each call continues where the last one stopped."""

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
            # `fstat` of the open file: the path may already name another one.
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
        """Yield the complete lines from here on. No more than one line of `RECORD_MAX` bytes is in memory."""
        partial = bytearray()
        digest, size = None, 0
        while piece := read(CHUNK_SIZE):
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                part = piece[start:end]
                self._number += 1
                if digest is None:
                    part = bytes(partial) + part if partial else part
                    found = record_from_bytes(str(self._number), part)
                    length = len(part)
                else:
                    digest.update(part)
                    length = size + len(part)
                    found = RawRecord(str(self._number), b"", digest.hexdigest(), length)
                # Advance before the yield: the caller may stop here, and the next call must go on after this line.
                self._at += length + 1
                self._tail = part[-TAIL_SIZE:] + b"\n"
                partial.clear()
                digest, size = None, 0
                start = end + 1
                yield found
            rest = piece[start:]
            # From here on the line is too long to keep. Only its digest and size grow.
            if digest is None and len(partial) + len(rest) > RECORD_MAX:
                digest = hashlib.sha256(partial)
                size = len(partial)
                partial.clear()
            if digest is None:
                partial += rest
            else:
                digest.update(rest)
                size += len(rest)
        self.unfinished = len(partial) + size


SETTLED_NS = 2_000_000_000
"""The age of a file's time, in nanoseconds, from which an unchanged time means an unchanged file. File systems have
coarse clocks, so two writes can have the same time."""


class FileStatus(NamedTuple):
    """Values that change when a file is written or replaced."""

    inode: int
    size: int
    time_ns: int


def read_file_status(path: Path) -> FileStatus | None:
    """Return the status of a file; None if there is no regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FileStatus(status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def is_settled(statuses: Iterable[FileStatus | None]) -> bool:
    """Return whether a further change of any of the files would change its status."""
    newest = max((status.time_ns for status in statuses if status is not None), default=0)
    return time.time_ns() - newest > SETTLED_NS
