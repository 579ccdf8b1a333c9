"""Copies of a ledger that is in use: each one holds, and neither side is called cut while it grows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.cli.dispatch import run_command
from aver.ledger.stores.copy import CopyResult, copy_ledger
from aver.ledger.stores.protocol import Store
from aver.ledger.stores.urls import open_store

pytestmark = pytest.mark.sqlite

WRITERS = 3
ROUNDS = 5


@contextmanager
def writers(path: Path, home: Path) -> Iterator[None]:
    """Threads, each with the ledger open, that append and sweep until the context ends."""
    stop = threading.Event()
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            with open_ledger(path, home=home) as ledger:
                while not stop.is_set():
                    ledger.append_many(f"demo.writer-{number}", [Capsule(type="tool") for _ in range(5)])
                    ledger.sweep()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        ledger.append_many("demo.first", [Capsule(type="tool") for _ in range(300)])
        ledger.sweep()
    return tmp_path / "home"


def copy(source: Ledger, path: Path) -> int:
    target = open_store(str(path), create=True, timeout=10, facts=source.store.facts())
    try:
        return copy_ledger(source.store, target).records
    finally:
        target.close()


def verify(path: Path, home: Path) -> tuple[str, object]:
    with open_ledger(path, home=home, create=False) as ledger:
        verdict = ledger.verify()
    return verdict.status, verdict.first_bad


@pytest.mark.more
def test_every_copy_of_a_ledger_in_use_verifies(tmp_path: Path, home: Path) -> None:
    sizes = []
    with writers(tmp_path / "ledger.db", home), open_ledger(tmp_path / "ledger.db", home=home) as source:
        for number in range(ROUNDS):
            sizes.append(copy(source, tmp_path / f"copy-{number}.db"))
            assert verify(tmp_path / f"copy-{number}.db", home) == ("verified", None)
    assert sizes == sorted(sizes)
    # An earlier copy goes on from where it ended.
    with open_ledger(tmp_path / "ledger.db", home=home) as source:
        assert copy(source, tmp_path / "copy-0.db") > sizes[-1]
    assert verify(tmp_path / "copy-0.db", home) == ("verified", None)


@pytest.mark.parametrize("watched", ["original", "copy"])
def test_a_watch_beside_a_copy_finds_nothing_cut(tmp_path: Path, home: Path, watched: str) -> None:
    target = tmp_path / "copy.db"
    done = threading.Event()

    def copy_on(source: Ledger) -> None:
        for _ in range(ROUNDS):
            copy(source, target)
        done.set()

    with writers(tmp_path / "ledger.db", home), open_ledger(tmp_path / "ledger.db", home=home) as source:
        copy(source, target)
        copying = threading.Thread(target=copy_on, args=(source,))
        copying.start()
        found = set()
        while not (done.is_set() and found):
            found.add(verify(target if watched == "copy" else tmp_path / "ledger.db", home))
        copying.join()
    assert found == {("verified", None)}


@pytest.mark.more
def test_the_original_is_verified_while_it_is_copied(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The copy ends where the original ended at first. That it is behind by now is no cut."""

    def copy_slowly(source: Store, target: Store, **options: Any) -> CopyResult:
        done = copy_ledger(source, target, **options)
        with open_ledger(tmp_path / "ledger.db", home=home) as ledger:
            ledger.append("demo.first", Capsule(type="tool"))
            ledger.sweep()
            assert ledger.verify().status == "verified"
        return done

    monkeypatch.setattr("aver.ledger.stores.copy.copy_ledger", copy_slowly)
    monkeypatch.setenv("AVER_HOME", str(home))
    original, target = str(tmp_path / "ledger.db"), str(tmp_path / "copy.db")
    assert verify(tmp_path / "ledger.db", home) == ("verified", None)
    assert run_command(["copy", "--ledger", original, "--to", target]) == 0, capsys.readouterr()
    # A copy of a ledger that was cut since it was verified is still found.
    shorter = str(tmp_path / "shorter.db")
    assert run_command(["copy", "--ledger", target, "--to", shorter]) == 1
    assert "ROLLBACK" in capsys.readouterr().out
