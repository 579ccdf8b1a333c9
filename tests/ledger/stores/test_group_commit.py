"""Group commit when a signal ends the leader: in every line where Python may run a signal's handler."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

from aver.errors import OutcomeUnknown
from aver.ledger.stores import group_commit
from aver.ledger.stores.group_commit import GroupCommit, WriteRequest
from support.parts import PATIENCE

FOLLOWERS = 3


def lines_of(function: Callable[..., Any]) -> list[tuple[CodeType, int]]:
    """The lines of a function, but for those that take or leave a lock: Python runs no handler between."""
    text, first = inspect.getsourcelines(function)
    code = function.__code__
    numbers = {number for _, _, number in code.co_lines() if number is not None and number > first}
    return [(code, number) for number in sorted(numbers) if not text[number - first].strip().startswith("with ")]


LINES = [
    line for each in (GroupCommit.submit, GroupCommit._commit_batch, GroupCommit._hand_on) for line in lines_of(each)
]


class Interrupted(BaseException):
    """Raised as a signal's handler would."""


def raise_at(code: CodeType, line: int, when: Callable[[], bool]) -> Callable[..., Any]:
    """A trace function that raises before a line, once."""
    struck: list[int] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is code and event == "line" and frame.f_lineno == line and not struck and when():
            struck.append(line)
            raise Interrupted
        return trace

    return trace


@pytest.mark.parametrize(("code", "line"), LINES, ids=[f"{code.co_name}:{line}" for code, line in LINES])
@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
def test_nobody_waits_for_ever(code: CodeType, line: int, is_written: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader is ended before or after its commit, while others wait. All get an answer; the next is written."""
    monkeypatch.setattr(group_commit, "LOOK_SECONDS", 0.02)
    queued, written = threading.Event(), threading.Event()

    def write(batch: Any) -> None:
        queued.wait(PATIENCE)
        for request in batch:
            request.result = "written"
        written.set()

    commits: GroupCommit[str] = GroupCommit(write)
    outcomes: list[object] = []

    def submit() -> None:
        try:
            outcomes.append(commits.submit(WriteRequest()))
        except BaseException as error:
            outcomes.append(error)

    def lead() -> None:
        sys.settrace(raise_at(code, line, lambda: written.is_set() is is_written))
        submit()

    threads = [threading.Thread(target=lead, daemon=True)]
    threads += [threading.Thread(target=submit, daemon=True) for _ in range(FOLLOWERS)]
    for thread in threads:
        thread.start()
        while commits._leader is None and thread.is_alive():
            time.sleep(0.001)
    while len(commits._waiting) + len(outcomes) < FOLLOWERS and not queued.is_set():
        time.sleep(0.001)
    queued.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(outcomes) == FOLLOWERS + 1, "somebody still waits"
    assert all(each == "written" or isinstance(each, Interrupted | OutcomeUnknown) for each in outcomes), outcomes
    assert sum(isinstance(each, Interrupted) for each in outcomes) <= 1
    assert commits.submit(WriteRequest()) == "written"
