"""The real Claude Code, with Aver's hooks and MCP server put in by the real command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from proofs import agrees_with_transcript, calls_by_hook, nothing_got_out, proved
from rooms import STEAL, Room, new_room
from stub_anthropic import MODEL, Block, answer, call, heard, model_that_says
from stub_server import StubServer

from aver import open_ledger

pytestmark = [pytest.mark.long, pytest.mark.clients]

TOOL = "claude-code"

SETTINGS = """{
    "cleanupPeriodDays": 3650,   "model": "claude-sonnet-4-5",
\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch own-hook-ran"}]}]}
}"""
"""Settings that a person wrote, with a hook of their own."""


def run(room: Room, stub: StubServer, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """Give Claude Code a prompt. Returns the session and what was told of it."""
    key = {"ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "not-a-real-one"}
    room = Room(room.home, room.workspace, {**room.environment, **key})
    done = room.run("claude", "-p", "Note what there is.", "--output-format", "stream-json", "--verbose", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return told[0]["session_id"], told


def said_at_last(told: Sequence[dict[str, Any]]) -> str:
    return str(next(one["result"] for one in reversed(told) if one["type"] == "result"))


def transcript_of(room: Room, session: str) -> str:
    return next((room.home / ".claude" / "projects").glob(f"*/{session}.jsonl")).read_text()


def test_a_session_is_gated_sealed_and_proved(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    notes = tmp_path / "workspace" / "notes.txt"
    turns: list[list[Block]] = [
        [answer("I write it down."), call("toolu_write", "Write", file_path=str(notes), content="one\ntwo\n")],
        [call("toolu_edit", "Edit", file_path=str(notes), old_string="two", new_string="zwei")],
        [
            call("toolu_read", "Read", file_path=str(notes)),
            call("toolu_run", "Bash", command="cat notes.txt; echo trouble >&2", description="Show it"),
        ],
        [call("toolu_fail", "Bash", command="ls nothing-here", description="Fail")],
        [call("toolu_steal", "Bash", command=STEAL, description="Send it")],
        [answer("That was all.")],
    ]
    with model_that_says(turns) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        settings = room.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(SETTINGS)
        room.aver("install", TOOL)
        session, told = run(room, stub)

    assert said_at_last(told) == "That was all."
    assert (room.workspace / "own-hook-ran").exists()

    assert notes.read_text() == "one\nzwei\n"
    assert "zwei\ntrouble" in heard(stub, "toolu_run")
    assert "a secret would be sent to another machine" in heard(stub, "toolu_steal")
    nothing_got_out(room, stub)

    calls = calls_by_hook(TOOL, session)
    assert set(calls) == {"toolu_write", "toolu_edit", "toolu_read", "toolu_run", "toolu_fail"}
    assert "+one\n+two\n" in calls["toolu_write"]["outcome"]["result"]["diff"]
    assert "-two\n+zwei\n" in calls["toolu_edit"]["outcome"]["result"]["diff"]
    assert "zwei" in json.dumps(calls["toolu_read"]["result"])
    assert calls["toolu_run"]["result"]["stdout"] == "one\nzwei\ntrouble"
    assert (calls["toolu_fail"]["success"], calls["toolu_fail"]["outcome"]["status"]) == (False, "failure")

    room.aver("ingest", "--all")
    agrees_with_transcript(TOOL, session, calls)
    listed = proved(room, TOOL, session, actions=6, denials=1)
    assert (listed["edits"], listed["commands"], listed["failures"]) == (2, 2, 1)
    story = room.aver("show", session)
    for words in ("> Note what there is.", "+zwei", "trouble", "a secret would be sent to another machine"):
        assert words in story

    assert "claude-code: a canary went through each of PreToolUse" in room.aver("doctor")
    assert "Connected" in room.run("claude", "mcp", "list").stdout
    room.aver("uninstall", TOOL)
    assert settings.read_text() == SETTINGS
    assert "mcpServers" not in json.loads((room.home / ".claude.json").read_text())


BROKEN = b"this is no database" * 1000


def written_while(broken: str, room: Room, stub: StubServer) -> tuple[str, str]:
    """Have a file written while Aver is broken. Returns the session, and what the person was told."""
    session, told = run(room, stub, "--allowedTools", "Write")
    assert said_at_last(told) == "That was all.", f"the agent stands still where {broken}"
    return session, transcript_of(room, session)


def writes(tmp_path: Path) -> list[list[Block]]:
    notes = str(tmp_path / "workspace" / "notes.txt")
    return [[call("toolu_write", "Write", file_path=notes, content="one\n")], [answer("That was all.")]]


def test_where_the_gate_cannot_decide_nothing_is_done(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        (aver_home / "ledger.db").write_bytes(BROKEN)
        written_while("the ledger is broken", room, stub)
    assert not (room.workspace / "notes.txt").exists()
    assert "Aver cannot judge this" in heard(stub, "toolu_write")


def test_it_goes_on_if_it_is_to_and_says_so(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        (aver_home / "config.toml").write_text('[hooks]\non_failure = "open"\n')
        ledger = aver_home / "ledger.db"
        ledger.write_bytes(BROKEN)
        session, transcript = written_while("the ledger is broken", room, stub)
        assert (room.workspace / "notes.txt").read_text() == "one\n"
        assert "aver: the hook claude-code PreToolUse failed" in transcript
        assert "the tool goes on by its own rules" in transcript

        ledger.unlink()
        run(room, stub)
    with open_ledger() as opened:
        summaries = [record.to_dict()["outcome"]["summary"] for record in opened.read(f"{TOOL}.{session}")]
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"):
        assert any(words.startswith(f"hook {event} failed") for words in summaries), event


def test_an_aver_that_is_gone_blocks_nobody(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        settings = room.home / ".claude" / "settings.json"
        settings.write_text(settings.read_text().replace("/aver hook ", "/aver-that-was-here hook "))
        _, transcript = written_while("there is no Aver", room, stub)
    assert (room.workspace / "notes.txt").read_text() == "one\n"
    assert "aver-that-was-here" in transcript
