"""A vote: one `approval.decision` about a request, and whether it counts. No I/O.

A person's vote (`approve`, `deny`, `escalate`) is a statement with the purpose `approval`, signed by the person's key:

    {digest, decision, approver, expires, shown}

`shown` is the SHA-256 of the exact text that the person saw. The ledger keeps that text as a blob. Two more votes come
from Aver and have no signature: `expired`, and `used` when the action goes ahead.

`outcome.result`: {v, request, digest, decision, approver, custody, level, comment, shown}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import blob_references
from aver.capsule.json_document import check_object, check_version, int_field, time_field
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.roster import CUSTODIES, Approver, Custody
from aver.gate.approvals.rules import LEVELS_MAX
from aver.keys import Ring, Statement, check_statement

APPROVAL_PURPOSE = "approval"
"""The purpose of a signed vote."""
VOTE_KIND = "approval.decision"

PersonWord = Literal["approve", "deny", "escalate"]
VoteWord = Literal["approve", "deny", "escalate", "expired", "used"]
PERSON_WORDS: tuple[str, ...] = get_args(PersonWord)
_VOTE_WORDS: tuple[str, ...] = get_args(VoteWord)

_KEYS = frozenset({"v", "request", "digest", "decision", "approver", "custody", "level", "comment", "shown"})
_matches_digest = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A vote as recorded. `vote_problem` says whether it counts."""

    sequence: int
    at: str
    word: VoteWord
    approver: str | None
    custody: Custody | None
    level: int
    comment: str
    shown: str | None
    """The digest of the text that the person saw."""
    statement: Statement | None

    @property
    def is_by_person(self) -> bool:
        return self.word in PERSON_WORDS


@dataclass(frozen=True, slots=True)
class VoteProblem:
    """Why a vote does not count: a code for programs, and words."""

    code: str
    words: str


def vote_content(request: ApprovalRequest, word: str, approver: str, shown: str) -> dict[str, Any]:
    """Return the content that a person signs."""
    return {
        "digest": request.digest,
        "decision": word,
        "approver": approver,
        "expires": request.expires,
        "shown": shown,
    }


def read_vote(record: Sealed) -> tuple[str, Vote] | None:
    """Read the vote in a record. Returns the id of its request and the vote; None if the record is not a vote.

    Raises BadInput for an unreadable vote. The caller must not ignore it, because it may be a denial.
    """
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
        chain = content["authority"]["chain"]
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


def vote_problem(request: ApprovalRequest, vote: Vote, counted: Mapping[str, Approver]) -> VoteProblem | None:
    """Return why a vote does not count by itself; None if it counts. `counted` are the approvers whose keys count."""
    statement, approver = vote.statement, vote.approver
    if statement is None or approver is None or vote.shown is None or _matches_digest(vote.shown) is None:
        return VoteProblem("SIG_MISSING", "it is not signed by anyone")
    if statement.purpose != APPROVAL_PURPOSE:
        return VoteProblem("STATEMENT_MISMATCH", f"its statement is of the purpose {statement.purpose}")
    if statement.content.get("digest") != request.digest:
        return VoteProblem("DIGEST_MISMATCH", "it was signed for another action")
    # Compare the whole content, so that a statement cannot be moved to another request or say more.
    if statement.content != vote_content(request, vote.word, approver, vote.shown):
        return VoteProblem("STATEMENT_MISMATCH", "it was signed for another request, or says something else")
    if not request.levels_for(approver):
        return VoteProblem("NOT_LISTED", f"{approver} is not among those who decide this")
    return _key_problem(request, statement, approver, counted) or _time_problem(request, vote.at)


def _key_problem(
    request: ApprovalRequest, statement: Statement, approver: str, counted: Mapping[str, Approver]
) -> VoteProblem | None:
    pinned = request.approvers[approver]
    results = check_statement(statement, Ring.pin((pinned.key,)))
    if [result.by for result in results] != [pinned.fingerprint]:
        return VoteProblem("UNKNOWN_KEY", f"it is signed by another key than that of {approver} in the request")
    if results[0].outcome != "valid":
        return VoteProblem("SIG_INVALID", f"the signature of {approver} does not hold")
    # The pinned key must also be on the roster today: a withdrawn key votes no longer.
    now = counted.get(approver)
    if now is None or now.key != pinned.key:
        return VoteProblem("KEY_RETIRED", f"the key {pinned.fingerprint} of {approver} counts no longer")
    return None


def _time_problem(request: ApprovalRequest, at: str) -> VoteProblem | None:
    if at > request.expires:
        return VoteProblem("EXPIRED", f"it came at {at}; the request expired at {request.expires}")
    if at < request.opened:
        return VoteProblem("CLOCK_BACKWARDS", f"it came at {at}, before the request was opened at {request.opened}")
    return None
