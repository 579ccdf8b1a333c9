"""The final statement, the audit, and the operator's ends of a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aver.protocol.events import Event
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.statements import REPORT_PURPOSE, SeenHead, check_signed_by, find_statements, read_report_statement

if TYPE_CHECKING:
    from aver.protocol.trace import ProtocolTrace

RERUN_SKIPS = ("REFUSED", "OTHER_COMMIT", "ARGUMENTS_MASKED", "NO_TOOL")
"""Why an auditor did not repeat a call."""

_SKIPPED_KEYS = frozenset({"execution", "skipped"})
_REPEATED_KEYS = frozenset({"execution", "same", "exit_code", "outputs"})
_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch


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
    _check_rerun(trace, payload.get("rerun", ()))

    def apply() -> None:
        trace.audit = event

    return FoldStep("failed" if payload["status"] == "fail" else "completed", apply)


def _check_rerun(trace: ProtocolTrace, entries: Iterable[Mapping[str, Any]]) -> None:
    """Raise unless each entry is about another call that could be repeated, and does not contradict itself.

    What a repeated call gave is the auditor's word. That it was called repeatable, and how it ended, the trace tells.
    """
    seen = set()
    for index, entry in enumerate(entries):
        where = f"rerun[{index}]"
        execution = trace.executions.get(str(entry.get("execution")))
        if execution is None or execution.id in seen:
            raise EventRefused("EVIDENCE_INVALID", "it is no call of this trace, or named twice", place=where)
        seen.add(execution.id)
        if execution.code != "COMPLETED" or not trace.intents[execution.intent].payload["repeatable"]:
            raise EventRefused("EVIDENCE_INVALID", "nobody may repeat this call", place=where)
        if entry.keys() == _SKIPPED_KEYS and entry["skipped"] in RERUN_SKIPS:
            continue
        if entry.keys() != _REPEATED_KEYS or type(entry["same"]) is not bool or not _are_digests(entry["outputs"]):
            raise EventRefused("SCHEMA_INVALID", "it has a form that Aver does not know", place=where)
        if entry["same"] and entry["exit_code"] != execution.exit_code:
            raise EventRefused("EVIDENCE_INVALID", "the same call has another exit code", place=where)


def _are_digests(outputs: Any) -> bool:
    return isinstance(outputs, dict) and all(isinstance(each, str) and _DIGEST(each) for each in outputs.values())


def judge_session_aborted(trace: ProtocolTrace, event: Event) -> FoldStep:
    return FoldStep("aborted", _do_nothing)


def judge_session_failed(trace: ProtocolTrace, event: Event) -> FoldStep:
    return FoldStep("failed", _do_nothing)


def _do_nothing() -> None:
    """Change nothing but the state."""
