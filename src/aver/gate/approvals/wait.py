"""Waiting for a request to be decided: the one way for hooks, the runtime, the proxy and the page.

    request = open_request(ledger, action, decision)
    outcome = wait_for(ledger, request, 120)
    if outcome.allows:
        consume(ledger, request, action.digest)     # and then act
        ...

Waiting costs one look at the chain's head now and then, and reads on only when it moved. What is not clearly an
approval is none: a ledger that is damaged or cannot be read, a request that is not there any more, a timeout. The
time to wait is measured by a clock that cannot be set back. Running out of patience denies this attempt and leaves
the request open: whoever asks again under the same gate id meets the decision that came in the meantime. Running
into the request's own end is recorded, and final.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Literal

from aver import clock
from aver.errors import AverError, IntegrityError, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.approvals.cast_vote import expire
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.approvals.request_history import load_request_state
from aver.gate.approvals.state import RequestState
from aver.ledger import Head, Ledger

__all__ = ["WaitOutcome", "wait_for_answer", "wait_for_answer_async"]

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two looks: soon at first, when a program may be deciding, and seldom for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOutcome:
    """How waiting ended. Only `approved` allows anything."""

    state: Literal["approved", "denied", "expired", "timeout"]
    reason: str
    code: str = ""
    approvers: tuple[str, ...] = ()
    level: int = 1
    escalation: str | None = None

    @property
    def allows(self) -> bool:
        return self.state == "approved"


def wait_for_answer(ledger: Ledger, request: ApprovalRequest, timeout: float) -> WaitOutcome:
    """Wait until the request is decided, for at most so many seconds."""
    watch = _RequestWatch(ledger, request, timeout)
    while (outcome := watch.look()) is None:
        time.sleep(watch.next_pause())
    return outcome


async def wait_for_answer_async(ledger: Ledger, request: ApprovalRequest, timeout: float) -> WaitOutcome:
    """The same for asyncio; the loop never waits for a disk. Of an `AsyncLedger`, pass its `ledger`."""
    import asyncio  # Here, because most who wait do so without it, and it takes long to load.

    watch = _RequestWatch(ledger, request, timeout)
    while (outcome := await asyncio.to_thread(watch.look)) is None:
        await asyncio.sleep(watch.next_pause())
    return outcome


class _RequestWatch:
    """One wait: what was seen last, and when it ends."""

    def __init__(self, ledger: Ledger, request: ApprovalRequest, timeout: float) -> None:
        self._ledger = ledger
        self._request = request
        now = time.monotonic()
        left = (_parse_time(request.expires) - _parse_time(clock.now())).total_seconds()
        self._expires = now + left
        self._ends = now + (min(timeout, left) if timeout > 0 else 0.0)
        self._seen: Head | None = None
        self._pause = FIRST_PAUSE

    def look(self) -> WaitOutcome | None:
        """How it ended, if it did."""
        try:
            outcome = self._poll()
        except Unavailable as error:
            outcome = None if time.monotonic() < self._ends else _denial_outcome("UNAVAILABLE", error)
        except (IntegrityError, Refused) as error:
            outcome = _denial_outcome(error.code, error)
        except AverError as error:
            outcome = _denial_outcome("EVIDENCE_INVALID", error)
        return outcome

    def next_pause(self) -> float:
        """How long to wait before the next look."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE)
        return max(min(pause, self._ends - time.monotonic()), 0.0)

    def _poll(self) -> WaitOutcome | None:
        over = time.monotonic() >= self._ends
        head = self._ledger.head(self._request.chain)
        if head == self._seen and not over:
            return None
        self._check_not_rolled_back(head)
        standing = load_request_state(self._ledger, self._request)
        self._seen = head
        if standing.state == "expired" or (over and time.monotonic() >= self._expires):
            expire(self._ledger, self._request)
            words = standing.reason if standing.state == "expired" else f"nobody decided until {self._request.expires}"
            return WaitOutcome(state="expired", reason=words, code="EXPIRED", level=standing.level)
        return _outcome_from_state(standing) or (_timeout_outcome(standing) if over else None)

    def _check_not_rolled_back(self, head: Head) -> None:
        """A chain only grows: one that lost what was seen of it may have lost a denial."""
        seen = self._seen
        if seen is None or seen.count == 0:
            return
        there = None
        if head.count >= seen.count:
            there = next(self._ledger.read(seen.chain, seen.count - 1, seen.count), None)
        if there is None or there.hash != seen.hash:
            words = f"the chain {seen.chain} has lost records while a decision was waited for"
            raise IntegrityError("ROLLBACK", words, evidence=(seen, head), advice="run: aver verify")


def _outcome_from_state(standing: RequestState) -> WaitOutcome | None:
    if standing.state == "approved":
        return WaitOutcome(
            state="approved",
            reason=f"approved by {', '.join(standing.approvers)}",
            approvers=standing.approvers,
            level=standing.level,
            escalation=standing.escalation,
        )
    if standing.state == "pending":
        return None
    code = "REPLAY" if standing.state == "used" else "DENIED"
    return WaitOutcome(state="denied", reason=standing.reason, code=code, level=standing.level)


def _timeout_outcome(standing: RequestState) -> WaitOutcome:
    return WaitOutcome(
        state="timeout", reason=f"nobody decided yet: {standing.reason}", code="TIMEOUT", level=standing.level
    )


def _denial_outcome(code: str, error: AverError) -> WaitOutcome:
    return WaitOutcome(state="denied", reason=str(error), code=code)


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
