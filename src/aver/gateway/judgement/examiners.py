"""Examining the records of acts, beyond their seals: for verifiers of ledgers, imports, bundles and act files.

The holder of the ledger's key can seal any record. He cannot make the two policy servers sign, nor a person, nor a
principal. So each act is held to what these have signed, and to the other records about it.

`evidence`: the accept predicate (`aver.gateway.proof.predicate`) is applied again to each `act.commit`, with the sealed
shares and attestations. The verifier computes the request's hash from the inputs that the PREVIEW keeps. Ages count by
the record's own time. Attestations count by public keys of `policy:0` and `policy:1` that the verifier knows; without
them the check is not made, and the verdict is `qualified`. MACs are checked where their secret keys are at hand. The
attestations of each PREVIEW that can be committed must hold, too.

`effects`: a commit has one PREVIEW, which allows it; one decision of the gate, about the same request, by the same
rules, facts and patch; where a person must approve, one use of an approval of that very action; and one outcome, with
the digest of what went out. Nothing succeeds without a commit. Acts without an outcome, acts in insecure mode, and acts
on the caller's own confirmation are warnings.

`delegation`: acts on behalf of a principal have a token that allowed them then (module `delegation_evidence`). The
records of issued and revoked tokens hold, and so do the calls that a principal elsewhere has signed (module
`ingress_evidence`).

In the ledger that the ring belongs to, records that no key of the ring has sealed count for nothing and are reported.
Each chain is read once, together with the session's decisions, in bounded memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from aver.capsule.aver_block import read_kind
from aver.capsule.sealed import Sealed
from aver.clock import now
from aver.errors import AverError, IntegrityError, NotFound
from aver.gate.approvals.verify import find_foreign_seal
from aver.gate.examiners import RecordedUse, has_chain, read_approval_uses, read_chain
from aver.gateway.act_records import COMMIT_KIND, CONFINEMENT_KIND, INGRESS_KIND, OUTCOME_KIND, PREVIEW_KIND
from aver.gateway.delegation import DELEGATION_PURPOSE
from aver.gateway.delegation_records import ISSUE_KIND, REVOKE_KIND, delegations_chain, read_issue, read_revocation
from aver.gateway.judgement.act_rules import (
    KEYS_UNKNOWN,
    OUTCOME_UNKNOWN,
    ActTrust,
    are_signers_unknown,
    find_attestation_problem,
    find_commit_problems,
    find_confirmation_problem,
    find_decision_problem,
    find_outcome_problem,
    find_preview_problem,
    find_previewed_decision_problem,
    find_signer_problem,
    judge_evidence,
    load_trust,
)
from aver.gateway.judgement.delegation_evidence import DelegationJudge
from aver.gateway.judgement.ingress_evidence import IngressJudge
from aver.gateway.judgement.mediation_evidence import MediationJudge
from aver.gateway.judgement.recorded_act import (
    ActHeader,
    GatedDecision,
    RecordedCommit,
    RecordedPreview,
    parse_time,
    read_header,
    read_recorded_commit,
    read_recorded_outcome,
    read_recorded_preview,
    select_statements,
)
from aver.gateway.judgement.session_decisions import SessionDecisions
from aver.gateway.proof.attestation import POLICY_PURPOSE
from aver.gateway.proof.predicate import Acceptance
from aver.verdict import Examination, ExaminedChain, Finding, Place, Tally
from aver.verdict.chain import make_printable
from aver.verdict.examiner import guard
from aver.verdict.verdict import CheckStatus

EVIDENCE_CHECK = "evidence"
EFFECTS_CHECK = "effects"
DELEGATION_CHECK = "delegation"

ACTS_KEPT = 20_000
"""Acts of one chain that wait for their COMMIT or outcome, and are kept. Each takes about 2 kB."""

COMMITTED_KEPT = 500_000
"""Ids of committed acts that are kept to find one that was committed twice."""

OPEN_SECONDS = 600.0
"""Age up to which an act without an outcome is said to be under way. A command may take minutes."""

LOOK_BACK = 200
"""Records before the first new one that are read along, for acts that were begun then."""


def examine_acts(examination: Examination) -> Tally:
    """Judge every act, and every record of a delegation, that was not verified earlier."""
    examiner = _ActExaminer(examination)
    for chain in examination.select("delegations"):
        examiner.examine_delegations(chain)
    for chain in examination.select("gateway"):
        examiner.examine_chain(chain)
    examiner.add_notes()
    return examiner.tally


class _ActExaminer:
    """Takes the records of acts in order, chain by chain."""

    def __init__(self, examination: Examination) -> None:
        self.tally = Tally()
        self._examination = examination
        self._reader = examination.reader
        self._own_ring = examination.rules.ring if examination.is_own else None
        self._trust = load_trust(examination)
        self._delegations = DelegationJudge(examination.rules.ring, self._trust.principals, self._load_revoked)
        self._revoked: dict[str, float] | None = None
        self._uses: dict[str, RecordedUse] | None = None
        self._are_uses_read = False
        self._counts: Counter[str] = Counter()
        """What the notes of the checks tell."""
        self._committed: set[str] = set()
        """The ids of committed acts, of all chains."""
        self._chain = ExaminedChain("", "", 0)
        self._session = ""
        self._decisions = SessionDecisions(examination, "")
        self._ingress = self._open_ingress("")
        self._mediation = MediationJudge("")
        self._previews: dict[str, RecordedPreview] = {}
        """PREVIEWs that can be committed, by the id of the record. Their outcomes end them."""
        self._commits: dict[str, tuple[RecordedCommit, RecordedPreview | None]] = {}
        """COMMITs without an outcome so far, each with its PREVIEW."""
        self._by_kind: dict[str, Callable[[ActHeader, Mapping[str, Any]], None]] = {
            PREVIEW_KIND: self._examine_preview,
            COMMIT_KIND: self._examine_commit,
            OUTCOME_KIND: self._examine_outcome,
        }
        self._is_ours = False
        """Whether a key of the verifier's own ring has sealed the record at hand."""
        self._past_from = 0
        """Records of the chain before this place have not been read."""
        self._has_forgotten = False

    # --- reading a chain

    def examine_chain(self, chain: ExaminedChain) -> None:
        """Examine the acts of a session, from the chain's start."""
        self._chain, self._session = chain, chain.origin.partition(".")[2]
        self._previews, self._commits, self._has_forgotten = {}, {}, False
        self._decisions = SessionDecisions(self._examination, self._session)
        self._ingress = self._open_ingress(self._session)
        self._mediation = MediationJudge(self._session)
        self._past_from = 0 if chain.is_excerpt else max(0, chain.start - LOOK_BACK)
        self._read_past(self._past_from, chain.start)
        for record in self._reader.read(chain.origin, chain.start, chain.count):
            self._examine_record(record)
        latest = parse_time(now())
        for commit, _ in self._commits.values():
            header = commit.header
            if header.place.sequence is not None and header.place.sequence < chain.start:
                continue  # The verification before this one has reported it.
            if latest - header.at <= OPEN_SECONDS:
                self._counts["under way"] += 1
            else:
                words = "nobody knows whether it happened: its executor has left no outcome"
                self._add(EFFECTS_CHECK, "warning", "OUTCOME_UNKNOWN", words, header.place)

    def _read_past(self, start: int, stop: int) -> None:
        """Read records that were verified earlier, to know the acts that they began. Nothing about them is reported."""
        if start >= stop:
            return
        tally, counts = self.tally, self._counts
        self.tally, self._counts = Tally(), Counter()
        try:
            for record in self._reader.read(self._chain.origin, start, stop):
                self._examine_record(record)
        finally:
            self.tally, self._counts = tally, counts

    def _examine_record(self, record: Sealed) -> None:
        content = record.to_dict()  # Once: for short records, parsing is the most costly part.
        kind = read_kind(content)
        place = Place(record.chain, content["sequence"])
        if kind == INGRESS_KIND:
            self._examine_ingress(record, content, place)
        if kind == CONFINEMENT_KIND and self._counts_here(record, EVIDENCE_CHECK, place):
            with self._judge(EVIDENCE_CHECK, place):
                self._mediation.add_verdict(content)
        examine = self._by_kind.get(kind)
        if examine is None:
            return
        check = EFFECTS_CHECK if kind == OUTCOME_KIND else EVIDENCE_CHECK
        if not self._counts_here(record, check, place):
            return
        self._is_ours = self._examination.is_own or self._examination.rules.ring.entry(record.signed_by) is not None
        with self._judge(check, place):
            header = read_header(place, content)
            if header.correlation_id != header.action_id or header.session != self._session:
                self._fail(EFFECTS_CHECK, "it is of another act or session than its place says", place)
            if header.is_insecure:
                words = "the gateway ran in insecure mode, which needs no evidence"
                self._add(EVIDENCE_CHECK, "warning", "INSECURE_MODE", words, place)
            examine(header, content)

    def _counts_here(self, record: Sealed, check: str, place: Place) -> bool:
        """Report a record that no key of our own ring has sealed, in our own ledger. Returns whether it counts."""
        foreign = None if self._own_ring is None else find_foreign_seal(record, self._own_ring)
        if foreign is None:
            return True
        self._add(check, *foreign, place)
        return foreign[0] != "failed"

    @contextmanager
    def _judge(self, check: str, place: Place) -> Iterator[None]:
        """Turn an exception in the judging of one record into a finding, so that the others are judged as well."""
        try:
            with guard(self.tally, check, place):
                yield
        except NotFound as error:
            self._skip(check, f"some could not be judged, such as {place}: {error.message}")
        except IntegrityError as error:
            self._add(check, "failed", error.code, error.message, place)

    # --- the three kinds of records

    def _examine_preview(self, header: ActHeader, content: Mapping[str, Any]) -> None:
        preview, place = read_recorded_preview(header, content, self._reader.blob), header.place
        self.tally.count_done(EVIDENCE_CHECK)
        self._counts["embedded"] += header.deployment == "embedded" and preview.has_shares
        if preview.is_missing_inputs:
            self._skip(EVIDENCE_CHECK, f"the inputs of some acts are not here, such as {place}")
        elif preview.request_sha256 and not preview.computed_sha256:
            self._counts["inputs not kept"] += 1
        words = find_preview_problem(preview)
        if preview.has_shares and not words:
            statements = select_statements(content, POLICY_PURPOSE)
            words = find_attestation_problem(preview, statements, self._select_trust(statements))
        if words:
            self._fail(EVIDENCE_CHECK, words, place)
        decision = self._decisions.find(preview.decision_id)
        if decision is not None:
            if words := find_previewed_decision_problem(preview, decision):
                self._fail(EFFECTS_CHECK, words, place)
        elif preview.decision_id or preview.has_shares:
            self._report_no_decision("the gate's decision that it names is not there", place)
        self._judge_mediation(header)
        self._judge_delegation(preview, content, header)
        self._judge_federated(content, place)
        if preview.has_shares:
            self._keep(self._previews, header.record_id, preview)

    def _examine_commit(self, header: ActHeader, content: Mapping[str, Any]) -> None:
        commit, place = read_recorded_commit(header, content), header.place
        self.tally.count_done(EVIDENCE_CHECK)
        self.tally.count_done(EFFECTS_CHECK)
        self._judge_mediation(header)
        preview: RecordedPreview | None = self._recall(self._previews, header.parent)
        self._keep(self._commits, header.record_id, (commit, preview))
        is_second = header.action_id in self._committed
        if len(self._committed) < COMMITTED_KEPT:
            self._committed.add(header.action_id)
        if is_second:
            self._add(EFFECTS_CHECK, "failed", "REPLAY", "this act was committed before", place)
        if preview is None:
            self._report_missing(EVIDENCE_CHECK, "it has no PREVIEW before it that allows it", place)
            return
        for words in find_commit_problems(commit, preview):
            self._fail(EFFECTS_CHECK, words, place)
        self._judge_delegation(preview, content, header)
        if header.is_insecure:
            return  # Nothing more was demanded of it, and the warning says so.
        statements = select_statements(content, POLICY_PURPOSE)
        trust = self._select_trust(statements)
        acceptance = judge_evidence(commit, preview, statements, trust, replay_seen=is_second)
        for problem in acceptance.problems:
            detail = f" ({problem.detail})" if problem.detail else ""
            self._fail(EVIDENCE_CHECK, f"{problem.reason_code}{detail}: {problem.words}", place)
        if words := find_signer_problem(acceptance, statements, trust):
            self._fail(EVIDENCE_CHECK, words, place)
        self._counts["MACs not checked"] += "mac" in acceptance.not_checked
        self._examine_basis(commit, preview, content, acceptance)

    def _select_trust(self, statements: list[Any]) -> ActTrust:
        """Return the keys by which attestations are judged. Keys of another ledger's servers may be unknown here."""
        if self._is_ours or not are_signers_unknown(statements, self._trust):
            return self._trust
        self._skip(EVIDENCE_CHECK, KEYS_UNKNOWN)
        return replace(self._trust, policy_keys=None)

    def _examine_basis(
        self, commit: RecordedCommit, preview: RecordedPreview, content: Mapping[str, Any], acceptance: Acceptance
    ) -> None:
        """Compare a COMMIT with the gate's decision, and with the approval that it rests on."""
        place = commit.header.place
        decision = self._decisions.find(commit.decision_id)
        if commit.approval_use:
            self._examine_use(commit, content, decision)
        elif acceptance.bits is not None and acceptance.bits.need_confirm:
            words = "no person's key has approved it: its executor took the caller's word (gateway.confirm = \"flag\")"
            self._add(EFFECTS_CHECK, "warning", "UNCONFIRMED", words, place)
        if decision is None:
            self._report_no_decision("the gate's decision that it rests on is not there", place)
            return
        if decision.is_missing_basis:
            self._skip(EVIDENCE_CHECK, f"the facts of some decisions are not here, such as that of {place}")
        elif not decision.facts_sha256:
            self._counts["facts masked"] += 1
        if words := find_decision_problem(commit, preview, decision, acceptance):
            self._fail(EFFECTS_CHECK, words, place)

    def _examine_use(self, commit: RecordedCommit, content: Mapping[str, Any], decision: GatedDecision | None) -> None:
        """Check that a COMMIT has used an approval of its own. A second COMMIT finds none left."""
        if not self._are_uses_read:
            self._uses, self._are_uses_read = read_approval_uses(self._examination), True
        if self._uses is None:
            self._skip(EFFECTS_CHECK, "the approvals that acts refer to are not here")
            return
        used = self._uses.pop(commit.approval_use, None)
        if words := find_confirmation_problem(commit, content, decision, used):
            self._fail(EFFECTS_CHECK, f"it says that a person approved it, and {words}", commit.header.place)

    def _examine_outcome(self, header: ActHeader, content: Mapping[str, Any]) -> None:
        outcome, place = read_recorded_outcome(header, content, self._reader.blob), header.place
        self.tally.count_done(EFFECTS_CHECK)
        commit, preview = self._recall(self._commits, header.parent) or (None, None)
        if words := find_outcome_problem(outcome, commit, preview):
            if commit is None:
                self._report_missing(EFFECTS_CHECK, words, place)
            else:
                self._fail(EFFECTS_CHECK, words, place)
        if commit is None:
            return
        del self._commits[header.parent]
        self._previews.pop(commit.preview_id, None)
        if outcome.reason_code == OUTCOME_UNKNOWN:
            words = "nobody knows whether it happened: its executor died at work, or got no answer"
            self._add(EFFECTS_CHECK, "warning", "OUTCOME_UNKNOWN", words, place)
        elif preview is not None and not preview.sent_sha256:
            self._counts["sent not computed"] += 1

    # --- records that others refer to

    def _recall(self, known: Mapping[str, Any], record_id: str) -> Any:
        """Return what is known of an earlier record; None where there is none. Reads earlier records, if needed."""
        if record_id and record_id not in known:
            self._read_whole_past()
        return known.get(record_id)

    def _read_whole_past(self) -> None:
        """Read the earlier records of the chain that have not been read yet."""
        stop, self._past_from = self._past_from, 0
        self._read_past(0, stop)

    def _keep(self, known: dict[str, Any], record_id: str, value: Any) -> None:
        known[record_id] = value
        if len(known) > ACTS_KEPT:
            del known[next(iter(known))]
            self._has_forgotten = True

    def _judge_mediation(self, header: ActHeader) -> None:
        """Check that a verdict covers a record that claims a confinement. An excerpt has no verdicts."""
        if not self._chain.is_excerpt and (words := self._mediation.judge(header, self._read_whole_past)):
            self._fail(EVIDENCE_CHECK, words, header.place)

    def _judge_delegation(self, preview: RecordedPreview, content: Mapping[str, Any], header: ActHeader) -> None:
        tokens = select_statements(content, DELEGATION_PURPOSE)
        if not tokens and not preview.context and not preview.delegation:
            return
        self.tally.count_done(DELEGATION_CHECK)
        for status, code, words in self._delegations.judge(preview, tokens, header.at, self._reader.blob):
            self._add(DELEGATION_CHECK, status, code, words, header.place)

    def _open_ingress(self, session: str) -> IngressJudge:
        return IngressJudge(self._examination.rules.ring, self._trust.principals, self._examination.ledger, session)

    def _examine_ingress(self, record: Sealed, content: Mapping[str, Any], place: Place) -> None:
        """Examine the record of a signed call."""
        if not self._counts_here(record, DELEGATION_CHECK, place):
            return
        self.tally.count_done(DELEGATION_CHECK)
        self._counts["signed calls"] += 1
        with self._judge(DELEGATION_CHECK, place):
            for status, code, words in self._ingress.judge_call(content):
                self._add(DELEGATION_CHECK, status, code, words, place)

    def _judge_federated(self, content: Mapping[str, Any], place: Place) -> None:
        """Check that a principal has signed a call for an act whose door says so. An excerpt has no calls."""
        if self._chain.is_excerpt:
            return
        problem = self._ingress.judge_act(content, self._read_whole_past)
        if problem is not None:
            self._add(DELEGATION_CHECK, *problem, place)

    def _load_revoked(self) -> Mapping[str, float]:
        """Return when tokens were revoked, by jti. They are read when the first act needs them."""
        if self._revoked is not None:
            return self._revoked
        self._revoked = {}
        chain = delegations_chain(self._examination.tenant)
        if not self._examination.is_complete and not has_chain(self._reader, chain):
            self._skip(DELEGATION_CHECK, "the records of revoked delegations are not here")
        for record in read_chain(self._reader, chain):
            try:
                foreign = None if self._own_ring is None else find_foreign_seal(record, self._own_ring)
                if record.kind == REVOKE_KIND and (foreign is None or foreign[0] != "failed"):
                    revocation = read_revocation(record)
                    self._revoked.setdefault(revocation.jti, parse_time(revocation.at))
            except (AverError, AttributeError, KeyError, TypeError):
                continue  # It is reported where the chain itself is examined.
        return self._revoked

    def examine_delegations(self, chain: ExaminedChain) -> None:
        """Examine the records of issued and revoked tokens."""
        for record in self._reader.read(chain.origin, chain.start, chain.count):
            place = Place(record.chain, record.sequence)
            if record.kind not in (ISSUE_KIND, REVOKE_KIND) or not self._counts_here(record, DELEGATION_CHECK, place):
                continue
            self.tally.count_done(DELEGATION_CHECK)
            with self._judge(DELEGATION_CHECK, place):
                if record.kind == REVOKE_KIND:
                    read_revocation(record)
                    continue
                read_issue(record, self._reader.blob)
                statement = record.to_dict()["authority"]["chain"][0]
                if (problem := self._delegations.judge_issue(statement, self._reader.blob)) is not None:
                    self._add(DELEGATION_CHECK, *problem, place)

    # --- the report

    def add_notes(self) -> None:
        """Say what the counts of the checks do not say."""
        counts, tally = self._counts, self.tally
        if self._trust.keys_problem and tally.done.get(EVIDENCE_CHECK):
            tally.skip(EVIDENCE_CHECK, self._trust.keys_problem, matters=True)
        for check, notes in _NOTES.items():
            words = [text.format(counts[name]) for name, text in notes.items() if counts[name]]
            if words and tally.done.get(check):
                tally.notes[check] = "; ".join([f"{tally.done[check]} checked", *words])
        if not tally.done.get(DELEGATION_CHECK):
            tally.skip(DELEGATION_CHECK, "no act was done on behalf of a principal", matters=False)

    def _report_no_decision(self, words: str, place: Place) -> None:
        """Report that a decision is not there: as a failure, unless it need not be here."""
        if self._decisions.are_here:
            self._report_missing(EFFECTS_CHECK, words, place)
        else:
            self._skip(EFFECTS_CHECK, "the decisions that acts rest on are not here")

    def _report_missing(self, check: str, words: str, place: Place) -> None:
        """Report that another record is not there: as a failure, unless there were too many to keep."""
        if self._has_forgotten or self._decisions.has_forgotten:
            self._skip(check, f"there are too many acts to keep; some were not judged, such as {place}")
        else:
            self._fail(check, words, place)

    def _skip(self, check: str, words: str) -> None:
        self.tally.skip(check, words, matters=True)

    def _fail(self, check: str, words: str, place: Place) -> None:
        self._add(check, "failed", "EVIDENCE_INVALID", words, place)

    def _add(self, check: str, status: CheckStatus, code: str, words: str, place: Place) -> None:
        self.tally.add(Finding(check, status, code, make_printable(words), place))


_NOTES = {
    EVIDENCE_CHECK: {
        "embedded": "{} by one process that held the keys of both policy servers",
        "MACs not checked": "the MACs of {} not checked, for want of their keys: the attestations count",
        "inputs not kept": "{} request hashes not computed again, because the inputs were not kept",
        "facts masked": "the facts of {} not compared, because secrets in them were masked",
    },
    DELEGATION_CHECK: {
        "signed calls": "signed calls among them: {}; their bodies were not kept and are not compared with the acts",
    },
    EFFECTS_CHECK: {
        "under way": "{} under way",
        "sent not computed": "{} not compared with what went out, because the inputs were not kept",
    },
}
"""What the report of each check says besides, by the name of the count."""
