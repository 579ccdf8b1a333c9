"""The demo's coding sessions: one transcript per tool, in the form and at the place in which the tool would write it.

All four agents mend the same rounding of a sum: they look, edit, and run the tests.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from aver.files.user_dirs import UserEnvironment, user_data_dir

__all__ = ["CLAUDE_SESSION", "write_sessions"]

CLAUDE_SESSION = "5d2e4c1a-0f3b-4b7e-9c55-2f1f6a9f0d11"
_CODEX_SESSION = "019dd8e4-15dd-7143-95e8-219014341717"
_CURSOR_SESSION = "7b0e9c52-6c1e-4a57-8f0a-3f0a3d1c9e20"
_CLINE_SESSION = "1780218000000"

_PROMPT = "Make totals round half up, and run the tests"
_FILE = "/work/shop/totals.py"
_OLD, _NEW = "    return round(total, 2)", "    return half_up(total)"
_TEST_OUTPUT = "3 passed in 0.02s"
_TIME_PREFIX = "2026-05-31T09:0"

Json = Mapping[str, Any]


def write_sessions(around: UserEnvironment) -> Path:
    """Write all four into a home. Returns the transcript of Claude Code."""
    transcript = around.home / ".claude" / "projects" / "-work-shop" / f"{CLAUDE_SESSION}.jsonl"
    _write_lines(transcript, _claude_code_lines())
    day = around.home / ".codex" / "sessions" / "2026" / "05" / "31"
    _write_lines(day / f"rollout-2026-05-31T09-00-00-{_CODEX_SESSION}.jsonl", _codex_lines())
    _write_cursor(user_data_dir(around, "Cursor") / "globalStorage" / "state.vscdb")
    _write_cline(user_data_dir(around, "Code") / "globalStorage" / "saoudrizwan.claude-dev" / "tasks" / _CLINE_SESSION)
    return transcript


def _claude_code_lines() -> Iterable[Json]:
    model = {"role": "assistant", "model": "claude-opus-4-8", "stop_reason": "tool_use"}
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 812, "cache_read_input_tokens": 20110}

    def line(number: int, role: str, message: Json, **more: Any) -> Json:
        known = {"sessionId": CLAUDE_SESSION, "cwd": "/work/shop", "gitBranch": "main", "version": "2.1.300"}
        before = None if number == 1 else f"r-{number - 1}"
        place = {"uuid": f"r-{number}", "parentUuid": before, "timestamp": f"{_TIME_PREFIX}0:0{number}.000Z"}
        return {"type": role, **place, **known, "isSidechain": False, "message": message, **more}

    def calls(number: int, message: str, call: str, tool: str, **given: Any) -> Json:
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        spent = {**usage, "output_tokens": 40 * number}
        return line(number, "assistant", {**model, "id": message, "usage": spent, "content": [block]})

    def result(number: int, call: str, text: str, told: Json) -> Json:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return line(number, "user", {"role": "user", "content": [block]}, toolUseResult=told)

    hunk = {"oldStart": 7, "oldLines": 1, "newStart": 7, "newLines": 1, "lines": [f"-{_OLD}", f"+{_NEW}"]}
    yield {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": CLAUDE_SESSION}
    yield line(1, "user", {"role": "user", "content": _PROMPT})
    yield calls(2, "msg_1", "toolu_1", "Edit", file_path=_FILE, old_string=_OLD, new_string=_NEW)
    yield result(3, "toolu_1", "The file was updated.", {"filePath": _FILE, "structuredPatch": [hunk]})
    yield calls(4, "msg_2", "toolu_2", "Bash", command="pytest -q", description="run the tests")
    yield result(5, "toolu_2", _TEST_OUTPUT, {"stdout": _TEST_OUTPUT, "stderr": "", "interrupted": False})
    said = [{"type": "text", "text": "Totals round half up now; the tests pass."}]
    ended = {**model, "id": "msg_3", "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 18}}
    yield line(6, "assistant", {**ended, "content": said})


def _codex_lines() -> Iterable[Json]:
    patch = f"*** Begin Patch\n*** Update File: totals.py\n@@ def total(prices):\n-{_OLD}\n+{_NEW}\n*** End Patch\n"
    git = {"commit_hash": "9f1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c", "branch": "main"}
    ran = f"Wall time: 0.4 seconds\nProcess exited with code 0\nOutput:\n{_TEST_OUTPUT}"
    patched = {"output": "Success. Updated the following files:\nM totals.py\n", "metadata": {"exit_code": 0}}
    command = json.dumps({"cmd": "pytest -q", "workdir": "/work/shop"})
    told: list[tuple[str, Json]] = [
        ("session_meta", {"id": _CODEX_SESSION, "cwd": "/work/shop", "cli_version": "0.166.0", "git": git}),
        ("turn_context", {"cwd": "/work/shop", "approval_policy": "on-request", "model": "gpt-5.5", "effort": "high"}),
        ("event_msg", {"type": "user_message", "message": _PROMPT}),
        ("response_item", {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": patch}),
        ("response_item", {"type": "custom_tool_call_output", "call_id": "call_1", "output": json.dumps(patched)}),
        ("response_item", {"type": "function_call", "call_id": "call_2", "name": "exec_command", "arguments": command}),
        ("response_item", {"type": "function_call_output", "call_id": "call_2", "output": ran}),
        ("event_msg", {"type": "agent_message", "message": "Totals round half up now."}),
        ("event_msg", {"type": "task_complete", "last_agent_message": "Totals round half up now."}),
    ]
    for second, (sort, payload) in enumerate(told):
        yield {"timestamp": f"{_TIME_PREFIX}1:0{second}.000Z", "type": sort, "payload": payload}


def _write_cursor(path: Path) -> None:
    def call(bubble: str, name: str, given: Json, result: Json) -> Json:
        told = {"toolCallId": f"toolu_{bubble}", "name": name, "status": "completed"}
        texts = {"rawArgs": json.dumps(given), "params": json.dumps(given), "result": json.dumps(result)}
        return {
            "type": 2,
            "bubbleId": bubble,
            "text": "",
            "createdAt": f"{_TIME_PREFIX}2:01.000Z",
            "toolFormerData": told | texts,
        }

    edit = {"target_file": _FILE, "old_string": _OLD, "new_string": _NEW}
    bubbles: list[Json] = [
        {"type": 1, "bubbleId": "b1", "text": _PROMPT, "createdAt": f"{_TIME_PREFIX}2:00.000Z"},
        call("b2", "search_replace", edit, {"success": True}),
        call("b3", "run_terminal_cmd", {"command": "pytest -q"}, {"output": _TEST_OUTPUT, "exitCode": 0}),
        {"type": 2, "bubbleId": "b4", "text": "Totals round half up now.", "createdAt": f"{_TIME_PREFIX}2:02.000Z"},
    ]
    headers = [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in bubbles]
    composer = {
        "composerId": _CURSOR_SESSION,
        "name": "Round half up",
        "status": "completed",
        "createdAt": 1780218120000,
        "modelConfig": {"modelName": "claude-4.5-opus"},
        "fullConversationHeadersOnly": headers,
    }
    values = {f"composerData:{_CURSOR_SESSION}": composer}
    values |= {f"bubbleId:{_CURSOR_SESSION}:{one['bubbleId']}": dict(one) for one in bubbles}
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        store.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        store.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)


def _write_cline(directory: Path) -> None:
    start = int(_CLINE_SESSION)
    change = f"------- SEARCH\n{_OLD}\n=======\n{_NEW}\n+++++++ REPLACE"
    edit = {"tool": "editedExistingFile", "path": "totals.py", "content": change}
    request = {"request": "...", "tokensIn": 1200, "tokensOut": 340, "cacheReads": 10, "cost": 0.0042}
    shown: list[Json] = [
        {"type": "say", "say": "task", "text": _PROMPT},
        {"type": "say", "say": "api_req_started", "text": json.dumps(request)},
        {"type": "say", "say": "tool", "text": json.dumps(edit), "conversationHistoryIndex": 0},
        {"type": "say", "say": "command", "text": "pytest -q", "conversationHistoryIndex": 2},
        {"type": "say", "say": "command_output", "text": _TEST_OUTPUT},
        {"type": "say", "say": "completion_result", "text": "Totals round half up now."},
    ]

    def use(call: str, name: str, **given: Any) -> Json:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": name, "input": given}]}

    def result(call: str, text: str) -> Json:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}

    history: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": f"<task>\n{_PROMPT}\n</task>"}]},
        use("toolu_c1", "replace_in_file", path="totals.py", diff=change),
        result("toolu_c1", "The content was successfully saved to totals.py."),
        use("toolu_c2", "execute_command", command="pytest -q", requires_approval=False),
        result("toolu_c2", f"Command executed.\nOutput:\n{_TEST_OUTPUT}"),
    ]
    directory.mkdir(parents=True)
    timed = [{"ts": start + 1000 * second, **one} for second, one in enumerate(shown)]
    (directory / "ui_messages.json").write_text(json.dumps(timed), "utf-8")
    (directory / "api_conversation_history.json").write_text(json.dumps(history), "utf-8")


def _write_lines(path: Path, records: Iterable[Json]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
