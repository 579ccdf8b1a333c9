"""The parts of a JSON text, byte for byte as they stand, or nothing where it is not whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.agents.registry import load_adapter
from aver.ingest.contract import TranscriptSource, record_from_bytes
from aver.ingest.foreign_json import UNREADABLE, parse_json, split_array, split_object


@pytest.mark.more
@given(st.lists(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner)), max_size=5), st.booleans())
def test_elements_are_what_stands_there(values: list[object], spaced: bool) -> None:
    text = json.dumps(values, indent=2 if spaced else None, ensure_ascii=spaced)
    found = split_array(text.encode("utf-8", "surrogatepass"))
    assert found is not None
    assert [json.loads(part) for part in found] == values
    assert all(part.decode() in text for part in found)


@given(st.binary(max_size=40))
def test_any_bytes_are_read(data: bytes) -> None:
    found, named = split_array(data), split_object(data)
    assert found is None or all(isinstance(part, bytes) and part in data for part in found)
    assert named is None or isinstance(named, dict)


@pytest.mark.parametrize("cut", range(1, 22))
def test_what_is_cut_off_is_nothing(cut: int) -> None:
    text = b'[{"a": [1, 2]}, "\xc3\xa9"]'
    assert split_array(text) == [b'{"a": [1, 2]}', b'"\xc3\xa9"']
    assert split_array(text[:-cut]) is None
    assert split_object(b'{"a": 1, "b": [{}]}'[: -min(cut, 18)]) is None


def test_deep_nesting_is_nothing() -> None:
    assert split_array(b"[" * 100_000 + b"]" * 100_000) is None


# --- records in which a name is there twice

ORDINARY = (
    b'{"a":1,"b":[{"a":2},{"a":3}]}',
    b'{ "a" : 1.50, "b": {"a": "\\u00e9"} }',
    b'{"a": NaN, "b": "\\ud800"}',
    b'{"a": 12345678901234567890123}',
)
TWICE = (
    b'{"type":"assistant","type":"summary"}',
    b'{"a": [{"b": {"c": 1, "c": 1}}]}',
    b'{"a": NaN, "a": 1}',
    b'{"a": "\\ud800", "b": {"x": 1, "\\u0078": 2}}',
    b'[{"a": 1, "a": 1}]',
)


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_record_is_read(text: bytes) -> None:
    assert parse_json(record_from_bytes("1", text)) is not UNREADABLE


@pytest.mark.parametrize("text", TWICE)
def test_a_record_with_one_name_twice_is_not_read(text: bytes) -> None:
    """Its writer may have meant the other value."""
    assert parse_json(record_from_bytes("1", text)) is UNREADABLE


@pytest.mark.parametrize(
    ("tool", "place"), [("claude-code", "1"), ("codex", "1"), ("cline", "ui:0"), ("cline", "api:0"), ("cursor", "1")]
)
def test_every_agent_seals_such_a_record_with_its_text(tool: str, place: str) -> None:
    source = TranscriptSource(tool=tool, session="s", path=Path("s.jsonl"), appends=tool != "cline")
    line = b'{"type":"assistant","role":"assistant","message":{"content":"rm -rf /"},"type":"summary"}'
    (event,) = load_adapter(tool).parser(source).feed(record_from_bytes(place, line))
    assert (event.what, event.places) == ("unknown", (place,))
    assert "rm -rf" in str(event.result)
