"""Votes on a request, and uses of an approval. Each is one record, and each can happen once.

A person's vote is signed first and then recorded. If it was signed elsewhere (in a browser, on another machine), the
caller passes the statement to `record_signed_vote`. Each record is appended right after the head that was read, so a
vote is always based on all earlier records. If two processes race, the second one reads again. A vote that would not
count is refused with a code, and not recorded:

    DIGEST_MISMATCH      another action than the one that was asked about
    STATEMENT_MISMATCH   signed for another ledger, tenant, request or session, or something else
    SIG_MISSING, SIG_INVALID, UNKNOWN_KEY, KEY_RETIRED     the signature, or the key, does not count
    NOT_LISTED, NOT_YET, PASSED_ON, NO_LEVEL               not this person, or not now
    ALREADY_DECIDED      the same person voted so before
    DECIDED, DENIED, EXPIRED, REPLAY                       the request has ended: approved, denied, too late, used
    NOT_APPROVED         used before enough people approved
    SCOPE_MISMATCH       used in another session than the one that it is good for; or given for the workspace, where
                         the action carries out one request of its session
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from aver import clock
from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists, HeadMoved, Refused, Unavailable
from aver.gate.action import FIRST_DIGEST_VERSION
from aver.gate.approvals.request import UNBOUND_VERSION, USES_MAX, WORKSPACE_SCOPE, ApprovalRequest, session_scope
from aver.gate.approvals.request_records import APPROVALS_DOMAIN, RequestHistory, load_request, valid_approvers
from aver.gate.approvals.roster import Custody, Person
from aver.gate.approvals.vote import (
    APPROVAL_PURPOSE,
    CLOSED_REASON,
    PERSON_WORDS,
    USE_KIND,
    VOTE_KIND,
    PersonWord,
    RequestState,
    Vote,
    turn_problem,
    vote_content,
    vote_problem,
)
from aver.keys import Statement, sign_statement
from aver.ledger import Ledger

SHOWN_MAX = 64 * 1024 * 1024
"""Bytes of the text that a person saw: enough for the largest diff with all its characters escaped."""

COMMENT_MAX = 2000
"""Characters of a person's comment."""

ATTEMPTS_MAX = 100
"""Attempts to append when the chain keeps moving. Each failed attempt means that another process succeeded."""

_STATUS_BY_WORD = {
    "approve": "success",
    "deny": "blocked",
    "escalate": "pending",
    "expired": "blocked",
    "closed": "success",
    "used": "success",
}
_PAST_TENSE = {"approve": "approved", "deny": "denied", "escalate": "passed on"} | {
    word: word for word in ("expired", "closed", "used")
}
_CODE_BY_STATE = {
    "approved": "DECIDED",
    "denied": "DENIED",
    "expired": "EXPIRED",
    "closed": "DECIDED",
    "used": "REPLAY",
}


def approve(
    ledger: Ledger,
    request: ApprovalRequest,
    person: Person,
    *,
    shown: str,
    comment: str = "",
    scope: str = "",
    uses: int = 0,
) -> RequestState:
    """Sign and record an approval of what was `shown` to a person. Returns the state after it.

    `scope` may be `workspace`, and `uses` up to `USES_MAX`; without them the request's own count: its session, once.
    An action with a `request_sha256` can be approved for its session alone.
    """
    if scope not in ("", request.scope, WORKSPACE_SCOPE) or not 0 <= uses <= USES_MAX:
        raise BadInput(f"an approval is good in its session or the workspace, and at most {USES_MAX} times")
    return _sign_and_record(ledger, request, person, "approve", shown, comment, scope, uses)


def deny(ledger: Ledger, request: ApprovalRequest, person: Person, *, shown: str, comment: str = "") -> RequestState:
    """Sign and record a denial. It overrides every approval that was not used yet."""
    return _sign_and_record(ledger, request, person, "deny", shown, comment)


def escalate(
    ledger: Ledger, request: ApprovalRequest, person: Person, *, shown: str, comment: str = ""
) -> RequestState:
    """Sign and record that a person passes the request on to the next level."""
    return _sign_and_record(ledger, request, person, "escalate", shown, comment)


def _sign_and_record(
    ledger: Ledger,
    request: ApprovalRequest,
    person: Person,
    word: PersonWord,
    shown: str,
    comment: str,
    scope: str = "",
    uses: int = 0,
) -> RequestState:
    blob = _build_shown_blob(shown)
    content = vote_content(request, word, person.identity, blob.digest, scope=scope, uses=uses)
    candidate = _build_vote(request, Statement(APPROVAL_PURPOSE, content), person.custody, blob, comment)
    _view_request(ledger, request).check_turn(candidate)  # before the person confirms a signature in vain
    # The signer may ask for a passphrase or a touch here.
    statement = sign_statement(APPROVAL_PURPOSE, content, [person.signer])
    return record_vote(ledger, request, statement, shown=shown, custody=person.custody, comment=comment)


def record_signed_vote(
    ledger: Ledger, request_id: str, statement: Statement, *, shown: str, comment: str = ""
) -> RequestState:
    """Record a vote that was signed elsewhere, such as by a passkey on a page, if it counts. Raises Refused if not.

    `shown` is the text that the person saw. The statement names its SHA-256.
    """
    request = load_request(ledger, request_id)
    approver = request.approvers.get(str(statement.content.get("approver")))
    if approver is None:
        raise Refused("NOT_LISTED", "the person who signed is not among those who decide this")
    return record_vote(ledger, request, statement, shown=shown, custody=approver.custody, comment=comment)


def record_vote(
    ledger: Ledger, request: ApprovalRequest, statement: Statement, *, shown: str, custody: Custody, comment: str = ""
) -> RequestState:
    """Record a signed vote, if it counts. Raises Refused if not."""
    blob = _build_shown_blob(shown)
    candidate = _build_vote(request, statement, custody, blob, comment)
    # Here the action is read, also from a blob. `vote_problem` sees only what the request's record holds.
    if statement.content.get("scope") == WORKSPACE_SCOPE and request.read_action(ledger.blob).get("request_sha256"):
        words = "the action belongs to one request of its session, so an approval is good in that session alone"
        raise Refused("SCOPE_MISMATCH", words, advice="approve it without --scope")
    for _ in range(ATTEMPTS_MAX):
        view = _view_request(ledger, request)
        now = replace(candidate, at=clock.now(), sequence=view.head.count)
        after = view.after(now)
        # The ledger accepts a key once, so one person cannot say the same thing twice.
        key = f"{VOTE_KIND}:{now.word}:{request.id}:{now.approver}"
        try:
            ledger.append(
                view.head.chain, _build_vote_draft(request, now, after, blob), key=key, after=view.head, blobs=[blob]
            )
        except HeadMoved:
            continue  # another vote came first: read again, and decide again whether this one counts
        except Exists as exists:
            raise Refused("ALREADY_DECIDED", f"{now.approver} has said {now.word} before") from exists
        return after
    raise _busy_error()


def consume(
    ledger: Ledger, request: ApprovalRequest, digest: str, *, by: str = "", session: str | None = None
) -> Sealed:
    """Use an approval for the action with this digest. The caller that gets the record may act.

    No more callers get one than people have allowed. `by` is the call that goes ahead. `session` is the session that it
    belongs to; without it, that of the request.
    """
    if digest != request.digest:
        raise Refused("DIGEST_MISMATCH", "the approval is for another action than the one that is about to happen")
    own = request.scope.removeprefix(session_scope(""))
    for _ in range(ATTEMPTS_MAX):
        view = _view_request(ledger, request)
        # The state is computed anew in each attempt: a denial or another use may have come first.
        if view.state.state != "approved":
            raise view.refusal("NOT_APPROVED")
        if request.statement != UNBOUND_VERSION and not view.state.covers(own if session is None else session):
            raise Refused("SCOPE_MISMATCH", "the approval is for another session")
        draft, key = _build_use(request, view, by, own if session is None else session)
        try:
            return ledger.append(view.head.chain, draft, key=key, after=view.head)
        except HeadMoved:
            continue
        except Exists as exists:
            raise Refused("REPLAY", "the approval was used before") from exists
    raise _busy_error()


def _build_use(request: ApprovalRequest, view: _RequestView, by: str, session: str) -> tuple[Capsule, str]:
    """Build the record of a use, and its key. The ledger takes each key once, so no use is counted twice."""
    state = view.state
    if request.digest_version == FIRST_DIGEST_VERSION:
        used = Vote(sequence=view.head.count, at=clock.now(), word="used", level=state.level)
        # The key names what people signed, so one set of signatures is never used twice. A statement of version 1 does
        # not name its request.
        signed = f"{request.digest}:{request.expires}" if request.statement == UNBOUND_VERSION else request.id
        return _build_vote_draft(request, used, state, None, by), f"{VOTE_KIND}:used:{signed}"
    number = state.used + 1
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "number": number,
        "uses": state.uses,
        "scope": state.scope,
        "session": session,
        "call_id": by,
        "approvers": list(state.approvers),
        "level": state.level,
    }
    approver = ", ".join(state.approvers)
    statements = [vote.statement.to_dict() for vote in state.approvals if vote.statement is not None]
    escalated = state.escalation is not None
    draft = Capsule(
        type="auth",
        domain=APPROVALS_DOMAIN,
        parent_id=request.id,
        trigger=Trigger(
            type="system", source="aver", request=f"use {request.id}", correlation_id=by or request.call_id or None
        ),
        context=Context(agent_id="aver", session_id=session or None),
        authority=Authority(
            type="escalated" if escalated else "human_approved",
            approver=approver,
            chain=statements,
            escalation_reason=state.escalation,
        ),
        outcome=Outcome(
            status="success",
            result=result,
            summary=f"use {number} of {state.uses}, approved by {approver}: {request.summary}".removesuffix(": "),
        ),
    )
    return of_kind(draft, USE_KIND, {"request": request.id}), f"{USE_KIND}:{request.id}:{number}"


def expire(ledger: Ledger, request: ApprovalRequest) -> None:
    """Record that a request has expired. It stays expired, even if the clock is set back."""
    view = _RequestView(ledger, request)
    if view.state.state not in ("denied", "used"):
        _record_expiry(ledger, request, view)


def close(ledger: Ledger, request: ApprovalRequest, *, by: str = "") -> None:
    """Record that the client asked its own person, and that the call `by` was then made. An open request ends so."""
    view = _view_request(ledger, request)
    if view.state.state not in ("pending", "approved"):
        return
    ended = Vote(sequence=view.head.count, at=clock.now(), word="closed", level=view.state.level)
    after = replace(view.state, state="closed", reason=CLOSED_REASON)
    # Another process may have recorded it first.
    with suppress(Exists):
        key = f"{VOTE_KIND}:closed:{request.id}"
        ledger.append(view.head.chain, _build_vote_draft(request, ended, after, None, by), key=key)


# --- reading


class _RequestView:
    """A request and its state at one head of its chain."""

    def __init__(self, ledger: Ledger, request: ApprovalRequest) -> None:
        self._request = request
        self._history = RequestHistory(ledger, [request])
        self.head = self._history.head
        self.state = self._history.find_state(request)

    def check_turn(self, vote: Vote) -> None:
        """Refuse a vote that would not count, even with a valid signature."""
        state = self.state.state
        # After an approval, a person may still deny or pass on, until it is used.
        if state != "pending" and not (state == "approved" and vote.word != "approve"):
            raise self.refusal(_CODE_BY_STATE[state])
        if vote.approver is None or not self._request.levels_for(vote.approver):
            raise Refused("NOT_LISTED", f"{vote.approver} is not among those who decide this")
        problem = turn_problem(self._request, vote, self.state.valid_approvals, self.state.floor)
        if problem is not None:
            raise Refused(problem.code, problem.words)

    def after(self, vote: Vote) -> RequestState:
        """Return the state after one more vote. Raises Refused if the vote does not count."""
        self.check_turn(vote)
        problem = vote_problem(self._request, vote, valid_approvers(self._request, self._history.setup))
        if problem is not None:
            raise Refused(problem.code, problem.words)
        return self._history.find_state(self._request, [vote])

    def refusal(self, code: str) -> Refused:
        state = self.state.state
        words = self.state.reason or "enough people have approved it"
        return Refused(_CODE_BY_STATE.get(state, code), f"the request {self._request.id} is {state}: {words}")


def _view_request(ledger: Ledger, request: ApprovalRequest) -> _RequestView:
    """Read a request to vote on it. If it has expired, record that, so that it stays expired."""
    view = _RequestView(ledger, request)
    if view.state.state == "expired":
        _record_expiry(ledger, request, view)
    return view


def _record_expiry(ledger: Ledger, request: ApprovalRequest, view: _RequestView) -> None:
    # Not tied to a head: an expiry holds even if another vote came in between.
    ended = Vote(sequence=view.head.count, at=clock.now(), word="expired", level=view.state.level)
    after = replace(view.state, state="expired", reason=f"nobody decided until {request.expires}")
    try:
        ledger.append(
            view.head.chain, _build_vote_draft(request, ended, after, None), key=f"{VOTE_KIND}:expired:{request.id}"
        )
    except Exists:  # another process recorded it first
        return


# --- writing


def _build_shown_blob(shown: str) -> Blob:
    if not shown.strip():
        raise BadInput("a decision needs the text that was shown", advice="pass the text that the person saw")
    # Half characters cannot be encoded; they are shown as escapes.
    raw = shown.encode("utf-8", "backslashreplace")
    if len(raw) > SHOWN_MAX:
        raise BadInput(f"the shown text has {len(raw)} bytes, more than {SHOWN_MAX}")
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


def _build_vote_draft(
    request: ApprovalRequest, vote: Vote, after: RequestState, shown: Blob | None, call_id: str = ""
) -> Capsule:
    """Build the record of a vote. Its authority names the people whose statements it is based on.

    `call_id` is the call that uses an approval, if it differs from the call of the request.
    """
    # The statements of all approvals that count, and this one last: `read_vote` takes the last.
    others = [approval.statement for approval in after.approvals if approval.statement != vote.statement]
    statements = [statement for statement in (*others, vote.statement) if statement is not None]
    approver = vote.approver or ", ".join(after.approvers) or None
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "decision": vote.word,
        "approver": vote.approver,
        "custody": vote.custody,
        "level": vote.level or after.level,
        "comment": vote.comment,
        "shown": shown.reference if shown else None,
    }
    draft = Capsule(
        type="auth",
        domain=APPROVALS_DOMAIN,
        parent_id=request.id,
        trigger=Trigger(
            type="user_request" if vote.is_by_person else "system",
            source=vote.approver or "aver",
            request=f"{vote.word} {request.id}",
            correlation_id=call_id or request.call_id or None,
            user_id=vote.approver,
        ),
        context=Context(agent_id="aver"),
        authority=_build_authority(vote, after, approver, [statement.to_dict() for statement in statements]),
        outcome=Outcome(
            status=_STATUS_BY_WORD[vote.word],
            result=result,
            summary=_summarise_vote(request, f"{_PAST_TENSE[vote.word]}{f' by {approver}' if approver else ''}", after),
            error=None if _STATUS_BY_WORD[vote.word] != "blocked" else f"{after.state}: {after.reason}",
        ),
    )
    return of_kind(draft, VOTE_KIND, {"request": request.id})


def _summarise_vote(request: ApprovalRequest, did: str, after: RequestState) -> str:
    """Return a vote in one line. It says what became of the request where that does not follow from the vote."""
    state = "" if did.startswith(after.state) else f" ({after.state})"
    return f"{did}{state}: {request.summary}".removesuffix(": ")


def _build_authority(vote: Vote, after: RequestState, approver: str | None, chain: list[dict[str, Any]]) -> Authority:
    if vote.word == "expired":
        return Authority(type="policy", policy_reference="approvals.expires")
    if vote.word == "closed":
        return Authority(type="policy", policy_reference=CLOSED_REASON)
    if vote.word in ("approve", "used") and after.escalation is None:
        return Authority(type="human_approved", approver=approver, chain=chain)
    reason = after.escalation if vote.word in ("approve", "used") else f"{_PAST_TENSE[vote.word]}: {after.reason}"
    return Authority(type="escalated", approver=approver, chain=chain, escalation_reason=reason)


def _busy_error() -> Unavailable:
    return Unavailable(f"others kept deciding; gave up after {ATTEMPTS_MAX} attempts", advice="try again")
