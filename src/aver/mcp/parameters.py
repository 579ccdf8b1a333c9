"""What the tools take: one table each, from which both the JSON Schema and the strict reading come.

    >>> given = read((Parameter("file", "text", "a path", required=True),), {"file": "src/app.py"})
    >>> given["file"]
    'src/app.py'

Nothing is converted: a number is not a text, and 1 is not true. What is not named in the table is refused, so that a
misspelt argument is not passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aver.capsule.canonical import canonical_bytes, has_surrogate
from aver.errors import BadInput

__all__ = ["Parameter", "build_input_schema", "read_arguments"]

ParameterKind = Literal["text", "long text", "texts", "whole number", "truth", "object"]

TEXT_MAX = 16 * 1024
"""Characters of a name or a description, and of one path."""

LONG_MAX = 4 * 1024 * 1024
"""Characters of a diff or an output. A diff that is larger is for a person, and an output is kept by its hash alone."""

TEXTS_MAX = 1000
"""Files that one action names."""

OBJECT_MAX = 1024 * 1024
"""Canonical bytes of a tool's arguments."""

NUMBER_MAX = 2**53
"""Whole numbers up to here are the same in every language."""

_SCHEMAS: Mapping[ParameterKind, dict[str, Any]] = {
    "text": {"type": "string", "maxLength": TEXT_MAX},
    "long text": {"type": "string", "maxLength": LONG_MAX},
    "texts": {"type": "array", "items": {"type": "string", "maxLength": TEXT_MAX}, "maxItems": TEXTS_MAX},
    "whole number": {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX},
    "truth": {"type": "boolean"},
    "object": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool."""

    name: str
    kind: ParameterKind
    about: str
    required: bool = False


def build_input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON Schema of a tool's input."""
    return {
        "type": "object",
        "properties": {one.name: {**_SCHEMAS[one.kind], "description": one.about} for one in parameters},
        "required": [one.name for one in parameters if one.required],
        "additionalProperties": False,
    }


def read_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, checked: all names of the table, None where an optional one was left out or is null."""
    known = {one.name for one in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise BadInput(f"{ascii(name)[:80]} is not an argument of this tool", advice=f"it takes: {listed}")
    values = {}
    for one in parameters:
        value = given.get(one.name)
        if value is None and one.required:
            raise BadInput(f"{one.name} is required")
        values[one.name] = None if value is None else _check_value(one, value)
    return values


def _check_value(one: Parameter, value: Any) -> Any:
    if one.kind == "text":
        return _check_text(one.name, value, TEXT_MAX)
    if one.kind == "long text":
        return _check_text(one.name, value, LONG_MAX)
    if one.kind == "texts":
        if not isinstance(value, list) or len(value) > TEXTS_MAX:
            raise BadInput(f"{one.name} must be a list of at most {TEXTS_MAX} texts")
        return [_check_text(f"{one.name}[{index}]", item, TEXT_MAX) for index, item in enumerate(value)]
    if one.kind == "whole number":
        if type(value) is not int or not 0 <= value <= NUMBER_MAX:
            raise BadInput(f"{one.name} must be a whole number from 0 on")
        return value
    if one.kind == "truth":
        if type(value) is not bool:
            raise BadInput(f"{one.name} must be true or false")
        return value
    if not isinstance(value, dict) or len(canonical_bytes(value)) > OBJECT_MAX:
        raise BadInput(f"{one.name} must be an object of at most {OBJECT_MAX} bytes")
    return value


def _check_text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise BadInput(f"{name} must be a text of at most {longest} characters")
    if has_surrogate(value):
        raise BadInput(f"{name} holds half a character (a lone surrogate)")
    return value
