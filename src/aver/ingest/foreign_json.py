"""JSON of other programs, read tolerantly and made fit to be sealed.

Other programs write numbers beyond 64 bits, halves of surrogate pairs, and a key twice. None of this stops ingest, and
nothing is lost: the digest of the raw bytes is sealed beside the value.

The elements of a JSON list and the members of a JSON object, as the bytes that stand in the file.

Some tools keep a whole conversation in one JSON text and write it anew at every turn. Its elements are records: each is
given as it stands, so that its digest is the same as long as nobody changes it, wherever it moves.

>>> elements(b'[{"ts": 1}, "two"]')
[b'{"ts": 1}', b'"two"']
>>> members(b'{"a": [1 ,2], "b": null}')["a"]
b'[1 ,2]'

Prices and counts that agents write. A value that is no number is None and spoils no sum.

Times as transcripts write them, in the one form in which Aver writes them.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.json_reader import check_token_count
from aver.errors import BadInput
from aver.ingest.contract import RawRecord

UNREADABLE = object()
"""The result of `parse_json` for bytes that are no JSON."""


def parse_json(data: RawRecord | bytes | str) -> Any:
    """The value of a JSON text; `UNREADABLE` where it is none, is too large, or holds too much."""
    if isinstance(data, RawRecord):
        if data.size and not data.data:
            return UNREADABLE
        data = data.data
    try:
        value = orjson.loads(data)
        if isinstance(data, bytes):
            can_be_deep = data.count(b"[") + data.count(b"{") > RECORD_DEPTH_MAX
        else:
            can_be_deep = data.count("[") + data.count("{") > RECORD_DEPTH_MAX
        return value if not can_be_deep or _is_shallow_enough(value) else UNREADABLE
    except orjson.JSONDecodeError:
        import json  # Here, because a hook pays for it and hardly ever needs it.

        try:
            text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
            check_token_count(text)
            leniently_value = json.loads(text, parse_constant=str)
        except (ValueError, RecursionError, BadInput):
            return UNREADABLE
        return _make_sealable(leniently_value) if _is_shallow_enough(leniently_value) else UNREADABLE


def parse_embedded_json(text: Any) -> Any:
    """A value that some tools write as JSON inside a string: read if it is an object or list, otherwise as it is."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    value = parse_json(text)
    return text if value is UNREADABLE else value


def content_text(content: Any) -> str:
    """The text of a message's content: a string, or the texts of its blocks, one below the other."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block.get("text") if isinstance(block, dict) else block for block in content)
    return "\n".join(text for text in blocks if isinstance(text, str))


def _make_sealable(value: Any) -> Any:
    """Return the value with a canonical form: halves of surrogate pairs become U+FFFD, infinities become text."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {_make_sealable(key): _make_sealable(item) for key, item in value.items()}
    return [_make_sealable(item) for item in value] if isinstance(value, list) else value


def _is_shallow_enough(value: Any) -> bool:
    level, depth = [value], 0
    while level:
        if depth > RECORD_DEPTH_MAX:
            return False
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        depth += 1
    return True


RECORD_DEPTH_MAX = DEPTH_MAX - 16
"""Levels of nesting that a record may have, so that a capsule can hold it with room to spare."""


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


COUNT_MAX = 10**15
"""More than any real count of tokens; a larger number is no count."""

COST_MAX = 1e9
"""Dollars of one message; a larger number is no price."""


def parse_cost(value: Any) -> float | None:
    """The value as a price in dollars; None where it is none."""
    is_price = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < COST_MAX
    return float(value) if is_price else None


def parse_count(value: Any) -> int | None:
    """The value as a count; None where it is none."""
    return value if type(value) is int and 0 <= value < COUNT_MAX else None


def to_utc(text: Any) -> str | None:
    """A time in ISO 8601, in UTC as `+00:00`; None where it is no time. One without a zone is UTC: tools mean that."""
    return _parse_utc(text) if isinstance(text, str) else None


@lru_cache(maxsize=64)
def _parse_utc(text: str) -> str | None:
    """A few are remembered: the same time is asked for again and again on a record's way."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def utc_from_ms(milliseconds: Any) -> str | None:
    """Milliseconds since 1970 as a time; None where they are none."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def ms_between(start: str | None, end: str | None) -> int | None:
    """Whole milliseconds from one time to another, as `utc` writes them; None where either is unknown, or the clock
    went backwards."""
    if start is None or end is None:
        return None
    elapsed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    milliseconds = round(elapsed.total_seconds() * 1000)
    return milliseconds if milliseconds >= 0 else None
