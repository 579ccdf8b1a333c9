"""Figures against slow and plain definitions, and against cases worked out by hand."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.bench_modules import risk_report

area_under_curve = risk_report.area_under_curve
brier_score = risk_report.brier_score
brier_skill = risk_report.brier_skill
calibration_error = risk_report.calibration_error
compare_areas = risk_report.compare_areas
estimate_area = risk_report.estimate_area
mean_over_groups = risk_report.mean_over_groups
split_into_bins = risk_report.split_into_bins

PAIRS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 0.9, 1.0]), st.booleans()), max_size=30)
CASE = [(0.9, True), (0.8, False), (0.8, True), (0.3, False), (0.1, False)]


def test_by_hand() -> None:
    # Pairs of failed and survived: 0.9 beats all 3; 0.8 ties one and beats two.
    assert area_under_curve(CASE) == pytest.approx(5.5 / 6)
    assert brier_score(CASE) == pytest.approx((0.01 + 0.64 + 0.04 + 0.09 + 0.01) / 5)
    assert brier_skill(CASE) == pytest.approx(1 - 0.158 / 0.24)
    # Bins of width 0.1: 0.1 alone, 0.3 alone, both 0.8, 0.9 alone.
    assert calibration_error(CASE) == pytest.approx((0.1 + 0.3 + 2 * 0.3 + 0.1) / 5)
    assert roc_points(CASE) == [(0, 0), (0, 0.5), (pytest.approx(1 / 3), 1), (pytest.approx(2 / 3), 1), (1, 1)]


def roc_points(pairs: list[tuple[float, bool]]) -> list[tuple[float, float]]:
    """The curve by its definition: for each score, the shares of survivors and of failures at or above it."""
    failed = [score for score, outcome in pairs if outcome]
    survived = [score for score, outcome in pairs if not outcome]
    points = [(0.0, 0.0)]
    for limit in sorted({score for score, _ in pairs}, reverse=True):
        hits, misses = (sum(score >= limit for score in group) for group in (failed, survived))
        points.append((misses / len(survived) if survived else 0.0, hits / len(failed) if failed else 0.0))
    return points


def test_nothing_to_say() -> None:
    for pairs in ([], [(0.5, True)], [(0.5, False)]):
        assert area_under_curve(pairs) is None
    assert brier_score([]) is None
    assert brier_skill([]) is None
    assert brier_skill([(0.1, True)]) is None
    assert calibration_error([]) is None
    assert mean_over_groups(area_under_curve, [[], [(0.1, True)]]) is None
    assert mean_over_groups(area_under_curve, [CASE, []]) == area_under_curve(CASE)


@given(PAIRS)
def test_area_is_how_often_the_failed_one_is_above(pairs: list[tuple[float, bool]]) -> None:
    failed = [score for score, outcome in pairs if outcome]
    survived = [score for score, outcome in pairs if not outcome]
    found = area_under_curve(pairs)
    if failed and survived:
        wins = sum((bad > good) + 0.5 * (bad == good) for bad in failed for good in survived)
        assert found == pytest.approx(wins / (len(failed) * len(survived)))
    else:
        assert found is None


@given(PAIRS)
def test_area_is_that_under_the_curve(pairs: list[tuple[float, bool]]) -> None:
    found = area_under_curve(pairs)
    if found is not None:
        points = roc_points(pairs)
        area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
        assert area == pytest.approx(found)


def test_the_interval_by_hand() -> None:
    """Placements of the failed: 1 and 5/6; of the survivors: 3/4, 1, 1. Their variances over their numbers add up."""
    found = estimate_area(CASE)
    assert found is not None
    variance_failed = ((1 - 11 / 12) ** 2 + (5 / 6 - 11 / 12) ** 2) / 1
    variance_survived = ((3 / 4 - 11 / 12) ** 2 + 2 * (1 - 11 / 12) ** 2) / 2
    error = (variance_failed / 2 + variance_survived / 3) ** 0.5
    assert found.low == pytest.approx(11 / 12 - 1.96 * error)
    assert found.high == 1.0


@given(PAIRS)
def test_a_score_gains_nothing_over_itself(pairs: list[tuple[float, bool]]) -> None:
    found = compare_areas(pairs, pairs)
    if found is not None:
        assert found.value == 0.0
        assert found.low <= 0.0 <= found.high
    else:
        assert area_under_curve(pairs) is None


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    """Scores of two normal laws, one standard deviation apart: the true area is 0.760."""
    chance = random.Random(7)
    held = 0
    for _ in range(400):
        drawn = [(chance.gauss(1, 1), True) for _ in range(40)] + [(chance.gauss(0, 1), False) for _ in range(80)]
        found = estimate_area(drawn)
        assert found is not None
        held += found.low <= 0.7602 <= found.high
    assert 360 <= held <= 395


@given(PAIRS)
def test_every_case_is_in_one_bin(pairs: list[tuple[float, bool]]) -> None:
    bins = split_into_bins(pairs, (0.0, 0.1, 0.25, 1.0))
    assert sum(part.count for part in bins) == len(pairs)
    assert sum(part.failed for part in bins) == sum(outcome for _, outcome in pairs)
    assert all(part.low <= part.mean_score <= part.high for part in bins if part.count)


@given(PAIRS)
def test_saying_the_rate_has_no_skill_and_no_error(pairs: list[tuple[float, bool]]) -> None:
    if pairs:
        rate = sum(outcome for _, outcome in pairs) / len(pairs)
        constant = [(rate, outcome) for _, outcome in pairs]
        assert calibration_error(constant) == pytest.approx(0, abs=1e-12)
        if 0 < rate < 1:
            assert brier_skill(constant) == pytest.approx(0, abs=1e-12)
