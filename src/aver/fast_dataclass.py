"""`dataclass(frozen=True, slots=True)`, and the same without `frozen`, in a fraction of the time.

Every command and every hook starts by creating some hundred dataclasses. The standard decorator compiles six functions
for each, and examines each annotation with care. This one compiles `__init__` alone, for classes with several
instances; all classes share the other five. It leaves classes with unusual annotations to the standard decorator.
`field`, `fields`, `replace`, `asdict`, pickling and `match` work as with the standard decorator.

    >>> from dataclasses import replace
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> replace(Point(1), y=2)
    Point(x=1, y=2)

`NamedTuple` is `typing.NamedTuple` in the same way: the standard one compiles a constructor and every annotation.

    >>> class Span(NamedTuple):
    ...     start: int
    ...     end: int = 0
    >>> Span(1)._replace(end=2)
    Span(start=1, end=2)
"""

from __future__ import annotations

import dataclasses
from collections import _tuplegetter  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "dataclass"]

_set = object.__setattr__


def _fast_dataclass(**options: bool) -> Any:
    """The decorator. Other options than those in `_SUPPORTED_OPTIONS` are left to the standard one."""
    kw_only = options.pop("kw_only", False)
    for known, members_of in _SUPPORTED_OPTIONS:
        if options == known:
            return lambda cls: _build_class(cls, members_of, kw_only=kw_only)
    return dataclasses.dataclass(kw_only=kw_only, **options)


def _build_class(cls: type, members_of: Callable[[type], dict[str, Any]], *, kw_only: bool) -> type:
    made = _add_fields(cls, kw_only=kw_only)
    for name, member in members_of(made).items():
        if name not in cls.__dict__ or (name == "__hash__" and "__eq__" not in cls.__dict__):
            setattr(made, name, member)
    return made


@dataclasses.dataclass
class _Standard:
    """Shows how the standard decorator marks a class and its fields. `fields` and `replace` look at these marks."""

    value: int = 0


_FIELD_TYPE: Any = fields(_Standard)[0]._field_type  # type: ignore[attr-defined]
_STANDARD_PARAMS: Any = _Standard.__dataclass_params__  # type: ignore[attr-defined]
_OTHER_ANNOTATIONS = ("ClassVar", "InitVar", "KW_ONLY")


def _add_fields(cls: Any, *, kw_only: bool) -> type:
    """Return the class again, with its fields and slots. A class can get slots only while it is being made."""
    own: dict[str, Field[Any]] = {}
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - `inspect` loads slowly
        if not isinstance(annotation, str) or any(map(annotation.__contains__, _OTHER_ANNOTATIONS)):
            return dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        default = cls.__dict__.get(name, MISSING)
        each: Any = default if isinstance(default, Field) else field(default=default)
        if each.default.__class__.__hash__ is None:
            raise ValueError(f"the default of {name} can be changed: use default_factory")
        each.name, each.type, each._field_type = name, annotation, _FIELD_TYPE
        each.kw_only = kw_only if each.kw_only is MISSING else each.kw_only
        own[name] = each
    inherited: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= getattr(base, "__dataclass_fields__", {})
    every = inherited | own
    namespace = {name: value for name, value in cls.__dict__.items() if name not in own}
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace |= {
        "__slots__": tuple(name for name in own if name not in inherited),
        "__dataclass_fields__": every,
        "__dataclass_params__": _STANDARD_PARAMS,
        "__match_args__": tuple(name for name, each in every.items() if each.init and not each.kw_only),
    }
    made: type = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
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


INSTANCES_WITHOUT_COMPILING = 4
"""Most classes get fewer instances in a run. Setting their fields one by one takes less time than one compilation."""


def _lazy_init(cls: Any, assignment: str) -> Any:
    """An `__init__` that compiles the real one only for a class that gets many instances, or is called wrongly."""
    left = INSTANCES_WITHOUT_COMPILING

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0 or not _set_fields(self, cls, values, named):
            cls.__init__ = _compile_init(cls, assignment)
            cls.__init__(self, *values, **named)

    return __init__


def _set_fields(self: Any, cls: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Do what the compiled `__init__` does. Returns False, and sets nothing, if that would raise `TypeError`."""
    found: list[tuple[str, Any]] = []
    place = used = 0
    for each in fields(cls):
        name = each.name
        if each.init and not each.kw_only and place < len(values):
            found.append((name, values[place]))
            place += 1
        elif each.init and name in named:
            found.append((name, named[name]))
            used += 1
        elif each.default_factory is not MISSING:
            found.append((name, each.default_factory()))
        elif each.default is not MISSING:
            found.append((name, each.default))
        elif each.init:
            return False
    if place != len(values) or used != len(named):
        return False
    for name, value in found:
        _set(self, name, value)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return True


def _compile_init(cls: Any, assignment: str) -> Any:
    """Compile `__init__`, the only function that differs between classes: its parameters are the fields."""
    known: dict[str, Any] = {"_missing": MISSING}
    plain, keyword, body = ["self"], list[str](), list[str]()
    for each in fields(cls):
        known[f"_set_{each.name}"] = getattr(cls, each.name).__set__  # Sets frozen fields, too, and is fastest.
        if value := _add_parameter(each, known, keyword if each.kw_only else plain):
            body.append(assignment.format(name=each.name, value=value))
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*plain, *(["*", *keyword] if keyword else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(body or [" pass"]), known)  # noqa: S102 - our own field names
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


def _add_parameter(each: Field[Any], known: dict[str, Any], parameters: list[str]) -> str:
    """Add a field's parameter; return the expression of its value, empty where `__post_init__` sets it."""
    name = each.name
    if each.default_factory is not MISSING:
        known[f"_make_{name}"] = each.default_factory
        if not each.init:
            return f"_make_{name}()"
        parameters.append(f"{name}=_missing")
        return f"_make_{name}() if {name} is _missing else {name}"
    if each.default is not MISSING:
        known[f"_default_{name}"] = each.default
        if not each.init:
            return f"_default_{name}"
        parameters.append(f"{name}=_default_{name}")
        return name
    if not each.init:
        return ""
    parameters.append(name)
    return name


def _comparison_getter(cls: Any) -> Any:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else lambda _: ()


def _build_eq(values: Any) -> Any:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        _set(self, each.name, value)


class _NamedTupleType(type):
    """Makes the classes below `NamedTuple`: each has a getter for every field, and a constructor."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        # `NamedTuple` itself, and a class below one that has its fields, are plain classes.
        if not isinstance(bases[0], _NamedTupleType) or hasattr(bases[0], "_fields"):
            return super().__new__(cls, name, bases, namespace)
        names = tuple(namespace.get("__annotations__", ()))
        defaults = {each: namespace.pop(each) for each in names if each in namespace}
        if tuple(defaults) != names[len(names) - len(defaults) :]:
            raise TypeError(f"{name}: a field without a default follows one with a default")
        getters = {each: _tuplegetter(place, None) for place, each in enumerate(names)}
        more = {"__slots__": (), "_fields": names, "_field_defaults": defaults, "__match_args__": names}
        made: Any = super().__new__(cls, name, bases, {**namespace, **getters, **more})
        made.__new__ = staticmethod(_lazy_new(made))
        return made


def _lazy_new(cls: Any) -> Any:
    """A `__new__` that compiles the real one only for a class that gets many instances, or is called wrongly."""
    names, defaults, left = cls._fields, cls._field_defaults, INSTANCES_WITHOUT_COMPILING

    def __new__(kind: Any, *values: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        rest, known = names[len(values) :], {**defaults, **named}
        if left >= 0 and len(values) <= len(names) and named.keys() <= set(rest) and known.keys() >= set(rest):
            return tuple.__new__(kind, (*values, *[known[each] for each in rest]))
        cls.__new__ = staticmethod(_compile_new(cls))
        return cls.__new__(kind, *values, **named)

    return __new__


def _compile_new(cls: Any) -> Any:
    """Compile `__new__`: its parameters are the fields."""
    values = "".join(f"{each}, " for each in cls._fields)
    known = {"_make": tuple.__new__}
    exec(f"def __new__(_cls, {values}): return _make(_cls, ({values}))", known)  # noqa: S102 - our own field names
    made: Any = known["__new__"]
    made.__defaults__ = tuple(cls._field_defaults.values())
    made.__qualname__ = f"{cls.__qualname__}.__new__"
    return made


class _FastNamedTuple(tuple[Any, ...], metaclass=_NamedTupleType):
    """The methods that all named tuples share."""

    __slots__ = ()
    _fields: tuple[str, ...]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"expected {len(cls._fields)} values, got {len(made)}")
        return made

    def _replace(self, **changes: Any) -> Any:
        made = self._make(changes.pop(name, value) for name, value in zip(self._fields, self, strict=True))
        if changes:
            raise ValueError(f"{type(self).__name__} has no fields {list(changes)}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:
    dataclass, NamedTuple = _fast_dataclass, _FastNamedTuple
