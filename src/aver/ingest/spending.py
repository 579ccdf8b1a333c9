"""What was spent in a session: tokens and money, under whichever names a tool counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.values import dataclass

__all__ = ["Spent", "cost_in", "count_in", "spent_in"]

COUNT_MAX = 10**15
"""More than anything here is counted to; a larger number is none."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent, as far as it is known: None is not zero."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            _sum(self.tokens_in, other.tokens_in),
            _sum(self.tokens_out, other.tokens_out),
            _sum(self.cost_usd, other.cost_usd),
        )

    def most(self, other: Spent) -> Spent:
        """The larger of each: for counts that go on growing."""
        return Spent(
            _largest(self.tokens_in, other.tokens_in),
            _largest(self.tokens_out, other.tokens_out),
            _largest(self.cost_usd, other.cost_usd),
        )


def spent_in(used: Mapping[str, Any]) -> Spent:
    """What `execution.resources_used` says: by the names of CPS, or by those of the tools."""
    return Spent(_firstcount_in(used, _TOKENS_IN), _firstcount_in(used, _TOKENS_OUT), _first_number(used, _COST))


_TOKENS_IN = (
    ("tokens_in",),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_writes", "cache_reads"),
    ("tokensIn", "cacheWrites", "cacheReads"),
    ("inputTokens",),
)
"""Names for what went in, cached or not: the first set of which any is there, summed."""
_TOKENS_OUT = (("tokens_out",), ("output_tokens",), ("tokensOut",), ("outputTokens",))
_COST = ("cost_usd", "cost", "total_cost_usd")


def _firstcount_in(used: Mapping[str, Any], names: tuple[tuple[str, ...], ...]) -> int | None:
    for together in names:
        found = [number for name in together if (number := count_in(used.get(name))) is not None]
        if found:
            return sum(found)
    return None


def _first_number(used: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    return next((cost for name in names if (cost := cost_in(used.get(name))) is not None), None)


COST_MAX = 1e9
"""Dollars of one message. More is no price, and must not spoil a sum."""


def cost_in(value: Any) -> float | None:
    """A value that is a price in dollars; None where it is none."""
    is_price = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < COST_MAX
    return float(value) if is_price else None


def count_in(value: Any) -> int | None:
    """A value that is a count; None where it is none."""
    return value if type(value) is int and 0 <= value < COUNT_MAX else None


def _sum(one: Any, two: Any) -> Any:
    return two if one is None else one if two is None else one + two


def _largest(one: Any, two: Any) -> Any:
    return two if one is None else one if two is None else max(one, two)
