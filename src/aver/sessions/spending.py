"""What was spent in a session: tokens and money, under whichever names a tool counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.ingest.amounts import parse_cost, parse_count

__all__ = ["Consumption", "read_consumption"]


@dataclass(frozen=True, slots=True)
class Consumption:
    """What was spent, as far as it is known: None is not zero."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None

    def __add__(self, other: Consumption) -> Consumption:
        return Consumption(
            _add_known(self.tokens_in, other.tokens_in),
            _add_known(self.tokens_out, other.tokens_out),
            _add_known(self.cost_usd, other.cost_usd),
        )

    def max_with(self, other: Consumption) -> Consumption:
        """The larger of each: for counts that go on growing."""
        return Consumption(
            _max_known(self.tokens_in, other.tokens_in),
            _max_known(self.tokens_out, other.tokens_out),
            _max_known(self.cost_usd, other.cost_usd),
        )


def read_consumption(used: Mapping[str, Any]) -> Consumption:
    """What `execution.resources_used` says: by the names of CPS, or by those of the tools."""
    return Consumption(
        _first_count_sum(used, _TOKENS_IN), _first_count_sum(used, _TOKENS_OUT), _first_cost(used, _COST)
    )


_TOKENS_IN = (
    ("tokens_in",),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_writes", "cache_reads"),
    ("tokensIn", "cacheWrites", "cacheReads"),
    ("inputTokens",),
)
"""Names for what went in, cached or not: the first set of which any is there, summed."""
_TOKENS_OUT = (("tokens_out",), ("output_tokens",), ("tokensOut",), ("outputTokens",))
_COST = ("cost_usd", "cost", "total_cost_usd")


def _first_count_sum(used: Mapping[str, Any], names: tuple[tuple[str, ...], ...]) -> int | None:
    for together in names:
        found = [number for name in together if (number := parse_count(used.get(name))) is not None]
        if found:
            return sum(found)
    return None


def _first_cost(used: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    return next((cost for name in names if (cost := parse_cost(used.get(name))) is not None), None)


def _add_known(one: Any, two: Any) -> Any:
    return two if one is None else one if two is None else one + two


def _max_known(one: Any, two: Any) -> Any:
    return two if one is None else one if two is None else max(one, two)
