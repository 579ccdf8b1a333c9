"""Proving approvals afterwards: a pure function from records and keys to findings, under the check `approvals`.

It takes the records of `approvers.<tenant>` and `approvals.<tenant>`. Their seals, links and blobs are judged with the
ledger. It checks that

* somebody on the roster signed every change of the roster;
* every request has the digest of its action, and names only keys that were enrolled;
* every answer belongs to its request: statement, signature under the pinned key, time, and the person's turn;
* every use had the approvals it needed at that place in the chain, and was the first.

A key in the records proves nothing by itself: the ring must know whose key it is. Otherwise the answer is
`UNKNOWN_SIGNER`, not checked. An approval with a key from a plain file is a warning, `NOT_INDEPENDENT`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from aver.capsule.aver_block import read_block
from aver.capsule.canonical import canonical_bytes
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.gate.approvals.request import REQUEST_KIND, ApprovalRequest, read_request
from aver.gate.approvals.roster import Approver, Roster, apply_record
from aver.gate.approvals.state import NOT_INDEPENDENT, compute_state, turn_problem
from aver.gate.approvals.vote import VOTE_KIND, Vote, read_vote, vote_problem
from aver.keys import Ring
from aver.verdict import Finding, Place, Tally
from aver.verdict.chain import make_printable
from aver.verdict.examiner import guard
from aver.verdict.verdict import CheckStatus

APPROVALS_CHECK = "approvals"

_VERDICT_CODES = {
    "SIG_MISSING": "SIG_MISSING",
    "SIG_INVALID": "SIG_INVALID",
    "UNKNOWN_KEY": "SIG_INVALID",
    "KEY_RETIRED": "KEY_RETIRED",
    "DIGEST_MISMATCH": "EVIDENCE_INVALID",
    "STATEMENT_MISMATCH": "EVIDENCE_INVALID",
    "NOT_LISTED": "ROLE_POLICY_VIOLATION",
    "ALREADY_DECIDED": "REPLAY",
}
"""The verdict's code for a reason of refusal. Any other reason is a `STATE_VIOLATION`."""


def check_approvals(records: Iterable[Sealed], ring: Ring, *, enrolments: Iterable[Sealed] = ()) -> Tally:
    """Findings about the records of an approvals chain, in order; `enrolments` are those of the approvers chain.

    An enrolment names the ledger it was made for; that is held to the ledger that the chain's first record names.
    """
    checker = _ApprovalChecker(ring)
    for record in enrolments:
        with guard(checker.tally, APPROVALS_CHECK, _place_of(record)):
            checker.check_enrolment(record)
    for record in records:
        with guard(checker.tally, APPROVALS_CHECK, _place_of(record)):
            checker.take(record)
    return checker.tally


@dataclass(slots=True)
class _CheckedRequest:
    """A request and what was said about it so far."""

    request: ApprovalRequest
    said: list[Vote] = field(default_factory=list)
    newest: str = ""
    used: bool = False


class _ApprovalChecker:
    def __init__(self, ring: Ring) -> None:
        self.tally = Tally()
        self._ring = ring
        self._roster = Roster()
        self._home: tuple[str, str] | None = None
        self._cases: dict[str, _CheckedRequest] = {}
        self._signatures: set[str] = set()
        self._uses: set[tuple[str, str]] = set()

    def check_enrolment(self, record: Sealed) -> None:
        if self._home is None:
            self._home = _read_ledger_identity(record)
        before = len(self._roster.ignored)
        ledger, tenant = self._home
        self._roster = apply_record(self._roster, record, ledger=ledger, tenant=tenant)
        self.tally.count_done(APPROVALS_CHECK)
        for words in self._roster.ignored[before:]:
            self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", f"the roster was not changed by this: {words}")

    def take(self, record: Sealed) -> None:
        if record.kind == REQUEST_KIND:
            self.tally.count_done(APPROVALS_CHECK)
            self._check_request(record, read_request(record))
        elif record.kind == VOTE_KIND:
            self.tally.count_done(APPROVALS_CHECK)
            self._check_vote_record(record)

    def _check_request(self, record: Sealed, request: ApprovalRequest) -> None:
        self._cases[request.id] = _CheckedRequest(request, newest=request.opened)
        if not _matches_action(request):
            self._add_finding(
                record, "failed", "EVIDENCE_INVALID", "the action or the diff it carries is not the one it names"
            )
        if request.anchor == "system":
            return  # Whose keys those are, the roster of the ledger does not say; the ring must.
        for identity, approver in request.approvers.items():
            if (identity, approver.key) not in self._roster.keys:
                words = (
                    f"it counts the key {approver.fingerprint} as that of {identity}, who was never enrolled with it"
                )
                self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", words)

    def _check_vote_record(self, record: Sealed) -> None:
        found = read_vote(record)
        if found is None:
            return
        about, decided = found
        case = self._cases.get(about)
        if case is None:
            self._add_finding(record, "failed", "STATE_VIOLATION", "it is about a request that is not here before it")
            return
        if decided.is_by_person:
            self._check_vote(record, case, decided)
        elif decided.word == "used":
            self._check_use(record, case, decided)
        case.said.append(decided)
        case.newest = max(case.newest, decided.at)

    def _check_vote(self, record: Sealed, case: _CheckedRequest, decided: Vote) -> None:
        request = case.request
        before = compute_state(request, case.said, request.approvers, now=request.opened)
        problem = vote_problem(request, decided, request.approvers) or turn_problem(
            request, decided, before.valid_approvals, before.floor
        )
        if problem is not None:
            self._add_finding(record, "failed", _VERDICT_CODES.get(problem.code, "STATE_VIOLATION"), problem.words)
            return
        if before.state in ("denied", "expired", "used"):
            words = f"the request had ended before: {before.state}"
            self._add_finding(record, "failed", "STATE_VIOLATION", words)
        self._check_signature_is_new(record, decided)
        self._check_key(record, request.approvers[str(decided.approver)], decided)

    def _check_signature_is_new(self, record: Sealed, decided: Vote) -> None:
        if decided.statement is None:
            return
        signature = decided.statement.signatures[0].ed25519
        if signature in self._signatures:
            self._add_finding(record, "failed", "REPLAY", "its statement is already in an earlier record")
        self._signatures.add(signature)

    def _check_key(self, record: Sealed, approver: Approver, decided: Vote) -> None:
        """Whether the pinned key is the person's, as far as the ring and the roster know, and was good then."""
        fingerprint, identity = approver.fingerprint, approver.identity
        entry = self._ring.entry(fingerprint)
        if approver.key not in self._ring.lookup(fingerprint):
            words = f"the key {fingerprint} of {identity} is not known here"
            if self._ring.closed:
                self._add_finding(record, "failed", "SIG_INVALID", words)
            else:
                self._add_finding(record, "not_checked", "UNKNOWN_SIGNER", words)
        elif entry is not None and entry.identity != identity:
            self._add_finding(
                record, "failed", "ROLE_POLICY_VIOLATION", f"{fingerprint} is the key of {entry.identity}"
            )
        ends = [end for end in (self._roster.ended.get(fingerprint), entry.retired_at if entry else None) if end]
        if ends and decided.at > min(ends):
            self._add_finding(
                record, "failed", "KEY_RETIRED", f"the key {fingerprint} of {identity} had ended at {min(ends)}"
            )
        if decided.word == "approve" and "file" in (approver.custody, decided.custody):
            self._add_finding(record, "warning", "NOT_INDEPENDENT", f"{identity}: {NOT_INDEPENDENT}")

    def _check_use(self, record: Sealed, case: _CheckedRequest, decided: Vote) -> None:
        request = case.request
        use = request.digest, request.expires
        if case.used or use in self._uses:
            self._add_finding(record, "failed", "REPLAY", "the approval was used before")
            return
        case.used = True
        self._uses.add(use)
        before = compute_state(request, case.said, request.approvers, now=decided.at, newest=case.newest)
        if before.state != "approved":
            words = f"it was used without the approvals it needs: {before.state}, {before.reason}"
            self._add_finding(record, "failed", "EVIDENCE_INVALID", words)

    def _add_finding(self, record: Sealed, status: CheckStatus, code: str, words: str) -> None:
        self.tally.add(Finding(APPROVALS_CHECK, status, code, make_printable(words), _place_of(record)))


def _matches_action(request: ApprovalRequest) -> bool:
    """Whether the action in a request has its digest, and the diff that of the action, as far as both are here."""
    apart = request.blob_digest("action")
    if apart is not None:
        return apart == request.digest
    action = request.content["action"]
    try:
        if hashlib.sha256(canonical_bytes(action)).hexdigest() != request.digest:
            return False
        apart = request.blob_digest("diff")
        if apart is None:
            request.read_diff(None, action)
            return True
        return bool(apart == action.get("diff_sha256"))
    except (AverError, AttributeError, TypeError, ValueError):
        return False


def _read_ledger_identity(record: Sealed) -> tuple[str, str]:
    """The ledger and the tenant that a chain's first record names."""
    try:
        chain = (read_block(record.to_dict()) or {})["chain"]
        return str(chain["ledger"]), str(chain["tenant"])
    except (AverError, KeyError, TypeError):
        return "", ""


def _place_of(record: Sealed) -> Place:
    try:
        return Place(record.chain, record.sequence)
    except AverError:
        return Place(record.chain)
