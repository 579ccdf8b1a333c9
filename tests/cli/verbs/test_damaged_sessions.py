"""Verbs that read a session end in order where its records are damaged, and name the damage."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from aver.ledger import open_ledger
from support.agents import sample_session as sample
from support.aver_command import Aver

SECTIONS = ("trigger", "context", "reasoning", "authority", "execution", "outcome")
FIELDS = (*SECTIONS, "id", "type", "domain", "parent_id", "sequence", "previous_hash", "spec_version")
DROPPED = object()
WRONG = (DROPPED, [], "x")
PATH = f"claude-code.{sample.SESSION}"


class DamagedLedger:
    """A ledger in which a field of a record of the session is damaged, one after the other."""

    def __init__(self, path: Path) -> None:
        self._store = sqlite3.connect(path, isolation_level=None)
        self._store.execute("DROP TRIGGER records_stay_as_they_are")
        self._where = "chain = (SELECT chain FROM chains WHERE name = ?) AND sequence = ?"
        query = "SELECT sequence, canonical FROM records WHERE chain = (SELECT chain FROM chains WHERE name = ?)"
        self.records: dict[int, bytes] = dict(self._store.execute(query, (PATH,)))

    def damage(self, sequence: int, field: str, value: Any) -> None:
        content = json.loads(self.records[sequence])
        if value is DROPPED:
            content.pop(field, None)
        else:
            content[field] = value
        self._write(sequence, json.dumps(content, sort_keys=True, separators=(",", ":")).encode())

    def mend(self, sequence: int) -> None:
        self._write(sequence, self.records[sequence])

    def _write(self, sequence: int, canonical: bytes) -> None:
        self._store.execute(f"UPDATE records SET canonical = ? WHERE {self._where}", (canonical, PATH, sequence))


@pytest.fixture
def damaged(aver: Aver, tmp_path: Path) -> DamagedLedger:
    with open_ledger(home=aver.home) as ledger:
        sample.asked_of_the_gate(ledger, "ls")
        sample.seal(ledger, tmp_path / "t", [sample.prompt("go"), sample.command("t1", "ls")])
    return DamagedLedger(aver.home / "ledger.db")


def hold(aver: Aver, damaged: DamagedLedger, sequence: int, field: str, value: Any, tmp_path: Path) -> None:
    """Every verb that reads the session ends in order, and those that give a verdict name the damage."""
    damaged.damage(sequence, field, value)
    out = tmp_path / "report.html"
    verbs: dict[tuple[str, ...], bool] = {
        ("reconcile", PATH): True,
        ("sessions",): True,
        ("show", PATH): True,
        ("search", "go"): False,
        ("report", PATH, "--out", str(out), "--force"): False,
    }
    for verb, judges in verbs.items():
        ran = aver(*verb)
        assert ran.code in (0, 1, 2, 3), (verb, field, value, ran.err)
        assert "a bug in Aver" not in ran.err
        if judges:
            assert ran.code == 1, (verb, sequence, field, value, ran.out, ran.err)
            assert f"sequence {sequence}" in " ".join(f"{ran.out} {ran.err}".split()), (verb, sequence, field, value)
    damaged.mend(sequence)


def test_a_session_without_the_context_of_its_first_record_is_reconciled(
    aver: Aver, damaged: DamagedLedger, tmp_path: Path
) -> None:
    hold(aver, damaged, 0, "context", DROPPED, tmp_path)


@pytest.mark.more
@pytest.mark.sample(4)
@pytest.mark.parametrize("field", FIELDS)
def test_no_verb_breaks_down_at_a_damaged_record(
    aver: Aver, damaged: DamagedLedger, field: str, tmp_path: Path
) -> None:
    for sequence in damaged.records:
        for value in WRONG:
            if json.loads(damaged.records[sequence]).get(field, DROPPED) != value:
                hold(aver, damaged, sequence, field, value, tmp_path)
