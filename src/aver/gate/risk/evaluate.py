"""How well the model does on a history it has not seen, by one fixed protocol.

Cases are the commits that touch source files; the last 180 days are left out, because their labels are still open. The
last 30 % of the cases, in the order of time, are judged: each was scored with what was known at its time. Ranking is by
the fixed score, values by the moving level. Rates are of the cases that are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Literal

from aver.gate.decision import Thresholds
from aver.gate.risk.fixes import WINDOW
from aver.gate.risk.learn import Sample, Scored, prequential
from aver.gate.risk.metrics import (
    Bin,
    area_under_curve,
    average_precision,
    binned,
    brier,
    brier_skill,
    calibration_error,
    mean_of,
    recall_at,
)
from aver.gate.risk.model import Score
from aver.values import dataclass

__all__ = ["Bucket", "Evaluation", "SizeClass", "bucket_of", "evaluate", "judged"]

JUDGED = 0.3
"""The share of the cases that is judged: the newest."""

DECILES = 10
EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of the reliability table: narrow where most changes are."""

RISKIEST = 0.2

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


def judged(samples: Sequence[Sample], until: int) -> tuple[list[Scored], int]:
    """The cases to be judged, scored, and how many were left out for being too young."""
    scored = [item for item in prequential(samples) if item.sample.time <= until - WINDOW]
    return scored[len(scored) - round(JUDGED * len(scored)) :], len(samples) - len(scored)


def evaluate(samples: Sequence[Sample], until: int, thresholds: Thresholds | None = None) -> Evaluation:
    """The figures for a history whose outcomes are known up to `until`."""
    thresholds = thresholds or Thresholds()
    cases, left_out = judged(samples, until)
    outcomes = [case.sample.failed_at is not None for case in cases]
    ranked = list(zip((case.fixed for case in cases), outcomes, strict=True))
    moving = list(zip((case.score.p for case in cases), outcomes, strict=True))
    sizes = list(zip((float(case.sample.features.added) for case in cases), outcomes, strict=True))
    rate = sum(outcomes) / len(outcomes) if outcomes else None
    classes = _by_size(cases)
    return Evaluation(
        commits=len(samples),
        left_out=left_out,
        judged=len(cases),
        failed=sum(outcomes),
        base_rate=rate,
        auc=area_under_curve(ranked),
        auc_by_size_alone=area_under_curve(sizes),
        average_precision=average_precision(ranked),
        brier=brier(moving),
        brier_skill=brier_skill(moving),
        brier_skill_fixed=brier_skill(ranked),
        calibration_error=calibration_error(moving),
        calibration_error_fixed=calibration_error(ranked),
        recall_of_riskiest=recall_at(ranked, RISKIEST),
        lines_of_riskiest=_lines_of_riskiest(cases),
        reliability=tuple(binned(moving, EDGES)),
        size_classes=tuple(_size_class(group) for group in classes),
        auc_within_sizes=mean_of(area_under_curve, (_ranked(group) for group in classes)),
        buckets=tuple(_bucket(name, cases, rate, thresholds) for name in ("pass", "review", "skip")),
        unmeasured=sum(case.sample.features.unmeasured > 0 for case in cases),
        thresholds=thresholds,
    )


def bucket_of(score: Score, thresholds: Thresholds) -> BucketName:
    """What risk alone says, on the interval: surely safe passes, surely risky is denied only if that was set."""
    if score.high <= thresholds.pass_below:
        return "pass"
    return "skip" if thresholds.skip_above is not None and score.low > thresholds.skip_above else "review"


def _bucket(name: BucketName, cases: Sequence[Scored], base: float | None, thresholds: Thresholds) -> Bucket:
    inside = [case for case in cases if bucket_of(case.score, thresholds) == name]
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


def _by_size(cases: Sequence[Scored]) -> list[list[Scored]]:
    """Ten groups of as good as equal number, from the smallest changes to the largest."""
    ordered = sorted(cases, key=lambda case: case.sample.features.added)
    ends = [round(number * len(ordered) / DECILES) for number in range(DECILES + 1)]
    groups = [ordered[begin:end] for begin, end in pairwise(ends)]
    return [group for group in groups if group]


def _size_class(group: Sequence[Scored]) -> SizeClass:
    return SizeClass(
        smallest=group[0].sample.features.added,
        largest=group[-1].sample.features.added,
        count=len(group),
        failed=sum(case.sample.failed_at is not None for case in group),
        auc=area_under_curve(_ranked(group)),
    )


def _ranked(group: Sequence[Scored]) -> list[tuple[float, bool]]:
    return [(case.fixed, case.sample.failed_at is not None) for case in group]


def _lines_of_riskiest(cases: Sequence[Scored]) -> float | None:
    def lines(group: Sequence[Scored]) -> int:
        return sum(case.sample.features.added + case.sample.features.removed for case in group)

    total = lines(cases)
    riskiest = sorted(cases, key=lambda case: -case.fixed)[: round(RISKIEST * len(cases))]
    return lines(riskiest) / total if total else None
