"""The elements of a JSON list and the members of a JSON object, as the bytes that stand in the file.

Some tools keep a whole conversation in one JSON text and write it anew at every turn. Its elements are records: each is
given as it stands, so that its digest is the same as long as nobody changes it, wherever it moves.

>>> elements(b'[{"ts": 1}, "two"]')
[b'{"ts": 1}', b'"two"']
>>> members(b'{"a": [1 ,2], "b": null}')["a"]
b'[1 ,2]'
"""

from __future__ import annotations

import json
import re

__all__ = ["elements", "members"]

_value_at = json.JSONDecoder().raw_decode
_space = re.compile(r"[ \t\n\r]*").match


class _Torn(Exception):
    """The text ends early, or is something else: it may be in the middle of being written."""


def elements(data: bytes) -> list[bytes] | None:
    """The elements of a list; None where the text is none, or is not whole."""
    try:
        text = _text(data)
        at = _after(text, 0, "[")
        found: list[bytes] = []
        if text[at : at + 1] == "]":
            return found if _ended(text, at + 1) else None
        while True:
            start, at = at, _end_of_value(text, at)
            found.append(text[start:at].encode("utf-8", "surrogateescape"))
            at = _skip(text, at)
            if text[at : at + 1] == "]":
                return found if _ended(text, at + 1) else None
            at = _after(text, at, ",")
    except _Torn:
        return None


def members(data: bytes) -> dict[str, bytes] | None:
    """The members of an object by name; None where the text is none, or is not whole. Of a name twice, the last."""
    try:
        text = _text(data)
        at = _after(text, 0, "{")
        found: dict[str, bytes] = {}
        if text[at : at + 1] == "}":
            return found if _ended(text, at + 1) else None
        while True:
            end = _end_of_value(text, at)
            name = json.loads(text[at:end])
            if not isinstance(name, str):
                return None
            start = _after(text, end, ":")
            at = _end_of_value(text, start)
            found[name] = text[start:at].encode("utf-8", "surrogateescape")
            at = _skip(text, at)
            if text[at : at + 1] == "}":
                return found if _ended(text, at + 1) else None
            at = _after(text, at, ",")
    except _Torn:
        return None


def _text(data: bytes) -> str:
    """Bytes that are not UTF-8 come back as they were."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return at if found is None else found.end()


def _after(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != mark:
        raise _Torn
    return _skip(text, at + 1)


def _end_of_value(text: str, at: int) -> int:
    try:
        return _value_at(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise _Torn from error


def _ended(text: str, at: int) -> bool:
    return _skip(text, at) == len(text)
