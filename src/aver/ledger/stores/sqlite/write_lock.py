"""The exclusive lock around every write: one writer at a time, over all threads and processes.

SQLite's own locking is not enough. Versions 3.7.0 to 3.51.2 can lose acknowledged commits when two connections
reset the write-ahead log at the same moment, and its busy handler backs off so far that one writer can starve.
Under one `flock` neither can happen.

There are two files: the lock, and a gate in front of it. A writer takes the gate first and keeps it until it has the
lock. So writers queue one behind the other, and none is overtaken for long. For the length of a turn, the writer that
had the lock last may take it again without queueing. Its pages are still in memory, and so several writers together
are almost as fast as one alone.

The kernel drops a lock when its holder dies, so a file that was left behind means nothing. `flock` cannot wait for a
limited time, so a waiter polls, less often when the wait is long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.errors import Unavailable
from aver.files.locks import Pace, is_same_file, open_lock_file, try_lock, unlock, wait_until
from aver.log import debug

__all__ = ["WriteLock"]

TURN = 0.002
"""Seconds in which a writer may take the lock again without queueing: enough for a handful of commits."""

PACE = Pace(pause=0.00005, longest=0.005, steady=0.1)
"""A commit takes some ten times as long as the first pause. After 0.1 seconds something unusual has the lock, and the
pauses grow, up to 5 ms."""


class WriteLock:
    """A lock file and the gate beside it. Only one thread of a process may use it at a time."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._files: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._turn_ends = 0.0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Take the lock for the length of the context. Raises `Unavailable` after the timeout."""
        lock = self._acquire()
        while not is_same_file(self._path, lock):
            # The file was removed or replaced meanwhile: the next writer would lock another file.
            self.close()
            lock = self._acquire()
        try:
            yield
        finally:
            unlock(lock)

    def _acquire(self) -> int:
        gate, lock = self._open_files()
        now = time.monotonic()
        if now > self._turn_ends or not try_lock(lock):
            # Not our turn, or another writer has the lock: queue at the gate, and keep it until we have the lock.
            self._wait_for_lock(gate, now)
            try:
                self._wait_for_lock(lock, now)
                locked_at = time.monotonic()
                self._turn_ends = locked_at + TURN
                if locked_at - now > PACE.steady:
                    debug("ledger", "waited %.3f s for the lock %s", locked_at - now, self._path)
            finally:
                unlock(gate)
        return lock

    def close(self) -> None:
        # After a fork the descriptors belong to the parent; the child leaves them alone.
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

    def _wait_for_lock(self, file: int, started: float) -> None:
        # The gate and the lock together may take `timeout` seconds.
        if not wait_until(lambda: try_lock(file), started + self._timeout - time.monotonic(), PACE):
            debug("ledger", "gave up waiting for the lock %s", self._path)
            raise Unavailable(
                f"another process has held the ledger's lock {self._path} for {self._timeout:g} seconds",
                advice=f"see who holds it with: fuser {self._path}",
            )


def _open_lock_file(path: Path) -> int:
    try:
        return open_lock_file(path)
    except OSError as error:
        raise Unavailable(
            f"cannot open the ledger's lock {path}: {error.strerror}",
            advice="check that you may write to its directory",
        ) from error
