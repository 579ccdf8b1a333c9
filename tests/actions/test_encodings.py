"""Lines of `actions.jsonl`: what Aver writes, what others write, and what somebody changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import AgentAction, BadInput
from aver.actions.encodings import (
    CAPSEAL_KEYS,
    METADATA_MAX,
    RECEIPT_KEYS,
    action_line,
    parse_json_line,
    read_action_line,
    receipt_hash,
)
from aver.capsule.json_reader import DuplicateKey, Unreadable
from support.runs import A


def other_tools_line(action: AgentAction, keys: frozenset[str] = CAPSEAL_KEYS, **changes: Any) -> bytes:
    """A line as the public implementation writes it."""
    content = action.to_dict()
    fields = {key: content[key] for key in sorted(keys)}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return json.dumps({**content, "receipt_hash": digest, "canonical_fields": fields, **changes}).encode()


def test_the_hashed_text_stands_in_the_line() -> None:
    action = replace(A, metadata={"description": "ä", "n": [1, 2.5]}, gate_score=1e-07)
    raw, digest = action_line(action), receipt_hash(action)
    fields = raw[raw.index(b'"canonical_fields":') + len(b'"canonical_fields":') : -1]
    assert hashlib.sha256(fields).hexdigest() == digest == receipt_hash(action)
    content = json.loads(raw)
    assert list(content) == [*action.to_dict(), "receipt_hash", "canonical_fields"]
    assert content["canonical_fields"] == {key: content[key] for key in RECEIPT_KEYS}


def test_what_is_written_is_read() -> None:
    action = replace(A, metadata={"a": {"b": [None, True, 1.5, "é"]}})
    line = read_action_line(action_line(action))
    assert (line.action, line.keys, line.problem, line.own) == (action, 12, None, True)


@pytest.mark.parametrize("keys", [RECEIPT_KEYS, CAPSEAL_KEYS])
def test_lines_of_others_are_read_and_told_apart(keys: frozenset[str]) -> None:
    line = read_action_line(other_tools_line(A, keys))
    assert (line.keys, line.problem, line.own) == (len(keys), None, False)


@pytest.mark.parametrize("keys", [RECEIPT_KEYS, CAPSEAL_KEYS])
def test_lines_without_canonical_fields_are_recomputed_from_the_action(keys: frozenset[str]) -> None:
    content = json.loads(other_tools_line(A, keys))
    del content["canonical_fields"]
    line = read_action_line(json.dumps(content).encode())
    assert (line.keys, line.problem) == (len(keys), None)
    content["success"] = False
    assert read_action_line(json.dumps(content).encode()).problem is not None


@pytest.mark.parametrize(
    ("score", "rewritten"),
    [(1.0, "1"), (0.0, "0"), (1e-07, "1e-7"), (1e-05, "0.00001"), (0.5, "5e-1"), (0.12, "0.120")],
)
def test_numbers_that_another_language_wrote_anew_keep_their_receipt(score: float, rewritten: str) -> None:
    raw = other_tools_line(replace(A, gate_score=score))
    again = raw.replace(json.dumps(score).encode(), rewritten.encode())
    assert again != raw
    assert read_action_line(again).problem is None


@pytest.mark.parametrize("rewritten", ["0.13", "0.1200000001", "1", "0", "true", "null", '"0.12"'])
def test_other_numbers_do_not(rewritten: str) -> None:
    raw = action_line(A).replace(b"0.12", rewritten.encode())
    try:
        assert read_action_line(raw).problem is not None
    except Unreadable:
        assert rewritten in ("true", '"0.12"')


def test_a_receipt_over_numbers_as_another_language_writes_them() -> None:
    content = replace(A, gate_score=1e-07).to_dict()
    fields = {key: content[key] for key in RECEIPT_KEYS}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).replace("1e-07", "1e-7")
    digest = hashlib.sha256(text.encode()).hexdigest()
    raw = json.dumps({**content, "receipt_hash": digest, "canonical_fields": fields}).replace("1e-07", "1e-7").encode()
    assert read_action_line(raw).problem is None


@pytest.mark.parametrize("field", sorted(RECEIPT_KEYS))
@pytest.mark.parametrize("where", ["action", "canonical_fields"])
def test_a_field_that_is_changed_on_one_side_is_named(field: str, where: str) -> None:
    changed: dict[str, Any] = {
        "action_type": "code_gen",
        "gate_score": 0.5,
        "gate_decision": "skip",
        "success": False,
        "duration_ms": 46,
        "timestamp": "2024-01-15T10:30:00+00:00",
    }
    value = changed.get(field, "b" * 64)
    content = json.loads(action_line(A))
    (content if where == "action" else content["canonical_fields"])[field] = value
    line = read_action_line(json.dumps(content).encode())
    assert line.problem is not None
    assert field in line.problem or "receipt_hash" in line.problem


def test_both_sides_changed_is_another_receipt() -> None:
    content = json.loads(action_line(A))
    content["success"] = content["canonical_fields"]["success"] = False
    assert read_action_line(json.dumps(content).encode()).problem == "receipt_hash is not the hash of canonical_fields"


def test_a_score_that_no_float_can_hold_is_another_receipt() -> None:
    content = json.loads(action_line(A))
    content["canonical_fields"]["gate_score"] = 10**400
    line = read_action_line(json.dumps(content).encode())
    assert line.problem == "receipt_hash is not the hash of canonical_fields"


def test_true_is_not_one() -> None:
    raw = other_tools_line(A, RECEIPT_KEYS)
    content = json.loads(raw)
    content["canonical_fields"]["success"] = 1
    text = json.dumps(content["canonical_fields"], sort_keys=True, separators=(",", ":"))
    content["receipt_hash"] = hashlib.sha256(text.encode()).hexdigest()
    assert read_action_line(json.dumps(content).encode()).problem is not None


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"null", b"[]", b"7", b'"x"', b"{", b"{}", b"\xff\xfe", b"NaN", b'{"action_id":NaN}'),
        *(b'{"action_id":"a","action_id":"b"}', b"[" * 100_000, b'{"a":' * 5000, b"\x00" * 100),
        other_tools_line(A, receipt_hash=None),
        other_tools_line(A, receipt_hash="A" * 64),
        other_tools_line(A, canonical_fields=[]),
        other_tools_line(A, canonical_fields={}),
        other_tools_line(A, canonical_fields={**A.to_dict()}),
        other_tools_line(A, canonical_fields={**dict.fromkeys(RECEIPT_KEYS), "success": {}}),
        other_tools_line(A, more=1),
        other_tools_line(A, metadata={"lone surrogate": "\ud800"}),
        other_tools_line(A, metadata={"\udfff": 1}),
    ],
)
def test_what_is_no_line_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        read_action_line(raw)


def test_a_key_that_stands_twice_is_refused() -> None:
    """`orjson` and most readers take the last, others the first: two people would see two different actions."""
    raw = action_line(A)
    doubled = raw.replace(b'"success":true', b'"success":false,"success":true', 1)
    assert doubled != raw
    with pytest.raises(DuplicateKey):
        read_action_line(doubled)


def test_metadata_must_be_json_and_not_endless() -> None:
    with pytest.raises(BadInput, match=r"metadata\.a"):
        action_line(replace(A, metadata={"a": b"bytes"}))
    with pytest.raises(BadInput, match="more than"):
        action_line(replace(A, metadata={"a": "x" * METADATA_MAX}))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.more
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_metadata_comes_back(metadata: dict[str, Any]) -> None:
    try:
        raw = action_line(replace(A, metadata=metadata))
    except BadInput:
        return
    line = read_action_line(raw)
    assert line.problem is None
    assert json.dumps(line.action.metadata) == json.dumps(json.loads(raw)["metadata"])


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        line = read_action_line(raw)
    except Unreadable:
        return
    assert json.loads(raw)["action_id"] == line.action.action_id


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_one_changed_byte_is_never_taken_for_the_same_action(position: int, value: int) -> None:
    raw = bytearray(action_line(replace(A, metadata={"k": "value"})))
    before = bytes(raw)
    raw[position % len(raw)] = value
    if bytes(raw) == before:
        return
    try:
        line = read_action_line(bytes(raw))
    except Unreadable:
        return
    assert line.problem is not None or line.action != replace(A, metadata={"k": "value"}) or not line.own


@pytest.mark.parametrize("depth", [100, 254, 255, 300, 900])
def test_a_line_that_is_nested_deeply_is_read_or_refused(depth: int) -> None:
    """orjson reads more levels than it writes."""
    raw = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    try:
        assert isinstance(parse_json_line(raw), dict)
    except Unreadable:
        pass
