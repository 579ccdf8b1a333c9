"""Time and fresh identifiers, in the one form in which Aver writes them.

`now()` is UTC as ISO 8601 with `+00:00` and six fraction digits, or none when the microseconds are
zero: what Python's `isoformat` gives, and so what CPS 2.4 asks for.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

__all__ = ["new_id", "now"]


def now() -> str:
    return datetime.now(UTC).isoformat()


def new_id() -> str:
    """A random UUID (version 4), lower case with hyphens. Written out because `uuid.UUID` costs five times as much."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
