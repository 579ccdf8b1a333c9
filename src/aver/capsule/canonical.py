"""Canonical bytes: the one form of a JSON value that Aver hashes and signs (CPS 2).

    >>> canonical_bytes({"b": [1, 2.5, None], "a": "é\\n"}).decode()
    '{"a":"é\\\\n","b":[1,2.5,null]}'

The rules, in order:

1. Object keys are strings, sorted by code point at every level; arrays keep their order.
2. No white space. UTF-8. Non-ASCII characters, `/` and U+007F are not escaped.
3. Strings escape `"`, `\\` and U+0000–001F: `\\b \\t \\n \\f \\r` where JSON has a short form, else `\\u00xx`
   in lower case.
4. Integers are written exactly, however large. Other numbers as Python's `repr` writes a float.
5. `reasoning.confidence` and `reasoning.options[].feasibility` are floats: `1` is written `1.0`.
6. NaN, infinities, non-string keys, lone surrogates and values that are not JSON have no canonical form:
   `NotCanonical` names the place.

`json.dumps` follows these rules, but is slow and accepts more than rule 6 allows. `orjson` is fast, accepts even more,
and writes tiny floats and huge integers differently. So Aver scans every value once (`needs_exact_writer`). The scan
refuses values without a canonical form and finds out whether the slow, exact writer is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from aver.errors import NotCanonical

DEPTH_MAX = 200
"""Deepest nesting that Aver writes or reads. orjson stops at 254; no real record is nearly as deep."""

NODES_MAX = 2_000_000
"""Most values that `_locate_problem` looks at to find the one without a canonical form."""

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
"""Integers that orjson writes; it reads and writes 64 bits, signed or unsigned."""

_FLOAT_PLAIN_MIN, _FLOAT_PLAIN_END, _INFINITY = 1e-4, 1e16, float("inf")
"""Within these limits neither Python nor orjson writes an exponent, and both write the same digits."""


def canonical_bytes(value: Any) -> bytes:
    """The canonical bytes of a capsule's content, or of any JSON value; `NotCanonical` if it has none."""
    if isinstance(value, dict) and "reasoning" in value:
        value = coerce_float_fields(value)
    return canonical_json(value)


def canonical_json(value: Any) -> bytes:
    """Canonical bytes without rule 5, for values that are not capsules. `NotCanonical` if there are none."""
    try:
        if not needs_exact_writer((value,)):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return _write_exact(value, ensure_ascii=False)
    except NotCanonical:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise _locate_problem(value, error) from error


def ascii_json(value: Any) -> bytes:
    """Sorted compact JSON in pure ASCII, as CapSeal receipts and SecureClaw request hashes use it."""
    try:
        if not needs_exact_writer((value,)):
            try:
                written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
                if written.isascii() and b"\x7f" not in written:  # U+007F is ASCII, but ASCII JSON escapes it.
                    return written
            except TypeError:
                pass  # The exact writer takes the value, or names the place of the problem.
        return _write_exact(value, ensure_ascii=True)
    except NotCanonical:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise _locate_problem(value, error) from error


def coerce_float_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Rule 5: a copy of the content with the float-typed fields as floats. The argument is not changed."""
    reasoning = content.get("reasoning")
    if not isinstance(reasoning, dict):
        return content
    changed: dict[str, Any] = {}
    confidence = reasoning.get("confidence")
    if type(confidence) is int:
        changed["confidence"] = _to_float(confidence, "reasoning.confidence")
    options = reasoning.get("options")
    if isinstance(options, list | tuple) and any(
        isinstance(option, dict) and type(option.get("feasibility")) is int for option in options
    ):
        changed["options"] = [
            {
                **option,
                "feasibility": _to_float(option["feasibility"], f"reasoning.options[{index}].feasibility"),
            }
            if isinstance(option, dict) and type(option.get("feasibility")) is int
            else option
            for index, option in enumerate(options)
        ]
    return {**content, "reasoning": {**reasoning, **changed}} if changed else content


def _to_float(number: int, path: str) -> float:
    try:
        return float(number)
    except OverflowError as error:
        raise NotCanonical("is too large for a float", path=path) from error


def needs_exact_writer(values: Iterable[Any], depth: int = 0) -> bool:
    """Rule 6: scan values, at most `depth` levels down in the whole. Returns whether the exact writer is needed.

    Raises `TypeError` or `NotCanonical` for a value without a canonical form. `canonical_json` of the whole then names
    the place. The writers check the keys: orjson takes only strings, and `_write_exact` looks at them first. A value
    that contains itself exceeds `DEPTH_MAX` like any other value that is too deep.
    """
    if depth > DEPTH_MAX:
        raise NotCanonical(f"nested deeper than {DEPTH_MAX} levels")
    exact = False
    for value in values:
        kind = type(value)
        if kind is str:
            continue
        if kind is dict:
            if (value or depth == DEPTH_MAX) and needs_exact_writer(value.values(), depth + 1):
                exact = True
        elif kind is list:
            if (value or depth == DEPTH_MAX) and needs_exact_writer(value, depth + 1):
                exact = True
        elif kind is int:
            if not _INT_MIN <= value <= _INT_MAX:
                exact = True
        elif kind is float:
            if not (_FLOAT_PLAIN_MIN <= value < _FLOAT_PLAIN_END or value == 0.0):
                if not abs(value) < _INFINITY:
                    raise TypeError
                exact = True
        elif value is not None and kind is not bool:
            if kind is not tuple and not isinstance(value, dict | list):
                raise TypeError
            if needs_exact_writer(value.values() if isinstance(value, dict) else value, depth + 1):
                exact = True
    return exact


def _write_exact(value: Any, *, ensure_ascii: bool) -> bytes:
    # All keys must be strings: `json.dumps` would turn 1, True and None into keys.
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if not all(type(key) is str for key in part):
                raise _locate_problem(value)
            stack.extend(part.values())
        elif isinstance(part, list | tuple):
            stack.extend(part)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=ensure_ascii, allow_nan=False)
    return text.encode("utf-8")


def _locate_problem(root: Any, cause: Exception | None = None) -> NotCanonical:
    """Build the error that names the first place without a canonical form. Slow; runs only when there is one."""
    # One iterator for each open level, and the step taken there. Only the path of the problem is written out, because
    # keys may be long and places many.
    levels: list[Iterator[tuple[str | int, Any]]] = [iter([("", root)])]
    steps: list[str | int] = []
    for _ in range(NODES_MAX):
        while levels and (taken := next(levels[-1], None)) is None:
            levels.pop()
        if not levels or taken is None:
            break
        step, value = taken
        del steps[len(levels) - 1 :]
        steps.append(step)
        problem = _value_problem(value)
        for key in value if isinstance(value, Mapping) and problem is None else ():
            if type(key) is not str:
                problem = f"key {key!r} is not a string"
            elif has_surrogate(key):
                problem = "a key holds a lone surrogate, which UTF-8 cannot carry"
            if problem:
                break
        if problem:
            path = "".join(f"[{step}]" if type(step) is int else f".{step}" for step in steps[1:]).removeprefix(".")
            return NotCanonical(problem, path=path)
        if isinstance(value, Mapping):
            levels.append(iter(value.items()))
        elif isinstance(value, list | tuple):
            levels.append(enumerate(value))
    return NotCanonical(f"has no canonical form: {cause}" if cause else "has no canonical form")


def _value_problem(value: Any) -> str | None:
    if type(value) is str:
        return "holds a lone surrogate, which UTF-8 cannot carry" if has_surrogate(value) else None
    if type(value) is float:
        return None if abs(value) < _INFINITY else f"{value} is not a JSON number"
    if type(value) is int:
        try:
            str(value)
        except ValueError:
            return "is an integer with too many digits"
        return None
    if value is None or type(value) in (bool, tuple) or isinstance(value, dict | list):
        return None
    return f"a {type(value).__name__} is not a JSON value"


def has_surrogate(text: str) -> bool:
    """Whether a text has a lone surrogate, half a character, which neither UTF-8 nor a store can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
