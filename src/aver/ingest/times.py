"""Times as transcripts write them, in the one form in which Aver writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

__all__ = ["ms_between", "to_utc", "utc_from_ms"]


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
