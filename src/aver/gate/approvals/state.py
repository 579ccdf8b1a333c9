"""Where a request stands, given all that was said about it. Pure: the same records give the same answer.

In this order:

1. `used` once is used for ever.
2. One `deny`, or one `expired`, ends it, whoever else approved. Denying needs no proof; approving does.
3. Past its time it is expired, by the clock and by the newest time in the ledger since it was opened: a clock that
   was set back revives nothing.
4. `escalate` by somebody of an open level closes that level and those before it.
5. It is approved when, on a level that is open, as many different people as its quorum asks for have approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.roster import Approver
from aver.gate.approvals.vote import Vote, VoteProblem, vote_problem

__all__ = ["RequestState", "StateWord", "compute_state", "find_open_level", "turn_problem"]

StateWord = Literal["pending", "approved", "denied", "expired", "used"]

NOT_INDEPENDENT = "the approver was not independent: the key is kept in a plain file"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """Where a request stands."""

    state: StateWord
    level: int
    """The level that decides, or decided."""
    approvals: tuple[Vote, ...] = ()
    """Those that count on that level."""
    reason: str = ""
    escalation: str | None = None
    """Why it went beyond level 1, or why the approval is worth less than one."""
    floor: int = 1
    """The first level that was not passed over."""
    voices: tuple[Vote, ...] = ()
    """Every approval that holds, also on levels that do not decide."""
    uncounted: tuple[tuple[Vote, VoteProblem], ...] = ()
    """What was said and does not count, and why."""

    @property
    def approvers(self) -> tuple[str, ...]:
        return tuple(str(decided.approver) for decided in self.approvals)


def compute_state(
    request: ApprovalRequest, decisions: Iterable[Vote], counted: Mapping[str, Approver], *, now: str, newest: str = ""
) -> RequestState:
    """Where the request stands at `now`; `newest` is the latest time in its chain since it was opened."""
    voices: list[Vote] = []
    uncounted: list[tuple[Vote, VoteProblem]] = []
    floor, escalation = 1, None
    ended: Vote | None = None
    for decided in decisions:
        if decided.word == "used":
            return RequestState(state="used", level=decided.level, reason=f"it was used at {decided.at}")
        if not decided.is_by_person:
            ended = ended or decided
            continue
        problem = vote_problem(request, decided, counted) or turn_problem(request, decided, voices, floor)
        if decided.word == "deny":
            ended = ended or decided
        if problem is not None:
            uncounted.append((decided, problem))
        elif decided.word == "escalate":
            floor = find_open_level(request, decided, floor) + 1
            escalation = f"{decided.approver} passed it on{_comment_suffix(decided)}"
        elif decided.word == "approve":
            voices.append(decided)
    so_far = RequestState(
        state="pending",
        level=floor,
        escalation=escalation,
        floor=floor,
        voices=tuple(voices),
        uncounted=tuple(uncounted),
    )
    if ended is not None:
        return replace(
            so_far, state="expired" if ended.word == "expired" else "denied", reason=_end_reason(request, ended)
        )
    if max(now, newest) > request.expires:
        return replace(so_far, state="expired", reason=_expiry_reason(request))
    for number in range(floor, len(request.levels) + 1):
        approvals = _approvals_on_level(request, so_far, number)
        if len(approvals) >= request.levels[number - 1].quorum:
            why = _escalation_reason(request, approvals, counted, number, escalation)
            return replace(so_far, state="approved", level=number, approvals=approvals, escalation=why)
    level = _current_level(request, floor, max(now, newest))
    approvals = _approvals_on_level(request, so_far, level)
    words = f"{len(approvals)} of {request.levels[level - 1].quorum} have approved on level {level}"
    return replace(so_far, level=level, approvals=approvals, reason=words)


def _approvals_on_level(request: ApprovalRequest, so_far: RequestState, number: int) -> tuple[Vote, ...]:
    return tuple(voice for voice in so_far.voices if _can_count_on_level(request, voice, number, so_far.floor))


def turn_problem(request: ApprovalRequest, decided: Vote, voices: Iterable[Vote], floor: int) -> VoteProblem | None:
    """Why a word that holds by itself does not count here and now: it is not the person's turn, or said before."""
    if decided.word == "deny":
        return None
    if decided.word == "approve" and any(voice.approver == decided.approver for voice in voices):
        return VoteProblem("ALREADY_DECIDED", f"{decided.approver} has approved before; one person is one voice")
    level = find_open_level(request, decided, floor)
    if level == 0:
        listed = request.levels_for(str(decided.approver))
        if listed[-1] < floor:
            return VoteProblem("PASSED_ON", f"level {floor} decides now; {decided.approver} is on level {listed[-1]}")
        return VoteProblem(
            "NOT_YET", f"level {listed[-1]} decides from {request.level_opens_at(listed[-1])} on, or when asked"
        )
    if decided.word == "escalate" and level == len(request.levels):
        return VoteProblem("NO_LEVEL", f"there is nobody above level {level} to pass it on to")
    return None


def find_open_level(request: ApprovalRequest, decided: Vote, floor: int) -> int:
    """The lowest open level on which a person speaks; 0 if there is none."""
    listed = request.levels_for(str(decided.approver))
    return next((number for number in listed if _can_count_on_level(request, decided, number, floor)), 0)


def _can_count_on_level(request: ApprovalRequest, decided: Vote, number: int, floor: int) -> bool:
    if number < floor or str(decided.approver) not in request.levels[number - 1].approvers:
        return False
    return number == floor or decided.at >= request.level_opens_at(number)


def _current_level(request: ApprovalRequest, floor: int, now: str) -> int:
    """The highest level whose turn it is."""
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
    if any("file" in (counted[str(one.approver)].custody, one.custody) for one in approvals):
        reasons.append(NOT_INDEPENDENT)
    return "; ".join(reasons) or None


def _end_reason(request: ApprovalRequest, decided: Vote) -> str:
    if decided.word == "expired":
        return _expiry_reason(request)
    return f"{decided.approver or 'somebody'} denied it{_comment_suffix(decided)}"


def _expiry_reason(request: ApprovalRequest) -> str:
    return f"nobody decided until {request.expires}"


def _comment_suffix(decided: Vote) -> str:
    return f": {decided.comment}" if decided.comment else ""
