"""The real Codex, with Aver's hooks and MCP server put in by the real command; and one from before it had hooks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.files.locks import Pace, wait_until
from support.clients.hook_faults import break_hooks
from support.clients.proofs import agrees_with_transcript, calls_by_hook, failures_are_sealed, nothing_got_out, proved
from support.clients.rooms import SECONDS, STEAL, Room, break_ledger, mend_ledger, new_room
from support.clients.stub_responses import MODEL, Turns, answer, call, heard, model_that_says, patch
from support.clients.stub_server import StubServer

pytestmark = [pytest.mark.long, pytest.mark.clients]

TOOL = "codex"

CONFIG = """\
# Settings that a person wrote.
model = "{model}"
model_provider   = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{url}/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0

[analytics]
enabled = false

[features]
apps = false
plugins = false

[projects."{workspace}"]
trust_level = "trusted"
"""

ADD = "*** Begin Patch\n*** Add File: notes.txt\n+one\n+two\n*** End Patch\n"
CHANGE = "*** Begin Patch\n*** Update File: notes.txt\n@@\n one\n-two\n+zwei\n*** End Patch\n"


@contextmanager
def codex_room(place: Path, aver_home: Path, programs: Path, turns: Turns) -> Iterator[tuple[Room, StubServer]]:
    with model_that_says(turns) as stub:
        room = new_room(place, aver_home, stub, programs)
        settings(room).parent.mkdir()
        settings(room).write_text(CONFIG.format(model=MODEL, url=stub.url, workspace=room.workspace))
        yield room, stub


def settings(room: Room) -> Path:
    return room.home / ".codex" / "config.toml"


def run(room: Room, *words: str) -> tuple[str, str]:
    """Give Codex a prompt. Returns the session and what the person saw."""
    free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    done = room.run("codex", "exec", *free, *words, "Note what there is.")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "That was all.\n"
    session = re.search(r"^session id: (\S+)$", done.stderr, re.MULTILINE)
    assert session is not None
    return session[1], done.stderr


def trust_hooks(room: Room) -> None:
    """What a person does under `/hooks`, by the server that Codex has for editors."""
    server = subprocess.Popen(
        ["codex", "app-server"],
        cwd=room.workspace,
        env=room.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def asked(number: int, method: str, params: dict[str, Any]) -> Any:
        server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
        server.stdin.flush()
        return next(said["result"] for said in map(json.loads, server.stdout) if said.get("id") == number)

    try:
        asked(1, "initialize", {"clientInfo": {"name": "test", "version": "1"}})
        (found,) = asked(2, "hooks/list", {"cwds": [str(room.workspace)]})["data"]
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in found["hooks"]}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        asked(3, "config/batchWrite", {"edits": [edit]})
    finally:
        server.kill()
        server.communicate(timeout=SECONDS)


def standing(room: Room) -> dict[str, Any]:
    """How things stand with Codex's hooks."""
    (found,) = [one for one in room.told("status")["clients"] if (one["client"], one["part"]) == (TOOL, "hooks")]
    return found


def test_a_session_is_gated_sealed_and_proved(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    turns: Turns = [
        [answer("I write it down."), patch("call_add", ADD)],
        [patch("call_change", CHANGE)],
        [call("call_run", "exec_command", cmd="cat notes.txt; echo trouble >&2")],
        [call("call_fail", "exec_command", cmd="ls nothing-here")],
        [call("call_steal", "exec_command", cmd=STEAL)],
        [answer("That was all.")],
    ]
    with codex_room(tmp_path, aver_home, codex, turns) as (room, stub):
        room.aver("install", TOOL)
        assert "runs only hooks that you trust" in standing(room)["why"]
        trust_hooks(room)
        assert (standing(room)["state"], standing(room)["why"]) == ("installed", "")
        session, _ = run(room)

    assert (room.workspace / "notes.txt").read_text() == "one\nzwei\n"
    assert "zwei\ntrouble" in heard(stub, "call_run")
    assert "this would send a secret to another machine" in heard(stub, "call_steal")
    nothing_got_out(room, stub)

    calls = calls_by_hook(TOOL, session)
    assert set(calls) == {"call_add", "call_change", "call_run", "call_fail"}
    assert "+one\n+two\n" in calls["call_add"]["outcome"]["result"]["diff"]
    assert "-two\n+zwei\n" in calls["call_change"]["outcome"]["result"]["diff"]
    assert calls["call_run"]["result"] == {"exit_code": 0, "output": "one\nzwei\ntrouble\n"}
    assert (calls["call_fail"]["success"], calls["call_fail"]["result"]["exit_code"]) == (False, 2)

    room.aver("ingest", "--all")
    agrees_with_transcript(TOOL, session, calls)
    listed = proved(room, TOOL, session, actions=5, denials=1)
    assert (listed["edits"], listed["commands"], listed["failures"]) == (2, 2, 1)
    story = room.aver("show", session)
    for words in ("> Note what there is.", "+zwei", "trouble", "this would send a secret to another machine"):
        assert words in story

    assert "codex: a test call passed each of PreToolUse" in room.aver("doctor")
    with_trust = settings(room).read_text()
    room.aver("uninstall", TOOL)
    assert not (room.home / ".codex" / "hooks.json").exists()
    left = settings(room).read_text()
    assert left != with_trust
    assert "aver" not in left.replace(str(tmp_path), "")


HARMLESS: Turns = [
    [call("call_run", "exec_command", cmd="echo one > notes.txt; cat notes.txt")],
    [answer("That was all.")],
]


def test_hooks_that_nobody_trusts_are_not_run(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    with codex_room(tmp_path, aver_home, codex, HARMLESS) as (room, _):
        before = settings(room).read_text()
        room.aver("install", TOOL)
        session, _ = run(room)
        assert "runs only hooks that you trust" in standing(room)["why"]
        assert "runs only hooks that you trust" in room.aver("doctor")
    assert not (aver_home / "ledger.db").exists()
    room.aver("ingest", "--all")
    proved(room, TOOL, session, actions=1, denials=0)
    room.aver("uninstall", TOOL)
    assert settings(room).read_text() == before
    assert not (room.home / ".codex" / "hooks.json").exists()


def has_chain(name: str) -> bool:
    with open_ledger() as ledger:
        return ledger.head(name).count > 0


def test_one_without_hooks_tells_of_its_turns(codex_without_hooks: Path, tmp_path: Path, aver_home: Path) -> None:
    with codex_room(tmp_path, aver_home, codex_without_hooks, HARMLESS) as (room, _):
        before = settings(room).read_text()
        room.aver("install", TOOL)
        assert standing(room)["why"] == "NOT GATED: this version of Codex reports only the end of a turn"
        assert not standing(room)["gated"]
        session, _ = run(room)
        # Codex starts the notification and does not wait for it.
        assert wait_until(lambda: has_chain(f"{TOOL}.{session}"), 60, Pace(0.2, 0.2))
    with open_ledger() as ledger:
        (told,) = [record.to_dict() for record in ledger.read(f"{TOOL}.{session}")]
    assert told["outcome"]["summary"] == "turn ended: agent-turn-complete"
    room.aver("ingest", "--all")
    proved(room, TOOL, session, actions=1, denials=0)
    assert "codex: a test call passed each of notify" in room.aver("doctor")
    room.aver("uninstall", TOOL)
    assert settings(room).read_text() == before


UNSEEN = "--dangerously-bypass-hook-trust"
"""Run the hooks without anybody's trust, this once."""


def test_where_the_gate_cannot_decide_nothing_is_done(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    with codex_room(tmp_path, aver_home, codex, HARMLESS) as (room, stub):
        room.aver("install", TOOL)
        break_ledger(aver_home)
        run(room, UNSEEN)
    assert not (room.workspace / "notes.txt").exists()
    assert "Aver cannot judge this" in heard(stub, "call_run")


def test_it_goes_on_if_it_is_to_and_says_so(codex: Path, tmp_path: Path, aver_home: Path) -> None:
    with codex_room(tmp_path, aver_home, codex, HARMLESS) as (room, _):
        room.aver("install", TOOL)
        (aver_home / "config.toml").write_text('[hooks]\non_failure = "open"\n')
        break_ledger(aver_home)
        session, seen = run(room, UNSEEN)
        assert (room.workspace / "notes.txt").read_text() == "one\n"
        assert "hook: PostToolUse Failed" in seen

        mend_ledger(aver_home)
        run(room, UNSEEN)
    failures_are_sealed(TOOL, session)


@pytest.mark.parametrize("fault", ["renamed", "not executable"])
def test_an_aver_that_cannot_start_blocks(codex: Path, tmp_path: Path, aver_home: Path, fault: str) -> None:
    with codex_room(tmp_path, aver_home, codex, HARMLESS) as (room, stub):
        room.aver("install", TOOL)
        break_hooks(room.home / ".codex" / "hooks.json", tmp_path, fault)
        run(room, UNSEEN)
    assert not (room.workspace / "notes.txt").exists()
    assert "Aver could not be started" in heard(stub, "call_run")


CLEAN: Turns = [[call("call_clean", "exec_command", cmd="rm old.txt")], [answer("That was all.")]]


@pytest.mark.parametrize(
    ("installed_as", "cleaned"), [(None, True), ((), False), (("--auto-allow",), False), (("--observe",), True)]
)
def test_what_is_done(
    codex: Path, tmp_path: Path, aver_home: Path, installed_as: tuple[str, ...] | None, cleaned: bool
) -> None:
    with codex_room(tmp_path, aver_home, codex, CLEAN) as (room, _):
        (room.workspace / "old.txt").write_text("old")
        if installed_as is not None:
            room.aver("install", TOOL, "--only", "hooks", *installed_as)
        session, _ = run(room, UNSEEN)
    assert (room.workspace / "old.txt").exists() != cleaned
    if installed_as is not None:
        with open_ledger() as ledger:
            [record] = ledger.read(f"gate.{session}")
        result = record.to_dict()["outcome"]["result"]
        observes = "--observe" in installed_as
        assert (result["decision"], result["mode"]) == ("human_review", "observe" if observes else "enforce")
        # Codex has no prompt that a hook could ask for, so its hook holds the call back.
        assert result["answer"] == ("leave" if observes else "deny")
