"""Rollouts as Codex CLI writes them, in the forms of several versions.

early       up to 0.29: records without an envelope
shells      0.44: `shell` with outputs in JSON, messages repeated by events that come later
commands    0.128: `exec_command`, `apply_patch` as a custom tool, `patch_apply_end`, an MCP server, a search
items       0.166: `item_completed` before each output, `token_usage_record`
subagent    0.166: a forked subagent that begins with a copy of its parent's records
troubles    what goes wrong: refusals, an aborted turn, rolled back turns, compaction, sorts not known
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = "019dd8e4-15dd-7143-95e8-219014341717"
PARENT = "019de000-0000-7000-8000-000000000001"
AGENT = "019de100-0000-7000-8000-000000000002"
OLD_TURN = "019de050-0000-7000-8000-00000000000a"
NEW_TURN = "019de150-0000-7000-8000-00000000000b"
TURN = "019df7b2-0000-7000-8000-00000000000c"

PATCH = """*** Begin Patch
*** Update File: http.py
@@ def get():
-    return go()
+    return retry(go)
*** Add File: notes.txt
+one
+two
*** End Patch
"""


class Rollout:
    """Lines that grow, each some time after the one before."""

    def __init__(self, begun: str = "2026-05-30T12:00:00+00:00") -> None:
        self._at = datetime.fromisoformat(begun).astimezone(UTC)
        self.records: list[dict[str, Any]] = []

    def add(self, kind: str, after_ms: int = 100, **payload: Any) -> Rollout:
        self._at += timedelta(milliseconds=after_ms)
        stamp = self._at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._at.microsecond // 1000:03d}Z"
        self.records.append({"timestamp": stamp, "type": kind, "payload": payload})
        return self

    def item(self, kind: str, after_ms: int = 100, **payload: Any) -> Rollout:
        return self.add("response_item", after_ms, type=kind, **payload)

    def event(self, kind: str, after_ms: int = 100, **payload: Any) -> Rollout:
        return self.add("event_msg", after_ms, type=kind, **payload)

    def done(self, kind: str, identifier: str, thread: str = SESSION, **item: Any) -> Rollout:
        whole = {"type": kind, "id": identifier, **item}
        return self.event("item_completed", thread_id=thread, turn_id=TURN, item=whole)

    def meta(self, thread: str = SESSION, **more: Any) -> Rollout:
        return self.add(
            "session_meta",
            id=thread,
            timestamp="2026-05-30T12:00:00.090Z",
            cwd="/w/api",
            **{"originator": "codex-tui", "cli_version": "0.128.0", "source": "cli", "model_provider": "openai"} | more,
            base_instructions={"text": "You are a careful engineer."},
            git={"commit_hash": "9f1c", "branch": "main", "repository_url": "git@host:w/api.git"},
        )

    def turn(self, policy: Any = "on-request", turn: str = TURN, **more: Any) -> Rollout:
        return self.add(
            "turn_context",
            turn_id=turn,
            cwd="/w/api",
            timezone="Europe/Oslo",
            approval_policy=policy,
            sandbox_policy={"type": "workspace-write", "network_access": False},
            model="gpt-5.5",
            effort="high",
            summary="auto",
            **more,
        )

    def user(self, text: str) -> Rollout:
        return self.item("message", role="user", content=[{"type": "input_text", "text": text}])

    def says(self, text: str, **more: Any) -> Rollout:
        return self.item("message", role="assistant", content=[{"type": "output_text", "text": text}], **more)

    def asks(self, text: str) -> Rollout:
        return self.user(text).event("user_message", message=text, images=[])

    def calls(self, name: str, call_id: str, arguments: Any, **more: Any) -> Rollout:
        return self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id, **more)

    def output(self, call_id: str, output: Any, after_ms: int = 100) -> Rollout:
        return self.item("function_call_output", after_ms, call_id=call_id, output=output)

    def tokens(self, total: int, last: int) -> Rollout:
        def usage(count: int) -> dict[str, int]:
            return {
                "input_tokens": count,
                "cached_input_tokens": count // 2,
                "output_tokens": count // 10,
                "reasoning_output_tokens": count // 20,
                "total_tokens": count + count // 10,
            }

        info = {"total_token_usage": usage(total), "last_token_usage": usage(last), "model_context_window": 258400}
        return self.event("token_count", info=info, rate_limits={"primary": {"used_percent": 7.0}})

    def lines(self) -> list[bytes]:
        return [json.dumps(record).encode() for record in self.records]


def early() -> list[bytes]:
    """Records without an envelope, and no events at all."""
    records: list[dict[str, Any]] = [
        {
            "id": SESSION,
            "timestamp": "2025-05-30T12:00:00.000Z",
            "instructions": "Be brief.",
            "git": {"branch": "main"},
        },
        {"record_type": "state"},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n</environment_context>"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Use ls."}]},
        {"type": "local_shell_call", "call_id": "call_e", "status": "completed", "action": _exec("ls", "-a")},
        {"type": "function_call_output", "call_id": "call_e", "output": _metadata(".\n..\n", 0, 0.2)},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_f", "name": "apply_patch", "input": PATCH},
        {"type": "custom_tool_call_output", "call_id": "call_f", "output": _metadata("Success.", 0, 0.0)},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There are none."}]},
    ]
    return [json.dumps(record).encode() for record in records]


def shells() -> Rollout:
    """`shell` with outputs in JSON; messages repeated by events, before or after."""
    r = Rollout().meta(cli_version="0.44.0").user("<environment_context>…</environment_context>").asks("fix the tests")
    r.turn("never")
    r.event("agent_reasoning", text="**Run them**")
    r.item(
        "reasoning", summary=[{"type": "summary_text", "text": "**Run them**"}], content=None, encrypted_content="gAAA"
    )
    r.calls("shell", "call_1", {"command": ["bash", "-lc", "pytest -q"], "workdir": "/w/api"}).tokens(1000, 1000)
    r.output("call_1", _metadata("1 failed\n", 1, 2.5), after_ms=2600)
    r.calls("shell", "call_2", {"command": ["apply_patch", PATCH]}).tokens(2100, 1100).tokens(2100, 1100)
    r.output("call_2", _metadata("Success. Updated the following files:\nM http.py\nA notes.txt\n", 0, 0.0))
    r.event("agent_message", message="Fixed.").says("Fixed.").tokens(3300, 1200)
    return r


def commands() -> Rollout:
    """`exec_command`, `apply_patch` as a custom tool, events after outputs."""
    r = Rollout().meta().turn().user("# AGENTS.md instructions for /w/api\nBe kind.").asks("add a retry")
    r.item(
        "reasoning", summary=[{"type": "summary_text", "text": "**Plan**"}], content=None, encrypted_content="gAAAAB"
    )
    r.says("I run the tests first.", phase="commentary")
    r.event("agent_message", message="I run the tests first.", phase="commentary")
    r.calls("exec_command", "call_a1", {"cmd": "pytest -q", "workdir": "/w/api", "yield_time_ms": 1000})
    r.output("call_a1", _ran("1 failed\nProcess exited with code 0\n", 1, 0.42))
    r.event("exec_command_end", call_id="call_a1", command=["bash", "-lc", "pytest -q"], exit_code=1, duration="420ms")
    r.tokens(5100, 5100)
    r.item("custom_tool_call", status="completed", call_id="call_b2", name="apply_patch", input=PATCH)
    r.item("custom_tool_call_output", call_id="call_b2", output=_metadata("Success.\nM http.py\n", 0, 0.0))
    r.event(
        "patch_apply_end",
        call_id="call_b2",
        success=True,
        stdout="Success.\nM http.py\n",
        stderr="",
        status="completed",
        changes={
            "/w/api/http.py": {
                "type": "update",
                "unified_diff": "@@ -7,2 +7,2 @@\n def get():\n-    return go()\n+    return retry(go)\n",
                "move_path": None,
            },
            "/w/api/notes.txt": {"type": "add", "content": "one\ntwo\n"},
        },
    )
    r.tokens(9000, 3900)
    r.item("web_search_call", status="completed", action={"type": "search", "query": "retry backoff"})
    r.calls("mcp__issues__find", "call_m", {"text": "retry"})
    r.event(
        "mcp_tool_call_end",
        call_id="call_m",
        invocation={"server": "issues", "tool": "find", "arguments": {"text": "retry"}},
        duration={"secs": 1, "nanos": 500_000_000},
        result={"Ok": {"content": [{"type": "text", "text": "#6"}], "isError": False}},
    )
    r.output("call_m", "#6").tokens(13000, 4000)
    r.says("Done.", phase="final_answer").event("agent_message", message="Done.", phase="final_answer")
    r.tokens(18000, 5000)
    r.event("task_complete", turn_id=TURN, last_agent_message="Done.", duration_ms=24771)
    return r


def items() -> Rollout:
    """Each thing that was done is told by an item before its output; tokens by a record per answer."""
    r = Rollout().meta(cli_version="0.166.0", session_id=SESSION, history_mode="paginated")
    r.event("task_started", turn_id=TURN, model_context_window=258400)
    r.item(
        "message", id="msg_d", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>"}]
    )
    r.add("world_state", full=True, state={}).turn("never", approvals_reviewer="user")
    r.item(
        "message",
        id="msg_u",
        role="user",
        content=[{"type": "input_text", "text": "tidy up"}],
        internal_chat_message_metadata_passthrough={"turn_id": TURN, "content_item_kinds": ["user.text"]},
    )
    r.done("UserMessage", "item-u", content=[{"type": "text", "text": "tidy up"}])
    r.done("Reasoning", "rs_1", summary_text=["**Look**"], raw_content=["I look at the tree."])
    r.item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "**Look**"}], encrypted_content="gAAAAC")
    r.done("AgentMessage", "msg_a", content=[{"type": "Text", "text": "I look."}], phase="commentary")
    r.says("I look.", id="msg_a", phase="commentary")
    r.calls("exec_command", "call_x", {"cmd": "ls; exit 3"}, id="fc_1")
    r.add("token_usage_record", response_id="resp_1", usage={"input_tokens": 100, "output_tokens": 20})
    ran = {
        "command": ["/bin/bash", "-lc", "ls; exit 3"],
        "cwd": "file:///w/api",
        "duration": {"secs": 0, "nanos": 12_000_000},
    }
    r.done("CommandExecution", "call_x", **ran, status="failed", aggregated_output="a\n", exit_code=3)
    r.output("call_x", _ran("a\n", 3, 0.012)).tokens(100, 100)
    r.item("custom_tool_call", id="ct_1", call_id="call_p", name="apply_patch", input=PATCH)
    r.calls("exec_command", "call_bg", {"cmd": "make watch"}, id="fc_2")
    r.add("token_usage_record", response_id="resp_2", usage={"input_tokens": 200, "output_tokens": 30})
    moved = {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n-one\n+uno\n two\n", "move_path": "/w/api/b.txt"}
    gone = {"type": "delete", "content": "x\n"}
    r.done(
        "FileChange", "call_p", changes={"/w/api/a.txt": moved, "/w/api/c.txt": gone}, status="completed", stdout="ok"
    )
    r.item(
        "custom_tool_call_output", call_id="call_p", output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n"
    )
    r.output("call_bg", "Chunk ID: 01\nWall time: 0.25 seconds\nProcess running with session ID 7\nOutput:\n").tokens(
        300, 200
    )
    r.done("WebSearch", "ws_1", query="tidy", action={"type": "search", "query": "tidy"})
    r.item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "tidy"})
    r.calls("spawn_agent", "call_s", {"message": "look around", "agent_type": "explorer"}, namespace="multi_agent_v1")
    r.done("CollabAgentToolCall", "call_s", tool="spawn_agent", status="completed", receiver_thread_ids=[AGENT])
    r.output("call_s", json.dumps({"agent_id": AGENT, "nickname": "Newton"}))
    r.done("AgentMessage", "msg_z", content=[{"type": "Text", "text": "Tidy."}]).says("Tidy.", id="msg_z")
    r.add("token_usage_record", response_id="resp_4", usage={"input_tokens": 400, "output_tokens": 50}).tokens(700, 400)
    r.event("task_complete", turn_id=TURN, duration_ms=1046)
    r.done("CommandExecution", "call_bg", command=["/bin/bash", "-lc", "make watch"], status="failed", exit_code=-1)
    return r


def subagent() -> Rollout:
    """A subagent that was launched with its parent's history."""
    launched = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1, "agent_role": "explorer"}}}
    r = Rollout().meta(AGENT, session_id=PARENT, forked_from_id=PARENT, source=launched, agent_nickname="Newton")
    r.meta(PARENT).event("task_started", turn_id=OLD_TURN).turn("never", OLD_TURN).asks("the parent's prompt")
    r.calls("exec_command", "call_parent", {"cmd": "echo parent"}).output("call_parent", _ran("parent\n", 0, 0.1))
    r.event(
        "thread_settings_applied",
        thread_id=AGENT,
        thread_settings={"approval_policy": "never", "model": "gpt-5.5-mini"},
    )
    r.event("task_started", turn_id=NEW_TURN).turn("never", NEW_TURN).asks("look around")
    r.calls("exec_command", "call_sub", {"cmd": "echo sub"}).output("call_sub", _ran("sub\n", 0, 0.1)).tokens(10, 10)
    r.says("Nothing here.").tokens(30, 20)
    return r


def troubles() -> Rollout:
    """What goes wrong."""
    granular = {"granular": {"sandbox_approval": True, "rules": True, "mcp_elicitations": False}}
    r = Rollout().meta().turn(granular).asks("delete everything")
    r.calls("exec_command", "call_no", {"cmd": "rm -rf /w"}).output("call_no", "exec command rejected by user")
    r.item("custom_tool_call", call_id="call_np", name="apply_patch", input=PATCH)
    r.item("custom_tool_call_output", call_id="call_np", output="patch rejected by user")
    r.item("custom_tool_call", call_id="call_bad", name="apply_patch", input=PATCH)
    r.item(
        "custom_tool_call_output", call_id="call_bad", output="apply_patch verification failed: Failed to find lines"
    )
    r.calls("exec_command", "call_rule", {"cmd": "curl x"}).output("call_rule", "`curl x` rejected: blocked by policy")
    r.event("turn_aborted", turn_id=TURN, reason="interrupted").event("thread_rolled_back", num_turns=2)
    r.add("compacted", message="So far: nothing.", replacement_history=[{"type": "message", "text": "x" * 5000}])
    r.event("context_compacted").event("error", message="stream disconnected", codex_error_info="other")
    r.event("brand_new_event", value=1).item("brand_new_item", value=2).add("brand_new_record", value=3)
    r.calls("exec_command", "call_lost", {"cmd": "sleep 99"})
    r.item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "And now?"}], encrypted_content=None)
    return r


ALL = (shells, commands, items, subagent, troubles)


def write(path: Path, lines: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def name_of(thread: str = SESSION) -> str:
    return f"rollout-2026-05-30T12-00-00-{thread}.jsonl"


def _ran(output: str, code: int, seconds: float) -> str:
    return f"Chunk ID: ef0014\nWall time: {seconds} seconds\nProcess exited with code {code}\nOutput:\n{output}"


def _metadata(output: str, code: int, seconds: float) -> str:
    return json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": seconds}})


def _exec(*command: str) -> dict[str, Any]:
    return {"type": "exec", "command": list(command), "working_directory": "/w/api", "timeout_ms": None}
