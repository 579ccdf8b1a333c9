"""The parts of a JSON text, byte for byte as they stand, or nothing where it is not whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.ingest.foreign_json import split_array, split_object


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
