"""Checks of evidence in words."""

from __future__ import annotations

from typing import Any

import pytest

from aver.protocol.rules.check_words import describe_check, describe_item


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"exit_code": ["==", 0]}, "exit code == 0"),
        ({"json": {"pointer": "/secrets", "is": ["==", 0]}}, "/secrets == 0"),
        ({"json": {"pointer": "", "is": ["!=", "x"]}}, 'the document != "x"'),
        (
            {"tests": {"format": "tap", "counts": {"passed": [">=", 3], "failed": ["==", 0]}}},
            "tests passed >= 3, failed == 0",
        ),
        ({"text": {"contains": "3 passed"}}, 'contains "3 passed"'),
        ({"text": {"lines": ["<", 9]}}, "lines < 9"),
        ({"git": {"revision": None, "clean": True}}, '{"git":{"clean":true,"revision":null}}'),
    ],
)
def test_each_check_is_said_in_words(check: dict[str, Any], words: str) -> None:
    assert describe_check(check) == words


@pytest.mark.parametrize(
    "check", [None, 3, [], {}, {"exit_code": 3}, {"json": {"is": []}}, {"json": 1}, {"tests": {}}, {"a": 1, "b": 2}]
)
def test_a_check_of_no_known_form_is_shown_as_it_is(check: Any) -> None:
    assert describe_check(check).startswith(("null", "3", "[", "{"))


def test_nothing_invisible_gets_through() -> None:
    assert "\x1b" not in describe_check({"json": {"pointer": "/\x1b[2J", "is": ["==", "\x1b[2J"]}})
    assert describe_item({"execution": "3f0c", "check": {"exit_code": ["==", 0]}}) == "execution 3f0c: exit code == 0"
    assert describe_item({"artifact": "a" * 64}) == f"artifact {'a' * 16}: no check"
