"""`AgentAction`: the protocol's vectors, and everything that is not an action."""

from __future__ import annotations

import hashlib
import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aver
from aver import AgentAction, BadInput
from aver.actions.action import (
    ACTION_TYPES,
    DECISIONS,
    FIELDS,
    OPTIONAL_FIELDS,
    POLICY_VERDICTS,
    has_zone,
    text_hash,
    value_hash,
)
from aver.actions.encodings import CAPSEAL_KEYS, RECEIPT_KEYS, action_line, receipt_bytes, receipt_hash
from support.runs import A


def hash_over(action: AgentAction, keys: frozenset[str]) -> str:
    """As the public implementation computes it."""
    fields = {key: value for key, value in action.to_dict().items() if key in keys}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_receipt_vectors() -> None:
    assert receipt_hash(A) == "5dd55c128ddde27d3df5e3774e642019b001209d1298d9e02ac640c61295c90b"
    assert hash_over(A, CAPSEAL_KEYS) == "2ac7a66f387f2c38b8d8405c9475196a55df1062146ff74e3e67842972330ef9"
    bare = replace(A, gate_score=None, gate_decision=None, policy_verdict=None)
    assert hash_over(bare, CAPSEAL_KEYS) == "f49caf1235c0baa73644fcbdde24031503efe20768b57ab48f407b0423256dfd"


def test_input_vector() -> None:
    expected = "d02df0b1ea1d81990b3139a545744185f6be7a28edf001ff045f9841be39c3ea"
    assert value_hash({"b": 1, "a": [1, 2.5, None, "é"]}) == expected


def test_child_vector() -> None:
    child = AgentAction(
        "act_0002",
        "code_gen",
        text_hash("Generate"),
        value_hash({"b": 1, "a": [1, 2.5, None, "é"]}),
        value_hash("text out"),
        "act_0001",
        "2ac7a66f387f2c38b8d8405c9475196a55df1062146ff74e3e67842972330ef9",
        None,
        None,
        None,
        True,
        0,
        "2024-01-15T10:30:01Z",
    )
    assert hash_over(child, CAPSEAL_KEYS) == "e9cd7af276b73afa5a20fab49693d7a122c07b6f922f6f8e566c512e016afa55"


def test_there_are_fourteen_fields_fifteen_types_five_decisions_three_verdicts() -> None:
    assert (len(FIELDS), len(ACTION_TYPES), len(DECISIONS), len(POLICY_VERDICTS)) == (14, 15, 5, 3)
    assert list(A.to_dict()) == list(FIELDS)
    assert len(RECEIPT_KEYS) == 12
    assert {"policy_verdict"} == CAPSEAL_KEYS - RECEIPT_KEYS


@pytest.mark.parametrize("word", ACTION_TYPES)
def test_every_type_is_taken(word: str) -> None:
    assert replace(A, action_type=word).action_type == word


def test_text_hashes_are_of_the_raw_text_and_null_is_json() -> None:
    assert value_hash("x") == hashlib.sha256(b"x").hexdigest()
    assert value_hash(None) == hashlib.sha256(b"null").hexdigest()
    assert value_hash({}) == hashlib.sha256(b"{}").hexdigest()


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, {1: "int key"}, float("nan"), object(), "\ud800"])
def test_what_has_no_hash_is_refused(value: Any) -> None:
    with pytest.raises(BadInput):
        value_hash(value)


BAD = {
    "action_id": ["", None, 7, "x" * 257, "a\nb", "a\x1b[0m", "\ud800"],
    "action_type": ["", "function_call", "TOOL_CALL", None, 1, ["tool_call"]],
    "instruction_hash": ["", None, "A" * 64, "a" * 63, "a" * 65, "0x" + "a" * 62, " " + "a" * 63, 7, "a" * 64 + "\n"],
    "input_hash": ["g" * 64, None],
    "output_hash": ["e" * 32, b"a" * 64],
    "parent_action_id": ["", 3],
    "parent_receipt_hash": ["", "x", 0],
    "gate_score": [-0.1, 1.1, float("nan"), float("inf"), float("-inf"), True, "0.5", 2, [], 10**400],
    "gate_decision": ["approve", "", "PASS", 1],
    "policy_verdict": ["full", "", "proof_only", True],
    "success": [1, 0, None, "true"],
    "duration_ms": [-1, 1.0, True, None, "1", 2**60],
    "timestamp": [
        *("", None, 0, "2024-13-15", "2024-01-15T10", "2024-01-15T10:30:00+24:00", "2024-13-15T10:30:00Z"),
        *("2024-01-15T10:30.5Z", "2024-01-15Z", "2024-01-15T10:30:60Z", "15.1.2024", "2024-1-15", "2024-01-15T10:30+1"),
        *("2024-02-30T10:30:00Z", "2024-01-15T25:30:00Z", "2024-01-15 10:30:00Z", "2024-01-15T10:30:00z"),
        *("٢٠٢٤-01-15T10:30:00Z", "2024-01-15T10:30:00.Z", "2024-01-15T10:30:00Z\n"),
    ],
    "metadata": ["text", 1, [], True],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_bad_values_are_refused(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=field):
        replace(A, **{field: value})
    with pytest.raises(BadInput):
        AgentAction.from_dict({**A.to_dict(), field: value})


OTHERS = {
    "2024-01-15": False,
    "2024-01-15T10:30": False,
    "2024-01-15T10:30:00.877046": False,
    "2024-01-15T10:30:00,877": False,
    "2024-01-15T10:30+02": True,
    "2024-01-15T10:30:00+0200": True,
    "2024-01-15T10:30:00.1-09:30": True,
    "2024-02-29T10:30:00Z": True,
}
"""Times that other programs write, and whether each says its zone."""


@pytest.mark.parametrize("text", OTHERS)
def test_times_of_others_are_read_and_only_refused_when_aver_writes(tmp_path: Path, text: str) -> None:
    assert has_zone(text) is OTHERS[text]
    action = replace(A, timestamp=text, gate_score=None, gate_decision=None, policy_verdict=None)
    path = tmp_path / "actions.jsonl"
    path.write_bytes(action_line(action) + b"\n")
    verdict = aver.verify(path)
    assert (verdict.status, verdict.first_bad) == ("qualified", None)
    assert ("1 times without a zone" in verdict.check("receipts").reason) is not OTHERS[text]
    run = aver.AgentRuntime(tmp_path / "run")
    if text.endswith("Z"):
        run.record(action)
    else:
        with pytest.raises(BadInput, match="must be in UTC"):
            run.record(action)
    run.close()


def test_optional_fields_may_be_left_out() -> None:
    needed = {name: value for name, value in A.to_dict().items() if name not in OPTIONAL_FIELDS}
    assert AgentAction(**needed) == AgentAction.from_dict(needed)
    for name in ("success", "duration_ms", "timestamp"):
        with pytest.raises(BadInput, match=name):
            AgentAction(**{key: value for key, value in needed.items() if key != name})


@pytest.mark.parametrize("text", ["2024-01-15T10:30:00Z", "2024-01-15T10:30:00+00:00", "2026-11-15T22:12:00.877046Z"])
def test_times_are_kept_to_the_letter(text: str) -> None:
    action = replace(A, timestamp=text)
    assert action.timestamp == text
    assert text.encode() in receipt_bytes(action)


def test_reading_is_strict() -> None:
    with pytest.raises(BadInput, match="not a field"):
        AgentAction.from_dict({**A.to_dict(), "extra": 1})
    for name in FIELDS:
        left_out = {key: value for key, value in A.to_dict().items() if key != name}
        optional = name in ("metadata", "policy_verdict") or name.startswith(("parent_", "gate_"))
        if optional:
            assert getattr(AgentAction.from_dict(left_out), name) is None
        else:
            with pytest.raises(BadInput, match=name):
                AgentAction.from_dict(left_out)
    with pytest.raises(BadInput):
        AgentAction.from_dict([])  # type: ignore[arg-type]


def test_an_action_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        A.success = False  # type: ignore[misc]


def test_whole_and_broken_numbers_are_not_the_same_receipt() -> None:
    """As in the public implementation: an integer is hashed as one."""
    assert b'"gate_score":1,' in receipt_bytes(replace(A, gate_score=1))
    assert b'"gate_score":1.0,' in receipt_bytes(replace(A, gate_score=1.0))
    assert b'"gate_score":1e-07,' in receipt_bytes(replace(A, gate_score=1e-07))


@given(
    st.text(st.characters(blacklist_categories=("C", "Z")), min_size=1, max_size=20),
    st.floats(0, 1) | st.integers(0, 1) | st.none(),
    st.booleans(),
    st.integers(0, 2**53),
)
def test_receipts_are_those_of_json_dumps(action_id: str, score: float | None, success: bool, duration: int) -> None:
    action = replace(A, action_id=action_id, gate_score=score, success=success, duration_ms=duration)
    assert receipt_hash(action) == hash_over(action, RECEIPT_KEYS)
    assert AgentAction.from_dict(json.loads(json.dumps(action.to_dict()))) == action
