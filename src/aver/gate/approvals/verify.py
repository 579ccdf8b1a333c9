"""Proving approvals afterwards: a pure function from records and keys to findings, under the check `approvals`.

It takes the records of `approvers.<tenant>` and `approvals.<tenant>`. Their seals, links and blobs are judged with the
ledger. It checks that

* an approver on the roster signed every change of the roster;
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
from aver.gate.approvals.roster import Roster, apply_record
from aver.gate.approvals.vote import (
    NOT_INDEPENDENT,
    VOTE_KIND,
    Vote,
    compute_state,
    read_vote,
    turn_problem,
    vote_problem,
)
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
    """Check the records of an approvals chain, in order. `enrolments` are the records of the approvers chain.

    An enrolment names the ledger it was made for. It must be the ledger that the chain's first record names.
    """
    checker = _ApprovalChecker(ring)
    # The roster first: requests name keys from it.
    for record in enrolments:
        with guard(checker.tally, APPROVALS_CHECK, _place_of(record)):
            checker.check_enrolment(record)
    for record in records:
        with guard(checker.tally, APPROVALS_CHECK, _place_of(record)):
            checker.check_record(record)
    return checker.tally


@dataclass(slots=True)
class _CheckedRequest:
    """A request and the votes on it so far."""

    request: ApprovalRequest
    votes: list[Vote] = field(default_factory=list)
    newest: str = ""
    used: bool = False


class _ApprovalChecker:
    def __init__(self, ring: Ring) -> None:
        self.tally = Tally()
        self._ring = ring
        self._roster = Roster()
        self._home: tuple[str, str] | None = None
        """The ledger and the tenant that the first record of the approvers chain names."""
        self._cases: dict[str, _CheckedRequest] = {}
        self._signatures: set[str] = set()
        self._uses: set[tuple[str, str]] = set()

    def check_enrolment(self, record: Sealed) -> None:
        if self._home is None:
            try:
                chain = (read_block(record.to_dict()) or {})["chain"]
                self._home = str(chain["ledger"]), str(chain["tenant"])
            except (AverError, KeyError, TypeError):
                self._home = "", ""  # then no enrolment fits
        # `apply_record` reports a broken rule as one more ignored record.
        before = len(self._roster.ignored)
        ledger, tenant = self._home
        self._roster = apply_record(self._roster, record, ledger=ledger, tenant=tenant)
        self.tally.count_done(APPROVALS_CHECK)
        for words in self._roster.ignored[before:]:
            self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", f"the roster was not changed by this: {words}")

    def check_record(self, record: Sealed) -> None:
        if record.kind == REQUEST_KIND:
            self.tally.count_done(APPROVALS_CHECK)
            request = read_request(record)
            self._cases[request.id] = _CheckedRequest(request, newest=request.opened)
            if not _matches_action(request):
                self._add_finding(
                    record, "failed", "EVIDENCE_INVALID", "the action or the diff it carries is not the one it names"
                )
            if request.anchor == "system":
                return  # the roster of the ledger does not list these keys; the ring must know them
            for identity, approver in request.approvers.items():
                if (identity, approver.key) not in self._roster.keys:
                    key = f"the key {approver.fingerprint} as that of {identity}"
                    words = f"it counts {key}, who was never enrolled with it"
                    self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", words)
        elif record.kind == VOTE_KIND:
            self.tally.count_done(APPROVALS_CHECK)
            found = read_vote(record)
            if found is None:
                return
            about, vote = found
            case = self._cases.get(about)
            if case is None:
                words = "it is about a request that is not here before it"
                self._add_finding(record, "failed", "STATE_VIOLATION", words)
                return
            if vote.is_by_person:
                self._check_vote(record, case, vote)
            elif vote.word == "used":
                self._check_use(record, case, vote)
            case.votes.append(vote)
            case.newest = max(case.newest, vote.at)

    def _check_use(self, record: Sealed, case: _CheckedRequest, vote: Vote) -> None:
        """Check that a use is the first, and that the approvals it needs came before it."""
        request = case.request
        # The key of a use names what people signed: two requests with the same digest and end share one use.
        use = request.digest, request.expires
        if case.used or use in self._uses:
            self._add_finding(record, "failed", "REPLAY", "the approval was used before")
            return
        case.used = True
        self._uses.add(use)
        before = compute_state(request, case.votes, request.approvers, now=vote.at, newest=case.newest)
        if before.state != "approved":
            words = f"it was used without the approvals it needs: {before.state}, {before.reason}"
            self._add_finding(record, "failed", "EVIDENCE_INVALID", words)

    def _check_vote(self, record: Sealed, case: _CheckedRequest, vote: Vote) -> None:
        request = case.request
        # With this `now`, the state never expires by the clock: `vote_problem` checks the vote's own time.
        before = compute_state(request, case.votes, request.approvers, now=request.opened)
        problem = vote_problem(request, vote, request.approvers) or turn_problem(
            request, vote, before.valid_approvals, before.floor
        )
        if problem is not None:
            self._add_finding(record, "failed", _VERDICT_CODES.get(problem.code, "STATE_VIOLATION"), problem.words)
            return
        if before.state in ("denied", "expired", "used"):
            words = f"the request had ended before: {before.state}"
            self._add_finding(record, "failed", "STATE_VIOLATION", words)
        if vote.statement is not None:
            signature = vote.statement.signatures[0].ed25519
            if signature in self._signatures:
                self._add_finding(record, "failed", "REPLAY", "its statement is already in an earlier record")
            self._signatures.add(signature)
        # The pinned key must be the person's, as far as the ring and the roster know, and must not have ended before.
        approver = request.approvers[str(vote.approver)]
        fingerprint, identity = approver.fingerprint, approver.identity
        entry = self._ring.entry(fingerprint)
        if approver.key not in self._ring.lookup(fingerprint):
            words = f"the key {fingerprint} of {identity} is not known here"
            # A closed ring lists every key that counts. An open one may just not know this key.
            if self._ring.closed:
                self._add_finding(record, "failed", "SIG_INVALID", words)
            else:
                self._add_finding(record, "not_checked", "UNKNOWN_SIGNER", words)
        elif entry is not None and entry.identity != identity:
            self._add_finding(
                record, "failed", "ROLE_POLICY_VIOLATION", f"{fingerprint} is the key of {entry.identity}"
            )
        ends = [end for end in (self._roster.ended.get(fingerprint), entry.retired_at if entry else None) if end]
        if ends and vote.at > min(ends):
            self._add_finding(
                record, "failed", "KEY_RETIRED", f"the key {fingerprint} of {identity} had ended at {min(ends)}"
            )
        if vote.word == "approve" and "file" in (approver.custody, vote.custody):
            self._add_finding(record, "warning", "NOT_INDEPENDENT", f"{identity}: {NOT_INDEPENDENT}")

    def _add_finding(self, record: Sealed, status: CheckStatus, code: str, words: str) -> None:
        self.tally.add(Finding(APPROVALS_CHECK, status, code, make_printable(words), _place_of(record)))


def _matches_action(request: ApprovalRequest) -> bool:
    """Whether the action in a request has its digest, and the diff that of the action, as far as both are here."""
    # A blob's digest is checked with the ledger. Here it is enough that it is the right one.
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


def _place_of(record: Sealed) -> Place:
    try:
        return Place(record.chain, record.sequence)
    except AverError:
        return Place(record.chain)
