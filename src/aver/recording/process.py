"""Objects that recording has once in a process: the default ledger, threads for coroutines, and work at exit.

The default ledger is opened at its first use and closed when the process ends. After a fork, parent and child both
continue to use it. The threads do not survive a fork: a child starts its own.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from aver.ledger.ledger import Ledger, open_ledger
from aver.ledger.stores.forks import register_for_forks

__all__ = ["Closable", "ForkSafeLock", "close_at_exit", "default_ledger", "run_at_exit", "sealing_threads"]

THREADS_MAX = 64
"""Most records that are sealed at once for coroutines. They can share one commit."""

_PROCESS_LOG = logging.getLogger("aver.audit")


class ForkSafeLock:
    """A lock that is safe to fork with: it is held during the fork, and the child gets a new one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        register_for_forks(self)

    def before_fork(self) -> None:
        self.lock.acquire()

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.Lock()


class _ProcessState(ForkSafeLock):
    """The default ledger and the threads, both created at their first use."""

    def __init__(self) -> None:
        super().__init__()
        self._ledger: Ledger | None = None
        self._threads: ThreadPoolExecutor | None = None

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        self._threads = None

    def ledger(self) -> Ledger:
        with self.lock:
            if self._ledger is None:
                self._ledger = open_ledger()
            return self._ledger

    def threads(self) -> ThreadPoolExecutor:
        with self.lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="aver-audit")
            return self._threads

    def close_ledger(self) -> None:
        """Close the default ledger if it is open. The next use opens it again."""
        with self.lock:
            opened, self._ledger = self._ledger, None
        if opened is not None:
            opened.close()


_STATE = _ProcessState()


def default_ledger() -> Ledger:
    """The ledger that is used where the caller gives none."""
    return _STATE.ledger()


def sealing_threads() -> ThreadPoolExecutor:
    """The threads that seal records for coroutines."""
    return _STATE.threads()


class Closable(Protocol):
    """An object that is closed when the process ends."""

    def close(self) -> None: ...


_TO_CLOSE: weakref.WeakSet[Closable] = weakref.WeakSet()
_EXIT_WORK: list[Callable[[], None]] = []


def close_at_exit(thing: Closable) -> None:
    """Close an object when the process ends, if it still exists, while records can still be sealed."""
    _TO_CLOSE.add(thing)


def run_at_exit(work: Callable[[], None]) -> None:
    """Call a function when the process ends, before the default ledger is closed."""
    _EXIT_WORK.append(work)


def _finish_process() -> None:
    for work in [*(thing.close for thing in list(_TO_CLOSE)), *_EXIT_WORK, _STATE.close_ledger]:
        try:
            work()
        except Exception:  # noqa: BLE001 - the rest must still be done
            _PROCESS_LOG.exception("recording could not finish at the end of the process")


atexit.register(_finish_process)
