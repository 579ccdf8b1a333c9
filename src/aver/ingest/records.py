"""The JSON of other tools: read as tolerantly as it can be, and made such that it can be sealed.

Other tools write what they like: numbers beyond 64 bits, halves of surrogate pairs, a key twice. Nothing of that may
stop us, and none of it is lost: the digest of the raw bytes is sealed beside what was understood.
"""

from __future__ import annotations

from typing import Any

import orjson

from aver.capsule.bounds import refuse_crowded
from aver.capsule.canonical import DEPTH_MAX
from aver.errors import BadInput
from aver.ingest.contract import Raw

__all__ = ["UNREADABLE", "as_json", "parsed", "text_in"]

UNREADABLE = object()
"""What `parsed` gives for bytes that are no JSON."""


def parsed(data: Raw | bytes | str) -> Any:
    """The value of a JSON text; `UNREADABLE` where it is none, is too large, or holds too much."""
    if isinstance(data, Raw):
        if data.size and not data.data:
            return UNREADABLE
        data = data.data
    try:
        value = orjson.loads(data)
        return value if not _may_be_deep(data) or _depth_fits(value) else UNREADABLE
    except orjson.JSONDecodeError:
        return _parsed_leniently(data)


def as_json(text: Any) -> Any:
    """A value that some tools write as JSON inside a string: read if it is an object or list, otherwise as it is."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    value = parsed(text)
    return text if value is UNREADABLE else value


def text_in(content: Any) -> str:
    """The text of a message's content: a string, or the texts of its blocks, one below the other."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block.get("text") if isinstance(block, dict) else block for block in content)
    return "\n".join(text for text in blocks if isinstance(text, str))


def _parsed_leniently(data: bytes | str) -> Any:
    import json  # Here, because a hook pays for it and hardly ever needs it.

    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        refuse_crowded(text)
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError, BadInput):
        return UNREADABLE
    return _mended(value) if _depth_fits(value) else UNREADABLE


def _mended(value: Any) -> Any:
    """The value without what has no canonical form: halves of surrogate pairs become U+FFFD, infinities texts."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value


def _may_be_deep(data: bytes | str) -> bool:
    if isinstance(data, bytes):
        return data.count(b"[") + data.count(b"{") > SEALED_DEPTH
    return data.count("[") + data.count("{") > SEALED_DEPTH


def _depth_fits(value: Any) -> bool:
    level, depth = [value], 0
    while level:
        if depth > SEALED_DEPTH:
            return False
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        depth += 1
    return True


SEALED_DEPTH = DEPTH_MAX - 16
"""Levels of nesting that a record may have, so that a capsule can hold it with room to spare."""
