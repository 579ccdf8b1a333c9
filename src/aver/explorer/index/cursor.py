"""Opaque cursors: where the next page of a list begins.

A cursor is base64url of canonical JSON: the version, a digest of the list's question, and the last place of the page
before. It holds no secret and is not signed. A cursor that somebody made up leads to another page of the same list,
which its reader may see anyway. A cursor of another question, or of an index that was rebuilt since, is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_reader import read_json
from aver.errors import AverError, BadInput

CURSOR_MAX = 2000
"""Longest cursor, in characters. A title, by which sessions may be sorted, is the longest part of one."""

VERSION = 1


def write_cursor(question: Any, place: list[Any]) -> str:
    """The cursor for the page after `place`. `question` is all that decides what the list holds."""
    raw = canonical_bytes({"v": VERSION, "of": _digest(question), "at": place})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def read_cursor(text: str, question: Any, kinds: tuple[type | tuple[type, ...], ...]) -> list[Any]:
    """The place in a cursor. Raises `BadInput` unless it is one for this question, with values of these types."""
    error = BadInput("this cursor does not belong to this list", advice="begin again, without a cursor")
    if len(text) > CURSOR_MAX or not text.isascii():
        raise error
    try:
        value = read_json(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (AverError, ValueError, binascii.Error):
        raise error from None
    if not isinstance(value, dict) or value.get("v") != VERSION or value.get("of") != _digest(question):
        raise error
    place = value.get("at")
    if not isinstance(place, list) or len(place) != len(kinds):
        raise error
    for item, kind in zip(place, kinds, strict=True):
        # A boolean counts as an integer in Python, and means nothing here. SQLite takes 64 bits.
        if not isinstance(item, kind) or isinstance(item, bool) or (isinstance(item, int) and abs(item) >= 2**63):
            raise error
    return place


def _digest(question: Any) -> str:
    return hashlib.sha256(canonical_bytes(question)).hexdigest()[:16]
