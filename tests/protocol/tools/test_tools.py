"""Each tool: what the gate is asked, what it gives, and how it fails."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.errors import BadInput
from aver.gate.action import Action, Facts
from aver.gate.effects.effects import find_effects
from aver.protocol.runner import CallDescription, ToolFailure, ToolResult
from aver.protocol.tools.act_tools import act_tools
from aver.protocol.tools.function_tools import function_tools
from aver.protocol.tools.standard_tools import protocol_tools
from aver.protocol.tools.tool import ToolBox, ToolOrder

NOW = Facts(now="2026-01-05T09:00:00+00:00")
TEXT = "text/plain; charset=utf-8"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("tea = 4\n")
    return tmp_path


@pytest.fixture
def tools(workspace: Path) -> ToolBox:
    return protocol_tools(str(workspace))


def run(
    tools: ToolBox, tool: str, arguments: dict[str, Any], *, seconds: float = 60.0, output_max: int = 1 << 20
) -> ToolResult | ToolFailure:
    tools.describe(tool, arguments)
    return tools.run(tool, arguments, seconds=seconds, output_max=output_max)


def succeed(tools: ToolBox, tool: str, arguments: dict[str, Any], **limits: Any) -> ToolResult:
    result = run(tools, tool, arguments, **limits)
    assert isinstance(result, ToolResult), result
    return result


def fail(tools: ToolBox, tool: str, arguments: dict[str, Any], **limits: Any) -> ToolFailure:
    result = run(tools, tool, arguments, **limits)
    assert isinstance(result, ToolFailure), result
    return result


def classes(tools: ToolBox, workspace: Path, tool: str, arguments: dict[str, Any]) -> set[str]:
    """The effects that the gate finds."""
    found = tools.describe(tool, arguments)
    facts = NOW if found.declared is None else replace(NOW, declared={"effects": list(found.declared), "by": "code"})
    action = Action(
        type=found.type,
        tool=found.tool,
        arguments=dict(found.arguments),
        files=found.files,
        diff=found.diff,
        workspace=str(workspace),
    )
    return set(find_effects(action, facts).classes)


# --- commands


def test_the_gate_judges_the_words_of_a_command(tools: ToolBox, workspace: Path) -> None:
    assert classes(tools, workspace, "command", {"argv": ["pytest", "-q"]}) == {"build"}
    assert classes(tools, workspace, "command", {"argv": ["cat", "app.py"], "cwd": "src"}) == {"read"}
    assert "delete" in classes(tools, workspace, "command", {"argv": ["rm", "-r", "src"]})
    assert "network" in classes(tools, workspace, "command", {"argv": ["curl", "https://example.org"]})


def test_a_command_gives_its_outputs_and_collects_files(tools: ToolBox, workspace: Path) -> None:
    code = "open('report.xml', 'w').write('<a/>'); print('done'); raise SystemExit(2)"
    argv = [sys.executable, "-c", code]
    collect = {"report": "report.xml", "none": "none.xml"}
    result = succeed(tools, "command", {"argv": argv, "cwd": "src", "collect": collect})
    assert (result.exit_code, result.cut) == (2, ())
    assert result.outputs == {
        "stdout": (b"done\n", TEXT),
        "stderr": (b"", TEXT),
        "report": (b"<a/>", "application/xml"),
    }
    assert sorted(path.name for path in (workspace / "src").iterdir()) == ["app.py"]  # The report is gone again.


def test_a_file_that_was_there_before_is_collected_and_stays(tools: ToolBox, workspace: Path) -> None:
    (workspace / "report.xml").write_text("<old/>")
    argv = [sys.executable, "-c", "open('report.xml', 'w').write('<new/>')"]
    result = succeed(tools, "command", {"argv": argv, "collect": {"report": "report.xml"}})
    assert result.outputs["report"][0] == b"<new/>"
    assert (workspace / "report.xml").exists()


def test_an_old_report_does_not_stand_for_a_run_that_wrote_none(tools: ToolBox, workspace: Path) -> None:
    (workspace / "report.xml").write_text("<old/>")
    os.utime(workspace / "report.xml", (time.time() - 60, time.time() - 60))
    result = succeed(tools, "command", {"argv": [sys.executable, "-c", ""], "collect": {"report": "report.xml"}})
    assert set(result.outputs) == {"stdout", "stderr"}


def test_a_report_of_a_moment_ago_does_not_stand_for_a_run_that_wrote_none(tools: ToolBox, workspace: Path) -> None:
    (workspace / "report.xml").write_text("<forged/>")
    result = succeed(tools, "command", {"argv": [sys.executable, "-c", ""], "collect": {"report": "report.xml"}})
    assert set(result.outputs) == {"stdout", "stderr"}


def test_a_collected_file_is_not_behind_a_link(tools: ToolBox, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "build").symlink_to(outside)
    code = f"open({str(outside / 'diary.txt')!r}, 'w').write('mine')"
    argv = [sys.executable, "-c", code]
    result = succeed(tools, "command", {"argv": argv, "collect": {"report": "build/diary.txt"}})
    assert set(result.outputs) == {"stdout", "stderr"}
    assert (outside / "diary.txt").exists()


@pytest.mark.parametrize("path", [".env", "src/id_rsa", ".git/config"])
def test_a_guarded_file_is_not_collected(tools: ToolBox, path: str) -> None:
    with pytest.raises(BadInput, match="guards"):
        tools.describe("command", {"argv": ["touch", path], "collect": {"report": path}})


def test_a_collected_link_is_not_followed(tools: ToolBox) -> None:
    argv = [sys.executable, "-c", "import os; os.symlink('/etc/passwd', 'report.xml')"]
    result = succeed(tools, "command", {"argv": argv, "collect": {"report": "report.xml"}})
    assert set(result.outputs) == {"stdout", "stderr"}


def test_a_collected_file_is_cut(tools: ToolBox) -> None:
    argv = [sys.executable, "-c", "open('log.txt', 'w').write('x' * 5000)"]
    result = succeed(tools, "command", {"argv": argv, "collect": {"log": "log.txt"}}, output_max=100)
    assert (len(result.outputs["log"][0]), result.cut) == (100, ("log",))


@pytest.mark.more
def test_a_command_that_takes_too_long(tools: ToolBox) -> None:
    argv = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"]
    failure = fail(tools, "command", {"argv": argv}, seconds=1.0)
    assert (failure.code, failure.outputs["stdout"][0]) == ("TIMEOUT", b"begun\n")
    assert "1 seconds" in failure.words


def test_a_flood_is_an_error_and_its_beginning_is_kept(tools: ToolBox) -> None:
    argv = [sys.executable, "-c", "while True: print('x' * 1000)"]
    failure = fail(tools, "command", {"argv": argv}, output_max=100)
    assert (failure.code, failure.cut, len(failure.outputs["stdout"][0])) == ("ERROR", ("stdout",), 100)


def test_a_program_that_is_not_there(tools: ToolBox) -> None:
    failure = fail(tools, "command", {"argv": ["no-such-program"]})
    assert failure.code == "ERROR"
    assert "cannot be started" in failure.words


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
def test_a_wrong_command_is_refused_before_anybody_decides(tools: ToolBox, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        tools.describe("command", arguments)
    assert isinstance(tools.run("command", arguments, seconds=1, output_max=1), ToolFailure)


def test_a_link_out_of_the_workspace_is_no_place_to_run(tools: ToolBox, workspace: Path) -> None:
    (workspace / "away").symlink_to("/etc")
    with pytest.raises(BadInput, match="workspace"):
        tools.describe("command", {"argv": ["ls"], "cwd": "away"})


# --- files


def test_files_are_read_written_and_deleted(tools: ToolBox, workspace: Path) -> None:
    file = {"path": "src/app.py"}
    assert classes(tools, workspace, "read_file", file) == {"read"}
    assert succeed(tools, "read_file", file).outputs == {"content": (b"tea = 4\n", TEXT)}
    write = {**file, "content": "tea = 5\n"}
    assert "-tea = 4\n+tea = 5\n" in (tools.describe("write_file", write).diff or "")
    assert classes(tools, workspace, "write_file", write) == {"write"}
    assert json.loads(succeed(tools, "write_file", write).outputs["result"][0])["size"] == 8
    assert (workspace / "src" / "app.py").read_text() == "tea = 5\n"
    assert classes(tools, workspace, "delete_file", file) == {"delete"}
    assert succeed(tools, "delete_file", file).exit_code == 0
    assert not (workspace / "src" / "app.py").exists()
    assert fail(tools, "read_file", file).code == "ERROR"


def test_a_write_makes_only_the_change_that_was_shown(tools: ToolBox, workspace: Path) -> None:
    write = {"path": "src/app.py", "content": "tea = 5\n"}
    tools.describe("write_file", write)
    (workspace / "src" / "app.py").write_text("tea = 9\n")
    assert isinstance(tools.run("write_file", write, seconds=60, output_max=1000), ToolFailure)
    assert (workspace / "src" / "app.py").read_text() == "tea = 9\n"


def test_a_write_that_nobody_asked_about_is_not_made(tools: ToolBox, workspace: Path) -> None:
    write = {"path": "src/app.py", "content": "tea = 5\n"}
    assert isinstance(tools.run("write_file", write, seconds=60, output_max=1000), ToolFailure)
    assert (workspace / "src" / "app.py").read_text() == "tea = 4\n"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\\b", "a\nb"])
def test_a_path_outside_is_refused(tools: ToolBox, path: str) -> None:
    with pytest.raises(BadInput):
        tools.describe("read_file", {"path": path})


def test_a_link_is_not_read(tools: ToolBox, workspace: Path) -> None:
    (workspace / "passwords").symlink_to("/etc/passwd")
    assert fail(tools, "read_file", {"path": "passwords"}).code == "ERROR"


# --- functions


@aver.tool(effects=["read"])
def lookup(order: str) -> dict[str, Any]:
    return {"order": order, "tea": 4}


def test_a_function_is_judged_by_its_declaration(workspace: Path) -> None:
    tools = ToolBox(str(workspace), function_tools({"lookup": lookup, "other": lambda: None}))
    found = tools.describe("lookup", {"order": "7"})
    assert (found.type, found.tool, found.declared) == ("tool_call", "lookup", ("read",))
    assert tools.describe("other", {}).declared is None
    assert json.loads(succeed(tools, "lookup", {"order": "7"}).outputs["result"][0]) == {"order": "7", "tea": 4}
    with pytest.raises(BadInput, match="order"):
        tools.describe("lookup", {"number": 7})


@pytest.mark.parametrize(
    ("value", "data", "media"),
    [
        (b"\xff", b"\xff", "application/octet-stream"),
        ("text", b"text", TEXT),
        (None, b"null", "application/json"),
        ([1, "a"], b'[1,"a"]', "application/json"),
        ({1, 2}, b"{1, 2}", TEXT),
        ("a\ud800", b"a\\ud800", TEXT),
    ],
)
def test_the_value_of_a_function_becomes_an_output(workspace: Path, value: Any, data: bytes, media: str) -> None:
    result = succeed(ToolBox(str(workspace), function_tools({"f": lambda: value})), "f", {})
    assert (result.exit_code, result.outputs) == (0, {"result": (data, media)})


def test_a_function_that_fails_or_takes_too_long(workspace: Path) -> None:
    def wrong() -> None:
        raise ValueError("no tea")

    functions = {"wrong": wrong, "slow": lambda: time.sleep(600), "end": lambda: sys.exit(3)}
    tools = ToolBox(str(workspace), function_tools(functions))
    assert fail(tools, "wrong", {}).words == "ValueError: no tea"
    assert fail(tools, "end", {}).code == "ERROR"
    slow = fail(tools, "slow", {}, seconds=0.2)
    assert slow.code == "TIMEOUT"
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
        tools = ToolBox(str(workspace), act_tools(gateway.act, ["WriteWorkspaceFile", "SendMessage"]))
        write = {"relpath": "notes.txt", "content": "hello\n"}
        assert "write" in classes(tools, workspace, "act.WriteWorkspaceFile", write)
        done = succeed(tools, "act.WriteWorkspaceFile", write)
        assert (workspace / "notes.txt").read_text() == "hello\n"
        assert json.loads(done.outputs["envelope"][0])["reason_code"] == "ALLOW"
        send = {"recipient": "eve@example.org", "text": "hi"}
        assert {"network", "egress"} <= classes(tools, workspace, "act.SendMessage", send)
        refused = fail(tools, "act.SendMessage", send)
        assert refused.words.split(":")[0] == json.loads(refused.outputs["envelope"][0])["reason_code"] != "ALLOW"


def test_an_act_that_no_table_knows() -> None:
    with pytest.raises(BadInput, match="not an intent"):
        act_tools(lambda document: document, ["Launch"])


# --- the box


def test_an_unknown_tool_is_named_with_those_that_are_there(tools: ToolBox) -> None:
    with pytest.raises(BadInput, match="there is no tool 'bash'") as caught:
        tools.describe("bash", {})
    assert "command, delete_file, read_file, write_file" in caught.value.advice


def test_a_tool_that_raises_gives_a_failure(workspace: Path) -> None:
    class Broken:
        def describe(self, order: ToolOrder) -> CallDescription:
            return CallDescription(tool="broken")

        def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
            raise RuntimeError("x" * 5000)

    failure = fail(ToolBox(str(workspace), {"broken": Broken()}), "broken", {})
    assert (failure.code, len(failure.words)) == ("ERROR", 1000)
