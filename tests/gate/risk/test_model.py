"""The model against numbers worked out by hand, and what must hold for all numbers."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.risk.features import COUNT_MAX, Features
from aver.gate.risk.model import (
    CHANGE,
    PRIORS,
    UNCLEAR_HIGH_MIN,
    UNMEASURED_HIGH_MIN,
    RiskLevel,
    RiskState,
    change_offset,
    logistic,
    score_change,
    score_with_prior,
    update_level,
)

PRIOR = PRIORS[CHANGE]


def test_nothing_changed() -> None:
    """σ(−4.37), and σ(−4.37 ± 1.644854 · √0.1)."""
    found = score_change(Features(), PRIOR)
    assert found.p == pytest.approx(0.012493186, abs=1e-9)
    assert found.low == pytest.approx(0.007464174, abs=1e-9)
    assert found.high == pytest.approx(0.020839372, abs=1e-9)


def test_by_hand() -> None:
    """z = −4.37 + 0.48·4.060443 − 0.05·2.564949 + 0.25·2.302585 + 0.016·16 + 0.22·1.386294 = −1.412603."""
    features = Features(added=57, removed=12, branches=9, indentation=16, fixes=3)
    found = score_change(features, PRIOR)
    assert found.p == pytest.approx(0.195823695, abs=1e-9)
    # Variance: 0.1 + 0.406044² + 0.153897² + 0.276310² + 0.096² + 0.221807² = 0.423318.
    assert found.low == pytest.approx(0.077073286, abs=1e-9)
    assert found.high == pytest.approx(0.415223091, abs=1e-9)
    assert score_with_prior(features) == found.p


def test_one_step_of_learning_by_hand() -> None:
    """p = 0.012493; v = 0.101 / (1 + 0.012337·0.101) = 0.100874; b = −4.37 − 0.100874·0.012493 = −4.371260."""
    level = update_level(PRIOR, 0.0, failed=False)
    assert level.v == pytest.approx(0.100874306, abs=1e-9)
    assert level.b == pytest.approx(-4.371260241, abs=1e-9)
    assert level.observations == 1
    # One failure moves it by nearly all of v.
    assert update_level(PRIOR, 0.0, failed=True).b == pytest.approx(-4.270385936, abs=1e-9)


FEATURES = st.builds(
    Features,
    added=st.integers(0, COUNT_MAX),
    removed=st.integers(0, COUNT_MAX),
    branches=st.integers(0, COUNT_MAX),
    indentation=st.integers(0, 60),
    fixes=st.integers(0, COUNT_MAX),
)
LEVELS = st.builds(RiskLevel, st.floats(-10, 4), st.floats(1e-6, 4))


@given(FEATURES, LEVELS)
def test_the_interval_holds_the_score(features: Features, level: RiskLevel) -> None:
    found = score_change(features, level)
    assert 0 <= found.low <= found.p <= found.high <= 1


@given(FEATURES, LEVELS, st.sampled_from(["added", "branches", "fixes"]), st.integers(1, 1000))
def test_more_of_what_is_risky_is_riskier(features: Features, level: RiskLevel, name: str, more: int) -> None:
    from dataclasses import replace

    greater = replace(features, **{name: getattr(features, name) + more})
    assert score_change(greater, level).p >= score_change(features, level).p
    assert score_change(greater, level).high >= score_change(features, level).high


@given(FEATURES, LEVELS)
def test_what_is_not_known_widens_upwards_only(features: Features, level: RiskLevel) -> None:
    from dataclasses import replace

    known = score_change(features, level)
    for name, least in (("unmeasured", UNMEASURED_HIGH_MIN), ("unclear", UNCLEAR_HIGH_MIN)):
        wider = score_change(replace(features, **{name: 1}), level)
        assert (wider.p, wider.low) == (known.p, known.low)
        assert wider.high == max(known.high, least)


@given(LEVELS, st.lists(st.tuples(st.floats(-1, 20), st.booleans()), max_size=50))
def test_learning_stays_sound(level: RiskLevel, outcomes: list[tuple[float, bool]]) -> None:
    for offset, failed in outcomes:
        before = level
        level = update_level(level, offset, failed=failed)
        assert level.is_sound()
        assert level.b >= before.b if failed else level.b <= before.b


def test_the_level_of_a_workspace_is_learned_and_its_changes_followed() -> None:
    chance = random.Random(5)
    level = PRIOR
    for true_level, low, high in ((-3.0, -3.6, -2.5), (-5.5, -6.1, -4.8)):
        for _ in range(3000):
            features = Features(added=chance.randrange(60), indentation=8)
            failed = chance.random() < logistic(true_level + change_offset(features))
            level = update_level(level, change_offset(features), failed=failed)
        assert low < level.b < high


@pytest.mark.parametrize(
    "level",
    [
        *(RiskLevel(math.nan, 0.1, 1), RiskLevel(math.inf, 0.1, 1), RiskLevel(-11.0, 0.1, 1), RiskLevel(5.0, 0.1, 1)),
        *(RiskLevel(-4.0, 0.0, 1), RiskLevel(-4.0, -1.0, 1), RiskLevel(-4.0, math.nan, 1), RiskLevel(-4.0, 1e9, 1)),
        *(RiskLevel(-4.0, 0.1, -1), RiskLevel(-4.0, 0.1, 10**12), RiskLevel(-4, 0.1, 1), RiskLevel(-4.0, 0.1, True)),
    ],
)
def test_levels_that_no_learning_leads_to(level: RiskLevel) -> None:
    assert not level.is_sound()


def test_every_prior_is_sound_and_only_reads_pass_by_themselves() -> None:
    from aver.gate.decision import Thresholds
    from aver.gate.risk.model import score_from_logit

    for kind, level in PRIORS.items():
        assert level.is_sound()
        if kind not in (CHANGE, "read"):
            assert score_from_logit(level.b, level.v).high > Thresholds().pass_below


def test_a_state_is_named_by_what_it_has_learned() -> None:
    learned = RiskState({CHANGE: update_level(PRIOR, 0.0, failed=True)}, 5)
    assert learned.digest != RiskState().digest
    assert learned.digest == RiskState(dict(learned.levels), 5, note="said elsewhere").digest
    assert RiskState().level("command") == PRIORS["command"]


def test_logistic_at_the_ends() -> None:
    assert logistic(-1e9) == 0.0
    assert logistic(1e9) == 1.0
    assert logistic(0.0) == 0.5
