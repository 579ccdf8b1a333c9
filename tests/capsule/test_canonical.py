"""Canonical bytes against a slow writer that shares no code with them, and what must be refused."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import tracemalloc
import types
import uuid
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aver import NotCanonical, ascii_json, canonical_bytes
from aver.capsule.canonical import DEPTH_MAX, canonical_json
from support.reference_writer import write
from support.strategies import AWKWARD, capsules, foreign_contents, json_objects, json_values, texts


@given(json_values)
@example([2e-05, 1e16, -0.0, 1e22, 5e-324, 9.999999999999999e15, -1e-05, 0.0001])
@example({"\U0001f600": 1, "\uff5e": 2, "\u00e9": 3, "e\u0301": 4, "a": 5, "": 6})
@example([2**64, 2**64 - 1, -(2**63), -(2**63) - 1, 10**4000])
@example(list(AWKWARD))
def test_any_value_is_written_as_the_specification_says(value: Any) -> None:
    assert canonical_json(value) == write(value, ("nowhere",))


@given(capsules() | foreign_contents().map(lambda content: content))
def test_a_capsule_is_written_with_its_two_float_fields(capsule: Any) -> None:
    content = capsule if isinstance(capsule, dict) else capsule.to_dict()
    assert canonical_bytes(content) == write(content)


@given(json_values)
def test_writing_is_a_fixed_point(value: Any) -> None:
    once = canonical_json(value)
    assert canonical_json(json.loads(once)) == once


@given(json_objects)
def test_the_order_of_insertion_does_not_matter(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


@given(json_values)
def test_ascii_json_is_what_json_dumps_writes(value: Any) -> None:
    expected = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert ascii_json(value) == expected
    assert expected.isascii()


def test_the_argument_is_left_as_it_was() -> None:
    content = {"reasoning": {"confidence": 1, "options": [{"feasibility": 0}]}}
    assert canonical_bytes(content) == b'{"reasoning":{"confidence":1.0,"options":[{"feasibility":0.0}]}}'
    assert content == {"reasoning": {"confidence": 1, "options": [{"feasibility": 0}]}}
    assert type(content["reasoning"]["confidence"]) is int


@pytest.mark.parametrize("outer", [dict, collections.OrderedDict, lambda d: collections.defaultdict(int, d)])
def test_every_kind_of_dict_gets_its_float_fields(outer: Any) -> None:
    """An `OrderedDict` is a JSON object too: rule 5 must not depend on who made the dict."""
    option = outer({"feasibility": 1})
    content = outer({"reasoning": outer({"confidence": 1, "options": [option]})})
    assert canonical_bytes(content) == b'{"reasoning":{"confidence":1.0,"options":[{"feasibility":1.0}]}}'


def test_only_the_two_fields_at_their_place_become_floats() -> None:
    content = {
        "confidence": 1,
        "outcome": {"metrics": {"confidence": 1, "reasoning": {"confidence": 1}}},
        "reasoning": {
            "options": [{"feasibility": 1, "estimated_impact": {"feasibility": 1}}],
            "reasoning.confidence": 1,
        },
        "reasoning.confidence": 1,
    }
    assert canonical_bytes(content) == (
        b'{"confidence":1,"outcome":{"metrics":{"confidence":1,"reasoning":{"confidence":1}}},'
        b'"reasoning":{"options":[{"estimated_impact":{"feasibility":1},"feasibility":1.0}],"reasoning.confidence":1},'
        b'"reasoning.confidence":1}'
    )


def test_true_is_not_a_number() -> None:
    assert canonical_bytes({"reasoning": {"confidence": True}}) == b'{"reasoning":{"confidence":true}}'


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Plain(enum.Enum):
    ONE = 1


class Text(str):
    __slots__ = ()


@dataclass
class Data:
    x: int = 1


class Pair(collections.namedtuple("Pair", "left right")):
    __slots__ = ()


NO_FORM: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "memoryview": memoryview(b"x"),
    "set": {1},
    "frozenset": frozenset({1}),
    "datetime": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "date": datetime.date(2026, 1, 1),
    "time": datetime.time(1),
    "timedelta": datetime.timedelta(1),
    "uuid": uuid.UUID(int=1),
    "enum": Plain.ONE,
    "str enum": Colour.RED,
    "int enum": Number.ONE,
    "str subclass": Text("x"),
    "dataclass": Data(),
    "namedtuple": Pair(1, 2),
    "fragment": orjson.Fragment(b'{"a":1,"a":2}'),
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 2),
    "complex": 1j,
    "path": pathlib.PurePosixPath("/x"),
    "mapping proxy": types.MappingProxyType({"a": 1}),
    "generator": (x for x in ()),
    "range": range(3),
    "dict view": {"a": 1}.keys(),
    "function": len,
    "class": int,
    "ellipsis": ...,
    "object": object(),
    "lone high surrogate": "\ud800",
    "lone low surrogate": "x\udfff",
    "surrogates in the wrong order": "\udc00\ud800",
    "int with too many digits": 10**5000,
}


@pytest.mark.parametrize("name", NO_FORM)
@pytest.mark.parametrize("beside", [0, 1e-9, 2**70], ids=["fast", "tiny float", "huge int"])
def test_what_has_no_canonical_form_is_refused_with_its_place(name: str, beside: Any) -> None:
    """Whichever of the two writers would be used for the rest of the document."""
    content = {"outcome": {"metrics": {"a": [beside, {"b": NO_FORM[name]}]}}}
    with pytest.raises(NotCanonical) as caught:
        canonical_bytes(content)
    assert caught.value.path == "outcome.metrics.a[1].b"


@pytest.mark.parametrize("key", [1, 1.5, True, None, (1,), b"k", Colour.RED, Text("k"), Number.ONE, "\ud800"])
@pytest.mark.parametrize("beside", [0, 1e-9, 2**70], ids=["fast", "tiny float", "huge int"])
def test_keys_that_are_not_plain_strings_are_refused(key: Any, beside: Any) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical_bytes({"outcome": {"metrics": {"rest": beside, "inner": {key: 1}}}})
    assert caught.value.path == "outcome.metrics.inner"


def test_integer_keys_are_refused_even_where_sorting_would_hide_them() -> None:
    """The reference implementation sorts {10, 9} as numbers and then never verifies again."""
    for value in ({10: "a", 9: "b"}, {10: 1e-9}, {"x": {9: 2**80}}):
        with pytest.raises(NotCanonical):
            canonical_bytes(value)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: (v,)], ids=["list", "dict", "tuple"])
@pytest.mark.parametrize("leaf", [1, 1e-9])
def test_nesting_is_bounded_and_the_bound_is_exact(wrap: Any, leaf: Any) -> None:
    value = leaf
    for _ in range(DEPTH_MAX):
        value = wrap(value)
    assert canonical_json(value) == write(value, ("nowhere",))
    with pytest.raises(NotCanonical):
        canonical_json(wrap(value))
    for _ in range(100_000):
        value = wrap(value)
    with pytest.raises(NotCanonical):
        canonical_json(value)
    while isinstance(value, dict | list | tuple):  # taken apart step by step: freeing it recursively would overflow
        value = value["k"] if isinstance(value, dict) else value[0]


def test_a_value_that_contains_itself_is_refused() -> None:
    circular: list[Any] = []
    circular.append(circular)
    with pytest.raises(NotCanonical):
        canonical_bytes(circular)
    with pytest.raises(NotCanonical):
        ascii_json({"a": circular})


@given(st.lists(texts, unique=True, max_size=8))
def test_keys_are_sorted_by_code_point(keys: list[str]) -> None:
    written = json.loads(canonical_bytes(dict.fromkeys(keys, 0)))
    assert list(written) == sorted(keys, key=lambda key: [ord(character) for character in key])


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, {1: 2}, {None: 1e-9}, b"x", Colour.RED])
def test_ascii_json_refuses_the_same(value: Any) -> None:
    with pytest.raises(NotCanonical):
        ascii_json(value)


@given(st.sampled_from(sorted(NO_FORM)), st.lists(st.sampled_from(["list", "dict"]), max_size=6))
def test_nothing_but_not_canonical_is_raised(name: str, shape: list[str]) -> None:
    value: Any = NO_FORM[name]
    for kind in shape:
        value = [1, value] if kind == "list" else {"a": 1e-9, "b": value}
    with pytest.raises(NotCanonical):
        canonical_bytes(value)


@pytest.mark.more
def test_the_place_of_a_fault_under_a_long_key_costs_no_more_than_the_key() -> None:
    """Written out for each of the places passed on the way, the path would fill all memory."""
    value = {"k" * 1_000_000: {"list": [*range(100_000), [[], "\ud800"]]}}
    tracemalloc.start()
    with pytest.raises(NotCanonical) as raised:
        canonical_bytes(value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 1024 * 1024
    assert raised.value.path == "k" * 1_000_000 + ".list[100000][1]"
