"""Each event once, whoever comes first and whatever goes wrong; and the transcript bound byte for byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.ingest.contract import AgentCall, AgentEvent
from aver.ingest.seal import BATCH_SIZE, START_DIGEST, TranscriptFollower, seal_event
from aver.ledger import Ledger, open_ledger
from support.agents import jsonl_tool as ticker
from support.agents.jsonl_tool import ADAPTER, call, done, source_at, write

CHAIN = "ticker.one"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return write(tmp_path / "one.jsonl", {"say": "tidy up"}, call("c1", command="ls"), {"junk": 1}, done("c1", "a b"))


def follower(ledger: Ledger, path: Path) -> TranscriptFollower:
    return TranscriptFollower(ledger, ADAPTER, source_at(path))


def contents(ledger: Ledger, chain: str = CHAIN) -> list[dict[str, Any]]:
    return [record.to_dict() for record in ledger.read(chain)]


def keys(ledger: Ledger, chain: str = CHAIN) -> list[str]:
    return [content["context"]["environment"]["aver"]["key"] for content in contents(ledger, chain)]


def test_a_deed_is_sealed_when_it_is_whole(ledger: Ledger, transcript: Path) -> None:
    following = follower(ledger, transcript)
    assert following.step().sealed == 2
    assert keys(ledger) == ["ticker:one:p1", "ticker:one:c1"]
    write(transcript, call("c2"))
    assert following.step().sealed == 0
    write(transcript, done("c2"))
    assert following.step().sealed == 1
    assert ledger.verify().status == "verified"


def test_the_capsule_binds_its_records_and_all_before_it(ledger: Ledger, transcript: Path) -> None:
    follower(ledger, transcript).step()
    lines = transcript.read_bytes().splitlines()
    digests = [hashlib.sha256(line).digest() for line in lines]
    through = START_DIGEST
    for digest in digests:
        through = hashlib.sha256(through + digest).digest()
    assert contents(ledger)[1]["context"]["environment"]["transcript"] == {
        "file": "one.jsonl",
        "records": [["2", digests[1].hex()], ["4", digests[3].hex()]],
        "through": {"count": 4, "digest": through.hex()},
    }


def test_reading_it_again_seals_nothing_new(ledger: Ledger, transcript: Path) -> None:
    follower(ledger, transcript).step()
    again = follower(ledger, transcript).step()
    assert (again.records, again.sealed, again.notes) == (4, 0, ())
    write(transcript, call("c2"), done("c2"))
    assert follower(ledger, transcript).step().sealed == 1
    assert keys(ledger) == ["ticker:one:p1", "ticker:one:c1", "ticker:one:c2"]


def test_two_at_once_seal_each_once(ledger: Ledger, transcript: Path, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as other:
        first, second = follower(ledger, transcript), follower(other, transcript)
        for number in range(20):
            write(transcript, call(f"x{number}"), done(f"x{number}"))
            (first if number % 3 else second).step()
            (second if number % 2 else first).step()
    found = keys(ledger)
    assert len(found) == len(set(found)) == 22
    assert ledger.verify().status == "verified"


def test_a_torn_last_line_waits(ledger: Ledger, transcript: Path) -> None:
    following = follower(ledger, transcript)
    following.step()
    with transcript.open("ab") as file:
        file.write(b'{"say": "ha')
        file.flush()
        assert following.step().records == 0
        file.write(b'lf"}\n')
    assert following.step().sealed == 1
    assert contents(ledger)[-1]["trigger"]["request"] == "half"


# --- hooks


def hooked(key: str, result: Any = "a b", **more: Any) -> AgentEvent:
    told = AgentCall(tool="Bash", id=key, arguments={"command": "ls"}, result=result, ok=True)
    return AgentEvent(what="call", key=key, summary="Bash", call=told, **more)


def test_a_hook_first_and_the_transcript_adds_to_it(ledger: Ledger, transcript: Path) -> None:
    first = seal_event(ledger, "ticker", "one", hooked("c1"))
    done_ = follower(ledger, transcript).step()
    assert (done_.sealed, done_.children) == (1, 1)
    tools = [content for content in contents(ledger) if content["type"] == "tool"]
    assert [content["id"] for content in tools] == [first.to_dict()["id"]]
    child = contents(ledger)[-1]
    assert child["parent_id"] == first.to_dict()["id"]
    assert child["outcome"]["result"] == {"via": "transcript", "agrees": True}
    assert follower(ledger, transcript).step().children == 0
    assert seal_event(ledger, "ticker", "one", hooked("c1")).hash == first.hash


def test_what_hook_and_transcript_say_differently_is_named(ledger: Ledger, transcript: Path) -> None:
    seal_event(ledger, "ticker", "one", hooked("c1", result="something else"))
    follower(ledger, transcript).step()
    result = contents(ledger)[-1]["outcome"]["result"]
    assert (result["agrees"], result["differs"], result["says"]) == (False, ["result"], {"result": "a b"})


def test_long_results_are_the_same_from_both(ledger: Ledger, tmp_path: Path) -> None:
    long = "word " * 20_000
    path = write(tmp_path / "one.jsonl", call("c1", command="ls"), done("c1", long))
    seal_event(ledger, "ticker", "one", hooked("c1", result=long))
    follower(ledger, path).step()
    assert contents(ledger)[-1]["outcome"]["result"]["agrees"] is True


def test_a_hook_after_the_transcript_adds_to_it(ledger: Ledger, transcript: Path) -> None:
    follower(ledger, transcript).step()
    child = seal_event(ledger, "ticker", "one", hooked("c1")).to_dict()
    assert child["parent_id"] == contents(ledger)[1]["id"]
    assert seal_event(ledger, "ticker", "one", hooked("c1")).to_dict()["id"] == child["id"]


def test_a_hook_that_is_faster_than_a_running_follower(ledger: Ledger, transcript: Path) -> None:
    following = follower(ledger, transcript)
    seal_event(ledger, "ticker", "one", hooked("c1"))
    following.step()
    assert keys(ledger) == ["ticker:one:c1", "ticker:one:p1", "ticker:one:c1:transcript"]


# --- ends and accidents


def test_what_never_ended_is_sealed_as_unknown_and_corrected_when_it_ends(ledger: Ledger, transcript: Path) -> None:
    write(transcript, call("c9"))
    following = follower(ledger, transcript)
    following.step()
    following.end()
    lost = ledger.get("ticker:one:c9").to_dict()  # type: ignore[union-attr]
    assert (lost["outcome"]["status"], lost["outcome"]["error"]) == ("pending", "OUTCOME_UNKNOWN")
    write(transcript, done("c9", "after all"))
    assert following.step().children == 1
    late = contents(ledger)[-1]
    assert late["parent_id"] == lost["id"]
    assert late["outcome"]["result"]["says"]["result"] == "after all"
    assert follower(ledger, transcript).step().children == 0


def test_resting_seals_also_what_says_nothing(ledger: Ledger, transcript: Path) -> None:
    write(transcript, {"junk": 2}, {"junk": 3})
    following = follower(ledger, transcript)
    following.step()
    assert following.rest().sealed == 1
    assert contents(ledger)[-1]["context"]["environment"]["transcript"]["through"]["count"] == 6
    assert following.rest().sealed == 0


def test_ending_twice_changes_nothing(ledger: Ledger, transcript: Path) -> None:
    following = follower(ledger, transcript)
    following.step()
    following.end()
    heads = ledger.heads()
    following.end()
    again = follower(ledger, transcript)
    again.step()
    again.end()
    assert ledger.heads() == heads
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("line", range(4))
def test_a_changed_line_is_noticed_when_it_is_followed_again(ledger: Ledger, transcript: Path, line: int) -> None:
    follower(ledger, transcript).step()
    lines = transcript.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"', b' "', 1)
    transcript.write_bytes(b"".join(lines))
    write(transcript, {"say": "more"})
    found = follower(ledger, transcript).step()
    assert any("changed after it was sealed" in note for note in found.notes)
    assert follower(ledger, transcript).step().notes == ()  # It is sealed now, and told once.


def test_a_cut_transcript_is_noticed(ledger: Ledger, transcript: Path) -> None:
    following = follower(ledger, transcript)
    following.step()
    whole = transcript.read_bytes()
    transcript.write_bytes(whole[: whole.index(b"\n") + 1])
    assert any("cut or replaced" in note for note in follower(ledger, transcript).step().notes)
    transcript.unlink()
    transcript.write_bytes(b'{"say": "another"}\n')
    assert any("cut or replaced" in note for note in following.step().notes)
    assert ledger.verify().status == "verified"


def test_unknown_records_are_kept_raw_and_counted(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", {"novelty": {"a": [1, 2]}}, {"say": "go"})
    with path.open("ab") as file:
        file.write(b"{not json\n\xff\xfe\n")
    found = follower(ledger, path).step()
    assert (found.sealed, found.unknown) == (4, 3)
    assert contents(ledger)[0]["outcome"]["result"] == {"novelty": {"a": [1, 2]}}


def test_a_record_that_no_capsule_holds_does_not_stop_the_others(ledger: Ledger, tmp_path: Path) -> None:
    crowd = {f"k{number}": "x" * 15_000 for number in range(40)}
    path = write(
        tmp_path / "one.jsonl", call("a"), done("a"), call("b", **crowd), done("b", crowd), call("c"), done("c")
    )
    assert follower(ledger, path).step().sealed == 3
    assert keys(ledger) == ["ticker:one:a", "ticker:one:b", "ticker:one:c"]
    assert ledger.verify().status == "verified"


def test_a_number_that_json_has_and_capsules_have_not(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"call":"a","tool":"T","in":{"n":NaN,"big":123456789012345678901234567890}}\n{"done":"a"}\n')
    assert follower(ledger, path).step().sealed == 1
    assert contents(ledger)[0]["execution"]["tool_calls"][0]["arguments"]["n"] == "NaN"


# --- subagents


def test_a_subagent_and_the_call_that_launched_it_know_each_other(ledger: Ledger, tmp_path: Path) -> None:
    child = write(tmp_path / "one~kid.jsonl", {"say": "look around"})
    parent = write(tmp_path / "one.jsonl", call("t1", "Task"), done("t1", agent="kid"))
    follower(ledger, child).step()
    follower(ledger, parent).step()
    launch = contents(ledger)[0]
    assert launch["context"]["environment"]["subagent"] == {"id": "kid", "chain": "ticker.one.kid"}
    note = contents(ledger, "ticker.one.kid")[-1]
    assert note["parent_id"] == launch["id"]
    assert note["context"]["environment"]["launched_by"] == "ticker:one:t1"
    follower(ledger, parent).step()
    assert len(contents(ledger, "ticker.one.kid")) == 2


def test_two_agents_that_call_their_calls_alike_lose_none(ledger: Ledger, tmp_path: Path) -> None:
    paths = [
        write(tmp_path / name, call("call_0", who=name), done("call_0", name))
        for name in ("one.jsonl", "one~a.jsonl", "one~b.jsonl")
    ]
    for _ in range(2):
        for path in paths:
            follower(ledger, path).step()
    results = [
        contents(ledger, chain)[0]["execution"]["tool_calls"][0]["result"]
        for chain in (CHAIN, f"{CHAIN}.a", f"{CHAIN}.b")
    ]
    assert results == ["one.jsonl", "one~a.jsonl", "one~b.jsonl"]
    assert [ledger.head(chain).count for chain in (CHAIN, f"{CHAIN}.a", f"{CHAIN}.b")] == [1, 1, 1]


def test_a_call_that_a_subagent_has_too_is_not_taken_for_sealed(ledger: Ledger, tmp_path: Path) -> None:
    parent = write(tmp_path / "one.jsonl", call("c0"), done("c0", agent="a"))
    follower(ledger, write(tmp_path / "one~a.jsonl", call("c1"), done("c1", "the subagent's"))).step()
    following = follower(ledger, parent)
    following.step()  # It knows both chains from now on.
    write(parent, call("c1"), done("c1", "its own"))
    following.step()
    assert contents(ledger)[-1]["execution"]["tool_calls"][0]["result"] == "its own"


def test_what_ends_later_is_added_to_the_call_of_its_own_agent(ledger: Ledger, tmp_path: Path) -> None:
    follower(ledger, write(tmp_path / "one.jsonl", call("c1"), done("c1", "another's"))).step()
    path = write(tmp_path / "one~a.jsonl", call("c1"))
    following = follower(ledger, path)
    following.step()
    following.end()
    write(path, done("c1", "its own"))
    following.step()
    begun, child = contents(ledger, f"{CHAIN}.a")
    assert (child["parent_id"], child["outcome"]["result"]["says"]["result"]) == (begun["id"], "its own")


def test_a_hook_tells_of_the_call_of_its_own_agent(ledger: Ledger, tmp_path: Path) -> None:
    follower(ledger, write(tmp_path / "one.jsonl", call("c1"), done("c1"))).step()
    for _ in range(2):
        told = AgentCall(tool="Bash", id="c1", result="seen", ok=True)
        seal_event(ledger, "ticker", "one", AgentEvent(what="call", key="c1", summary="Bash", call=told, agent="a"))
    (record,) = contents(ledger, f"{CHAIN}.a")
    assert record["execution"]["tool_calls"][0]["result"] == "seen"
    follower(ledger, write(tmp_path / "one~a.jsonl", call("c1"), done("c1", "seen"))).step()
    assert keys(ledger, f"{CHAIN}.a") == [f"ticker:one:c1@{CHAIN}.a", f"ticker:one:c1@{CHAIN}.a:transcript"]


def test_a_result_is_not_lost_where_another_took_the_call_for_lost(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", call("c1"))
    watching = follower(ledger, path)
    watching.step()
    other = follower(ledger, path)
    other.step()
    other.end()
    write(path, done("c1", "at last"))
    watching.step()
    assert contents(ledger)[-1]["outcome"]["result"]["says"]["result"] == "at last"
    assert follower(ledger, path).step().children == 0


@pytest.mark.parametrize("name", ["c1:hook", "c1:transcript"])
def test_a_transcript_cannot_take_the_place_of_what_is_added(ledger: Ledger, tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "one.jsonl", call(name), done(name), call("c1"), done("c1", "told"))
    seen = AgentEvent(
        what="call", key="c1", summary="Bash", call=AgentCall(tool="Bash", id="c1", result="seen", ok=True)
    )
    if name == "c1:hook":
        follower(ledger, path).step()
        seal_event(ledger, "ticker", "one", seen)
    else:
        seal_event(ledger, "ticker", "one", seen)
        follower(ledger, path).step()
    (child,) = [
        content
        for content in contents(ledger)
        if "adds_to" in content["context"]["environment"]["aver"].get("refs", {})
    ]
    assert child["outcome"]["result"]["differs"] == ["result"]


def told(**more: Any) -> AgentEvent:
    return AgentEvent(what="call", key="c1", summary="Bash", call=AgentCall(tool="Bash", id="c1", **more))


FORGED = ({"arguments": {}}, {"arguments": {"command": "ls"}, "result": "a b", "ok": True})


@pytest.mark.parametrize("forged", FORGED)
def test_no_hook_can_keep_out_what_another_tells_of_a_call(ledger: Ledger, forged: dict[str, Any]) -> None:
    """Whoever knows the id of a call while it runs could tell of it first."""
    true = told(arguments={"command": "rm -rf src"}, result="", ok=True)
    for event in (told(**forged), told(arguments={"command": "id"}), true, true, told(**forged)):
        seal_event(ledger, "ticker", "one", event)
    commands = [one["execution"]["tool_calls"][0]["arguments"].get("command") for one in contents(ledger)]
    assert commands == [forged["arguments"].get("command"), "id", "rm -rf src"]
    first, *others = contents(ledger)
    assert [one["parent_id"] for one in others] == [first["id"], first["id"]]


def test_no_hook_can_keep_out_what_another_adds_to_the_transcript(ledger: Ledger, transcript: Path) -> None:
    follower(ledger, transcript).step()
    before = len(contents(ledger))
    for command in ("ls", "id", "rm -rf src", "rm -rf src"):
        seal_event(ledger, "ticker", "one", told(arguments={"command": command}, result="a b", ok=True))
    agreed = [one["outcome"]["result"]["agrees"] for one in contents(ledger)[before:]]
    assert agreed == [True, False, False]


def test_an_event_that_comes_again_and_says_otherwise_is_told_again(ledger: Ledger) -> None:
    """A subagent that goes on ends twice, by one and the same name."""
    for words in ("found it", "found it", "and another"):
        ended = AgentEvent(what="session", key="hook-SubagentStop-a1", summary="subagent ended", result={"said": words})
        seal_event(ledger, "ticker", "one", ended)
    assert [one["outcome"]["result"]["said"] for one in contents(ledger)] == ["found it", "and another"]


@pytest.mark.parametrize("watched", [False, True])
def test_a_hook_cannot_take_the_place_of_what_was_said(ledger: Ledger, tmp_path: Path, watched: bool) -> None:
    """A call that a hook tells of has the id of a record that is no call: both are kept."""
    path = write(tmp_path / "one.jsonl", {"odd": "an answer"})
    key = next(iter(ADAPTER.parser(source_at(path)).feed(next(iter(ADAPTER.read(source_at(path))()))))).key
    following = follower(ledger, path) if watched else None
    seal_event(
        ledger, "ticker", "one", AgentEvent(what="call", key=key, summary="Bash", call=AgentCall(tool="Bash", id=key))
    )
    for _ in range(2):
        (following or follower(ledger, path)).step()
        follower(ledger, path).step()
    _, record = contents(ledger)
    assert "an answer" in str(record["outcome"]["result"])


def test_what_stands_in_the_place_of_another_is_sealed(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", {"odd": 1}, {"odd": 2}, {"odd": 3})
    following = follower(ledger, path)
    following.step()
    path.unlink()
    write(path, {"odd": 4}, {"odd": 5})
    assert len(following.step().notes) == 1
    told = [content["outcome"]["result"] for content in contents(ledger)]
    assert [result for result in told if "odd" in result] == [{"odd": number} for number in (1, 2, 3, 4, 5)]


def test_what_comes_after_it_was_emptied_is_counted_from_the_beginning(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", {"odd": 1}, {"odd": 2})
    following = follower(ledger, path)
    following.step()
    path.write_bytes(b"")
    assert len(following.step().notes) == 1
    write(path, {"odd": 3})
    following.step()
    assert contents(ledger)[-1]["context"]["environment"]["transcript"]["through"]["count"] == 1


# --- killed in the middle

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from support.agents.jsonl_tool import ADAPTER, source_at
from aver.ingest.seal import TranscriptFollower
from aver.ledger import open_ledger
ledger = open_ledger(sys.argv[1], home=Path(sys.argv[2]))
commits = 0
whole = ledger.append_many
def append_many(*given, **named):
    global commits
    commits += 1
    found = whole(*given, **named)
    if commits == int(sys.argv[5]):
        os.kill(os.getpid(), 9)
    return found
ledger.append_many = append_many
TranscriptFollower(ledger, ADAPTER, source_at(Path(sys.argv[3]))).step()
"""


@pytest.mark.more
@pytest.mark.parametrize("commit", [1, 2])
def test_killed_after_a_commit_nothing_is_lost_and_nothing_doubled(tmp_path: Path, commit: int) -> None:
    path = tmp_path / "one.jsonl"
    write(path, *(one for number in range(2 * BATCH_SIZE + 10) for one in (call(f"c{number}"), done(f"c{number}"))))
    given = [
        str(tmp_path / "ledger.db"),
        str(tmp_path / "home"),
        str(path),
        str(Path(__file__).parents[1]),
        str(commit),
    ]
    assert subprocess.run([sys.executable, "-c", KILLED, *given], env=os.environ, check=False).returncode == -9
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        assert ledger.head(CHAIN).count == commit * BATCH_SIZE
        follower(ledger, path).step()
        assert keys(ledger) == [f"ticker:one:c{number}" for number in range(2 * BATCH_SIZE + 10)]
        assert ledger.verify().status == "verified"


def test_the_tool_of_these_tests_is_read_from_its_beginning_alike(tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", {"say": "a"}, call("b"), done("b"), {"what": 1})
    turns = [ticker.Ticker(source_at(path)) for _ in range(2)]
    readers = [ADAPTER.read(source_at(path)) for _ in range(2)]
    first, second = (
        [event for raw in reader() for event in turn.feed(raw)] for reader, turn in zip(readers, turns, strict=True)
    )
    assert first == second
