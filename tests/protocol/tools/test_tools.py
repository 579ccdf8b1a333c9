"""Each tool: what the gate is asked, what it gives, and how it fails."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.errors import BadInput
from aver.gate.action import Facts
from aver.gate.effects.effects import find_effects
from aver.protocol.tools.act_tools import act_tools
from aver.protocol.tools.function_tools import function_tools
from aver.protocol.tools.standard_tools import standard_tools
from aver.protocol.tools.tool import Limits, ToolBox, ToolOrder, ToolResult

NOW = Facts(now="2026-01-05T09:00:00+00:00")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("tea = 4\n")
    return tmp_path


def order(workspace: Path, tool: str, arguments: dict[str, Any], **limits: Any) -> ToolOrder:
    return ToolOrder(tool, arguments, str(workspace), Limits(**limits), call_id="intent-1")


def run(tools: ToolBox, given: ToolOrder) -> ToolResult:
    tools.ask_about(given)
    return tools.run(given)


def classes(tools: ToolBox, given: ToolOrder) -> set[str]:
    action = tools.ask_about(given).build_action(given, caller="agent:executor", session="t")
    return set(find_effects(action, NOW).classes)


# --- commands


def test_the_gate_judges_the_words_of_a_command(workspace: Path) -> None:
    tools = standard_tools()
    assert classes(tools, order(workspace, "command", {"argv": ["pytest", "-q"]})) == {"build"}
    assert classes(tools, order(workspace, "command", {"argv": ["cat", "src/app.py"], "cwd": "src"})) == {"read"}
    assert "delete" in classes(tools, order(workspace, "command", {"argv": ["rm", "-r", "src"]}))
    assert "network" in classes(tools, order(workspace, "command", {"argv": ["curl", "https://example.org"]}))


def test_a_command_gives_its_outputs_and_collects_files(workspace: Path) -> None:
    code = "open('report.xml', 'w').write('<a/>'); print('done'); raise SystemExit(2)"
    given = order(
        workspace,
        "command",
        {"argv": [sys.executable, "-c", code], "cwd": "src", "collect": {"report": "report.xml", "none": "none.xml"}},
    )
    result = run(standard_tools(), given)
    assert (result.exit_code, result.failure, result.cut) == (2, "", ())
    found = {name: (output.data, output.media) for name, output in result.outputs.items()}
    assert found == {
        "stdout": (b"done\n", "text/plain; charset=utf-8"),
        "stderr": (b"", "text/plain; charset=utf-8"),
        "report": (b"<a/>", "application/xml"),
    }


def test_an_old_report_does_not_stand_for_a_run_that_wrote_none(workspace: Path) -> None:
    (workspace / "report.xml").write_text("<old/>")
    os.utime(workspace / "report.xml", (time.time() - 60, time.time() - 60))
    given = order(workspace, "command", {"argv": [sys.executable, "-c", ""], "collect": {"report": "report.xml"}})
    assert set(run(standard_tools(), given).outputs) == {"stdout", "stderr"}


def test_a_collected_link_is_not_followed(workspace: Path, tmp_path: Path) -> None:
    code = "import os; os.symlink('/etc/passwd', 'report.xml')"
    given = order(workspace, "command", {"argv": [sys.executable, "-c", code], "collect": {"report": "report.xml"}})
    assert set(run(standard_tools(), given).outputs) == {"stdout", "stderr"}


def test_a_collected_file_is_cut(workspace: Path) -> None:
    code = "open('log.txt', 'w').write('x' * 5000)"
    arguments = {"argv": [sys.executable, "-c", code], "collect": {"log": "log.txt"}}
    result = run(standard_tools(), order(workspace, "command", arguments, output_max=100))
    assert (len(result.outputs["log"].data), result.cut) == (100, ("log",))


def test_a_command_that_takes_too_long(workspace: Path) -> None:
    argv = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]
    result = run(standard_tools(), order(workspace, "command", {"argv": argv}, seconds=1.0))
    assert (result.failure, result.exit_code) == ("TIMEOUT", None)
    assert "1 seconds" in result.words
    assert result.outputs["stdout"].data == b"begun\n"


def test_a_program_that_is_not_there(workspace: Path) -> None:
    result = run(standard_tools(), order(workspace, "command", {"argv": ["no-such-program"]}))
    assert result.failure == "ERROR"
    assert "cannot be started" in result.words


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"argv": []},
        {"argv": "ls"},
        {"argv": [""]},
        {"argv": ["ls", 1]},
        {"argv": ["ls", "a\0b"]},
        {"argv": ["ls"], "cwd": "/etc"},
        {"argv": ["ls"], "cwd": "../.."},
        {"argv": ["ls"], "shell": True},
        {"argv": ["ls"], "collect": {"stdout": "a"}},
        {"argv": ["ls"], "collect": {"a": "../a"}},
        {"argv": ["ls"], "collect": {"a": "/etc/passwd"}},
        {"argv": ["ls"], "collect": {"a": 1}},
    ],
)
def test_a_wrong_command_is_refused_before_anybody_decides(workspace: Path, arguments: dict[str, Any]) -> None:
    tools, given = standard_tools(), order(workspace, "command", arguments)
    with pytest.raises(BadInput):
        tools.ask_about(given)
    assert tools.run(given).failure == "ERROR"


def test_a_link_out_of_the_workspace_is_no_place_to_run(workspace: Path) -> None:
    (workspace / "away").symlink_to("/etc")
    with pytest.raises(BadInput, match="workspace"):
        standard_tools().ask_about(order(workspace, "command", {"argv": ["ls"], "cwd": "away"}))


# --- files


def test_files_are_read_written_and_deleted(workspace: Path) -> None:
    tools = standard_tools()
    read = order(workspace, "read_file", {"path": "src/app.py"})
    assert classes(tools, read) == {"read"}
    assert run(tools, read).outputs["content"].data == b"tea = 4\n"
    write = order(workspace, "write_file", {"path": "src/app.py", "content": "tea = 5\n"})
    question = tools.ask_about(write)
    assert question.diff is not None
    assert "-tea = 4\n+tea = 5\n" in question.diff
    assert classes(tools, write) == {"write"}
    done = tools.run(write)
    assert json.loads(done.outputs["result"].data)["size"] == 8
    assert (workspace / "src" / "app.py").read_text() == "tea = 5\n"
    delete = order(workspace, "delete_file", {"path": "src/app.py"})
    assert classes(tools, delete) == {"delete"}
    assert run(tools, delete).exit_code == 0
    assert not (workspace / "src" / "app.py").exists()


def test_a_write_makes_only_the_change_that_was_shown(workspace: Path) -> None:
    tools = standard_tools()
    write = order(workspace, "write_file", {"path": "src/app.py", "content": "tea = 5\n"})
    tools.ask_about(write)
    (workspace / "src" / "app.py").write_text("tea = 9\n")
    result = tools.run(write)
    assert result.failure == "ERROR"
    assert (workspace / "src" / "app.py").read_text() == "tea = 9\n"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\\b", "a\nb"])
def test_a_path_outside_is_refused(workspace: Path, path: str) -> None:
    with pytest.raises(BadInput):
        standard_tools().ask_about(order(workspace, "read_file", {"path": path}))


def test_a_link_is_not_read(workspace: Path) -> None:
    (workspace / "passwords").symlink_to("/etc/passwd")
    assert run(standard_tools(), order(workspace, "read_file", {"path": "passwords"})).failure == "ERROR"


# --- functions


@aver.tool(effects=["read"])
def lookup(order: str) -> dict[str, Any]:
    return {"order": order, "tea": 4}


def test_a_function_is_judged_by_its_declaration(workspace: Path) -> None:
    tools = ToolBox(function_tools({"lookup": lookup, "other": lambda: None}))
    given = order(workspace, "lookup", {"order": "7"})
    question = tools.ask_about(given)
    assert (question.type, question.tool, question.declared) == ("tool_call", "lookup", ("read",))
    assert tools.ask_about(order(workspace, "other", {})).declared is None
    result = tools.run(given)
    assert json.loads(result.outputs["result"].data) == {"order": "7", "tea": 4}
    with pytest.raises(BadInput, match="order"):
        tools.ask_about(order(workspace, "lookup", {"number": 7}))


@pytest.mark.parametrize(
    ("value", "data", "media"),
    [
        (b"\xff", b"\xff", "application/octet-stream"),
        ("text", b"text", "text/plain; charset=utf-8"),
        (None, b"null", "application/json"),
        ([1, "a"], b'[1,"a"]', "application/json"),
        ({1, 2}, b'"{1, 2}"', "application/json"),
    ],
)
def test_the_value_of_a_function_becomes_an_output(workspace: Path, value: Any, data: bytes, media: str) -> None:
    result = run(ToolBox(function_tools({"f": lambda: value})), order(workspace, "f", {}))
    assert (result.outputs["result"].data, result.outputs["result"].media, result.exit_code) == (data, media, 0)


def test_a_function_that_fails_or_takes_too_long(workspace: Path) -> None:
    def wrong() -> None:
        raise ValueError("no tea")

    tools = ToolBox(function_tools({"wrong": wrong, "slow": lambda: time.sleep(600), "end": lambda: sys.exit(3)}))
    assert run(tools, order(workspace, "wrong", {})).words == "ValueError: no tea"
    assert run(tools, order(workspace, "end", {})).failure == "ERROR"
    slow = run(tools, order(workspace, "slow", {}, seconds=0.2))
    assert slow.failure == "TIMEOUT"
    assert "may still run" in slow.words


def test_a_coroutine_is_no_tool() -> None:
    async def later() -> None: ...

    with pytest.raises(BadInput, match="plain function"):
        function_tools({"later": later})


# --- acts


def test_an_act_goes_through_the_gateway(workspace: Path, tmp_path: Path) -> None:
    with (
        aver.open_ledger(tmp_path / "ledger.db") as ledger,
        aver.open_gateway(ledger, workspace=workspace, session="s") as gateway,
    ):
        tools = ToolBox(act_tools(gateway.act, ["WriteWorkspaceFile", "SendMessage"]))
        write = order(workspace, "act.WriteWorkspaceFile", {"relpath": "notes.txt", "content": "hello\n"})
        assert "write" in classes(tools, write)
        done = run(tools, write)
        assert (done.failure, (workspace / "notes.txt").read_text()) == ("", "hello\n")
        assert json.loads(done.outputs["envelope"].data)["reason_code"] == "ALLOW"
        send = order(workspace, "act.SendMessage", {"recipient": "eve@example.org", "text": "hi"})
        assert {"network", "egress"} <= classes(tools, send)
        refused = run(tools, send)
        assert refused.failure == "ERROR"
        assert refused.words.split(":")[0] != "ALLOW"


def test_an_act_that_no_table_knows() -> None:
    with pytest.raises(BadInput, match="not an intent"):
        act_tools(lambda document: document, ["Launch"])


# --- the box


def test_an_unknown_tool_is_named_with_those_that_are_there(workspace: Path) -> None:
    with pytest.raises(BadInput, match="there is no tool 'bash'") as caught:
        standard_tools().ask_about(order(workspace, "bash", {}))
    assert "command, delete_file, read_file, write_file" in caught.value.advice


def test_a_tool_that_raises_gives_a_failure(workspace: Path) -> None:
    class Broken:
        def ask_about(self, order: ToolOrder) -> Any:
            return None

        def run(self, order: ToolOrder) -> ToolResult:
            raise RuntimeError("x" * 5000)

    result = ToolBox({"broken": Broken()}).run(order(workspace, "broken", {}))
    assert result.failure == "ERROR"
    assert len(result.words) == 1000
