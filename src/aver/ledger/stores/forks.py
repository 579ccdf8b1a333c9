"""Forking a process that has ledgers open.

SQLite must not be carried over a fork: the child would take the parent's locks for its own, not lock at all, and the
parent's closing could throw away what the child has committed. So before a fork every open ledger finishes what it
is doing and closes its connections; afterwards parent and child each open their own when they need them.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forkable", "register_for_forks"]


class Forkable(Protocol):
    """Something whose state must not be in the middle of anything when the process forks."""

    def before_fork(self) -> None:
        """Come to rest, and stay so until one of the other two is called."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_REGISTERED: WeakSet[Forkable] = WeakSet()
_paused: list[Forkable] = []


def register_for_forks(thing: Forkable) -> None:
    """Call `thing` around every fork, for as long as it lives."""
    _REGISTERED.add(thing)


def _pause_all() -> None:
    for thing in list(_REGISTERED):
        thing.before_fork()
        _paused.append(thing)


def _resume_in_parent() -> None:
    while _paused:
        _paused.pop().after_fork_in_parent()


def _resume_in_child() -> None:
    while _paused:
        _paused.pop().after_fork_in_child()


os.register_at_fork(before=_pause_all, after_in_parent=_resume_in_parent, after_in_child=_resume_in_child)
