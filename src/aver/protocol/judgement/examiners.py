"""Examining traces of the protocol, beyond the seals of their records: for ledgers, imports and bundles alike.

The holder of a key can seal any record in its name. So every record of a trace is held to the rules of the protocol,
and to the others:

    participants   each key has joined by a statement of its own; the auditor knew the keys, or says which it did not
    roles          each event was said by an agent of the role that may say it
    order          each event came in a state that admits it
    intents        no call without an intent before it, an executable proposal, and the critics' approval where due
    executions     each call has its sealed input, one decision of the gate that allows it, and one end
    claims         each claim has its evidence, recomputed from the artifacts; disputes stand as the profile allows
    attribution    each event is sealed or signed by the one key by which its agent had joined then
    report         the auditor's report is, byte for byte, what the trace gives; the auditor has signed it
    append_only    no record of the trace is missing, and none was used twice

The report is made again from the records, by the trace's own profile (module `report` beside this one). Its findings
are the findings of the verdict: a trace is `verified` where the report passes, `qualified` where it has warnings. A
report of other bytes is `EVIDENCE_INVALID`: its auditor lied, or the trace is another than the one that was audited.

A trace under way has no report yet. That qualifies the verdict on the trace, not that on its ledger. Verifying writes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver.capsule.json_reader import Unreadable, read_json
from aver.errors import BadInput, IntegrityError, NotFound
from aver.log import debug
from aver.protocol.events import Event
from aver.protocol.judgement.gate_words import GateWords
from aver.protocol.judgement.joined_keys import JoinedKeys
from aver.protocol.judgement.report import (
    PROFILE_RULES,
    REPORT_VERSION,
    Report,
    ReportFinding,
    build_report,
    status_of,
    worst_audit_status,
)
from aver.protocol.judgement.report_text import describe_finding
from aver.protocol.judgement.trace_follower import TraceFollower, find_dispute
from aver.protocol.judgement.trace_judge import EVENTS_MAX, TraceJudge
from aver.protocol.statements import SeenHead, TracePlace
from aver.protocol.trace import ProtocolTrace
from aver.text import plural
from aver.verdict import Examination, ExaminedChain, Finding, Place, Tally
from aver.verdict.chain import make_printable
from aver.verdict.examiner import TRACE_CHECKS, ValidRecords, guard
from aver.verdict.verdict import UnrecordedKey

if TYPE_CHECKING:
    from aver.protocol.judgement.rulings import RulingExaminer

REPORT_CHECK = "report"

_DECISION_CHECKS = ("intents", "executions")
"""The checks that need the gate's decisions."""


def examine_traces(examination: Examination) -> Tally:
    """Judge every trace that has records which were not verified earlier."""
    tally, open_traces = Tally(), 0
    for chain in examination.select("protocol"):
        if chain.count and chain.start >= chain.count:
            continue  # Nothing was added since it was verified.
        examiner = _TraceExaminer(examination, chain)
        with guard(tally, "order", Place(chain.name)):
            examiner.examine()
        tally.merge(examiner.tally)
        open_traces += examiner.is_open
    # The checks are reported in the order in which they were first made.
    tally.done = {check: tally.done[check] for check in TRACE_CHECKS if check in tally.done}
    if open_traces and not examination.is_single:
        tally.skip(REPORT_CHECK, f"{plural(open_traces, 'trace')} without a report", matters=False)
        if REPORT_CHECK in tally.done:
            tally.notes[REPORT_CHECK] = f"{tally.done[REPORT_CHECK]} checked; {open_traces} traces have no report yet"
    return tally


class _TraceExaminer:
    """Judges one trace. Its records are read once, those that a follower has taken not again."""

    def __init__(self, examination: Examination, chain: ExaminedChain) -> None:
        self.tally = Tally()
        self.is_open = False
        """Whether the trace has no report: it is under way, was aborted, or failed before its audit."""
        self._examination = examination
        self._reader = examination.reader
        self._chain = chain
        trace = chain.origin.partition(".")[2]
        self._place = TracePlace(examination.ledger, examination.tenant, chain.origin)
        follower = examination.follower
        self._follower = follower if isinstance(follower, TraceFollower) else None
        followed = None if self._follower is None else self._follower.judge
        self._judge = followed or self._build_judge(trace)
        self._words = GateWords(self._reader, trace)
        self._rulings: RulingExaminer | None = None

    def _build_judge(self, trace: str) -> TraceJudge:
        rules = self._examination.rules
        return TraceJudge(self._place, trace, rules.ring, roles=rules.roles)

    def examine(self) -> None:
        if self._chain.is_excerpt or self._chain.count > EVENTS_MAX:
            words = "only a part of the trace is here" if self._chain.is_excerpt else f"it has over {EVENTS_MAX} events"
            self._skip_all(words)
            return
        judge = self._judge
        if self._follower is not None and self._follower.judge is judge:
            for ruling, about in self._follower.rulings:
                self._examine_ruling(ruling, about)
        for record in self._reader.read(self._chain.origin, judge.count, self._chain.count):
            event = judge.read(record)
            if event is None:
                break
            if event.name == "verification_run_completed":
                self._examine_audit(event)
            dispute = find_dispute(judge.trace, event)
            if not judge.admit(event):
                break
            if dispute is not None:
                self._examine_ruling(event, dispute)
        if judge.broken is None and judge.count < self._chain.count:
            words = f"record {judge.count} is missing, or does not hold"
            judge.broken, judge.words = ReportFinding("append_only", "failed", "SEQUENCE_GAP", judge.count), words
        self._count_done()
        self._vouch()
        if not judge.is_operator_known:
            self._skip_all("the key of the trace's operator is not known here")
        elif judge.broken is not None:
            self._report_broken(judge.broken)
        elif judge.audit is None:
            self._report_open(judge.trace)

    def _vouch(self) -> None:
        """Note the keys whose joins the operator has sealed. That stands for their records in the `keys` chain."""
        judge, rules = self._judge, self._examination.rules
        joined = JoinedKeys(judge.trace, rules.ring, rules.roles)
        if judge.broken is not None:
            for record in self._reader.read(self._chain.origin, judge.count, self._chain.count):
                joined.take(record)
        self.tally.vouched = {UnrecordedKey(key, self._chain.name) for key in joined.keys}

    # --- rulings

    def _examine_ruling(self, event: Event, dispute: str) -> None:
        from aver.protocol.judgement.rulings import RulingExaminer  # Not above: it loads the approvals.

        self._rulings = self._rulings or RulingExaminer(self._examination)
        problem = self._rulings.examine(event, dispute, self._judge.trace.trace)
        if problem is None:
            return
        if problem.code:
            self._add("claims", "failed", problem.code, f"no person made this ruling: {problem.words}", event.sequence)
        else:
            self._skip("claims", f"the ruling in record {event.sequence}: {problem.words}")

    # --- the report

    def _examine_audit(self, event: Event) -> None:
        """Make the report again, before the event that brings it is admitted, and compare."""
        payload = event.payload
        head = SeenHead(payload["head"]["count"], payload["head"]["hash"])
        judge = self._find_judge(head, event.sequence)
        report = self._build_report(judge, head, payload.get("rerun") or ())
        self._add_findings(report)
        self._examine_keys(event, judge.trace)
        if self._lacks_decisions:
            self._skip_decisions()
            return
        data = self._read_report(payload["report"]["blob"]["digest"], report)
        if data is None:
            return
        absent = [each["sha256"] for each in report.content["artifacts"] if each["state"] != "here"]
        if absent and data != report.data:
            # The auditor may have seen them. That they are gone is reported with the record that refers to them.
            self._skip(REPORT_CHECK, f"an artifact is not here or was changed, such as {absent[0]}")
            return
        self.tally.count_done(REPORT_CHECK)
        problem = _find_difference(report, data)
        unknown = [PROFILE_RULES["unknown_key"][self._judge.trace.profile]] if payload["keys"]["unknown"] else []
        status = worst_audit_status(report.status, status_of(unknown))
        if not problem and payload["status"] != status:
            problem = f"the auditor says {payload['status']}, and the trace gives {status}"
        if problem:
            self._add(REPORT_CHECK, "failed", "EVIDENCE_INVALID", problem, event.sequence)

    def _find_judge(self, head: SeenHead, sequence: int) -> TraceJudge:
        """The judge of the trace up to a head."""
        if head.count == sequence:
            return self._judge
        # Somebody joined between the audit and its end: the report is about less.
        judge = self._build_judge(self._judge.trace.trace)
        judge.take(self._reader.read(self._chain.origin, 0, min(head.count, sequence)))
        return judge

    def _build_report(self, judge: TraceJudge, head: SeenHead, rerun: Any) -> Report:
        reader = self._reader
        return build_report(
            judge.facts(
                head=head,
                profile=judge.trace.profile,
                blob=reader.blob,
                decision=self._words.find,
                rerun=rerun,
                are_artifacts_intact=isinstance(reader, ValidRecords) and reader.has_intact_blobs(self._chain.origin),
            )
        )

    @property
    def _lacks_decisions(self) -> bool:
        """Whether the gate's decisions are not here, and need not be. Known once a report was made."""
        return not self._words.are_here and not self._examination.is_complete

    def _skip_decisions(self) -> None:
        for check in (*_DECISION_CHECKS, REPORT_CHECK):
            self._skip(check, "the gate's decisions about the trace are not here")

    def _read_report(self, digest: str, report: Report) -> bytes | None:
        """The bytes of the auditor's report; None if they are not here, or of a version that cannot be compared."""
        try:
            data = self._reader.blob(digest)
        except (NotFound, BadInput, IntegrityError) as error:
            self._skip(REPORT_CHECK, f"the report is not here: {error.message}")
            return None
        if data == report.data:
            return data
        try:
            version = read_json(data)
            version = version.get("v") if isinstance(version, dict) else None
        except Unreadable:
            version = None
        if isinstance(version, int) and version != REPORT_VERSION:
            self._skip(REPORT_CHECK, f"the report has the version {version}; this Aver makes {REPORT_VERSION}")
            return None
        return data

    def _examine_keys(self, event: Event, trace: ProtocolTrace) -> None:
        """Hold the auditor's account of the keys that it knew to those that the trace bound at its head."""
        keys = event.payload["keys"]
        named = sorted([*keys["known"], *keys["unknown"]])
        if named != sorted(trace.bound_keys):
            words = "the auditor's lists of keys are not the keys of the trace"
            self._add(REPORT_CHECK, "failed", "EVIDENCE_INVALID", words, event.sequence)
        for fingerprint in keys["unknown"]:
            status = PROFILE_RULES["unknown_key"][trace.profile]
            words = f"the auditor did not know the key {fingerprint}"
            self._add("participants", status, "UNKNOWN_SIGNER", words, event.sequence)

    # --- findings

    def _add_findings(self, report: Report, *, only_failures: bool = False) -> None:
        """Add the findings of a report. Notes are no findings of a verdict."""
        for found in report.content["findings"]:
            is_left_out = found["status"] == "note" or (only_failures and _is_unfinished(found))
            # Without the decisions, no call is allowed by one. That is no fault of the trace.
            if self._lacks_decisions and found["code"] == "ROLE_POLICY_VIOLATION":
                is_left_out = is_left_out or found["check"] in _DECISION_CHECKS
            if not is_left_out:
                words = describe_finding(found, report.content)
                self._add(found["check"], found["status"], found["code"], words, found["sequence"])

    def _report_broken(self, broken: ReportFinding) -> None:
        self._add(broken.check, "failed", broken.code, self._judge.words, broken.sequence)
        for check in TRACE_CHECKS:
            self._skip(check, f"nothing after record {broken.sequence} of {self._chain.name} was judged")

    def _report_open(self, trace: ProtocolTrace) -> None:
        """A trace without an audit: its calls are held to the gate, and its claims are nobody's last word yet."""
        self.is_open = True
        head = trace.head
        if head is not None:
            self._add_findings(self._build_report(self._judge, head, ()), only_failures=True)
            if self._lacks_decisions:
                self._skip_decisions()
        if self._examination.is_single:
            state = trace.state if trace.is_over else "under way"
            self._skip(REPORT_CHECK, f"the trace is {state}: there is no report")

    def _count_done(self) -> None:
        trace, count = self._judge.trace, self._judge.count
        done = {
            "participants": len(trace.bound_keys),
            "roles": count,
            "order": count,
            "intents": len(trace.intents),
            "executions": len(trace.executions),
            "claims": len(trace.claims),
            "attribution": count,
            "append_only": count,
        }
        for check, times in done.items():
            if times:
                self.tally.count_done(check, times)
            else:
                self.tally.skip(check, "there are none", matters=False)

    def _skip_all(self, words: str) -> None:
        for check in TRACE_CHECKS:
            self._skip(check, words)

    def _skip(self, check: str, words: str) -> None:
        self.tally.skip(check, make_printable(words), matters=True)

    def _add(self, check: str, status: Any, code: str, words: str, sequence: int | None) -> None:
        place = Place(self._chain.name, sequence)
        debug("protocol", "%s at %s: %s", code, place, words)
        self.tally.add(Finding(check, status, code, make_printable(words), place))


def _find_difference(report: Report, data: bytes) -> str:
    """The first part in which the auditor's report is not the one that the trace gives; empty if it is the same."""
    if data == report.data:
        return ""
    try:
        found = read_json(data)
    except Unreadable:
        found = None
    if not isinstance(found, dict):
        return "the auditor's report is not one"
    names = sorted(found.keys() | report.content.keys())
    name = next((name for name in names if found.get(name) != report.content.get(name)), "form")
    return f"the auditor's report is not what the trace gives: {name} differs"


def _is_unfinished(found: Mapping[str, Any]) -> bool:
    """Whether a finding may still go away while its trace is under way."""
    return bool(found["status"] != "failed" or found["check"] == "claims")
