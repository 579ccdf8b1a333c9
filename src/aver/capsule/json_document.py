"""Small JSON documents in files: read with a limit, checked field by field, written in one form.

The strict reader refuses a document that is too large, not UTF-8, not JSON, holds NaN or an infinity, or has one key
twice. `check_object` then checks that an object has exactly the keys that it may have. Each error names the place.

`read_exactly` reads what somebody has signed. A signature covers a document's content, not its bytes. So whoever
carries the file could write the same content anew: a browser, for example, sees markup where JSON had an escaped `<`.
Therefore the writer of such a document and its reader share one function that makes its bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from aver.capsule.json_reader import read_json
from aver.errors import BadInput, NotExact
from aver.lazy_pattern import lazy_pattern

SHOWN_MAX = 40
"""Characters of a bad value that an error message repeats."""

_TIME = lazy_pattern(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{6})?\+00:00", re.ASCII)


def parse_document(raw: bytes, where: str, *, limit: int) -> Any:
    """Parse a document strictly. `BadInput`, which names `where`, if it cannot be read."""
    if len(raw) > limit:
        raise BadInput(f"{where} is larger than {limit} bytes")
    try:
        return read_json(raw)
    except BadInput as error:
        raise BadInput(f"{where} cannot be read: {error.message}") from error


_Found = TypeVar("_Found")


def read_exactly(raw: bytes, where: str, read: Callable[[Any], _Found], *forms: Callable[[_Found], bytes]) -> _Found:
    """Read a document that is good only in its maker's bytes: those that one of `forms` makes of what `read` found.

    `read` checks the parsed JSON. Raises `NotExact` for other bytes, and `BadInput` as `read` and the strict reader do.
    """
    found = read(read_json(raw))
    if all(form(found) != raw for form in forms):
        words = f"{where} is not written, byte for byte, as Aver writes it: it was changed on its way"
        raise NotExact(words, advice="get the file again from its maker, as it is")
    return found


def order_keys(value: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """An object with these keys in this order, as far as it has them. `read_exactly` then refuses any other key."""
    return {name: value[name] for name in names if name in value}


def dump_document(value: Any) -> bytes:
    """Write a document: ASCII, indented, keys sorted, with a final line feed."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def check_object(
    value: Any, where: str, required: frozenset[str], optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return `value` if it is an object with every required key and no others but the optional ones."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be an object, not {type(value).__name__}")
    if value.keys() == required:
        return value  # As nearly always: verifiers check some objects of every record.
    for name in sorted(required):
        if name not in value:
            raise BadInput(f"{where} lacks {name!r}")
    for name in value:
        if name not in required and name not in optional:
            raise BadInput(f"{where} has an unknown key {_abbreviate(name)}")
    return value


def check_version(value: Any, where: str) -> None:
    """Raise `BadInput` unless the version is 1, the only one there is."""
    if type(value) is not int or value != 1:
        raise BadInput(f"{where} is of a version that this Aver does not read", advice="use a newer Aver")


def text_field(value: Any, where: str, pattern: re.Pattern[str]) -> str:
    """Return a string that matches the whole pattern; `BadInput` for any other value."""
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise BadInput(f"{where} has a bad value {_abbreviate(value)}")
    return value


def int_field(value: Any, where: str, *, low: int, high: int) -> int:
    """Return an integer from `low` to `high`; `BadInput` for any other value, booleans included."""
    if type(value) is not int or not low <= value <= high:
        raise BadInput(f"{where} must be a whole number from {low} to {high}, not {_abbreviate(value)}")
    return value


def time_field(value: Any, where: str) -> str:
    """Return a UTC timestamp as `aver.clock.now` writes it; `BadInput` for any other value."""
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise BadInput(f"{where} has a bad value {_abbreviate(value)}")
    # The pattern allows a 31 February: only a calendar finds it.
    try:
        datetime.fromisoformat(value)
    except ValueError as error:
        raise BadInput(f"{where} is not a point in time: {_abbreviate(value)}") from error
    return value


def _abbreviate(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"of type {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
