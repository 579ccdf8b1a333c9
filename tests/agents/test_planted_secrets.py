"""A secret in any text that Cursor or Cline writes, in a transcript or to a hook, is in no byte that Aver writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.agents.cline.tasks import ADAPTER as CLINE
from aver.agents.cursor.conversations import ADAPTER as CURSOR
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import Adapter
from aver.ingest.seal import seal_event
from support.agents import cline_tasks, cursor_stores
from support.agents.cursor_stores import CONVERSATION, Store, asked, called, line, said
from support.agents.follow import Follower
from support.hook_calls import fire
from support.planted_secrets import PASSWORD, SPELLINGS, assert_nothing_is_left, plant

pytestmark = pytest.mark.parametrize("spelling", SPELLINGS)

STRUCTURE = frozenset(
    {
        *("type", "say", "ask", "role", "id", "tool_use_id", "ts", "status", "tool", "toolName", "name", "tool_name"),
        *("bubbleId", "toolCallId", "createdAt", "composerId", "modelName", "workspaceUris", "session_id", "sessionId"),
        *("server_name", "serverName", "action", "timestamp", "startedAt", "source", "version"),
    }
)
"""Members whose text decides what a record is: ids, times, the names of tools."""


def seal_all(ledger: Ledger, adapter: Adapter, around: UserEnvironment) -> int:
    """Seal all that an adapter finds. Returns how many events there were."""
    count = 0
    for source in adapter.locate(around):
        for event in Follower(adapter, source).all():
            seal_event(ledger, source.tool, source.session, event)
            count += 1
    return count


# --- Cursor

CURSOR_BUBBLES = [
    asked("b1", "Fix the parser", context={"fileSelections": [{"uri": {"path": "/w/a.py"}}], "notepads": ["x"]}),
    said("b2", "Let me look.", thinking={"text": "I should read it first.", "signature": "x"}),
    called("b3", "run_terminal_command_v2", {"command": "ls", "cwd": "/w"}, {"output": "a", "exitCode": 0}),
    called("b4", "edit_file", {"relativeWorkspacePath": "a.py", "contents": "x = 1"}, {"diff": {"chunks": []}}),
    called("b5", "mcp_db_run", {"tools": [{"name": "run", "parameters": '{"sql": "x"}'}]}, {"result": "row"}),
    called("b6", "read_file", {"targetFile": "a.py"}, {"contents": "text"}),
    called("b7", "run_terminal_cmd", {"command": "false"}, "failed", status="error", call={"error": "no"}),
    called("b8", "some_new_tool", {"anything": ["a", {"b": "c"}]}, {"whatever": "d"}, call={"rawArgs": "raw"}),
    called("b9", "run_terminal_cmd", {"command": "x"}, status="cancelled", call={"userDecision": "rejected"}),
    said("b10", "Done.", unknownMember={"deep": ["text"]}),
]


def test_conversations_of_cursor(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted, around = SPELLINGS[spelling], cursor_stores.surroundings(tmp_path)
    store = Store(cursor_stores.database_of(around))
    store.conversation(*plant(CURSOR_BUBBLES, planted, keep=STRUCTURE), name=planted, createdOnBranch=planted)
    assert seal_all(ledger, CURSOR, around) >= len(CURSOR_BUBBLES)
    store.close()
    assert_nothing_is_left(ledger)


def test_transcripts_of_cursor(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted, around = SPELLINGS[spelling], cursor_stores.surroundings(tmp_path)
    lines = [
        line("user", "<user_query>\nFix it\n</user_query>"),
        line("assistant", "Let me look.", {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}),
        line("assistant", {"type": "tool_use", "name": "Write", "input": {"path": "a.py", "contents": "x"}}),
        line("assistant", {"type": "something_new", "data": {"a": ["b"]}}),
        {"role": "new_role", "message": {"content": "text", "more": "x"}},
    ]
    cursor_stores.transcript(tmp_path, plant(lines, planted, keep=STRUCTURE))
    assert seal_all(ledger, CURSOR, around) >= 3
    assert_nothing_is_left(ledger)


@pytest.mark.sample(4)
def test_hooks_of_cursor(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted = SPELLINGS[spelling]
    base = {"conversation_id": CONVERSATION, "workspace_roots": [str(tmp_path)], "cursor_version": "2", "cwd": "/w"}
    call = {"tool_name": "Shell", "tool_input": {"command": "ls", "b": [{"c": "d"}]}, "tool_output": '{"output": "a"}'}
    for number, (event, payload) in enumerate(
        [
            ("sessionStart", {"composer_mode": "agent", "more": "x"}),
            ("beforeSubmitPrompt", {"prompt": "do", "attachments": [{"file_path": "a.py", "text": "x"}]}),
            ("beforeShellExecution", {"command": "ls"}),
            (
                "beforeMCPExecution",
                {"tool_name": "run", "tool_input": '{"sql": "x"}', "url": "https://h", "command": "c"},
            ),
            ("beforeReadFile", {"file_path": "a.py", "content": "x"}),
            ("preToolUse", {"tool_name": "Write", "tool_input": {"file_path": f"{tmp_path}/a.py", "content": "x"}}),
            ("postToolUse", call),
            ("postToolUse", {**call, "tool_name": "Write", "tool_input": {"file_path": "a.py", "content": "x"}}),
            ("postToolUse", {**call, "tool_name": "MCP:run", "tool_output": "answer"}),
            ("postToolUseFailure", {**call, "error_message": "no", "failure_type": "error"}),
            ("afterFileEdit", {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}]}),
            ("afterShellExecution", {"command": "ls", "output": "a"}),
            ("afterMCPExecution", {"tool_name": "run", "tool_input": '{"sql": "x"}', "result_json": '{"a": "b"}'}),
            ("afterAgentResponse", {"text": "done"}),
            ("afterAgentThought", {"text": "hm"}),
            ("subagentStop", {"subagent_type": "explore", "status": "completed", "result": "x"}),
            ("preCompact", {"trigger": "auto"}),
            ("somethingNew", {"a": {"b": ["c"]}}),
            ("stop", {"status": "completed"}),
            ("sessionEnd", {"reason": "completed"}),
        ]
    ):
        given = plant(payload, planted, keep={"tool_name", "status"})
        fire("cursor", event, {**base, "tool_use_id": f"t{number}", "hook_event_name": event, **given})
    assert len(list(ledger.read(f"cursor.{CONVERSATION}"))) >= 12
    assert_nothing_is_left(ledger)


# --- Cline


@pytest.mark.sample(4)
@pytest.mark.parametrize("native", [True, False], ids=["native", "xml"])
def test_tasks_of_cline(ledger: Ledger, tmp_path: Path, spelling: str, native: bool) -> None:
    planted, around = SPELLINGS[spelling], cline_tasks.surroundings(tmp_path)
    task = cline_tasks.Task(cline_tasks.tasks_of(around), native=native)
    cline_tasks.whole(task)
    task.show("say", "something_new", {"a": ["b"]}, more="x")
    task.show("say", "error", "it failed")
    task.ui = plant(task.ui, planted, keep=STRUCTURE)
    task.api = plant(task.api, planted, keep=STRUCTURE)
    task.metadata(files_in_context=[{"path": planted}])
    task.write()
    assert seal_all(ledger, CLINE, around) >= 10
    assert_nothing_is_left(ledger)


def test_sessions_of_cline(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted, name = SPELLINGS[spelling], "1785320464923_k3x9a"
    directory = tmp_path / ".cline" / "data" / "sessions" / name
    directory.mkdir(parents=True)
    clock = 1785320464923
    messages: list[dict[str, Any]] = []

    def message(role: str, *blocks: dict[str, Any]) -> None:
        own = {"id": f"m{len(messages)}", "role": role, "content": list(blocks), "ts": clock + 500 * len(messages)}
        messages.append({**own, "modelInfo": {"id": "some-model", "provider": "x"}})

    message("user", {"type": "text", "text": '<user_input mode="act">Fix it</user_input>'})
    message("assistant", {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Let me look."})
    calls = [
        ("run_commands", {"commands": ["ls"]}, [{"query": "ls", "result": "a", "success": True}]),
        ("run_commands", {"commands": ["ls"]}, [{"query": "ls", "result": "", "error": "no", "success": False}]),
        ("editor", {"path": "a.py", "old_text": "a", "new_text": "b"}, "done"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}, "done"),
        ("db__run", {"sql": "x", "deep": [{"a": "b"}]}, [{"type": "text", "text": "row"}]),
        ("something_new", {"a": "b"}, {"c": "d"}),
    ]
    for number, (tool, arguments, result) in enumerate(calls):
        call = f"toolu_{number}"
        message("assistant", {"type": "tool_use", "id": call, "name": tool, "input": arguments})
        message("user", {"type": "tool_result", "tool_use_id": call, "name": tool, "content": result})
    message("assistant", {"type": "new_block", "data": "x"})
    manifest = {"version": 1, "session_id": name, "started_at": "2026-07-29T10:21:04.923Z", "status": "completed"}
    manifest |= {"cwd": f"/w/{planted}", "metadata": {"title": planted}, "prompt": planted, "source": "cli"}
    whole = {"version": 1, "sessionId": name, "messages": plant(messages, planted, keep=STRUCTURE)}
    (directory / f"{name}.messages.json").write_text(json.dumps({**whole, "system_prompt": planted}))
    (directory / f"{name}.json").write_text(json.dumps(manifest))
    assert seal_all(ledger, CLINE, UserEnvironment(tmp_path, {})) >= len(calls)
    assert_nothing_is_left(ledger)


@pytest.mark.sample(4)
def test_hooks_of_cline(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted = SPELLINGS[spelling]
    base = {"clineVersion": "3.82.0", "taskId": "17", "workspaceRoots": [str(tmp_path)], "timestamp": "1763290001234"}
    about = {"toolName": "execute_command", "parameters": {"command": "ls", "password": PASSWORD}, "result": "a"}
    edit = {"path": "a.py", "content": "x = 1\n"}
    for event, payload in [
        ("TaskStart", {"taskStart": {"taskMetadata": {"initialTask": "Fix it"}}}),
        ("UserPromptSubmit", {"userPromptSubmit": {"prompt": "Fix it", "attachments": ["a.py"]}}),
        ("PreToolUse", {"preToolUse": about}),
        ("PostToolUse", {"postToolUse": {**about, "success": True}}),
        ("PostToolUse", {"postToolUse": {**about, "success": False, "error": "no"}}),
        ("PreToolUse", {"preToolUse": {"toolName": "write_to_file", "parameters": edit}}),
        ("PostToolUse", {"postToolUse": {"toolName": "new_tool", "parameters": {"a": {"b": ["c"]}}, "result": "x"}}),
        ("PreToolUse", {"tool_call": {"id": "t1", "name": "db__run", "input": {"sql": "x"}}}),
        ("PostToolUse", {"tool_result": {"id": "t1", "name": "db__run", "input": {"sql": "x"}, "output": "row"}}),
        ("PostToolUse", {"tool_result": {"id": "t2", "name": "x", "input": {"a": "b"}, "output": "y", "error": "no"}}),
        ("TaskError", {"error": {"message": "it failed", "stack": "at x"}}),
        ("PreCompact", {"preCompact": {"reason": "long"}}),
        ("SomethingNew", {"somethingNew": {"a": ["b"]}}),
        ("TaskComplete", {"taskComplete": {"result": "done", "taskMetadata": {"x": "y"}}}),
    ]:
        fire("cline", event, {**base, "hookName": event, **plant(payload, planted, keep={"toolName", "id", "name"})})
    assert len(list(ledger.read("cline.17"))) >= 10
    assert_nothing_is_left(ledger)
