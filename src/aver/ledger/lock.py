"""The exclusive lock around every write: one writer at a time, over all threads and processes.

SQLite's own locking is not enough. Versions 3.7.0 to 3.51.2 can lose acknowledged commits when two connections
reset the write-ahead log at the same moment, and its busy handler backs off so far that one writer can starve.
Under one `flock` neither can happen.

The kernel drops the lock when its holder dies, so a lock file that was left behind means nothing. `flock` itself
cannot wait for a limited time, so a waiter asks again and again, often at first: a commit takes less than a
millisecond.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.errors import Unavailable

__all__ = ["WriteLock"]

PAUSE_MIN, PAUSE_MAX = 0.00005, 0.001
"""Seconds between two attempts: at first, and after a long wait."""


class WriteLock:
    """A lock file. Use `held()` as a context; one thread of a process at a time."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._file: int | None = None
        self._pid = os.getpid()

    @contextmanager
    def held(self) -> Iterator[None]:
        file = self._opened()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(file)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None and self._pid == os.getpid():
            os.close(self._file)
        self._file = None

    def _opened(self) -> int:
        # A lock taken through a descriptor that was inherited over fork would be shared with the parent.
        if self._file is None or self._pid != os.getpid():
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise Unavailable(
                    f"cannot open the ledger's lock {self._path}: {error.strerror}",
                    advice="check that you may write to its directory",
                ) from error
            self._pid = os.getpid()
        return self._file

    def _wait(self, file: int) -> None:
        pause = PAUSE_MIN
        give_up = time.monotonic() + self._timeout
        while time.monotonic() < give_up:
            time.sleep(pause)
            pause = min(pause * 1.1, PAUSE_MAX)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return
        raise Unavailable(
            f"another process has held the ledger's lock {self._path} for {self._timeout:g} seconds",
            advice=f"see who holds it with: fuser {self._path}",
        )
