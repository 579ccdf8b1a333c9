"""Prices and counts that agents write. A value that is no number is None and spoils no sum."""

from __future__ import annotations

from typing import Any

__all__ = ["parse_cost", "parse_count"]

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
