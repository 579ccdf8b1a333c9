"""Events come from the ledger: which records give which, without secrets, and the same again."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from aver import Head, Ledger, open_ledger
from aver.actions.runtime import AgentRuntime
from aver.events.event import decision_word, event_from_record
from aver.events.log import EVENTS_FILE, EventLog, EventProjection, rebuild_log

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "work" / ".capseal"
    made.mkdir(parents=True)
    return made


def run_in(ledger: Ledger, place: Path, run_id: str) -> AgentRuntime:
    runtime = AgentRuntime(place / "runs" / run_id, ledger=ledger, run_id=run_id, workspace=place.parent)
    runtime.gate("", action_type="file_read", description=f"read with {SECRET}", files=["a.py"])
    runtime.record_simple(
        "file_read",
        "look",
        {},
        "text",
        metadata={"description": f"read\nwith \x1b[31m{SECRET} " + "x" * 500, "tool_name": "Read"},
    )
    return runtime


def test_records_give_events_with_the_time_of_sealing(place: Path) -> None:
    with open_ledger() as ledger:
        runtime = run_in(ledger, place, "one")
        runtime.finalize()
        EventProjection(ledger, place).add_new_events("one")
        sealed = [*ledger.read("gate.one"), *list(ledger.read("actions.one"))[1:]]
        given = [event_from_record(record) for record in sealed]
        assert event_from_record(next(iter(ledger.read("actions.one")))) is None, "an opened run is no event"
        assert event_from_record(next(iter(ledger.read("keys")))) is None
    found = [json.loads(line) for line in (place / EVENTS_FILE).read_text().splitlines()]
    assert [set(one) for one in found] == [{"type", "timestamp", "summary"}] * 3
    assert [one["type"] for one in found] == ["gate", "record", "seal"]
    assert found[0]["summary"].startswith("approve: read with [masked:")
    assert found[0]["summary"].endswith("(p_fail=0.01)")
    assert found[1]["summary"].startswith("file_read: read with")
    assert found[2]["summary"] == "Sealed 1 actions"
    assert [one.timestamp for one in given if one is not None] == [one["timestamp"] for one in found]
    text = (place / EVENTS_FILE).read_text()
    assert SECRET not in text
    assert all(len(one["summary"]) <= 160 and one["summary"].isprintable() for one in found)


def test_a_gap_is_filled_and_nothing_is_doubled(place: Path) -> None:
    with open_ledger() as ledger:
        runtime = run_in(ledger, place, "one")
        EventProjection(ledger, place).add_new_events("one")
        runtime.record_simple("command", "make", {}, "", metadata={"description": "make"})
        # As if the server had been killed here: another one starts.
        again = EventProjection(ledger, place)
        again.add_new_events("one")
        again.add_new_events("one")
        runtime.close()
    assert [one.summary for one in EventLog(place).read()][1:] == [
        next(one.summary for one in EventLog(place).read() if one.type == "record"),
        "command: make",
    ]


def test_it_can_be_made_anew_from_the_ledger(place: Path) -> None:
    with open_ledger() as ledger:
        for name in ("one", "two"):
            run_in(ledger, place, name).finalize()
            EventProjection(ledger, place).add_new_events(name)
        before = (place / EVENTS_FILE).read_bytes()
        (place / EVENTS_FILE).write_text('{"type": "gate", "timestamp": 1.0, "summary": "approve: never happened"}\n')
        (place / "runs" / "stray").mkdir()
        assert rebuild_log(ledger, place) == 2
    assert (place / EVENTS_FILE).read_bytes() == before


def test_a_decision_in_three_words() -> None:
    said = {word: decision_word(word) for word in ("pass", "human_approved", "human_review", "skip", "skipped")}
    assert list(said.values()) == ["approve", "approve", "flag", "deny", "deny"]


def test_what_is_new_is_found_out_while_nobody_else_writes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another server could write an event between our look and our line, and we would write it again later."""
    with open_ledger() as ledger:
        run_in(ledger, place, "one")
        looks = []
        head = ledger.head

        def looked(chain: str) -> Head:
            handle = os.open(place, os.O_RDONLY)
            try:
                with pytest.raises(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(handle)
            looks.append(chain)
            return head(chain)

        monkeypatch.setattr(ledger, "head", looked)
        EventProjection(ledger, place).add_new_events("one")
        assert looks == ["gate.one", "actions.one"]
