"""The events as capsules: the table, the schemas, and strict reading."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from aver.capsule.blobs import INLINE_MAX
from aver.capsule.sealed import seal
from aver.errors import BadInput
from aver.protocol.events import FORMS, find_payload_problem, load_schema, read_event, read_schema_bytes
from aver.protocol.records.draft import prepare_payload
from aver.protocol.rules.step import EventRefused
from support.protocol_traces import TraceInMemory, signer_of
from support.source_tree import REPOSITORY

CONTRACT = {
    "session_initialized": ("operator", "workflow", "", ""),
    "participant_joined": ("operator", "system", "", "succeeds"),
    "proposal_created": ("planner", "agent", "", "revises"),
    "proposal_reviewed": ("critic", "agent", "proposal", ""),
    "tool_intent_signed": ("executor", "agent", "proposal", "retry_of"),
    "intent_reviewed": ("critic", "agent", "intent", ""),
    "tool_execution_started": ("executor", "tool", "intent decision", "review"),
    "tool_execution_completed": ("executor", "tool", "intent start", ""),
    "tool_execution_failed": ("executor", "tool", "intent", "start"),
    "artifact_recorded": ("executor", "tool", "", "execution"),
    "claim_issued": ("executor", "agent", "proposal", ""),
    "claim_challenged": ("critic", "agent", "claim", ""),
    "claim_revised": ("executor planner", "agent", "claim", ""),
    "challenge_resolved": ("critic operator", "auth", "challenge", "approval"),
    "final_statement_signed": ("executor", "agent", "", ""),
    "verification_run_started": ("auditor", "system", "", ""),
    "verification_run_completed": ("auditor", "system", "start", ""),
    "session_aborted": ("operator", "kill", "", ""),
    "session_failed": ("operator", "system", "", ""),
}


def test_the_table_is_that_of_the_protocol() -> None:
    found = {
        name: (" ".join(form.roles), form.type, " ".join(form.refs), " ".join(form.optional))
        for name, form in FORMS.items()
    }
    assert found == CONTRACT


# --- schemas


@pytest.mark.parametrize("name", FORMS)
def test_every_event_has_a_schema_in_the_package_and_a_link_to_it(name: str) -> None:
    schema = json.loads(read_schema_bytes(name))
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].endswith(f"/{name}.schema.json")
    link = REPOSITORY / "spec" / "protocol" / f"{name}.schema.json"
    assert link.is_symlink()
    assert link.read_bytes() == read_schema_bytes(name)


def test_there_are_no_other_schemas() -> None:
    assert {path.name for path in (REPOSITORY / "spec" / "protocol").iterdir()} == {
        f"{name}.schema.json" for name in FORMS
    }
    with pytest.raises(BadInput):
        load_schema("proposal_eaten")


def whole_trace() -> TraceInMemory:
    trace = TraceInMemory()
    proposal = trace.reach_claiming()
    claim = trace.claim(proposal)
    trace.withdraw(trace.challenge(claim.id).id)
    trace.revise(claim.id)
    failed = trace.intend(proposal, arguments={"n": 2})
    trace.review_intent(failed.id)
    trace.fail(failed.id, "REFUSED")
    trace.conclude()
    trace.audit()
    return trace


TRACE = whole_trace()


@pytest.mark.parametrize("event", TRACE.events, ids=lambda event: f"{event.sequence}-{event.name}")
def test_a_payload_is_held_to_its_schema(event: Any) -> None:
    assert find_payload_problem(event.name, event.payload) == ""
    assert find_payload_problem(event.name, {**event.payload, "more": 1})
    assert find_payload_problem(event.name, {**event.payload, "v": 2})
    for name in event.payload:
        rest = {key: value for key, value in event.payload.items() if key != name}
        assert find_payload_problem(event.name, rest), name
    for value in (None, [], "text", 1, True):
        assert find_payload_problem(event.name, value)


@pytest.mark.parametrize("event", TRACE.events, ids=lambda event: f"{event.sequence}-{event.name}")
def test_no_text_in_a_payload_is_longer_than_what_a_capsule_holds(event: Any) -> None:
    """The schema counts characters; the limit is in bytes, so that an umlaut counts twice."""

    def lengthen(value: Any) -> list[Any]:
        if isinstance(value, dict):
            found = [({**value, key: new}) for key, item in value.items() for new in lengthen(item)]
            return [*found, {**value, "é" * INLINE_MAX: 1}] if found else found
        if isinstance(value, list):
            return [[*value[:at], new, *value[at + 1 :]] for at, item in enumerate(value) for new in lengthen(item)]
        return ["é" * (INLINE_MAX // 2 + 1)] if isinstance(value, str) else []

    for longer in lengthen(dict(event.payload)):
        assert find_payload_problem(event.name, longer)


@pytest.mark.parametrize(
    ("check", "is_good"),
    [
        ({"sha256": "0" * 64}, True),
        ({"sha256": "0" * 63}, False),
        ({"exit_code": ["==", 0]}, True),
        ({"exit_code": ["==", True]}, False),
        ({"exit_code": ["~", 0]}, False),
        ({"exit_code": ["==", 0, 1]}, False),
        ({"json": {"pointer": "/a/0", "is": ["==", "x"]}}, True),
        ({"json": {"pointer": "/a/0", "is": ["==", {}]}}, False),
        ({"tests": {"format": "junit", "counts": {"passed": [">=", 1]}}}, True),
        ({"tests": {"format": "junit", "counts": {}}}, False),
        ({"tests": {"format": "xunit", "counts": {"passed": [">=", 1]}}}, False),
        ({"text": {"contains": "x"}}, True),
        ({"text": {"contains": "x", "lacks": "y"}}, False),
        ({"text": {"lines": ["<", 3]}}, True),
        ({"git": {"revision": "0" * 40, "clean": True}}, True),
        ({"git": {}}, False),
        ({"python": "1 + 1"}, False),
        ({}, False),
    ],
)
def test_predicates_are_a_closed_set(check: Any, is_good: bool) -> None:
    payload = {
        "v": 1,
        "text": "so",
        "confidence": 1,
        "about": "success",
        "evidence": [{"artifact": "0" * 64, "check": check}],
    }
    assert (find_payload_problem("claim_issued", payload) == "") is is_good


RERUN = {"execution": "0" * 8 + "-0000-4000-8000-" + "0" * 12, "same": True, "exit_code": 0, "outputs": {"a": "0" * 64}}


@pytest.mark.parametrize(
    ("rerun", "is_good"),
    [
        (RERUN, True),
        ({**RERUN, "same": False, "exit_code": None, "outputs": {}}, True),
        ({"execution": RERUN["execution"], "skipped": "REFUSED"}, True),
        ({**RERUN, "skipped": "REFUSED"}, False),
        ({"execution": RERUN["execution"], "same": True}, False),
        ({"execution": RERUN["execution"], "skipped": ["REFUSED"]}, False),
        ({"execution": RERUN["execution"], "skipped": "\x1b[2J"}, False),
        ({**RERUN, "outputs": {"a": "short"}}, False),
        ({"same": True, "exit_code": 0, "outputs": {}}, False),
        ({}, False),
    ],
)
def test_a_repeated_call_has_one_result_or_one_reason(rerun: dict[str, Any], is_good: bool) -> None:
    audit = next(event for event in TRACE.events if event.name == "verification_run_completed")
    found = find_payload_problem(audit.name, {**audit.payload, "rerun": [rerun]})
    assert (found == "") is is_good, found


def test_conditions_belong_to_conditional_approvals() -> None:
    payload: dict[str, Any] = {"v": 1, "verdict": "conditional", "rationale": "so", "risk": None, "conditions": []}
    assert find_payload_problem("proposal_reviewed", payload)
    condition = {"check": {"exit_code": ["==", 0]}}
    assert not find_payload_problem("proposal_reviewed", {**payload, "conditions": [condition]})
    assert find_payload_problem("proposal_reviewed", {**payload, "verdict": "approved", "conditions": [condition]})
    assert find_payload_problem("proposal_reviewed", {**payload, "conditions": [{**condition, "artifact": "0" * 64}]})
    assert find_payload_problem("proposal_reviewed", {**payload, "conditions": [condition] * 65})


@pytest.mark.parametrize(
    "payload",
    [
        {"text": "\ud800", "claims": [], "unmet": []},
        {"text": float("nan"), "claims": [], "unmet": []},
        {"text": b"bytes", "claims": [], "unmet": []},
        {"text": {"deep": {}}, "claims": [], "unmet": []},
        {1: "a number as a name"},
    ],
)
def test_hostile_payloads_are_refused_and_do_not_crash(payload: Any) -> None:
    with pytest.raises((EventRefused, BadInput)):
        prepare_payload("final_statement_signed", payload)


def test_a_deep_payload_is_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises((EventRefused, BadInput)):
        prepare_payload("tool_intent_signed", {"arguments": deep})


def test_secrets_are_masked_before_they_are_sealed() -> None:
    said = prepare_payload("session_aborted", {"code": "X", "reason": "curl -H 'Authorization: Bearer abcd1234efgh'"})
    assert "abcd1234efgh" not in said["reason"]


# --- reading


def change_of(path: tuple[str, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        place = content
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value

    return change


BLOCK = ("context", "environment", "protocol")
CHANGES = {
    "kind": change_of(("context", "environment", "aver", "kind"), "protocol.claim_issued"),
    "kind of another room": change_of(("context", "environment", "aver", "kind"), "act.preview"),
    "type": change_of(("type",), "vault"),
    "domain": change_of(("domain",), "agents"),
    "agent of the capsule": change_of(("context", "agent_id"), "agent:mallory"),
    "agent of the block": change_of((*BLOCK, "agent"), "agent:mallory"),
    "session": change_of(("context", "session_id"), "t2"),
    "trace": change_of((*BLOCK, "trace"), "t2"),
    "event": change_of((*BLOCK, "event"), "claim_issued"),
    "role": change_of((*BLOCK, "role"), "king"),
    "state": change_of((*BLOCK, "after"), "happy"),
    "version": change_of((*BLOCK, "v"), 2),
    "more in the block": change_of((*BLOCK, "more"), 1),
    "parent": change_of(("parent_id",), "00000000-0000-4000-8000-000000000000"),
    "status": change_of(("outcome", "status"), "failure"),
    "error": change_of(("outcome", "error"), "NONE"),
    "payload": change_of(("outcome", "result"), None),
    "references": change_of(("context", "environment", "aver", "refs"), {"proposal": "x"}),
    "no references": change_of(("context", "environment", "aver", "refs"), []),
    "statements": change_of(("authority", "chain"), [{"purpose": "protocol-event"}]),
    "statements that are none": change_of(("authority", "chain"), "all"),
    "authority": change_of(("authority", "type"), "human_approved"),
    "approver": change_of(("authority", "approver"), "person:ann"),
    "policy": change_of(("authority", "policy_reference"), "allow-everything"),
    "no context": change_of(("context",), {}),
    "id": change_of(("id",), "NOT-AN-ID"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_reading_an_event_is_strict(name: str) -> None:
    record = TRACE.records[2]
    content = copy.deepcopy(record.to_dict())
    assert content["context"]["environment"]["protocol"]["event"] == "proposal_reviewed"
    assert read_event(seal(content, signer_of("t1:agent:critic"))).name == "proposal_reviewed"
    CHANGES[name](content)
    with pytest.raises(BadInput):
        read_event(seal(content, signer_of("t1:agent:critic")))
