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

__all__ = ["split_array", "split_object"]

_decode_value = json.JSONDecoder().raw_decode
_match_space = re.compile(r"[ \t\n\r]*").match


class _IncompleteJson(Exception):
    """The text ends early, or is something else: it may be in the middle of being written."""


def split_array(data: bytes) -> list[bytes] | None:
    """The elements of a list; None where the text is none, or is not whole."""
    try:
        text = _decode_text(data)
        at = _skip_mark(text, 0, "[")
        found: list[bytes] = []
        if text[at : at + 1] == "]":
            return found if _is_at_end(text, at + 1) else None
        while True:
            start, at = at, _value_end(text, at)
            found.append(text[start:at].encode("utf-8", "surrogateescape"))
            at = _skip_space(text, at)
            if text[at : at + 1] == "]":
                return found if _is_at_end(text, at + 1) else None
            at = _skip_mark(text, at, ",")
    except _IncompleteJson:
        return None


def split_object(data: bytes) -> dict[str, bytes] | None:
    """The members of an object by name; None where the text is none, or is not whole. Of a name twice, the last."""
    try:
        text = _decode_text(data)
        at = _skip_mark(text, 0, "{")
        found: dict[str, bytes] = {}
        if text[at : at + 1] == "}":
            return found if _is_at_end(text, at + 1) else None
        while True:
            end = _value_end(text, at)
            name = json.loads(text[at:end])
            if not isinstance(name, str):
                return None
            start = _skip_mark(text, end, ":")
            at = _value_end(text, start)
            found[name] = text[start:at].encode("utf-8", "surrogateescape")
            at = _skip_space(text, at)
            if text[at : at + 1] == "}":
                return found if _is_at_end(text, at + 1) else None
            at = _skip_mark(text, at, ",")
    except _IncompleteJson:
        return None


def _decode_text(data: bytes) -> str:
    """Bytes that are not UTF-8 come back as they were."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def _skip_space(text: str, at: int) -> int:
    found = _match_space(text, at)
    return at if found is None else found.end()


def _skip_mark(text: str, at: int, mark: str) -> int:
    at = _skip_space(text, at)
    if text[at : at + 1] != mark:
        raise _IncompleteJson
    return _skip_space(text, at + 1)


def _value_end(text: str, at: int) -> int:
    try:
        return _decode_value(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise _IncompleteJson from error


def _is_at_end(text: str, at: int) -> bool:
    return _skip_space(text, at) == len(text)
