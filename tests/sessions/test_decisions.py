"""Calls take the decisions about them, under whichever name a hook knew the tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aver.gate.action import Action
from aver.gate.ask import ask
from aver.ingest.contract import AgentCall, AgentEvent
from aver.ingest.seal import seal_event
from aver.ledger import Ledger
from aver.sessions.decisions import read_decisions
from aver.sessions.step import read_step

PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"
LONG = "echo straße; " * 2_000
SECRET = "ghp_" + "a1B2" * 9
MANY = {"edits": [{"old_string": f"größe {number} " + "x" * 200, "new_string": SECRET} for number in range(300)]}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("asked", "called"),
    [
        (("Bash", {"command": "ls"}), ("exec_command", {"cmd": "ls", "yield_time_ms": 1000})),
        (("Bash", {"command": "ls"}), ("shell", {"command": ["bash", "-lc", "ls"]})),
        (("Bash", {"command": "ls", "cwd": "/w/below"}), ("Bash", {"command": "ls", "description": "List"})),
        (("apply_patch", {"patch": PATCH}), ("apply_patch", {"input": PATCH})),
        (("Read", {"file_path": "/w/a"}), ("Read", {"file_path": "/w/a"})),
        (("Write", {"file_path": "/w/a", "content": LONG}), ("Write", {"file_path": "/w/a", "content": LONG})),
        (("Write", {"file_path": "/w/a", "content": LONG * 2}), ("Write", {"file_path": "/w/a", "content": LONG * 2})),
        (("Write", {"content": SECRET + LONG * 2}), ("Write", {"content": SECRET + LONG * 2})),
        (("MultiEdit", MANY), ("MultiEdit", MANY)),
        (("Bash", {"command": LONG}), ("exec_command", {"cmd": LONG, "yield_time_ms": 1000})),
        (("Bash", {"command": LONG * 2, "cwd": "/w/below"}), ("shell", {"command": ["bash", "-lc", LONG * 2]})),
        (("apply_patch", {"patch": PATCH + LONG * 2}), ("apply_patch", {"input": PATCH + LONG * 2})),
    ],
    ids=str.split(
        "name argv cwd patch plain long heavy heavy_and_masked heavy_of_many long_command heavy_command heavy_patch"
    ),
)
def test_a_call_takes_the_decision_about_it(ledger: Ledger, asked: Any, called: Any) -> None:
    action = Action(type="tool_call", tool=asked[0], arguments=asked[1], session="one", workspace="/w")
    ask(ledger, action)
    ask(ledger, replace(action, arguments={"command": "something else"}))
    call = AgentCall(tool=called[0], id="c1", arguments=called[1], ok=True)
    step = read_step(seal_event(ledger, "codex", "one", AgentEvent(what="call", key="c1", summary="it", call=call)))
    rulings = read_decisions(ledger, "gate.one")
    taken = rulings.take(step)
    assert taken is not None
    assert taken.tool == asked[0]
    assert taken.arguments.keys() == asked[1].keys()
    assert rulings.take(step) is None
    assert [left.arguments for left in rulings.list_unmatched()] == [{"command": "something else"}]
