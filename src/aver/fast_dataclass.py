"""`dataclass(frozen=True, slots=True)`, and the same without `frozen`, made in a third of the time.

Every command and every hook begins by making some hundred of these classes, and the standard decorator compiles six
functions for each. Here one is compiled, `__init__`, when the first instance is made; the others are shared by all
classes. Nothing else is different: `field`, `fields`, `replace`, `asdict`, pickling and `match` work as ever.

    >>> from dataclasses import replace
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> replace(Point(1), y=2)
    Point(x=1, y=2)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_set = object.__setattr__


def _fast_dataclass(**options: bool) -> Any:
    """A decorator. What has no slots, or asks for more than these, is left to the standard one."""
    kw_only = options.pop("kw_only", False)
    for known, members_of in _SUPPORTED_OPTIONS:
        if options == known:
            return lambda cls: _build_class(cls, members_of, kw_only=kw_only)
    return dataclasses.dataclass(kw_only=kw_only, **options)


def _build_class(cls: type, members_of: Callable[[type], dict[str, Any]], *, kw_only: bool) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # Else the standard decorator makes one up, which takes long.
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    for name, member in members_of(made).items():
        if name not in cls.__dict__ or (name == "__hash__" and "__eq__" not in cls.__dict__):
            setattr(made, name, member)
    return made


def _frozen_members(made: type) -> dict[str, Any]:
    values = _comparison_getter(made)
    return {
        "__init__": _lazy_init(made, " _set_{name}(self, {value})"),
        "__repr__": _repr,
        "__eq__": _build_eq(values),
        "__hash__": lambda self: hash(values(self)),
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
    }


def _mutable_members(made: type) -> dict[str, Any]:
    return {
        **_init_only_members(made),
        "__repr__": _repr,
        "__eq__": _build_eq(_comparison_getter(made)),
        "__hash__": None,
    }


def _init_only_members(made: type) -> dict[str, Any]:
    return {"__init__": _lazy_init(made, " self.{name} = {value}")}


_SUPPORTED_OPTIONS = (
    ({"frozen": True, "slots": True}, _frozen_members),
    ({"slots": True}, _mutable_members),
    ({"slots": True, "eq": False, "repr": False}, _init_only_members),
)


def _lazy_init(cls: Any, assignment: str) -> Any:
    """Of most classes a run makes no instance."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = _compile_init(cls, assignment)
        cls.__init__(self, *values, **named)

    return __init__


def _compile_init(cls: Any, assignment: str) -> Any:
    """The one function that has to be written for each class: its parameters are the fields."""
    known: dict[str, Any] = {"_missing": MISSING}
    plain, keyword, body = ["self"], list[str](), list[str]()
    for one in fields(cls):
        known[f"_set_{one.name}"] = getattr(cls, one.name).__set__  # The slot's own is the fastest that may set it.
        if value := _add_parameter(one, known, keyword if one.kw_only else plain):
            body.append(assignment.format(name=one.name, value=value))
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*plain, *(["*", *keyword] if keyword else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(body or [" pass"]), known)  # noqa: S102 - our own field names
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


def _add_parameter(one: Field[Any], known: dict[str, Any], parameters: list[str]) -> str:
    """Add a field's parameter, and give the expression of its value; none where the class sets it itself."""
    name = one.name
    if one.default_factory is not MISSING:
        known[f"_make_{name}"] = one.default_factory
        if not one.init:
            return f"_make_{name}()"
        parameters.append(f"{name}=_missing")
        return f"_make_{name}() if {name} is _missing else {name}"
    if one.default is not MISSING:
        known[f"_default_{name}"] = one.default
        if not one.init:
            return f"_default_{name}"
        parameters.append(f"{name}=_default_{name}")
        return name
    if not one.init:
        return ""
    parameters.append(name)
    return name


def _comparison_getter(cls: Any) -> Any:
    names = [one.name for one in fields(cls) if one.compare]
    return attrgetter(*names) if names else lambda _: ()


def _build_eq(values: Any) -> Any:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        _set(self, one.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _fast_dataclass
