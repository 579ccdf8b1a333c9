"""The page's verifier judges reports as `aver verify` does: honest ones, and each change of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import aver
from aver.keys import Ring, SeedSigner
from aver.ledger import Ledger
from support.agents import sample_session as sample
from support.loose_capsules import KEY
from support.page_cases import Cases, expect_agreement
from support.reports import (
    MAIN_FILE,
    TAMPERED,
    change_file,
    replace_statement,
    report_by_stolen_key,
    sign_again,
    statement_in,
    write_report,
)

SIGNER = SeedSigner(bytes(range(32)))

FLIPS = 60
"""Bytes of a report that are changed in the first tier. The second tier changes ten times as many."""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with aver.open_ledger(tmp_path / "ledger.db", home=tmp_path / "home", signer=SIGNER) as opened:
        sample.rich(opened, tmp_path / "t")
        yield opened


@pytest.mark.more
def test_reports_and_each_change_of_one(ledger: Ledger, tmp_path: Path) -> None:
    cases, ring = Cases(tmp_path / "cases"), Ring.pin([SIGNER.public])
    report = write_report(ledger, tmp_path / "report.html")
    for name, change in TAMPERED.items():
        cases.add_file("report.html", change(report), ring, name)
    for name, known in {"unknown": Ring(), "another key": Ring.pin([KEY])}.items():
        cases.add_file("report.html", report, known, name)
    by_the_signer = {
        "records": lambda content: content["verdict"].update(records=99),
        "a count that is no count": lambda content: content["verdict"].update(records=-1),
        "a count beyond 64 bits": lambda content: content["verdict"].update(records=2**63),
        "one head less": lambda content: content["heads"].popitem(),
        "one head more": lambda content: content["heads"].update({"x.y": {"count": 1, "hash": "0" * 64}}),
        "an empty head": lambda content: content["heads"].update({"x.y": {"count": 0, "hash": None}}),
        "heads that are none": lambda content: content.update(heads=[]),
        "another version": lambda content: content.update(v=2),
        "a time that is none": lambda content: content.update(since=7),
    }
    for name, say in by_the_signer.items():
        cases.add_file("report.html", sign_again(report, SIGNER, say), ring, f"signed: {name}")
    spoilt = change_file(report, MAIN_FILE, lambda chain: chain["capsules"].pop())
    cases.add_file("report.html", sign_again(spoilt, SIGNER), ring, "signed: a cut end")
    other_key = SeedSigner(bytes(32))
    cases.add_file("report.html", sign_again(report, other_key), ring, "signed by another")
    both = Ring.pin([SIGNER.public, other_key.public])
    cases.add_file("report.html", sign_again(report, other_key), both, "signed by another whom the reader knows")
    late, owner = report_by_stolen_key(tmp_path / "owner")
    for name, known in {"pinned": Ring.pin([entry.key for entry in owner.entries]), "on the ring": owner}.items():
        cases.add_file("report.html", late, known, f"signed by a stolen key, {name}")
    sample.rich(ledger, tmp_path / "more", session="more")
    other = write_report(ledger, tmp_path / "other.html")
    cases.add_file("report.html", replace_statement(report, statement_in(other)), ring, "another's statement")
    assert expect_agreement(tmp_path / "cases") == cases.count > 30


def flip_bytes(ledger: Ledger, tmp_path: Path, count: int) -> int:
    cases, ring, rng = Cases(tmp_path / "cases"), Ring.pin([SIGNER.public]), random.Random(54)
    report = write_report(ledger, tmp_path / "report.html")
    end = report.index(b'id="aver-report"')
    # Half of the changes in the statement, half anywhere.
    places = [rng.randrange(len(report)) if n % 2 else rng.randrange(end, end + 1500) for n in range(count)]
    for at in places:
        changed = report[:at] + bytes([report[at] ^ 1 << rng.randrange(7)]) + report[at + 1 :]
        cases.add_file("report.html", changed, ring, f"byte {at}")
    assert expect_agreement(tmp_path / "cases") == cases.count
    return cases.count


@pytest.mark.more
def test_reports_with_single_bits_flipped(ledger: Ledger, tmp_path: Path) -> None:
    assert flip_bytes(ledger, tmp_path, FLIPS) > FLIPS // 2


@pytest.mark.long
def test_reports_with_many_bits_flipped(ledger: Ledger, tmp_path: Path) -> None:
    assert flip_bytes(ledger, tmp_path, 10 * FLIPS) > 5 * FLIPS
