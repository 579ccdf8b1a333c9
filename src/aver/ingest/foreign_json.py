"""Values that other programs write as JSON: objects, times, counts and prices.

`parse_json` is tolerant. Other programs write NaN and halves of surrogate pairs. Neither stops ingest, and nothing is
lost: the digest of the raw bytes is sealed beside the value. A record with one name twice in an object is unreadable,
because the program that wrote it may have read the other value. Its text is sealed, and no reading of it.

Some agents keep a whole conversation in one JSON text and rewrite it at every turn. `split_array` and `split_object`
return its elements as the bytes in the file. So an element keeps its digest as long as its bytes stay the same:

>>> split_array(b'[{"ts": 1}, "two"]')
[b'{"ts": 1}', b'"two"']
>>> split_object(b'{"a": [1 ,2], "b": null}')["a"]
b'[1 ,2]'

Times become UTC in ISO 8601. A time, count or price that cannot be read is None.

>>> to_utc("2026-05-31T09:00:02.5Z")
'2026-05-31T09:00:02.500000+00:00'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.json_reader import check_token_count
from aver.errors import BadInput
from aver.ingest.contract import RawRecord
from aver.lazy_pattern import lazy_pattern

UNREADABLE = object()
"""The result of `parse_json` for bytes that are no JSON."""


def parse_json(data: RawRecord | bytes | str) -> Any:
    """Return the value of a JSON text; `UNREADABLE` if it is no JSON, too large or too deep."""
    is_record = isinstance(data, RawRecord)
    if isinstance(data, RawRecord):
        if data.size and not data.data:
            return UNREADABLE
        data = data.data
    try:
        value = orjson.loads(data)
        # Counting brackets is much faster than measuring the depth, and proves for most records that they are shallow.
        brackets = data.count(b"[") + data.count(b"{") if isinstance(data, bytes) else data.count("[") + data.count("{")
        if brackets > RECORD_DEPTH_MAX and not _is_shallow_enough(value):
            return UNREADABLE
        # Most agents write what orjson writes. In such a text, no name can be there twice.
        return UNREADABLE if is_record and orjson.dumps(value) != data and _repeats_name(data) else value
    except orjson.JSONDecodeError:
        # orjson refuses NaN, infinities and halves of surrogate pairs. The standard library reads them.
        try:
            text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
            check_token_count(text)
            value = json.loads(text, parse_constant=str, object_pairs_hook=_unique_names if is_record else None)
        except (ValueError, RecursionError, BadInput):
            return UNREADABLE
        return _make_sealable(value) if _is_shallow_enough(value) else UNREADABLE


def _repeats_name(data: bytes | str) -> bool:
    try:
        json.loads(data, parse_constant=str, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError):
        return True
    return False


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def parse_embedded_json(text: Any) -> Any:
    """Return the value of an object or list in a string, as some agents write arguments; other values as they are."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    value = parse_json(text)
    return text if value is UNREADABLE else value


def content_text(content: Any) -> str:
    """Return the text of a message's content: the string, or the texts of its blocks, joined by line ends."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block.get("text") if isinstance(block, dict) else block for block in content)
    return "\n".join(text for text in blocks if isinstance(text, str))


def first_text(values: Any, *names: str) -> str:
    """Return the first of these members of an object that is a text; empty if there is none."""
    members = values if isinstance(values, Mapping) else {}
    return next((text for name in names if isinstance(text := members.get(name), str) and text), "")


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
"""The deepest nesting of a record. The capsule adds a few levels around it."""


_decode_value = json.JSONDecoder().raw_decode
_SPACE = lazy_pattern(r"[ \t\n\r]*")


class _IncompleteJson(Exception):
    """The text ends early or is no list or object. The agent may be writing it now."""


def split_array(data: bytes) -> list[bytes] | None:
    """Return the elements of a list as bytes; None if the text is no list or is incomplete."""
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
    """Return the members of an object as bytes; None if it is none or incomplete. Of a repeated name, the last."""
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
    # `surrogateescape` keeps bytes that are not UTF-8, so that encoding an element gives its original bytes.
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
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
"""More than any real count of tokens. A larger number is an error."""

COST_MAX = 1e9
"""More dollars than any message costs. A larger number is an error."""


def parse_cost(value: Any) -> float | None:
    """Return a price in dollars; None if the value is none."""
    is_price = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < COST_MAX
    return float(value) if is_price else None


def parse_count(value: Any) -> int | None:
    """Return a count; None if the value is none."""
    return value if type(value) is int and 0 <= value < COUNT_MAX else None


def to_utc(text: Any) -> str | None:
    """Return a time of ISO 8601 in UTC, with `+00:00`; None if it is no time. A time without a zone is UTC."""
    return _parse_utc(text) if isinstance(text, str) else None


@lru_cache(maxsize=64)
def _parse_utc(text: str) -> str | None:
    # Cached, because several functions ask for the time of the same record.
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def utc_from_ms(milliseconds: Any) -> str | None:
    """Return the time of milliseconds since 1970; None if the value is no number or out of range."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def ms_between(start: str | None, end: str | None) -> int | None:
    """Return the milliseconds between two times from `to_utc`; None if one is unknown or the clock went back."""
    if start is None or end is None:
        return None
    elapsed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    milliseconds = round(elapsed.total_seconds() * 1000)
    return milliseconds if milliseconds >= 0 else None
