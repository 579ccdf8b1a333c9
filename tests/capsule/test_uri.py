"""Capsule URIs: written back as they were read, and fragments that find what they name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aver import BadInput, Capsule, CapsuleURI, NotFound, parse_uri, resolve_fragment
from aver.capsule.uri import URI_MAX
from support.strategies import capsules, chain_references, fragments, hex64, json_values, uuids

references = st.one_of(
    st.builds(lambda h: {"hash": h}, hex64),
    st.builds(lambda h, c: {"hash": h, "chain": c}, hex64, chain_references),
    st.builds(lambda s, c: {"sequence": s, "chain": c}, st.integers(0, 2**63 - 1), chain_references),
    st.builds(lambda i: {"id": i}, uuids),
)


def make_fragment(*segments: str | int) -> str:
    """The fragment for a path of keys and indexes."""
    return "/".join(quote(str(s).replace("~", "~0").replace("/", "~1"), safe="~!$&'()*+,;=:@") for s in segments)


@given(references, fragments)
def test_parse_and_format_are_inverse(reference: dict[str, Any], path: Any) -> None:
    assume(path is None or not {".", ".."} & set(path))
    uri = CapsuleURI(**reference, fragment=None if path is None else make_fragment(*path))
    text = str(uri)
    assume(len(text) <= URI_MAX)
    assert parse_uri(text) == uri
    assert str(parse_uri(text)) == text


@given(st.text(max_size=60) | st.text(max_size=60).map(lambda rest: f"capsule://{rest}"))
def test_any_text_is_parsed_exactly_or_refused(text: str) -> None:
    try:
        uri = parse_uri(text)
    except BadInput:
        return
    assert str(uri) == text
    assert sum(part is not None for part in (uri.hash, uri.sequence, uri.id)) == 1


@given(json_values, st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_fragment_finds_its_value(value: Any, path: list[str]) -> None:
    assume(not {".", ".."} & set(path))
    nested = value
    for key in reversed(path):
        nested = [None, {key: nested}]
    content = {"outcome": {"result": nested}}
    segments: list[str | int] = ["outcome", "result"]
    for key in path:
        segments += [1, key]
    assert resolve_fragment(content, make_fragment(*segments)) == value


@given(capsules())
def test_every_top_level_key_is_a_fragment(capsule: Capsule) -> None:
    content = capsule.to_dict()
    for key, value in content.items():
        assert resolve_fragment(content, key) == value


@pytest.mark.parametrize(
    "fragment",
    [
        "outcome/nothing",
        "outcome/metrics/x",
        "execution/tool_calls/0",
        "outcome/side_effects/-1",
        "type/0",
        "sequence/0",
    ],
)
def test_what_is_not_there_is_not_found(fragment: str) -> None:
    with pytest.raises(NotFound):
        resolve_fragment(Capsule(type="tool").to_dict(), fragment)


def test_an_index_has_no_leading_zero() -> None:
    content = {"outcome": {"side_effects": ["a", "b"]}}
    assert resolve_fragment(content, "outcome/side_effects/1") == "b"
    with pytest.raises(NotFound):
        resolve_fragment(content, "outcome/side_effects/01")
