"""How good predictions are: by rank, by value, and by what they promise. Plain sums over pairs of score and outcome.

How well the model does on a history it has not seen, by one fixed protocol.

Cases are the commits that touch source files; the last 180 days are left out, because their labels are still open. The
last 30 % of the cases, in the order of time, are judged: each was scored with what was known at its time. Ranking is by
the fixed score, values by the moving level. Rates are of the cases that are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gate.decision import Thresholds
from aver.gate.risk.history.fixes import FIX_WINDOW
from aver.gate.risk.history.learn import CommitSample, ScoredSample, score_in_time_order
from aver.gate.risk.model import Score

__all__ = [
    "Bin",
    "Bucket",
    "Evaluation",
    "SizeClass",
    "area_under_curve",
    "average_precision",
    "brier_score",
    "brier_skill",
    "calibration_error",
    "choose_bucket",
    "evaluate",
    "mean_over_groups",
    "recall_at",
    "roc_points",
    "select_cases",
    "split_into_bins",
]


ScoreOutcomePairs = Sequence[tuple[float, bool]]
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


def area_under_curve(pairs: ScoreOutcomePairs) -> float | None:
    """How often a failed case is ranked above one that survived; ties count half. None if either is missing."""
    failed = sum(outcome for _, outcome in pairs)
    survived = len(pairs) - failed
    if not failed or not survived:
        return None
    ranks = 0.0
    for first, group in _group_ties(sorted(pairs)):
        # The mean rank of a group of ties, counted from 1.
        ranks += (first + (len(group) + 1) / 2) * sum(outcome for _, outcome in group)
    return (ranks - failed * (failed + 1) / 2) / (failed * survived)


def average_precision(pairs: ScoreOutcomePairs) -> float | None:
    """The mean of the precision at each failed case, going down from the highest score. None if nothing failed."""
    failed = sum(outcome for _, outcome in pairs)
    if not failed:
        return None
    total = 0.0
    found = 0
    for first, group in _group_ties(sorted(pairs, key=lambda pair: -pair[0])):
        here = sum(outcome for _, outcome in group)
        found += here
        total += here * found / (first + len(group))
    return total / failed


def brier_score(pairs: ScoreOutcomePairs) -> float | None:
    """The mean square of what scores are off by."""
    return sum((score - outcome) ** 2 for score, outcome in pairs) / len(pairs) if pairs else None


def brier_skill(pairs: ScoreOutcomePairs) -> float | None:
    """How much better than always saying these cases' own rate: 1 is perfect, 0 no better, below 0 worse."""
    found = brier_score(pairs)
    if found is None:
        return None
    rate = sum(outcome for _, outcome in pairs) / len(pairs)
    base = rate * (1 - rate)
    return 1 - found / base if base else None


def calibration_error(pairs: ScoreOutcomePairs) -> float | None:
    """The mean distance between promise and rate over ten bins of equal width, weighed by their cases."""
    if not pairs:
        return None
    edges = [number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1)]
    return sum(part.count * abs(part.rate - part.mean_score) for part in split_into_bins(pairs, edges)) / len(pairs)


def split_into_bins(pairs: ScoreOutcomePairs, edges: Sequence[float]) -> list[Bin]:
    """The cases by score: from each edge up to, not including, the next; the last bin has its upper edge too."""
    found = []
    for low, high in pairwise(edges):
        last = high == edges[-1]
        inside = [pair for pair in pairs if low <= pair[0] < high or (last and pair[0] == high)]
        mean = sum(score for score, _ in inside) / len(inside) if inside else 0.0
        found.append(Bin(low, high, len(inside), mean, sum(outcome for _, outcome in inside)))
    return found


def recall_at(pairs: ScoreOutcomePairs, share: float) -> float | None:
    """Which part of the failed cases is among this share of cases with the highest scores."""
    failed = sum(outcome for _, outcome in pairs)
    if not failed:
        return None
    highest = sorted(pairs, key=lambda pair: -pair[0])[: round(share * len(pairs))]
    return sum(outcome for _, outcome in highest) / failed


def roc_points(pairs: ScoreOutcomePairs) -> list[tuple[float, float]]:
    """The curve from (0, 0) to (1, 1): of those that survived and of those that failed, how many lie above a score."""
    failed = sum(outcome for _, outcome in pairs)
    survived = len(pairs) - failed
    points = [(0.0, 0.0)]
    hits = misses = 0
    for _, group in _group_ties(sorted(pairs, key=lambda pair: -pair[0])):
        here = sum(outcome for _, outcome in group)
        hits += here
        misses += len(group) - here
        points.append((misses / survived if survived else 0.0, hits / failed if failed else 0.0))
    return points


def _group_ties(pairs: Iterable[tuple[float, bool]]) -> Iterable[tuple[int, list[tuple[float, bool]]]]:
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


def mean_over_groups(
    function: Callable[[ScoreOutcomePairs], float | None], groups: Iterable[ScoreOutcomePairs]
) -> float | None:
    """The mean over the groups for which there is a value."""
    values = [value for value in map(function, groups) if value is not None]
    return sum(values) / len(values) if values else None


JUDGED_SHARE = 0.3
"""The share of the cases that is judged: the newest."""

DECILES = 10
RELIABILITY_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of the reliability table: narrow where most changes are."""

RISKIEST_SHARE = 0.2

BucketName = Literal["pass", "review", "skip"]


@dataclass(frozen=True, slots=True)
class Bucket:
    """The cases for which risk alone would have decided the same."""

    name: BucketName
    count: int
    share: float
    failed: int
    rate: float | None
    against_base: float | None
    """Its rate as a multiple of the base rate."""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A tenth of the cases, by lines of code added."""

    smallest: int
    largest: int
    count: int
    failed: int
    auc: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures for one history. A figure that cannot be computed (nothing failed, say) is None."""

    commits: int
    """Commits that touch source files."""
    left_out: int
    """Of those, the ones of the last 180 days."""
    judged: int
    failed: int
    base_rate: float | None
    auc: float | None
    auc_by_size_alone: float | None
    average_precision: float | None
    brier: float | None
    brier_skill: float | None
    brier_skill_fixed: float | None
    """With the shipped prior alone, as on the first day."""
    calibration_error: float | None
    calibration_error_fixed: float | None
    recall_of_riskiest: float | None
    """Which part of the failures is among the riskiest 20 %."""
    lines_of_riskiest: float | None
    """Which part of the changed lines is in them."""
    reliability: tuple[Bin, ...]
    size_classes: tuple[SizeClass, ...]
    auc_within_sizes: float | None
    """The mean over the size classes."""
    buckets: tuple[Bucket, ...]
    unmeasured: int
    """Judged changes that also touch files on which nothing was measured: those never pass."""
    thresholds: Thresholds

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def select_cases(samples: Sequence[CommitSample], until: int) -> tuple[list[ScoredSample], int]:
    """The cases to be judged, scored, and how many were left out for being too young."""
    scored = [item for item in score_in_time_order(samples) if item.sample.time <= until - FIX_WINDOW]
    return scored[len(scored) - round(JUDGED_SHARE * len(scored)) :], len(samples) - len(scored)


def evaluate(samples: Sequence[CommitSample], until: int, thresholds: Thresholds | None = None) -> Evaluation:
    """The figures for a history whose outcomes are known up to `until`."""
    thresholds = thresholds or Thresholds()
    cases, left_out = select_cases(samples, until)
    outcomes = [case.sample.failed_at is not None for case in cases]
    ranked = list(zip((case.fixed for case in cases), outcomes, strict=True))
    moving = list(zip((case.score.p for case in cases), outcomes, strict=True))
    sizes = list(zip((float(case.sample.features.added) for case in cases), outcomes, strict=True))
    rate = sum(outcomes) / len(outcomes) if outcomes else None
    classes = _split_by_size(cases)
    return Evaluation(
        commits=len(samples),
        left_out=left_out,
        judged=len(cases),
        failed=sum(outcomes),
        base_rate=rate,
        auc=area_under_curve(ranked),
        auc_by_size_alone=area_under_curve(sizes),
        average_precision=average_precision(ranked),
        brier=brier_score(moving),
        brier_skill=brier_skill(moving),
        brier_skill_fixed=brier_skill(ranked),
        calibration_error=calibration_error(moving),
        calibration_error_fixed=calibration_error(ranked),
        recall_of_riskiest=recall_at(ranked, RISKIEST_SHARE),
        lines_of_riskiest=_riskiest_line_share(cases),
        reliability=tuple(split_into_bins(moving, RELIABILITY_EDGES)),
        size_classes=tuple(_build_size_class(group) for group in classes),
        auc_within_sizes=mean_over_groups(area_under_curve, (_fixed_score_pairs(group) for group in classes)),
        buckets=tuple(_build_bucket(name, cases, rate, thresholds) for name in ("pass", "review", "skip")),
        unmeasured=sum(case.sample.features.unmeasured > 0 for case in cases),
        thresholds=thresholds,
    )


def choose_bucket(score: Score, thresholds: Thresholds) -> BucketName:
    """What risk alone says, on the interval: surely safe passes, surely risky is denied only if that was set."""
    if score.high <= thresholds.pass_below:
        return "pass"
    return "skip" if thresholds.skip_above is not None and score.low > thresholds.skip_above else "review"


def _build_bucket(
    name: BucketName, cases: Sequence[ScoredSample], base: float | None, thresholds: Thresholds
) -> Bucket:
    inside = [case for case in cases if choose_bucket(case.score, thresholds) == name]
    failed = sum(case.sample.failed_at is not None for case in inside)
    rate = failed / len(inside) if inside else None
    return Bucket(
        name=name,
        count=len(inside),
        share=len(inside) / len(cases) if cases else 0.0,
        failed=failed,
        rate=rate,
        against_base=rate / base if rate is not None and base else None,
    )


def _split_by_size(cases: Sequence[ScoredSample]) -> list[list[ScoredSample]]:
    """Ten groups of as good as equal number, from the smallest changes to the largest."""
    ordered = sorted(cases, key=lambda case: case.sample.features.added)
    ends = [round(number * len(ordered) / DECILES) for number in range(DECILES + 1)]
    groups = [ordered[begin:end] for begin, end in pairwise(ends)]
    return [group for group in groups if group]


def _build_size_class(group: Sequence[ScoredSample]) -> SizeClass:
    return SizeClass(
        smallest=group[0].sample.features.added,
        largest=group[-1].sample.features.added,
        count=len(group),
        failed=sum(case.sample.failed_at is not None for case in group),
        auc=area_under_curve(_fixed_score_pairs(group)),
    )


def _fixed_score_pairs(group: Sequence[ScoredSample]) -> list[tuple[float, bool]]:
    return [(case.fixed, case.sample.failed_at is not None) for case in group]


def _riskiest_line_share(cases: Sequence[ScoredSample]) -> float | None:
    def lines(group: Sequence[ScoredSample]) -> int:
        return sum(case.sample.features.added + case.sample.features.removed for case in group)

    total = lines(cases)
    riskiest = sorted(cases, key=lambda case: -case.fixed)[: round(RISKIEST_SHARE * len(cases))]
    return lines(riskiest) / total if total else None
