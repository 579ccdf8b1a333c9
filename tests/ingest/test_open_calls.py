"""A call that the conversation has left behind is sealed as one without an outcome, whatever the agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.agents.registry import load_adapter
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent
from aver.ingest.open_calls import LATE_MAX, OpenCalls
from aver.ingest.reconcile import reconcile
from aver.ingest.seal import SealReport, TranscriptFollower, seal_event
from aver.ingest.watch import IngestCache, TranscriptWatcher, catch_up
from aver.ledger import Ledger, open_ledger
from support.agents.claude_transcripts import SESSION, Transcript, session_at, use


def opened(*calls: str) -> OpenCalls[str]:
    """`m1:a` is the call `a` of the message `m1`."""
    found = OpenCalls[str]()
    for each in calls:
        message, _, name = each.partition(":")
        found.add(name, each, message)
    return found


def test_a_result_leaves_the_calls_of_earlier_messages_behind() -> None:
    calls = opened("m1:a", "m1:b", "m2:c", "m2:d", "m3:e")
    assert calls.leave_before("c") == ["m1:a", "m1:b"]
    assert calls.leave_before("d") == []
    assert calls.pop("a") == "m1:a"
    assert calls.leave_all() == ["m2:c", "m2:d", "m3:e"]
    assert calls.leave_all() == []


def test_a_late_result_says_nothing_about_the_calls_after_it() -> None:
    calls = opened("m1:a", "m2:b")
    assert calls.leave_before("b") == ["m1:a"]
    assert (calls.leave_before("a"), calls.pop("a"), calls.get("a")) == ([], "m1:a", None)
    assert calls.leave_all() == ["m2:b"]


def test_the_calls_of_another_agent_are_left_alone() -> None:
    calls = opened("m1:a")
    calls.add("k", "kid", "m9", "agent")
    assert calls.leave_before("k") == calls.leave_all("other") == []
    assert calls.leave_all("agent") == ["kid"]


def test_no_transcript_fills_the_memory_with_calls_left_behind() -> None:
    calls = opened(*(f"m{number}:{number}" for number in range(LATE_MAX + 10)))
    assert len(calls.leave_all()) == LATE_MAX + 10
    assert (calls.get("9"), calls.get("10")) == (None, "m10:10")


# --- in the transcript of each agent: `ls` is answered, `curl` is not, and the conversation goes on

Records = list[dict[str, Any]]


def claude_lines(late: bool, moved: bool) -> bytes:
    transcript = Transcript()
    transcript.prompt("Go")
    transcript.message("m1", use("t1", "Bash", command="ls"), use("t2", "Bash", command="curl"))
    transcript.result("t1", "a b")
    if moved:
        transcript.message("m2", use("t3", "Bash", command="pwd"))
        transcript.result("t3", "/")
    if late:
        transcript.result("t2", "sent")
    return b"".join(line + b"\n" for line in transcript.lines)


def codex_lines(late: bool, moved: bool) -> bytes:
    def item(kind: str, **body: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": kind, **body}}

    def began(name: str, command: str) -> dict[str, Any]:
        return item("function_call", call_id=name, name="exec_command", arguments=json.dumps({"cmd": command}))

    records = [
        {"type": "session_meta", "payload": {"id": SESSION, "cwd": "/work"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Go"}},
        began("t1", "ls"),
        began("t2", "curl"),
        item("function_call_output", call_id="t1", output="a b"),
        (counted := {"type": "event_msg", "payload": {"type": "token_count", "info": None}}),
    ]
    if moved:
        records += [began("t3", "pwd"), item("function_call_output", call_id="t3", output="/"), counted]
    if late:
        records += [item("function_call_output", call_id="t2", output="sent"), counted]
    return b"".join(json.dumps({"timestamp": "2026-05-31T09:00:00Z", **record}).encode() + b"\n" for record in records)


def cline_session(late: bool, moved: bool) -> bytes:
    def used(name: str, command: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": name, "name": "run_commands", "input": {"commands": [command]}}

    def answered(name: str, text: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": name, "content": text}

    messages: Records = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [used("t1", "ls"), used("t2", "curl")]},
        {"role": "user", "content": [answered("t1", "a b")]},
    ]
    if moved:
        messages += [
            {"role": "assistant", "content": [used("t3", "pwd")]},
            {"role": "user", "content": [answered("t3", "/")]},
        ]
    if late:
        messages += [{"role": "user", "content": [answered("t2", "sent")]}]
    return json.dumps({"messages": messages}).encode()


def cursor_lines(late: bool, moved: bool) -> bytes:
    def used(name: str, command: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": name, "name": "Shell", "input": {"command": command}}

    def answered(name: str, text: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": name, "content": text}

    def line(role: str, *content: Any) -> dict[str, Any]:
        return {"role": role, "message": {"content": list(content)}}

    records = [
        line("user", {"type": "text", "text": "<user_query>Go</user_query>"}),
        line("assistant", used("t1", "ls"), used("t2", "curl")),
        line("user", answered("t1", "a b")),
    ]
    if moved:
        records += [line("assistant", used("t3", "pwd")), line("user", answered("t3", "/"))]
    if late:
        records += [line("user", answered("t2", "sent"))]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


AGENTS: dict[str, tuple[str, Callable[[bool, bool], bytes]]] = {
    "claude-code": (f".claude/projects/-work/{SESSION}.jsonl", claude_lines),
    "codex": (f".codex/sessions/2026/05/31/rollout-2026-05-31T09-00-00-{SESSION}.jsonl", codex_lines),
    "cline": (f".cline/data/sessions/{SESSION}/{SESSION}.messages.json", cline_session),
    "cursor": (f".cursor/projects/work/agent-transcripts/{SESSION}/{SESSION}.jsonl", cursor_lines),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as found:
        yield found


def statuses(ledger: Ledger, tool: str) -> list[tuple[str, str | None]]:
    records = [record.to_dict() for record in ledger.read(f"{tool}.{SESSION}")]
    return [
        (content["outcome"]["status"], content["outcome"]["error"])
        for content in records
        if "curl" in str(content["execution"]) or "transcript says" in content["outcome"]["summary"]
    ]


@pytest.mark.parametrize("tool", AGENTS)
def test_a_call_left_behind_is_sealed_at_once_and_its_late_result_once(
    ledger: Ledger, tmp_path: Path, tool: str
) -> None:
    place, build = AGENTS[tool]
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    adapter, around = load_adapter(tool), UserEnvironment(tmp_path, {})

    def follow() -> int:
        sealed = 0
        for source in [source for source in adapter.locate(around) if source.session == SESSION] * 2:
            follower = TranscriptFollower(ledger, adapter, source)
            done = follower.step()
            follower.rest()
            sealed = sealed or done.sealed + done.children
        return sealed

    path.write_bytes(build(False, False))
    follow()
    assert statuses(ledger, tool) == []  # It may still be running.
    sources = list(adapter.locate(around))
    verdict, counts = reconcile(ledger, adapter, sources, [f"{tool}.{SESSION}"])
    (finding,) = [found for found in verdict.findings if found.check == "transcript"]
    assert "1 call without a result, not sealed yet" in finding.words
    assert (finding.code, verdict.status, counts.seen_not_sealed) == ("NOT_SEALED", "qualified", 1)

    path.write_bytes(build(False, True))
    assert follow()
    assert statuses(ledger, tool) == [("pending", "OUTCOME_UNKNOWN")]
    assert reconcile(ledger, adapter, sources, [f"{tool}.{SESSION}"]).verdict.status == "verified"

    path.write_bytes(build(True, True))
    follow()
    assert [status for status, _ in statuses(ledger, tool)] == ["pending", "success"]
    assert reconcile(ledger, adapter, list(adapter.locate(around)), [f"{tool}.{SESSION}"]).verdict.status == "verified"
    assert follow() == 0
    assert ledger.verify().status == "verified"


# --- the end of a session


def claude_session(tmp_path: Path) -> Path:
    """A finished transcript whose last answer has no stop reason, as several versions write it."""
    transcript = Transcript()
    transcript.prompt("Go")
    transcript.message("m1", {"type": "text", "text": "All is done."})
    home = tmp_path / "user"
    session_at(home, transcript)
    return home


def caught_up(ledger: Ledger, home: Path, **more: bool) -> SealReport:
    adapter = load_adapter("claude-code")
    (source,) = adapter.locate(UserEnvironment(home, {}))
    return catch_up(ledger, adapter, source, IngestCache(ledger), **more)


def hook(ledger: Ledger, name: str) -> None:
    event = AgentEvent(what="session", key=f"hook-{name}", summary=name, ends_session=name == "SessionEnd")
    seal_event(ledger, "claude-code", SESSION, event)


def test_the_last_answer_waits_until_the_client_says_that_the_session_is_over(ledger: Ledger, tmp_path: Path) -> None:
    home = claude_session(tmp_path)
    hook(ledger, "SessionStart")
    assert caught_up(ledger, home).waiting == 1
    assert caught_up(ledger, home).waiting == 1  # The file did not change, and is still looked at.
    hook(ledger, "SessionEnd")
    done = caught_up(ledger, home)
    assert (done.sealed, done.waiting) == (1, 0)
    *_, last = [record.to_dict() for record in ledger.read(f"claude-code.{SESSION}")]
    assert last["outcome"]["result"] == "All is done."


def test_a_session_that_was_resumed_is_not_over(ledger: Ledger, tmp_path: Path) -> None:
    home = claude_session(tmp_path)
    for name in ("SessionEnd", "SessionStart"):
        hook(ledger, name)
    assert caught_up(ledger, home).waiting == 1
    assert caught_up(ledger, home, is_final=True).sealed == 1
    assert caught_up(ledger, home, is_final=True) == SealReport(records=2)


def test_a_watcher_hears_the_end_without_a_change_of_the_transcript(ledger: Ledger, tmp_path: Path) -> None:
    home = claude_session(tmp_path)
    hook(ledger, "SessionStart")
    watcher = TranscriptWatcher(ledger, [load_adapter("claude-code")], UserEnvironment(home, {}))
    assert [update.sealing.sealed for update in watcher.begin()] == [1]
    assert list(watcher.look()) == []
    hook(ledger, "SessionEnd")
    assert [update.sealing.sealed for update in watcher.look()] == [1]
