"""The parameters of the tools. One table per tool gives both the JSON Schema and the strict check of the arguments.

    >>> given = read_arguments((Parameter("file", "text", "a path", required=True),), {"file": "src/app.py"})
    >>> given["file"]
    'src/app.py'

Aver converts nothing: a number is not a text, and 1 is not true. It refuses arguments that are not in the table, so
that it never ignores a misspelt name.
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
"""The maximum length of a name, a description or one path."""

LONG_MAX = 4 * 1024 * 1024
"""The maximum length of a diff or an output."""

TEXTS_MAX = 1000
"""The maximum number of files of one action."""

OBJECT_MAX = 1024 * 1024
"""The maximum canonical size, in bytes, of the arguments of a tool."""

NUMBER_MAX = 2**53
"""The largest number. Every language reads whole numbers up to this limit exactly."""

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
    """One parameter of a tool."""

    name: str
    kind: ParameterKind
    about: str
    required: bool = False


def build_input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of the input of a tool."""
    return {
        "type": "object",
        "properties": {
            parameter.name: {**_SCHEMAS[parameter.kind], "description": parameter.about} for parameter in parameters
        },
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def read_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the arguments and return a value for each parameter; None if an optional one is absent or null.

    Raises `BadInput` for an unknown, missing or invalid argument.
    """
    known = {parameter.name for parameter in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise BadInput(f"{ascii(name)[:80]} is not an argument of this tool", advice=f"it takes: {listed}")
    values = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None and parameter.required:
            raise BadInput(f"{parameter.name} is required")
        values[parameter.name] = None if value is None else _check_value(parameter, value)
    return values


def _check_value(parameter: Parameter, value: Any) -> Any:
    if parameter.kind == "text":
        return _check_text(parameter.name, value, TEXT_MAX)
    if parameter.kind == "long text":
        return _check_text(parameter.name, value, LONG_MAX)
    if parameter.kind == "texts":
        if not isinstance(value, list) or len(value) > TEXTS_MAX:
            raise BadInput(f"{parameter.name} must be a list of at most {TEXTS_MAX} texts")
        return [_check_text(f"{parameter.name}[{index}]", item, TEXT_MAX) for index, item in enumerate(value)]
    if parameter.kind == "whole number":
        if type(value) is not int or not 0 <= value <= NUMBER_MAX:
            raise BadInput(f"{parameter.name} must be a whole number from 0 on")
        return value
    if parameter.kind == "truth":
        if type(value) is not bool:
            raise BadInput(f"{parameter.name} must be true or false")
        return value
    if not isinstance(value, dict) or len(canonical_bytes(value)) > OBJECT_MAX:
        raise BadInput(f"{parameter.name} must be an object of at most {OBJECT_MAX} bytes")
    return value


def _check_text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise BadInput(f"{name} must be a text of at most {longest} characters")
    if has_surrogate(value):
        raise BadInput(f"{name} holds half a character (a lone surrogate)")
    return value
