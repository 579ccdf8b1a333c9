"""An action in one line: what it would do, where, and who asks."""

from __future__ import annotations

from typing import Any

import pytest

from aver.gate.action_text import SUMMARY_MAX, summarise_action


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (
            {
                "tool": "Bash",
                "arguments": {"command": "rm -rf build"},
                "workspace": "/home/ada/shop",
                "caller": "codex",
            },
            "Bash: rm -rf build in ~/shop, codex",
        ),
        ({"tool": "Bash", "arguments": {"command": "ls"}, "description": "call Bash"}, "Bash: ls"),
        ({"tool": "Task", "arguments": {}, "description": "call Task"}, "Task"),
        ({"tool": "Read", "arguments": {"file_path": "a.py"}, "workspace": "/home/adam"}, "Read: a.py in /home/adam"),
        ({"tool": "shell", "arguments": {"command": ["rm", "-r", "x"]}}, "shell: rm -r x"),
        ({"tool": "Bash", "arguments": {"command": "a\n\tb"}}, "Bash: a b"),
        ({"type": "code_edit", "files": ["a", "b", "c"]}, "code_edit: a and 2 more"),
        ({"type": "decision", "description": "deploy it"}, "decision: deploy it"),
        ({"tool": "x", "arguments": 7, "files": 7, "description": None}, "x"),
        ({}, "action"),
    ],
)
def test_the_line(action: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert summarise_action(action) == line


def test_a_long_command_is_cut_and_the_place_stays() -> None:
    action = {"tool": "Bash", "arguments": {"command": "x" * 10**6}, "workspace": "/w" * 500, "caller": "c" * 500}
    line = summarise_action(action)
    assert len(line) <= SUMMARY_MAX
    assert line.startswith("Bash: xx")
    assert line.endswith("…, " + "c" * 79 + "…")


def test_a_request_is_told_by_its_own_target() -> None:
    """A request to a web server has a constant as recipient, and a call of a tool has its arguments inside."""
    fetch = {"domain": "example.com", "resource_id": "a/b", "recipient": "alice@example.com", "text": "x"}
    webhook = {"domain": "example.com:8443", "path": "/hook", "body": "{}", "recipient": "alice@example.com"}
    call = {"server": "shop", "tool": "order", "arguments": {"id": 7, "item": "pens"}, "params": {}}
    known = {**call, "arguments": {"item": "pens", "path": "/srv/a"}}
    message = {"channel": "email", "recipient": "bob@example.com", "domain": "example.com", "text": "hi"}
    told = {
        ("FetchResource", "example.com/a/b"): fetch,
        ("PostWebhook", "example.com:8443/hook"): webhook,
        ("mcp__shop__order", "pens"): call,
        ("mcp__shop__move", "/srv/a"): known,
        ("SendMessage", "bob@example.com"): message,
    }
    for (tool, target), inputs in told.items():
        action = {"tool": tool, "arguments": inputs, "request_sha256": "0" * 64}
        assert summarise_action(action) == f"{tool}: {target}"
