"""Secrets that are planted in every place of an agent's input are in no byte that Aver writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger
from aver.ingest.contract import AgentCall, AgentEvent, Permission, Prompt
from aver.ingest.draft import EXCERPT_MAX, SUMMARY_MAX
from aver.ingest.seal import seal_event
from support.agents.claude_transcripts import Transcript
from support.agents.codex_rollouts import Rollout
from support.hook_calls import fire
from support.planted_secrets import PASSWORD, SPELLINGS, assert_nothing_is_left


def events(planted: str) -> list[AgentEvent]:
    """One event for each place of an event, with the planted text in it."""
    long = f"{'word ' * 8}{planted}"
    prompt = Prompt(key="p", text=planted)
    call = {"tool": "Bash", "id": "c"}
    whole = {"what": "call", "prompt": prompt, "allowed": Permission(reference=planted)}
    calls = [
        AgentCall(**call, arguments={"command": planted}, ok=True, result=planted),
        AgentCall(**call, arguments={"command": planted}, ok=False, error=planted),
        AgentCall(**call, arguments={"a": {"b": [planted]}, planted: 1}, ok=None, result={"stdout": planted}),
        AgentCall(tool="mcp__db__run", id="c", arguments={"sql": planted, "pad": "x " * 40_000}, ok=True),
        AgentCall(
            tool="Edit", id="c", arguments={"file_path": f"/w/{planted}"}, ok=True, diff=f"--- a\n+++ b\n+{planted}\n"
        ),
    ]
    made = [
        AgentEvent(
            key=f"c{number}",
            summary=f"Bash: {planted}",
            call=one,
            text=long,
            thinking=planted,
            side_effects=(f"ran {planted}",),
            environment={"cwd": f"/w/{planted}", "note": planted},
            title=planted,
            **whole,  # type: ignore[arg-type]
        )
        for number, one in enumerate(calls)
    ]
    made.append(AgentEvent(what="prompt", key="p", summary=f"prompt: {planted}", text=planted, title=planted[:120]))
    made.append(AgentEvent(what="answer", key="a", summary=planted, text=planted, result={"more": planted}))
    made.append(AgentEvent(what="unknown", key="u", summary=planted, result={"raw": planted}))
    return made


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_place_of_an_event_keeps_a_secret(ledger: Ledger, spelling: str) -> None:
    for event in events(SPELLINGS[spelling]):
        seal_event(ledger, "claude-code", "s1", event)
    assert ledger.verify().status == "verified"
    assert_nothing_is_left(ledger)


@pytest.mark.sample(4)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("limit", [EXCERPT_MAX, SUMMARY_MAX, 160, 120])
def test_a_text_that_is_cut_inside_a_secret_keeps_no_part_of_it(ledger: Ledger, spelling: str, limit: int) -> None:
    planted = SPELLINGS[spelling]
    for before in range(0, len(planted), 3):
        text = "x" * (limit - len(planted) - 8 + before) + " " + planted
        call = AgentCall(tool="Bash", id=f"c{before}", arguments={"command": text}, ok=True)
        cut = f"Bash: {text}"[:limit] + "…"
        event = AgentEvent(
            what="call",
            key=f"c{before}",
            summary=cut,
            call=call,
            prompt=Prompt(key=f"p{before}", text=text),
            side_effects=(f"ran {text}"[:limit],),
            title=text[:limit],
        )
        seal_event(ledger, "claude-code", "s1", event)
    assert_nothing_is_left(ledger)


def test_a_value_that_only_its_name_shows_is_not_in_the_summary(ledger: Ledger) -> None:
    call = AgentCall(tool="mcp__db__open", id="c", arguments={"password": PASSWORD}, ok=True, result=f"said {PASSWORD}")
    seal_event(
        ledger, "claude-code", "s1", AgentEvent(what="call", key="c", summary=f"mcp__db__open: {PASSWORD}", call=call)
    )
    assert_nothing_is_left(ledger)


@pytest.mark.sample(4)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_hooks_keep_no_secret(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    planted = SPELLINGS[spelling]
    base: dict[str, Any] = {"session_id": "s1", "cwd": str(tmp_path), "transcript_path": "/x", "tool_name": "Bash"}
    asked = {**base, "tool_input": {"command": planted}, "tool_use_id": "t1"}
    fire("claude-code", "PreToolUse", asked)
    fire("claude-code", "PostToolUse", {**asked, "tool_response": {"stdout": planted, "stderr": planted}})
    fire("claude-code", "PostToolUseFailure", {**asked, "tool_use_id": "t2", "error": f"Exit code 1\n{planted}"})
    fire("claude-code", "UserPromptSubmit", {**base, "prompt": planted})
    server = {
        **base,
        "tool_name": "mcp__db__run",
        "tool_input": {"token": PASSWORD, "sql": planted},
        "tool_use_id": "t3",
    }
    fire("claude-code", "PreToolUse", server)
    fire("claude-code", "PostToolUse", {**server, "tool_response": [{"type": "text", "text": planted}]})
    codex = {**asked, "session_id": "s2", "tool_use_id": "t4"}
    fire("codex", "PreToolUse", codex)
    fire("codex", "PostToolUse", {**codex, "tool_response": planted})
    fire("codex", "Stop", {**base, "session_id": "s2", "last_assistant_message": planted})
    cursor = {"conversation_id": "s3", "workspace_roots": [str(tmp_path)], "tool_use_id": "t5", "tool_name": "Shell"}
    fire("cursor", "beforeShellExecution", {**cursor, "command": planted})
    fire(
        "cursor",
        "postToolUse",
        {**cursor, "tool_input": {"command": planted}, "tool_output": json.dumps({"output": planted})},
    )
    cline = {"taskId": "s4", "workspaceRoots": [str(tmp_path)]}
    about = {"toolName": "execute_command", "parameters": {"command": planted}, "result": planted}
    fire("cline", "PreToolUse", {**cline, "preToolUse": about})
    fire("cline", "PostToolUse", {**cline, "postToolUse": about})
    assert_nothing_is_left(ledger)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_transcripts_keep_no_secret(ledger: Ledger, tmp_path: Path, spelling: str) -> None:
    from aver.agents.claude_code.transcripts import ADAPTER as CLAUDE
    from aver.agents.codex.rollouts import ADAPTER as CODEX
    from aver.ingest.contract import TranscriptSource

    planted = SPELLINGS[spelling]
    claude, codex = Transcript(), Rollout().meta().turn().asks(planted)
    claude.called("t1", "Bash", {"command": planted}, planted, {"stdout": planted, "stderr": ""})
    claude.called(
        "t2", "mcp__db__run", {"password": PASSWORD, "sql": planted}, planted, [{"type": "text", "text": planted}]
    )
    claude.called(
        "t3",
        "Write",
        {"file_path": "/w/.env", "content": planted},
        "File created",
        {"type": "create", "content": planted},
    )
    codex.calls("exec_command", "c1", {"cmd": planted}).output("c1", f"Exit code: 1\nOutput:\n{planted}")
    for adapter, tool, lines in ((CLAUDE, "claude-code", claude.lines), (CODEX, "codex", codex.lines())):
        path = tmp_path / f"{tool}.jsonl"
        path.write_bytes(b"".join(line.rstrip(b"\n") + b"\n" for line in lines))
        source = TranscriptSource(tool=tool, session="s1", path=path)
        parser = adapter.parser(source)
        for record in adapter.read(source)():
            for event in parser.feed(record):
                seal_event(ledger, tool, "s1", event)
        for event in parser.finish():
            seal_event(ledger, tool, "s1", event)
    assert_nothing_is_left(ledger)
