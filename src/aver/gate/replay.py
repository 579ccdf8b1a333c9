"""Holding the gate's own records to more than their seals: for whoever verifies a ledger.

`approvals`: each enrolment, request, answer and use to the signatures it needs (`approvals.checking`).

`decisions`: each decision is made again, from what its record says it was made by, and must come out the same; what it
says of its session's past must be what the decisions before it say; and each that calls itself approved by a human
must have used an approval of exactly that action. A decision whose record holds masked secrets, or that was refused
because there was nothing to decide by, cannot be made again, and the verdict says so.

Whoever holds the ledger's key can seal a decision that was never made. They cannot make the same inputs lead to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.approvals.verify import APPROVALS_CHECK as APPROVALS
from aver.gate.approvals.verify import check_approvals
from aver.gate.approvals.vote import read_vote
from aver.gate.decision_record import DECISION_KIND, MASK_MARK, decision_chain, replay_decision
from aver.gate.session import EMPTY_SESSION, read_session_state
from aver.ledger import Ledger
from aver.ledger.examiners import VerificationScope
from aver.verdict import Finding, Place, Tally
from aver.verdict.chain import make_printable

__all__ = ["EXAMINERS"]

DECISIONS_CHECK = "decisions"


def examine_approvals(ledger: Ledger, scope: VerificationScope) -> Tally:
    """All of them, also those verified before: each rests on what came before it."""
    if not scope.chains("approvals") and not scope.chains("approvers"):
        return Tally()
    answers = _read_chain(ledger, approvals_chain(ledger.tenant))
    enrolments = _read_chain(ledger, approvers_chain(ledger.tenant))
    try:
        return check_approvals(answers, scope.rules.ring, enrolments=enrolments)
    except AverError as error:
        return _tally_unreadable(APPROVALS, error)


def examine_decisions(ledger: Ledger, scope: VerificationScope) -> Tally:
    chains = scope.chains("gate")
    if not chains:
        return Tally()
    examination = _DecisionExaminer(ledger)
    for row in chains:
        try:
            start = scope.starts.get(row.name, 0)
            examination.begin(row.name, start)
            for record in ledger.read(row.name, start, row.count):
                if record.kind == DECISION_KIND:
                    examination.take(record)
        except AverError as error:
            examination.tally.merge(_tally_unreadable(DECISIONS_CHECK, error))
    return examination.finish()


class _DecisionExaminer:
    """Decisions, one after the other, and the approvals that are left for them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._uses = _count_approval_uses(ledger)
        self._unrepeatable: Counter[str] = Counter()
        self._standing: Mapping[str, Any] = EMPTY_SESSION
        self.tally = Tally()

    def begin(self, chain: str, start: int) -> None:
        """The decisions of a session, from this one on."""
        try:
            self._standing = read_session_state(self._ledger, chain, start)
        except (KeyError, TypeError, AttributeError):
            self._standing = EMPTY_SESSION  # Whoever looked at what comes before was told of it.

    def take(self, record: Sealed) -> None:
        place = Place(record.chain, record.sequence)
        content = record.to_dict()
        again = replay_decision(content, self._ledger.blob)
        self.tally.count_done(DECISIONS_CHECK)
        if again.status == "other":
            self._add_failure(f"the gate did not decide this: {again.words}", place)
        elif again.status == "unrepeatable":
            self._unrepeatable[again.words] += 1
        elif again.status == "not_checked":
            words = f"some could not be made again, such as {place}: {again.words}"
            self.tally.skip(DECISIONS_CHECK, words, matters=True)
        result = content["outcome"].get("result")
        if isinstance(result, dict):
            self._check_past(result, place)
            if result.get("decision") == "human_approved":
                self._check_approval_use(str(result.get("digest")), place)

    def _check_past(self, result: Mapping[str, Any], place: Place) -> None:
        """The past of a decision is what the decision before has left; of actions without a session there is none."""
        action, facts = result.get("action"), result.get("facts")
        session = action.get("session") if isinstance(action, dict) else None
        if not isinstance(session, str) or not isinstance(facts, dict):
            return  # That it is no decision was told.
        if MASK_MARK.decode() not in session and decision_chain(session) != place.chain:
            self._add_failure(f"it is of the session {session!r}, whose decisions are elsewhere", place)
        before = self._standing if session else EMPTY_SESSION
        if result.get("session") is None:
            return
        if any(facts.get(name) != before[name] for name in EMPTY_SESSION):
            self._add_failure("what it says of the session's past is not what the decision before it says", place)
        self._standing = result["session"]

    def _check_approval_use(self, digest: str, place: Place) -> None:
        if not self._uses[digest]:
            self._add_failure("it says that a human approved this, and no approval of it was used", place)
        else:
            self._uses[digest] -= 1

    def _add_failure(self, words: str, place: Place) -> None:
        self.tally.add(Finding(DECISIONS_CHECK, "failed", "EVIDENCE_INVALID", make_printable(words), place))

    def finish(self) -> Tally:
        """The tally, with how many decisions nobody can make again."""
        if total := sum(self._unrepeatable.values()):
            made = self.tally.done[DECISIONS_CHECK] - total
            reasons = "; ".join(f"{count}: {words}" for words, count in sorted(self._unrepeatable.items()))
            self.tally.notes[DECISIONS_CHECK] = f"{made} made again, {total} not ({reasons})"
        return self.tally


def _count_approval_uses(ledger: Ledger) -> Counter[str]:
    """How often an approval was used, by the digest of the action."""
    uses: Counter[str] = Counter()
    for record in _read_chain(ledger, approvals_chain(ledger.tenant)):
        try:
            found = read_vote(record)
            if found is not None and found[1].word == "used":
                uses[str(record.to_dict()["outcome"]["result"]["digest"])] += 1
        except AverError:
            continue  # The check of approvals tells of it.
    return uses


def _read_chain(ledger: Ledger, chain: str) -> Iterator[Sealed]:
    try:
        yield from ledger.read(chain)
    except NotFound:
        return


def _tally_unreadable(check: str, error: AverError) -> Tally:
    tally = Tally()
    tally.skip(check, f"the records cannot be read: {error.message}", matters=True)
    return tally


EXAMINERS = (examine_approvals, examine_decisions)
