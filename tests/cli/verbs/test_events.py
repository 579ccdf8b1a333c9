"""`aver events`: what happened, what happens, and the file made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.events.event import LiveEvent
from aver.events.log import EVENTS_FILE, EventLog
from support.aver_command import Aver


@pytest.fixture
def place(aver: Aver) -> Path:
    made = aver.directory / "work" / ".capseal"
    made.mkdir(parents=True)
    return made


def test_events_are_listed_and_escaped(aver: Aver, place: Path) -> None:
    EventLog(place).add(
        [LiveEvent("gate", 1707000000.0, "deny: \x1b[2Jit"), LiveEvent("seal", 1707000001.5, "Sealed 3 actions")]
    )
    ran = aver("events", place.parent)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "2024-02-03 22:40:00  gate    deny: \\x1b[2Jit",
        "2024-02-03 22:40:01  seal    Sealed 3 actions",
    ]
    told = aver("events", place.parent, "-n", "1", "--json").json
    assert told == {
        "file": str(place / EVENTS_FILE),
        "events": [{"type": "seal", "timestamp": 1707000001.5, "summary": "Sealed 3 actions"}],
    }


def test_following_prints_what_comes(aver: Aver, place: Path) -> None:
    log = EventLog(place)
    log.add([LiveEvent("gate", 1707000000.0, "approve: first")])
    child = aver.started("events", place.parent, "--follow")
    try:
        assert child.stdout is not None
        assert b"approve: first" in child.stdout.readline()
        log.add([LiveEvent("record", 1707000001.0, "code_edit: second")])
        assert b"code_edit: second" in child.stdout.readline()
    finally:
        child.kill()
        child.communicate()


def test_making_it_anew_needs_the_ledger(aver: Aver, place: Path) -> None:
    (place / EVENTS_FILE).write_text("nonsense\n")
    aver.seal()
    ran = aver("events", place.parent, "--rebuild")
    assert ran.code == 0
    assert "0 runs" in ran.err
    assert (place / EVENTS_FILE).read_text() == ""


def test_what_cannot_be_done_is_told(aver: Aver, place: Path) -> None:
    assert aver("events", aver.directory).code == 2
    assert aver("events", place.parent, "--follow", "--json").code == 2
    assert aver("events", place.parent, "--rebuild").code == 2
