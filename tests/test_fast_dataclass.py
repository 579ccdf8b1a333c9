"""Our own `dataclass` does what the standard one does, for all that a value can be asked."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest

from aver.fast_dataclass import INSTANCES_WITHOUT_COMPILING, NamedTuple, dataclass


def made(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True)
    class Point:
        """A place."""

        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list)
        hidden: str = field(default="h", repr=False, compare=False)
        fixed: int = field(default=7, init=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    return Point


OURS, STANDARD = made(dataclass), made(dataclasses.dataclass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    low: int
    high: int = 10

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@dataclass(frozen=True, slots=True)
class Own:
    """Has an equality of its own."""

    name: str
    number: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@pytest.mark.parametrize("arguments", [(1,), (1, 2), (1, 2, ["a"]), (1, 2, ["a"], "z")])
def test_it_is_as_the_standard_one(arguments: tuple[Any, ...]) -> None:
    ours, standard = OURS(*arguments), STANDARD(*arguments)
    assert repr(ours) == repr(standard)
    assert asdict(ours) == asdict(standard)
    assert [one.name for one in fields(ours)] == [one.name for one in fields(standard)]
    assert ours.total == standard.total
    assert ours == OURS(*arguments)
    assert ours == replace(ours, hidden="other")
    assert ours != replace(ours, x=99)
    assert ours != standard
    assert OURS.__match_args__ == STANDARD.__match_args__
    assert OURS.__slots__ == STANDARD.__slots__
    assert copy.deepcopy(ours) == ours


@pytest.mark.parametrize("arguments", [{}, {"x": 1, "z": 2}, {"x": 1, "fixed": 3}])
def test_wrong_arguments_are_wrong_in_both(arguments: dict[str, Any]) -> None:
    for point in (OURS, STANDARD):
        with pytest.raises(TypeError):
            point(**arguments)


def test_it_is_frozen() -> None:
    point = OURS(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises((FrozenInstanceError, AttributeError)):
        point.new = 1
    assert not hasattr(point, "__dict__")


def test_defaults_are_not_shared() -> None:
    assert OURS(1).tags is not OURS(1).tags


def test_keywords_only_and_checks_of_its_own() -> None:
    assert Checked(low=1) == Checked(low=1, high=10)
    assert hash(Checked(low=1)) == hash(Checked(low=1, high=10))
    with pytest.raises(TypeError):
        Checked(1)  # type: ignore[call-arg,misc]
    with pytest.raises(ValueError, match="low is above high"):
        Checked(low=11)
    with pytest.raises(ValueError, match="low is above high"):
        replace(Checked(low=1), low=11)


def test_what_a_class_says_itself_stays() -> None:
    assert Own("a", 1) == Own("a", 2)
    assert len({Own("a", 1), Own("a", 2)}) == 1


@pytest.mark.parametrize("value", [Checked(low=3), Own("b", 4)])
def test_it_can_be_pickled(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert asdict(again) == asdict(value)


def test_what_changes_is_left_to_the_standard_one() -> None:
    @dataclass(slots=True)
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 2), {}),
    ((), {"x": 1}),
    ((1,), {"y": 2, "tags": ["a"]}),
    ((1, 2, [], "shown"), {}),
    ((), {}),
    ((1,), {"x": 1}),
    ((1,), {"unknown": 1}),
    ((1, 2, [], "shown", 8), {}),
    ((1,), {"fixed": 8}),
]


@pytest.mark.parametrize("earlier", range(8))
def test_the_first_instances_are_made_as_the_later_ones(earlier: int) -> None:
    """The first instances are made without compiling `__init__`. Nobody can tell."""
    for values, named in CALLS:
        ours, standard = made(dataclass), made(dataclasses.dataclass)
        for _ in range(earlier):
            ours(0)
        try:
            expected = asdict(standard(*values, **named))
        except TypeError:
            with pytest.raises(TypeError):
                ours(*values, **named)
        else:
            assert asdict(ours(*values, **named)) == expected


# --- named tuples


class Span(NamedTuple):
    """A stretch."""

    start: int
    end: int = 0
    tags: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.end - self.start


class StandardSpan(typing.NamedTuple):
    start: int
    end: int = 0
    tags: tuple[str, ...] = ()


class LongSpan(Span):
    """A class below a named tuple has its fields, and no others."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return 100 * super().size


@pytest.mark.parametrize("arguments", [((1,), {}), ((1, 2), {}), ((1, 2, ("a",)), {}), ((), {"end": 5, "start": 1})])
def test_a_named_tuple_is_as_the_standard_one(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    # More often than the first instances, which are made without compiling.
    for _ in range(INSTANCES_WITHOUT_COMPILING + 2):
        ours, standard = Span(*arguments[0], **arguments[1]), StandardSpan(*arguments[0], **arguments[1])
        assert ours == standard
        assert tuple(ours) == tuple(standard)
        assert repr(ours) == repr(standard).replace("StandardSpan", "Span")
        assert ours._asdict() == standard._asdict()
        assert ours._replace(end=9) == standard._replace(end=9)
        assert (ours.start, ours.end, ours.tags, ours.size) == (*standard, standard.end - standard.start)
        assert hash(ours) == hash(standard)
        assert type(pickle.loads(pickle.dumps(ours))) is type(copy.deepcopy(ours)) is Span
        assert not hasattr(ours, "__dict__")
    assert Span._fields == StandardSpan._fields
    assert Span._field_defaults == StandardSpan._field_defaults
    assert Span.__match_args__ == StandardSpan.__match_args__
    assert Span.__doc__ == "A stretch."


@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, (), 4), {}), ((1,), {"start": 2}), ((1,), {"size": 2})])
def test_wrong_arguments_are_wrong_in_both_named_tuples(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    class New(NamedTuple):
        start: int
        end: int = 0
        tags: tuple[str, ...] = ()

    for kind in (New, New, StandardSpan):  # The first call is made without compiling, the second is not.
        with pytest.raises(TypeError):
            kind(*arguments[0], **arguments[1])


def test_a_named_tuple_cannot_be_changed() -> None:
    span = Span(1)
    with pytest.raises(AttributeError):
        span.start = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="no fields"):
        span._replace(size=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Span._make([1, 2])
    assert Span._make([1, 2, ()]) == Span(1, 2)


def test_a_class_below_a_named_tuple() -> None:
    assert LongSpan(1, 3).size == 200
    assert LongSpan(1, 3) == Span(1, 3)
    assert type(LongSpan(1)._replace(end=2)) is LongSpan


def test_a_named_tuple_with_a_field_after_defaults_is_refused() -> None:
    with pytest.raises(TypeError, match="without a default follows"):
        type(Span)("Bad", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
