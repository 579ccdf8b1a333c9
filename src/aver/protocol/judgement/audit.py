"""The auditor's act: judge the stored records of a trace, make the report, and say whose keys were known.

    audit_trace(session, rerun=False)       the engine behind `session.auditor.audit`: for the report that is sealed
    report_trace(ledger, trace, …)          the same report on any trace, by a stricter profile too; appends nothing

Both read what is stored, never what a session remembers. The ledger's own verification comes first; the first record
that it faults is the report's first broken one.

`write_report_files` writes what an auditor hands out: `report.json` (the signed bytes), `report.txt`, `report.html`,
`statement.json` (the auditor's signature, where there is one) and `keys.json` (the keys that the trace binds).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.new_file import check_new_path, write_new_file
from aver.keys.ring import Ring
from aver.ledger import Ledger
from aver.protocol.events import Event, trace_chain
from aver.protocol.judgement.gate_words import GateWords
from aver.protocol.judgement.report import (
    PROFILE_RULES,
    STRICTNESS,
    Report,
    build_report,
    status_of,
    worst_audit_status,
)
from aver.protocol.judgement.report_page import render_report_page
from aver.protocol.judgement.report_text import ClaimWords, render_report_text
from aver.protocol.judgement.trace_judge import TraceJudge
from aver.protocol.runner import AuditOutcome
from aver.protocol.statements import REPORT_PURPOSE, SeenHead, TracePlace, find_statements
from aver.protocol.trace import ProtocolTrace

if TYPE_CHECKING:
    from aver.keys.statement import Statement
    from aver.protocol.session import ProtocolSession

REPORT_FILES = ("report.json", "report.txt", "report.html", "statement.json", "keys.json")


@dataclass(frozen=True, slots=True)
class TraceReport:
    """A report, and what people need beside it."""

    report: Report
    trace: ProtocolTrace
    statement: Statement | None
    """The auditor's signed word about this very report; None where nobody has signed it."""

    @property
    def texts(self) -> dict[str, ClaimWords]:
        """The words of the claims, by id."""
        return {claim.id: ClaimWords(claim.text, claim.speaker) for claim in self.trace.claims.values()}


def audit_trace(session: ProtocolSession, *, rerun: bool = False) -> AuditOutcome:
    """Judge a trace for its auditor, up to the head that the session has seen."""
    head = session.fold.head
    if head is None:
        raise BadInput("the trace has no events", advice="aver protocol run begins one")
    ledger, again = session.ledger, None
    judge = _judge_stored(ledger, session.trace, head.count)
    if rerun:
        from aver.protocol.judgement.rerun import rerun_executions  # Not above: it asks the gate.

        again = rerun_executions(session, judge.trace)
    report = _build(ledger, judge, head, judge.trace.profile, again or ())
    known, unknown = split_keys(judge.trace, ledger.keys.ring())
    status = worst_audit_status(report.status, weigh_unknown_keys(unknown, judge.trace.profile))
    return AuditOutcome(status, report.data, known, unknown, again)


def report_trace(ledger: Ledger, trace: str, *, profile: str | None = None) -> TraceReport:
    """Make the report on a trace as it is stored. Nothing is appended.

    Of a trace that was audited, it is the report at the auditor's head. `profile` may be stricter than the trace's own.
    Raises `NotFound` if there is no such trace, and `BadInput` for a milder profile.
    """
    chain = trace_chain(trace)
    count = ledger.head(chain).count
    if count == 0:
        raise NotFound(f"this ledger has no trace {trace}", advice="aver protocol list names them")
    judge = _judge_stored(ledger, trace, count)
    audit = judge.audit
    head = SeenHead(count, str(ledger.head(chain).hash))
    if audit is not None:
        head = SeenHead(audit.payload["head"]["count"], audit.payload["head"]["hash"])
        judge = _judge_stored(ledger, trace, head.count)
    own = judge.trace.profile
    if profile is not None and STRICTNESS.index(profile) < STRICTNESS.index(own):
        raise BadInput(
            f"the profile {profile} is milder than that of the trace, {own}", advice="leave --profile out, or raise it"
        )
    rerun = () if audit is None else audit.payload.get("rerun") or ()
    report = _build(ledger, judge, head, profile or own, rerun)
    return TraceReport(report, judge.trace, _find_signed(audit, report))


def split_keys(trace: ProtocolTrace, ring: Ring) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fingerprints of all keys that a trace binds: those that a ring knows, and those that it does not."""
    known: list[str] = []
    unknown: list[str] = []
    for fingerprint, participant in trace.bound_keys.items():
        is_known = any(key.ed25519 == participant.key.ed25519 for key in ring.lookup(fingerprint))
        (known if is_known else unknown).append(fingerprint)
    return tuple(sorted(known)), tuple(sorted(unknown))


def weigh_unknown_keys(unknown: Iterable[str], profile: str) -> str:
    """The status of an audit by the keys that its auditor does not know."""
    return status_of(PROFILE_RULES["unknown_key"][profile] for _ in unknown)


def write_report_files(out: Path, made: TraceReport, *, force: bool = False) -> list[Path]:
    """Write the files of a report into a directory. Raises `BadInput` if one of them is there, unless `force`."""
    content, texts = made.report.content, made.texts
    keys = [
        {"agent": each.agent, "role": each.role, "public_key": each.key.ed25519, "public_key_pq": each.key.ml_dsa_65}
        for each in made.trace.bound_keys.values()
    ]
    files: dict[str, bytes] = {
        "report.json": made.report.data,
        "report.txt": render_report_text(content, texts).encode(),
        "report.html": render_report_page(content, texts).encode(),
        "keys.json": orjson.dumps(keys, option=orjson.OPT_INDENT_2) + b"\n",
    }
    if made.statement is not None:
        files["statement.json"] = orjson.dumps(made.statement.to_dict(), option=orjson.OPT_INDENT_2) + b"\n"
    out.mkdir(parents=True, exist_ok=True)
    for name in files:
        check_new_path(out / name, force=force)  # First, so that all of them are written, or none.
    for name, data in files.items():
        write_new_file(out / name, data, force=force)
    return [out / name for name in files]


def _judge_stored(ledger: Ledger, trace: str, count: int) -> TraceJudge:
    """Verify the stored records of a trace, and fold the first `count` of them."""
    chain = trace_chain(trace)
    stored = ledger.head(chain).count
    failures: dict[int, str] = {}
    for found in ledger.verify(chain, examiners=()).findings:
        # An artifact that is gone leaves the records as they are. The report names it by itself.
        if found.status != "failed" or found.check == "blobs" or found.place.chain not in (chain, None):
            continue
        sequence = found.place.sequence
        if sequence is None or sequence >= stored:
            sequence = count - 1  # It is about the end of the chain: records that were there once are gone.
        failures.setdefault(sequence, found.code)
    judge = TraceJudge(TracePlace(ledger.id, ledger.tenant, chain), trace, ledger.keys.ring(), failures)
    judge.take(ledger.read(chain, 0, count))
    return judge


def _build(
    ledger: Ledger, judge: TraceJudge, head: SeenHead, profile: str, rerun: Iterable[Mapping[str, Any]]
) -> Report:
    words = GateWords(ledger, judge.trace.trace)
    return build_report(judge.facts(head=head, profile=profile, blob=ledger.blob, decision=words.find, rerun=rerun))


def _find_signed(audit: Event | None, report: Report) -> Statement | None:
    if audit is None or audit.payload["report"]["blob"]["digest"] != report.sha256:
        return None
    return next(iter(find_statements(audit.statements, REPORT_PURPOSE)), None)
