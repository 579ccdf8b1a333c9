"""Acts that call a tool: through the same PREVIEW, decision and COMMIT as every other act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.config import home_dir
from aver.errors import Refused
from aver.gateway.executor.function_tools import FunctionTools
from support.acts import Office, open_office


class Counter:
    """A tool that counts its calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **arguments: Any) -> list[dict[str, Any]]:
        self.calls.append(arguments)
        return [{"id": 1, "text": "milk"}]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    home_dir().mkdir(parents=True, exist_ok=True)
    (home_dir() / "config.toml").write_text('[gate.tools]\nmcp__notes__peek = ["service-read"]\n')
    with open_office(tmp_path / "work") as opened:
        yield opened


def _inputs(tool: str = "peek", **arguments: Any) -> dict[str, Any]:
    return {"server": "notes", "tool": tool, "arguments": arguments}


def test_a_call_reaches_the_tool_once_and_its_result_is_answered_and_recorded(office: Office) -> None:
    tool = Counter()
    office.gateway.connect("notes", FunctionTools({"peek": tool}))
    answer = office.act("CallTool", _inputs(topic="milk"))
    assert (answer["reason_code"], tool.calls) == ("ALLOW", [{"topic": "milk"}])
    assert answer["data"]["result"]["structuredContent"] == {"result": [{"id": 1, "text": "milk"}]}
    assert office.kinds() == ["act.preview", "act.commit", "act.outcome"]
    kept = list(office.ledger.read("gateway.s1"))[-1].to_dict()["outcome"]["result"]["result"]
    assert json.loads(kept["json"])["structuredContent"] == {"result": [{"id": 1, "text": "milk"}]}
    assert office.ledger.verify().status == "verified"


def test_a_call_that_a_person_must_approve_does_not_reach_the_tool(office: Office) -> None:
    tool = Counter()
    office.gateway.connect("notes", FunctionTools({"wipe": tool}))
    assert office.act("CallTool", _inputs("wipe"))["reason_code"] == "REQUIRE_CONFIRM"
    assert tool.calls == []


def test_an_approved_call_reaches_the_tool_once(office: Office) -> None:
    tool = Counter()
    office.enrol()
    office.gateway.connect("notes", FunctionTools({"wipe": tool}))
    asked = office.act("CallTool", _inputs("wipe"))
    office.approve(asked["data"]["approval"])
    assert office.act("CallTool", _inputs("wipe"))["reason_code"] == "ALLOW"
    assert office.act("CallTool", _inputs("wipe"))["reason_code"] == "REQUIRE_CONFIRM"
    assert len(tool.calls) == 1


def test_a_server_that_is_not_connected_cannot_be_called(office: Office) -> None:
    assert office.act("CallTool", _inputs())["reason_code"] == "EXECUTOR_UNAVAILABLE"


def test_a_name_is_taken_once(office: Office) -> None:
    office.gateway.connect("notes", FunctionTools({}))
    with pytest.raises(Refused, match="another server"):
        office.gateway.connect("notes", FunctionTools({}))


def test_a_function_that_raises_is_recorded_as_failed(office: Office) -> None:
    def peek() -> None:
        raise ValueError("no milk")

    office.gateway.connect("notes", FunctionTools({"peek": peek}))
    answer = office.act("CallTool", _inputs())
    assert (answer["reason_code"], "no milk" in answer["summary"]) == ("EFFECT_FAILED", True)


def test_functions_have_definitions_and_no_others_are_called() -> None:
    tools = FunctionTools({"peek": Counter()}, {"peek": {"annotations": {"readOnlyHint": True}}})
    found = tools.find_definition("peek")
    assert found is not None
    assert (found["name"], found["annotations"]) == ("peek", {"readOnlyHint": True})
    assert tools.find_definition("poke") is None
    with pytest.raises(Refused, match="no tool"):
        tools.request("tools/call", {"name": "poke", "arguments": {}})
