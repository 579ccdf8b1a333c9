"""What recording has once in a process: the default ledger, threads for coroutines, and something to do at its end.

The default ledger is opened when first needed and closed when the process ends; after a fork, parent and child go on
with it. The threads do not survive a fork: a child makes its own.
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
"""Records that may be on their way at once for coroutines; so many can share one commit."""

_PROCESS_LOG = logging.getLogger("aver.audit")


class ForkSafeLock:
    """A lock that no fork can catch in the middle: it is held while the process forks, and a child has a new one."""

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
    """The default ledger and the threads, made when first needed."""

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
        """Close it, if it is open. It is opened again if it is needed again."""
        with self.lock:
            opened, self._ledger = self._ledger, None
        if opened is not None:
            opened.close()


_STATE = _ProcessState()


def default_ledger() -> Ledger:
    """The ledger that is used where none is given."""
    return _STATE.ledger()


def sealing_threads() -> ThreadPoolExecutor:
    """Threads that seal what coroutines leave."""
    return _STATE.threads()


class Closable(Protocol):
    """Something to close when the process ends."""

    def close(self) -> None: ...


_TO_CLOSE: weakref.WeakSet[Closable] = weakref.WeakSet()
_EXIT_WORK: list[Callable[[], None]] = []


def close_at_exit(thing: Closable) -> None:
    """Close it when the process ends, if it still lives then, and while records can still be sealed."""
    _TO_CLOSE.add(thing)


def run_at_exit(work: Callable[[], None]) -> None:
    """Do this when the process ends, before the default ledger is closed."""
    _EXIT_WORK.append(work)


def _finish_process() -> None:
    for work in [*(thing.close for thing in list(_TO_CLOSE)), *_EXIT_WORK, _STATE.close_ledger]:
        try:
            work()
        except Exception:  # noqa: BLE001 - what comes after it must be done too
            _PROCESS_LOG.exception("something failed at the end of the process")


atexit.register(_finish_process)
