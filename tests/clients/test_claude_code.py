"""The real Claude Code, with Aver's hooks and MCP server put in by the real command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from support.clients.hook_faults import break_hooks
from support.clients.proofs import agrees_with_transcript, calls_by_hook, failures_are_sealed, nothing_got_out, proved
from support.clients.rooms import STEAL, Room, break_ledger, mend_ledger, new_room
from support.clients.stub_anthropic import MODEL, Turns, answer, call, heard, model_that_says
from support.clients.stub_server import StubServer

pytestmark = [pytest.mark.long, pytest.mark.clients]

TOOL = "claude-code"

ALLOWED = ("--allowedTools", "Write,Edit,Read,Bash,Agent")
"""What the person lets Claude Code do without a prompt. Aver leaves passes to such rules."""

SETTINGS = """{
    "cleanupPeriodDays": 3650,   "verbose": false,
\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch own-hook-ran"}]}]}
}"""
"""Settings that a person wrote, with a hook of their own."""


def run(room: Room, stub: StubServer, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """Give Claude Code a prompt. Returns the session and what was told of it."""
    key = {"ANTHROPIC_BASE_URL": stub.url, "ANTHROPIC_API_KEY": "not-a-real-one"}
    room = Room(room.home, room.workspace, {**room.environment, **key})
    asked = ("-p", "Note what there is.", "--model", MODEL, "--output-format", "stream-json", "--verbose")
    done = room.run("claude", *asked, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return told[0]["session_id"], told


def said_at_last(told: Sequence[dict[str, Any]]) -> str:
    return str(next(one["result"] for one in reversed(told) if one["type"] == "result"))


def transcript_of(room: Room, session: str) -> str:
    return next((room.home / ".claude" / "projects").glob(f"*/{session}.jsonl")).read_text()


def test_a_session_is_gated_sealed_and_proved(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    notes = tmp_path / "workspace" / "notes.txt"
    turns: Turns = [
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
        session, told = run(room, stub, *ALLOWED)

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

    assert "claude-code: a test call passed each of PreToolUse" in room.aver("doctor")
    assert "Connected" in room.run("claude", "mcp", "list").stdout
    room.aver("uninstall", TOOL)
    assert settings.read_text() == SETTINGS
    assert "mcpServers" not in json.loads((room.home / ".claude.json").read_text())


def test_a_subagent_is_gated_and_has_a_chain_of_its_own(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    notes = str(tmp_path / "workspace" / "notes.txt")
    asked = "Look around there."
    launch = {"description": "Look", "prompt": asked, "subagent_type": "general-purpose", "run_in_background": False}
    turns: Turns = [[call("toolu_agent", "Agent", **launch)], [answer("That was all.")]]
    its_turns: Turns = [
        [call("toolu_write", "Write", file_path=notes, content="one\n")],
        [call("toolu_edit", "Edit", file_path=notes, old_string="one", new_string="eins")],
        [call("toolu_read", "Read", file_path=notes)],
        [call("toolu_run", "Bash", command="cat notes.txt", description="Show it")],
        [call("toolu_steal", "Bash", command=STEAL, description="Send it")],
        [answer("There is one file.")],
    ]
    with model_that_says(turns, to_subagents={asked: its_turns}) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        session, told = run(room, stub, *ALLOWED)

    assert said_at_last(told) == "That was all."
    assert "There is one file." in heard(stub, "toolu_agent")
    assert "a secret would be sent to another machine" in heard(stub, "toolu_steal")
    nothing_got_out(room, stub)

    calls = calls_by_hook(TOOL, session)
    assert set(calls) == {"toolu_agent"}
    agent = calls["toolu_agent"]["result"]["agentId"]
    its_calls = calls_by_hook(TOOL, session, agent)
    assert set(its_calls) == {"toolu_write", "toolu_edit", "toolu_read", "toolu_run"}

    room.aver("ingest", "--all")
    agrees_with_transcript(TOOL, session, [*calls, *its_calls])
    listed = proved(room, TOOL, session, actions=6, denials=1)
    assert (listed["subagents"], listed["edits"]) == (1, 2)
    assert re.search(r"\[general-purpose: 2 edits, \+[0-9]+/-1, 5 tool calls\]", room.aver("show", session))


def writes(tmp_path: Path) -> Turns:
    notes = str(tmp_path / "workspace" / "notes.txt")
    return [[call("toolu_write", "Write", file_path=notes, content="one\n")], [answer("That was all.")]]


def test_where_the_gate_cannot_decide_nothing_is_done(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        break_ledger(aver_home)
        _, told = run(room, stub, "--allowedTools", "Write")
    assert said_at_last(told) == "That was all."
    assert not (room.workspace / "notes.txt").exists()
    assert "Aver cannot judge this" in heard(stub, "toolu_write")


def test_it_goes_on_if_it_is_to_and_says_so(claude_code: Path, tmp_path: Path, aver_home: Path) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        (aver_home / "config.toml").write_text('[hooks]\non_failure = "open"\n')
        break_ledger(aver_home)
        session, _ = run(room, stub, "--allowedTools", "Write")
        assert (room.workspace / "notes.txt").read_text() == "one\n"
        transcript = transcript_of(room, session)
        assert "aver: the hook claude-code PreToolUse failed" in transcript
        assert "the tool goes on by its own rules" in transcript

        mend_ledger(aver_home)
        run(room, stub)
    failures_are_sealed(TOOL, session)


@pytest.mark.parametrize("fault", ["renamed", "not executable"])
def test_an_aver_that_cannot_start_blocks(claude_code: Path, tmp_path: Path, aver_home: Path, fault: str) -> None:
    with model_that_says(writes(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        room.aver("install", TOOL)
        broken = break_hooks(room.home / ".claude" / "settings.json", tmp_path, fault)
        run(room, stub, *ALLOWED)
        told = room.run("aver", "status").stdout
    assert not (room.workspace / "notes.txt").exists()
    assert "Aver could not be started" in heard(stub, "toolu_write")
    assert f"every call is blocked: {broken}" in told


# --- what Claude Code does by itself, and with Aver in each of its modes


def cleans(tmp_path: Path) -> Turns:
    notes = str(tmp_path / "workspace" / "notes.txt")
    return [
        [call("toolu_write", "Write", file_path=notes, content="one\n")],
        [call("toolu_clean", "Bash", command="rm -rf build", description="Clean")],
        [answer("That was all.")],
    ]


@pytest.mark.parametrize(
    ("installed_as", "allowed", "written", "cleaned"),
    [
        (None, (), False, False),
        (None, ALLOWED, True, True),
        ((), (), False, False),
        ((), ALLOWED, True, False),
        (("--auto-allow",), (), True, False),
        (("--observe",), (), False, False),
        (("--observe",), ALLOWED, True, True),
    ],
)
def test_what_is_done(
    claude_code: Path,
    tmp_path: Path,
    aver_home: Path,
    installed_as: tuple[str, ...] | None,
    allowed: tuple[str, ...],
    written: bool,
    cleaned: bool,
) -> None:
    with model_that_says(cleans(tmp_path)) as stub:
        room = new_room(tmp_path, aver_home, stub, claude_code)
        (room.workspace / "build").mkdir()
        if installed_as is not None:
            room.aver("install", TOOL, "--only", "hooks", *installed_as)
        session, _ = run(room, stub, *allowed)
    assert (room.workspace / "notes.txt").exists() == written
    assert (room.workspace / "build").exists() != cleaned
    if installed_as is None:
        assert not (aver_home / "ledger.db").exists()
        return
    with open_ledger() as ledger:
        results = [record.to_dict()["outcome"]["result"] for record in ledger.read(f"gate.{session}")]
        assert ledger.verify().status == "verified"
    assert [result["decision"] for result in results] == ["pass", "human_review"]
    observes = "--observe" in installed_as
    assert {result["mode"] for result in results} == {"observe" if observes else "enforce"}
    first = "allow" if "--auto-allow" in installed_as else "leave"
    assert [result["answer"] for result in results] == [first, "leave" if observes else "ask"]
    if observes:
        assert "1 asked about" in room.aver("gate", "report", "--observed")
        assert "nothing was held back" in room.run("aver", "sessions").stderr
