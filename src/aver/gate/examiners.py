"""Examining the gate's own records, beyond their seals: for verifiers of ledgers, bundles and `.cap` files.

`approvals`: the enrolments, requests, answers and uses must have the signatures that they need
(`aver.gate.approvals.verify`).

`decisions`: each decision is made again from the inputs in its record, and must come out the same. The session's past
in its record must be the one that the decision before has left. A decision that claims a human's approval must have
used an approval of exactly its action, in its session, that no other decision has used. The request must show what the
gate decided when it asked, and the decision must be no worse than that. Words that say what an action would do must be
those that the person was shown, also where an old digest does not cover them: `approvals` reports these, because the
page can find them. A decision cannot be made again
where its record holds masked secrets, or where it was refused without being judged: there were no rules, or those who
were to decide could not, or disagreed. The verdict counts these. Only a refusal can be of that kind. A decision of
another version of Aver is not checked, and that matters: who forges one can name any version.

`changes`: the records of changed rules, settings and keys (`aver.gate.changes`). The newest change is named. A warning
says so where harmful actions pass since a change that did not pass before, or where rules ask nobody about anything.

In the ledger that the ring belongs to, the first two report records that no key of the ring has sealed.

The holder of the ledger's key can seal a decision that was never made. He cannot make the same inputs lead to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from aver.capsule.blobs import restore_large_texts
from aver.capsule.canonical import canonical_bytes
from aver.capsule.masking.mask import mask
from aver.capsule.sealed import Sealed
from aver.errors import AverError, NotFound
from aver.gate.action import DIGEST_VERSION, bound_content, is_description_needed
from aver.gate.approvals.comparison import find_other_words, find_request_problem, find_worse
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request import REQUEST_KIND, UNBOUND_VERSION, ApprovalRequest, read_request, session_scope
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.approvals.verify import APPROVALS_CHECK, check_approvals, find_foreign_seal
from aver.gate.approvals.vote import Vote, read_vote
from aver.gate.call_decisions import ASKED_AND_REFUSED, SHOWED_SECRET, STATE_OUTCOMES
from aver.gate.changes import CHANGE_KIND, read_change
from aver.gate.decision_record import (
    DECISION_KIND,
    DOMAIN,
    OBSERVE,
    OUTCOME_KIND,
    SETTINGS_CHAIN,
    RecordedDecision,
    decision_chain,
)
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.facts.session_state import (
    EMPTY_SESSION,
    REQUIRED_STATE,
    state_after_click,
    state_after_refusal,
    state_after_secret,
)
from aver.gate.replay import MASK_MARK, OTHER_VERSION, replay_decision
from aver.verdict import EvidenceReader, Examination, ExaminedChain, Finding, Place, Tally
from aver.verdict.chain import make_printable
from aver.verdict.examiner import guard
from aver.verdict.verdict import CheckStatus

DECISIONS_CHECK = "decisions"
CHANGES_CHECK = "changes"

LOOK_BACK = 50
"""Records that are read at a time to find the session's state before a place."""


def examine_approvals(examination: Examination) -> Tally:
    """Check all approvals, also those verified earlier: each depends on the records before it."""
    reader, tenant = examination.reader, examination.tenant
    if not examination.is_complete and not has_chain(reader, approvers_chain(tenant)):
        tally = Tally()
        tally.skip(APPROVALS_CHECK, "the approvers' enrolments are not here", matters=True)
        return tally
    return check_approvals(
        read_chain(reader, approvals_chain(tenant)),
        examination.rules.ring,
        ledger=examination.ledger,
        tenant=tenant,
        enrolments=read_chain(reader, approvers_chain(tenant)),
        is_own=examination.is_own,
        roles=examination.rules.roles,
    )


def examine_decisions(examination: Examination, known: KnownAgents | None = None) -> Tally:
    """Make every decision again that was not verified earlier."""
    examiner = _DecisionExaminer(examination, known)
    tally = examiner.tally
    for chain in examination.select("gate"):
        examiner.examine_chain(chain)
    # Say how many decisions cannot be made again, and why. Where that is all of them, nothing was checked.
    made = tally.done.get(DECISIONS_CHECK, 0)
    if total := sum(examiner.unrepeatable.values()):
        reasons = "; ".join(f"{count}: {words}" for words, count in sorted(examiner.unrepeatable.items()))
        words = tally.notes[DECISIONS_CHECK] = f"{made} made again, {total} not ({reasons})"
        tally.skip(DECISIONS_CHECK, words, matters=False)
    if examiner.observed:
        words = f"{examiner.observed} in the mode observe: nothing was held back"
        before = tally.notes.get(DECISIONS_CHECK)
        tally.notes[DECISIONS_CHECK] = f"{before}; {words}" if before else f"{made} checked, {words}"
    if examiner.without_past:
        words = f"{examiner.without_past} could not be compared with the decisions before them, which are not here"
        tally.skip(DECISIONS_CHECK, words, matters=True)
    return tally


def examine_changes(examination: Examination) -> Tally:
    """Name the changes of rules, settings and keys that were not verified earlier."""
    tally = Tally()
    for chain in examination.select("gate"):
        if chain.origin != SETTINGS_CHAIN:
            continue
        found = [
            read_change(record)
            for record in examination.reader.read(chain.origin, chain.start, chain.count)
            if record.kind == CHANGE_KIND
        ]
        changes = [change for change in found if not change.is_first]
        tally.count_done(CHANGES_CHECK, len(found))
        if changes:
            last = changes[-1]
            more = f" ({'; '.join(last.loosened)})" if last.loosened else ""
            words = f"rules, settings or keys changed {len(changes)} times, last at {last.at}: {last.words}{more}"
            tally.notes[CHANGES_CHECK] = make_printable(words)
        # Machines that share a ledger have settings of their own: the newest of each counts.
        newest = {change.record.signed_by: change for change in found}
        for change in found:
            now = newest[change.record.signed_by]
            place = Place(change.record.chain, change.record.sequence)
            if opened := sorted(now.passing_canaries.intersection(change.opened)):
                words = f"since the change at {change.at} these would pass unasked: {', '.join(opened)}"
                tally.add(Finding(CHANGES_CHECK, "warning", "GATE_LOOSENED", make_printable(words), place))
            elif change is now and change.asks_nobody:
                words = "the rules in force let every harmful test action pass: nobody is ever asked"
                tally.add(Finding(CHANGES_CHECK, "warning", "GATE_LOOSENED", words, place))
    return tally


class RecordedUse(NamedTuple):
    """One use of an approval, as its chain has it."""

    request: ApprovalRequest
    vote: Vote
    statements: tuple[bytes, ...]
    """The canonical bytes of the approving statements before it. The check of approvals judges their signatures."""


def read_approval_uses(examination: Examination) -> dict[str, RecordedUse] | None:
    """Read the uses of approvals, by the id of the use's record; None where the approvals need not be here.

    A record that is damaged is left out: the check of approvals reports it.
    """
    reader, chain = examination.reader, approvals_chain(examination.tenant)
    if not examination.is_complete and not has_chain(reader, chain):
        return None
    ring = examination.rules.ring if examination.is_own else None
    requests: dict[str, ApprovalRequest] = {}
    approvals: dict[str, tuple[bytes, ...]] = {}
    uses: dict[str, RecordedUse] = {}
    for record in read_chain(reader, chain):
        try:
            foreign = None if ring is None else find_foreign_seal(record, ring)
            if foreign is not None and foreign[0] == "failed":
                continue
            if record.kind == REQUEST_KIND:
                request = read_request(record, ledger=examination.ledger, tenant=examination.tenant)
                requests[request.id] = request
            elif (found := read_vote(record)) is not None:
                about, vote = found
                if vote.word == "approve" and vote.statement is not None:
                    approvals[about] = (*approvals.get(about, ()), canonical_bytes(vote.statement.to_dict()))
                elif vote.word == "used":
                    uses[record.id] = RecordedUse(requests[about], vote, approvals.get(about, ()))
        except (AverError, AttributeError, KeyError, TypeError):
            continue
    return uses


class _DecisionExaminer:
    """Takes decisions in order, chain by chain, and counts the approvals that are left for them."""

    def __init__(self, examination: Examination, known: KnownAgents | None) -> None:
        self._known = known
        self.tally = Tally()
        self._reader = examination.reader
        self._own_ring = examination.rules.ring if examination.is_own else None
        self._uses = read_approval_uses(examination)
        """The uses of approvals that are left, by the id of the use's record; None where they need not be here."""
        self.unrepeatable: Counter[str] = Counter()
        self._chain = ExaminedChain("", "", 0)
        self._next = 0
        self._state: Mapping[str, Any] | None = EMPTY_SESSION
        """The state that the decision before has left; None where an excerpt lacks that decision."""
        self.without_past = 0
        self._asked: dict[str, Mapping[str, Any]] = {}
        """The decisions of this chain that left it to a person, by their ids."""
        self.observed = 0

    def _find_foreign_seal(self, record: Sealed) -> tuple[CheckStatus, str, str] | None:
        return None if self._own_ring is None else find_foreign_seal(record, self._own_ring)

    def examine_chain(self, chain: ExaminedChain) -> None:
        """Examine the decisions of a chain, from its start."""
        self._chain, self._next, self._state, self._asked = chain, chain.start, EMPTY_SESSION, {}
        # The state before the first decision is in the newest decision before it that has one.
        stop, is_found = 0 if chain.is_excerpt else chain.start, False
        while stop > 0 and not is_found:
            start = max(0, stop - LOOK_BACK)
            for record in reversed(list(self._reader.read(chain.origin, start, stop))):
                holds = record.kind in (DECISION_KIND, OUTCOME_KIND)
                result = record.to_dict()["outcome"].get("result") if holds else None
                state = result.get("session") if isinstance(result, dict) else None
                if isinstance(state, dict) and state.keys() >= REQUIRED_STATE:
                    self._state, is_found = state, True
                    break
            stop = start
        for record in self._reader.read(chain.origin, chain.start, chain.count):
            place = Place(record.chain, record.sequence)
            if (foreign := self._find_foreign_seal(record)) is not None:
                status, code, words = foreign
                self.tally.add(Finding(DECISIONS_CHECK, status, code, make_printable(words), place))
            if record.kind == DECISION_KIND:
                with guard(self.tally, DECISIONS_CHECK, place):
                    self._examine_decision(record, place)
            elif record.kind == OUTCOME_KIND:
                with guard(self.tally, DECISIONS_CHECK, place):
                    self._examine_outcome(record, place)

    def _examine_decision(self, record: Sealed, place: Place) -> None:
        content = record.to_dict()
        again = replay_decision(content, self._reader.blob, self._known)
        self.tally.count_done(DECISIONS_CHECK, again.status in ("same", "other"))
        if again.status == "other":
            self._add_failure(f"the gate did not decide this: {again.words}", place)
        elif again.status == "unrepeatable":
            self.unrepeatable[again.words] += 1
        elif again.status == "not_checked":
            words = f"some could not be made again, such as {place}: {again.words}"
            self.tally.skip(DECISIONS_CHECK, words, matters=True)
        result = content["outcome"].get("result")
        if isinstance(result, dict) and result.get("decision") == "human_review":
            self._asked[str(result.get("gate_id"))] = result
        if self._chain.is_excerpt and record.sequence != self._next:
            self._state = None  # Records between are not here.
        self._next = record.sequence + 1
        if isinstance(result, dict):
            self.observed += result.get("mode") == OBSERVE
            self._check_past(result, place)
            if result.get("decision") == "human_approved":
                self._check_approval(RecordedDecision.from_record(record, content), place)

    def _examine_outcome(self, record: Sealed, place: Place) -> None:
        """Check that what became known of a call after its decision changes the session's state as it must."""
        result = record.to_dict()["outcome"].get("result")
        if self._chain.is_excerpt and record.sequence != self._next:
            self._state = None
        self._next = record.sequence + 1
        if not isinstance(result, dict) or result.get("outcome") not in STATE_OUTCOMES:
            return
        decided = self._asked.get(str(result.get("gate_id")))
        version = (self._known or default_known_agents()).effects_version
        if decided is None and result["outcome"] != SHOWED_SECRET:
            if not self._chain.is_excerpt and not self._chain.start:
                self._add_failure("it says that the client asked about a call, and no decision did", place)
            else:
                self.without_past += not self._chain.is_attested
            return
        if self._state is None:
            self.without_past += not self._chain.is_attested
        elif decided is not None and decided.get("effects_version") != version:
            words = f"some could not be made again, such as {place}: {OTHER_VERSION}"
            self.tally.skip(DECISIONS_CHECK, words, matters=True)
        else:
            self.tally.count_done(DECISIONS_CHECK)
            if decided is None:
                expected = state_after_secret(self._state)
            elif result["outcome"] == ASKED_AND_REFUSED:
                expected = state_after_refusal(self._state, str(decided.get("gate_id")))
            else:
                expected = state_after_click(self._state, decided)
            if result.get("session") != expected:
                self._add_failure("its account of the session does not follow from the records before it", place)
        if isinstance(result.get("session"), dict):
            self._state = result["session"]

    def _check_approval(self, decision: RecordedDecision, place: Place) -> None:
        """Check that a decision used an approval of its action, in its session. A second decision finds none left."""
        if self._uses is None:
            self.tally.skip(APPROVALS_CHECK, "the approvals that decisions refer to are not here", matters=True)
            return
        use = decision.approval
        if not use:
            # Decisions of the first versions do not name the use. Such a use was of a request that wants version 1.
            same = (
                known
                for known, one in self._uses.items()
                if one.request.statement == UNBOUND_VERSION and one.request.digest == decision.digest
            )
            use = next(same, "")
        found = self._uses.pop(use, None)
        if found is not None and decision.approval:
            self._check_words(decision, found.request, place)
        if found is None or found.request.digest != decision.digest:
            self._add_failure("it says that a human approved this, and no approval of it was used", place)
        elif (words := _use_mismatch(decision, found.request, found.vote)) is not None:
            self._add_failure(f"it says that a human approved this, and {words}", place)
        else:
            self._check_question(decision, found.request, place)

    def _check_words(self, decision: RecordedDecision, request: ApprovalRequest, place: Place) -> None:
        """Compare the words of a decision that used an approval with those that the person was shown."""
        try:
            words = find_other_words(request, decision.result, self._reader.blob)
        except NotFound:
            self.tally.skip(APPROVALS_CHECK, "some words that people were shown are not here", matters=True)
            return
        if words is not None:
            self.tally.add(Finding(APPROVALS_CHECK, "failed", "EVIDENCE_INVALID", words, place))

    def _check_question(self, decision: RecordedDecision, request: ApprovalRequest, place: Place) -> None:
        """Compare a decision that used an approval with the decision by which the person was asked."""
        if request.digest_version != DIGEST_VERSION:
            return
        # Other rules of masking, or another version's tables, may have written an honest action in another way.
        if decision.result["masked"]["count"] and not _is_masked_form(decision.result, request, self._reader.blob):
            words = f"the action of {place} has masked secrets, and is not known to be the one that was approved"
            self.tally.skip(DECISIONS_CHECK, words, matters=True)
        asked = self._asked.get(request.gate_id) or self._find_asked(request)
        if asked is None:
            self.tally.skip(DECISIONS_CHECK, "decisions by which people were asked are not here", matters=True)
        elif problem := find_request_problem(request, asked) or find_worse(asked, decision.result):
            self._add_failure(f"it used the approval of another question: {problem}", place)

    def _find_asked(self, request: ApprovalRequest) -> Mapping[str, Any] | None:
        """Return the decision by which a person was asked, from its session's chain; None where it is not here."""
        session = request.scope.removeprefix(session_scope(""))
        for record in read_chain(self._reader, decision_chain(session)):
            found = RecordedDecision.from_record(record) if record.kind == DECISION_KIND else None
            if found is not None and found.gate_id == request.gate_id:
                return found.result
        return None

    def _check_past(self, result: Mapping[str, Any], place: Place) -> None:
        """Compare the past in a decision with the state that the decision before has left."""
        action, facts = result.get("action"), result.get("facts")
        session = action.get("session") if isinstance(action, dict) else None
        if not isinstance(session, str) or not isinstance(facts, dict):
            return  # Reported: this is no decision.
        # Before there were records of changes, a session named `settings` had their chain.
        is_former = f"{DOMAIN}.{session}" == self._chain.origin == SETTINGS_CHAIN
        if MASK_MARK.decode() not in session and decision_chain(session) != self._chain.origin and not is_former:
            self._add_failure(f"it is of the session {session!r}, whose decisions are elsewhere", place)
        before = self._state if session else EMPTY_SESSION  # Actions without a session have no past.
        after = result.get("session")
        if after is None:
            return
        if before is None:
            self.without_past += not self._chain.is_attested
        elif any(facts.get(name, empty) != before.get(name, empty) for name, empty in EMPTY_SESSION.items()):
            self._add_failure("its account of the session's past differs from the decision before it", place)
        if isinstance(after, dict) and after.keys() >= REQUIRED_STATE:
            self._state = after
        else:
            self._add_failure("it lacks the session's state after the decision", place)

    def _add_failure(self, words: str, place: Place) -> None:
        self.tally.add(Finding(DECISIONS_CHECK, "failed", "EVIDENCE_INVALID", make_printable(words), place))


def _is_masked_form(result: Mapping[str, Any], request: ApprovalRequest, fetch: Callable[[str], bytes]) -> bool:
    """Whether the action of a decision is that of a request, but for masked secrets and what the digest leaves out.

    The digest covers the secrets. So a verifier cannot compute it from the decision, and compares the rest.
    """
    try:
        action = request.read_action(fetch)
        forms = mask(action).value, restore_large_texts(result["action"], fetch)
        described = is_description_needed(action)
        asked, used = (bound_content(form, result["left_out"], DIGEST_VERSION, described=described) for form in forms)
    except NotFound:
        return False
    return canonical_bytes(asked) == canonical_bytes(used)


def _use_mismatch(decision: RecordedDecision, request: ApprovalRequest, vote: Vote) -> str | None:
    """Return why the use that a decision names is not of this decision; None where it is."""
    session, facts, use = str(decision.action.get("session")), decision.result.get("facts"), vote.use
    is_masked = MASK_MARK.decode() in session
    if use is None:
        is_other = request.statement != UNBOUND_VERSION and request.scope != session_scope(session)
        return "the approval was for another session" if is_other and not is_masked else None
    # `approvals` checks that the use itself is inside the scope of the approval.
    if use.session != session and not is_masked:
        return "the approval was used in another session"
    if use.call_id != decision.call_id:
        return "the approval was used for another call"
    if not isinstance(facts, dict) or facts.get("approved_by") != ", ".join(use.approvers):
        return "others approved it than it says"
    return None


def has_chain(reader: EvidenceReader, chain: str) -> bool:
    """Whether a chain with records is here."""
    try:
        return reader.head(chain).count > 0
    except NotFound:
        return False


def read_chain(reader: EvidenceReader, chain: str) -> Iterator[Sealed]:
    """Yield the records of a chain; none where it is not here."""
    try:
        yield from reader.read(chain)
    except NotFound:
        return
