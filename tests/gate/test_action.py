"""The digest of an action: it names what would happen, whatever the agent says about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import aver  # noqa: F401 - provides the names of agents' tools
from aver.agents.registry import provide_known_agents
from aver.gate.action import Action

provide_known_agents()

BASE = Action(
    type="shell_exec",
    tool="Bash",
    arguments={"command": "rm -rf build", "description": "clean"},
    caller="claude-code",
    session="s1",
    workspace="/work/shop",
    call_id="claude-code:s1:1",
)


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"command": "rm -rf build", "description": "Remove the build directory"}},
        {"arguments": {"command": "rm -rf build"}},
        {"description": "call Bash"},
        {"session": "s2"},
        {"call_id": "claude-code:s1:2"},
    ],
    ids=str,
)
def test_words_about_an_action_do_not_count(change: dict[str, Any]) -> None:
    assert replace(BASE, **change).digest == BASE.digest


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"command": "rm -rf src", "description": "clean"}},
        {"arguments": {"command": "rm -rf build", "description": "clean", "timeout": 1}},
        {"arguments": {"command": "rm -rf build", "Description": "clean"}},
        {"tool": "bash"},
        {"tool": "mcp__x__Bash"},
        {"type": "command"},
        {"files": ("a",)},
        {"diff": ""},
        {"workspace": "/work/other"},
        {"caller": "codex"},
        {"on_behalf_of": "person:ada"},
        {"request_sha256": "0" * 64},
    ],
    ids=str,
)
def test_all_else_counts(change: dict[str, Any]) -> None:
    assert replace(BASE, **change).digest != BASE.digest


def test_of_an_unknown_tool_every_argument_counts() -> None:
    one = Action(type="tool_call", tool="lookup", arguments={"description": "a"})
    assert one.left_out == ()
    assert one.digest != replace(one, arguments={"description": "b"}).digest


def test_the_description_counts_where_nothing_else_says_what_would_happen() -> None:
    bare = Action(type="decision", description="deploy")
    assert bare.digest != replace(bare, description="destroy").digest
    only_words = replace(BASE, arguments={"description": "x"}, description="a")
    assert only_words.digest != replace(only_words, description="b").digest


def test_version_1_covers_the_words_and_the_session() -> None:
    assert BASE.compute_digest(1) != replace(BASE, session="s2").compute_digest(1)
    assert BASE.compute_digest(1) != replace(BASE, description="x").compute_digest(1)
    assert BASE.compute_digest(1) == "df52999f5e4b52a1eca7041000f2c0dbd3092461fa7b9ab755aae894c52516a8"
