"""Deciding a request: approve, deny, pass it on, let it expire, use it. Each is one record, and each is once.

A person's word is signed first and recorded then; whoever signs elsewhere (a browser, another machine) brings the
statement to `record_decision`. Every record goes right after the head that was looked at, so that what was decided
is decided on all that came before it: of two who race, the second looks again. A word that would not count is
refused with a code and not recorded.

    DIGEST_MISMATCH      another action than the one that was asked about
    STATEMENT_MISMATCH   signed for another request, or something else
    SIG_MISSING, SIG_INVALID, UNKNOWN_KEY, KEY_RETIRED     the signature, or the key, does not count
    NOT_LISTED, NOT_YET, PASSED_ON, NO_LEVEL               not this person, or not now
    ALREADY_DECIDED      said before by the same person
    DECIDED, DENIED, EXPIRED, REPLAY                       the request has ended: approved, denied, too late, used
    NOT_APPROVED         used before enough people approved
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from aver import clock
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, HeadMoved, Refused, Unavailable
from aver.gate.approvals.person import Person
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.request_history import RequestHistory
from aver.gate.approvals.request_records import APPROVALS_DOMAIN, valid_approvers
from aver.gate.approvals.roster import Custody
from aver.gate.approvals.state import RequestState, turn_problem
from aver.gate.approvals.vote import (
    APPROVAL_PURPOSE,
    PERSON_WORDS,
    VOTE_KIND,
    PersonWord,
    Vote,
    vote_content,
    vote_problem,
)
from aver.keys import Statement, sign_statement
from aver.ledger import Ledger

__all__ = ["approve", "consume", "deny", "escalate", "expire", "record_vote"]

SHOWN_MAX = 64 * 1024 * 1024
"""Bytes of text that a person may have been shown: the largest diff there is, and all its characters written out."""

COMMENT_MAX = 2000
"""Characters of a reason."""

ATTEMPTS_MAX = 100
"""How often a record is tried again when the chain moved on; each time somebody else got something done."""

_CODE_BY_STATE = {"approved": "DECIDED", "denied": "DENIED", "expired": "EXPIRED", "used": "REPLAY"}


def approve(ledger: Ledger, request: ApprovalRequest, person: Person, *, shown: str, comment: str = "") -> RequestState:
    """Sign and record that a person approves what was `shown` to them. Returns where the request stands then."""
    return _sign_and_record(ledger, request, person, "approve", shown, comment)


def deny(ledger: Ledger, request: ApprovalRequest, person: Person, *, shown: str, comment: str = "") -> RequestState:
    """The same for a denial. It beats every approval that was not used yet."""
    return _sign_and_record(ledger, request, person, "deny", shown, comment)


def escalate(
    ledger: Ledger, request: ApprovalRequest, person: Person, *, shown: str, comment: str = ""
) -> RequestState:
    """The same for passing it on to the next level."""
    return _sign_and_record(ledger, request, person, "escalate", shown, comment)


def _sign_and_record(
    ledger: Ledger, request: ApprovalRequest, person: Person, word: PersonWord, shown: str, comment: str
) -> RequestState:
    blob = _build_shown_blob(shown)
    content = vote_content(request, word, person.identity, blob.digest)
    candidate = _build_vote(request, Statement(APPROVAL_PURPOSE, content), person.custody, blob, comment)
    _view_request(ledger, request).check_turn(candidate)  # Before anybody is asked to confirm a signature for nothing.
    statement = sign_statement(APPROVAL_PURPOSE, content, [person.signer])
    return record_vote(ledger, request, statement, shown=shown, custody=person.custody, comment=comment)


def record_vote(
    ledger: Ledger, request: ApprovalRequest, statement: Statement, *, shown: str, custody: Custody, comment: str = ""
) -> RequestState:
    """Record a person's signed word, if it counts."""
    blob = _build_shown_blob(shown)
    candidate = _build_vote(request, statement, custody, blob, comment)
    for _ in range(ATTEMPTS_MAX):
        look = _view_request(ledger, request)
        now = replace(candidate, at=clock.now(), sequence=look.head.count)
        after = look.after(now)
        key = f"{VOTE_KIND}:{now.word}:{request.id}:{now.approver}"
        try:
            ledger.append(
                look.head.chain, _build_vote_draft(request, now, after, blob), key=key, after=look.head, blobs=[blob]
            )
        except HeadMoved:
            continue
        except Exists as exists:
            raise Refused("ALREADY_DECIDED", f"{now.approver} has said {now.word} before") from exists
        return after
    raise _busy_error()


def consume(ledger: Ledger, request: ApprovalRequest, digest: str, *, by: str = "") -> Sealed:
    """Use an approval for the action of this digest, now. Whoever gets the record may act; nobody gets it twice."""
    if digest != request.digest:
        raise Refused("DIGEST_MISMATCH", "the approval is for another action than the one that is about to happen")
    for _ in range(ATTEMPTS_MAX):
        look = _view_request(ledger, request)
        if look.standing.state != "approved":
            raise look.refusal("NOT_APPROVED")
        used = _build_unsigned_vote("used", look)
        try:
            # By what the statements say, and not by the request: a statement is not used twice, whoever asks.
            key = f"{VOTE_KIND}:used:{request.digest}:{request.expires}"
            return ledger.append(
                look.head.chain, _build_vote_draft(request, used, look.standing, None, by), key=key, after=look.head
            )
        except HeadMoved:
            continue
        except Exists as exists:
            raise Refused("REPLAY", "the approval was used before") from exists
    raise _busy_error()


def expire(ledger: Ledger, request: ApprovalRequest) -> None:
    """Record that nobody decided in time. From then on it stays denied, whatever the clock says."""
    look = _RequestView(ledger, request)
    if look.standing.state not in ("denied", "used"):
        _record_expiry(ledger, request, look)


# --- looking


class _RequestView:
    """A request, and all that was said about it up to a head of its chain."""

    def __init__(self, ledger: Ledger, request: ApprovalRequest) -> None:
        self._request = request
        self._history = RequestHistory(ledger, [request])
        self.head = self._history.head
        self.standing = self._history.standing(request)

    def check_turn(self, decided: Vote) -> None:
        """Refuse a word that does not count, whatever its signature."""
        state = self.standing.state
        if state != "pending" and not (state == "approved" and decided.word != "approve"):
            raise self.refusal(_CODE_BY_STATE[state])
        if decided.approver is None or not self._request.levels_for(decided.approver):
            raise Refused("NOT_LISTED", f"{decided.approver} is not among those who decide this")
        problem = turn_problem(self._request, decided, self.standing.voices, self.standing.floor)
        if problem is not None:
            raise Refused(problem.code, problem.words)

    def after(self, decided: Vote) -> RequestState:
        """Where the request stands with one more word, which must count."""
        self.check_turn(decided)
        problem = vote_problem(self._request, decided, valid_approvers(self._request, self._history.in_force))
        if problem is not None:
            raise Refused(problem.code, problem.words)
        return self._history.standing(self._request, [decided])

    def refusal(self, code: str) -> Refused:
        state = self.standing.state
        words = self.standing.reason or "enough people have approved it"
        return Refused(_CODE_BY_STATE.get(state, code), f"the request {self._request.id} is {state}: {words}")


def _view_request(ledger: Ledger, request: ApprovalRequest) -> _RequestView:
    """Look at a request in order to decide it. If it has expired, that is recorded: it stays so."""
    look = _RequestView(ledger, request)
    if look.standing.state == "expired":
        _record_expiry(ledger, request, look)
    return look


def _record_expiry(ledger: Ledger, request: ApprovalRequest, look: _RequestView) -> None:
    ended = _build_unsigned_vote("expired", look)
    after = replace(look.standing, state="expired", reason=f"nobody decided until {request.expires}")
    try:
        ledger.append(
            look.head.chain, _build_vote_draft(request, ended, after, None), key=f"{VOTE_KIND}:expired:{request.id}"
        )
    except Exists:
        return


# --- writing


def _build_shown_blob(shown: str) -> Blob:
    if not shown.strip():
        raise BadInput("nobody decides what was not shown", advice="pass the text that the person saw")
    raw = shown.encode("utf-8", "backslashreplace")
    if len(raw) > SHOWN_MAX:
        raise BadInput(f"what was shown has {len(raw)} bytes, more than {SHOWN_MAX}")
    return Blob(raw, "text/plain; charset=utf-8")


def _build_vote(request: ApprovalRequest, statement: Statement, custody: Custody, shown: Blob, comment: str) -> Vote:
    word = statement.content.get("decision")
    if word not in PERSON_WORDS:
        raise BadInput(f"a person says one of {', '.join(PERSON_WORDS)}")
    if len(comment) > COMMENT_MAX:
        raise BadInput(f"a reason has at most {COMMENT_MAX} characters")
    return Vote(
        sequence=request.sequence + 1,
        at=clock.now(),
        word=word,
        approver=statement.content.get("approver"),
        custody=custody,
        level=0,
        comment=comment,
        shown=shown.digest,
        statement=statement,
    )


def _build_unsigned_vote(word: Literal["used", "expired"], look: _RequestView) -> Vote:
    return Vote(
        sequence=look.head.count,
        at=clock.now(),
        word=word,
        approver=None,
        custody=None,
        level=look.standing.level,
        comment="",
        shown=None,
        statement=None,
    )


def _build_vote_draft(
    request: ApprovalRequest, decided: Vote, after: RequestState, shown: Blob | None, call_id: str = ""
) -> Capsule:
    """The record of a decision. Its authority names those whose statements it rests on. `call_id` is the call that uses
    an approval, where that is another than the request is about."""
    others = [one.statement for one in after.approvals if one.statement != decided.statement]
    statements = [statement for statement in (*others, decided.statement) if statement is not None]
    approver = decided.approver or ", ".join(after.approvers) or None
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "decision": decided.word,
        "approver": decided.approver,
        "custody": decided.custody,
        "level": decided.level or after.level,
        "comment": decided.comment,
        "shown": shown.reference if shown else None,
    }
    draft = Capsule(
        type="auth",
        domain=APPROVALS_DOMAIN,
        parent_id=request.id,
        trigger=Trigger(
            type="user_request" if decided.is_by_person else "system",
            source=decided.approver or "aver",
            request=f"{decided.word} {request.id}",
            correlation_id=call_id or request.call_id or None,
            user_id=decided.approver,
        ),
        context=Context(agent_id="aver"),
        authority=_build_authority(decided, after, approver, [statement.to_dict() for statement in statements]),
        outcome=Outcome(
            status=_STATUS_BY_WORD[decided.word],
            result=result,
            summary=f"{_PAST_TENSE[decided.word]}{f' by {approver}' if approver else ''}: {after.state}",
            error=None if _STATUS_BY_WORD[decided.word] != "blocked" else f"{after.state}: {after.reason}",
        ),
    )
    return of_kind(draft, VOTE_KIND, {"request": request.id})


_STATUS_BY_WORD = {
    "approve": "success",
    "deny": "blocked",
    "escalate": "pending",
    "expired": "blocked",
    "used": "success",
}
_PAST_TENSE = {"approve": "approved", "deny": "denied", "escalate": "passed on", "expired": "expired", "used": "used"}


def _build_authority(
    decided: Vote, after: RequestState, approver: str | None, chain: list[dict[str, Any]]
) -> Authority:
    if decided.word == "expired":
        return Authority(type="policy", policy_reference="approvals.expires")
    if decided.word in ("approve", "used") and after.escalation is None:
        return Authority(type="human_approved", approver=approver, chain=chain)
    reason = after.escalation if decided.word in ("approve", "used") else f"{_PAST_TENSE[decided.word]}: {after.reason}"
    return Authority(type="escalated", approver=approver, chain=chain, escalation_reason=reason)


def _busy_error() -> Unavailable:
    return Unavailable(f"others kept deciding; gave up after {ATTEMPTS_MAX} attempts", advice="try again")
