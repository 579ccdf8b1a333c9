"""Acts that claim a verified confinement: without a fresh verdict before them that passed, the claim is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.gateway.act_records import act_chain
from aver.gateway.gateway import Door
from aver.gateway.mediation.verdict_record import build_verdict_draft
from aver.verdict import Verdict
from support.act_ledgers import reseal
from support.acts import Office, open_office
from support.capsule_reports import expand, honest_report, judge
from support.confinements import quick_contract

VERIFIED = Door(session="s1", mediation="verified")


@pytest.fixture
def office(tmp_path: Path, aver_home: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def seal_verdict(office: Office, *, is_ok: bool = True, **changes: Any) -> None:
    contract = expand()
    report = honest_report(contract) if is_ok else {}
    draft, blobs = build_verdict_draft(judge(contract, report), report, quick_contract(), session="s1", ttl=100)
    draft.outcome.result.update(changes)
    office.ledger.append(act_chain("s1"), draft, blobs=blobs)


def find_problems(verdict: Verdict) -> list[tuple[str, str]]:
    return [(found.code, found.words) for found in verdict.findings if found.status == "failed"]


def test_a_claim_after_a_fresh_verdict_holds(office: Office) -> None:
    seal_verdict(office)
    assert office.write(door=VERIFIED)["reason_code"] == "ALLOW"
    office.clock.ahead = 90
    assert office.write("b.txt", door=VERIFIED)["reason_code"] == "ALLOW"
    assert find_problems(office.ledger.verify()) == []


def test_a_claim_without_a_verdict_is_found(office: Office) -> None:
    office.write(door=VERIFIED)
    (problem,) = find_problems(office.ledger.verify())
    assert problem[0] == "EVIDENCE_INVALID"
    assert "no fresh verdict" in problem[1]


def test_a_claim_after_a_verdict_that_failed_is_found(office: Office) -> None:
    seal_verdict(office)
    office.clock.ahead = 1
    seal_verdict(office, is_ok=False)
    office.clock.ahead = 2
    office.write(door=VERIFIED)
    assert [code for code, _ in find_problems(office.ledger.verify())] == ["EVIDENCE_INVALID"]


def test_a_claim_after_a_verdict_that_is_too_old_is_found(office: Office) -> None:
    seal_verdict(office)
    office.clock.ahead = 100 + 61
    office.write(door=VERIFIED)
    assert [code for code, _ in find_problems(office.ledger.verify())] == ["EVIDENCE_INVALID"]


@pytest.mark.parametrize("changes", [{"ttl": 10**9}, {"ttl": 0}, {"ok": 1}, {"contract_sha256": "x"}, {"v": 2}])
def test_a_verdict_that_is_none_counts_for_nothing(office: Office, changes: dict[str, Any]) -> None:
    seal_verdict(office, **changes)
    office.write(door=VERIFIED)
    assert {code for code, _ in find_problems(office.ledger.verify())} == {"SCHEMA_INVALID", "EVIDENCE_INVALID"}


def test_another_word_for_the_mode_is_found(office: Office) -> None:
    office.write()
    [record] = [each for each in office.ledger.read("gateway.s1") if each.kind == "act.preview"]
    reseal(
        office.ledger,
        record,
        lambda content: content["context"]["environment"]["gateway"].update(mediation="perhaps"),
    )
    assert [code for code, _ in find_problems(office.ledger.verify())] == ["SCHEMA_INVALID"]


def test_a_verified_preview_is_not_committed_unverified(office: Office) -> None:
    """Invariant 6 of the RFC: no silent downgrade."""
    seal_verdict(office)
    tx_id = office.preview(door=VERIFIED)["data"]["tx_id"]
    assert office.commit(tx_id)["reason_code"] == "CAPSULE_REQUIRED"
    assert not (office.workspace / "notes.txt").exists()
    assert office.commit(tx_id, door=VERIFIED)["reason_code"] == "ALLOW"
    assert find_problems(office.ledger.verify()) == []


def test_the_executor_holds_it_by_itself(office: Office) -> None:
    """A gateway that says less, or nothing, of the confinement gets no effect."""
    seal_verdict(office)
    gateway = office.gateway
    executor: Any = gateway._executor
    hostile: Any = type("Hostile", (), {})()
    hostile.execute = lambda order: executor.execute(replace(order, mediation="unverified"))
    gateway._executor = hostile
    assert office.write(door=VERIFIED)["reason_code"] == "CAPSULE_REQUIRED"
    assert not (office.workspace / "notes.txt").exists()


def test_an_unverified_preview_may_be_committed_in_a_confinement(office: Office) -> None:
    seal_verdict(office)
    tx_id = office.preview()["data"]["tx_id"]
    assert office.commit(tx_id, door=VERIFIED)["reason_code"] == "ALLOW"
    assert find_problems(office.ledger.verify()) == []
