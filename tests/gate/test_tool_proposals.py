"""The proposal for an unknown tool is never weaker than its name and its arguments seem."""

from __future__ import annotations

from typing import Any

import pytest

from aver.gate.own_tools import check_effects
from aver.gate.tool_proposals import _WORDS_BY_EFFECT, propose_effects


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("tool", "arguments", "proposed"),
    [
        ("lookup_order", {"order": "17"}, "read"),
        ("userLookup", {}, "read"),
        ("listUsers", {}, "read"),
        ("get_token", {}, "read secret"),
        ("read_env", {}, "read secret"),
        ("get_order_and_pay", {}, "egress network read"),
        ("send_mail", {"to": "a@example.org"}, "egress network"),
        ("postMessage", {"channel": "x"}, "egress network"),
        ("delete_user", {}, "delete"),
        ("userDelete", {}, "delete"),
        ("save_note", {"path": "a", "content": "x"}, "write"),
        ("show", {"path": "a", "content": "x"}, "read write"),
        ("run_query", {}, "execute"),
        ("query", {"sql": "select 1"}, "read write"),
        ("deploy", {}, "execute"),
        ("fetch_page", {"url": "https://example.org"}, "network"),
        ("get_page", {"address": "https://example.org"}, "network read"),
        ("install_package", {}, "install"),
        ("frobnicate", {"command": "x"}, "execute"),
        ("frobnicate", {"url": "x"}, "network"),
        ("frobnicate", {}, ""),
        ("mcp__github__get_issue", {}, "service-read"),
        ("mcp__github__create_issue", {}, "egress network write"),
        ("mcp__files__delete", {"path": "a"}, "delete egress network"),
        ("mcp__db__query", {"sql": "x"}, "egress network read write"),
        ("mcp__x__frobnicate", {}, ""),
    ],
)
def test_the_name_and_the_arguments_say_what_is_proposed(tool: str, arguments: dict[str, Any], proposed: str) -> None:
    found = propose_effects(tool, arguments, {})
    assert found == tuple(proposed.split())
    assert check_effects(found, "the proposal") == found


@pytest.mark.parametrize(
    ("hints", "added"),
    [
        ({"readOnlyHint": True}, set()),
        ({"readOnlyHint": False}, {"write", "egress", "network"}),
        ({"destructiveHint": True}, {"delete", "egress", "network"}),
        ({"openWorldHint": True}, {"network"}),
        ({"destructiveHint": False, "openWorldHint": False}, set()),
    ],
)
def test_hints_can_only_add(hints: dict[str, bool], added: set[str]) -> None:
    plain = set(propose_effects("mcp__x__send", {}, {}))
    assert set(propose_effects("mcp__x__send", {}, hints)) == plain | added


def test_every_word_speaks_of_one_effect() -> None:
    words = [word for listed in _WORDS_BY_EFFECT.values() for word in listed.split()]
    assert len(words) == len(set(words))
    check_effects(_WORDS_BY_EFFECT, "the table")
