"""Diffs of texts that somebody wrote to have them compared for long."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from aver.diffs import PAIRS_MAX, count_changed_lines, unified_diff

HARD = [str(line % 100) for line in range(10_000)]
"""Each line comes a hundred times: too seldom for `difflib` to pass it over, too often to compare all pairs."""


def test_lines_that_come_again_and_again_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: Any, **__: Any) -> Any:
        raise AssertionError("this takes minutes")

    monkeypatch.setattr(difflib, "unified_diff", compared)
    assert len(HARD) * 100 > PAIRS_MAX
    diff = unified_diff("a.txt", "\n".join(HARD), "\n".join(reversed(HARD)))
    assert count_changed_lines(diff) == (10_000, 10_000)


def test_a_large_text_like_those_that_people_write_is_compared() -> None:
    before = [line for number in range(5_000) for line in (f"line {number}", "", "}")]
    after = [*before[:300], "new", *before[303:]]
    assert count_changed_lines(unified_diff("a.txt", "\n".join(before), "\n".join(after))) == (1, 3)


def test_a_new_empty_file_is_a_change_without_lines() -> None:
    diff = unified_diff("pkg/__init__.py", None, "")
    assert diff == "--- /dev/null\n+++ b/pkg/__init__.py\n"
    assert count_changed_lines(diff) == (0, 0)
    assert unified_diff("a.py", "", "") == unified_diff("a.py", None, None) == ""
