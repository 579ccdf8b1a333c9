"""`aver ingest`, `aver watch` and `aver reconcile`, as a person runs them, on one session of each tool."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from aver.agents.claude_code.demo import SESSION as CLAUDE_SESSION
from aver.agents.registry import AGENTS, load_agent
from aver.files.user_dirs import UserEnvironment
from support.aver_command import Aver

pytestmark = pytest.mark.both_stores

TOOLS = ("claude-code", "codex", "cursor", "cline")


@pytest.fixture
def user(aver: Aver) -> Aver:
    """The command of a user who has used all four tools."""
    home = aver.directory / "user"
    for name in AGENTS:
        load_agent(name).write_demo(UserEnvironment(home, {}))
    aver.environment["HOME"] = str(home)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        aver.environment.pop(name, None)
    return aver


def transcript(user: Aver) -> Path:
    return next(Path(user.environment["HOME"]).rglob(f"{CLAUDE_SESSION}.jsonl"))


@pytest.mark.more
def test_all_transcripts_are_sealed_once(user: Aver) -> None:
    first = user("ingest", "--all", "--json")
    assert first.code == 0, first.err
    assert {entry["tool"] for entry in first.json["transcripts"]} == set(TOOLS)
    assert all(entry["state"] == "read" and entry["sealed"] > 0 for entry in first.json["transcripts"])
    assert first.json["unknown"] == 0
    second = user("ingest", "--all", "--json")
    assert second.json["sealed"] == 0
    assert {entry["state"] for entry in second.json["transcripts"]} == {"unchanged"}
    again = user("ingest", "--all", "--again", "--json")
    assert again.json["sealed"] == 0
    assert {entry["state"] for entry in again.json["transcripts"]} == {"read"}
    assert user("verify").code == 0


@pytest.mark.more
def test_what_a_person_sees(user: Aver) -> None:
    ran = user("ingest", "--all")
    assert f"records sealed from {len(AGENTS)} transcripts" in ran.out
    assert "Claude Code deletes its transcripts after 30 days" in ran.err
    assert "unchanged" in user("ingest", "--all").out


@pytest.mark.more
def test_one_session_by_id_by_its_beginning_and_by_its_file(user: Aver) -> None:
    assert user("ingest", CLAUDE_SESSION[:8]).code == 0
    assert user("log", f"claude-code.{CLAUDE_SESSION}").code == 0
    assert user("ingest", CLAUDE_SESSION, "--json").json["sealed"] == 0
    assert user("ingest", transcript(user), "--json").json["transcripts"][0]["session"] == CLAUDE_SESSION
    chains = user("log", "--json").json
    assert not any(tool in str(chains) for tool in ("codex.", "cursor.", "cline."))


def test_what_is_not_there_and_what_is_not_said(user: Aver) -> None:
    assert user("ingest").code == 2
    assert user("ingest", "--all", CLAUDE_SESSION).code == 2
    missing = user("ingest", "no-such-session")
    assert (missing.code, "there is no transcript of" in missing.err) == (2, True)
    assert user("ingest", "--all", "--tool", "nothing").code == 2


def test_reconciling_finds_what_was_edited_afterwards(user: Aver) -> None:
    user("ingest", "--all")
    good = user("reconcile", CLAUDE_SESSION[:8])
    assert (good.code, "verified" in good.out, "sealed and seen" in good.out) == (0, True, True)
    path = transcript(user)
    path.write_bytes(path.read_bytes().replace(b"pytest -q", b"pytest -x"))
    bad = user("reconcile", f"claude-code.{CLAUDE_SESSION}", "--json")
    assert bad.code == 1
    assert bad.json["first_bad"]["code"] == "ARTIFACT_HASH_MISMATCH"
    assert bad.json["reconciled"]["mismatched"] >= 1
    assert user("verify").code == 0  # The ledger itself is as it was.


def test_reconciling_what_was_never_sealed(user: Aver) -> None:
    user("ingest", "--all", "--tool", "codex")
    missing = user("reconcile", CLAUDE_SESSION)
    assert (missing.code, "no session" in missing.err) == (2, True)


def test_a_transcript_that_its_tool_deleted_leaves_a_qualified_verdict(user: Aver) -> None:
    user("ingest", "--all")
    transcript(user).unlink()
    ran = user("reconcile", CLAUDE_SESSION, "--json")
    assert (ran.code, ran.json["status"]) == (0, "qualified")
    assert user("reconcile", CLAUDE_SESSION, "--strict").code == 1


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_watching_seals_what_is_written_and_ends_when_told(user: Aver, ending: signal.Signals) -> None:
    watching = user.started("watch", "--tool", "claude-code")
    assert watching.stdout is not None
    assert watching.stderr is not None
    assert b"watching 1 folder" in watching.stderr.readline()
    path = transcript(user)
    path.touch()  # It is not known to the ledger: it is taken up when it changes.
    for _ in range(600):
        os.utime(path)
        if user("log", f"claude-code.{CLAUDE_SESSION}").code == 0:
            break
        time.sleep(0.1)
    watching.send_signal(ending)
    out, err = watching.communicate()
    assert (watching.returncode, err) == (0, b"")
    assert b"5 records sealed" in out
    assert user("reconcile", CLAUDE_SESSION).code == 0
