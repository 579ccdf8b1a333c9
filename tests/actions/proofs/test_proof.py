"""Trace, constraints, statements and proofs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aver import AgentAction, BadInput
from aver.actions.encodings import encode_action, receipt_hash
from aver.actions.proofs import trace
from aver.actions.proofs.proof import (
    ExecutionProof,
    InclusionProof,
    RunStatement,
    build_statement,
    proof_problem,
    prove_inclusion,
)
from aver.actions.proofs.trace import MODULUS, WIDTH, Trace, build_row
from support.runs import A

GATED = replace(A, policy_verdict="POLICY_ENFORCED")


def run_of(count: int) -> list[AgentAction]:
    actions: list[AgentAction] = []
    for number in range(count):
        last = actions[-1] if actions else None
        action = replace(
            GATED,
            action_id=f"act_{number}",
            parent_action_id=None if last is None else last.action_id,
            parent_receipt_hash=None if last is None else receipt_hash(last),
            metadata={"n": number},
        )
        actions.append(action)
    return actions


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_a_run_is_proved_by_itself_and_each_action_by_its_path(count: int) -> None:
    actions = run_of(count)
    statement = build_statement("run", actions)
    assert (statement.num_actions, statement.final_receipt_hash) == (count, receipt_hash(actions[-1]))
    assert proof_problem(statement, ExecutionProof(actions)) is None
    for index in range(count):
        proof = prove_inclusion(actions, index)
        assert proof_problem(statement, proof) is None
        assert len(proof.path) <= max(count - 1, 0).bit_length()


def test_statements_survive_json_and_nothing_else_passes_for_one() -> None:
    statement = build_statement("run", run_of(3))
    assert RunStatement.from_dict(statement.to_dict()) == statement
    good = statement.to_dict()
    for name, value in [
        ("air_id", "agent_air_v1"),
        ("field", "other"),
        ("row_width", 14),
        ("receipt_keys", 13),
        ("receipt_keys", True),
        ("run_id", 7),
        ("num_actions", 0),
        ("num_actions", True),
        ("num_actions", "3"),
        ("final_receipt_hash", "x"),
        ("row_root", "A" * 64),
        ("more", 1),
    ]:
        with pytest.raises(BadInput):
            RunStatement.from_dict({**good, name: value})
    for name in good:
        with pytest.raises(BadInput):
            RunStatement.from_dict({key: value for key, value in good.items() if key != name})
    with pytest.raises(BadInput):
        RunStatement.from_dict([])


def test_a_run_without_actions_states_nothing() -> None:
    with pytest.raises(BadInput):
        build_statement("run", [])


CHANGES = {
    "success": {"success": False},
    "type": {"action_type": "code_gen"},
    "input": {"input_hash": "b" * 64},
    "instruction": {"instruction_hash": "b" * 64},
    "output": {"output_hash": "b" * 64},
    "parent": {"parent_receipt_hash": "b" * 64},
    "gate decision": {"gate_decision": "skip"},
    "score": {"gate_score": 0.2},
    "verdict": {"policy_verdict": None},
    "metadata": {"metadata": {"n": True}},
    "metadata gone": {"metadata": None},
    "id": {"action_id": "act_x"},
    "time": {"timestamp": "2024-01-15T10:30:00+00:00"},
    "duration": {"duration_ms": 46},
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("index", [0, 2, 4])
def test_every_field_is_bound(change: str, index: int) -> None:
    actions = run_of(5)
    statement = build_statement("run", actions)
    proof = prove_inclusion(actions, index)
    changed = replace(actions[index], **CHANGES[change])
    assert proof_problem(statement, InclusionProof(index, changed, proof.path)) is not None
    assert proof_problem(statement, ExecutionProof([*actions[:index], changed, *actions[index + 1 :]])) is not None


def test_cut_swapped_doubled_and_added_actions_are_found() -> None:
    actions = run_of(6)
    statement = build_statement("run", actions)
    for other in (
        actions[:-1],
        actions[1:],
        [*actions, actions[-1]],
        [actions[1], actions[0], *actions[2:]],
        [*actions[:2], *actions[3:]],
        [],
    ):
        assert proof_problem(statement, ExecutionProof(other)) is not None


def test_a_path_proves_its_own_place_only() -> None:
    actions = run_of(6)
    statement = build_statement("run", actions)
    proof = prove_inclusion(actions, 2)
    for index in (-1, 0, 1, 3, 6, 2**40):
        assert proof_problem(statement, replace(proof, index=index)) is not None
    assert proof_problem(statement, replace(proof, path=proof.path[:-1])) is not None
    assert proof_problem(statement, replace(proof, path=(*proof.path, "0" * 64))) is not None
    assert proof_problem(statement, replace(proof, path=("x",))) is not None
    assert proof_problem(statement, replace(proof, path=("0" * 64,) * 100)) is not None
    assert proof_problem(statement, replace(proof, path=(7,))) is not None  # type: ignore[arg-type]
    assert proof_problem(replace(statement, row_root="0" * 64), proof) is not None
    assert proof_problem(replace(statement, num_actions=20), proof) is not None


def test_the_last_receipt_is_held_also_for_one_action() -> None:
    actions = run_of(4)
    statement = replace(build_statement("run", actions), final_receipt_hash="0" * 64)
    assert proof_problem(statement, prove_inclusion(actions, 3)) is not None


# --- the trace


def test_rows_are_of_the_field_and_lose_nothing() -> None:
    action = run_of(2)[1]
    row = build_row(1, action, encode_action(action))
    assert len(row) == WIDTH
    assert all(0 <= value < MODULUS for value in row)
    limbs = b"".join(value.to_bytes(4, "big") for value in row[2:26])
    assert limbs.hex() == action.instruction_hash + action.input_hash + action.output_hash


@pytest.mark.parametrize(
    ("decision", "gated", "passed"),
    [
        (None, 0, 0),
        ("pass", 1, 1),
        ("human_approved", 1, 1),
        ("skip", 1, 0),
        ("skipped", 1, 0),
        ("human_review", 1, 0),
    ],
)
def test_only_two_decisions_pass(decision: str | None, gated: int, passed: int) -> None:
    action = replace(A, gate_decision=decision, gate_score=None, policy_verdict=None)
    row = build_row(0, action, encode_action(action))
    assert (row[trace.GATED], row[trace.GATE_PASSED]) == (gated, passed)


def test_each_broken_link_is_named() -> None:
    actions = run_of(4)
    for change, name in (
        ({"parent_receipt_hash": "c" * 64}, "next_parent_is_receipt"),
        ({"parent_receipt_hash": None, "parent_action_id": None}, "next_parent_is_receipt"),
    ):
        found = Trace()
        for index, action in enumerate(actions):
            action = replace(action, **change) if index == 2 else action
            found.take(action, encode_action(action))
        assert found.problem == f"{name}, row 2"
    first = Trace()
    first.take(actions[1], encode_action(actions[1]))
    assert first.problem == "first_has_no_parent, row 0"


def test_every_constraint_can_break() -> None:
    """Rows that no action gives: each equation is evaluated, and none is decoration."""
    before = build_row(0, run_of(1)[0], encode_action(run_of(1)[0]))
    action = run_of(2)[1]
    good = build_row(1, action, encode_action(action))

    def broken(row: trace.TraceRow, after: trace.TraceRow | None = before) -> set[str]:
        return set(trace._broken_constraints(after, row))

    def changed(row: trace.TraceRow, at: int, value: int) -> trace.TraceRow:
        return (*row[:at], value, *row[at + 1 :])

    assert broken(good) == set()
    assert "booleans" in broken(changed(good, trace.SUCCESS, 2))
    assert "passed_only_if_gated" in broken(changed(good, trace.GATED, 0))
    assert "enforced_only_if_passed" in broken(changed(good, trace.GATE_PASSED, 0))
    assert "parent_only_if_linked" in broken(changed(good, trace.HAS_PARENT, 0))
    assert "next_has_parent" in broken(changed(good, trace.HAS_PARENT, 0))
    assert "next_index" in broken(changed(good, trace.INDEX, 2))
    assert "next_parent_is_receipt" in broken(changed(good, 30, 7))
    assert "first_index_is_zero" in broken(changed(before, trace.INDEX, 1), None)
    assert "first_has_no_parent" in broken(good, None)
    named = {name for names in trace.CONSTRAINTS.values() for name in names}
    at_end = Trace()
    at_end.take(run_of(1)[0], encode_action(run_of(1)[0]))
    assert str(at_end.problem_at_end(count=2, final_receipt="0" * 64)).startswith("last_index_is_count")
    assert str(at_end.problem_at_end(count=1, final_receipt="0" * 64)).startswith("last_receipt_is_final")
    assert {"last_index_is_count", "last_receipt_is_final", "booleans", "next_index"} <= named
