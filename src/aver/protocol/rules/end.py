"""The final statement, the audit, and the operator's ends of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.protocol.events import Event
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.statements import REPORT_PURPOSE, SeenHead, check_signed_by, find_statements, read_report_statement

if TYPE_CHECKING:
    from aver.protocol.trace import ProtocolTrace


def judge_final_statement_signed(trace: ProtocolTrace, event: Event) -> FoldStep:
    if not trace.claims:
        words = "a final statement needs at least one claim; a claim of failure counts"
        raise EventRefused("STATE_VIOLATION", words, place="claims")
    if trace.running:
        raise EventRefused("STATE_VIOLATION", f"{len(trace.running)} call(s) have not ended", place="claims")
    if trace.disputes and trace.profile == "strict":
        words = f"{trace.disputes} challenge(s) are open, and the profile is strict"
        advice = "revise or retract the claim, or have the challenge withdrawn or ruled on"
        raise EventRefused("CLAIM_DISPUTED", words, place="claims", advice=advice)
    if event.payload["claims"] != trace.list_claims():
        words = "it must list every claim, in order, with its present standing"
        raise EventRefused("STATE_VIOLATION", words, place="claims")

    def apply() -> None:
        trace.final_statement = event

    return FoldStep("auditing", apply)


def judge_verification_run_started(trace: ProtocolTrace, event: Event) -> FoldStep:
    if event.payload["profile"] != trace.profile:
        words = f"the trace is audited by its own profile, {trace.profile}"
        raise EventRefused("STATE_VIOLATION", words, place="profile")

    def apply() -> None:
        trace.runs[event.id] = (event.sequence, event.agent)

    return FoldStep(trace.state, apply)


def judge_verification_run_completed(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload, run = event.payload, trace.runs.get(event.refs["start"])
    if run is None or run[1] != event.agent:
        raise EventRefused("STATE_VIOLATION", "it is no run that this auditor has started", place="start")
    head = SeenHead(payload["head"]["count"], payload["head"]["hash"])
    if head.count <= run[0] or not trace.has_head(head):
        words = "the report must be about a head of this trace, from the start of its run on"
        raise EventRefused("EVIDENCE_INVALID", words, place="head")
    statements = find_statements(event.statements, REPORT_PURPOSE)
    if len(statements) != 1:
        raise EventRefused("SIG_MISSING", "the auditor signs one statement about its report", place="report")
    check_signed_by(statements[0], trace.participants[event.agent].key)
    said = read_report_statement(statements[0])
    digest = payload["report"]["blob"]["digest"]
    if said != (trace.place, head, trace.profile, payload["status"], digest):
        raise EventRefused("EVIDENCE_INVALID", "the auditor's statement says something else", place="report")

    def apply() -> None:
        trace.audit = event

    return FoldStep("failed" if payload["status"] == "fail" else "completed", apply)


def judge_session_aborted(trace: ProtocolTrace, event: Event) -> FoldStep:
    return FoldStep("aborted", _do_nothing)


def judge_session_failed(trace: ProtocolTrace, event: Event) -> FoldStep:
    return FoldStep("failed", _do_nothing)


def _do_nothing() -> None:
    """Change nothing but the state."""
