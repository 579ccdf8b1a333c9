"""The demo's session as Claude Code would have written it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aver.agents.demo_session import FILE, NEW, OLD, PROMPT, TEST_OUTPUT, TIME_PREFIX, Json, write_lines
from aver.files.user_dirs import UserEnvironment

SESSION = "5d2e4c1a-0f3b-4b7e-9c55-2f1f6a9f0d11"


def write_demo(around: UserEnvironment) -> Path:
    """Write the transcript, and return its path."""
    path = around.home / ".claude" / "projects" / "-work-shop" / f"{SESSION}.jsonl"
    write_lines(path, _transcript_lines())
    return path


def _transcript_lines() -> Iterable[Json]:
    model = {"role": "assistant", "model": "claude-opus-4-8", "stop_reason": "tool_use"}
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 812, "cache_read_input_tokens": 20110}

    def line(number: int, role: str, message: Json, **more: Any) -> Json:
        known = {"sessionId": SESSION, "cwd": "/work/shop", "gitBranch": "main", "version": "2.1.300"}
        before = None if number == 1 else f"r-{number - 1}"
        place = {"uuid": f"r-{number}", "parentUuid": before, "timestamp": f"{TIME_PREFIX}0:0{number}.000Z"}
        return {"type": role, **place, **known, "isSidechain": False, "message": message, **more}

    def calls(number: int, message: str, call: str, tool: str, **given: Any) -> Json:
        block = {"type": "tool_use", "id": call, "name": tool, "input": given}
        spent = {**usage, "output_tokens": 40 * number}
        return line(number, "assistant", {**model, "id": message, "usage": spent, "content": [block]})

    def result(number: int, call: str, text: str, told: Json) -> Json:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return line(number, "user", {"role": "user", "content": [block]}, toolUseResult=told)

    hunk = {"oldStart": 7, "oldLines": 1, "newStart": 7, "newLines": 1, "lines": [f"-{OLD}", f"+{NEW}"]}
    yield {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": SESSION}
    yield line(1, "user", {"role": "user", "content": PROMPT})
    yield calls(2, "msg_1", "toolu_1", "Edit", file_path=FILE, old_string=OLD, new_string=NEW)
    yield result(3, "toolu_1", "The file was updated.", {"filePath": FILE, "structuredPatch": [hunk]})
    yield calls(4, "msg_2", "toolu_2", "Bash", command="pytest -q", description="run the tests")
    yield result(5, "toolu_2", TEST_OUTPUT, {"stdout": TEST_OUTPUT, "stderr": "", "interrupted": False})
    said = [{"type": "text", "text": "Totals round half up now; the tests pass."}]
    ended = {**model, "id": "msg_3", "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 18}}
    yield line(6, "assistant", {**ended, "content": said})
