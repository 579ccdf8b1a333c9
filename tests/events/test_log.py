"""`events.jsonl`: whole lines, written once, turned over, and read by followers without a gap."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput, Unavailable
from aver.events import log
from aver.events.event import LiveEvent, read_event
from aver.events.log import EVENTS_FILE, OLDER_EVENTS_FILE, EventFollower, EventLog


def event(number: int, summary: str = "approve: it (p_fail=0.12)") -> LiveEvent:
    return LiveEvent("gate", 1_700_000_000.0 + number, f"{summary} {number}")


def lines(directory: Path) -> list[bytes]:
    return (directory / EVENTS_FILE).read_bytes().splitlines()


def test_a_line_is_the_specifications(tmp_path: Path) -> None:
    EventLog(tmp_path).add([LiveEvent("gate", 1707000000.0, "approve: Fix shell injection (p_fail=0.12)")])
    assert (tmp_path / EVENTS_FILE).read_text() == (
        '{"type": "gate", "timestamp": 1707000000.0, "summary": "approve: Fix shell injection (p_fail=0.12)"}\n'
    )


@given(st.sampled_from(["gate", "record", "seal"]), st.floats(0, 4e9), st.text(max_size=100))
def test_what_is_written_is_read(kind: str, moment: float, summary: str) -> None:
    try:
        written = LiveEvent(kind, moment, summary).to_line()
    except UnicodeEncodeError:
        return
    assert written.count(b"\n") == 1
    if not any("\ud800" <= one <= "\udfff" for one in summary):
        assert read_event(written[:-1]) == LiveEvent(kind, moment, summary)


@given(st.binary(max_size=200))
def test_what_is_no_event_is_refused(raw: bytes) -> None:
    with pytest.raises(BadInput):
        read_event(raw)


def test_nothing_is_written_twice_and_others_lines_stay(tmp_path: Path) -> None:
    one, two = EventLog(tmp_path), EventLog(tmp_path)
    one.add([event(1), event(2)])
    two.add([event(1), event(2), event(3)])
    one.add([event(3), event(4)])
    two.add([event(4), event(5)])
    one.add([event(5)])
    assert [read_event(line).timestamp for line in lines(tmp_path)] == [1_700_000_000.0 + n for n in range(1, 6)]


@pytest.mark.parametrize("torn", [b"{", b'{"type": "gate", "timest', event(9).to_line()[:-1], b"\x00" * 50])
def test_what_a_crash_left_of_a_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    EventLog(tmp_path).add([event(1)])
    with (tmp_path / EVENTS_FILE).open("ab") as file:
        file.write(torn)
    EventLog(tmp_path).add([event(2)])
    assert lines(tmp_path) == [event(1).to_line()[:-1], event(2).to_line()[:-1]]


def test_it_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "FILE_MAX", 2000)
    writer = EventLog(tmp_path)
    follower = EventFollower(tmp_path)
    seen = []
    for number in range(100):
        writer.add([event(number)])
        seen += [one.timestamp for one in follower.read_new()]
    follower.close()
    assert sorted(os.listdir(tmp_path)) == [OLDER_EVENTS_FILE, EVENTS_FILE]
    assert all((tmp_path / name).stat().st_size <= 2000 for name in (OLDER_EVENTS_FILE, EVENTS_FILE))
    assert seen == [event(number).timestamp for number in range(100)], "a follower misses nothing"
    kept = [one.timestamp for one in EventLog(tmp_path).read()]
    assert kept == seen[-len(kept) :]
    assert len(kept) > 20


def test_a_log_that_cannot_be_turned_over_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that is closed twice may be another thread's by then, such as the ledger's."""
    monkeypatch.setattr(log, "FILE_MAX", 300)
    writer = EventLog(tmp_path)
    writer.add([event(1), event(2)])
    opened = log.open_descriptor

    def refusing(name: str, flags: int, *, follow: bool, below: int | None) -> int:
        if not (tmp_path / EVENTS_FILE).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(name, flags, follow=follow, below=below)

    with monkeypatch.context() as full:
        full.setattr(log, "open_descriptor", refusing)
        with pytest.raises(Unavailable, match="No space left"):
            writer.add([event(number) for number in range(3, 9)])
    writer.add([event(9)])
    assert lines(tmp_path) == [event(9).to_line()[:-1]]


def test_a_follower_waits_for_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    follower = EventFollower(tmp_path)
    assert list(follower.read_new()) == []
    EventLog(tmp_path).add([event(1)])
    assert list(follower.read_new()) == [event(1)]
    with (tmp_path / EVENTS_FILE).open("ab") as file:
        file.write(event(2).to_line()[:20])
        file.flush()
        assert list(follower.read_new()) == []
        file.write(event(2).to_line()[20:] + b"nonsense\n")
    assert list(follower.read_new()) == [event(2)]
    follower.close()


def test_making_it_anew_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "FILE_MAX", 1000)
    (tmp_path / OLDER_EVENTS_FILE).write_text("old\n")
    EventLog(tmp_path).replace(event(number) for number in range(50))
    assert os.listdir(tmp_path) == [EVENTS_FILE]
    assert list(EventLog(tmp_path).read())[-1] == event(49)
    assert (tmp_path / EVENTS_FILE).stat().st_size <= 1000


def add_some(directory: str, first: int) -> None:
    writer = EventLog(Path(directory))
    for number in range(first, first + 200):
        writer.add([event(number, "x" * 30)])


def test_many_writers_tear_no_line(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=add_some, args=(str(tmp_path), 1000 * number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [json.loads(line)["timestamp"] for line in lines(tmp_path)]
    assert len(found) == len(set(found)) == 800


def test_links_pipes_and_missing_places_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    place = tmp_path / "place"
    place.mkdir()
    (place / EVENTS_FILE).symlink_to(outside)
    with pytest.raises(Unavailable):
        EventLog(place).add([event(1)])
    assert outside.read_text() == "mine"
    (place / EVENTS_FILE).unlink()
    os.mkfifo(place / EVENTS_FILE)
    with pytest.raises(Unavailable):
        EventLog(place).add([event(1)])
    (tmp_path / "link").symlink_to(place)
    for directory in (tmp_path / "link", tmp_path / "nowhere"):
        with pytest.raises(Unavailable):
            EventLog(directory).add([event(1)])
