"""Makes the calls that may run now: side by side where they do not disturb each other, else one after the other.

All calls of a trace share a workspace, and each start records its state. So calls run beside each other only if

* the signed intent says that the call changes nothing but build output: its risk is `low`, or it is `repeatable`;
* the tool can say what the call needs for itself (`ParallelRunner`), and no two calls of the batch need the same:
  two calls must not collect the same report, nor build by the same program;
* no call that must run alone was signed between them. A read that was signed after a write runs after it.

At most `CALLS_MAX` calls run beside each other, and no more than there are processors. Their starts are sealed one by
one before the first of them runs: so no start records the half-written output of another call. Each end is sealed as
soon as its call has ended. If something breaks down, the calls that have begun come to their end first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, NamedTuple

from aver.errors import AverError, BadInput, Refused
from aver.log import debug
from aver.protocol.calls import BegunCall
from aver.protocol.events import Event
from aver.protocol.handles import ExecutorHandle
from aver.protocol.runner import ParallelRunner
from aver.protocol.tools.processes import stop_with

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

CALLS_MAX = 4
"""Most calls that one run makes side by side. Each has the time limit of the bounds for itself."""


class WaitingCall(NamedTuple):
    """A call that may run now: whose it is, and its intent."""

    agent: str
    intent: str


Note = Callable[[WaitingCall, AverError], None]
"""Told why a call was not made."""


def count_beside() -> int:
    """Return how many calls may run side by side here."""
    return max(1, min(CALLS_MAX, os.cpu_count() or 1))


def run_calls(session: ProtocolSession, calls: Sequence[WaitingCall], *, note: Note, show: Callable[[], None]) -> None:
    """Make calls in the order in which they were signed, side by side where they are independent.

    `show` is called after each end. Raises what the session raises, after every call that has begun has its end.
    """
    left = list(calls)
    while left and not session.fold.is_over:
        batch = _take_batch(session, left)
        if len(batch) == 1:
            _run_alone(session, batch[0], note)
            show()
        else:
            debug("protocol", "%s calls of %s run side by side", len(batch), session.trace)
            _run_beside(session, batch, note, show)


def _take_batch(session: ProtocolSession, left: list[WaitingCall]) -> list[WaitingCall]:
    """Take the calls off the list that run next: the first, and those right after it that are independent."""
    batch = [left.pop(0)]
    taken = _find_places(session, batch[0])
    while left and taken is not None and len(batch) < count_beside():
        places = _find_places(session, left[0])
        if places is None or places & taken:
            break
        taken |= places
        batch.append(left.pop(0))
    return batch


def _find_places(session: ProtocolSession, call: WaitingCall) -> frozenset[str] | None:
    """Return what a call needs for itself; None where it must run alone."""
    with session.hold_fold() as fold:
        intent = fold.intents[call.intent]
    if intent.risk != "low" and not intent.payload["repeatable"]:
        return None
    if not isinstance(session.tools, ParallelRunner):
        return None
    try:
        return session.tools.find_places(intent.tool, session.find_arguments(intent))
    except AverError as error:
        debug("protocol", "the call of %s runs alone: %s", intent.tool, error.message)
        return None


def _run_alone(session: ProtocolSession, call: WaitingCall, note: Note) -> None:
    try:
        ExecutorHandle(session, call.agent).run(call.intent)
    except (Refused, BadInput) as error:
        # A person must approve it first, the bounds are used up, another process has begun it, or it is a call of tools
        # that only another process has. The intent stays as it is.
        note(call, error)


def _run_beside(session: ProtocolSession, batch: Sequence[WaitingCall], note: Note, show: Callable[[], None]) -> None:
    begun: list[tuple[WaitingCall, BegunCall]] = []
    unanswered: list[WaitingCall] = []
    trouble: BaseException | None = None
    try:
        for call in batch:
            try:
                # Nobody waits for a person here: the calls that have begun would wait as well.
                start = ExecutorHandle(session, call.agent).begin(call.intent, wait=0.0)
            except (Refused, BadInput) as error:
                if isinstance(error, Refused) and error.code == "APPROVAL_PENDING":
                    unanswered.append(call)
                else:
                    note(call, error)
                continue
            if isinstance(start, BegunCall):
                begun.append((call, start))
            show()
    except Exception as error:  # noqa: BLE001 - the calls that have begun are made first; then it is raised
        trouble = error
    except BaseException:
        for _, start in begun:
            start.held.close()
        raise
    trouble = _finish_beside(session, begun, note, show) or trouble
    if trouble is not None:
        raise trouble
    for call in unanswered:
        _run_alone(session, call, note)
        show()


def _finish_beside(
    session: ProtocolSession, begun: Sequence[tuple[WaitingCall, BegunCall]], note: Note, show: Callable[[], None]
) -> BaseException | None:
    """Make calls that have begun, and seal their ends. Returns the first error that is no refusal."""
    stop = threading.Event()
    trouble: BaseException | None = None

    def finish(call: WaitingCall, start: BegunCall) -> Event:
        with stop_with(stop):
            return ExecutorHandle(session, call.agent).finish(start)

    with ThreadPoolExecutor(max_workers=max(1, len(begun)), thread_name_prefix="aver-call") as pool:
        ends: dict[Future[Event], WaitingCall] = {pool.submit(finish, *each): each[0] for each in begun}
        try:
            for end in as_completed(ends):
                error = end.exception()
                if isinstance(error, Refused):
                    note(ends[end], error)
                else:
                    trouble = trouble or error
                show()
        except BaseException as error:
            # The pool waits for its threads, so who interrupts must end the programs now. After an error they end by
            # themselves.
            if not isinstance(error, Exception):
                stop.set()
            raise
    return trouble
