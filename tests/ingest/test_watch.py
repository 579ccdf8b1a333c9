"""Followed as it happens: by real file events, by several at once, and without reading anything twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aver.errors import Unavailable
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import TranscriptSource
from aver.ingest.watch import CACHE_NAME, QUIET_SECONDS, IngestCache, TranscriptUpdate, TranscriptWatcher, catch_up
from aver.ledger import Ledger, open_ledger
from support.agents.jsonl_tool import ADAPTER, call, done, source_at, write


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def around(tmp_path: Path) -> UserEnvironment:
    (tmp_path / "ticks").mkdir()
    return UserEnvironment(tmp_path, {})


def transcript(around: UserEnvironment, name: str = "one") -> Path:
    return around.home / "ticks" / f"{name}.jsonl"


def count(ledger: Ledger, chain: str = "ticker.one") -> int:
    return ledger.head(chain).count


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds. That it never does, shows when the attempts are used up."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")


@pytest.fixture
def watching(around: UserEnvironment, tmp_path: Path) -> Iterator[list[TranscriptUpdate]]:
    """A watch that runs beside the test, and what it told."""
    stop, told = threading.Event(), list[TranscriptUpdate]()

    def run() -> None:
        with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as opened:
            TranscriptWatcher(opened, [ADAPTER], around).run(told.append, stop)

    thread = threading.Thread(target=run)
    thread.start()
    yield told
    stop.set()
    thread.join()


def test_what_is_written_is_sealed_as_it_happens(
    ledger: Ledger, around: UserEnvironment, watching: list[TranscriptUpdate]
) -> None:
    path = transcript(around)
    # The watch may be starting: what was written before it listens is found by the first look, or by the next event.
    write(path, {"say": "go"})
    eventually(lambda: bool(write(path, {"junk": 0})) and count(ledger) == 1)
    write(path, call("a"), done("a"))
    eventually(lambda: count(ledger) == 2)
    write(transcript(around, "two"), {"say": "another"})
    eventually(lambda: count(ledger, "ticker.two") == 1)
    assert sum(seen.sealing.sealed for seen in watching) >= 3


def test_two_watches_and_a_crowd_of_records(
    ledger: Ledger, around: UserEnvironment, watching: list[TranscriptUpdate], tmp_path: Path
) -> None:
    path = write(transcript(around), {"say": "go"})
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as other:
        second = TranscriptWatcher(other, [ADAPTER], around)
        for number in range(50):
            write(path, call(f"c{number}"), done(f"c{number}"))
            list(second.look([str(path)]))
    eventually(lambda: count(ledger) >= 51)
    keys = [record.to_dict()["context"]["environment"]["aver"]["key"] for record in ledger.read("ticker.one")]
    assert len(keys) == len(set(keys))
    assert {f"ticker:one:c{number}" for number in range(50)} <= set(keys)
    assert ledger.verify().status == "verified"


def test_a_watch_goes_on_with_what_the_ledger_knows_and_leaves_the_rest(
    ledger: Ledger, around: UserEnvironment
) -> None:
    known, never = write(transcript(around, "known"), {"say": "a"}), write(transcript(around, "never"), {"say": "b"})
    catch_up(ledger, ADAPTER, source_at(known), IngestCache(ledger))
    write(known, {"say": "while nobody watched"})
    watch = TranscriptWatcher(ledger, [ADAPTER], around)
    assert [seen.source.session for seen in watch.begin()] == ["known"]
    assert count(ledger, "ticker.never") == 0
    write(never, {"say": "now"})
    assert [seen.sealing.sealed for seen in watch.look([str(never)])] == [2]


def test_a_new_record_is_read_alone(ledger: Ledger, around: UserEnvironment) -> None:
    path = write(transcript(around), *({"say": f"line {number}"} for number in range(500)))
    watch = TranscriptWatcher(ledger, [ADAPTER], around)
    list(watch.look([str(path)]))
    write(path, {"say": "one more"})
    assert [seen.sealing.records for seen in watch.look([str(path)])] == [1]


def test_what_did_not_change_is_not_read(ledger: Ledger, around: UserEnvironment) -> None:
    path = write(transcript(around), {"say": "go"})
    watch = TranscriptWatcher(ledger, [ADAPTER], around)
    assert len(list(watch.look([str(path)]))) == 1
    assert list(watch.look([str(path)])) == []


def test_a_quiet_session_is_rested_and_goes_on(ledger: Ledger, around: UserEnvironment) -> None:
    path = write(transcript(around), {"say": "go"}, {"junk": 1})
    watch = TranscriptWatcher(ledger, [ADAPTER], around)
    list(watch.look([str(path)]))
    rested = list(watch.rest(time.monotonic() + QUIET_SECONDS))
    assert [seen.sealing.sealed for seen in rested] == [1]
    assert ledger.head("meta").count >= 1
    write(path, {"say": "again"})
    assert [seen.sealing.sealed for seen in watch.look([str(path)])] == [1]
    assert ledger.verify().status == "verified"


# --- stamps only save time


def test_what_cannot_be_read_stops_nothing_else(ledger: Ledger, around: UserEnvironment) -> None:
    loop = transcript(around, "a")
    watch = TranscriptWatcher(ledger, [ADAPTER], around)
    list(watch.begin())
    loop.symlink_to(loop)
    write(transcript(around), {"say": "one"})
    seen = list(watch.look([str(loop), str(transcript(around))]))
    assert {source.session: bool(sealing.notes) for source, sealing in seen} == {"a": True, "one": False}
    assert count(ledger) == 1
    loop.unlink()
    write(loop, {"say": "two"})
    list(watch.look([str(loop)]))
    assert count(ledger, "ticker.a") == 1


def test_what_could_not_be_sealed_is_sealed_later(
    ledger: Ledger, around: UserEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(transcript(around), {"say": "one"})
    watch = TranscriptWatcher(ledger, [ADAPTER], around)

    def full(*_: object, **__: object) -> None:
        raise Unavailable("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "append_many", full)
        (seen,) = watch.look([str(transcript(around))])
    assert "no space left" in seen.sealing.notes[0]
    assert count(ledger) == 0
    list(watch.look([str(transcript(around))]))
    assert count(ledger) == 1


def test_a_tool_whose_place_cannot_be_read_stops_no_other(ledger: Ledger, around: UserEnvironment) -> None:
    def locked(_: UserEnvironment) -> Iterator[TranscriptSource]:
        raise Unavailable("cannot read state.vscdb: Permission denied")

    write(transcript(around), {"say": "one"})
    warnings: list[str] = []
    broken = replace(ADAPTER, title="Broken", locate=locked)
    list(TranscriptWatcher(ledger, [broken, ADAPTER], around, warnings.append).look([str(transcript(around))]))
    assert (count(ledger), warnings) == (1, ["Broken: cannot read state.vscdb: Permission denied"])


def test_a_stamp_saves_reading_and_a_lost_one_costs_only_that(ledger: Ledger, around: UserEnvironment) -> None:
    path = write(transcript(around), {"say": "go"})
    stamps = IngestCache(ledger)
    catch_up(ledger, ADAPTER, source_at(path), stamps)
    stamps.save()
    assert IngestCache(ledger).is_read(source_at(path))
    write(path, {"say": "more"})
    assert not IngestCache(ledger).is_read(source_at(path))
    for spoiled in (b"", b"{", b'{"v": 1, "ledgers": []}', b"\xff"):
        (ledger.config.home / CACHE_NAME).write_bytes(spoiled)
        assert not IngestCache(ledger).is_read(source_at(path))
    before = count(ledger)
    catch_up(ledger, ADAPTER, source_at(path), IngestCache(ledger))
    catch_up(ledger, ADAPTER, source_at(path), IngestCache(ledger))
    assert count(ledger) == before + 1


def test_a_stamp_is_of_one_ledger(ledger: Ledger, around: UserEnvironment, tmp_path: Path) -> None:
    path = write(transcript(around), {"say": "go"})
    stamps = IngestCache(ledger)
    catch_up(ledger, ADAPTER, source_at(path), stamps)
    stamps.save()
    with open_ledger(tmp_path / "other.db", home=tmp_path / "home") as other:
        assert not IngestCache(other).is_read(source_at(path))
