"""What was sealed is held to the transcript: every change to it is found, and nothing else is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.ingest.contract import AgentCall, AgentEvent, TranscriptSource
from aver.ingest.reconcile import ReconcileCounts, Reconciliation, reconcile
from aver.ingest.seal import TranscriptFollower, seal_event
from aver.ledger import Ledger, open_ledger
from aver.verdict import explain_code
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
    assert (verdict.check("blobs").status, verdict.check("blobs").count) == ("passed", 2)  # One blob, named twice.
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


def in_directories(tmp_path: Path, **records: list[dict[str, Any]]) -> list[TranscriptSource]:
    """Transcripts of one session in several directories."""
    return [
        replace(source_at(write(tmp_path / below / "one.jsonl", *lines)), below=below)
        for below, lines in records.items()
    ]


def follow_sources(ledger: Ledger, sources: list[TranscriptSource]) -> list[str]:
    """Seal transcripts, and return the chains of the session. What comes again seals nothing."""
    for round_ in (1, 2):
        for source in sources:
            follower = TranscriptFollower(ledger, ADAPTER, source)
            done = follower.step() + follower.rest()
            assert round_ == 1 or (done.sealed, done.children, done.notes) == (0, 0, ())
    return [name for name in ledger.chains() if name.startswith("ticker.")]


def test_a_session_that_goes_on_in_another_directory_is_two_transcripts(ledger: Ledger, tmp_path: Path) -> None:
    sources = in_directories(
        tmp_path, **{below: [{"odd": below}, call(below), done(below)] for below in ("here", "there")}
    )
    chains = follow_sources(ledger, sources)
    assert len(chains) == 2
    assert chains[1].startswith("ticker.one.other-")
    verdict, counts = reconcile(ledger, ADAPTER, sources, chains)
    # The note about the other one rests on nothing, and is counted as seen.
    assert (verdict.status, counts) == ("qualified", ReconcileCounts(sealed_and_seen=5))
    assert [finding.code for finding in verdict.findings if finding.check == "transcript"] == ["CHAIN_IDENTITY"]
    sources[0].path.write_bytes(sources[0].path.read_bytes().replace(b"here", b"hare"))
    assert reconcile(ledger, ADAPTER, sources, chains).verdict.status == "failed"


def test_a_forged_transcript_does_not_stand_for_the_real_one(ledger: Ledger, tmp_path: Path) -> None:
    """Each has a chain of its own, though both use one id for their calls."""
    sources = in_directories(
        tmp_path,
        forged=[call("a", command="ls"), done("a", "harmless")],
        real=[call("a", command="rm -r /"), done("a", "gone")],
    )
    chains = follow_sources(ledger, sources)
    commands = [str(record.to_dict()["execution"]["tool_calls"]) for chain in chains for record in ledger.read(chain)]
    assert [chain for chain in chains if any("rm -r" in str(each.to_dict()) for each in ledger.read(chain))] == [
        chains[1]
    ]
    assert sum("harmless" in text for text in commands) == sum("gone" in text for text in commands) == 1
    verdict, counts = reconcile(ledger, ADAPTER, sources, chains)
    assert (verdict.status, counts.seen_not_sealed) == ("qualified", 0)
    # As long as the real one is not sealed, it is named.
    assert reconcile(ledger, ADAPTER, sources, chains[:1]).verdict.check("transcript").status != "passed"


def test_a_record_id_of_the_honest_transcript_does_not_keep_its_record_out(ledger: Ledger, tmp_path: Path) -> None:
    sources = in_directories(
        tmp_path,
        evil=[{"say": "go"}, call("a", command="evil"), done("a")],
        honest=[{"say": "hello"}, call("a", command="honest"), done("a"), call("b"), done("b")],
    )
    chains = follow_sources(ledger, sources)
    assert [len(list(ledger.read(chain))) for chain in chains] == [2, 4]
    assert "evil" not in str([record.to_dict()["execution"] for record in ledger.read(chains[1])])


def test_a_transcript_that_was_moved_goes_on_in_its_chain(ledger: Ledger, tmp_path: Path) -> None:
    (old,) = in_directories(tmp_path, old=[{"say": "go"}, call("a"), done("a")])
    assert follow_sources(ledger, [old]) == ["ticker.one"]
    (tmp_path / "new").mkdir()
    new = replace(source_at(old.path.rename(tmp_path / "new" / "one.jsonl")), below="new")
    write(new.path, call("b"), done("b"))
    assert follow_sources(ledger, [new]) == ["ticker.one"]
    write(new.path, call("c"), done("c"))
    assert follow_sources(ledger, [new]) == ["ticker.one"]


def test_a_copy_that_goes_on_where_the_other_stopped_shares_its_chain(ledger: Ledger, tmp_path: Path) -> None:
    """So does a session that is resumed elsewhere from a copy; both stay in the chain from then on."""
    lines = [{"say": "go"}, call("a"), done("a")]
    (first,) = in_directories(tmp_path, first=lines)
    assert follow_sources(ledger, [first]) == ["ticker.one"]
    (second,) = in_directories(tmp_path, second=[*lines, call("b"), done("b")])
    assert follow_sources(ledger, [second, first]) == ["ticker.one"]


def test_a_copy_that_goes_another_way_has_a_chain_of_its_own(ledger: Ledger, tmp_path: Path) -> None:
    common = [{"say": "go"}, call("a"), done("a")]
    sources = in_directories(tmp_path, first=[*common, call("b"), done("b")], second=[*common, call("c"), done("c")])
    assert len(follow_sources(ledger, sources)) == 2


def test_a_chain_that_hooks_began_belongs_to_the_first_transcript(ledger: Ledger, tmp_path: Path) -> None:
    seal_event(ledger, "ticker", "one", AgentEvent(what="note", key="hook-start", summary="session started"))
    sources = in_directories(tmp_path, a=[call("x"), done("x")], b=[call("y"), done("y")])
    chains = follow_sources(ledger, sources)
    assert chains[0] == "ticker.one"
    assert "ticker:one:x" in str([record.to_dict() for record in ledger.read("ticker.one")])
    assert len(chains) == 2


def test_a_transcript_that_was_empty_at_first_is_told_apart_when_it_has_records(ledger: Ledger, tmp_path: Path) -> None:
    (honest,) = in_directories(tmp_path, honest=[call("a"), done("a")])
    follow_sources(ledger, [honest])
    (late,) = in_directories(tmp_path, late=[])
    follower = TranscriptFollower(ledger, ADAPTER, late)
    assert follower.step().records == 0
    write(late.path, call("b"), done("b"))
    assert len(follower.step().notes) == 1
    assert follower.step().notes == ()
    assert len(list(ledger.read("ticker.one"))) == 1


def test_both_texts_are_shown_where_hook_and_transcript_differ(ledger: Ledger, tmp_path: Path) -> None:
    told = AgentCall(tool="Bash", id="a", arguments={"command": "ls"}, ok=True)
    seal_event(ledger, "ticker", "one", AgentEvent(what="call", key="a", summary="Bash: ls", call=told))
    path = write(tmp_path / "one.jsonl", call("a", command="rm -r /"), done("a"))
    follow(ledger, path)
    verdict, counts = reconciled(ledger, path)
    (finding,) = [found for found in verdict.findings if found.check == "transcript"]
    assert "sealed first {'command': 'ls'}, later {'command': 'rm -r /'}" in finding.words
    assert counts.mismatched == 1
    assert "Compare both" in explain_code(finding.code, finding.check)


@pytest.mark.parametrize(
    ("later", "mismatched"),
    [
        ({"file_path": "/w/shop/b.txt", "content": "x"}, 0),
        ({"file_path": "/w/shop/../shop/b.txt", "content": "x"}, 0),
        ({"file_path": "/w/b.txt", "content": "x"}, 1),
        ({"file_path": "/w/shop/b.txt", "content": "y"}, 1),
        ({"file_path": "/w/shop/b.txt"}, 1),
    ],
)
def test_a_path_that_was_made_absolute_is_no_difference(
    ledger: Ledger, tmp_path: Path, later: dict[str, str], mismatched: int
) -> None:
    told = AgentCall(tool="Write", id="a", arguments={"file_path": "b.txt", "content": "x"}, ok=True)
    event = AgentEvent(what="call", key="a", summary="Write: b.txt", call=told, environment={"cwd": "/w/shop"})
    seal_event(ledger, "ticker", "one", event)
    path = write(tmp_path / "one.jsonl", call("a", "Write", **later), done("a"))
    follow(ledger, path)
    assert reconciled(ledger, path).counts.mismatched == mismatched


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
