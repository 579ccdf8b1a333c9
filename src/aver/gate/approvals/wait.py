"""Waits for the answer to a request. Hooks, the runtime and the proxy all use this module.

    request = open_request(ledger, action, decision)
    outcome = wait_for_answer(ledger, request, 120)
    if outcome.allows:
        consume(ledger, request, action.digest)     # and then act
        ...

Waiting reads the head of the chain now and then, and reads records only if the head has moved. Only a clear approval
counts. A damaged or unreadable ledger, a request that has disappeared, and a timeout do not. The time is measured with
a monotonic clock. A timeout denies this attempt and leaves the request open: asking again with the same gate id finds
an answer that came in the meantime. The expiry of the request itself is recorded, and final.
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
from aver.gate.approvals.request_records import load_request_state
from aver.ledger import Head, Ledger

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two reads. The first ones are short, because a program may answer; people take longer."""


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
    """Wait until the request is decided, for at most `timeout` seconds."""
    watch = _RequestWatch(ledger, request, timeout)
    while (outcome := watch.look()) is None:
        time.sleep(watch.next_pause())
    return outcome


async def wait_for_answer_async(ledger: Ledger, request: ApprovalRequest, timeout: float) -> WaitOutcome:
    """Wait as `wait_for_answer` does, without blocking the event loop. For an `AsyncLedger`, pass its `ledger`."""
    # Imported here: it takes long to load, and most callers do not need it.
    import asyncio

    watch = _RequestWatch(ledger, request, timeout)
    while (outcome := await asyncio.to_thread(watch.look)) is None:
        await asyncio.sleep(watch.next_pause())
    return outcome


class _RequestWatch:
    """One wait: the head that was read last, and the times at which it ends."""

    def __init__(self, ledger: Ledger, request: ApprovalRequest, timeout: float) -> None:
        self._ledger = ledger
        self._request = request
        now = time.monotonic()
        # The wall clock counts once, at the start. From then on the monotonic clock decides.
        left = (datetime.fromisoformat(request.expires) - datetime.fromisoformat(clock.now())).total_seconds()
        self._expires = now + left
        self._ends = now + (min(timeout, left) if timeout > 0 else 0.0)
        self._seen: Head | None = None
        self._pause = FIRST_PAUSE

    def look(self) -> WaitOutcome | None:
        """Read the request once. Returns the outcome, or None to go on waiting."""
        try:
            outcome = self._poll()
        except Unavailable as error:
            # The ledger may be back before the wait ends. Every other error denies at once.
            outcome = None if time.monotonic() < self._ends else _denial_outcome("UNAVAILABLE", error)
        except (IntegrityError, Refused) as error:
            outcome = _denial_outcome(error.code, error)
        except AverError as error:
            outcome = _denial_outcome("EVIDENCE_INVALID", error)
        return outcome

    def next_pause(self) -> float:
        """Return the seconds until the next read. They grow from read to read."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE)
        # The last pause ends with the wait.
        return max(min(pause, self._ends - time.monotonic()), 0.0)

    def _poll(self) -> WaitOutcome | None:
        # Taken before the read, so that an answer that is there at the end is still seen.
        over = time.monotonic() >= self._ends
        head = self._ledger.head(self._request.chain)
        if head == self._seen and not over:
            return None  # nothing new; at the end of the wait, read once more in any case
        # The chain must still have the records that were read before. A lost one may be a denial.
        seen = self._seen
        if seen is not None and seen.count != 0:
            there = None
            if head.count >= seen.count:
                there = next(self._ledger.read(seen.chain, seen.count - 1, seen.count), None)
            if there is None or there.hash != seen.hash:
                words = f"the chain {seen.chain} has lost records while a decision was waited for"
                raise IntegrityError("ROLLBACK", words, evidence=(seen, head), advice="run: aver verify")
        state = load_request_state(self._ledger, self._request)
        self._seen = head
        # The monotonic clock counts, too: a wall clock that stands still cannot keep a request open.
        if state.state in ("expired", "closed") or (over and time.monotonic() >= self._expires):
            expire(self._ledger, self._request)
            words = (
                state.reason
                if state.state in ("expired", "closed")
                else f"nobody decided until {self._request.expires}"
            )
            return WaitOutcome(state="expired", reason=words, code="EXPIRED", level=state.level)
        if state.state == "approved":
            return WaitOutcome(
                state="approved",
                reason=f"approved by {', '.join(state.approvers)}",
                approvers=state.approvers,
                level=state.level,
                escalation=state.escalation,
            )
        if state.state != "pending":
            code = "REPLAY" if state.state == "used" else "DENIED"
            return WaitOutcome(state="denied", reason=state.reason, code=code, level=state.level)
        if over:
            reason = f"nobody decided yet: {state.reason}"
            return WaitOutcome(state="timeout", reason=reason, code="TIMEOUT", level=state.level)
        return None


def _denial_outcome(code: str, error: AverError) -> WaitOutcome:
    return WaitOutcome(state="denied", reason=str(error), code=code)
