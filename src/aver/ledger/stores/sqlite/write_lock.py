"""The exclusive lock around every write: one writer at a time, over all threads and processes.

SQLite's own locking is not enough. Versions 3.7.0 to 3.51.2 can lose acknowledged commits when two connections
reset the write-ahead log at the same moment, and its busy handler backs off so far that one writer can starve.
Under one `flock` neither can happen.

There are two files: the lock, and a gate before it. Whoever wants the lock takes the gate first and keeps it until
it has the lock; so waiters come one after the other, and nobody is overtaken for long. For the length of a turn,
the writer that had the lock last may take it again without queueing: it finds its pages still in memory, which
makes several writers together almost as fast as one alone.

The kernel drops a lock when its holder dies, so files that were left behind mean nothing. `flock` cannot wait for
a limited time, so a waiter asks again and again, rarely once the wait is long.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.errors import Unavailable
from aver.keys.store_lock import is_same_file

__all__ = ["WriteLock"]

TURN = 0.002
"""Seconds for which a writer may come back without queueing: a handful of commits."""

PAUSE = 0.00005
"""Seconds between two attempts while the lock is merely busy; a commit takes some ten times as long."""

BACKOFF_AFTER, PAUSE_MAX = 0.1, 0.005
"""After so many seconds something unusual holds the lock, and attempts become rarer, up to this pause."""


class WriteLock:
    """A lock file, and its gate beside it. Use `hold()` as a context; one thread of a process at a time."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._files: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._turn_ends = 0.0

    @contextmanager
    def hold(self) -> Iterator[None]:
        lock = self._acquire()
        while not is_same_file(self._path, lock):
            # The file was removed or replaced: whoever comes after us would lock another one.
            self.close()
            lock = self._acquire()
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def _acquire(self) -> int:
        gate, lock = self._open_files()
        now = time.monotonic()
        if now > self._turn_ends or not _try_lock(lock):
            self._wait_for_lock(gate, now)
            try:
                self._wait_for_lock(lock, now)
                self._turn_ends = time.monotonic() + TURN
            finally:
                fcntl.flock(gate, fcntl.LOCK_UN)
        return lock

    def close(self) -> None:
        if self._files is not None and self._pid == os.getpid():
            for file in self._files:
                os.close(file)
        self._files = None

    def _open_files(self) -> tuple[int, int]:
        # A lock taken through a descriptor that was inherited over fork would be shared with the parent.
        if self._files is None or self._pid != os.getpid():
            self._files = _open_lock_file(self._path.with_suffix(".gate")), _open_lock_file(self._path)
            self._pid = os.getpid()
        return self._files

    def _wait_for_lock(self, file: int, began: float) -> None:
        pause = PAUSE
        while not _try_lock(file):
            waited = time.monotonic() - began
            if waited > self._timeout:
                raise Unavailable(
                    f"another process has held the ledger's lock {self._path} for {self._timeout:g} seconds",
                    advice=f"see who holds it with: fuser {self._path}",
                )
            if waited > BACKOFF_AFTER:
                pause = min(pause * 2, PAUSE_MAX)
            time.sleep(pause)


def _open_lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(
            f"cannot open the ledger's lock {path}: {error.strerror}",
            advice="check that you may write to its directory",
        ) from error


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
