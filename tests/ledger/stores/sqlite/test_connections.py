"""The mark by which a reader of a ledger's file sees that something was written."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aver import Ledger, open_ledger
from aver.errors import Unavailable
from support.forks import exit_of
from support.tamper import Attacker

pytestmark = pytest.mark.sqlite

DRAFT = {"type": "tool"}


def test_mark_tells_every_commit_and_nothing_else(ledger: Ledger) -> None:
    ledger.append("demo.one", DRAFT)
    marks = [ledger.store.change_mark()]
    list(ledger.read("demo.one"))
    ledger.verify()
    assert ledger.store.change_mark() == marks[0]
    for _ in range(5):
        ledger.append("demo.one", DRAFT)
        marks.append(ledger.store.change_mark())
    assert len(set(marks)) == len(marks)


def test_mark_tells_what_an_attacker_wrote(ledger: Ledger) -> None:
    ledger.append("demo.one", DRAFT)
    before = ledger.store.change_mark()
    attacker = Attacker(ledger)
    attacker.execute("UPDATE chains SET count = 0")
    attacker.close()
    assert ledger.store.change_mark() != before


def test_mark_tells_a_checkpoint_of_the_log_apart_from_nothing(ledger: Ledger, aver_home: Path) -> None:
    """A log that was moved into the file, and begun anew, hides no later commit."""
    ledger.append("demo.one", DRAFT)
    ledger.store.change_mark()
    with closing(sqlite3.connect(aver_home / "ledger.db")) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = ledger.store.change_mark()
    with open_ledger(create=False) as writer:
        writer.append("demo.one", DRAFT)
    assert ledger.store.change_mark() != before


def test_mark_works_on_both_sides_of_a_fork(ledger: Ledger) -> None:
    ledger.append("demo.one", DRAFT)
    before = ledger.store.change_mark()
    child = os.fork()
    if child == 0:
        mine = ledger.store.change_mark()
        ledger.append("demo.one", DRAFT)
        os._exit(0 if ledger.store.change_mark() != mine else 1)
    assert exit_of(child) == 0
    assert ledger.store.change_mark() != before
    assert ledger.head("demo.one").count == 2


def test_closed_or_moved_ledger_has_no_mark(ledger: Ledger, aver_home: Path) -> None:
    ledger.append("demo.one", DRAFT)
    ledger.store.change_mark()
    moved = (aver_home / "ledger.db").rename(aver_home / "elsewhere.db")
    with pytest.raises(Unavailable, match="deleted or moved away"):
        ledger.store.change_mark()
    moved.rename(aver_home / "ledger.db")
    assert ledger.store.change_mark()
    ledger.close()
    with pytest.raises(Unavailable):
        ledger.store.change_mark()
