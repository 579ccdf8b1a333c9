"""A session ends a trace that does not hold, and gives up calls whose process is gone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from aver import clock
from aver.errors import AverError, IntegrityError
from aver.log import debug
from aver.protocol.events import OPERATOR, Event, build_event_draft
from aver.protocol.records.membership import find_operator_signer, is_held_here
from aver.protocol.records.trace_files import try_exclusive_lock
from aver.protocol.rules.step import EventRefused
from aver.protocol.tools.marked_processes import end_marked_processes

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

GIVEN_UP = "it is not known how the call ended: Aver's process is gone, and the command may still run"
"""The words of an `OUTCOME_UNKNOWN`."""

GIVEN_UP_ENDED = "it is not known what the call did: Aver's process is gone; the command still ran, and was ended now"
"""The words where processes of the call were found, and ended before the call was given up."""

WORDS_MAX = 1000
"""Characters of a finding that `session_failed` keeps."""


def fail_trace(session: ProtocolSession, error: IntegrityError) -> None:
    """Seal `session_failed` after a trace that does not hold, if this home holds its operator's key.

    Another history than the one that was seen here is left alone: it is not this session's to end.
    """
    fold = session.fold
    if fold.is_over or error.code == "ROLLBACK":
        return
    try:
        bound, last = find_operator_signer(session), session.ledger.head(session.chain)
        newest = next(session.ledger.read(session.chain, last.count - 1), None)
        if bound is None or (newest is not None and newest.kind == "protocol.session_failed"):
            return
        finding = {"code": error.code, "sequence": fold.count, "words": error.message[:WORDS_MAX]}
        event = Event(
            id=clock.new_id(),
            trace=session.trace,
            name="session_failed",
            role=OPERATOR,
            agent=OPERATOR,
            payload={"v": 1, "finding": finding},
            refs={},
            before=fold.state,
            after="failed",
        )
        session.ledger.append(session.chain, build_event_draft(event), signer=bound.for_append, after=last)
    except AverError as trouble:  # The finding itself is what the caller must get.
        debug("protocol", "session_failed of %s cannot be sealed: %s", session.trace, trouble)


def give_up_lost_calls(session: ProtocolSession) -> None:
    """Seal `OUTCOME_UNKNOWN` for each call that has started, has no end, and whose Aver cannot be running any more.

    Those who hold an executor's key give up calls; others leave them. The programs of a call of this home are ended
    first: they would share the workspace with the next attempt.
    """
    fold = session.fold
    executors = [agent for agent, each in fold.participants.items() if each.role == "executor"]
    own = [agent for agent in executors if is_held_here(session, agent)]
    if not fold.running or not own:
        return
    with try_exclusive_lock(session.home, session.trace) as is_free:
        for start in list(fold.running):
            execution = fold.executions[start]
            is_own = execution.agent in own
            # Elsewhere, nobody here can tell whether its process lives: then only its time limit counts.
            if not (is_free if is_own else execution.until < clock.now()):
                continue
            is_ended = is_own and end_marked_processes(start) > 0
            refs = {"intent": execution.intent, "start": start}
            payload = {"code": "OUTCOME_UNKNOWN", "words": GIVEN_UP_ENDED if is_ended else GIVEN_UP, "output": {}}
            with suppress(EventRefused):  # Another process has given it up, or its runner has ended it after all.
                speaker = execution.agent if is_own else own[0]
                session.seal_event(speaker, "tool_execution_failed", payload, refs=refs)
