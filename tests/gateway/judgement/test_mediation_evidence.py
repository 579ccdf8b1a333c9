"""Acts that claim a verified confinement: without a fresh verdict before them that passed, the claim is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.gateway.act_records import Surroundings, act_chain, build_outcome_draft
from aver.gateway.acts.visit import Door
from aver.gateway.executor import executor as executor_module
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
    problems = find_problems(office.ledger.verify())
    assert len(problems) == 2  # The PREVIEW, and the COMMIT.
    for code, words in problems:
        assert code == "EVIDENCE_INVALID"
        assert "no fresh verdict" in words


def test_a_claim_after_a_verdict_that_failed_is_found(office: Office) -> None:
    seal_verdict(office)
    office.clock.ahead = 1
    seal_verdict(office, is_ok=False)
    office.clock.ahead = 2
    office.write(door=VERIFIED)
    assert [code for code, _ in find_problems(office.ledger.verify())] == ["EVIDENCE_INVALID"] * 2


def test_a_claim_after_a_verdict_that_is_too_old_is_found(office: Office) -> None:
    seal_verdict(office)
    office.clock.ahead = 100 + 61
    office.write(door=VERIFIED)
    assert [code for code, _ in find_problems(office.ledger.verify())] == ["EVIDENCE_INVALID"] * 2


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
    make_gateway_claim(office, "unverified")
    assert office.write(door=VERIFIED)["reason_code"] == "CAPSULE_REQUIRED"
    assert not (office.workspace / "notes.txt").exists()


def test_an_unverified_preview_is_not_committed_verified(office: Office) -> None:
    """Else a program outside chooses the inputs, and the records call the act confined."""
    seal_verdict(office)
    tx_id = office.preview()["data"]["tx_id"]
    answer = office.commit(tx_id, door=VERIFIED)
    assert answer["reason_code"] == "CAPSULE_REQUIRED"
    assert "outside" in answer["summary"]
    assert not (office.workspace / "notes.txt").exists()
    assert office.commit(tx_id)["reason_code"] == "ALLOW"
    assert find_problems(office.ledger.verify()) == []


def test_the_executor_refuses_a_confinement_that_the_preview_has_not(office: Office) -> None:
    """A gateway that says more of the confinement gets no effect either. Nothing is burnt."""
    seal_verdict(office)
    make_gateway_claim(office, "verified")
    assert office.write()["reason_code"] == "CAPSULE_REQUIRED"
    assert not (office.workspace / "notes.txt").exists()
    assert "act.commit" not in office.kinds()
    assert find_problems(office.ledger.verify()) == []


def make_gateway_claim(office: Office, mediation: str) -> None:
    """Have a hostile gateway tell the executor this of every confinement."""
    executor: Any = office.gateway._executor
    hostile: Any = type("Hostile", (), {})()
    hostile.execute = lambda order: executor.execute(replace(order, mediation=mediation))
    office.gateway._executor = hostile


@pytest.fixture
def lax_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that does not compare: someone has changed its program."""
    monkeypatch.setattr(executor_module, "find_mediation_change", lambda previewed, committed: "")


@pytest.mark.usefixtures("lax_executor")
@pytest.mark.parametrize(("previewed", "committed"), [("unverified", "verified"), ("verified", "unverified")])
def test_a_verifier_names_a_commit_in_another_mode_than_its_preview(
    office: Office, previewed: Any, committed: str
) -> None:
    """A verdict covers both records, so that only the difference between them can be found."""
    seal_verdict(office)
    make_gateway_claim(office, committed)
    assert office.write(door=replace(VERIFIED, mediation=previewed))["reason_code"] == "ALLOW"
    [(code, words)] = find_problems(office.ledger.verify())
    assert code == "EVIDENCE_INVALID"
    assert "the PREVIEW was made" in words


@pytest.mark.usefixtures("lax_executor")
def test_a_commit_alone_needs_a_verdict_as_well(office: Office) -> None:
    make_gateway_claim(office, "verified")
    assert office.write()["reason_code"] == "ALLOW"
    problems = find_problems(office.ledger.verify())
    assert len(problems) == 2
    assert any("no fresh verdict" in words for _, words in problems)


def test_an_outcome_claims_no_more_than_its_commit(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def boast(preview: Any, surroundings: Surroundings, *more: Any, **named: Any) -> Any:
        return build_outcome_draft(preview, surroundings._replace(mediation="verified"), *more, **named)

    seal_verdict(office)
    monkeypatch.setattr(executor_module, "build_outcome_draft", boast)
    assert office.write()["reason_code"] == "ALLOW"
    [(_, words)] = find_problems(office.ledger.verify())
    assert words == "it says verified, and its COMMIT does not"
