"""The evaluation of the risk model on a repository's own history, as figures, text and JSON.

The protocol is fixed:

1. The cases are the commits that touch source files, in the order of their times.
2. The last 180 days are left out, because their outcomes may still change.
3. Each case is scored with what was known at its time.
4. The newest 30 % of the cases are judged.

Ranking figures use the fixed score of the shipped prior. Probabilities and decisions use the moving level. All rates
are those of the judged cases. The size of the change alone stands beside the model, because it ranks almost as well.
The report ends with notes that say how far its figures can be trusted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import variance
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gate.decision import Thresholds
from aver.gate.risk.history.fixes import FIX_WINDOW
from aver.gate.risk.history.learn import (
    CommitSample,
    ScoredSample,
    build_samples,
    find_history_end,
    score_in_time_order,
)
from aver.gate.risk.history.mined_commits import MiningProgress, mine_history
from aver.gate.risk.history.repository import open_repository
from aver.gate.risk.model import Score

# --- figures over pairs of score and outcome

ScoreOutcomePairs = Sequence[tuple[float, bool]]
"""A score for each case, and whether the case failed."""

CALIBRATION_BINS = 10

NORMAL_95 = 1.96
"""Standard errors on either side of a figure that its 95 % interval covers."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose scores lie between two bounds: the mean score, and the failures that followed."""

    low: float
    high: float
    count: int
    mean_score: float
    failed: int

    @property
    def rate(self) -> float:
        return self.failed / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def area_under_curve(pairs: ScoreOutcomePairs) -> float | None:
    """Return how often a failed case has a higher score than one that survived; ties count half.

    None if there are no failed or no surviving cases.
    """
    found = estimate_area(pairs)
    return found.value if found else None


def estimate_area(pairs: ScoreOutcomePairs) -> Interval | None:
    """Return the area under the curve with its interval, by DeLong's method. None as for `area_under_curve`."""
    return _estimate_mean(*_placements(pairs), lowest=0.0)


def compare_areas(pairs: ScoreOutcomePairs, others: ScoreOutcomePairs) -> Interval | None:
    """Return how much larger the first area is. Both must score the same cases in the same order."""
    failed, survived = _placements(pairs)
    other_failed, other_survived = _placements(others)
    return _estimate_mean(
        [mine - theirs for mine, theirs in zip(failed, other_failed, strict=True)],
        [mine - theirs for mine, theirs in zip(survived, other_survived, strict=True)],
        lowest=-1.0,
    )


def _placements(pairs: ScoreOutcomePairs) -> tuple[list[float], list[float]]:
    """Return two lists of shares; the mean of either is the area under the curve.

    For each failed case: the share of surviving ones that it outranks. For each surviving case: the share of failed
    ones that outrank it. Ties count half.
    """
    scores = ([score for score, failed in pairs if failed], [score for score, failed in pairs if not failed])
    ordered = (sorted(scores[0]), sorted(scores[1]))

    def count_below(score: float, others: list[float]) -> float:
        return (bisect_left(others, score) + bisect_right(others, score)) / 2

    if not scores[0] or not scores[1]:
        return [], []
    return (
        [count_below(score, ordered[1]) / len(ordered[1]) for score in scores[0]],
        [1 - count_below(score, ordered[0]) / len(ordered[0]) for score in scores[1]],
    )


def _estimate_mean(failed: Sequence[float], survived: Sequence[float], *, lowest: float) -> Interval | None:
    """Return the mean of placements with its interval."""
    if not failed or not survived:
        return None
    value = sum(failed) / len(failed)
    # One case says nothing about the spread: then the interval is everything.
    if len(failed) < 2 or len(survived) < 2:
        return Interval(value, lowest, 1.0)
    # The variances of the two lists add up, each divided by its number of cases.
    error = sqrt(variance(failed) / len(failed) + variance(survived) / len(survived))
    return Interval(value, max(lowest, value - NORMAL_95 * error), min(1.0, value + NORMAL_95 * error))


def brier_score(pairs: ScoreOutcomePairs) -> float | None:
    """Return the mean squared difference between score and outcome."""
    return sum((score - outcome) ** 2 for score, outcome in pairs) / len(pairs) if pairs else None


def brier_skill(pairs: ScoreOutcomePairs) -> float | None:
    """Compare the scores with a constant score, the base rate: 1 is perfect, 0 no better, below 0 worse."""
    found = brier_score(pairs)
    if found is None:
        return None
    rate = sum(outcome for _, outcome in pairs) / len(pairs)
    # The Brier score of a constant score at the base rate.
    base = rate * (1 - rate)
    return 1 - found / base if base else None


def calibration_error(pairs: ScoreOutcomePairs) -> float | None:
    """Return the mean distance between mean score and failure rate over ten equal bins, weighted by their cases."""
    if not pairs:
        return None
    edges = [number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1)]
    return sum(part.count * abs(part.rate - part.mean_score) for part in split_into_bins(pairs, edges)) / len(pairs)


def split_into_bins(pairs: ScoreOutcomePairs, edges: Sequence[float]) -> list[Bin]:
    """Sort cases into bins by score. A bin includes its lower edge; the last bin also includes its upper edge."""
    found = []
    for low, high in pairwise(edges):
        last = high == edges[-1]
        inside = [pair for pair in pairs if low <= pair[0] < high or (last and pair[0] == high)]
        mean = sum(score for score, _ in inside) / len(inside) if inside else 0.0
        found.append(Bin(low, high, len(inside), mean, sum(outcome for _, outcome in inside)))
    return found


def mean_over_groups(
    function: Callable[[ScoreOutcomePairs], float | None], groups: Iterable[ScoreOutcomePairs]
) -> float | None:
    """Return the mean over the groups that have a value."""
    values = [value for value in map(function, groups) if value is not None]
    return sum(values) / len(values) if values else None


# --- the protocol

JUDGED_SHARE = 0.3
"""The share of the cases that is judged: the newest ones."""

DECILES = 10
RELIABILITY_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Edges of the reliability table. They are close together where most changes are."""

SAME_DAY = 86_400
"""Seconds within which a repair counts as one of the same day: its author was still at work on the change."""

BucketName = Literal["pass", "review", "skip"]


@dataclass(frozen=True, slots=True)
class Bucket:
    """The cases that risk alone would have decided in the same way."""

    name: BucketName
    count: int
    share: float
    failed: int
    rate: float | None
    against_base: float | None
    """Its rate as a multiple of the base rate."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures for one history. A figure is None if it cannot be computed, for example because nothing failed."""

    commits: int
    """Commits that touch source files."""
    left_out: int
    """Those of the last 180 days, which are not judged."""
    judged: int
    failed: int
    base_rate: float | None
    auc: Interval | None
    auc_by_size_alone: Interval | None
    auc_gain: Interval | None
    """How much better the model ranks than size alone."""
    auc_within_sizes: float | None
    """The mean over the tenths of the cases, by lines of code added."""
    failed_same_day: int
    """Failures that were repaired on the same day."""
    auc_of_later_failures: Interval | None
    """Without those of the same day."""
    brier_skill: float | None
    brier_skill_fixed: float | None
    """With the shipped prior alone, as on the first day of a workspace."""
    calibration_error: float | None
    calibration_error_fixed: float | None
    reliability: tuple[Bin, ...]
    buckets: tuple[Bucket, ...]
    unmeasured: int
    """Judged changes that also touch files of unmeasured kinds. Those never pass."""
    thresholds: Thresholds
    unreadable: int = 0
    """Commits that were left out, because this clone lacks objects of theirs."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def select_cases(samples: Sequence[CommitSample], until: int) -> tuple[list[ScoredSample], int]:
    """Return the scored cases to judge, and the number of cases that are too young (steps 2 to 4)."""
    # Steps 2 to 4 of the protocol. All samples are scored, so that the level learns from all of them.
    scored = [item for item in score_in_time_order(samples) if item.sample.time <= until - FIX_WINDOW]
    return scored[len(scored) - round(JUDGED_SHARE * len(scored)) :], len(samples) - len(scored)


def evaluate(
    samples: Sequence[CommitSample], until: int, thresholds: Thresholds | None = None, *, unreadable: int = 0
) -> Evaluation:
    """Compute the figures for a history whose outcomes are known up to `until`."""
    thresholds = thresholds or Thresholds()
    cases, left_out = select_cases(samples, until)
    # Ranking uses the fixed score, values use the moving level.
    outcomes = [case.sample.failed_at is not None for case in cases]
    ranked = _fixed_score_pairs(cases)
    moving = list(zip((case.score.p for case in cases), outcomes, strict=True))
    sizes = list(zip((float(case.sample.features.added) for case in cases), outcomes, strict=True))
    rate = sum(outcomes) / len(outcomes) if outcomes else None
    # Ten groups of nearly equal size, from the smallest changes to the largest.
    ordered = sorted(cases, key=lambda case: case.sample.features.added)
    ends = [round(number * len(ordered) / DECILES) for number in range(DECILES + 1)]
    by_size = [ordered[begin:end] for begin, end in pairwise(ends) if begin < end]
    later = [case for case in cases if not _is_repaired_same_day(case.sample)]
    return Evaluation(
        commits=len(samples),
        left_out=left_out,
        judged=len(cases),
        failed=sum(outcomes),
        base_rate=rate,
        auc=estimate_area(ranked),
        auc_by_size_alone=estimate_area(sizes),
        auc_gain=compare_areas(ranked, sizes),
        auc_within_sizes=mean_over_groups(area_under_curve, map(_fixed_score_pairs, by_size)),
        failed_same_day=len(cases) - len(later),
        auc_of_later_failures=estimate_area(_fixed_score_pairs(later)),
        brier_skill=brier_skill(moving),
        brier_skill_fixed=brier_skill(ranked),
        calibration_error=calibration_error(moving),
        calibration_error_fixed=calibration_error(ranked),
        reliability=tuple(split_into_bins(moving, RELIABILITY_EDGES)),
        buckets=tuple(_build_bucket(name, cases, rate, thresholds) for name in ("pass", "review", "skip")),
        unmeasured=sum(case.sample.features.unmeasured > 0 for case in cases),
        thresholds=thresholds,
        unreadable=unreadable,
    )


def choose_bucket(score: Score, thresholds: Thresholds) -> BucketName:
    """Return what risk alone would decide. It denies only if the settings say so."""
    # Passing needs the upper end to be low, denying the lower end to be high.
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


def _fixed_score_pairs(cases: Sequence[ScoredSample]) -> list[tuple[float, bool]]:
    return [(case.fixed, case.sample.failed_at is not None) for case in cases]


def _is_repaired_same_day(sample: CommitSample) -> bool:
    return sample.failed_at is not None and sample.failed_at - sample.time < SAME_DAY


# --- the report

FEW_FAILURES = 30
"""Failures below which an AUC is uncertain by 0.1 and more."""

SUSPICIOUS_AUC = 0.85
"""An AUC that no honest model reaches on such labels."""

STANDING_NOTES = (
    "On 22 histories that the model had not seen, its AUC was 0.735 (0.703 to 0.767). Size alone ranks as well.",
    "Most of the ranking is size: inside one size class little is left (0.51 to 0.63 for every model that was tried).",
    "The label is right in about three cases out of four, and failures that were never repaired do not count.",
    "Changes to docs and tests alone are left out; with them every figure would look better.",
    "Ranking is by the fixed score; values and decisions are by the level as it was known at each commit's time.",
    "The shipped prior comes from commits that people wrote. Almost none of those it was measured on were an agent's.",
)


@dataclass(frozen=True, slots=True)
class RiskReport:
    """The figures for one repository, as text and as JSON."""

    name: str
    evaluation: Evaluation

    def to_dict(self) -> dict[str, Any]:
        return {"repository": self.name, **self.evaluation.to_dict(), "notes": list(self.notes())}

    def to_text(self) -> str:
        return "\n".join(_text_lines(self)) + "\n"

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know to read the figures."""
        found = self.evaluation
        notes = []
        if not found.judged:
            notes.append("There is nothing to judge yet: no commit that touches source is older than 180 days.")
        elif found.failed < FEW_FAILURES:
            notes.append(f"Only {found.failed} failures: every figure here may be off by a lot.")
        if found.unreadable:
            notes.append(f"{found.unreadable} commits are left out: this clone lacks objects of theirs.")
        if found.auc is not None and found.auc.value > SUSPICIOUS_AUC:
            notes.append(f"An AUC above {SUSPICIOUS_AUC} is a leak or an easier population, not a better model.")
        return (*notes, *STANDING_NOTES)


def build_report(
    path: str | Path,
    thresholds: Thresholds | None = None,
    progress: MiningProgress | None = None,
    *,
    home: Path | None = None,
) -> RiskReport:
    """Build the report on the repository at `path`. Commits that were mined before are read from the cache."""
    repository = open_repository(path)
    history = mine_history(repository, progress=progress, home=home)
    samples, until = build_samples(history.commits), find_history_end(history.commits)
    return RiskReport(repository.root.name, evaluate(samples, until, thresholds, unreadable=history.unreadable))


# --- as text


def _text_lines(report: RiskReport) -> Iterator[str]:
    found = report.evaluation
    yield f"Risk of changes in {report.name}"
    yield ""
    yield _format_row(
        "commits that touch source", f"{found.commits}", f"{found.left_out} of the last 180 days left out"
    )
    yield _format_row(
        "judged: the newest 30 %", f"{found.judged}", f"{found.failed} failed, {_format_share(found.base_rate)}"
    )
    yield ""
    yield _format_row("AUC", *_format_interval(found.auc))
    yield _format_row("AUC by size alone", *_format_interval(found.auc_by_size_alone))
    yield _format_row("the model's gain", *_format_interval(found.auc_gain, "+.3f"))
    yield _format_row("AUC within size deciles", _format_number(found.auc_within_sizes), "their mean")
    later, interval = _format_interval(found.auc_of_later_failures)
    yield _format_row(
        "AUC of later failures",
        later,
        f"{interval}; without {found.failed_same_day} that were repaired on the same day",
    )
    yield _format_row(
        "Brier skill",
        _format_signed(found.brier_skill),
        f"with the prior alone {_format_signed(found.brier_skill_fixed)}",
    )
    yield _format_row(
        "calibration error",
        _format_number(found.calibration_error),
        f"with the prior alone {_format_number(found.calibration_error_fixed)}",
    )
    yield from _table_lines(found)
    yield ""
    yield "Limits of these figures"
    yield from (f"  - {note}" for note in report.notes())


def _table_lines(found: Evaluation) -> Iterator[str]:
    above = found.thresholds.skip_above
    yield ""
    denies = "risk denies nothing" if above is None else f"skip when the lower end is above {above:g}"
    yield f"Decisions by risk alone: pass when the upper end is at most {found.thresholds.pass_below:g}; {denies}"
    yield "  decision   changes    share   failed    rate   of the base rate"
    for bucket in found.buckets:
        against = "–" if bucket.against_base is None else f"{bucket.against_base:.2f} x"
        yield (
            f"  {bucket.name:<9}{bucket.count:>9}{_format_share(bucket.share):>9}{bucket.failed:>9}"
            f"{_format_share(bucket.rate):>8}{against:>19}"
        )
    yield f"  {found.unmeasured} changes also touch files of kinds that were never measured: they never pass."
    yield ""
    yield "Reliability: predicted and actual failures"
    yield "  probability     changes    mean predicted   failed"
    for part in found.reliability:
        predicted = _format_share(part.mean_score if part.count else None)
        rate = _format_share(part.rate if part.count else None)
        yield f"  {part.low:g} to {part.high:g}".ljust(16) + f"{part.count:>9}{predicted:>18}{rate:>9}"


def _format_row(name: str, value: str, more: str = "") -> str:
    return f"  {name:<28}{value:>8}" + (f"   {more}" if more else "")


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _format_interval(found: Interval | None, form: str = ".3f") -> tuple[str, str]:
    """Return a figure and the words about its interval."""
    if found is None:
        return "–", "95 %: not known"
    return f"{found.value:{form}}", f"95 %: {found.low:{form}} to {found.high:{form}}"


def _format_signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _format_share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
