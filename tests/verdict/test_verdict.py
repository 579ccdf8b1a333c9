"""Tallies, verdicts and codes."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.verdict import CHECKS, Finding, Place, Tally, conclude, explain_code, load_codes
from aver.verdict.verdict import FINDINGS_KEPT

findings = st.builds(
    Finding,
    st.sampled_from(CHECKS),
    st.sampled_from(["failed", "warning", "not_checked"]),
    st.sampled_from(["HASH_MISMATCH", "SIG_INVALID"]),
    st.text(max_size=5),
    st.builds(Place, st.sampled_from(["a", "b"]), st.integers(0, 9)),
)


def tally_of(found: list[Finding]) -> Tally:
    tally = Tally(records=len(found))
    for finding in found:
        tally.add(finding)
        tally.count_done(finding.check)
    return tally


@given(st.lists(findings, max_size=12), st.integers(0, 12))
def test_merging_pieces_is_the_same_as_judging_in_one_go(found: list[Finding], cut: int) -> None:
    whole, left, right = tally_of(found), tally_of(found[:cut]), tally_of(found[cut:])
    left.merge(right)
    assert left == whole
    assert conclude("x", left) == conclude("x", whole)


@given(st.lists(findings, min_size=1, max_size=12))
def test_the_status_follows_from_the_findings(found: list[Finding]) -> None:
    verdict = conclude("x", tally_of(found))
    failed = [finding for finding in found if finding.status == "failed"]
    assert verdict.status == ("failed" if failed else "qualified")
    assert verdict.first_bad == (failed[0] if failed else None)
    assert orjson.loads(orjson.dumps(verdict.to_dict()))["status"] == verdict.status


def test_many_findings_are_counted_and_the_first_ones_kept() -> None:
    pieces = [Tally() for _ in range(5)]
    for number in range(5 * FINDINGS_KEPT):
        piece = pieces[number // FINDINGS_KEPT]
        piece.records += 1
        piece.add(Finding("content", "failed", "HASH_MISMATCH", "w", Place("a", number)))
    tally = Tally()
    for piece in pieces:
        tally.merge(piece)
    verdict = conclude("x", tally)
    assert len(verdict.findings) == FINDINGS_KEPT
    assert [finding.place.sequence for finding in verdict.findings] == list(range(FINDINGS_KEPT))
    assert verdict.check("content").count == 5 * FINDINGS_KEPT
    assert verdict.first_bad.place.sequence == 0


def test_nothing_verified_is_empty_even_when_all_checks_ran() -> None:
    tally = Tally()
    tally.count_done("schema", 5)
    assert conclude("x", tally).status == "empty"


def test_a_failure_without_records_is_a_failure() -> None:
    tally = Tally()
    tally.add(Finding("meta", "failed", "CHAIN_MISSING", "gone"))
    assert conclude("x", tally).status == "failed"


@pytest.mark.parametrize(("matters", "status"), [(True, "qualified"), (False, "verified")])
def test_what_was_skipped_counts_if_it_matters(matters: bool, status: str) -> None:
    tally = Tally(records=1)
    tally.count_done("signature", 1)
    tally.skip("signature", "because", matters=matters)
    tally.skip("signature", "another reason", matters=False)
    verdict = conclude("x", tally)
    assert verdict.status == status


def test_a_verdict_has_no_truth_value() -> None:
    verdict = conclude("x", Tally(records=1))
    for asked in (bool, lambda value: not value, lambda value: value and 1):
        with pytest.raises(TypeError):
            asked(verdict)


def test_every_check_is_reported_even_if_nobody_did_it() -> None:
    verdict = conclude("x", Tally(records=1))
    assert [check.name for check in verdict.checks] == list(CHECKS)
    assert all(check.status == "not_checked" and check.reason for check in verdict.checks)


@pytest.mark.parametrize("code", sorted(load_codes()))
def test_every_code_says_what_it_means_and_what_to_do(code: str) -> None:
    entry: Any = load_codes()[code]
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code)
    assert entry.meaning.endswith(".")
    assert entry.advice.endswith(".")
    assert explain_code(code) == f"{entry.meaning} {entry.advice}"


def test_an_unknown_code_is_named_as_it_is() -> None:
    assert explain_code("NO_SUCH") == "NO_SUCH"


CONTRACT = """HASH_MISMATCH SIG_INVALID SIG_MISSING UNKNOWN_SIGNER KEY_RETIRED SEAL_MISMATCH CHAIN_BREAK CHAIN_IDENTITY
SEQUENCE_GAP GENESIS_INVALID NOT_CANONICAL SCHEMA_INVALID DUPLICATE_RECORD DUPLICATE_KEY TRUNCATED ROLLBACK
CHAIN_MISSING RECEIPT_MISMATCH PROOF_INVALID ARTIFACT_MISSING ARTIFACT_HASH_MISMATCH CLAIM_UNPROVEN
ROLE_POLICY_VIOLATION STATE_VIOLATION REPLAY EVIDENCE_INVALID CLAIM_DISPUTED NOT_REPRODUCED
ERASED PRUNED WITNESS_MISSING"""


def test_the_codes_that_others_rely_on_are_there() -> None:
    assert set(CONTRACT.split()) <= set(load_codes())
