"""The report: a pure function of trace, artifacts and profile, with every claim recomputed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver.capsule.blobs import Blob
from aver.errors import IntegrityError, NotFound
from aver.keys import Ring
from aver.protocol.events import OPERATOR
from aver.protocol.judgement.report import PROFILE_RULES, REPORT_CHECKS, Report, build_report
from aver.protocol.judgement.trace_facts import GateWord
from aver.protocol.judgement.trace_judge import TraceJudge
from aver.protocol.predicates import CHECK_NAMES, REASONS
from aver.protocol.statements import SeenHead
from aver.verdict.examiner import TRACE_CHECKS
from support.protocol_traces import AGENTS, TraceInMemory

OUTPUT = b"3 passed"
CALL = b'{"arguments":{},"tool":"pytest"}'
WHOLE = {Blob(data).digest: data for data in (OUTPUT, CALL, b"1 failed", b"oops")}


def report_on(
    trace: TraceInMemory, profile: str = "default", blobs: dict[str, bytes] | None = None, **given: Any
) -> Report:
    """The report on the stored records of a trace, whose decisions allow every call unless they are given."""
    blobs = WHOLE if blobs is None else blobs
    operator = trace.signers[OPERATOR]

    def read_blob(digest: str) -> bytes:
        if digest not in blobs:
            raise NotFound("not here")
        if Blob(blobs[digest]).digest != digest:
            raise IntegrityError("ARTIFACT_HASH_MISMATCH", "other bytes")
        return blobs[digest]

    def find_decision(name: str) -> GateWord | None:
        call = next(each.intent for each in judge.trace.executions.values() if each.decision == name)
        return GateWord(name, call, allows=True, risk="low", signed_by=operator.fingerprint)

    judge = TraceJudge(trace.place, trace.fold.trace, Ring.pin([operator.public]), given.pop("failures", None))
    judge.take(given.pop("records", trace.records))
    head = SeenHead(len(trace.records), trace.records[-1].hash)
    return build_report(
        judge.facts(head=head, profile=profile, **{"blob": read_blob, "decision": find_decision, **given})
    )


def codes(report: Report, status: str | None = None) -> list[tuple[str, str, int | None]]:
    return [
        (found["check"], found["code"], found["sequence"])
        for found in report.content["findings"]
        if found["code"] != "NOT_INDEPENDENT" and status in (None, found["status"])
    ]


@pytest.fixture
def trace() -> TraceInMemory:
    """A trace up to its final statement: one call, one claim."""
    made = TraceInMemory()
    made.claim(made.reach_claiming())
    made.conclude()
    return made


def test_a_good_trace_passes_and_every_claim_is_recomputed(trace: TraceInMemory) -> None:
    report = report_on(trace)
    assert report.status == "pass"
    assert codes(report) == []
    assert [check["name"] for check in report.content["checks"]] == list(REPORT_CHECKS)
    assert {check["status"] for check in report.content["checks"]} == {"passed"}
    (claim,) = report.content["claims"]
    assert claim["standing"] == "issued"
    (item,) = claim["evidence"]
    assert (item["holds"], item["found"], item["reason"]) == (True, True, "")
    assert report.content["first_broken"] is None
    assert report.content["last_trusted"]["sequence"] == len(trace.records) - 1
    assert {each["state"] for each in report.content["artifacts"]} == {"here"}
    assert [each["role"] for each in report.content["participants"]][-1] == OPERATOR


def test_the_same_trace_gives_the_same_bytes(trace: TraceInMemory) -> None:
    first, second = report_on(trace), report_on(trace)
    assert first.data == second.data
    assert first.sha256 == second.sha256
    assert json.loads(first.data) == first.content


def test_nothing_in_a_report_depends_on_when_it_was_made(trace: TraceInMemory) -> None:
    text = report_on(trace).data.decode()
    assert not any(record.content["trigger"]["timestamp"] in text for record in trace.records)


def test_a_check_that_does_not_hold_is_an_unproven_claim() -> None:
    expected = {"strict": "fail", "default": "fail", "lenient": "pass-with-warnings"}
    for profile, status in expected.items():
        trace = TraceInMemory(profile=profile)
        proposal = trace.reach_executing()
        trace.complete(trace.start(trace.intend(proposal).id), b"1 failed", exit_code=1)
        claim = trace.claim(proposal, b"1 failed")  # The claim says that the output contains "3 passed".
        report = report_on(trace, profile)
        assert report.status == status
        assert codes(report) == [("claims", "CLAIM_UNPROVEN", claim.sequence)]
        assert report.content["claims"][0]["evidence"][0]["found"] is False


def test_a_claim_without_a_check() -> None:
    for profile, status in {"strict": "fail", "default": "pass", "lenient": "pass"}.items():
        trace = TraceInMemory(profile=profile)
        claim = trace.claim(trace.reach_claiming())
        revised = trace.revise(claim.id)
        report = report_on(trace, profile)
        assert report.status == status
        assert codes(report) == [("claims", "CLAIM_UNPROVEN", revised.sequence)]


def test_an_open_dispute_fails_in_strict_and_warns_elsewhere() -> None:
    for profile, status in {"strict": "fail", "default": "pass-with-warnings", "lenient": "pass-with-warnings"}.items():
        trace = TraceInMemory(profile=profile)
        claim = trace.claim(trace.reach_claiming())
        challenge = trace.challenge(claim.id)
        report = report_on(trace, profile)
        assert report.status == status
        assert codes(report) == [("claims", "CLAIM_DISPUTED", claim.sequence)]
        trace.withdraw(challenge.id)
        settled = report_on(trace, profile)
        assert codes(settled) == []
        assert settled.content["claims"][0]["challenges"][0]["standing"] == "withdrawn"


def test_a_claim_that_was_taken_back_proves_nothing_and_breaks_nothing() -> None:
    trace = TraceInMemory()
    claim = trace.claim(trace.reach_claiming())
    trace.challenge(claim.id)
    trace.revise(claim.id, retracted=True)
    report = report_on(trace)
    assert codes(report) == []
    assert report.content["claims"][0]["standing"] == "retracted"


def test_missing_and_changed_artifacts_fail_in_every_profile(trace: TraceInMemory) -> None:
    digest = Blob(OUTPUT).digest
    claim, output = trace.records[-2].sequence, trace.records[-3].sequence
    without = {name: data for name, data in WHOLE.items() if name != digest}
    for profile in ("strict", "default", "lenient"):
        report = report_on(trace, profile, without)
        assert report.status == "fail"
        expected = [("executions", "ARTIFACT_MISSING", output), ("claims", "ARTIFACT_MISSING", claim)]
        assert codes(report, "failed") == expected
        changed = report_on(trace, profile, {**WHOLE, digest: b"4 passed"})
        assert {code for _, code, _ in codes(changed, "failed")} == {"ARTIFACT_HASH_MISMATCH"}


def test_conditions_and_expected_evidence() -> None:
    for exit_code, status in ((0, "pass"), (1, "pass-with-warnings")):
        trace = TraceInMemory()
        trace.begin()
        expected = [{"check": {"text": {"contains": "passed"}}}]
        payload = {"objective": "x", "assumptions": [], "required_tools": [], "expected_evidence": expected}
        proposal = trace.say("agent:planner", "proposal_created", payload)
        trace.review(proposal.id, "conditional")  # On the condition that the exit code is 0.
        trace.complete(trace.start(trace.intend(proposal.id).id), exit_code=exit_code)
        trace.claim(proposal.id)
        report = report_on(trace)
        assert report.status == status
        (found,) = report.content["proposals"]
        assert found["expected"][0]["holds"] is True
        assert (found["conditions"][0]["holds"], found["conditions"][0]["found"]) == (exit_code == 0, exit_code)
        assert codes(report) == ([] if exit_code == 0 else [("claims", "CLAIM_UNPROVEN", proposal.sequence)])
        assert (report_on(trace, "strict").status == "fail") == (exit_code == 1)


def test_conditions_of_a_proposal_that_came_to_nothing_are_not_judged() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    trace.claim(proposal)
    other = trace.propose("another way")
    trace.review(other.id, "conditional")
    report = report_on(trace)
    assert report.status == "pass"
    assert report.content["proposals"][1]["conditions"][0]["judged"] is False


@pytest.mark.parametrize(
    "word",
    [
        None,
        {"allows": False},
        {"call_id": "another"},
        {"signed_by": "0" * 16},
    ],
)
def test_an_execution_needs_a_decision_that_allows_it(trace: TraceInMemory, word: dict[str, Any] | None) -> None:
    start = next(event for event in trace.events if event.name == "tool_execution_started")
    operator = trace.signers[OPERATOR].fingerprint
    honest = {"id": "x", "call_id": start.refs["intent"], "allows": True, "risk": "low", "signed_by": operator}
    report = report_on(trace, decision=lambda name: None if word is None else GateWord(**{**honest, **word}))
    assert codes(report) == [("executions", "ROLE_POLICY_VIOLATION", start.sequence)]
    assert report.status == "fail"


def test_a_call_that_the_gate_found_worse_needs_the_critic(trace: TraceInMemory) -> None:
    start = next(event for event in trace.events if event.name == "tool_execution_started")
    operator = trace.signers[OPERATOR].fingerprint
    word = GateWord("x", start.refs["intent"], allows=True, risk="critical", signed_by=operator)
    report = report_on(trace, decision=lambda name: word)
    assert codes(report) == [("intents", "ROLE_POLICY_VIOLATION", start.sequence)]
    assert report.content["executions"][0]["risk"]["decided"] == "critical"


def test_a_rerun_that_differs() -> None:
    for profile, status in {"strict": "fail", "default": "pass-with-warnings", "lenient": "pass-with-warnings"}.items():
        trace = TraceInMemory(profile=profile)
        trace.claim(trace.reach_claiming())
        start = next(event for event in trace.events if event.name == "tool_execution_started")
        same = report_on(trace, profile, rerun=[{"execution": start.id, "same": True}])
        assert codes(same) == []
        other = report_on(trace, profile, rerun=[{"execution": start.id, "same": False}])
        assert other.status == status
        assert codes(other) == [("executions", "NOT_REPRODUCED", start.sequence)]


def test_keys_in_one_home_are_not_independent(trace: TraceInMemory) -> None:
    def independence(report: Report) -> list[tuple[str, str]]:
        return [
            (found["status"], found["subject"])
            for found in report.content["findings"]
            if found["code"] == "NOT_INDEPENDENT"
        ]

    assert independence(report_on(trace)) == [("note", "agent:auditor"), ("note", "agent:critic")]
    assert {status for status, _ in independence(report_on(trace, "strict"))} == {"warning"}
    assert report_on(trace, "strict").status == "pass-with-warnings"


def test_the_first_broken_and_the_last_trusted_event(trace: TraceInMemory) -> None:
    report = report_on(trace, failures={5: "HASH_MISMATCH"})
    assert report.status == "fail"
    assert codes(report, "failed") == [("append_only", "HASH_MISMATCH", 5)]
    assert report.content["first_broken"] == {"sequence": 5, "event": None, "code": "HASH_MISMATCH"}
    last = trace.records[4]
    assert report.content["last_trusted"] == {"sequence": 4, "event": last.id, "hash": last.hash}
    assert report.content["claims"] == []  # Nothing after the broken record is trusted.


def test_a_missing_record_breaks_the_trace(trace: TraceInMemory) -> None:
    report = report_on(trace, records=[*trace.records[:3], *trace.records[4:]])
    assert report.content["first_broken"] == {"sequence": 3, "event": None, "code": "SEQUENCE_GAP"}


def test_the_table_of_profiles() -> None:
    table = {
        weakness: tuple(row[each] for each in ("strict", "default", "lenient"))
        for weakness, row in PROFILE_RULES.items()
    }
    assert table == {
        "disputed": ("failed", "warning", "warning"),
        "unchecked": ("failed", "note", "note"),
        "unproven": ("failed", "failed", "warning"),
        "unmet": ("failed", "warning", "warning"),
        "not_reproduced": ("failed", "warning", "warning"),
        "not_independent": ("warning", "note", "note"),
        "unknown_key": ("failed", "warning", "warning"),
    }


def test_a_decision_by_the_executors_own_gate_counts_by_its_signature(trace: TraceInMemory) -> None:
    here, trace = trace, TraceInMemory(elsewhere=["agent:executor"])
    trace.claim(trace.reach_claiming())
    trace.conclude()
    start = next(event for event in trace.events if event.name == "tool_execution_started")
    executor, digest = trace.signers["agent:executor"], "ab" * 32
    word = {"id": "x", "call_id": start.refs["intent"], "allows": True, "risk": "low", "digest": digest}
    honest = GateWord(**word, signed_by=executor.fingerprint, signature=executor.sign(digest).ed25519)
    assert report_on(trace, decision=lambda name: honest).status == "pass"
    forged = GateWord(**word, signed_by=executor.fingerprint, signature="00" * 64)
    assert report_on(trace, decision=lambda name: forged).status == "fail"
    critic = trace.signers["agent:critic"]
    other = GateWord(**word, signed_by=critic.fingerprint, signature=critic.sign(digest).ed25519)
    assert report_on(trace, decision=lambda name: other).status == "fail"
    intent = next(event for event in here.events if event.name == "tool_execution_started").refs["intent"]
    assert report_on(here, decision=lambda name: replace(honest, call_id=intent)).status == "fail", "in this home"


PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol-report.md"


def test_the_page_lists_all_reasons_and_checks() -> None:
    page = PAGE.read_text()
    table = page.partition("<!-- reasons -->")[2].partition("<!-- /reasons -->")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert {name.strip(" `"): words.strip() for name, words in rows} == dict(REASONS)
    for name in (*CHECK_NAMES, *TRACE_CHECKS):
        assert f"`{name}`" in page or f'"{name}"' in page, name


@pytest.mark.parametrize("approvals", [1, 2])
def test_every_critic_must_have_approved_what_the_gate_found_worse(approvals: int) -> None:
    """The executor plays the risk down, and names the approval of one critic."""
    trace = TraceInMemory(agents={**AGENTS, "agent:second": "critic"})
    trace.begin()
    proposal = trace.propose()
    critics = ("agent:critic", "agent:second")
    for critic in critics:
        trace.review(proposal.id, by=critic)
    intent = trace.intend(proposal.id, risk="low")
    reviews = [trace.review_intent(intent.id, by=critic) for critic in critics[:approvals]]
    start = trace.start(intent.id, review=reviews[0].id)
    word = GateWord(start.refs["decision"], intent.id, True, "high", trace.signers[OPERATOR].fingerprint)
    found = codes(report_on(trace, decision=lambda _: word), "failed")
    assert (("intents", "ROLE_POLICY_VIOLATION", start.sequence) in found) == (approvals == 1)
