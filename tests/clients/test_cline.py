"""The real Cline on the command line, with Aver's hooks put in by the real command."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.errors import NotFound
from support.clients.proofs import agrees_with_transcript, calls_by_hook, proved
from support.clients.rooms import SECONDS, STEAL, STOLEN, Room, break_ledger, mend_ledger, new_room
from support.clients.stub_anthropic import MODEL, Turns, answer, call, heard, model_that_says
from support.clients.stub_server import StubServer

pytestmark = [pytest.mark.long, pytest.mark.clients]

TOOL = "cline"

SWITCHED_OFF = {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_SESSION_BACKEND_MODE": "local"}
"""So no daemon is started: it would outlive the test, and there is one for all users of a machine."""

OWN_HOOK = "#!/bin/sh\ntouch own-hook-ran\necho '{}'\n"
"""A hook that a person wrote."""

CALLS_HOME = "data.cline.bot:443"
"""Where Cline asks for switches of its own whatever its settings say."""


@contextmanager
def cline_room(
    place: Path, aver_home: Path, programs: Path, turns: Turns, **more: Any
) -> Iterator[tuple[Room, StubServer]]:
    with model_that_says(turns, **more) as stub:
        room = new_room(place, aver_home, stub, programs)
        settings = room.home / ".cline" / "data" / "settings"
        settings.mkdir(parents=True)
        model = {"provider": "anthropic", "apiKey": "not-a-real-one", "model": MODEL, "baseUrl": f"{stub.url}/v1"}
        entry = {"settings": model, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
        providers = {"version": 1, "lastUsedProvider": "anthropic", "modes": {}, "providers": {"anthropic": entry}}
        (settings / "providers.json").write_text(json.dumps(providers))
        (settings / "global-settings.json").write_text('{"telemetryOptOut": true, "autoUpdateEnabled": false}')
        yield Room(room.home, room.workspace, {**room.environment, **SWITCHED_OFF}), stub


def run(room: Room) -> tuple[str, str]:
    """Give Cline a prompt. Returns the session and how its run ended."""
    before = set(sessions(room))
    done = room.run("cline", "--json", "Note what there is.")
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    (session,) = set(sessions(room)) - before
    return session, str(next(one["finishReason"] for one in told if one["type"] == "run_result"))


def sessions(room: Room) -> list[str]:
    return [path.name for path in (room.home / ".cline" / "data" / "sessions").glob("*")]


def hooks(room: Room) -> Path:
    return room.home / "Documents" / "Cline" / "Hooks"


def wait_for(session: str, words: str) -> None:
    """Until a record of the session begins with these words: Cline does not wait for the hooks that only tell."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with suppress(NotFound), open_ledger() as ledger:
            records = ledger.read(f"{TOOL}.{session}")
            if any(record.to_dict()["outcome"]["summary"].startswith(words) for record in records):
                return
        time.sleep(0.1)
    raise AssertionError(f"nobody told: {words}")


def nothing_got_out(room: Room, stub: StubServer) -> None:
    """The command that was denied did not run, not even in part, and nobody asked for another machine."""
    assert not (room.workspace / STOLEN).exists()
    assert set(stub.refused_count) <= {CALLS_HOME}


def test_a_session_is_gated_sealed_and_proved(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    notes = tmp_path / "workspace" / "notes.txt"
    turns: Turns = [
        [answer("I write it down."), call("toolu_write", "editor", path=str(notes), new_text="one\ntwo\n")],
        [call("toolu_edit", "editor", path=str(notes), old_text="two", new_text="zwei")],
        [
            call("toolu_read", "read_files", files=[{"path": str(notes)}]),
            call("toolu_run", "run_commands", commands=["cat notes.txt; echo trouble >&2", "ls notes.txt"]),
        ],
        [call("toolu_fail", "run_commands", commands=["ls nothing-here"])],
        [call("toolu_steal", "run_commands", commands=["ls", STEAL])],
        [answer("This is never said.")],
    ]
    with cline_room(tmp_path, aver_home, cline, turns) as (room, stub):
        hooks(room).mkdir(parents=True)
        (hooks(room) / "UserPromptSubmit").write_text(OWN_HOOK)
        own = hooks(room) / "PreToolUse.sh"
        own.write_text(OWN_HOOK)
        room.aver("install", TOOL)
        session, ended = run(room)

    assert ended == "aborted", "a denial ends the run"
    assert (room.workspace / "own-hook-ran").exists()
    assert notes.read_text() == "one\nzwei\n"
    assert "trouble" in heard(stub, "toolu_run")
    nothing_got_out(room, stub)

    wait_for(session, "session stopped")
    calls = calls_by_hook(TOOL, session)
    assert set(calls) == {"toolu_write", "toolu_edit", "toolu_read", "toolu_run", "toolu_fail"}
    assert "+one\n+two\n" in calls["toolu_write"]["outcome"]["result"]["diff"]
    assert "-two\n+zwei\n" in calls["toolu_edit"]["outcome"]["result"]["diff"]
    assert "zwei" in json.dumps(calls["toolu_read"]["result"])
    assert [one["result"] for one in calls["toolu_run"]["result"]] == [
        "one\nzwei\n\n[stderr]\ntrouble\n",
        "notes.txt\n",
    ]
    assert (calls["toolu_fail"]["success"], calls["toolu_fail"]["outcome"]["status"]) == (False, "failure")

    room.aver("ingest", "--all")
    agrees_with_transcript(TOOL, session, calls)
    listed = proved(room, TOOL, session, actions=5, denials=1)
    assert (listed["edits"], listed["failures"]) == (2, 1)
    story = room.aver("show", session)
    for words in ("> Note what there is.", "+zwei", "trouble", "a secret would be sent to another machine"):
        assert words in story
    assert "cat notes.txt; echo trouble >&2:\n" in story, "each of several commands with what it said"
    assert '"query"' not in story

    assert "cline: a test call passed each of PreToolUse" in room.aver("doctor")
    room.aver("uninstall", TOOL)
    assert sorted(path.name for path in hooks(room).iterdir()) == ["PreToolUse.sh", "UserPromptSubmit"]
    assert own.read_text() == OWN_HOOK


def test_a_subagent_is_gated_and_has_a_chain_of_its_own(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    asked = "Look around there."
    launch = {"systemPrompt": "You look around.", "task": asked}
    turns: Turns = [[call("toolu_agent", "spawn_agent", **launch)], [answer("That was all.")]]
    its_turns: Turns = [
        [call("toolu_run", "run_commands", commands=["cat notes.txt"])],
        [call("toolu_steal", "run_commands", commands=[STEAL])],
        [answer("This is never said.")],
    ]
    with cline_room(tmp_path, aver_home, cline, turns, to_subagents={asked: its_turns}) as (room, stub):
        (room.workspace / "notes.txt").write_text("one\n")
        room.aver("install", TOOL)
        session, ended = run(room)
    assert ended == "completed"
    nothing_got_out(room, stub)
    wait_for(session, "task completed")
    calls = calls_by_hook(TOOL, session)
    assert set(calls) == {"toolu_agent"}
    its_chain = f"{TOOL}.{session}."
    with open_ledger() as ledger:
        (agent,) = [name.removeprefix(its_chain) for name in ledger.chains() if name.startswith(its_chain)]
    assert set(calls_by_hook(TOOL, session, agent)) == {"toolu_run"}
    room.aver("ingest", "--all")
    agrees_with_transcript(TOOL, session, ["toolu_agent", "toolu_run"])
    proved(room, TOOL, session, actions=2, denials=1)


HARMLESS: Turns = [
    [call("toolu_run", "run_commands", commands=["touch notes.txt"])],
    [answer("That was all.")],
]


def test_where_the_gate_cannot_decide_nothing_is_done(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    with cline_room(tmp_path, aver_home, cline, HARMLESS) as (room, _):
        room.aver("install", TOOL)
        break_ledger(aver_home)
        _, ended = run(room)
    assert ended == "aborted"
    assert not (room.workspace / "notes.txt").exists()


def test_it_goes_on_if_it_is_to_and_says_so(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    with cline_room(tmp_path, aver_home, cline, HARMLESS) as (room, _):
        room.aver("install", TOOL)
        (aver_home / "config.toml").write_text('[hooks]\non_failure = "open"\n')
        break_ledger(aver_home)
        session, ended = run(room)
        assert ended == "completed"
        assert (room.workspace / "notes.txt").exists()
        failed = (aver_home / "hook-failures.jsonl").read_text()
        assert "PreToolUse" in failed
        mend_ledger(aver_home)
        run(room)
    for event in ("PreToolUse", "PostToolUse"):
        wait_for(session, f"hook {event} failed")


def test_an_aver_that_cannot_start_blocks(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    """Cline goes on where a hook fails, so the hook's file cancels the call itself."""
    with cline_room(tmp_path, aver_home, cline, HARMLESS) as (room, _):
        room.aver("install", TOOL)
        for file in hooks(room).iterdir():
            file.write_text(file.read_text().replace("/aver hook ", "/aver-that-was-here hook "))
        run(room)
    assert not (room.workspace / "notes.txt").exists()


def test_one_that_only_observes_holds_nothing_back(cline: Path, tmp_path: Path, aver_home: Path) -> None:
    with cline_room(tmp_path, aver_home, cline, HARMLESS) as (room, _):
        room.aver("install", TOOL, "--observe")
        _, ended = run(room)
    assert ended == "completed"
    assert (room.workspace / "notes.txt").exists()
