"""Locks between processes, by `flock` on an open file or directory.

`flock` belongs to the open file, not to a thread or process: two descriptors of one process exclude each other, and a
child shares the lock of a descriptor that it inherited over `fork`. The kernel drops the lock when the last descriptor
is closed, so a process that dies lets go, and lock files that were left behind mean nothing.

`flock` cannot wait for a limited time. A waiter with a time limit therefore tries again and again (`wait_until`).
The locks here are not fair. `aver.ledger.stores.sqlite.connections` and `aver.keys.store_lock` add a second file, the
gate, in front of the lock, so that no waiter starves.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.errors import Unavailable
from aver.fast_dataclass import dataclass
from aver.files.regular import open_descriptor


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a waiter tries. All values are seconds."""

    pause: float
    """Between two attempts at first."""
    longest: float
    """Between two attempts at last: the pause doubles up to this."""
    steady: float = 0.0
    """How long the first pause is kept before it begins to double."""


_POLL = Pace(0.02, 0.02)


def open_lock_file(path: Path) -> int:
    """Open a lock file, made if need be, and return its descriptor. Follows no links; raises `OSError`."""
    return open_descriptor(path, os.O_RDWR | os.O_CREAT, follow=False)


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file if that is possible at once; exclusively unless `shared`. Returns whether it is locked."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(handle: int, *, timeout: float | None = None) -> None:
    """Lock an open file exclusively. Waits as long as it takes, or raises `BlockingIOError` after `timeout` seconds."""
    if timeout is None:
        fcntl.flock(handle, fcntl.LOCK_EX)
    elif not wait_until(lambda: try_lock(handle), timeout, _POLL):
        raise BlockingIOError(errno.EWOULDBLOCK, f"another process has held the lock for {timeout:g} seconds")


def unlock(handle: int) -> None:
    """Let go of the lock on an open file, also for children that share the open file."""
    fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def lock_directory(directory: Path) -> Iterator[int]:
    """Hold the exclusive lock on a directory, which must not be a link. Gives its descriptor; raises `Unavailable`."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise Unavailable(f"cannot use the directory {directory}: {error.strerror}") from error
    try:
        lock(handle)
        yield handle
    finally:
        os.close(handle)  # This lets go of the lock, too.


def wait_until(attempt: Callable[[], bool], timeout: float, pace: Pace) -> bool:
    """Try until `attempt` returns true. Returns whether it did within `timeout` seconds; tries once in any case."""
    began = time.monotonic()
    pause = pace.pause
    while not attempt():
        waited = time.monotonic() - began
        if waited >= timeout:
            return False
        time.sleep(pause)
        if waited >= pace.steady:
            pause = min(2 * pause, pace.longest)
    return True


def is_same_file(path: Path, handle: int) -> bool:
    """Whether an open file is still the one at a path. If not, a lock on it does not keep out later openers."""
    try:
        there, here = os.lstat(path), os.fstat(handle)
    except OSError:
        return False  # The caller opens the file again, and learns then what is wrong.
    return there.st_ino == here.st_ino and there.st_dev == here.st_dev


def find_lock_holder(handle: int) -> int | None:
    """The process that took the lock on an open file, if the system tells. The process may have died since then.

    A child that inherited the open file keeps the lock of a parent that died.
    """
    file = os.fstat(handle)
    wanted = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            # 1: FLOCK  ADVISORY  WRITE 4242 08:01:131075 0 EOF
            rows = [line.split() for line in table]
    except OSError:
        return None
    for row in rows:
        if len(row) >= 6 and row[1] == "FLOCK" and row[5] == wanted and row[4].isdecimal():
            return int(row[4])
    return None
