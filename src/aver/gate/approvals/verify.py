"""Proving approvals afterwards: a pure function from records and keys to findings, under the check `approvals`.

It takes the records of `approvers.<tenant>` and `approvals.<tenant>`. Their seals, links and blobs are judged with the
ledger. It checks that

* an approver on the roster signed every change of the roster;
* every request has the digest and the session of its action, and names only keys that were enrolled;
* every answer belongs to its request: statement, signature under the pinned key, time, and the person's turn. The
  statement must name this ledger, this tenant and this request, and the digest of all that the request shows;
* no key approves that is known to have another purpose, or that sealed the record itself. Otherwise the ledger's key,
  which the agent may use, could pass as a person's where the verifier knows that key only;
* no key approves after its end: neither by the vote's own time, nor by that of a record before it in the chain;
* every use had the approvals it needed at that place in the chain, was of their action and inside their scope, and was
  no more than people allowed;
* what the record of an answer or a use says about action, people and statements is what was signed.

In the ledger that the ring belongs to, a key of the ring must have sealed each record, and people's keys must be those
of the ring. There the gate counts nothing else (`aver.gate.own_records`).

A key in the records proves nothing by itself: the ring must know whose key it is. Otherwise the answer is
`UNKNOWN_SIGNER`, not checked. A ring has no passkeys. A passkey is known if a key that is known endorsed its enrolment.
An approval with a key from a plain file, or by a passkey that no other key has vouched for, is a warning,
`NOT_INDEPENDENT`. So is one whose statement has version 1, `UNBOUND_STATEMENT`: it names neither ledger nor request, so
it may have been copied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aver.capsule.canonical import canonical_bytes
from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.gate.action import DIGEST_VERSION, FIRST_DIGEST_VERSION, is_description_needed
from aver.gate.approvals.request import DOWNGRADED, REQUEST_KIND, UNBOUND_VERSION, ApprovalRequest, read_request
from aver.gate.approvals.roster import (
    APPROVE_PURPOSE,
    Approver,
    ApproverKey,
    Roster,
    apply_record,
    find_ring_entry,
    ring_problem,
    sealer_problem,
    whole_key,
)
from aver.gate.approvals.vote import (
    USE_KIND,
    VOTE_KIND,
    Vote,
    compute_state,
    independence_problem,
    read_vote,
    turn_problem,
    use_problem,
    vote_problem,
)
from aver.gate.effects.known_agents import default_known_agents
from aver.keys import KeyRole, PublicKey, Ring
from aver.keys.algorithms import FINGERPRINT_DIGITS
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
    "REPLAY": "REPLAY",
    "NOT_APPROVED": "EVIDENCE_INVALID",
    "SCOPE_MISMATCH": "EVIDENCE_INVALID",
    "EVIDENCE_INVALID": "EVIDENCE_INVALID",
}
"""The verdict's code for a reason of refusal. Any other reason is a `STATE_VIOLATION`."""


def check_approvals(
    records: Iterable[Sealed],
    ring: Ring,
    *,
    ledger: str,
    tenant: str,
    enrolments: Iterable[Sealed] = (),
    is_own: bool = False,
    roles: Mapping[str, KeyRole] | None = None,
) -> Tally:
    """Check the records of an approvals chain, in order. `enrolments` are the records of the approvers chain.

    `ledger` and `tenant` are those that the chains belong to. Enrolments and answers name the ones they were made for.
    `roles` says by the 64 digits what keys are for, as the ledger's `keys` chain records it.
    `is_own` says that the ring is the one that seals in this ledger.
    """
    checker = _ApprovalChecker(ring, ledger, tenant, roles or {}, is_own=is_own)
    # The roster first: requests name keys from it.
    for record in enrolments:
        with guard(checker.tally, APPROVALS_CHECK, _place_of(record)):
            checker.check_enrolment(record)
    checker.compare_with_ring()
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
    def __init__(self, ring: Ring, ledger: str, tenant: str, roles: Mapping[str, KeyRole], *, is_own: bool) -> None:
        self.tally = Tally()
        self._ring = ring
        self._ledger = ledger
        self._tenant = tenant
        self._is_own = is_own
        self._roles = roles
        self._retired = ring.retirement_times()
        self._roster = Roster()
        self._changes: dict[str, Sealed] = {}
        """The record that gave a person the present key, by identity."""
        self._enrolled: dict[tuple[str, ApproverKey], Approver] = {}
        """Each approver as enrolled. In a request, nobody signs how a key is kept."""
        self._known_passkeys: set[tuple[str, ApproverKey]] = set()
        self._wanted = UNBOUND_VERSION
        """The highest version of the statement that a request wanted so far."""
        self._cases: dict[str, _CheckedRequest] = {}
        self._signatures: set[str] = set()
        self._uses: set[tuple[str, ...]] = set()
        self._newest = ""
        """The newest time in the chain of approvals so far."""

    def check_enrolment(self, record: Sealed) -> None:
        self.tally.count_done(APPROVALS_CHECK)
        if not self._counts_here(record):
            return
        if self._is_own and (problem := sealer_problem(record, self._ring)) is not None:
            self._add_finding(record, "failed", "KEY_MISMATCH", problem)
            return
        # `apply_record` reports a broken rule as one more ignored record.
        before = self._roster
        self._roster = apply_record(before, record, ledger=self._ledger, tenant=self._tenant, retired=self._retired)
        for words in self._roster.ignored[len(before.ignored) :]:
            self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", f"the roster was not changed by this: {words}")
        for name, approver in self._roster.approvers.items():
            if before.approvers.get(name) != approver:
                self._changes[name] = record
                self._enrolled[name, approver.key] = approver
                if any(map(self._is_known, approver.endorsers)):
                    self._known_passkeys.add((name, approver.key))
                # In our own ledger, the roster as it is now is compared with the ring: see `compare_with_ring`.
                if not self._is_own and (problem := self._role_problem(record, approver)) is not None:
                    self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", problem)

    def _is_known(self, approver: Approver) -> bool:
        """Whether the ring has the key of an approver; of a passkey, that of somebody who endorsed it."""
        if isinstance(approver.key, PublicKey):
            return approver.key in self._ring.lookup(approver.fingerprint)
        return (approver.identity, approver.key) in self._known_passkeys

    def _describe_unknown(self, approver: Approver) -> str:
        """Which key would make an approver known: their own, or of a passkey those of the people who endorsed it."""
        if isinstance(approver.key, PublicKey):
            return f"the key {approver.fingerprint} of {approver.identity} is not known here"
        words = f"the passkey {approver.fingerprint} of {approver.identity} is not known here"
        # A passkey may be endorsed by another one.
        seen, waiting, keys = set[tuple[str, ApproverKey]](), [approver], list[str]()
        while waiting:
            each = waiting.pop()
            if (name := (each.identity, each.key)) in seen:
                continue
            seen.add(name)
            if isinstance(each.key, PublicKey):
                keys.append(f"the key {each.fingerprint} of {each.identity}")
            elif name in self._enrolled:
                waiting += self._enrolled[name].endorsers
        return f"{words}: give {', or '.join(keys) or 'the key of a person'}, who endorsed it"

    def compare_with_ring(self) -> None:
        """Compare the roster, as all enrolments leave it, with the people on the ring."""
        for name, approver in self._roster.approvers.items() if self._is_own else ():
            if (problem := ring_problem(approver, self._ring)) is not None:
                self._add_finding(self._changes[name], "failed", "KEY_MISMATCH", problem)

    def _counts_here(self, record: Sealed) -> bool:
        """Report a record that no key of our own ring has sealed, in our own ledger. Returns whether it counts."""
        found = find_foreign_seal(record, self._ring) if self._is_own else None
        if found is not None:
            self._add_finding(record, *found)
        return found is None or found[0] != "failed"

    def _role_problem(self, record: Sealed, approver: Approver) -> str | None:
        """Return why an approver's key cannot be a person's: it is known as another one, or it seals records here."""
        key, identity = approver.key, approver.identity
        entry = find_ring_entry(self._ring, key)
        role = self._roles.get(whole_key(key)) if entry is None else entry.role
        is_own = role is not None and (role.identity, role.purpose) == (identity, APPROVE_PURPOSE)
        # A key with a role of its own has a file or is in ssh-agent, so it is nobody's passkey.
        if role is not None and not (is_own and isinstance(key, PublicKey)):
            return f"{key.fingerprint} is the key of {role}, and not one with which {identity} approves"
        if record.signed_by == whole_key(key)[:FINGERPRINT_DIGITS]:
            return f"{key.fingerprint}, said to be the key of {identity}, sealed this record itself"
        return None

    def check_record(self, record: Sealed) -> None:
        if record.kind not in (REQUEST_KIND, VOTE_KIND, USE_KIND) or not self._counts_here(record):
            return
        try:
            self._check_record(record)
        finally:
            self._newest = max(self._newest, record.signed_at)

    def _check_record(self, record: Sealed) -> None:
        if record.kind == REQUEST_KIND:
            self.tally.count_done(APPROVALS_CHECK)
            request = read_request(record, ledger=self._ledger, tenant=self._tenant)
            # Without this, a forged request could want the statement that names no request.
            if request.statement < self._wanted:
                self._add_finding(record, "failed", "STATE_VIOLATION", DOWNGRADED)
                return
            self._wanted = request.statement
            self._cases[request.id] = _CheckedRequest(request, newest=request.opened)
            self._check_left_out(record, request)
            if not _matches_action(request):
                self._add_finding(
                    record, "failed", "EVIDENCE_INVALID", "the action or the diff it carries is not the one it names"
                )
            # Version 2 left it out by its own rule. What follows from that is judged where the approval was used.
            elif request.digest_version == DIGEST_VERSION and request.blob_digest("action") is None:
                action = request.content["action"]
                if "description" not in action and is_description_needed(action):
                    words = "its digest leaves out its description, and nothing else is known to say what would happen"
                    self._add_finding(record, "warning", "EVIDENCE_INVALID", words)
            if request.anchor == "system":
                return  # the roster of the ledger does not list these keys; the ring must know them
            for identity, approver in request.approvers.items():
                if (identity, approver.key) not in self._roster.keys:
                    key = f"the key {approver.fingerprint} as that of {identity}"
                    words = f"it counts {key}, who was never enrolled with it"
                    self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", words)
        else:
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
        """Check that the approvals a use needs came before it, and that no more uses came than they allow."""
        request = case.request
        before = compute_state(request, case.votes, request.approvers, now=vote.at, newest=case.newest)
        if vote.use is not None and request.digest_version != FIRST_DIGEST_VERSION:
            if (problem := use_problem(request, before, vote.use)) is not None:
                self._add_finding(record, "failed", _VERDICT_CODES[problem.code], problem.words)
                return
            self._check_account(record, case, before.valid_approvals)
            return
        # A use is one of what people signed. By version 1, two requests with the same digest and end share one use.
        unbound = request.statement == UNBOUND_VERSION
        use = (request.digest, request.expires) if unbound else (request.id,)
        if before.state == "used" or case.used or use in self._uses:
            self._add_finding(record, "failed", "REPLAY", "the approval was used before")
            return
        case.used = True
        self._uses.add(use)
        if before.state != "approved":
            words = f"it was used without the approvals it needs: {before.state}, {before.reason}"
            self._add_finding(record, "failed", "EVIDENCE_INVALID", words)
            return
        if vote.use is not None or request.digest_version != FIRST_DIGEST_VERSION:
            self._add_finding(record, "failed", "STATE_VIOLATION", "a use of this request has another form")
            return
        self._check_account(record, case, before.valid_approvals)

    def _check_account(self, record: Sealed, case: _CheckedRequest, approvals: Iterable[Vote], own: str = "") -> None:
        """Compare what a record says about its action, its people and their statements with what they signed.

        `own` is the person whose vote it is. A use names the people whose approvals it is based on.
        """
        content = record.to_dict()
        authority = content["authority"]
        chain = authority["chain"][:-1] if own else authority["chain"]
        signed = {canonical_bytes(vote.statement.to_dict()): vote for vote in approvals if vote.statement is not None}
        based_on = [signed.get(canonical_bytes(statement)) for statement in chain]
        people = own or ", ".join(str(vote.approver) for vote in based_on if vote is not None)
        if content["outcome"]["result"]["digest"] != case.request.digest:
            words = "it names another action than its request"
        elif None in based_on or not people:
            words = "it has statements that are not those of the approvals before it"
        elif authority["approver"] != people:
            words = f"it says {ascii(authority['approver'])[:80]} where {people} signed"
        else:
            return
        self._add_finding(record, "failed", "EVIDENCE_INVALID", words)

    def _check_left_out(self, record: Sealed, request: ApprovalRequest) -> None:
        """Warn of a digest that leaves out arguments which this version of Aver does not know as descriptive."""
        if request.digest_version == FIRST_DIGEST_VERSION or request.blob_digest("beside") is not None:
            return  # The digest covers everything; or the blob need not be here, and the decision is checked anyway.
        action, beside = request.content["action"], request.content["beside"]
        left_out = beside.get("arguments") if isinstance(beside, dict) else None
        if not isinstance(left_out, dict) or not request.has_scope_of(beside):
            words = "it does not hold what its digest leaves out, or is of another session"
            self._add_finding(record, "failed", "EVIDENCE_INVALID", words)
            return
        tool = action.get("tool") if isinstance(action, dict) else None
        known = default_known_agents().find_descriptive(tool) if isinstance(tool, str) else left_out.keys()
        if more := sorted(left_out.keys() - known):
            words = f"its digest leaves out {', '.join(more)}, which may change what the tool does"
            self._add_finding(record, "warning", "EVIDENCE_INVALID", words)

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
        if before.state in ("denied", "expired", "closed", "used"):
            words = f"the request had ended before: {before.state}"
            self._add_finding(record, "failed", "STATE_VIOLATION", words)
        if vote.statement is not None:
            signed = vote.statement.signatures[0]
            signature = signed.ed25519 if signed.passkey is None else signed.passkey.signature
            if signature in self._signatures:
                self._add_finding(record, "failed", "REPLAY", "its statement is already in an earlier record")
            self._signatures.add(signature)
        self._check_account(record, case, before.valid_approvals, str(vote.approver))
        # The pinned key must be the person's, as far as the ring and the roster know, and must not have ended before.
        approver = request.approvers[str(vote.approver)]
        fingerprint, identity = approver.fingerprint, approver.identity
        if not self._is_known(approver):
            self._add_finding(record, "not_checked", "UNKNOWN_SIGNER", self._describe_unknown(approver))
        elif (foreign := self._role_problem(record, approver)) is not None:
            self._add_finding(record, "failed", "ROLE_POLICY_VIOLATION", foreign)
        # The ring, or the owner's export, may know of an end that the roster does not have.
        ends = [end for end in (self._roster.ended.get(fingerprint), self._retired.get(whole_key(approver.key))) if end]
        # Whoever seals the vote writes its time. The records before it were sealed earlier all the same.
        if ends and max(vote.at, self._newest) > min(ends):
            self._add_finding(
                record, "failed", "KEY_RETIRED", f"the key {fingerprint} of {identity} had ended at {min(ends)}"
            )
        if request.statement == UNBOUND_VERSION and vote.word == "approve":
            words = f"{identity} signed no ledger, tenant or request: an earlier version of Aver asked for that"
            self._add_finding(record, "warning", "UNBOUND_STATEMENT", words)
        enrolled = self._enrolled.get((identity, approver.key))
        weakness = independence_problem(enrolled, approver.custody, vote.custody)
        if vote.word == "approve" and weakness is not None:
            self._add_finding(record, "warning", "NOT_INDEPENDENT", f"{identity}: {weakness}")

    def _add_finding(self, record: Sealed, status: CheckStatus, code: str, words: str) -> None:
        self.tally.add(Finding(APPROVALS_CHECK, status, code, make_printable(words), _place_of(record)))


def find_foreign_seal(record: Sealed, ring: Ring) -> tuple[CheckStatus, str, str] | None:
    """Return status, code and words for a record of our own ledger that no key of our own ring has sealed.

    The record's signature was checked against the key of this name, if the ring or the known keys have it.
    """
    if ring.entry(record.signed_by) is not None:
        return None
    key = f"the key {record.signed_by[:32]}"
    if ring.lookup(record.signed_by):
        words = f"{key} is known, but not of this ledger's own ring: the gate here does not count what it sealed"
        return "warning", "UNKNOWN_SIGNER", words
    return "failed", "UNKNOWN_SIGNER", f"{key} is not of this ledger's own ring, so the record counts for nothing"


def _matches_action(request: ApprovalRequest) -> bool:
    """Whether a request has the digest and session of its action, and the action's diff, as far as they are here."""
    # A blob's digest is checked with the ledger. Here it is enough that it is the right one.
    apart = request.blob_digest("action")
    if apart is not None:
        return apart == request.digest
    action = request.content["action"]
    try:
        if hashlib.sha256(canonical_bytes(action)).hexdigest() != request.digest:
            return False
        if request.digest_version == FIRST_DIGEST_VERSION and not request.has_scope_of(action):
            return False
        if request.digest_version != FIRST_DIGEST_VERSION and request.blob_digest("beside") is None:
            request.read_action(_no_blob)
        apart = request.blob_digest("diff")
        if apart is None:
            request.read_diff(None, action)
            return True
        return bool(apart == action.get("diff_sha256"))
    except (AverError, AttributeError, TypeError, ValueError):
        return False


def _no_blob(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not here")


def _place_of(record: Sealed) -> Place:
    try:
        return Place(record.chain, record.sequence)
    except AverError:
        return Place(record.chain)
