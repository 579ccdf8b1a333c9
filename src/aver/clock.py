"""The current time and new identifiers, in the forms that Aver writes.

A time is UTC in ISO 8601 with `+00:00`, and six fraction digits unless the microseconds are zero. Python's `isoformat`
writes it so, and CPS 2.4 requires it:

    2026-11-16T23:25:01.042137+00:00
"""

from __future__ import annotations

import os
from datetime import UTC, datetime


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
