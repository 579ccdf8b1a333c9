"""Make it safe to fork a process that has ledgers open.

An SQLite connection must not cross a fork. The child would treat the parent's locks as its own and not lock at all, and
the parent could discard the child's commits when it closes. So before a fork, every open ledger finishes its work and
closes its connections. Afterwards parent and child each open their own connections when they need them.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object whose state must be consistent when the process forks."""

    def before_fork(self) -> None:
        """Finish all work, and start no new work until one of the other two methods is called."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_REGISTERED: WeakSet[Forkable] = WeakSet()
_REGISTERING = threading.Lock()
"""Guards the set above, and is taken during a fork: no thread can add an object that was not paused."""

_paused: list[Forkable] = []
"""Strong references: an object that was paused must live until it is resumed."""


def register_for_forks(thing: Forkable) -> None:
    """Call the three methods of `thing` around every fork, as long as it lives."""
    with _REGISTERING:
        _REGISTERED.add(thing)


def _pause_all() -> None:
    while True:
        _REGISTERING.acquire()
        waiting = [thing for thing in _REGISTERED if not any(thing is paused for paused in _paused)]
        if not waiting:
            return  # The lock stays taken until after the fork.
        # Pausing waits for work that may register more objects: another thread may be opening a ledger just now. So
        # the lock is free meanwhile, and the set is looked through again.
        _REGISTERING.release()
        try:
            for thing in waiting:
                thing.before_fork()
                _paused.append(thing)
        except BaseException:
            _REGISTERING.acquire()  # Python reports the error and forks all the same; the lock must be taken then, too.
            raise


def _resume_in_parent() -> None:
    _REGISTERING.release()
    while _paused:  # In the reverse order, as locks are released.
        _paused.pop().after_fork_in_parent()


def _resume_in_child() -> None:
    _REGISTERING.release()
    while _paused:
        _paused.pop().after_fork_in_child()


os.register_at_fork(before=_pause_all, after_in_parent=_resume_in_parent, after_in_child=_resume_in_child)
