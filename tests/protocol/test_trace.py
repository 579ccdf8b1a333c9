"""The fold: which event may come next, and the state after it."""

from __future__ import annotations

import pytest

from aver.protocol.events import read_event
from aver.protocol.trace import EventRefused, fold
from support.protocol_traces import TraceInMemory


def test_a_trace_goes_from_the_task_to_the_audit() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    claim = trace.claim(proposal)
    challenge = trace.challenge(claim.id)
    trace.revise(claim.id)
    trace.withdraw(challenge.id)
    trace.conclude()
    trace.audit()
    states = [event.after for event in trace.events]
    assert trace.fold.status == "succeeded"
    assert states == ["planning", "reviewing", *["executing"] * 3, *["claiming"] * 5, *["auditing"] * 2, "completed"]


def test_events_are_read_back_from_their_records_as_they_were() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    trace.claim(proposal)
    trace.conclude()
    trace.audit("fail")
    read = [read_event(record) for record in trace.records]
    assert read == trace.events
    again = fold(trace.place, "t1", read, trace.signers["operator"].public)
    assert again.state == trace.fold.state == "failed"
    assert again.head == trace.fold.head


def test_nothing_follows_the_end() -> None:
    trace = TraceInMemory()
    trace.begin()
    trace.say("operator", "session_aborted", {"code": "OPERATOR", "reason": "enough"})
    with pytest.raises(EventRefused) as caught:
        trace.propose()
    assert caught.value.code == "STATE_VIOLATION"
