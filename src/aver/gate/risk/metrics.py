"""How good predictions are: by rank, by value, and by what they promise. Plain sums over pairs of score and outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from aver.values import dataclass

__all__ = [
    "Bin",
    "area_under_curve",
    "average_precision",
    "binned",
    "brier",
    "brier_skill",
    "calibration_error",
    "mean_of",
    "recall_at",
    "roc_points",
]

Pairs = Sequence[tuple[float, bool]]
"""A score for each case, and whether the case failed."""

CALIBRATION_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose scores lie between two bounds: what was promised for them, and what came."""

    low: float
    high: float
    count: int
    mean_score: float
    failed: int

    @property
    def rate(self) -> float:
        return self.failed / self.count if self.count else 0.0


def area_under_curve(pairs: Pairs) -> float | None:
    """How often a failed case is ranked above one that survived; ties count half. None if either is missing."""
    failed = sum(outcome for _, outcome in pairs)
    survived = len(pairs) - failed
    if not failed or not survived:
        return None
    ranks = 0.0
    for first, group in _tied(sorted(pairs)):
        # The mean rank of a group of ties, counted from 1.
        ranks += (first + (len(group) + 1) / 2) * sum(outcome for _, outcome in group)
    return (ranks - failed * (failed + 1) / 2) / (failed * survived)


def average_precision(pairs: Pairs) -> float | None:
    """The mean of the precision at each failed case, going down from the highest score. None if nothing failed."""
    failed = sum(outcome for _, outcome in pairs)
    if not failed:
        return None
    total = 0.0
    found = 0
    for first, group in _tied(sorted(pairs, key=lambda pair: -pair[0])):
        here = sum(outcome for _, outcome in group)
        found += here
        total += here * found / (first + len(group))
    return total / failed


def brier(pairs: Pairs) -> float | None:
    """The mean square of what scores are off by."""
    return sum((score - outcome) ** 2 for score, outcome in pairs) / len(pairs) if pairs else None


def brier_skill(pairs: Pairs) -> float | None:
    """How much better than always saying these cases' own rate: 1 is perfect, 0 no better, below 0 worse."""
    found = brier(pairs)
    if found is None:
        return None
    rate = sum(outcome for _, outcome in pairs) / len(pairs)
    base = rate * (1 - rate)
    return 1 - found / base if base else None


def calibration_error(pairs: Pairs) -> float | None:
    """The mean distance between promise and rate over ten bins of equal width, weighed by their cases."""
    if not pairs:
        return None
    edges = [number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1)]
    return sum(part.count * abs(part.rate - part.mean_score) for part in binned(pairs, edges)) / len(pairs)


def binned(pairs: Pairs, edges: Sequence[float]) -> list[Bin]:
    """The cases by score: from each edge up to, not including, the next; the last bin has its upper edge too."""
    found = []
    for low, high in pairwise(edges):
        last = high == edges[-1]
        inside = [pair for pair in pairs if low <= pair[0] < high or (last and pair[0] == high)]
        mean = sum(score for score, _ in inside) / len(inside) if inside else 0.0
        found.append(Bin(low, high, len(inside), mean, sum(outcome for _, outcome in inside)))
    return found


def recall_at(pairs: Pairs, share: float) -> float | None:
    """Which part of the failed cases is among this share of cases with the highest scores."""
    failed = sum(outcome for _, outcome in pairs)
    if not failed:
        return None
    highest = sorted(pairs, key=lambda pair: -pair[0])[: round(share * len(pairs))]
    return sum(outcome for _, outcome in highest) / failed


def roc_points(pairs: Pairs) -> list[tuple[float, float]]:
    """The curve from (0, 0) to (1, 1): of those that survived and of those that failed, how many lie above a score."""
    failed = sum(outcome for _, outcome in pairs)
    survived = len(pairs) - failed
    points = [(0.0, 0.0)]
    hits = misses = 0
    for _, group in _tied(sorted(pairs, key=lambda pair: -pair[0])):
        here = sum(outcome for _, outcome in group)
        hits += here
        misses += len(group) - here
        points.append((misses / survived if survived else 0.0, hits / failed if failed else 0.0))
    return points


def _tied(pairs: Iterable[tuple[float, bool]]) -> Iterable[tuple[int, list[tuple[float, bool]]]]:
    """Neighbours of the same score as groups, each with how many came before it."""
    before = 0
    group: list[tuple[float, bool]] = []
    for pair in pairs:
        if group and pair[0] != group[0][0]:
            yield before, group
            before += len(group)
            group = []
        group.append(pair)
    if group:
        yield before, group


def mean_of(function: Callable[[Pairs], float | None], groups: Iterable[Pairs]) -> float | None:
    """The mean over the groups for which there is a value."""
    values = [value for value in map(function, groups) if value is not None]
    return sum(values) / len(values) if values else None
