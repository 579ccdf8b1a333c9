"""Render any Python value as JSON for a record: typed, bounded, and without running the value's own code.

    None, bool, int, float, str, list, dict with text keys    unchanged; a tuple as a list
    everything else        {"$type": <its type>, ...} with the parts that can be read safely:
      text                 of dates and times, Decimal, Fraction, UUID, paths, exceptions, bytes that are UTF-8,
                           and of numbers and texts that JSON cannot hold (NaN, lone surrogates)
      base64               of other bytes
      fields               of dataclasses, named tuples, attrs and pydantic classes, without those that have
                           `repr=False`
      items                of sets, and of dicts whose keys are not text (as pairs)
      name, value          of an enumeration's member; name of a class or function

Of any other object only the type is recorded: its `repr` could be slow, fail, or show secrets. The same applies to
values that are nested too deep. After too many values the rest is cut, and `length` gives the full length. Fields are
read from instance dictionaries and slots, never from properties. If reading a value fails, only its type is recorded.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from aver.capsule.canonical import canonical_json, has_surrogate

DEPTH_MAX = 24
"""Deepest nesting that is recorded. A value that contains itself reaches it."""

VALUES_MAX = 20_000
"""Most values of one argument or result that are recorded. Rendering delays the audited call."""

TEXT_MAX = 16 * 1024 * 1024
"""Most characters of one text, or bytes, that are recorded. Masking and sealing them delays the call."""

LAST_WORD_MAX = 4096
"""How much more than necessary is cut at most, to end between two words."""

INTEGER_BITS_MAX = 10_000
"""Largest integer that is written out. Larger ones take long, and Python refuses more than 4300 digits."""

_TEXT_WRITERS: dict[type, Callable[[Any], str]] = {
    datetime.datetime: datetime.datetime.isoformat,
    datetime.date: datetime.date.isoformat,
    datetime.time: datetime.time.isoformat,
    datetime.timedelta: datetime.timedelta.__str__,
    decimal.Decimal: decimal.Decimal.__str__,
    fractions.Fraction: fractions.Fraction.__str__,
    uuid.UUID: uuid.UUID.__str__,
    complex: complex.__repr__,
    range: range.__repr__,
    types.EllipsisType: lambda _: "...",
}
_NAMED_TYPES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


def render_value(value: Any) -> Any:
    """Render a value as JSON. Never raises, whatever the value is or does."""
    return _Renderer().render(value, 0)


def type_name(kind: type) -> str:
    """The full name of a class: `package.module.Class`, or `int` for a builtin."""
    try:
        name = str(type.__dict__["__qualname__"].__get__(kind))
        module = type.__dict__["__module__"].__get__(kind)
    except Exception:  # noqa: BLE001 - a metaclass may return anything
        return "object"
    return clean_text(name if module in ("builtins", None) or type(module) is not str else f"{module}.{name}")


def clean_text(text: str) -> str:
    """The text with lone surrogates escaped, because UTF-8 cannot hold them."""
    return text if text.isascii() or not has_surrogate(text) else text.encode("utf-8", "backslashreplace").decode()


def _shorten(text: str) -> str:
    """Cut a text at the limit, before the last word, because masking does not recognise half a secret."""
    if len(text) <= TEXT_MAX:
        return text
    space = max(
        text.rfind(" ", TEXT_MAX - LAST_WORD_MAX, TEXT_MAX), text.rfind("\n", TEXT_MAX - LAST_WORD_MAX, TEXT_MAX)
    )
    return text[: space if space != -1 else TEXT_MAX - LAST_WORD_MAX]


def exception_text(error: BaseException) -> str:
    """The text of an exception."""
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - an error in `__str__` must not replace the exception
        return f"(its text could not be read: {type_name(type(failure))})"
    return _shorten(clean_text(str.__str__(text)))


class _Renderer:
    """Renders one value, and counts how many parts may still follow."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = VALUES_MAX

    def render(self, value: Any, depth: int) -> Any:
        self._left -= 1
        kind = type(value)
        if value is None or kind is bool:
            return value
        try:
            if kind in _RENDERERS:
                return _RENDERERS[kind](value)
            if depth > DEPTH_MAX:
                return _typed_object(kind, cut="too deep")
            return self._render_container(kind, value, depth + 1)
        except Exception as error:  # noqa: BLE001 - no value may make recording fail
            return _typed_object(kind, unreadable=type_name(type(error)))

    def _render_container(self, kind: type, value: Any, depth: int) -> Any:
        if kind is dict or kind is collections.OrderedDict or kind is collections.defaultdict:
            return self._render_dict(kind, value, depth)
        if kind is list or kind is tuple:
            return self._render_list(kind, value, depth)
        if kind in (set, frozenset, collections.deque):
            items = self._render_items(value, depth)
            ordered = items if kind is collections.deque else sorted(items, key=canonical_json)
            return _typed_object(kind, items=ordered, **_length_if_cut(value, items))
        if issubclass(kind, enum.Enum):
            member = object.__getattribute__(value, "_name_")
            return _typed_object(kind, name=member, value=self.render(object.__getattribute__(value, "_value_"), depth))
        if issubclass(kind, BaseException):
            return _typed_object(kind, text=exception_text(value))
        if issubclass(kind, type):
            return _typed_object(type, name=type_name(value))
        if kind in _NAMED_TYPES:
            return _typed_object(kind, name=clean_text(str(getattr(value, "__qualname__", value.__name__))))
        fields = _field_names(kind)
        if fields is not None:
            stored = {name: _read_field(value, kind, name) for name in fields}
            shown = {name: self.render(item, depth) for name, item in stored.items() if item is not _UNSET}
            return _typed_object(kind, fields=shown)
        # Render an instance of a subclass of a known class, by the code of the known class.
        for base, read in _RENDERERS.items():
            if issubclass(kind, base):
                return _typed_object(kind, value=read(value))
        if issubclass(kind, dict):
            return _typed_object(kind, value=self._render_dict(dict, dict(dict.items(value)), depth))
        if issubclass(kind, list | tuple):
            base = list if issubclass(kind, list) else tuple
            return _typed_object(kind, value=self._render_list(base, list(base.__iter__(value)), depth))
        return _typed_object(kind)

    def _render_dict(self, kind: type, value: dict[Any, Any], depth: int) -> Any:
        if not all(type(key) is str for key in islice(value, VALUES_MAX)):
            pairs = self._render_items(value.items(), depth)
            return _typed_object(kind, items=pairs, **_length_if_cut(value, pairs))
        fields: dict[str, Any] = {}
        for key, item in list(value.items()):
            if self._left <= 0:
                return _typed_object(kind, length=len(value), fields=fields)
            fields[clean_text(key)] = self.render(item, depth)
        return fields

    def _render_list(self, kind: type, value: Iterable[Any], depth: int) -> Any:
        whole = list(value)
        items = self._render_items(whole, depth)
        return items if len(items) == len(whole) else _typed_object(kind, length=len(whole), items=items)

    def _render_items(self, values: Iterable[Any], depth: int) -> list[Any]:
        items = []
        for item in list(values):
            if self._left <= 0:
                break
            items.append(self.render(item, depth))
        return items


def _typed_object(kind: type, **facts: Any) -> dict[str, Any]:
    return {"$type": type_name(kind), **facts}


def _length_if_cut(value: Any, items: list[Any]) -> dict[str, int]:
    return {} if len(items) == len(value) else {"length": len(value)}


# --- values without parts


def _render_integer(value: int) -> Any:
    bits = int.bit_length(value)
    return int.__int__(value) if bits <= INTEGER_BITS_MAX else _typed_object(int, bits=bits)


def _render_float(value: float) -> Any:
    plain = float.__float__(value)
    return plain if abs(plain) < float("inf") else _typed_object(float, text=float.__repr__(value))


def _render_string(value: str) -> Any:
    plain = str.__str__(value)
    if len(plain) > TEXT_MAX:
        return _typed_object(str, length=len(plain), text=clean_text(_shorten(plain)))
    return plain if plain.isascii() or not has_surrogate(plain) else _typed_object(str, text=clean_text(plain))


def _render_bytes(value: bytes | bytearray | memoryview) -> dict[str, Any]:
    kind = type(value)
    size = value.nbytes if isinstance(value, memoryview) else len(value)
    data = bytes(value[:TEXT_MAX])
    cut = {} if size <= TEXT_MAX else {"length": size}
    try:
        return _typed_object(kind, text=data.decode("utf-8"), **cut)
    except UnicodeDecodeError:
        return _typed_object(kind, base64=base64.b64encode(data).decode("ascii"), **cut)


def _text_renderer(kind: type) -> Callable[[Any], dict[str, Any]]:
    write = _TEXT_WRITERS[kind]
    return lambda value: _typed_object(kind, text=clean_text(write(value)))


def _render_path(value: pathlib.PurePath) -> dict[str, Any]:
    return _typed_object(type(value), text=clean_text(pathlib.PurePath.__str__(value)))


_RENDERERS: dict[type, Callable[[Any], Any]] = {
    str: _render_string,
    int: _render_integer,
    float: _render_float,
    bytes: _render_bytes,
    bytearray: _render_bytes,
    memoryview: _render_bytes,
    **{kind: _text_renderer(kind) for kind in _TEXT_WRITERS},
    **dict.fromkeys((pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath), _render_path),
}


# --- fields


def _field_names(kind: type) -> list[str] | None:
    """The fields that a class declares and shows in its repr; None if it declares no fields."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.repr]
    if issubclass(kind, tuple):
        names = _class_attribute(kind, "_fields")
        return list(names) if type(names) is tuple and all(type(name) is str for name in names) else None
    attributes = _class_attribute(kind, "__attrs_attrs__")
    if isinstance(attributes, tuple):
        return [attribute.name for attribute in attributes if attribute.repr]
    fields = _class_attribute(kind, "__pydantic_fields__")
    if type(fields) is dict:
        return [name for name, field in fields.items() if getattr(field, "repr", True)]
    return None


def _class_attribute(kind: type, name: str) -> Any:
    return next((base.__dict__[name] for base in _bases(kind) if name in base.__dict__), None)


def _bases(kind: type) -> Iterator[type]:
    yield from type.__dict__["__mro__"].__get__(kind)


def _read_field(value: Any, kind: type, name: str) -> Any:
    """Read the stored value of a field from the instance's dictionary, a slot or a tuple."""
    if issubclass(kind, tuple):
        return tuple.__getitem__(value, _class_attribute(kind, "_fields").index(name))
    for base in _bases(kind):
        slot = base.__dict__.get(name)
        if type(slot) is types.MemberDescriptorType:
            try:
                return slot.__get__(value)
            except AttributeError:
                return _UNSET
    return object.__getattribute__(value, "__dict__").get(name, _UNSET)


_UNSET = object()
