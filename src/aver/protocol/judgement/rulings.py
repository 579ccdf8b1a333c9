"""Rulings of people on disputes, held to the votes that people have signed.

The fold sees that votes beside a ruling name this very dispute. It knows no person's key, and the operator seals the
ruling. So the operator alone could make up a vote. A verifier looks at the signatures:

    the approvals are here        the answer that the ruling names is recorded there, is about this dispute, has these
                                  very votes, and the check of approvals finds no fault with it
    the approvals are not here    each vote is signed by a key that the verifier knows as that person's

`RulingExaminer.examine` returns a `RulingProblem`, or None where the ruling holds.
"""

from __future__ import annotations

from typing import NamedTuple

from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.gate.approvals.request import REQUEST_KIND, read_request
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.approvals.roster import APPROVE_PURPOSE
from aver.gate.approvals.vote import Vote, read_vote
from aver.gate.examiners import examine_approvals, has_chain, read_chain
from aver.keys.statement import Statement, check_statement
from aver.log import debug
from aver.protocol.events import Event
from aver.verdict import Examination


class RulingProblem(NamedTuple):
    """Why a ruling is not shown to be a person's. Without a code, it could only not be checked."""

    code: str
    words: str


class _RecordedAnswer(NamedTuple):
    """A vote or a use in the chain of approvals."""

    request: str
    vote: Vote
    statements: tuple[Statement, ...]


class RulingExaminer:
    """Judges the rulings of one trace. The approvals are read at the first ruling: few traces have one."""

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._is_read = False
        self._digests: dict[str, str] = {}
        """The digest of the action of each request, by the request's id."""
        self._answers: dict[str, _RecordedAnswer] = {}
        self._places: dict[str, set[int]] = {}
        """The sequences of a request and of all answers to it, by the request's id."""
        self._faults: dict[int | None, tuple[str, str]] = {}
        """Status and words of what the check of approvals found, by sequence; None: about the roster."""

    def examine(self, event: Event, digest: str, session: str) -> RulingProblem | None:
        """Judge a ruling that the fold has admitted. `digest` is that of its dispute."""
        chain = approvals_chain(self._examination.tenant)
        if not has_chain(self._examination.reader, chain):
            if self._examination.is_complete:
                return RulingProblem("EVIDENCE_INVALID", "no person was ever asked: there are no approvals here")
            return self._examine_votes(event)
        if not self._is_read:
            self._read(chain)
        answer = self._answers.get(event.refs["approval"])
        if answer is None:
            return RulingProblem("EVIDENCE_INVALID", "the person's answer that it names is not recorded")
        use, challenge = answer.vote.use, event.refs["challenge"]
        votes = answer.statements if use is not None else answer.statements[-1:]
        is_about = self._digests.get(answer.request) == digest and event.statements == votes
        if event.payload["outcome"] == "dismissed":
            is_about = is_about and use is not None and (use.session, use.call_id) == (session, challenge)
        elif answer.vote.word != "deny":
            is_about = False
        if not is_about:
            return RulingProblem("EVIDENCE_INVALID", "the person's answer that it names is about something else")
        found = [
            self._faults[place] for place in (None, *sorted(self._places[answer.request])) if place in self._faults
        ]
        for status, words in found:
            return RulingProblem("EVIDENCE_INVALID" if status == "failed" else "", words)
        return None

    def _examine_votes(self, event: Event) -> RulingProblem | None:
        """Judge the votes by the keys that the verifier knows, where the approvals are not here."""
        rules = self._examination.rules
        for vote in event.statements:
            person = str(vote.content.get("approver"))
            for result in check_statement(vote, rules.ring):
                keys = rules.ring.lookup(result.by)
                roles = [role for role in map(rules.role_of, keys) if role is not None]
                is_persons = any((role.identity, role.purpose) == (person, APPROVE_PURPOSE) for role in roles)
                if keys and result.outcome != "valid":
                    return RulingProblem("SIG_INVALID", f"the vote of {person} is not signed by the key that it names")
                if roles and not is_persons:
                    return RulingProblem("ROLE_POLICY_VIOLATION", f"{result.by} is not the key of {person}")
                if not is_persons:
                    return RulingProblem("", f"the approvals are not here, and {result.by} is not known as {person}'s")
        return None

    def _read(self, chain: str) -> None:
        examination = self._examination
        self._is_read = True
        for record in read_chain(examination.reader, chain):
            try:
                self._read_record(record)
            except (BadInput, AttributeError, KeyError, TypeError) as error:
                debug("protocol", "an approval cannot be read: %r", error)
        for found in examine_approvals(examination).findings:
            is_answer = (found.place.chain or "").endswith(chain)  # An import puts a name before it.
            if found.status in ("failed", "not_checked"):
                self._faults.setdefault(found.place.sequence if is_answer else None, (found.status, found.words))

    def _read_record(self, record: Sealed) -> None:
        if record.kind == REQUEST_KIND:
            request = read_request(record, ledger=self._examination.ledger, tenant=self._examination.tenant)
            self._digests[request.id] = request.digest
            self._places.setdefault(request.id, set()).add(record.sequence)
        elif (found := read_vote(record)) is not None:
            about, vote = found
            self._places.setdefault(about, set()).add(record.sequence)
            statements = tuple(Statement.from_dict(each) for each in record.content["authority"]["chain"])
            self._answers[record.id] = _RecordedAnswer(about, vote, statements)
