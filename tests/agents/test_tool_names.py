"""The built-in tools of Claude Code and Codex are known by their names, each with the effects that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.agent_session import AgentSession

PASSING: list[tuple[str, dict[str, Any]]] = [
    ("Skill", {"skill": "review", "args": "the last commit"}),
    ("Skill", {"skill": "apps/web:deploy"}),
    ("SlashCommand", {"command": "/review src/app.py"}),
    ("LSP", {"operation": "hover", "filePath": "src/app.py", "line": 1, "character": 2}),
    ("LSP", {"operation": "workspaceSymbol"}),
    ("ListAgents", {}),
    ("ReportFindings", {"level": "info", "findings": [{"file": "src/app.py"}]}),
    ("ScheduleWakeup", {"delaySeconds": 60, "reason": "wait", "prompt": "/loop"}),
    ("CronList", {}),
    ("TaskCreate", {"subject": "x", "description": "y"}),
    ("ToolSearch", {"query": "select:WebFetch", "max_results": 5}),
    ("EnterWorktree", {"name": "fix"}),
    ("ListMcpResourcesTool", {"server": "docs"}),
    ("ReadMcpResourceTool", {"server": "docs", "uri": "file:///work/shop/a.md"}),
    ("Monitor", {"command": "tail -f build.log", "description": "wait", "timeout_ms": 1000}),
    ("spawn_agent", {"message": "x"}),
    ("wait_agent", {"ids": ["a"]}),
    ("request_user_input", {"questions": []}),
    ("list_mcp_resources", {}),
]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("LSP", {"operation": "hover", "filePath": "../.ssh/id_rsa"}),
    ("LSP", {"operation": "hover", "filePath": ".env"}),
    ("ReadMcpResourceTool", {"server": "docs", "uri": "file:///work/.env"}),
    ("ReadMcpResourceTool", {"server": "db", "uri": "postgres://db.example/users"}),
    ("Monitor", {"command": "rm -r build", "description": "wait", "timeout_ms": 1000}),
    ("Monitor", {"ws": {"url": "wss://example.org"}, "description": "wait", "timeout_ms": 1000}),
    ("PowerShell", {"command": "Get-ChildItem"}),
    ("Workflow", {"script": "export const meta = {}"}),
    ("Workflow", {"scriptPath": "flow.js"}),
    ("SendMessage", {"to": "other", "message": "x"}),
    ("SendFeedback", {"type": "bug", "title": "x", "details": "y"}),
    ("PushNotification", {"message": "done"}),
    ("RemoteTrigger", {"action": "create", "body": {}}),
    ("Artifact", {"file_path": "page.html"}),
    ("Projects", {"method": "project_write", "path": "a", "local_path": "src/app.py"}),
    ("CronCreate", {"cron": "* * * * *", "prompt": "x", "durable": True}),
    ("ExitWorktree", {"action": "remove", "discard_changes": True}),
    ("Config", {"setting": "model", "value": "x"}),
    ("WebBrowser", {"url": "https://example.org"}),
    ("write_stdin", {"session_id": 1, "chars": "rm -rf /\n"}),
    ("js_repl", {"code": "1"}),
    ("request_permissions", {"permissions": {}}),
    ("create_goal", {"objective": "x"}),
    ("Skil", {"skill": "x"}),
]


@pytest.fixture
def agent(tmp_path: Path) -> AgentSession:
    workspace = tmp_path / "shop"
    (workspace / "src").mkdir(parents=True)
    return AgentSession(workspace)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("tool", "arguments"), PASSING)
def test_a_tool_that_reads_or_arranges_passes(agent: AgentSession, tool: str, arguments: dict[str, Any]) -> None:
    here = {key: value.replace("/work/shop", str(agent.workspace)) for key, value in arguments.items() if key == "uri"}
    assert agent.ask(tool, **{**arguments, **here}) == "pass", agent.reason


@pytest.mark.sample(4)
@pytest.mark.parametrize(("tool", "arguments"), ASKED)
def test_a_tool_that_reaches_further_is_asked_about(agent: AgentSession, tool: str, arguments: dict[str, Any]) -> None:
    assert agent.ask(tool, **arguments) == "ask"
    is_unknown = tool in ("create_goal", "Skil")
    assert ("unknown tool" in agent.reason) == is_unknown


# --- what a newcomer reads


@pytest.mark.parametrize("name", ["notes.md", "x.py", "sub/dir/out.txt", "x"])
def test_a_file_in_a_temporary_directory_is_written_without_a_question(agent: AgentSession, name: str) -> None:
    place = Path("/tmp/aver-test-that-is-not-there")
    assert agent.ask("Write", file_path=str(place / name), content="x = 1\n") == "pass", agent.reason
    assert agent.bash("pytest") == "pass"


@pytest.mark.parametrize("place", ["/opt/notes.md", "/etc/hosts", "/srv/other/a.py", "/home/other/x.py"])
def test_elsewhere_a_file_is_asked_about_for_the_right_reason(agent: AgentSession, place: str) -> None:
    assert agent.ask("Write", file_path=place, content="x\n") == "ask"
    assert "the diff does not show" not in agent.reason


def test_what_is_written_into_a_temporary_directory_is_looked_into_before_it_runs(agent: AgentSession) -> None:
    place = agent.workspace.parent / "tmp-script.py"
    assert agent.ask("Write", file_path=str(place), content="import subprocess\n") == "pass", agent.reason
    place.write_text("import subprocess\n")
    assert agent.bash(f"python {place}") == "ask"


@pytest.mark.parametrize("name", ["data.json", "Makefile", "settings.toml", "notes.bin"])
def test_no_reason_counts_lines_that_are_not_there(agent: AgentSession, name: str) -> None:
    assert agent.write(name, "{}\n") == "ask"
    assert "0 lines" not in agent.reason
    assert "0 source files" not in agent.reason
