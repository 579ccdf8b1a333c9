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
from aver.capsule.blobs import Blob
from aver.capsule.block import of_kind
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, HeadMoved, Refused, Unavailable
from aver.gate.approvals.decided import (
    APPROVAL,
    DECISION,
    PERSONS_WORDS,
    Decided,
    PersonsWord,
    problem_with,
    statement_content,
)
from aver.gate.approvals.history import History
from aver.gate.approvals.opening import DOMAIN, counted
from aver.gate.approvals.person import Person
from aver.gate.approvals.request import Request
from aver.gate.approvals.roster import Custody
from aver.gate.approvals.standing import Standing, voice_problem
from aver.keys import Statement, sign_statement
from aver.ledger import Ledger

__all__ = ["approve", "consume", "deny", "escalate", "expire", "record_decision"]

SHOWN_MAX = 64 * 1024 * 1024
"""Bytes of text that a person may have been shown: the largest diff there is, and all its characters written out."""

COMMENT_MAX = 2000
"""Characters of a reason."""

ATTEMPTS = 100
"""How often a record is tried again when the chain moved on; each time somebody else got something done."""

_ENDED = {"approved": "DECIDED", "denied": "DENIED", "expired": "EXPIRED", "used": "REPLAY"}


def approve(ledger: Ledger, request: Request, person: Person, *, shown: str, comment: str = "") -> Standing:
    """Sign and record that a person approves what was `shown` to them. Returns where the request stands then."""
    return _decide(ledger, request, person, "approve", shown, comment)


def deny(ledger: Ledger, request: Request, person: Person, *, shown: str, comment: str = "") -> Standing:
    """The same for a denial. It beats every approval that was not used yet."""
    return _decide(ledger, request, person, "deny", shown, comment)


def escalate(ledger: Ledger, request: Request, person: Person, *, shown: str, comment: str = "") -> Standing:
    """The same for passing it on to the next level."""
    return _decide(ledger, request, person, "escalate", shown, comment)


def _decide(ledger: Ledger, request: Request, person: Person, word: PersonsWord, shown: str, comment: str) -> Standing:
    blob = _shown_blob(shown)
    content = statement_content(request, word, person.identity, blob.digest)
    candidate = _candidate(request, Statement(APPROVAL, content), person.custody, blob, comment)
    _look(ledger, request).check_turn(candidate)  # Before anybody is asked to confirm a signature for nothing.
    statement = sign_statement(APPROVAL, content, [person.signer])
    return record_decision(ledger, request, statement, shown=shown, custody=person.custody, comment=comment)


def record_decision(
    ledger: Ledger, request: Request, statement: Statement, *, shown: str, custody: Custody, comment: str = ""
) -> Standing:
    """Record a person's signed word, if it counts."""
    blob = _shown_blob(shown)
    candidate = _candidate(request, statement, custody, blob, comment)
    for _ in range(ATTEMPTS):
        look = _look(ledger, request)
        now = replace(candidate, at=clock.now(), sequence=look.head.count)
        after = look.after(now)
        key = f"{DECISION}:{now.word}:{request.id}:{now.approver}"
        try:
            ledger.append(look.head.chain, _draft(request, now, after, blob), key=key, after=look.head, blobs=[blob])
        except HeadMoved:
            continue
        except Exists as exists:
            raise Refused("ALREADY_DECIDED", f"{now.approver} has said {now.word} before") from exists
        return after
    raise _too_busy()


def consume(ledger: Ledger, request: Request, digest: str) -> Sealed:
    """Use an approval for the action of this digest, now. Whoever gets the record may act; nobody gets it twice."""
    if digest != request.digest:
        raise Refused("DIGEST_MISMATCH", "the approval is for another action than the one that is about to happen")
    for _ in range(ATTEMPTS):
        look = _look(ledger, request)
        if look.standing.state != "approved":
            raise look.refusal("NOT_APPROVED")
        used = _unsigned("used", look)
        try:
            # By what the statements say, and not by the request: a statement is not used twice, whoever asks.
            key = f"{DECISION}:used:{request.digest}:{request.expires}"
            return ledger.append(look.head.chain, _draft(request, used, look.standing, None), key=key, after=look.head)
        except HeadMoved:
            continue
        except Exists as exists:
            raise Refused("REPLAY", "the approval was used before") from exists
    raise _too_busy()


def expire(ledger: Ledger, request: Request) -> None:
    """Record that nobody decided in time. From then on it stays denied, whatever the clock says."""
    look = _Look(ledger, request)
    if look.standing.state not in ("denied", "used"):
        _record_expiry(ledger, request, look)


# --- looking


class _Look:
    """A request, and all that was said about it up to a head of its chain."""

    def __init__(self, ledger: Ledger, request: Request) -> None:
        self._request = request
        self._history = History(ledger, [request])
        self.head = self._history.head
        self.standing = self._history.standing(request)

    def check_turn(self, decided: Decided) -> None:
        """Refuse a word that does not count, whatever its signature."""
        state = self.standing.state
        if state != "pending" and not (state == "approved" and decided.word != "approve"):
            raise self.refusal(_ENDED[state])
        if decided.approver is None or not self._request.levels_of(decided.approver):
            raise Refused("NOT_LISTED", f"{decided.approver} is not among those who decide this")
        problem = voice_problem(self._request, decided, self.standing.voices, self.standing.floor)
        if problem is not None:
            raise Refused(problem.code, problem.words)

    def after(self, decided: Decided) -> Standing:
        """Where the request stands with one more word, which must count."""
        self.check_turn(decided)
        problem = problem_with(self._request, decided, counted(self._request, self._history.in_force))
        if problem is not None:
            raise Refused(problem.code, problem.words)
        return self._history.standing(self._request, [decided])

    def refusal(self, code: str) -> Refused:
        state = self.standing.state
        words = self.standing.reason or "enough people have approved it"
        return Refused(_ENDED.get(state, code), f"the request {self._request.id} is {state}: {words}")


def _look(ledger: Ledger, request: Request) -> _Look:
    """Look at a request in order to decide it. If it has expired, that is recorded: it stays so."""
    look = _Look(ledger, request)
    if look.standing.state == "expired":
        _record_expiry(ledger, request, look)
    return look


def _record_expiry(ledger: Ledger, request: Request, look: _Look) -> None:
    ended = _unsigned("expired", look)
    after = replace(look.standing, state="expired", reason=f"nobody decided until {request.expires}")
    try:
        ledger.append(look.head.chain, _draft(request, ended, after, None), key=f"{DECISION}:expired:{request.id}")
    except Exists:
        return


# --- writing


def _shown_blob(shown: str) -> Blob:
    if not shown.strip():
        raise BadInput("nobody decides what was not shown", advice="pass the text that the person saw")
    raw = shown.encode("utf-8", "backslashreplace")
    if len(raw) > SHOWN_MAX:
        raise BadInput(f"what was shown has {len(raw)} bytes, more than {SHOWN_MAX}")
    return Blob(raw, "text/plain; charset=utf-8")


def _candidate(request: Request, statement: Statement, custody: Custody, shown: Blob, comment: str) -> Decided:
    word = statement.content.get("decision")
    if word not in PERSONS_WORDS:
        raise BadInput(f"a person says one of {', '.join(PERSONS_WORDS)}")
    if len(comment) > COMMENT_MAX:
        raise BadInput(f"a reason has at most {COMMENT_MAX} characters")
    return Decided(
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


def _unsigned(word: Literal["used", "expired"], look: _Look) -> Decided:
    return Decided(
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


def _draft(request: Request, decided: Decided, after: Standing, shown: Blob | None) -> Capsule:
    """The record of a decision. Its authority names those whose statements it rests on."""
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
        domain=DOMAIN,
        parent_id=request.id,
        trigger=Trigger(
            type="user_request" if decided.is_persons else "system",
            source=decided.approver or "aver",
            request=f"{decided.word} {request.id}",
            user_id=decided.approver,
        ),
        context=Context(agent_id="aver"),
        authority=_authority(decided, after, approver, [statement.to_dict() for statement in statements]),
        outcome=Outcome(
            status=_STATUS[decided.word],
            result=result,
            summary=f"{_DID[decided.word]}{f' by {approver}' if approver else ''}: {after.state}",
            error=None if _STATUS[decided.word] != "blocked" else f"{after.state}: {after.reason}",
        ),
    )
    return of_kind(draft, DECISION, {"request": request.id})


_STATUS = {"approve": "success", "deny": "blocked", "escalate": "pending", "expired": "blocked", "used": "success"}
_DID = {"approve": "approved", "deny": "denied", "escalate": "passed on", "expired": "expired", "used": "used"}


def _authority(decided: Decided, after: Standing, approver: str | None, chain: list[dict[str, Any]]) -> Authority:
    if decided.word == "expired":
        return Authority(type="policy", policy_reference="approvals.expires")
    if decided.word in ("approve", "used") and after.escalation is None:
        return Authority(type="human_approved", approver=approver, chain=chain)
    reason = after.escalation if decided.word in ("approve", "used") else f"{_DID[decided.word]}: {after.reason}"
    return Authority(type="escalated", approver=approver, chain=chain, escalation_reason=reason)


def _too_busy() -> Unavailable:
    return Unavailable(f"others kept deciding; gave up after {ATTEMPTS} attempts", advice="try again")
