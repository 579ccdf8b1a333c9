"""Reading a large ledger costs as much as it prints, not as much as the ledger holds.

The tests count the instructions of SQLite's machine, which are the same on every run and every computer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.capsule.aver_block import of_kind
from aver.cli.dispatch import run_command
from aver.clock import now
from aver.ledger.lookup import locate
from aver.recording.run import unfinished_intents
from aver.sessions.sessions import find_sessions
from support.large_ledgers import count_steps, fill_sessions

pytestmark = pytest.mark.sqlite

MORE = 4000
"""Records by which the large ledger is larger than the small one, which has some 120."""

GROWTH = 1.35
"""How much more work the large ledger may cause: its indexes are a level deeper."""

LONG_AGO = "2026-01-01T00:00:00+00:00"


def make_ledger(home: Path, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger whose newest records do not depend on how many older ones there are."""
    home.mkdir(mode=0o700)
    with open_ledger(home / "ledger.db", home=home) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr("aver.ledger.append.now", lambda: LONG_AGO)
            fill_sessions(ledger, range(1), 20 + more)
        fill_sessions(ledger, range(1, 6), 20)
        for _ in range(12):
            ledger.append("demo.audit", of_kind(Capsule(type="tool"), "audit.intent"))
        ledger.sweep()


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    make_ledger(tmp_path / "small", 0, monkeypatch)
    make_ledger(tmp_path / "large", MORE, monkeypatch)
    return tmp_path / "small", tmp_path / "large"


def measure(homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, work: Callable[[Ledger], object]) -> float:
    """The work on the large ledger as a multiple of that on the small one."""
    found = []
    for home in homes:
        with count_steps(monkeypatch) as counter, open_ledger(home / "ledger.db", home=home) as ledger:
            before = counter.steps
            work(ledger)
            found.append(counter.steps - before)
    small, large = found
    assert small > 0
    return large / small


LISTS: dict[str, list[str]] = {
    "newest": ["-n", "10"],
    "newest first": ["-n", "10", "--reverse"],
    "by type": ["-n", "10", "--type", "tool"],
    "by kind": ["-n", "10", "--kind", "audit.intent"],
    "by session": ["-n", "10", "--session", "s00005"],
    "by time": ["-n", "10", "--since", "1h"],
    "in a chain": ["claude-code.s00000", "-n", "10"],
    "in a chain by kind": ["claude-code.s00000", "-n", "10", "--type", "tool", "--reverse"],
    "unfinished": ["--unfinished", "-n", "10"],
    "chains": [],
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", LISTS.values(), ids=LISTS)
def test_log_reads_as_much_as_it_prints(
    homes: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    steps, lines = [], []
    for home in homes:
        monkeypatch.setenv("AVER_HOME", str(home))
        with count_steps(monkeypatch) as counter:
            assert run_command(["log", *options]) == 0
        steps.append(counter.steps)
        lines.append(len(capsys.readouterr().out.splitlines()))
    assert lines[0] == lines[1] == (10 if options else 9)
    assert steps[1] <= GROWTH * steps[0]


WORK: dict[str, Callable[[Ledger], object]] = {
    "a record by its key": lambda ledger: ledger.get("claude-code:s00003:7"),
    "a place by its key": lambda ledger: locate(ledger, "claude-code:s00003:7"),
    "a place by its URI": lambda ledger: locate(ledger, "capsule://claude-code.s00003/7"),
    "a chain by its name": lambda ledger: locate(ledger, "claude-code.s00003"),
    "a chain by its beginning": lambda ledger: locate(ledger, "s00003"),
    "the sessions": find_sessions,
    "the first of all records": lambda ledger: list(ledger.find(limit=20)),
    "the first records of a chain": lambda ledger: list(ledger.find(chain="claude-code.s00000", limit=20)),
    "the calls of a session for a hook": lambda ledger: ledger.find_newer(
        0, session="s00005", since=now()[:10], limit=100
    ),
    "the calls of a new session for a hook": lambda ledger: ledger.find_newer(
        0, session="another", since=now()[:10], limit=100
    ),
    "one chain's verdict": lambda ledger: ledger.verify("claude-code.s00003"),
    "a sweep": lambda ledger: (ledger.append("claude-code.s00003", Capsule(type="tool")), ledger.sweep()),
    "closing a chain": lambda ledger: ledger.close_chain("claude-code.s00003"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_on_a_part_of_a_ledger_does_not_grow_with_the_rest(
    homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, work: Callable[[Ledger], object]
) -> None:
    assert measure(homes, monkeypatch, work) <= GROWTH


def test_exact_names_are_found_without_reading_all_chains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    for count in (10, 300):
        with open_ledger(tmp_path / f"{count}.db", home=tmp_path / "home") as ledger:
            fill_sessions(ledger, range(count), 1)
        with count_steps(monkeypatch) as counter, open_ledger(tmp_path / f"{count}.db", home=tmp_path / "home") as one:
            before = counter.steps
            locate(one, "claude-code.s00003")
            locate(one, "claude-code:s00003:0")
            one.verify("claude-code.s00003")
            steps.append(counter.steps - before)
    assert steps[1] <= GROWTH * steps[0]


def test_newest_first_is_the_reverse_of_oldest_first(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        fill_sessions(ledger, range(3), 150)
        fill_sessions(ledger, range(3), 170)
        for conditions in ({}, {"chain": "claude-code.s00001"}, {"type": "tool"}, {"session": "s00002"}):
            oldest = [record.hash for record in ledger.find(**conditions)]  # type: ignore[arg-type]
            newest = [record.hash for record in ledger.find_newest(**conditions)]  # type: ignore[arg-type]
            assert newest == oldest[::-1]
            assert len(set(oldest)) == len(oldest) > 150
            limited = [record.hash for record in ledger.find_newest(**conditions, limit=100)]  # type: ignore[arg-type]
            assert limited == newest[:100]
        assert list(ledger.find_newest(limit=0)) == []
        assert list(ledger.find_newest(session="half \ud800")) == []


def test_unfinished_calls_in_the_order_of_writing(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        intents = [
            ledger.append(f"demo.{name}", of_kind(Capsule(type="tool"), "audit.intent")) for name in ("b", "a", "b")
        ]
        ledger.append("demo.b", of_kind(Capsule(type="tool", parent_id=intents[0].id), "audit.outcome"))
        # An outcome in another chain ends nothing.
        ledger.append("demo.b", of_kind(Capsule(type="tool", parent_id=intents[1].id), "audit.outcome"))
        assert [record.id for record in unfinished_intents(ledger)] == [intents[1].id, intents[2].id]
