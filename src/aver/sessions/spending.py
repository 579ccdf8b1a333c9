"""Reads how many tokens and how much money a step used. Each tool has its own names for these counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.ingest.amounts import parse_cost, parse_count

__all__ = ["Consumption", "read_consumption"]


@dataclass(frozen=True, slots=True)
class Consumption:
    """Tokens and money. None means not known, which is not zero."""

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
        """The larger value of each count, for tools that report running totals."""
        return Consumption(
            _max_known(self.tokens_in, other.tokens_in),
            _max_known(self.tokens_out, other.tokens_out),
            _max_known(self.cost_usd, other.cost_usd),
        )


def read_consumption(used: Mapping[str, Any]) -> Consumption:
    """Read `execution.resources_used`, with the names of CPS or those of a tool."""
    return Consumption(
        _first_count_sum(used, _TOKENS_IN), _first_count_sum(used, _TOKENS_OUT), _first_cost(used, _COST)
    )


_TOKENS_IN = (
    ("tokens_in",),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_writes", "cache_reads"),
    ("tokensIn", "cacheWrites", "cacheReads"),
    ("inputTokens",),
)
"""Names of input tokens, cached or not. The first group with any known name is summed."""
_TOKENS_OUT = (("tokens_out",), ("output_tokens",), ("tokensOut",), ("outputTokens",))
_COST = ("cost_usd", "cost", "total_cost_usd")


def _first_count_sum(used: Mapping[str, Any], names: tuple[tuple[str, ...], ...]) -> int | None:
    for group in names:
        found = [number for name in group if (number := parse_count(used.get(name))) is not None]
        if found:
            return sum(found)
    return None


def _first_cost(used: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    return next((cost for name in names if (cost := parse_cost(used.get(name))) is not None), None)


def _add_known(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else first + second


def _max_known(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else max(first, second)
