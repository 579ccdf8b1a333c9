"""JSON of other programs, read tolerantly and made fit to be sealed.

Other programs write numbers beyond 64 bits, halves of surrogate pairs, and a key twice. None of this stops ingest, and
nothing is lost: the digest of the raw bytes is sealed beside the value.
"""

from __future__ import annotations

from typing import Any

import orjson

from aver.capsule.canonical import DEPTH_MAX
from aver.capsule.json_reader import check_token_count
from aver.errors import BadInput
from aver.ingest.contract import RawRecord

__all__ = ["UNREADABLE", "content_text", "parse_embedded_json", "parse_json"]

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
        return value if not _can_be_deep(data) or _is_shallow_enough(value) else UNREADABLE
    except orjson.JSONDecodeError:
        return _parse_leniently(data)


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


def _parse_leniently(data: bytes | str) -> Any:
    import json  # Here, because a hook pays for it and hardly ever needs it.

    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        check_token_count(text)
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError, BadInput):
        return UNREADABLE
    return _make_sealable(value) if _is_shallow_enough(value) else UNREADABLE


def _make_sealable(value: Any) -> Any:
    """Return the value with a canonical form: halves of surrogate pairs become U+FFFD, infinities become text."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {_make_sealable(key): _make_sealable(item) for key, item in value.items()}
    return [_make_sealable(item) for item in value] if isinstance(value, list) else value


def _can_be_deep(data: bytes | str) -> bool:
    if isinstance(data, bytes):
        return data.count(b"[") + data.count(b"{") > RECORD_DEPTH_MAX
    return data.count("[") + data.count("{") > RECORD_DEPTH_MAX


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
