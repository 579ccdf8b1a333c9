"""The votes on a request, and the state of the request that follows from them. No I/O.

A person's vote (`approve`, `deny`, `escalate`) is a statement with the purpose `approval`, signed by the person's key:

    {v: 3, ledger, tenant, request, digest, shown_sha256, decision, approver, expires, shown, scope, uses}

`request` is the id of the request's record, so a vote is good in one ledger, one tenant and for one request only.
`shown_sha256` covers all that the request gives a person to read (`ApprovalRequest.shown_sha256`). Every reader of the
vote computes it again from the request. So nothing of the request can be changed once it was signed.
`scope` and `uses` are those of the request, or what the person chose in an approval: the scope `workspace`, and up to
`USES_MAX` uses. An action with a `request_sha256` is approved for its session alone. Where several people must approve,
the narrowest of their choices counts. `shown` is the SHA-256 of the exact text that the person saw. The ledger keeps
that text as a blob. Version 2 lacked `shown_sha256`. Version 1 was {digest, decision, approver, expires, shown}. Each
counts only for a request that wants it. `expired` comes from Aver and has no signature. A vote is recorded as an
`approval.decision`, with `outcome.result`: {v, request, digest, decision, approver, custody, level, comment, shown}.

Each use of an approval is a record of its own, an `approval.use`, with `outcome.result`:

    {v: 1, request, digest, number, uses, scope, session, call_id, approvers, level}

`number` counts the uses of the request from 1 to `uses`. `session` and `call_id` are those of the action that goes
ahead. A request whose digest has version 1 is used once, by an `approval.decision` with the word `used`.

`compute_state` follows these rules, in this order. The same votes give the same state.

1. A request that was used as often as people allowed stays used.
2. One `deny`, `expired` or `closed` ends it, even after approvals. Aver closes a request when the client has asked its
   own person, and the call was then made. A denial needs no valid signature; an approval does.
3. A request past its time is expired. Aver compares with the clock and with the newest time in the ledger since the
   request was opened, so setting the clock back does not reopen it.
4. An `escalate` vote on an open level closes that level and those before it.
5. A request is approved if, on an open level, as many different people as its quorum have approved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import blob_references
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object, check_version, int_field, time_field
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gate.action import FIRST_DIGEST_VERSION
from aver.gate.approvals.request import (
    STATEMENT_VERSION,
    UNBOUND_VERSION,
    USES_MAX,
    WORKSPACE_SCOPE,
    ApprovalRequest,
    session_scope,
)
from aver.gate.approvals.roster import CUSTODIES, PASSKEY_CUSTODY, Approver, Custody, signature_problem
from aver.gate.approvals.rules import LEVELS_MAX
from aver.keys import Statement

APPROVAL_PURPOSE = "approval"
"""The purpose of a signed vote."""
VOTE_KIND = "approval.decision"
USE_KIND = "approval.use"

PersonWord = Literal["approve", "deny", "escalate"]
VoteWord = Literal["approve", "deny", "escalate", "expired", "closed", "used"]
PERSON_WORDS: tuple[str, ...] = get_args(PersonWord)
_VOTE_WORDS: tuple[str, ...] = get_args(VoteWord)

_KEYS = frozenset({"v", "request", "digest", "decision", "approver", "custody", "level", "comment", "shown"})
_USE_KEYS = frozenset({"v", "request", "digest", "number", "uses", "scope", "session", "call_id", "approvers", "level"})
_matches_digest = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A vote as recorded. `vote_problem` says whether it counts."""

    sequence: int
    at: str
    word: VoteWord
    level: int
    approver: str | None = None
    """The person; None for a vote of Aver itself, which also lacks the fields below."""
    custody: Custody | None = None
    comment: str = ""
    shown: str | None = None
    """The digest of the text that the person saw."""
    statement: Statement | None = None
    use: Use | None = None
    """For `used` in a record of its own: which use it is, and of what."""

    @property
    def is_by_person(self) -> bool:
        return self.word in PERSON_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of an approval, as recorded. `use_problem` says whether the approval covers it."""

    digest: str
    number: int
    uses: int
    scope: str
    session: str
    call_id: str
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VoteProblem:
    """Why a vote does not count: a code for programs, and words."""

    code: str
    words: str


def vote_content(
    request: ApprovalRequest, word: str, approver: str, shown: str, *, scope: str = "", uses: int = 0
) -> dict[str, Any]:
    """Return the content that a person signs: exactly that of the version that the request wants.

    `scope` and `uses` are what the person chose, where that differs from the request.
    """
    content = {
        "digest": request.digest,
        "decision": word,
        "approver": approver,
        "expires": request.expires,
        "shown": shown,
    }
    if request.statement == UNBOUND_VERSION:
        return content
    return {
        "v": request.statement,
        "ledger": request.ledger,
        "tenant": request.tenant,
        "request": request.id,
        **content,
        **({"shown_sha256": request.shown_sha256} if request.statement == STATEMENT_VERSION else {}),
        "scope": scope or request.scope,
        "uses": uses or request.uses,
    }


def _read_choice(request: ApprovalRequest, statement: Statement, word: str) -> tuple[str, int]:
    """Return the scope and the uses that a statement says, if a person may choose them; else those of the request."""
    scope, uses = statement.content.get("scope"), statement.content.get("uses")
    if word != "approve" or request.statement == UNBOUND_VERSION or request.digest_version == FIRST_DIGEST_VERSION:
        return request.scope, request.uses
    is_count = isinstance(uses, int) and not isinstance(uses, bool) and 1 <= uses <= USES_MAX
    return (
        WORKSPACE_SCOPE if scope == WORKSPACE_SCOPE and not request.names_request else request.scope,
        uses if is_count and isinstance(uses, int) else request.uses,
    )


def read_vote(record: Sealed) -> tuple[str, Vote] | None:
    """Read the vote in a record. Returns the id of its request and the vote; None if the record is not a vote.

    Raises BadInput for an unreadable vote. The caller must not ignore it, because it may be a denial or a use.
    """
    if record.kind == USE_KIND:
        return _read_use(record)
    if record.kind != VOTE_KIND:
        return None
    try:
        content = record.to_dict()
        result = check_object(content["outcome"]["result"], "the decision", _KEYS)
        check_version(result["v"], "the decision")
        word, custody, approver, comment = (result[name] for name in ("decision", "custody", "approver", "comment"))
        if word not in _VOTE_WORDS or custody not in (None, *CUSTODIES) or not isinstance(comment, str):
            raise BadInput("the decision is none")
        if not (approver is None or isinstance(approver, str)):
            raise BadInput("the decision has no approver")
        # The statement of this vote is the last of the chain; those before it are of earlier approvals.
        chain = content["authority"]["chain"]
        # The blob itself may be elsewhere. Its digest is enough to compare with the signature.
        shown = next(blob_references(result["shown"]), (None, 0))[0] if result["shown"] else None
        return str(result["request"]), Vote(
            sequence=record.sequence,
            at=time_field((read_block(content) or {}).get("at"), "the decision: at"),
            word=word,
            approver=approver,
            custody=custody,
            level=int_field(result["level"], "the decision: level", low=0, high=LEVELS_MAX),
            comment=comment,
            shown=shown,
            statement=Statement.from_dict(chain[-1]) if word in PERSON_WORDS else None,
        )
    except AverError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadInput("the decision cannot be read") from error


def _read_use(record: Sealed) -> tuple[str, Vote]:
    """Read a use of an approval. Raises BadInput for an unreadable one."""
    try:
        content = record.to_dict()
        result = check_object(content["outcome"]["result"], "the use", _USE_KEYS)
        check_version(result["v"], "the use")
        texts = {name: result[name] for name in ("digest", "scope", "session", "call_id")}
        approvers = result["approvers"]
        if not isinstance(approvers, list) or not all(isinstance(text, str) for text in (*texts.values(), *approvers)):
            raise BadInput("the use is none")
        return str(result["request"]), Vote(
            sequence=record.sequence,
            at=time_field((read_block(content) or {}).get("at"), "the use: at"),
            word="used",
            level=int_field(result["level"], "the use: level", low=0, high=LEVELS_MAX),
            use=Use(
                **texts,
                number=int_field(result["number"], "the use: number", low=1, high=USES_MAX),
                uses=int_field(result["uses"], "the use: uses", low=1, high=USES_MAX),
                approvers=tuple(approvers),
            ),
        )
    except AverError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadInput("the use cannot be read") from error


def vote_problem(request: ApprovalRequest, vote: Vote, counted: Mapping[str, Approver]) -> VoteProblem | None:
    """Return why a vote does not count by itself; None if it counts. `counted` are the approvers whose keys count."""
    statement, approver = vote.statement, vote.approver
    # A signature without the text that the person saw proves nothing about what they meant.
    if statement is None or approver is None or vote.shown is None or _matches_digest(vote.shown) is None:
        return VoteProblem("SIG_MISSING", "it is not signed by anyone")
    if statement.purpose != APPROVAL_PURPOSE:
        return VoteProblem("STATEMENT_MISMATCH", f"its statement is of the purpose {statement.purpose}")
    if statement.content.get("digest") != request.digest:
        return VoteProblem("DIGEST_MISMATCH", "it was signed for another action")
    # Compare the whole content, so that a statement cannot be moved to another request or say more.
    scope, uses = _read_choice(request, statement, vote.word)
    expected = vote_content(request, vote.word, approver, vote.shown, scope=scope, uses=uses)
    if canonical_json(statement.content) != canonical_json(expected):
        if statement.content.get("v", UNBOUND_VERSION) != request.statement:
            words = f"its statement is not of version {request.statement}, which the request wants"
            return VoteProblem("STATEMENT_MISMATCH", words)
        absent = object()
        names = [name for name in expected if statement.content.get(name, absent) != expected[name]]
        about = f"another {' and another '.join(names)}" if names else "more than this request"
        return VoteProblem("STATEMENT_MISMATCH", f"it was signed for {about}")
    if not request.levels_for(approver):
        return VoteProblem("NOT_LISTED", f"{approver} is not among those who decide this")
    # Only the key that the request pinned counts, so a key that is enrolled later cannot vote.
    pinned = request.approvers[approver]
    if [signature.by for signature in statement.signatures] != [pinned.fingerprint]:
        return VoteProblem("UNKNOWN_KEY", f"it is signed by another key than that of {approver} in the request")
    if pinned.custody == PASSKEY_CUSTODY and request.statement == UNBOUND_VERSION:
        return VoteProblem("STATEMENT_MISMATCH", "a passkey signs no statement that names no request")
    if (problem := signature_problem(statement, pinned.key)) is not None:
        return VoteProblem("SIG_INVALID", f"the signature of {approver} does not hold: {problem}")
    # The pinned key must also be on the roster today: a withdrawn key votes no longer.
    now = counted.get(approver)
    if now is None or now.key != pinned.key:
        return VoteProblem("KEY_RETIRED", f"the key {pinned.fingerprint} of {approver} counts no longer")
    if vote.at > request.expires:
        return VoteProblem("EXPIRED", f"it came at {vote.at}; the request expired at {request.expires}")
    if vote.at < request.opened:
        words = f"it came at {vote.at}, before the request was opened at {request.opened}"
        return VoteProblem("CLOCK_BACKWARDS", words)
    return None


# --- the state of a request

StateWord = Literal["pending", "approved", "denied", "expired", "closed", "used"]

CLOSED_REASON = "client: asked, then done"
"""Why a request is closed: the client asked its own person, and the call was then made."""

_NOT_INDEPENDENT = "the approver was not independent"


def independence_problem(approver: Approver | None, *custodies: str | None) -> str | None:
    """Return why an approval is weaker than usual; None if it is not.

    `approver` is the person as enrolled. `custodies` are further words about the key, as in the record of a vote.
    """
    if "file" in (approver and approver.custody, *custodies):
        return f"{_NOT_INDEPENDENT}: the key is kept in a plain file"
    if PASSKEY_CUSTODY in (approver and approver.custody, *custodies) and not (approver and approver.is_independent):
        return f"{_NOT_INDEPENDENT}: no key under a passphrase or in ssh-agent endorsed the passkey"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The state of a request."""

    state: StateWord
    level: int
    """The level that decides or has decided."""
    approvals: tuple[Vote, ...] = ()
    """The approvals that count on that level."""
    reason: str = ""
    escalation: str | None = None
    """Why it went beyond level 1, or why the approval is weaker than usual."""
    floor: int = 1
    """The lowest level that no escalation has closed."""
    scope: str = ""
    """Where the approval is good: the narrowest that its approvals say."""
    uses: int = 0
    """How often it is good: the fewest that its approvals say; 0 before it is approved."""
    used: int = 0
    """How often it was used."""
    valid_approvals: tuple[Vote, ...] = ()
    """All valid approvals, also those of levels that do not decide."""
    uncounted: tuple[tuple[Vote, VoteProblem], ...] = ()
    """Votes that do not count, and why."""

    @property
    def approvers(self) -> tuple[str, ...]:
        return tuple(str(vote.approver) for vote in self.approvals)

    def covers(self, session: str) -> bool:
        """Whether an approval in this state is good in a session."""
        return self.scope in (WORKSPACE_SCOPE, session_scope(session))


def compute_state(
    request: ApprovalRequest, decisions: Iterable[Vote], counted: Mapping[str, Approver], *, now: str, newest: str = ""
) -> RequestState:
    """Compute the state at `now`. `newest` is the latest time in the chain since the request was opened."""
    valid_approvals: list[Vote] = []
    uncounted: list[tuple[Vote, VoteProblem]] = []
    floor, escalation = 1, None
    ending: Vote | None = None
    uses: list[Vote] = []
    for vote in decisions:
        # 1. Such a use is the only one, and final. Later votes change nothing.
        if vote.word == "used" and vote.use is None:
            return RequestState(state="used", level=vote.level, reason=f"it was used at {vote.at}", used=1)
        if vote.word == "used":
            uses.append(vote)
            continue
        # Only `expired` and `closed` are left: Aver itself recorded them.
        if not vote.is_by_person:
            ending = ending or vote
            continue
        problem = vote_problem(request, vote, counted) or turn_problem(request, vote, valid_approvals, floor)
        # 2. A denial counts even if it has a problem.
        if vote.word == "deny":
            ending = ending or vote
        if problem is not None:
            uncounted.append((vote, problem))
        elif vote.word == "escalate":
            # 4.
            floor = find_open_level(request, vote, floor) + 1
            escalation = f"{vote.approver} passed it on{_comment_suffix(vote)}"
        elif vote.word == "approve":
            valid_approvals.append(vote)
    pending = RequestState(
        state="pending",
        level=floor,
        escalation=escalation,
        floor=floor,
        used=len(uses),
        valid_approvals=tuple(valid_approvals),
        uncounted=tuple(uncounted),
    )
    approved = _find_approval(request, pending, counted)
    # 1. All uses are spent, or the approvals that they rest on count no longer: nothing more can come of it.
    if uses and (approved is None or len(uses) >= approved.uses):
        words = f"it was used at {uses[-1].at}" if len(uses) == 1 else f"it was used {len(uses)} times"
        return replace(approved or pending, state="used", reason=words)
    # 2.
    if ending is not None:
        if ending.word == "expired":
            return replace(pending, state="expired", reason=f"nobody decided until {request.expires}")
        if ending.word == "closed":
            return replace(pending, state="closed", reason=CLOSED_REASON)
        words = f"{ending.approver or 'somebody'} denied it{_comment_suffix(ending)}"
        return replace(pending, state="denied", reason=words)
    # 3.
    if max(now, newest) > request.expires:
        return replace(pending, state="expired", reason=f"nobody decided until {request.expires}")
    # 5.
    if approved is not None:
        return approved
    # The highest level that may decide now.
    numbers = range(floor, len(request.levels) + 1)
    level = max([floor, *(number for number in numbers if max(now, newest) >= request.level_opens_at(number))])
    approvals = _approvals_on_level(request, pending, level)
    words = f"{len(approvals)} of {request.levels[level - 1].quorum} have approved on level {level}"
    return replace(pending, level=level, approvals=approvals, reason=words)


def _find_approval(
    request: ApprovalRequest, pending: RequestState, counted: Mapping[str, Approver]
) -> RequestState | None:
    """Return the state of an approved request; None if no open level has its quorum. The lowest such level decides."""
    for number in range(pending.floor, len(request.levels) + 1):
        approvals = _approvals_on_level(request, pending, number)
        if len(approvals) < request.levels[number - 1].quorum:
            continue
        # The record says why the approval went beyond level 1, or why it is weaker than usual.
        reasons = []
        if number > 1:
            waited = request.levels[number - 1].after
            reasons.append(pending.escalation or f"level {number - 1} did not decide within {waited} seconds")
        weak = (independence_problem(counted[str(vote.approver)], vote.custody) for vote in approvals)
        reasons += dict.fromkeys(words for words in weak if words is not None)
        chosen = [_read_choice(request, vote.statement, vote.word) for vote in approvals if vote.statement is not None]
        is_wide = bool(chosen) and all(scope == WORKSPACE_SCOPE for scope, _ in chosen)
        return replace(
            pending,
            state="approved",
            level=number,
            approvals=approvals,
            escalation="; ".join(reasons) or None,
            scope=WORKSPACE_SCOPE if is_wide else request.scope,
            uses=min((uses for _, uses in chosen), default=request.uses),
        )
    return None


def use_problem(request: ApprovalRequest, before: RequestState, use: Use) -> VoteProblem | None:
    """Return why an approval in the state `before` does not cover a use; None if it does."""
    if use.digest != request.digest:
        return VoteProblem("DIGEST_MISMATCH", "it was used for another action")
    if before.state == "used":
        return VoteProblem("REPLAY", f"the approval was used before: {before.reason}")
    if before.state != "approved":
        words = f"it was used without the approvals it needs: {before.state}, {before.reason}"
        return VoteProblem("NOT_APPROVED", words)
    if not before.covers(use.session):
        return VoteProblem("SCOPE_MISMATCH", "it was used in another session than the one that it is good for")
    found = (use.number, use.uses, use.scope, use.approvers)
    if found != (before.used + 1, before.uses, before.scope, before.approvers):
        return VoteProblem("EVIDENCE_INVALID", "its account of the approval is not what people signed")
    return None


def _approvals_on_level(request: ApprovalRequest, pending: RequestState, number: int) -> tuple[Vote, ...]:
    return tuple(vote for vote in pending.valid_approvals if _can_count_on_level(request, vote, number, pending.floor))


def turn_problem(
    request: ApprovalRequest, vote: Vote, valid_approvals: Iterable[Vote], floor: int
) -> VoteProblem | None:
    """Return why a valid vote does not count now: it is not the person's turn, or they voted before."""
    # A denial needs no turn.
    if vote.word == "deny":
        return None
    if vote.word == "approve" and any(earlier.approver == vote.approver for earlier in valid_approvals):
        return VoteProblem("ALREADY_DECIDED", f"{vote.approver} has approved before; one person is one voice")
    level = find_open_level(request, vote, floor)
    if level == 0:
        listed = request.levels_for(str(vote.approver))
        if listed[-1] < floor:
            return VoteProblem("PASSED_ON", f"level {floor} decides now; {vote.approver} is on level {listed[-1]}")
        return VoteProblem(
            "NOT_YET", f"level {listed[-1]} decides from {request.level_opens_at(listed[-1])} on, or when asked"
        )
    if vote.word == "escalate" and level == len(request.levels):
        return VoteProblem("NO_LEVEL", f"there is nobody above level {level} to pass it on to")
    return None


def find_open_level(request: ApprovalRequest, vote: Vote, floor: int) -> int:
    """Return the lowest open level on which the person may vote; 0 if there is none."""
    listed = request.levels_for(str(vote.approver))
    return next((number for number in listed if _can_count_on_level(request, vote, number, floor)), 0)


def _can_count_on_level(request: ApprovalRequest, vote: Vote, number: int, floor: int) -> bool:
    if number < floor or str(vote.approver) not in request.levels[number - 1].approvers:
        return False
    # The lowest open level decides at once, a later one after its time.
    return number == floor or vote.at >= request.level_opens_at(number)


def _comment_suffix(vote: Vote) -> str:
    return f": {vote.comment}" if vote.comment else ""
