"""A huge action is bounded before it is read or sealed, and its digest is still its own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from aver.gate.action import Action
from aver.gate.ask import ask
from aver.gate.effects.large_action import TEXT_MAX, bound_action
from aver.ledger import Ledger


def action(**more: Any) -> Action:
    return Action(**{"type": "shell_exec", "tool": "Bash", "workspace": "/work", **more})


def test_an_ordinary_action_stays_as_it_is() -> None:
    given = action(arguments={"command": "ls", "deep": [{"x": 1}]}, diff="x")
    assert bound_action(given) is given


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "a" * (TEXT_MAX + 1)},
        {"command": "ls", "other": {"deep": ["a" * (TEXT_MAX + 1)]}},
        {"command": "ls", "parts": ["a" * 3000] * 1000},
    ],
    ids=range(3),
)
def test_a_long_text_becomes_an_account_of_it(arguments: dict[str, Any]) -> None:
    bounded = bound_action(action(arguments=arguments))
    assert len(str(bounded.arguments)) < TEXT_MAX * 3
    assert "cut" in str(bounded.arguments)
    other = bound_action(action(arguments={**arguments, "command": arguments["command"] + "b"}))
    assert bounded.digest != other.digest


def test_the_account_names_the_text() -> None:
    text = "echo " + "ä" * TEXT_MAX + "\ud800"
    account = bound_action(action(arguments={"command": text})).arguments["command"]["cut"]
    assert account["sha256"] == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert account["characters"] == len(text)
    assert text.startswith(account["begins"])


def test_a_long_diff_is_not_shown() -> None:
    bounded = bound_action(action(type="code_edit", tool="Edit", diff="+x\n" * TEXT_MAX))
    assert bounded.diff is None
    assert "cut" in bounded.arguments["aver_diff"]


def test_a_huge_command_asks_and_the_ledger_stays_small(ledger: Ledger, tmp_path: Path) -> None:
    answer = ask(ledger, action(arguments={"command": "echo " + "a" * 5_000_000}, workspace=str(tmp_path)))
    assert answer.decision.decision == "human_review"
    assert len(answer.record.canonical) < 50_000
    assert ledger.verify().status == "verified"
