"""Objects that are paused around a fork."""

from __future__ import annotations

import os

import pytest

from aver.ledger.stores.forks import register_for_forks
from support.forks import exit_of


class _Paused:
    """Notes how it was called; while it is paused for the first time, it registers another object."""

    def __init__(self, other: _Paused | None = None) -> None:
        self.calls: list[str] = []
        self._other = other

    def before_fork(self) -> None:
        self.calls.append("before")
        if self._other is not None:
            register_for_forks(self._other)

    def after_fork_in_parent(self) -> None:
        self.calls.append("parent")

    def after_fork_in_child(self) -> None:
        self.calls.append("child")


@pytest.mark.sqlite
def test_an_object_that_comes_while_others_are_paused_is_paused_too() -> None:
    """A thread may be opening a ledger when another one forks: the fork waits for it, and then for that ledger."""
    late = _Paused()
    early = _Paused(late)
    register_for_forks(early)
    child = os.fork()
    if child == 0:
        os._exit(0 if early.calls == late.calls == ["before", "child"] else 1)
    assert exit_of(child) == 0
    assert early.calls == late.calls == ["before", "parent"]
