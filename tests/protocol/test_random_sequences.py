"""Random legal and illegal sequences: the fold accepts only histories that a plain reading of the rules accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.capsule.blobs import Blob, blob_references
from aver.protocol.bounds import Bounds
from aver.protocol.events import FINAL_STATES, OPERATOR, Event, read_event
from aver.protocol.trace import EventRefused, fold
from support.protocol_traces import AGENTS, TraceInMemory

EDGES = {
    ("initialized", "planning"),
    ("planning", "reviewing"),
    ("reviewing", "executing"),
    ("executing", "claiming"),
    ("claiming", "auditing"),
    ("auditing", "completed"),
    ("auditing", "failed"),
    ("reviewing", "planning"),
    ("executing", "planning"),
    ("executing", "reviewing"),
    ("claiming", "executing"),
}
"""The transitions of the specification, and the backward ones. Abort and failure come from anywhere."""

OUTPUTS = (b"3 passed", b"other", b"half of it")
NOWHERE = "00000000-0000-4000-8000-000000000000"


class Author:
    """Says random things in a trace, of which many are wrong."""

    def __init__(self, data: st.DataObject, trace: TraceInMemory) -> None:
        self.data = data
        self.trace = trace

    def pick(self, *names: str) -> str:
        """The id of some event, most of the time one of these names."""
        fitting = [event.id for event in self.trace.events if event.name in names]
        others = [event.id for event in self.trace.events]
        return self.data.draw(st.sampled_from([*fitting * 8, *others, NOWHERE]))

    def draw(self, *values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def say_anything(self) -> Event:
        trace = self.trace
        sayings: list[Callable[[], Event]] = [
            trace.propose,
            lambda: trace.propose(revises=self.pick("proposal_created")),
            *[lambda: trace.review(self.pick("proposal_created"), self.draw("approved", "conditional", "rejected"))]
            * 3,
            *[self.intend] * 3,
            lambda: trace.review_intent(self.pick("tool_intent_signed"), self.draw("approved", "blocked")),
            *[self.start] * 4,
            *[self.complete] * 3,
            self.fail,
            self.record,
            *[self.claim] * 2,
            lambda: trace.challenge(self.pick("claim_issued")),
            lambda: trace.revise(self.pick("claim_issued"), retracted=self.draw(True, False)),
            lambda: trace.withdraw(self.pick("claim_challenged")),
            trace.conclude,
            lambda: trace.audit(self.draw("pass", "pass-with-warnings", "fail")),
            self.abort,
        ]
        return self.data.draw(st.sampled_from(sayings))()

    def review(self) -> Event:
        return self.trace.review(self.pick("proposal_created"), self.draw("approved", "conditional", "rejected"))

    def intend(self) -> Event:
        refs = {"retry_of": self.pick("tool_intent_signed")} if self.draw(True, False, False) else {}
        arguments = {"n": self.draw(1, 2)}
        return self.trace.intend(
            self.pick("proposal_created"), risk=self.draw("low", "low", "high"), arguments=arguments, **refs
        )

    def start(self) -> Event:
        refs = {"review": self.pick("intent_reviewed")} if self.draw(True, False, False) else {}
        return self.trace.start(self.pick("tool_intent_signed"), **refs)

    def find_start(self) -> Event | None:
        starts = [event for event in self.trace.events if event.name == "tool_execution_started"]
        return self.draw(*starts) if starts else None

    def complete(self) -> Event:
        start = self.find_start()
        if start is None:
            return self.trace.propose()
        return self.trace.complete(start, self.draw(*OUTPUTS))

    def fail(self) -> Event:
        start = self.find_start()
        if start is None or self.draw(True, False):
            return self.trace.fail(self.pick("tool_intent_signed"), self.draw("REFUSED", "ERROR"))
        return self.trace.fail(start.refs["intent"], self.draw("ERROR", "OUTCOME_UNKNOWN"), start.id, OUTPUTS[2])

    def record(self) -> Event:
        payload = {"name": "log", "blob": Blob(b"log").reference}
        return self.trace.say(self.draw("agent:executor", "agent:critic"), "artifact_recorded", payload)

    def claim(self) -> Event:
        artifact = self.draw(*OUTPUTS, b"log", b"never", b'{"arguments":{},"tool":"pytest"}')
        return self.trace.claim(self.pick("proposal_created"), artifact, self.draw("success", "failure"))

    def abort(self) -> Event:
        agent = self.draw(OPERATOR, "agent:planner", "agent:planner", "agent:planner")
        return self.trace.say(agent, "session_aborted", {"code": "X", "reason": "enough"})


def check_history(events: list[Event]) -> None:
    """Hold a history to the rules, in the plainest way: every event against all events before it."""
    for index, event in enumerate(events):
        past = events[:index]
        names = [one.name for one in past]
        if event.before != event.after and event.after not in ("aborted", "failed"):
            assert (event.before, event.after) in EDGES, event
        assert not past or past[-1].after == event.before
        assert not past or past[-1].after not in FINAL_STATES
        assert event.agent == OPERATOR or AGENTS[event.agent] in event.form.roles
        if "final_statement_signed" in names:
            assert event.role in ("auditor", OPERATOR)
        check = RULES.get(event.name)
        if check is not None:
            check(event, past)


def one(past: list[Event], event_id: str, *names: str) -> Event:
    found = [event for event in past if event.id == event_id]
    assert len(found) == 1
    assert found[0].name in names
    return found[0]


def is_approved(past: list[Event], proposal: str) -> bool:
    verdicts = [
        each.payload["verdict"]
        for each in past
        if each.refs.get("proposal") == proposal and each.name == "proposal_reviewed"
    ]
    revised = any(each.refs.get("revises") == proposal for each in past)
    return bool(verdicts) and verdicts[-1] != "rejected" and not revised


def check_intent(event: Event, past: list[Event]) -> None:
    one(past, event.refs["proposal"], "proposal_created")
    assert is_approved(past, event.refs["proposal"])
    if "retry_of" in event.refs:
        one(past, event.refs["retry_of"], "tool_intent_signed")
        assert [each.name for each in past if each.refs.get("intent") == event.refs["retry_of"]][-1] == (
            "tool_execution_failed"
        )


def check_start(event: Event, past: list[Event]) -> None:
    intent = one(past, event.refs["intent"], "tool_intent_signed")
    assert is_approved(past, intent.refs["proposal"])
    about = [each for each in past if each.refs.get("intent") == intent.id]
    assert {each.name for each in about} <= {"intent_reviewed"}
    verdicts = [each.payload["verdict"] for each in about]
    assert "blocked" not in verdicts[-1:]
    if intent.payload["risk"]["derived"] == "high":
        assert verdicts[-1] == "approved"


def check_end(event: Event, past: list[Event]) -> None:
    about = [each for each in past if each.refs.get("intent") == event.refs["intent"]]
    starts = [each for each in about if each.name == "tool_execution_started"]
    assert not [each for each in about if each.name in ("tool_execution_completed", "tool_execution_failed")]
    is_refusal = event.payload.get("code") == "REFUSED"
    assert [each.id for each in starts] == ([] if is_refusal else [event.refs["start"]])


def check_claim(event: Event, past: list[Event]) -> None:
    about = event.payload.get("about", "failure")
    if event.name == "claim_revised":
        claim = one(past, event.refs["claim"], "claim_issued")
        assert not [each for each in past if each.refs.get("claim") == claim.id and each.payload.get("retracted")]
        about = claim.payload["about"]
    good = ["tool_execution_completed", "artifact_recorded"]
    good += ["tool_execution_failed"] if about == "failure" else []
    known = {digest for each in past if each.name in good for digest, _ in blob_references(each.payload)}
    assert {item["artifact"] for item in event.payload["evidence"]} <= known


def check_final(event: Event, past: list[Event]) -> None:
    starts = {each.id for each in past if each.name == "tool_execution_started"}
    assert starts == {each.refs["start"] for each in past if "start" in each.refs}
    claims = [each.id for each in past if each.name == "claim_issued"]
    assert claims
    assert [each["id"] for each in event.payload["claims"]] == claims


RULES: dict[str, Callable[[Event, list[Event]], None]] = {
    "tool_intent_signed": check_intent,
    "tool_execution_started": check_start,
    "tool_execution_completed": check_end,
    "tool_execution_failed": check_end,
    "claim_issued": check_claim,
    "claim_revised": check_claim,
    "final_statement_signed": check_final,
}


def snapshot(trace: TraceInMemory) -> tuple[Any, ...]:
    found = trace.fold
    return found.count, found.state, found.head, dict(found.artifacts), found.list_claims(), dict(found.running)


@pytest.mark.more
@given(st.data())
def test_what_the_fold_admits_keeps_the_rules(data: st.DataObject) -> None:
    trace = TraceInMemory(bounds=Bounds(attempts=2, proposals=4))
    trace.begin()
    author = Author(data, trace)
    codes: set[str] = set()
    for _ in range(data.draw(st.integers(5, 40))):
        before = snapshot(trace)
        try:
            author.say_anything()
        except EventRefused as refusal:
            codes.add(refusal.code)
            # An audit is two events: its first may have been admitted.
            if trace.fold.count == before[0]:
                assert snapshot(trace) == before
    assert codes <= {"STATE_VIOLATION", "ROLE_POLICY_VIOLATION", "CLAIM_UNPROVEN", "EVIDENCE_INVALID"}
    check_history(trace.events)
    read = [read_event(record) for record in trace.records]
    again = fold(trace.place, "t1", read, trace.signers[OPERATOR].public)
    assert (again.state, again.head) == (trace.fold.state, trace.fold.head)


@pytest.mark.more
def test_the_sequences_are_long_enough_to_meet_every_event() -> None:
    """Guards the test above: what it never says, it does not test."""
    seen: set[str] = set()

    # The same draws each time, and enough of them: what is met must not depend on luck.
    @settings(derandomize=True, max_examples=100, database=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        trace = TraceInMemory(bounds=Bounds(attempts=2, proposals=4))
        trace.claim(trace.reach_claiming())
        author = Author(data, trace)
        for _ in range(30):
            try:
                author.say_anything()
            except EventRefused:
                continue
        check_history(trace.events)
        seen.update(event.name for event in trace.events)

    run()
    assert len(seen) >= 14
