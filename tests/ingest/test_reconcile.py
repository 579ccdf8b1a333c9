"""What was sealed is held to the transcript: every change to it is found, and nothing else is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.ingest.contract import AgentCall, AgentEvent
from aver.ingest.reconcile import ReconcileCounts, Reconciliation, reconcile
from aver.ingest.seal import TranscriptFollower, seal_event
from aver.ledger import Ledger, open_ledger
from support.agents.jsonl_tool import ADAPTER, call, done, source_at, write


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def transcript(tmp_path: Path, ledger: Ledger) -> Path:
    path = write(
        tmp_path / "one.jsonl", {"say": "go"}, call("a"), done("a", "1"), {"junk": 0}, call("b"), done("b", "2")
    )
    follow(ledger, path)
    return path


def follow(ledger: Ledger, path: Path) -> None:
    follower = TranscriptFollower(ledger, ADAPTER, source_at(path))
    follower.step()
    follower.rest()


def reconciled(ledger: Ledger, *paths: Path) -> Reconciliation:
    chains = [name for name in ledger.chains() if name.startswith("ticker.")]
    return reconcile(ledger, ADAPTER, [source_at(path) for path in paths], chains)


def test_what_was_not_touched_is_verified(ledger: Ledger, transcript: Path) -> None:
    verdict, counts = reconciled(ledger, transcript)
    assert (verdict.status, counts) == ("verified", ReconcileCounts(sealed_and_seen=3))
    assert verdict.check("transcript").status == "passed"


def test_all_chains_of_a_session_are_counted(ledger: Ledger, transcript: Path, tmp_path: Path) -> None:
    """What does not apply to one of them hides nothing of the others: here, the blob of one."""
    kid = write(tmp_path / "one~kid.jsonl", call("k"), done("k", "x" * 40_000))
    follow(ledger, kid)
    verdict, counts = reconciled(ledger, transcript, kid)
    assert (verdict.status, verdict.chains, counts) == ("verified", 2, ReconcileCounts(sealed_and_seen=4))
    assert verdict.check("content").count == verdict.records == 4
    assert (verdict.check("blobs").status, verdict.check("blobs").count) == ("passed", 1)
    assert verdict.check("meta").reason == "only one chain was verified", "said once, not of one chain alone"


@pytest.mark.parametrize("line", range(6))
def test_each_changed_line_is_found(ledger: Ledger, transcript: Path, line: int) -> None:
    lines = transcript.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b": ", b":", 1)
    transcript.write_bytes(b"".join(lines))
    verdict, counts = reconciled(ledger, transcript)
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, verdict.first_bad.code) == ("transcript", "ARTIFACT_HASH_MISMATCH")
    assert counts.mismatched > 0


@pytest.mark.parametrize("line", range(6))
def test_each_removed_line_is_found(ledger: Ledger, transcript: Path, line: int) -> None:
    lines = transcript.read_bytes().splitlines(keepends=True)
    del lines[line]
    transcript.write_bytes(b"".join(lines))
    assert reconciled(ledger, transcript).verdict.status == "failed"


@pytest.mark.parametrize("line", range(6))
def test_each_inserted_line_is_found(ledger: Ledger, transcript: Path, line: int) -> None:
    lines = transcript.read_bytes().splitlines(keepends=True)
    lines.insert(line, b'{"say": "I never said that"}\n')
    transcript.write_bytes(b"".join(lines))
    assert reconciled(ledger, transcript).verdict.status == "failed"


@pytest.mark.more
def test_each_flipped_byte_is_found(ledger: Ledger, transcript: Path) -> None:
    whole = transcript.read_bytes()
    for at in range(len(whole)):
        transcript.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert reconciled(ledger, transcript).verdict.status == "failed", at


def test_what_is_new_is_not_sealed_yet(ledger: Ledger, transcript: Path) -> None:
    write(transcript, call("c"), done("c"))
    verdict, counts = reconciled(ledger, transcript)
    assert (verdict.status, counts.seen_not_sealed) == ("qualified", 1)
    assert verdict.check("transcript").code == "NOT_SEALED"


def test_a_transcript_that_is_gone_leaves_what_was_sealed(ledger: Ledger, transcript: Path) -> None:
    transcript.unlink()
    verdict, _ = reconciled(ledger)
    assert (verdict.status, verdict.check("transcript").code) == ("qualified", "ARTIFACT_MISSING")


def test_a_transcript_that_was_emptied_is_found(ledger: Ledger, transcript: Path) -> None:
    transcript.write_bytes(b"")
    verdict, counts = reconciled(ledger, transcript)
    assert (verdict.status, counts.sealed_not_seen) == ("failed", 3)


def test_a_call_that_only_a_hook_saw_is_named(ledger: Ledger, transcript: Path) -> None:
    seen = AgentCall(tool="Bash", id="ghost", ok=True)
    seal_event(ledger, "ticker", "one", AgentEvent(what="call", key="ghost", summary="Bash", call=seen))
    verdict, counts = reconciled(ledger, transcript)
    assert (verdict.status, counts.sealed_not_seen) == ("qualified", 1)
    assert "a hook saw ticker:one:ghost" in verdict.check("transcript").reason


def test_hook_and_transcript_together_are_verified(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", call("a", command="ls"), done("a", "x"))
    told = AgentCall(tool="Bash", id="a", arguments={"command": "ls"}, result="x", ok=True)
    seal_event(ledger, "ticker", "one", AgentEvent(what="call", key="a", summary="Bash", call=told))
    follow(ledger, path)
    assert reconciled(ledger, path).verdict.status == "verified"


def test_hook_and_transcript_that_tell_of_other_arguments_are_named(ledger: Ledger, tmp_path: Path) -> None:
    told = AgentCall(tool="Bash", id="a", arguments={"command": "rm -r /"}, result="x", ok=True)
    seal_event(ledger, "ticker", "one", AgentEvent(what="call", key="a", summary="Bash", call=told))
    path = write(tmp_path / "one.jsonl", call("a", command="ls"), done("a", "x"))
    follow(ledger, path)
    verdict, counts = reconciled(ledger, path)
    assert (verdict.status, counts.mismatched) == ("qualified", 1)
    assert "differ about ticker:one:a: arguments" in verdict.check("transcript").reason


def test_what_is_no_whole_record_is_named(ledger: Ledger, transcript: Path) -> None:
    with transcript.open("ab") as file:
        file.write(b'{"say": "I never said that"}')
    verdict, _ = reconciled(ledger, transcript)
    assert verdict.status == "qualified"
    assert "ends with 28 bytes" in verdict.check("transcript").reason


def test_the_call_of_another_agent_is_not_taken_for_its_own(ledger: Ledger, transcript: Path, tmp_path: Path) -> None:
    kid = write(tmp_path / "one~kid.jsonl", {"junk": 1})
    follow(ledger, kid)
    with kid.open("ab") as file:
        file.write(b'{"call": "a", "tool": "Bash"}\n{"done": "a", "out": "never sealed"}\n')
    verdict, counts = reconciled(ledger, transcript, kid)
    assert (verdict.status, counts.seen_not_sealed) == ("qualified", 1)


def test_a_session_that_goes_on_in_another_directory_is_two_transcripts(ledger: Ledger, tmp_path: Path) -> None:
    sources = [
        replace(source_at(write(tmp_path / below / "one.jsonl", {"odd": below}, call(below), done(below))), below=below)
        for below in ("here", "there")
    ]
    for source in (*sources, *sources):
        follower = TranscriptFollower(ledger, ADAPTER, source)
        assert follower.step().notes == ()
        follower.rest()
    verdict, counts = reconcile(ledger, ADAPTER, sources, ["ticker.one"])
    assert (verdict.status, counts) == ("verified", ReconcileCounts(sealed_and_seen=4))
    sources[0].path.write_bytes(sources[0].path.read_bytes().replace(b"here", b"hare"))
    assert reconcile(ledger, ADAPTER, sources, ["ticker.one"]).verdict.status == "failed"


def test_a_forged_transcript_does_not_stand_for_the_real_one(ledger: Ledger, tmp_path: Path) -> None:
    forged = source_at(write(tmp_path / "0" / "one.jsonl", call("a", command="ls"), done("a", "harmless")))
    follower = TranscriptFollower(ledger, ADAPTER, replace(forged, below="0"))
    follower.step()
    follower.rest()
    real = source_at(write(tmp_path / "1" / "one.jsonl", call("a", command="rm -r /"), done("a", "gone")))
    follower = TranscriptFollower(ledger, ADAPTER, replace(real, below="1"))
    follower.step()
    follower.rest()
    sources = [replace(forged, below="0"), replace(real, below="1")]
    verdict, counts = reconcile(ledger, ADAPTER, sources, ["ticker.one"])
    assert (verdict.status, counts.seen_not_sealed) == ("failed", 1)


def test_a_tampered_ledger_fails_here_too(ledger: Ledger, transcript: Path, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "ledger.db") as store:
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in names:
            store.execute(f"DROP TRIGGER {name}")
        store.execute("UPDATE records SET canonical = replace(canonical, 'Bash', 'Bush') WHERE sequence = 1")
    assert reconciled(ledger, transcript).verdict.status == "failed"


WRONG = (None, True, -1, 2**63, 1.5, "x", [], [[]], [None, {}], {}, {"count": -9}, {"differs": [[]], "via": 1})


@pytest.mark.more
def test_any_part_of_a_record_may_be_damaged(ledger: Ledger, transcript: Path, tmp_path: Path) -> None:
    """Each value of a sealed record in turn becomes one of another type: a failed verdict at its place, no crash."""
    import sqlite3

    store = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    store.execute("DROP TRIGGER records_stay_as_they_are")
    where = "chain = (SELECT chain FROM chains WHERE name = 'ticker.one') AND sequence = 1"
    (kept,) = store.execute(f"SELECT canonical FROM records WHERE {where}").fetchone()

    def damaged(value: Any) -> Iterator[Any]:
        """Copies of a value with one part of it wrong or missing."""
        yield from WRONG
        if isinstance(value, dict):
            for key, part in value.items():
                yield {name: other for name, other in value.items() if name != key}
                for wrong in damaged(part):
                    yield {**value, key: wrong}
        elif isinstance(value, list):
            for at, part in enumerate(value):
                for wrong in damaged(part):
                    yield [*value[:at], wrong, *value[at + 1 :]]

    every = list(damaged(json.loads(kept)))
    assert len(every) > 500
    for content in every[:: max(1, len(every) // 150)]:
        raw = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        if raw == kept:
            continue  # The wrong value was the right one.
        store.execute(f"UPDATE records SET canonical = ? WHERE {where}", (raw,))
        verdict = reconciled(ledger, transcript).verdict
        assert verdict.status == "failed"
        assert ("ticker.one", 1) in {(one.place.chain, one.place.sequence) for one in verdict.findings}
    store.execute(f"UPDATE records SET canonical = ? WHERE {where}", (b"not JSON",))
    assert reconciled(ledger, transcript).verdict.check("transcript").code == "SCHEMA_INVALID"
    store.close()


# --- git


def test_a_file_that_was_committed_and_that_nothing_sealed_changed_is_named(ledger: Ledger, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def git(*arguments: str, at: str = "2026-05-31T09:00:30Z") -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        subprocess.run(["git", *who, *arguments], cwd=work, env=dates, check=True, capture_output=True)

    git("init", "-q")
    for name in ("sealed.py", "secret.py"):
        (work / name).write_text("x = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    edit = AgentCall(tool="Edit", id="e", ok=True)
    for key, at, effects in (
        ("s", "2026-05-31T09:00:00Z", ()),
        ("e", "2026-05-31T09:00:20Z", (f"edited {work}/sealed.py",)),
        ("t", "2026-05-31T09:01:00Z", ()),
    ):
        what = "call" if effects else "note"
        event = AgentEvent(
            what=what, key=key, summary=key, at=at, side_effects=effects, environment={"cwd": str(work)},
            call=edit if effects else None,
        )  # fmt: skip
        seal_event(ledger, "ticker", "one", event)
    check = reconciled(ledger).verdict.check("git")
    assert (check.status, check.count) == ("warning", 1)
    assert "secret.py was committed" in check.reason
