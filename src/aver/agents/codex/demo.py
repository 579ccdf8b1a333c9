"""The demo's session as Codex would have written it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from aver.agents.demo_session import NEW, OLD, PROMPT, TEST_OUTPUT, TIME_PREFIX, Json, write_lines
from aver.files.user_dirs import UserEnvironment

SESSION = "019dd8e4-15dd-7143-95e8-219014341717"


def write_demo(around: UserEnvironment) -> Path:
    """Write the rollout, and return its path."""
    day = around.home / ".codex" / "sessions" / "2026" / "05" / "31"
    path = day / f"rollout-2026-05-31T09-00-00-{SESSION}.jsonl"
    write_lines(path, _rollout_lines())
    return path


def _rollout_lines() -> Iterable[Json]:
    patch = f"*** Begin Patch\n*** Update File: totals.py\n@@ def total(prices):\n-{OLD}\n+{NEW}\n*** End Patch\n"
    git = {"commit_hash": "9f1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c", "branch": "main"}
    ran = f"Wall time: 0.4 seconds\nProcess exited with code 0\nOutput:\n{TEST_OUTPUT}"
    patched = {"output": "Success. Updated the following files:\nM totals.py\n", "metadata": {"exit_code": 0}}
    command = json.dumps({"cmd": "pytest -q", "workdir": "/work/shop"})
    told: list[tuple[str, Json]] = [
        ("session_meta", {"id": SESSION, "cwd": "/work/shop", "cli_version": "0.166.0", "git": git}),
        ("turn_context", {"cwd": "/work/shop", "approval_policy": "on-request", "model": "gpt-5.5", "effort": "high"}),
        ("event_msg", {"type": "user_message", "message": PROMPT}),
        ("response_item", {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": patch}),
        ("response_item", {"type": "custom_tool_call_output", "call_id": "call_1", "output": json.dumps(patched)}),
        ("response_item", {"type": "function_call", "call_id": "call_2", "name": "exec_command", "arguments": command}),
        ("response_item", {"type": "function_call_output", "call_id": "call_2", "output": ran}),
        ("event_msg", {"type": "agent_message", "message": "Totals round half up now."}),
        ("event_msg", {"type": "task_complete", "last_agent_message": "Totals round half up now."}),
    ]
    for second, (sort, payload) in enumerate(told):
        yield {"timestamp": f"{TIME_PREFIX}1:0{second}.000Z", "type": sort, "payload": payload}
