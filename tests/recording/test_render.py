"""Any value as JSON: typed, bounded, and without running the value's own code."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import canonical_json
from aver.recording.render import render_value
from support.strategies import json_values

HERE = __name__


@given(json_values)
def test_json_is_recorded_as_it_is(value: Any) -> None:
    shown = render_value(value)
    if not any(ord(c) in range(0xD800, 0xE000) for c in json.dumps(value, ensure_ascii=False)):
        assert shown == value
    canonical_json(shown)


class Colour(enum.Enum):
    RED = 1


class Word(str):
    pass


class Number(int):
    def __int__(self) -> int:
        raise RuntimeError

    def __index__(self) -> int:
        raise RuntimeError


class Pair(NamedTuple):
    left: int
    right: Any


@dataclass
class Account:
    name: str
    shown: int = 1
    hidden: str = field(default="hunter2", repr=False)


@dataclass(slots=True, frozen=True)
class Slotted:
    a: int
    b: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((1, "a"), [1, "a"]),
        ({1, 3, 2}, {"$type": "set", "items": [1, 2, 3]}),
        (frozenset("b"), {"$type": "frozenset", "items": ["b"]}),
        ({1: "a", None: "b"}, {"$type": "dict", "items": [[1, "a"], [None, "b"]]}),
        (collections.deque([2, 1]), {"$type": "collections.deque", "items": [2, 1]}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aa"), {"$type": "collections.Counter", "value": {"a": 2}}),
        (float("nan"), {"$type": "float", "text": "nan"}),
        (float("-inf"), {"$type": "float", "text": "-inf"}),
        (2**70, 2**70),
        (1 << 20_000, {"$type": "int", "bits": 20_001}),
        (1 + 2j, {"$type": "complex", "text": "(1+2j)"}),
        (b"text \xc3\xa9", {"$type": "bytes", "text": "text é"}),
        (b"\xff\x00", {"$type": "bytes", "base64": "/wA="}),
        (bytearray(b"a"), {"$type": "bytearray", "text": "a"}),
        (memoryview(b"a"), {"$type": "memoryview", "text": "a"}),
        ("\ud800x", {"$type": "str", "text": "\\ud800x"}),
        (decimal.Decimal("1.10"), {"$type": "decimal.Decimal", "text": "1.10"}),
        (fractions.Fraction(1, 3), {"$type": "fractions.Fraction", "text": "1/3"}),
        (uuid.UUID(int=1), {"$type": "uuid.UUID", "text": "00000000-0000-0000-0000-000000000001"}),
        (datetime.date(2026, 1, 2), {"$type": "datetime.date", "text": "2026-01-02"}),
        (datetime.datetime(2026, 1, 2, 3), {"$type": "datetime.datetime", "text": "2026-01-02T03:00:00"}),
        (datetime.timedelta(hours=1), {"$type": "datetime.timedelta", "text": "1:00:00"}),
        (pathlib.PurePosixPath("/a/b"), {"$type": "pathlib.PurePosixPath", "text": "/a/b"}),
        (range(3), {"$type": "range", "text": "range(0, 3)"}),
        (Colour.RED, {"$type": f"{HERE}.Colour", "name": "RED", "value": 1}),
        (Word("w"), {"$type": f"{HERE}.Word", "value": "w"}),
        (Number(5), {"$type": f"{HERE}.Number", "value": 5}),
        (Pair(1, {2}), {"$type": f"{HERE}.Pair", "fields": {"left": 1, "right": {"$type": "set", "items": [2]}}}),
        (Account("ann"), {"$type": f"{HERE}.Account", "fields": {"name": "ann", "shown": 1}}),
        (Slotted(5), {"$type": f"{HERE}.Slotted", "fields": {"a": 5, "b": [1, 2]}}),
        (ValueError("v"), {"$type": "ValueError", "text": "v"}),
        (Account, {"$type": "type", "name": f"{HERE}.Account"}),
        (len, {"$type": "builtin_function_or_method", "name": "len"}),
        (json, {"$type": "module", "name": "json"}),
        (object(), {"$type": "object"}),
        (..., {"$type": "ellipsis", "text": "..."}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_by_their_type(value: Any, shown: Any) -> None:
    assert render_value(value) == shown
    canonical_json(render_value([value]))


class Explosive:
    """Everything about it fails."""

    def fail(self, *_: Any) -> Any:
        raise RuntimeError("boom")

    __repr__ = __str__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __getattr__ = fail  # type: ignore[assignment]
    __class__ = property(fail)  # type: ignore[assignment]
    __dict__ = property(fail)  # type: ignore[assignment]


class ExplosiveList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("boom")

    def __len__(self) -> int:
        raise RuntimeError("boom")


class ExplosiveDict(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("boom")

    def __iter__(self) -> Any:
        raise RuntimeError("boom")


class ExplosiveMeta(type):
    def __hash__(cls) -> int:
        raise RuntimeError("boom")


class ExplosiveClass(metaclass=ExplosiveMeta):
    pass


@dataclass
class WithProperty:
    a: int

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("boom")


def test_nothing_that_a_value_does_stops_the_recording() -> None:
    assert render_value(Explosive()) == {"$type": f"{HERE}.Explosive"}
    assert render_value([Explosive(), 1]) == [{"$type": f"{HERE}.Explosive"}, 1]
    assert render_value(ExplosiveList([1])) == {"$type": f"{HERE}.ExplosiveList", "value": [1]}
    assert render_value(ExplosiveDict(a=1)) == {"$type": f"{HERE}.ExplosiveDict", "value": {"a": 1}}
    assert render_value(WithProperty(1)) == {"$type": f"{HERE}.WithProperty", "fields": {"a": 1}}
    assert render_value(ExplosiveClass())["$type"] == f"{HERE}.ExplosiveClass"
    assert render_value({"deep": {"er": Explosive()}}) == {"deep": {"er": {"$type": f"{HERE}.Explosive"}}}


def test_what_refers_to_itself_ends() -> None:
    loop: list[Any] = []
    loop.append({"loop": loop})
    text = json.dumps(render_value(loop))
    assert '"cut": "too deep"' in text
    assert len(text) < 2_000


def test_what_is_too_much_is_cut_and_says_so() -> None:
    shown = render_value(list(range(100_000)))
    assert (shown["$type"], shown["length"]) == ("list", 100_000)
    assert shown["items"] == list(range(len(shown["items"])))
    assert len(shown["items"]) == 19_999
    wide = render_value({f"k{number}": number for number in range(100_000)})
    assert (wide["$type"], wide["length"], len(wide["fields"])) == ("dict", 100_000, 19_999)
    shared = [0] * 1_000
    assert json.dumps(render_value([shared] * 1_000)).count("0") < 40_000


def test_a_text_that_is_too_long_is_cut_between_words() -> None:
    shown = render_value("word " * 4_000_000)
    assert shown["length"] == 20_000_000
    assert 16 * 1024 * 1024 - 4096 <= len(shown["text"]) <= 16 * 1024 * 1024
    assert shown["text"].endswith("word")


def test_nothing_is_shared_with_what_is_recorded() -> None:
    value = {"list": [1, {"a": 2}]}
    shown = render_value(value)
    value["list"][1]["a"] = 3  # type: ignore[index]
    value["list"].append(4)
    assert shown == {"list": [1, {"a": 2}]}


def test_fields_of_attrs_classes() -> None:
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Thing:
        a: int
        hidden: str = attrs.field(repr=False, default="hunter2")

    assert render_value(Thing(1))["fields"] == {"a": 1}


def test_fields_of_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Thing", a=(int, 1), hidden=(str, pydantic.Field("hunter2", repr=False)))
    assert render_value(model())["fields"] == {"a": 1}


@given(
    st.recursive(
        st.builds(object) | st.binary() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
        max_leaves=20,
    )
)
def test_whatever_it_is_there_is_a_canonical_form(value: Any) -> None:
    rendered = render_value(value)
    assert render_value(json.loads(canonical_json(rendered))) == rendered
