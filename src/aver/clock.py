"""The current time and new identifiers, in the forms that Aver writes.

A time is UTC in ISO 8601 with `+00:00`, and six fraction digits unless the microseconds are zero. Python's `isoformat`
writes it so, and CPS 2.4 requires it:

    2026-11-16T23:25:01.042137+00:00

`parse_moment` reads the times that a person types: `2026-05-31`, `2026-05-31T09:00`, or `2h` for two hours ago.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from aver.errors import BadInput
from aver.lazy_pattern import lazy_pattern

_RELATIVE_TIME = lazy_pattern(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def now() -> str:
    """The current time as text."""
    return datetime.now(UTC).isoformat()


def new_id() -> str:
    """A random UUID (version 4), lower case with hyphens. Not by `uuid.UUID`, which takes five times as long."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40  # Version 4.
    raw[8] = raw[8] & 0x3F | 0x80  # The variant of RFC 9562.
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parse_moment(text: str) -> str:
    """A time that a person typed, in the form that records use. A time without a zone is UTC. Raises `BadInput`."""
    try:
        if match := _RELATIVE_TIME.fullmatch(text):
            when = datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        else:
            when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise BadInput(
            f"{text[:80]!r} is not a time: use 2026-05-31, 2026-05-31T09:00 or 2h (s, m, h, d, w) ago"
        ) from None
