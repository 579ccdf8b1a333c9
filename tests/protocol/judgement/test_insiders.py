"""Insiders who bend the rules by their own keys: bounds, halves of signatures, cut outputs, reruns, inputs."""

from __future__ import annotations

from typing import Any

import pytest

from aver import clock
from aver.capsule.blobs import Blob
from aver.keys import SeedSigner
from aver.keys.public_key import PublicKey
from aver.protocol.bounds import Bounds
from aver.protocol.events import Event
from aver.protocol.judgement.audit import report_trace
from aver.protocol.rules.step import EventRefused
from aver.protocol.statements import Join, SeenHead, SignedReport, digest_json, sign_join, sign_report
from support.protocol_traces import TraceInMemory
from support.stored_traces import StoredTrace
from support.tamper import first_bad, unguarded

CHAIN = "protocol.t1"
CRITIC = "agent:critic"


# --- the operator seals the bounds, and everybody has signed the task


def give_task(trace: TraceInMemory, task: dict[str, Any], bounds: Bounds) -> None:
    """Have everybody join for another task, and the operator seal bounds of its own choice."""
    joins = []
    for agent, role in trace.agents.items():
        signer = trace.signers[agent]
        key, at = signer.public, "2026-01-05T09:00:00+00:00"
        joins.append(sign_join(signer, Join(trace.place, digest_json(task), "default", role, agent, key, at)))
    payload = {**trace.initial.payload, "task": task, "task_sha256": digest_json(task), "bounds": bounds.to_dict()}
    trace.initial = trace.initial._replace(payload=payload, statements=tuple(joins))


LOOSENED = [
    ({"bounds": {"review_from": "low"}}, Bounds(review_from="critical"), "review_from"),
    ({"bounds": {"evidence_min": 2}}, Bounds(), "evidence_min"),
    ({"bounds": {"attempts": 1}}, Bounds(), "attempts"),
    ({"max_tool_calls": 1}, Bounds(), "tool_calls"),
    ({"max_tool_calls": 3, "bounds": {"tool_calls": 2}}, Bounds(tool_calls=3), "tool_calls"),
    ({"time_budget_seconds": 5}, Bounds(time_budget=6), "time_budget"),
]


@pytest.mark.parametrize(("more", "bounds", "name"), LOOSENED)
def test_the_operator_cannot_loosen_the_bounds_of_the_task(more: dict[str, Any], bounds: Bounds, name: str) -> None:
    trace = TraceInMemory()
    give_task(trace, {"objective": "count", **more}, bounds)
    with pytest.raises(EventRefused) as caught:
        trace.begin()
    assert (caught.value.code, caught.value.place) == ("EVIDENCE_INVALID", "bounds")
    assert name in caught.value.message


def test_loosened_bounds_are_found_in_a_ledger(trace: StoredTrace) -> None:
    give_task(trace, {"objective": "count", "max_tool_calls": 1}, Bounds())
    trace.seal(trace.initial, after="planning")
    assert first_bad(trace.verify()) == ("EVIDENCE_INVALID", CHAIN, 0)


def test_bounds_that_are_tighter_than_the_task_are_no_lie() -> None:
    trace = TraceInMemory()
    give_task(trace, {"objective": "count", "max_tool_calls": 9}, Bounds(tool_calls=2, review_from="low"))
    assert trace.begin().sequence == 0


# --- half of a signature


def bring_hybrid_critic(trace: StoredTrace) -> SeedSigner:
    """Give the critic a key with two halves, in a home of its own."""
    signer = SeedSigner.generate(pq=True)
    trace.signers[CRITIC], trace.elsewhere = signer, (CRITIC,)
    payload = {**trace.initial.payload, "participants": [trace.participant(agent) for agent in trace.agents]}
    joins = tuple(trace.join(agent, role) for agent, role in trace.agents.items())
    trace.initial = trace.initial._replace(payload=payload, statements=joins)
    return signer


@pytest.mark.sample(4)
@pytest.mark.parametrize("known", ["nothing", "half", "whole"])
@pytest.mark.parametrize("left", ["", "00" * 3309])
def test_no_half_of_a_signature_can_be_taken_away(trace: StoredTrace, known: str, left: str) -> None:
    """The join has both halves of the key, so it does not matter which of them the verifier was given."""
    critic = bring_hybrid_critic(trace)
    if known != "nothing":
        key = critic.public if known == "whole" else PublicKey(critic.public.ed25519, "")
        trace.ledger.keys.trust(key)
    trace.finish()
    assert trace.verify().status == ("verified" if known == "whole" else "qualified")
    attacker = unguarded(trace.ledger)
    attacker.execute("UPDATE records SET signature_pq = ? WHERE signed_by = ?", (left, critic.fingerprint))
    attacker.close()
    for verdict in (trace.verify(), trace.verify_ledger()):
        assert verdict.status == "failed", verdict.findings


# --- an output of which only the beginning was kept


CUT_CHECKS = [
    {"text": {"lacks": "Traceback"}},
    {"text": {"lines": ["<=", 10]}},
    {"json": {"pointer": "/0", "is": ["==", 3]}},
    {"tests": {"format": "tap", "counts": {"failed": ["==", 0]}}},
]


def complete_with(trace: StoredTrace, proposal: str, output: bytes, cut: list[str]) -> Event:
    start = trace.start(trace.intend(proposal).id)
    blob = trace.data[trace.keep(output, "text/plain")]
    payload = {"exit_code": 0, "output": {"stdout": blob.reference}, "cut": cut}
    refs = {"intent": start.refs["intent"], "start": start.id}
    return trace.say("agent:executor", "tool_execution_completed", payload, **refs)


def claim_check(trace: StoredTrace, proposal: str, output: bytes, check: dict[str, Any]) -> Event:
    evidence = [{"artifact": Blob(output).digest, "check": check}]
    payload = {"text": "no error", "confidence": 1, "about": "success", "evidence": evidence}
    return trace.say("agent:executor", "claim_issued", payload, proposal=proposal)


@pytest.mark.more
@pytest.mark.sample(4)
@pytest.mark.parametrize("check", CUT_CHECKS, ids=str)
@pytest.mark.parametrize("cut", [[], ["stdout"]], ids=["whole", "cut"])
def test_a_cut_output_does_not_show_what_was_cut_off(trace: StoredTrace, check: dict[str, Any], cut: list[str]) -> None:
    output = b"[3]" if "json" in check else b"1..1\nok 1\n"
    proposal = trace.reach_executing()
    complete_with(trace, proposal, output, cut)
    claim = claim_check(trace, proposal, output, check)
    trace.conclude()
    trace.audit()
    if cut:
        assert first_bad(trace.verify()) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)
    else:
        assert trace.verify().status == "verified"


def test_a_cut_output_shows_what_it_contains(trace: StoredTrace) -> None:
    proposal = trace.reach_executing()
    complete_with(trace, proposal, b"3 passed", ["stdout"])
    claim_check(trace, proposal, b"3 passed", {"text": {"contains": "3 passed"}})
    trace.conclude()
    trace.audit()
    assert trace.verify().status == "verified"


def test_a_cut_output_does_not_meet_a_condition(trace: StoredTrace) -> None:
    proposal = trace.reach_executing()
    payload = {"verdict": "conditional", "rationale": "if", "risk": None, "conditions": [{"check": CUT_CHECKS[0]}]}
    trace.say(CRITIC, "proposal_reviewed", payload, proposal=proposal)
    complete_with(trace, proposal, b"3 passed", ["stdout"])
    claim_check(trace, proposal, b"3 passed", {"text": {"contains": "3 passed"}})
    trace.conclude()
    trace.audit()
    assert trace.verify().status == "qualified"


# --- reruns


def end_audit(trace: StoredTrace, rerun: list[dict[str, Any]]) -> Event:
    """Have the auditor say what came of reruns. The event is not sealed yet."""
    start = trace.say("agent:auditor", "verification_run_started", {"profile": trace.fold.profile})
    report = report_trace(trace.ledger, trace.fold.trace).report
    blob = trace.data[trace.keep(report.data, "application/json")]
    head = SeenHead(start.sequence + 1, start.hash)
    said = SignedReport(trace.place, head, trace.fold.profile, report.status, blob.digest)
    payload = {
        "v": 1,
        "status": report.status,
        "report": blob.reference,
        "head": head.to_dict(),
        "keys": {"known": sorted(trace.fold.bound_keys), "unknown": []},
        "rerun": rerun,
    }
    statement = sign_report(trace.signers["agent:auditor"], said)
    return trace.draft(
        "agent:auditor", "verification_run_completed", payload, {"start": start.id}, statements=(statement,)
    )


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_rerun_is_of_a_call_that_could_be_repeated(trace: StoredTrace, is_repeatable: bool) -> None:
    proposal = trace.reach_executing()
    call: dict[str, Any] = {"tool": "pytest", "arguments": {}}
    risk = {"declared": None, "derived": "low"}
    intent = {
        **call,
        "input_sha256": digest_json(call),
        "risk": risk,
        "justification": "x",
        "repeatable": is_repeatable,
    }
    said = trace.say("agent:executor", "tool_intent_signed", intent, proposal=proposal)
    start = trace.start(said.id)
    trace.complete(start)
    trace.claim(proposal)
    trace.conclude()
    good = {"execution": start.id, "same": True, "exit_code": 0, "outputs": {}}
    lies: list[list[Any]] = [
        [good, good],
        [{**good, "execution": clock.new_id()}],
        [{**good, "exit_code": 1}],
        [{**good, "same": 1}],
        [{**good, "outputs": {"stdout": "x"}}],
        [{"execution": start.id, "skipped": "BORED"}],
        [{}],
    ]
    for rerun in lies if is_repeatable else [[good]]:
        with pytest.raises(EventRefused) as caught:
            trace.fold.next_state(end_audit(trace, rerun))
        assert caught.value.code in ("EVIDENCE_INVALID", "SCHEMA_INVALID")
    if is_repeatable:
        for rerun in ([good], [{"execution": start.id, "skipped": "NO_TOOL"}]):
            assert trace.fold.next_state(end_audit(trace, rerun)) == "completed"
        return
    lie = trace.seal(end_audit(trace, [good]), after="completed")
    assert first_bad(trace.verify()) == ("EVIDENCE_INVALID", CHAIN, lie.sequence)


# --- inputs


def record(trace: StoredTrace, data: bytes) -> None:
    blob = trace.data[trace.keep(data, "text/plain")]
    trace.say("agent:executor", "artifact_recorded", {"name": "copy", "blob": blob.reference})


def force_claim(trace: StoredTrace, proposal: str, data: bytes) -> Event:
    payload = {"text": "x", "confidence": 1, "about": "success", "evidence": [{"artifact": Blob(data).digest}]}
    return trace.force("agent:executor", "claim_issued", payload, proposal=proposal)


def test_a_long_argument_does_not_become_evidence_by_being_recorded(trace: StoredTrace) -> None:
    proposal, text = trace.reach_claiming(), b"3 passed " * 4000
    blob = trace.data[trace.keep(text, "text/plain")]
    trace.complete(trace.start(trace.intend(proposal, arguments={"text": blob.reference}).id))
    record(trace, text)
    assert first_bad_claim(trace, proposal, text)


def test_an_input_that_was_recorded_first_is_no_evidence(trace: StoredTrace) -> None:
    proposal = trace.reach_claiming()
    given = b'{"arguments":{"a":"3 passed"},"tool":"pytest"}'
    record(trace, given)
    trace.complete(trace.start(trace.intend(proposal, arguments={"a": "3 passed"}).id))
    assert first_bad_claim(trace, proposal, given)


def first_bad_claim(trace: StoredTrace, proposal: str, data: bytes) -> bool:
    claim = force_claim(trace, proposal, data)
    return first_bad(trace.verify()) == ("CLAIM_UNPROVEN", CHAIN, claim.sequence)


# --- references that are none


def start_without_input(trace: StoredTrace, size: Any) -> Event:
    """Start a call whose input is stored nowhere: its reference has a size that is no whole number."""
    intent = trace.intend(trace.reach_executing(), arguments={"secretly": "something else"})
    reference = trace.find_input(intent.id).reference["blob"]
    payload = {
        "v": 1,
        "input": {"blob": {**reference, "size": size}},
        "workspace": {"revision": None, "change": None},
        "until": "2026-01-05T09:10:00+00:00",
    }
    refs = {"intent": intent.id, "decision": trace.decide(intent.id)}
    draft = trace.draft("agent:executor", "tool_execution_started", payload, refs)
    return trace.seal(draft, after="executing")


@pytest.mark.parametrize("size", [56.0, 1e300])
def test_a_start_whose_input_is_no_reference_is_found(trace: StoredTrace, size: Any) -> None:
    start = start_without_input(trace, size)
    assert first_bad(trace.verify()) == ("SCHEMA_INVALID", CHAIN, start.sequence)


@pytest.mark.parametrize("count", [9.0, 10.0])
def test_a_report_about_a_fraction_of_a_record_is_found(trace: StoredTrace, count: float) -> None:
    trace.claim(trace.reach_claiming())
    trace.conclude()
    event = end_audit(trace, [])
    payload = {**event.payload, "head": {**event.payload["head"], "count": count}}
    lie = trace.seal(event._replace(payload=payload), after="completed")
    assert first_bad(trace.verify()) == ("SCHEMA_INVALID", CHAIN, lie.sequence)
