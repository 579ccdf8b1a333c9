"""The key store's lock: many signers at once, or one change of keys, which signers cannot starve.

There are two lock files in the store's directory, both locked with `flock`:

* `.lock`  shared while signing, exclusive while keys change.
* `.gate`  a signer locks it shared for the moment in which it takes `.lock`. A change locks it exclusively while it
           waits for `.lock` and holds it, so that new signers wait and the change gets its turn.

`flock` belongs to an open file, not to a thread. So all signers of a process share one open file, and are counted.
Signing is re-entrant per thread, and ends in the thread that began it. After a fork, the child starts with locks of its
own. Every wait has a time limit. The locks of a process that dies are released.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet, WeakValueDictionary

from aver.errors import Refused, Unavailable
from aver.files.locks import Pace, is_same_file, open_lock_file, try_lock, unlock, wait_until
from aver.log import debug

LOCK_NAME = ".lock"
GATE_NAME = ".gate"

PACE = Pace(pause=0.0005, longest=0.02)
"""Signing takes well under a millisecond, so most waits end after the first pause."""


class StoreLock:
    """The lock of one store. `get_store_lock` returns it, so that all users in a process share one."""

    def __init__(self, directory: Path) -> None:
        self._lock_path = directory / LOCK_NAME
        self._gate_path = directory / GATE_NAME
        self.era = 0
        """The number of forks. A lock that the parent took before a fork is not released here."""
        self._reset()
        _LOCKS.add(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._depth = threading.local()
        self._signers = 0
        self._shared: tuple[int, int] | None = None
        self._exclusive: set[int] = set()

    def after_fork(self) -> None:
        """In the child: close the parent's open files, and start without locks."""
        inherited = {*self._exclusive, *(self._shared or ())}
        self.era += 1
        self._reset()
        for handle in inherited:
            os.close(handle)

    def __del__(self) -> None:
        for handle in self._shared or ():
            os.close(handle)

    def share(self, timeout: float) -> None:
        """Lock for signing: no key changes until the matching `unshare`. `Unavailable` after `timeout` seconds."""
        depth = getattr(self._depth, "count", 0)
        if depth == 0 and not self._try_share():
            self._wait_until(self._try_share, timeout, self._lock_path, "a key is being changed")
        self._depth.count = depth + 1

    def unshare(self, era: int) -> None:
        """End a `share`. `era` is the value at that time: after a fork, the child has nothing to release."""
        if era != self.era:
            return
        self._depth.count -= 1
        if self._depth.count:
            return
        with self._mutex:
            self._signers -= 1
            if self._signers == 0 and self._shared is not None:
                unlock(self._shared[0])

    @contextmanager
    def hold_shared(self, timeout: float) -> Iterator[None]:
        self.share(timeout)
        era = self.era
        try:
            yield
        finally:
            self.unshare(era)

    @contextmanager
    def hold_exclusive(self, timeout: float) -> Iterator[None]:
        """Hold the lock exclusively: no process signs or changes keys meanwhile."""
        if getattr(self._depth, "count", 0):
            raise Refused(
                "KEY_HELD",
                "keys cannot be changed while this thread holds one for signing",
                advice="change keys after the signing has ended",
            )
        done = False
        while not done:
            with self._open_own(self._gate_path) as gate, self._open_own(self._lock_path) as lock:
                # The gate first: it keeps new signers out while this change waits for those that hold the lock.
                self._wait_until(lambda: try_lock(gate), timeout, self._gate_path, "keys are being changed")
                self._wait_until(lambda: try_lock(lock), timeout, self._lock_path, "a key is held for signing")
                # A file that was removed or replaced locks out nobody: try again with the new one.
                if is_same_file(self._gate_path, gate) and is_same_file(self._lock_path, lock):
                    done = True
                    yield

    @contextmanager
    def _open_own(self, path: Path) -> Iterator[int]:
        """Open a file of our own: an exclusive lock must also exclude the signers of this process."""
        handle = _open_lock_file(path)
        self._exclusive.add(handle)
        try:
            yield handle
        finally:
            if handle in self._exclusive:
                self._exclusive.discard(handle)
                # A child that was forked meanwhile may share the open file; then closing alone does not unlock it.
                unlock(handle)
                os.close(handle)

    def _try_share(self) -> bool:
        with self._mutex:
            if self._shared is None:
                self._shared = _open_lock_file(self._lock_path), _open_lock_file(self._gate_path)
            lock, gate = self._shared
            if self._signers == 0 and not is_same_file(self._lock_path, lock):
                # The file was removed or replaced: a lock on it would keep nobody out. The next attempt opens it anew.
                self._shared = None
                os.close(lock)
                os.close(gate)
                return False
            if not try_lock(gate, shared=True):
                return False  # A change of keys waits, or is going on: let it have its turn.
            try:
                # Only the first signer of this process locks the file; the last one unlocks it.
                if self._signers == 0 and not try_lock(lock, shared=True):
                    return False
                self._signers += 1
                return True
            finally:
                unlock(gate)

    @staticmethod
    def _wait_until(attempt: Callable[[], bool], timeout: float, path: Path, reason: str) -> None:
        """Try until it works. Nothing stays locked between two attempts, so others can finish. Raises `Unavailable`."""
        if not wait_until(attempt, timeout, PACE):
            debug("keys", "no lock on %s after %g seconds: %s", path, timeout, reason)
            raise Unavailable(
                f"could not lock {path} within {timeout:g} seconds: {reason}",
                advice="try again; if it stays so, find the process that has this file open",
            )


def get_store_lock(directory: Path) -> StoreLock:
    """The lock of the store in `directory`, one for each process. Opens no file."""
    name = os.path.realpath(directory)
    with _LOCKS_MUTEX:
        lock = _BY_DIRECTORY.get(name)
        if lock is None:
            lock = _BY_DIRECTORY[name] = StoreLock(Path(name))
        return lock


def _open_lock_file(path: Path) -> int:
    try:
        return open_lock_file(path)
    except OSError as error:
        raise Unavailable(f"cannot open the lock {path}: {error.strerror}") from error


def _after_fork() -> None:
    global _LOCKS_MUTEX
    _LOCKS_MUTEX = threading.Lock()
    for lock in _LOCKS:
        lock.after_fork()


_LOCKS: WeakSet[StoreLock] = WeakSet()
_BY_DIRECTORY: WeakValueDictionary[str, StoreLock] = WeakValueDictionary()
_LOCKS_MUTEX = threading.Lock()
os.register_at_fork(after_in_child=_after_fork)
