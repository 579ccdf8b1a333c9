"""Writes transcripts as Claude Code does: the shapes of version 2.1, and what older versions did otherwise."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from aver.agents.claude_code.transcripts import ADAPTER
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent, TranscriptSource

SESSION = "5d2e8f30-7c11-4a52-9d3b-0a1b2c3d4e5f"
PROJECT = "-w-shop"
CWD = "/w/shop"

Layout = Literal["directory", "beside", "inline"]
"""Where the records of a subagent stand: in a directory of the session, beside it, among its own. New to old."""

USAGE = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 812,
    "cache_read_input_tokens": 20110,
    "output_tokens": 96,
    "service_tier": "standard",
}

HUNK = {
    "oldStart": 7,
    "oldLines": 2,
    "newStart": 7,
    "newLines": 3,
    "lines": [" def total(xs):", "-    return round(sum(xs))", "+    # half up", "+    return half_up(sum(xs))"],
}


class Transcript:
    """The lines of one transcript, each a moment after the one before it."""

    def __init__(self, *, session: str = SESSION, agent: str = "", version: str = "2.1.197", **always: Any) -> None:
        self.lines: list[bytes] = []
        self._session = session
        self._agent = agent
        self._always = {"version": version, "cwd": CWD, "gitBranch": "main", "userType": "external", **always}
        self._parent: str | None = None
        self._clock = datetime(2026, 5, 31, 9, 0, tzinfo=UTC)

    def bare(self, **record: Any) -> None:
        """A record without an id or a time."""
        self.lines.append(json.dumps({**record, "sessionId": self._session}).encode())

    def record(self, **record: Any) -> str:
        """A record of the conversation. Returns its id."""
        own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._session}{self._agent}{len(self.lines)}"))
        self._clock += timedelta(milliseconds=500)
        common: dict[str, Any] = {
            "parentUuid": self._parent,
            "isSidechain": bool(self._agent),
            "sessionId": self._session,
            "timestamp": self._clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **self._always,
        }
        if self._agent:
            common["agentId"] = self._agent
        self.lines.append(json.dumps({**common, "uuid": own, **record}).encode())
        self._parent = own
        return own

    def prompt(self, content: Any, **more: Any) -> str:
        return self.record(type="user", message={"role": "user", "content": content}, **more)

    def message(self, name: str, *blocks: dict[str, Any], **more: Any) -> list[str]:
        """A message of the model: a line for each of its blocks. `usage` and `stop_reason` stand in every line."""
        usage, stop = more.pop("usage", USAGE), more.pop("stop_reason", None)
        model = more.pop("model", "claude-opus-4-8")
        return [
            self.record(
                type="assistant",
                requestId=f"req_{name}",
                message={
                    "id": name,
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "stop_reason": stop,
                    "usage": usage,
                    "content": [block],
                },
                **more,
            )
            for block in blocks
        ]

    def result(self, call: str, content: Any, data: Any = None, *, error: bool = False, **more: Any) -> str:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": content}
        if error:
            block["is_error"] = True
        if data is not None:
            more["toolUseResult"] = data
        return self.prompt([block], **more)

    def called(self, call: str, name: str, arguments: Any, content: Any, data: Any = None, **more: Any) -> None:
        """A message with one call, and what came of it."""
        self.message(f"msg_{call}", use(call, name, **arguments), stop_reason="tool_use")
        self.result(call, content, data, **more)

    def attachment(self, **attachment: Any) -> str:
        return self.record(type="attachment", attachment=attachment)

    def write(self, path: Path, *, torn: bytes = b"") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in self.lines) + torn)
        return path


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def thinking(thought: str, signature: str = "EqQBCkYI") -> dict[str, Any]:
    return {"type": "thinking", "thinking": thought, "signature": signature}


def use(call: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def session_at(home: Path, transcript: Transcript, session: str = SESSION) -> Path:
    return transcript.write(home / ".claude" / "projects" / PROJECT / f"{session}.jsonl")


def with_subagent(home: Path, layout: Layout) -> Path:
    """A session whose agent sent another to look around, as versions of that time wrote it down."""
    main = Transcript()
    main.prompt("Make totals round half up")
    main.message("msg_1", use("toolu_task", "Task", description="Look", prompt="Find total()", subagent_type="Explore"))
    agent = Transcript(agent="a1646393") if layout != "inline" else main
    if layout == "inline":
        main.record(type="user", isSidechain=True, parentUuid=None, message={"role": "user", "content": "Find total()"})
        main.message("msg_a1", text("I look."), use("toolu_a1", "Bash", command="ls"), isSidechain=True)
        main.prompt([{"type": "tool_result", "tool_use_id": "toolu_a1", "content": "sum.py"}], isSidechain=True)
        main.message("msg_a2", text("It is in sum.py."), isSidechain=True)
    else:
        agent.prompt("Find total()")
        agent.message("msg_a1", text("I look."), use("toolu_a1", "Bash", command="ls"))
        agent.result("toolu_a1", "sum.py")
        agent.message("msg_a2", text("It is in sum.py."), stop_reason="end_turn")
    data = None if layout == "inline" else {"status": "completed", "agentId": "a1646393", "totalToolUseCount": 1}
    main.result("toolu_task", [{"type": "text", "text": "It is in sum.py."}], data)
    main.message("msg_2", text("It is in sum.py, I hear."), stop_reason="end_turn")
    path = session_at(home, main)
    if layout == "directory":
        folder = path.with_suffix("") / "subagents"
        agent.write(folder / "agent-a1646393.jsonl")
        (folder / "agent-a1646393.meta.json").write_text('{"agentType":"Explore","toolUseId":"toolu_task"}')
    elif layout == "beside":
        agent.write(path.with_name("agent-a1646393.jsonl"))
    return path


def sources_in(home: Path, **environment: str) -> list[TranscriptSource]:
    return list(ADAPTER.locate(UserEnvironment(home, environment)))


def deeds_of(source: TranscriptSource) -> list[AgentEvent]:
    turn = ADAPTER.parser(source)
    return [event for raw in ADAPTER.read(source)() for event in turn.feed(raw)] + list(turn.finish())


def deeds_in(transcript: Transcript, folder: Path) -> list[AgentEvent]:
    path = transcript.write(folder / f"{SESSION}.jsonl")
    return deeds_of(TranscriptSource(tool=ADAPTER.tool, session=SESSION, path=path))


def calls(events: Iterable[AgentEvent]) -> dict[str, AgentEvent]:
    return {event.key: event for event in events if event.what == "call"}


def one_call(transcript: Transcript, folder: Path, call: str = "toolu_1") -> AgentEvent:
    return calls(deeds_in(transcript, folder))[call]
