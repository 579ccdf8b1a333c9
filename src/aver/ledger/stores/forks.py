"""Make it safe to fork a process that has ledgers open.

An SQLite connection must not cross a fork. The child would treat the parent's locks as its own and not lock at all, and
the parent could discard the child's commits when it closes. So before a fork, every open ledger finishes its work and
closes its connections. Afterwards parent and child each open their own connections when they need them.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object whose state must be consistent when the process forks."""

    def before_fork(self) -> None:
        """Finish all work, and start no new work until one of the other two methods is called."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_REGISTERED: WeakSet[Forkable] = WeakSet()
# Strong references: an object that was paused must live until it is resumed.
_paused: list[Forkable] = []


def register_for_forks(thing: Forkable) -> None:
    """Call the three methods of `thing` around every fork, as long as it lives."""
    _REGISTERED.add(thing)


def _pause_all() -> None:
    for thing in list(_REGISTERED):
        thing.before_fork()
        _paused.append(thing)


def _resume_in_parent() -> None:
    while _paused:  # In the reverse order, as locks are released.
        _paused.pop().after_fork_in_parent()


def _resume_in_child() -> None:
    while _paused:
        _paused.pop().after_fork_in_child()


os.register_at_fork(before=_pause_all, after_in_parent=_resume_in_parent, after_in_child=_resume_in_child)
