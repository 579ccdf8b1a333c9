"""The state of a request, computed from all votes on it. Pure: the same votes give the same state.

Rules, in this order:

1. A request that was used once stays used.
2. One `deny` or one `expired` ends it, even after approvals. A denial needs no valid signature; an approval does.
3. A request past its time is expired. Aver compares with the clock and with the newest time in the ledger since the
   request was opened, so setting the clock back does not reopen it.
4. An `escalate` vote on an open level closes that level and those before it.
5. A request is approved if, on an open level, as many different people as its quorum have approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.roster import Approver
from aver.gate.approvals.vote import Vote, VoteProblem, vote_problem

StateWord = Literal["pending", "approved", "denied", "expired", "used"]

NOT_INDEPENDENT = "the approver was not independent: the key is kept in a plain file"


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
    valid_approvals: tuple[Vote, ...] = ()
    """All valid approvals, also those of levels that do not decide."""
    uncounted: tuple[tuple[Vote, VoteProblem], ...] = ()
    """Votes that do not count, and why."""

    @property
    def approvers(self) -> tuple[str, ...]:
        return tuple(str(vote.approver) for vote in self.approvals)


def compute_state(
    request: ApprovalRequest, decisions: Iterable[Vote], counted: Mapping[str, Approver], *, now: str, newest: str = ""
) -> RequestState:
    """Compute the state at `now`. `newest` is the latest time in the chain since the request was opened."""
    valid_approvals: list[Vote] = []
    uncounted: list[tuple[Vote, VoteProblem]] = []
    floor, escalation = 1, None
    ending: Vote | None = None
    for vote in decisions:
        # 1. One use is final, whatever follows.
        if vote.word == "used":
            return RequestState(state="used", level=vote.level, reason=f"it was used at {vote.at}")
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
        valid_approvals=tuple(valid_approvals),
        uncounted=tuple(uncounted),
    )
    # 2.
    if ending is not None:
        return replace(
            pending, state="expired" if ending.word == "expired" else "denied", reason=_end_reason(request, ending)
        )
    # 3.
    if max(now, newest) > request.expires:
        return replace(pending, state="expired", reason=_expiry_reason(request))
    # 5. The lowest level with a quorum decides.
    for number in range(floor, len(request.levels) + 1):
        approvals = _approvals_on_level(request, pending, number)
        if len(approvals) >= request.levels[number - 1].quorum:
            why = _escalation_reason(request, approvals, counted, number, escalation)
            return replace(pending, state="approved", level=number, approvals=approvals, escalation=why)
    level = _current_level(request, floor, max(now, newest))
    approvals = _approvals_on_level(request, pending, level)
    words = f"{len(approvals)} of {request.levels[level - 1].quorum} have approved on level {level}"
    return replace(pending, level=level, approvals=approvals, reason=words)


def _approvals_on_level(request: ApprovalRequest, pending: RequestState, number: int) -> tuple[Vote, ...]:
    return tuple(vote for vote in pending.valid_approvals if _can_count_on_level(request, vote, number, pending.floor))


def turn_problem(
    request: ApprovalRequest, vote: Vote, valid_approvals: Iterable[Vote], floor: int
) -> VoteProblem | None:
    """Return why a valid vote does not count now: it is not the person's turn, or they voted before."""
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
    return number == floor or vote.at >= request.level_opens_at(number)


def _current_level(request: ApprovalRequest, floor: int, now: str) -> int:
    """Return the highest level that may decide now."""
    due = [number for number in range(floor, len(request.levels) + 1) if now >= request.level_opens_at(number)]
    return max([floor, *due])


def _escalation_reason(
    request: ApprovalRequest,
    approvals: tuple[Vote, ...],
    counted: Mapping[str, Approver],
    level: int,
    passed_on: str | None,
) -> str | None:
    reasons = []
    if level > 1:
        reasons.append(
            passed_on or f"level {level - 1} did not decide within {request.levels[level - 1].after} seconds"
        )
    if any("file" in (counted[str(vote.approver)].custody, vote.custody) for vote in approvals):
        reasons.append(NOT_INDEPENDENT)
    return "; ".join(reasons) or None


def _end_reason(request: ApprovalRequest, vote: Vote) -> str:
    if vote.word == "expired":
        return _expiry_reason(request)
    return f"{vote.approver or 'somebody'} denied it{_comment_suffix(vote)}"


def _expiry_reason(request: ApprovalRequest) -> str:
    return f"nobody decided until {request.expires}"


def _comment_suffix(vote: Vote) -> str:
    return f": {vote.comment}" if vote.comment else ""
