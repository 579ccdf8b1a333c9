"""A report in words: what comes first, and what is said about disputes and repeated calls."""

from __future__ import annotations

from typing import Any

import pytest

from aver.protocol.judgement.report_text import describe_finding, list_advice, render_report_text
from aver.verdict import load_codes


def make_finding(check: str, status: str, code: str, sequence: int, subject: str | None = None) -> dict[str, Any]:
    found = {"check": check, "status": status, "code": code, "sequence": sequence}
    return {**found, "event": "e1", "subject": subject, "item": None}


def make_report(**parts: Any) -> dict[str, Any]:
    empty = ("findings", "claims", "proposals", "participants", "executions", "artifacts", "checks")
    report: dict[str, Any] = {name: [] for name in empty}
    head = {"trace": "t1", "profile": "strict", "status": "fail", "head": {"count": 9, "hash": "0" * 64}}
    return {**report, **head, "first_broken": None, "last_trusted": None, **parts}


def test_the_advice_about_the_root_cause_comes_first() -> None:
    codes = load_codes()
    findings = [
        make_finding("participants", "warning", "NOT_INDEPENDENT", 0, "agent:critic"),
        make_finding("executions", "failed", "OUTCOME_UNKNOWN", 6, "x1"),
        make_finding("claims", "failed", "CLAIM_UNPROVEN", 3, "c1"),
        make_finding("participants", "note", "UNKNOWN_SIGNER", 0),
    ]
    wanted = [codes[name].advice for name in ("CLAIM_UNPROVEN", "OUTCOME_UNKNOWN", "NOT_INDEPENDENT")]
    assert list_advice(make_report(findings=findings)) == wanted


@pytest.mark.parametrize(("standing", "words"), [("disputed", "is open"), ("refuted", "was upheld")])
def test_a_dispute_is_open_or_upheld_never_both(standing: str, words: str) -> None:
    report = make_report(claims=[{"id": "c1", "standing": standing}])
    said = describe_finding(make_finding("claims", "warning", "CLAIM_DISPUTED", 4, "c1"), report)
    assert said == f"a challenge to the claim {words} (c1)"


@pytest.mark.parametrize(
    ("rerun", "words"),
    [
        (None, "risk low\n"),
        ({"same": True, "exit_code": 0}, "risk low; repeated by the auditor: the same result\n"),
        ({"same": False, "exit_code": 1}, "repeated by the auditor: another result, exit code 1\n"),
        ({"skipped": "NO_TOOL"}, "not repeated by the auditor: NO_TOOL, the auditor does not have the tool\n"),
    ],
)
def test_an_execution_tells_of_its_rerun(rerun: dict[str, Any] | None, words: str) -> None:
    execution = {"id": "x1", "tool": "command", "code": "COMPLETED", "exit_code": 0, "risk": {"derived": "low"}}
    assert words in render_report_text(make_report(executions=[{**execution, "rerun": rerun}]), {})
