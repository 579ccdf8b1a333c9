"""The fold: which event may come next, and the state after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aver.capsule.blobs import Blob
from aver.keys import SeedSigner
from aver.keys.ring import RingEntry, sign_rotation
from aver.protocol.bounds import Bounds
from aver.protocol.events import FINAL_STATES, FORMS, OPERATOR, ROLES, STATES, Event, read_event
from aver.protocol.statements import SeenHead, SignedReport, digest_json, sign_report
from aver.protocol.trace import ADMITS, EventRefused, fold
from support.protocol_traces import AGENTS, TraceInMemory, signer_of

TWO_CRITICS = {**AGENTS, "agent:second": "critic"}


def refusal_of(say: Callable[[], Any]) -> EventRefused:
    with pytest.raises(EventRefused) as caught:
        say()
    return caught.value


# --- whole traces


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
    again = fold(trace.place, "t1", read, trace.signers[OPERATOR].public)
    assert again.state == trace.fold.state == "failed"
    assert again.head == trace.fold.head


def test_an_event_late_in_a_trace_costs_what_an_early_one_costs() -> None:
    """Counted, not timed: the fold must not walk over its past. The work is the number of function calls."""
    import cProfile

    trace = TraceInMemory()
    proposal = trace.reach_executing()

    def count_calls() -> int:
        profile = cProfile.Profile()
        event = trace.seal(trace.draft("agent:executor", "artifact_recorded", payload))
        profile.enable()
        trace.fold.admit(event)
        profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    payload = {"v": 1, "name": "a", "blob": Blob(b"a").reference}
    first = count_calls()
    for number in range(400):
        end = trace.complete(trace.start(trace.intend(proposal, arguments={"n": number}).id), b"3 passed %d" % number)
        trace.claim(proposal, b"3 passed %d" % number)
        assert end.after == "claiming"
    assert count_calls() <= first * 1.2


# --- states


STEPS: dict[str, Callable[[TraceInMemory], object]] = {
    "planning": lambda trace: trace.begin(),
    "reviewing": lambda trace: (trace.begin(), trace.propose()),
    "executing": lambda trace: trace.reach_executing(),
    "claiming": lambda trace: trace.reach_claiming(),
    "auditing": lambda trace: (trace.claim(trace.reach_claiming()), trace.conclude()),
    "completed": lambda trace: (trace.claim(trace.reach_claiming()), trace.conclude(), trace.audit()),
    "failed": lambda trace: (trace.claim(trace.reach_claiming()), trace.conclude(), trace.audit("fail")),
    "aborted": lambda trace: (trace.begin(), abort(trace)),
    "initialized": lambda trace: None,
}


def abort(trace: TraceInMemory) -> Event:
    return trace.say(OPERATOR, "session_aborted", {"code": "OPERATOR", "reason": "enough"})


def any_event(trace: TraceInMemory, name: str) -> Event:
    """An event of this name whose references lead nowhere: the state is checked before them."""
    role = FORMS[name].roles[0]
    agent = OPERATOR if role == OPERATOR else f"agent:{role}"
    refs = dict.fromkeys(FORMS[name].refs, "00000000-0000-4000-8000-000000000000")
    return trace.draft(agent, name, {"v": 1}, refs)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("state", STATES)
def test_a_state_admits_only_its_events(state: str, name: str) -> None:
    trace = TraceInMemory()
    STEPS[state](trace)
    assert trace.fold.state == state
    if name not in ADMITS[state]:
        error = refusal_of(lambda: trace.fold.next_state(any_event(trace, name)))
        assert error.code == "STATE_VIOLATION"
        assert state in error.message
    assert not (state in FINAL_STATES and ADMITS[state])


def test_any_state_but_the_last_can_be_aborted_and_failed() -> None:
    for state in set(STATES) - FINAL_STATES - {"initialized"}:
        for name, payload, after in (
            ("session_aborted", {"code": "OPERATOR", "reason": "enough"}, "aborted"),
            ("session_failed", {"finding": {"code": "SIG_INVALID", "sequence": 3, "words": "bad"}}, "failed"),
        ):
            trace = TraceInMemory()
            STEPS[state](trace)
            assert trace.say(OPERATOR, name, payload).after == after


def test_a_trace_goes_back_when_no_proposal_can_be_executed() -> None:
    trace = TraceInMemory()
    trace.begin()
    first = trace.propose()
    assert trace.review(first.id, "rejected").after == "planning"
    second = trace.propose(revises=first.id)
    assert second.after == "reviewing"
    assert trace.review(second.id, "conditional").after == "executing"
    third = trace.propose(revises=second.id)
    assert third.after == "reviewing"
    assert trace.review(third.id).after == "executing"
    assert trace.review(third.id, "rejected").after == "planning"


def test_while_a_call_runs_the_trace_stays_executing() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    start = trace.start(trace.intend(proposal).id)
    assert trace.review(proposal, "rejected").after == "executing"
    assert trace.fail(start.refs["intent"], start=start.id).after == "planning"


def test_a_new_intent_leads_back_to_executing_and_its_end_to_claiming() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    intent = trace.intend(proposal, risk="high", arguments={"n": 2})
    assert intent.after == "executing"
    assert trace.review_intent(intent.id, "blocked").after == "claiming"
    other = trace.intend(proposal, arguments={"n": 3})
    assert trace.fail(other.id, "REFUSED").after == "claiming"


def test_two_calls_run_side_by_side() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    first, second = (trace.start(trace.intend(proposal, arguments={"n": n}).id) for n in (1, 2))
    assert trace.complete(first).after == "claiming"
    assert trace.complete(second, b"4 passed").after == "claiming"
    assert trace.fold.running == {}


# --- the role guard


def speakers(trace: TraceInMemory) -> dict[str, str]:
    return {OPERATOR: OPERATOR, **trace.agents}


def collect_legal_events() -> list[tuple[TraceInMemory, Event]]:
    """A moment at which each of the 19 events may be said: the trace just before it, and the event."""
    moments: list[tuple[TraceInMemory, Event]] = []

    def stop_at(name: str, last: bool = False) -> None:
        trace = TraceInMemory()
        found: list[Event] = []

        class Stop(Exception):
            pass

        def admit(event: Event) -> Event:
            if event.name == name:
                found.append(event)
                raise Stop
            return TraceInMemory.admit(trace, event)

        trace.admit = admit  # type: ignore[method-assign]
        try:
            proposal = trace.reach_executing()
            intent = trace.intend(proposal, risk="high")
            review = trace.review_intent(intent.id)
            trace.complete(trace.start(intent.id, review=review.id))
            other = trace.intend(proposal, arguments={"n": 2})
            trace.fail(other.id, "REFUSED")
            payload = {"name": "a", "blob": Blob(b"a").reference}
            trace.say("agent:executor", "artifact_recorded", payload)
            claim = trace.claim(proposal)
            challenge = trace.challenge(claim.id)
            trace.revise(claim.id)
            trace.withdraw(challenge.id)
            trace.signers["agent:new"] = signer_of("new")
            joined = {"v": 1, "participant": trace.participant("agent:new", "auditor")}
            joins = (trace.join("agent:new", "auditor"),)
            trace.admit(trace.draft(OPERATOR, "participant_joined", joined, statements=joins))
            if name == "session_aborted":
                abort(trace)
            if name == "session_failed":
                finding = {"code": "SIG_INVALID", "sequence": 3, "words": "bad"}
                trace.say(OPERATOR, "session_failed", {"finding": finding})
            trace.conclude()
            trace.audit()
        except Stop:
            del trace.admit  # type: ignore[method-assign]
            moments.append((trace, found[0]))

    for name in FORMS:
        stop_at(name)
    return moments


MOMENTS = collect_legal_events()


def test_every_event_has_a_moment() -> None:
    assert [event.name for _, event in MOMENTS] == list(FORMS)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment[1].name)
def test_only_the_roles_of_the_table_may_say_an_event(moment: tuple[TraceInMemory, Event]) -> None:
    trace, event = moment
    allowed = FORMS[event.name].roles
    by_role = {role: agent for agent, role in speakers(trace).items()}
    for role in ROLES:
        speaker = event._replace(role=role, agent=by_role[role], signer=trace.signers[by_role[role]].fingerprint)
        if role not in allowed:
            assert refusal_of(lambda said=speaker: trace.fold.next_state(said)).code == "ROLE_POLICY_VIOLATION"
            # Nor by claiming the right role, or the right name, with the own key.
            if trace.fold.count:
                lying = speaker._replace(role=allowed[0])
                assert refusal_of(lambda said=lying: trace.fold.next_state(said)).code == "ROLE_POLICY_VIOLATION"
                stolen = lying._replace(agent=by_role[allowed[0]])
                assert refusal_of(lambda said=stolen: trace.fold.next_state(said)).code == "ROLE_POLICY_VIOLATION"
    assert trace.fold.next_state(event) in STATES


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment[1].name)
def test_an_event_that_is_refused_changes_nothing(moment: tuple[TraceInMemory, Event]) -> None:
    trace, event = moment
    before = (trace.fold.count, trace.fold.state, dict(trace.fold.artifacts), trace.fold.list_claims())
    sealed = event._replace(before=trace.fold.state, after="completed", sequence=trace.fold.count, hash="0" * 64)
    if trace.fold.next_state(event) != "completed":
        assert refusal_of(lambda: trace.fold.admit(sealed)).code == "STATE_VIOLATION"
    late = sealed._replace(after=trace.fold.next_state(event), sequence=trace.fold.count + 1)
    assert refusal_of(lambda: trace.fold.admit(late)).code == "SEQUENCE_GAP"
    assert (trace.fold.count, trace.fold.state, dict(trace.fold.artifacts), trace.fold.list_claims()) == before


def test_an_event_of_another_trace_or_with_a_known_id_is_a_replay() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    said = trace.draft("agent:planner", "proposal_created", trace.events[1].payload)
    assert refusal_of(lambda: trace.fold.next_state(said._replace(trace="t2"))).code == "REPLAY"
    assert refusal_of(lambda: trace.fold.next_state(said._replace(id=proposal))).code == "REPLAY"


def test_a_statement_that_does_not_belong_to_an_event_is_refused() -> None:
    for trace, event in MOMENTS:
        stray = TraceInMemory("t9").initial.statements[0]
        stray = replace(stray, purpose="delegation")
        strayed = event._replace(statements=(*event.statements, stray))
        error = refusal_of(lambda said=strayed, at=trace: at.fold.next_state(said))
        assert (error.code, error.place) == ("EVIDENCE_INVALID", "authority.chain"), event.name


# --- joining


def begin_with(change: Callable[[TraceInMemory], Event]) -> EventRefused:
    trace = TraceInMemory()
    event = change(trace)
    return refusal_of(lambda: trace.fold.next_state(event))


@pytest.mark.parametrize("role", ["planner", "executor", "critic"])
def test_no_trace_begins_without_planner_executor_and_critic(role: str) -> None:
    agents = {agent: found for agent, found in AGENTS.items() if found != role} | {"agent:more": "auditor"}
    trace = TraceInMemory(agents=agents)
    error = refusal_of(trace.begin)
    assert (error.code, role in error.message) == ("ROLE_POLICY_VIOLATION", True)


def test_a_trace_begins_without_an_auditor_and_does_not_complete() -> None:
    agents = {agent: role for agent, role in AGENTS.items() if role != "auditor"}
    trace = TraceInMemory(agents=agents)
    trace.claim(trace.reach_claiming())
    trace.conclude()
    trace.signers["agent:auditor"] = signer_of("late")
    error = refusal_of(lambda: trace.say("agent:auditor", "verification_run_started", {"profile": "default"}))
    assert error.code == "ROLE_POLICY_VIOLATION"
    joined = {"v": 1, "participant": trace.participant("agent:auditor", "auditor")}
    joins = (trace.join("agent:auditor", "auditor"),)
    trace.admit(trace.draft(OPERATOR, "participant_joined", joined, statements=joins))
    trace.agents["agent:auditor"] = "auditor"
    assert trace.audit().after == "completed"


def test_one_key_has_one_role() -> None:
    trace = TraceInMemory()
    trace.begin()
    trace.signers["agent:double"] = trace.signers["agent:critic"]
    payload = {"v": 1, "participant": trace.participant("agent:double", "auditor")}
    statements = (trace.join("agent:double", "auditor"),)
    event = trace.draft(OPERATOR, "participant_joined", payload, statements=statements)
    assert refusal_of(lambda: trace.fold.next_state(event)).code == "ROLE_POLICY_VIOLATION"


def test_the_operators_key_takes_no_other_role() -> None:
    trace = TraceInMemory()
    trace.signers["agent:critic"] = trace.signers[OPERATOR]
    trace = rebuild(trace)
    assert refusal_of(trace.begin).code == "ROLE_POLICY_VIOLATION"


def rebuild(trace: TraceInMemory) -> TraceInMemory:
    """Make the first event again, after the keys were exchanged."""
    participants = [trace.participant(agent) for agent in trace.agents]
    joins = tuple(trace.join(agent, role) for agent, role in trace.agents.items())
    trace.initial = trace.initial._replace(
        payload={**trace.initial.payload, "participants": participants}, statements=joins
    )
    return trace


def test_a_join_counts_in_its_own_trace_task_and_role_only() -> None:
    other = TraceInMemory("t2")
    assert begin_with(lambda t: t.initial._replace(statements=other.initial.statements)).code == "REPLAY"
    elsewhere = TraceInMemory(ledger="ledger-2")
    assert begin_with(lambda t: t.initial._replace(statements=elsewhere.initial.statements)).code == "REPLAY"
    assert begin_with(lambda t: t.initial._replace(statements=t.initial.statements[::-1])).code != ""
    fewer = begin_with(lambda t: t.initial._replace(statements=t.initial.statements[:-1]))
    assert fewer.code == "ROLE_POLICY_VIOLATION"
    task = {"objective": "something else"}
    assert begin_with(lambda t: t.initial._replace(payload={**t.initial.payload, "task": task})).code != ""


def test_a_join_that_the_joining_key_did_not_sign_does_not_count() -> None:
    trace = TraceInMemory()
    forged = trace.initial.statements[0]
    forged = replace(forged, signatures=trace.initial.statements[1].signatures)
    event = trace.initial._replace(statements=(forged, *trace.initial.statements[1:]))
    assert refusal_of(lambda: trace.fold.next_state(event)).code == "SIG_INVALID"


def test_a_new_critic_must_approve_too() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    trace.signers["agent:second"] = signer_of("second")
    payload = {"v": 1, "participant": trace.participant("agent:second", "critic")}
    statements = (trace.join("agent:second", "critic"),)
    joined = trace.admit(trace.draft(OPERATOR, "participant_joined", payload, statements=statements))
    trace.agents["agent:second"] = "critic"
    assert joined.after == "reviewing"
    assert trace.review(proposal, by="agent:second").after == "executing"


# --- rotated keys


def rotate(old: SeedSigner, new: SeedSigner, identity: str) -> Any:
    entries = [
        RingEntry(identity, "seal", epoch, signer.public, "2026-01-05T09:00:00+00:00")
        for epoch, signer in enumerate((old, new))
    ]
    return sign_rotation(entries[0], entries[1], old, new)


def join_anew(trace: TraceInMemory, agent: str, role: str, statements: tuple[Any, ...], succeeds: str) -> Event:
    payload = {"v": 1, "participant": trace.participant(agent, role)}
    join = trace.join(agent, role)
    return trace.draft(OPERATOR, "participant_joined", payload, {"succeeds": succeeds}, statements=(join, *statements))


def test_a_rotated_key_joins_anew_by_its_rotation_statement() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    old, new = trace.signers["agent:executor"], signer_of("executor, later")
    trace.signers["agent:executor"] = new
    assert refusal_of(lambda: trace.intend(proposal)).code == "ROLE_POLICY_VIOLATION"
    first = trace.events[0].id
    without = join_anew(trace, "agent:executor", "executor", (), first)
    assert refusal_of(lambda: trace.fold.next_state(without)).code == "ROLE_POLICY_VIOLATION"
    stranger = rotate(signer_of("stranger"), new, "agent:executor")
    wrong = join_anew(trace, "agent:executor", "executor", (stranger,), first)
    assert refusal_of(lambda: trace.fold.next_state(wrong)).code == "SIG_INVALID"
    other_role = join_anew(trace, "agent:executor", "critic", (rotate(old, new, "agent:executor"),), first)
    assert refusal_of(lambda: trace.fold.next_state(other_role)).code == "ROLE_POLICY_VIOLATION"
    trace.admit(join_anew(trace, "agent:executor", "executor", (rotate(old, new, "agent:executor"),), first))
    trace.intend(proposal)
    trace.signers["agent:executor"] = old
    assert refusal_of(lambda: trace.intend(proposal, arguments={"n": 2})).code == "KEY_RETIRED"


def test_two_rotations_in_between_are_followed() -> None:
    trace = TraceInMemory()
    trace.begin()
    old, middle, new = trace.signers["agent:planner"], signer_of("middle"), signer_of("new")
    trace.signers["agent:planner"] = new
    steps = (rotate(old, middle, "agent:planner"), rotate(middle, new, "agent:planner"))
    first = trace.events[0].id
    turned = join_anew(trace, "agent:planner", "planner", steps[::-1], first)
    assert refusal_of(lambda: trace.fold.next_state(turned)).code == "SIG_INVALID"
    trace.admit(join_anew(trace, "agent:planner", "planner", steps, first))
    trace.propose()


def test_the_successor_of_the_operator_seals_its_own_join() -> None:
    trace = TraceInMemory()
    trace.begin()
    old, new = trace.signers[OPERATOR], signer_of("operator, later")
    trace.signers[OPERATOR] = new
    assert refusal_of(lambda: abort(trace)).code == "ROLE_POLICY_VIOLATION"
    first = trace.events[0].id
    trace.admit(join_anew(trace, OPERATOR, OPERATOR, (rotate(old, new, "ledger"),), first))
    assert abort(trace).after == "aborted"


def test_nobody_becomes_operator_without_a_rotation() -> None:
    trace = TraceInMemory()
    trace.begin()
    first = trace.events[0].id
    trace.signers[OPERATOR] = signer_of("usurper")
    event = join_anew(trace, OPERATOR, OPERATOR, (), first)
    event = event._replace(signer=trace.signers[OPERATOR].fingerprint)
    assert refusal_of(lambda: trace.fold.next_state(event)).code == "ROLE_POLICY_VIOLATION"


# --- proposals


def test_one_rejection_outweighs_and_every_critic_must_approve() -> None:
    trace = TraceInMemory(agents=TWO_CRITICS)
    trace.begin()
    proposal = trace.propose().id
    trace.propose("another way")
    assert trace.review(proposal).after == "reviewing"
    assert trace.review(proposal, "rejected", by="agent:second").after == "reviewing"
    assert trace.fold.proposals[proposal].standing(trace.fold.critics) == "rejected"
    assert trace.review(proposal, "conditional", by="agent:second").after == "executing"
    assert trace.fold.proposals[proposal].standing(trace.fold.critics) == "conditional"
    assert refusal_of(lambda: trace.review(proposal, by="agent:planner")).code == "ROLE_POLICY_VIOLATION"


def test_what_is_rejected_or_revised_is_not_executed() -> None:
    trace = TraceInMemory()
    trace.begin()
    good, bad = trace.propose().id, trace.propose().id
    trace.review(good)
    trace.review(bad, "rejected")
    assert refusal_of(lambda: trace.intend(bad)).place == "proposal"
    intent = trace.intend(good)
    trace.propose(revises=good)
    assert refusal_of(lambda: trace.start(intent.id)).code == "STATE_VIOLATION"
    assert refusal_of(lambda: trace.propose(revises=good)).place == "revises"
    assert refusal_of(lambda: trace.review(good)).place == "proposal"


def test_a_trace_has_as_many_proposals_as_its_bounds_allow() -> None:
    trace = TraceInMemory(bounds=Bounds(proposals=2))
    trace.begin()
    trace.propose()
    trace.propose()
    assert refusal_of(trace.propose).code == "STATE_VIOLATION"


# --- intents and executions


def test_from_high_on_every_critic_approves_the_very_intent() -> None:
    trace = TraceInMemory(agents=TWO_CRITICS)
    trace.begin()
    proposal = trace.propose().id
    trace.review(proposal)
    trace.review(proposal, by="agent:second")
    intent = trace.intend(proposal, risk="high").id
    assert refusal_of(lambda: trace.start(intent)).place == "review"
    first = trace.review_intent(intent).id
    assert refusal_of(lambda: trace.start(intent, review=first)).place == "review"
    trace.review_intent(intent, "blocked", by="agent:second")
    assert refusal_of(lambda: trace.start(intent, review=first)).code == "ROLE_POLICY_VIOLATION"
    second = trace.review_intent(intent, by="agent:second").id
    assert refusal_of(lambda: trace.start(intent)).place == "review"
    other = trace.review_intent(trace.intend(proposal, arguments={"n": 2}).id).id
    assert refusal_of(lambda: trace.start(intent, review=other)).place == "review"
    trace.start(intent, review=second)
    assert refusal_of(lambda: trace.review_intent(intent, "blocked")).code == "STATE_VIOLATION"


@pytest.mark.parametrize(("review_from", "risk"), [("low", "low"), ("medium", "medium"), ("critical", "critical")])
def test_the_threshold_of_reviews_is_that_of_the_bounds(review_from: str, risk: str) -> None:
    trace = TraceInMemory(bounds=Bounds(review_from=review_from))
    proposal = trace.reach_executing()
    intent = trace.intend(proposal, risk=risk).id
    assert refusal_of(lambda: trace.start(intent)).place == "review"


def test_declaring_only_raises_the_risk() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    low = trace.intend(proposal, risk="high")
    payload = {**low.payload, "risk": {"declared": "low", "derived": "high"}, "arguments": {}}
    event = trace.draft("agent:executor", "tool_intent_signed", payload, {"proposal": proposal})
    trace.admit(event)
    assert trace.fold.intents[event.id].risk == "high"
    raised = {**payload, "risk": {"declared": "critical", "derived": "low"}}
    event = trace.draft("agent:executor", "tool_intent_signed", raised, {"proposal": proposal})
    trace.admit(event)
    assert trace.fold.intents[event.id].risk == "critical"


def test_an_intent_names_the_digest_of_its_own_input_and_a_risky_one_is_not_repeatable() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    payload = dict(trace.intend(proposal).payload)
    for change in ({"arguments": {"n": 2}}, {"tool": "rm"}, {"input_sha256": "0" * 64}):
        event = trace.draft("agent:executor", "tool_intent_signed", {**payload, **change}, {"proposal": proposal})
        assert refusal_of(lambda said=event: trace.fold.next_state(said)).place == "input_sha256"
    risky = {**payload, "repeatable": True, "risk": {"declared": None, "derived": "high"}}
    event = trace.draft("agent:executor", "tool_intent_signed", risky, {"proposal": proposal})
    assert refusal_of(lambda: trace.fold.next_state(event)).place == "repeatable"


def test_a_call_is_of_a_tool_that_its_proposal_names() -> None:
    trace = TraceInMemory()
    trace.begin()
    payload = {"objective": "run", "assumptions": [], "required_tools": ["make", "pytest"], "expected_evidence": []}
    proposal = trace.say("agent:planner", "proposal_created", payload)
    trace.review(proposal.id)
    trace.intend(proposal.id)
    other = {"tool": "rm", "arguments": {}}
    intent = {**trace.events[-1].payload, **other, "input_sha256": digest_json(other)}
    draft = trace.draft("agent:executor", "tool_intent_signed", intent, {"proposal": proposal.id})
    error = refusal_of(lambda: trace.fold.next_state(draft))
    assert (error.code, error.place) == ("ROLE_POLICY_VIOLATION", "tool")
    assert "make, pytest" in error.message


def test_an_execution_follows_its_intent_once_and_ends_once() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_executing()
    unknown = "00000000-0000-4000-8000-000000000000"
    assert refusal_of(lambda: trace.start(unknown)).place == "intent"
    assert refusal_of(lambda: trace.start(proposal)).place == "intent"
    intent = trace.intend(proposal).id
    assert refusal_of(lambda: trace.fail(intent, "ERROR")).place == "code"
    start = trace.start(intent)
    assert refusal_of(lambda: trace.start(intent)).place == "intent"
    assert refusal_of(lambda: trace.fail(intent, "REFUSED")).code == "STATE_VIOLATION"
    assert refusal_of(lambda: trace.fail(intent, "REFUSED", start.id)).place == "code"
    trace.complete(start)
    assert refusal_of(lambda: trace.complete(start)).place == "start"
    assert refusal_of(lambda: trace.fail(intent, "ERROR", start.id)).place == "start"


def test_a_refused_call_has_no_start_and_counts_as_an_attempt() -> None:
    trace = TraceInMemory(bounds=Bounds(attempts=2))
    proposal = trace.reach_executing()
    first = trace.intend(proposal).id
    assert trace.fail(first, "REFUSED").after == "executing"
    assert refusal_of(lambda: trace.intend(proposal)).place == "retry_of"
    second = trace.intend(proposal, retry_of=first).id
    assert trace.fold.intents[second].attempt == 2
    assert trace.fail(second, "REFUSED").after == "claiming"
    assert refusal_of(lambda: trace.intend(proposal, retry_of=second)).place == "retry_of"
    # A fallback proposal, or a claim of failure.
    fallback = trace.propose("another way").id
    trace.review(fallback)
    trace.intend(fallback)


def test_only_a_failed_call_of_the_same_proposal_is_tried_again() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    done = next(iter(trace.fold.intents))
    assert refusal_of(lambda: trace.intend(proposal, arguments={"n": 2}, retry_of=done)).place == "retry_of"
    failed = trace.intend(proposal, arguments={"n": 2}).id
    trace.fail(failed, "REFUSED")
    other = trace.propose("another way").id
    trace.review(other)
    assert refusal_of(lambda: trace.intend(other, arguments={"n": 2}, retry_of=failed)).place == "retry_of"


def test_a_task_may_limit_the_calls() -> None:
    trace = TraceInMemory(bounds=Bounds(tool_calls=1))
    proposal = trace.reach_claiming()
    intent = trace.intend(proposal, arguments={"n": 2}).id
    assert "allows 1 calls" in refusal_of(lambda: trace.start(intent)).message


def test_another_executor_can_only_give_a_call_up() -> None:
    trace = TraceInMemory(agents={**AGENTS, "agent:other": "executor"})
    proposal = trace.reach_executing()
    start = trace.start(trace.intend(proposal).id)
    refs = {"intent": start.refs["intent"], "start": start.id}
    done = {"exit_code": 0, "output": {}, "cut": []}
    assert refusal_of(lambda: trace.say("agent:other", "tool_execution_completed", done, **refs)).place == "start"
    failed = {"code": "ERROR", "words": "no", "output": {}}
    assert refusal_of(lambda: trace.say("agent:other", "tool_execution_failed", failed, **refs)).place == "start"
    lost = {"code": "OUTCOME_UNKNOWN", "words": "gone", "output": {}}
    trace.say("agent:other", "tool_execution_failed", lost, **refs)
    assert refusal_of(lambda: trace.complete(start)).place == "start"


# --- claims


def claim_on(trace: TraceInMemory, proposal: str, evidence: list[Any], about: str = "success") -> Event:
    payload = {"text": "it holds", "confidence": 0.5, "about": about, "evidence": evidence}
    return trace.say("agent:executor", "claim_issued", payload, proposal=proposal)


def test_a_claim_needs_evidence_of_its_own_trace() -> None:
    trace, other = TraceInMemory(), TraceInMemory("t2")
    proposal = trace.reach_claiming()
    start = next(iter(trace.fold.executions))
    other.reach_claiming()
    foreign, unknown = Blob(b"elsewhere").digest, "0" * 64
    tool_input = Blob(b'{"arguments":{},"tool":"pytest"}').digest
    for digest in (foreign, unknown, tool_input):
        error = refusal_of(lambda found=digest: claim_on(trace, proposal, [{"artifact": found}]))
        assert (error.code, error.place) == ("CLAIM_UNPROVEN", "evidence[0].artifact")
    only_execution = [{"execution": start, "check": {"exit_code": ["==", 0]}}]
    assert refusal_of(lambda: claim_on(trace, proposal, only_execution)).place == "evidence"
    own = Blob(b"3 passed").digest
    claim_on(trace, proposal, [{"artifact": own, "execution": start}])


def test_the_least_number_of_artifacts_is_that_of_the_bounds() -> None:
    trace = TraceInMemory(bounds=Bounds(evidence_min=2))
    proposal = trace.reach_claiming()
    own = {"artifact": Blob(b"3 passed").digest}
    assert refusal_of(lambda: claim_on(trace, proposal, [own, own])).code == "CLAIM_UNPROVEN"
    trace.say("agent:executor", "artifact_recorded", {"name": "log", "blob": Blob(b"log").reference})
    claim_on(trace, proposal, [own, {"artifact": Blob(b"log").digest}])


def test_output_of_a_failed_call_proves_failures_only() -> None:
    trace = TraceInMemory(bounds=Bounds(attempts=1))
    proposal = trace.reach_executing()
    start = trace.start(trace.intend(proposal).id)
    trace.fail(start.refs["intent"], "TIMEOUT", start.id, b"half of it")
    evidence = [{"artifact": Blob(b"half of it").digest}]
    assert refusal_of(lambda: claim_on(trace, proposal, evidence)).code == "CLAIM_UNPROVEN"
    executed = [{"execution": start.id, **evidence[0]}]
    assert refusal_of(lambda: claim_on(trace, proposal, executed)).code == "CLAIM_UNPROVEN"
    claim_on(trace, proposal, executed, "failure")
    trace.conclude()
    assert trace.audit().after == "completed"


def test_an_execution_ends_before_a_claim_uses_it() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    start = trace.start(trace.intend(proposal, arguments={"n": 2}).id)
    done = next(iter(trace.fold.executions))
    trace.complete(trace.start(trace.intend(proposal, arguments={"n": 3}).id), b"other")
    own = Blob(b"3 passed").digest
    running = [{"artifact": own}, {"execution": start.id, "check": {"exit_code": ["==", 0]}}]
    assert refusal_of(lambda: claim_on(trace, proposal, running)).code == "STATE_VIOLATION"
    wrong = [{"artifact": Blob(b"other").digest, "execution": done}]
    assert refusal_of(lambda: claim_on(trace, proposal, wrong)).code == "CLAIM_UNPROVEN"
    unrelated = trace.propose("nothing was done for it").id
    assert refusal_of(lambda: claim_on(trace, unrelated, [{"artifact": own}])).place == "proposal"


def test_disputes_end_by_withdrawal_retraction_or_stay_open() -> None:
    trace = TraceInMemory(agents=TWO_CRITICS)
    trace.begin()
    proposal = trace.propose().id
    trace.review(proposal)
    trace.review(proposal, by="agent:second")
    trace.complete(trace.start(trace.intend(proposal).id))
    claim = trace.claim(proposal).id
    standing = trace.fold.claims[claim]
    first, second = trace.challenge(claim).id, trace.challenge(claim, by="agent:second").id
    assert refusal_of(lambda: trace.withdraw(second)).code == "ROLE_POLICY_VIOLATION"
    trace.withdraw(first)
    assert standing.standing == "disputed"
    assert refusal_of(lambda: trace.withdraw(first)).code == "STATE_VIOLATION"
    trace.revise(claim)
    assert (standing.standing, standing.confidence) == ("disputed", 0.5)
    trace.revise(claim, retracted=True)
    assert (standing.standing, trace.fold.disputes) == ("retracted", 0)
    assert trace.fold.challenges[second].standing == "moot"
    for again in (lambda: trace.revise(claim), lambda: trace.challenge(claim)):
        assert refusal_of(again).code == "STATE_VIOLATION"
    assert trace.fold.list_claims() == [{"id": claim, "standing": "retracted"}]


def test_a_critic_cannot_rule_and_nobody_rules_without_a_person() -> None:
    trace = TraceInMemory()
    claim = trace.claim(trace.reach_claiming()).id
    challenge = trace.challenge(claim).id
    for outcome in ("dismissed", "upheld"):
        payload = {"outcome": outcome, "rationale": "so it is"}
        for agent in ("agent:critic", OPERATOR):
            error = refusal_of(
                lambda said=payload, by=agent: trace.say(by, "challenge_resolved", said, challenge=challenge)
            )
            assert error.code == "ROLE_POLICY_VIOLATION"


# --- the end


def test_the_final_statement_waits_for_calls_and_claims_and_lists_every_claim() -> None:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    assert refusal_of(trace.conclude).code == "STATE_VIOLATION"
    claim = trace.claim(proposal)
    start = trace.start(trace.intend(proposal, arguments={"n": 2}).id)
    trace.complete(trace.start(trace.intend(proposal, arguments={"n": 3}).id))
    assert "have not ended" in refusal_of(trace.conclude).message
    trace.complete(start)
    payload = {"text": "done", "claims": [{"id": claim.id, "standing": "settled"}], "unmet": []}
    error = refusal_of(lambda: trace.say("agent:executor", "final_statement_signed", payload))
    assert "present standing" in error.message
    trace.conclude()


@pytest.mark.parametrize(("profile", "may_end"), [("strict", False), ("default", True), ("lenient", True)])
def test_an_open_dispute_keeps_a_strict_trace_from_its_end(profile: str, may_end: bool) -> None:
    trace = TraceInMemory(profile=profile)
    trace.challenge(trace.claim(trace.reach_claiming()).id)
    if may_end:
        assert trace.conclude().after == "auditing"
    else:
        assert refusal_of(trace.conclude).code == "CLAIM_DISPUTED"


def test_the_audit_names_a_head_from_its_start_on_and_is_signed_by_its_auditor() -> None:
    trace = TraceInMemory(agents={**AGENTS, "agent:other": "auditor"})
    trace.claim(trace.reach_claiming())
    trace.conclude()
    start = trace.say("agent:auditor", "verification_run_started", {"profile": "default"})
    report = Blob(b"{}", "application/json")

    def complete(
        head: SeenHead, *, signer: str = "agent:auditor", status: str = "pass", by: str = "agent:auditor"
    ) -> str:
        said = SignedReport(trace.place, head, "default", "pass", report.digest)
        payload = {
            "v": 1,
            "status": status,
            "report": report.reference,
            "head": head.to_dict(),
            "keys": {"known": [], "unknown": []},
        }
        statements = (sign_report(trace.signers[signer], said),)
        event = trace.draft(by, "verification_run_completed", payload, {"start": start.id}, statements=statements)
        return refusal_of(lambda: trace.fold.next_state(event)).code

    head = SeenHead(start.sequence + 1, start.hash)
    assert complete(SeenHead(start.sequence, trace.events[-2].hash)) == "EVIDENCE_INVALID"
    assert complete(SeenHead(start.sequence + 1, "0" * 64)) == "EVIDENCE_INVALID"
    assert complete(SeenHead(start.sequence + 2, start.hash)) == "EVIDENCE_INVALID"
    assert complete(head, signer="agent:other") == "SIG_INVALID"
    assert complete(head, status="fail") == "EVIDENCE_INVALID"
    assert complete(head, by="agent:other") == "STATE_VIOLATION"
    assert trace.audit().after == "completed"


def test_nothing_follows_the_end() -> None:
    trace = TraceInMemory()
    trace.begin()
    abort(trace)
    assert refusal_of(trace.propose).code == "STATE_VIOLATION"
    assert trace.fold.status == "aborted"
