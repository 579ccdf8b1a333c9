"""Reading JSON that anyone may have written: bounded, unambiguous, with an error that names the place.

A document is refused when it is too large, not UTF-8, not JSON, holds NaN or an infinity, or names one
key twice. `shape` then holds an object to exactly the keys it may have.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from aver.capsule.json_reader import read_json
from aver.errors import BadInput

__all__ = ["check_object", "check_version", "dump_document", "int_field", "parse_document", "text_field", "time_field"]

SHOWN_MAX = 40
"""Characters of a bad value that an error message repeats."""

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{6})?\+00:00", re.ASCII)


def parse_document(raw: bytes, where: str, *, limit: int) -> Any:
    """The JSON value in `raw`, or `BadInput` naming `where`."""
    if len(raw) > limit:
        raise BadInput(f"{where} is larger than {limit} bytes")
    try:
        return read_json(raw)
    except BadInput as error:
        raise BadInput(f"{where} cannot be read: {error.message}") from error


def dump_document(value: Any) -> bytes:
    """The form in which this room writes JSON files: indented, sorted, one final line feed."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def check_object(
    value: Any, where: str, required: frozenset[str], optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """`value` as an object that has every required key and no key beyond the optional ones."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be an object, not {type(value).__name__}")
    for name in sorted(required):
        if name not in value:
            raise BadInput(f"{where} lacks {name!r}")
    for name in value:
        if name not in required and name not in optional:
            raise BadInput(f"{where} has an unknown key {_abbreviate(name)}")
    return value


def check_version(value: Any, where: str) -> None:
    """Every format of this room is at version 1."""
    if type(value) is not int or value != 1:
        raise BadInput(f"{where} is of a version that this Aver does not read", advice="use a newer Aver")


def text_field(value: Any, where: str, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise BadInput(f"{where} has a bad value {_abbreviate(value)}")
    return value


def int_field(value: Any, where: str, *, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise BadInput(f"{where} must be a whole number from {low} to {high}, not {_abbreviate(value)}")
    return value


def time_field(value: Any, where: str) -> str:
    """A UTC timestamp as `aver.clock.now` writes it."""
    text = text_field(value, where, _TIME)
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{where} is not a point in time: {_abbreviate(text)}") from error
    return text


def _abbreviate(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"of type {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
