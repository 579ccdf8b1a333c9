"""The model: how likely a change is to fail, how sure that is, and how a workspace's level is learned.

    p = σ(b + 0.48 ln(1 + added) − 0.05 ln(1 + removed) + 0.25 ln(1 + branches)
            + 0.016 · indentation + 0.22 ln(1 + fixes))

The weights come from 15 public histories and are the same everywhere: what can be learned in one workspace is its
level, not a better ranking. So only the intercept `b` moves, with its variance `v`, by each outcome `y` that has become
known:

    v ← v + 0.001;   v ← v / (1 + p(1 − p)v);   b ← b + v(y − p)

It starts at b = −4.37, v = 0.1. The interval covers 90 %: on the scale of the sum, 1.645 standard deviations to either
side, from `v` and from the weights' own uncertainty.

The five inputs do not speak for everything in a change. Where there are files on which nothing was measured, or
stretches that could not be read, the upper end of the interval is at least `UNMEASURED` or `UNCLEAR`: no data shows as
a wide interval.

All of this is arithmetic on values: nothing is read, nothing is kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from aver.capsule.canonical import plain_bytes
from aver.gate.risk.features import Features
from aver.values import dataclass

__all__ = [
    "CHANGE",
    "PRIORS",
    "UNCLEAR",
    "UNMEASURED",
    "Level",
    "Score",
    "State",
    "change_offset",
    "fixed_score",
    "inputs",
    "interval",
    "logistic",
    "moved",
    "score",
]

CHANGE = "change"
"""The level of changes that were seen."""

WEIGHTS = (0.48, -0.05, 0.25, 0.016, 0.22)
DEVIATIONS = (0.1, 0.06, 0.12, 0.006, 0.16)
"""Of the weights, between repositories."""

DRIFT = 0.001
"""What is added to the variance for each outcome: a workspace's level moves, and old outcomes count less and less."""

NINETY = 1.6448536269514722
"""Standard deviations to either side that hold 90 % of a normal distribution."""

UNMEASURED = 0.25
"""The least upper end for a change with files on which the model was never measured."""

UNCLEAR = 0.8
"""The least upper end for a change that could not all be read."""

B_MIN, B_MAX, V_MIN, V_MAX = -10.0, 4.0, 1e-6, 4.0
"""Beyond these a level is not evidence but damage: σ(−10) is one in 22,000."""

OBSERVATIONS_MAX = 10**9


@dataclass(frozen=True, slots=True)
class Level:
    """A moving intercept, its variance, and the outcomes it has learned from."""

    b: float
    v: float
    observations: int = 0

    def is_sound(self) -> bool:
        """Whether its numbers are ones that learning can lead to. NaN and infinities are not."""
        return (
            type(self.b) is float
            and type(self.v) is float
            and type(self.observations) is int
            and B_MIN <= self.b <= B_MAX
            and V_MIN <= self.v <= V_MAX
            and 0 <= self.observations <= OBSERVATIONS_MAX
        )


PRIORS: Mapping[str, Level] = {
    CHANGE: Level(-4.37, 0.1),
    # What follows is not measured but set: wide, so that it never passes by itself where something is at stake.
    "unseen": Level(-2.6, 2.0),
    "command": Level(-2.6, 1.0),
    "network": Level(-2.6, 1.0),
    "deletion": Level(-2.2, 1.0),
    "tool": Level(-2.6, 1.5),
    "read": Level(-5.0, 0.3),
}
"""Where each level starts. All but the first are of actions that are not, or do not show, a change (see `kinds`)."""


@dataclass(frozen=True, slots=True)
class State:
    """What a workspace has taught: a level per kind of action. The empty one is the shipped prior."""

    levels: Mapping[str, Level] = field(default_factory=dict)
    learned_until: int = 0
    """Outcomes of the git history that were known at this time, in seconds since 1970, are in the levels."""
    note: str = ""
    """Why this is the prior although something was stored; empty otherwise."""

    def level(self, kind: str) -> Level:
        return self.levels.get(kind) or PRIORS[kind]

    def to_dict(self) -> dict[str, Any]:
        levels = {
            kind: {"b": level.b, "v": level.v, "observations": level.observations}
            for kind, level in sorted(self.levels.items())
        }
        return {"levels": levels, "learned_until": self.learned_until}

    @property
    def digest(self) -> str:
        """SHA-256 over what was learned: names the state in every estimate that rests on it."""
        return hashlib.sha256(plain_bytes(self.to_dict())).hexdigest()


@dataclass(frozen=True, slots=True)
class Score:
    """A probability and its 90 % interval."""

    p: float
    low: float
    high: float


def logistic(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z > -700 else 0.0


def inputs(features: Features) -> tuple[float, float, float, float, float]:
    """The five inputs as they enter the sum."""
    log1p = math.log1p
    return (
        log1p(features.added),
        log1p(features.removed),
        log1p(features.branches),
        float(features.indentation),
        log1p(features.fixes),
    )


def fixed_score(features: Features) -> float:
    """The probability by the shipped prior alone: what changes are ranked by, since it never moves."""
    return logistic(PRIORS[CHANGE].b + _weighed(inputs(features)))


def score(features: Features, level: Level) -> Score:
    """How likely the change is to fail, at a workspace's level."""
    x = inputs(features)
    variance = sum((deviation * value) ** 2 for deviation, value in zip(DEVIATIONS, x, strict=True))
    found = interval(level.b + _weighed(x), level.v + variance)
    least = UNCLEAR if features.unclear else UNMEASURED if features.unmeasured else 0.0
    return found if found.high >= least else replace(found, high=least)


def interval(z: float, variance: float) -> Score:
    """The probability at `z`, and where it lies with 90 % if `z` is off by `variance`."""
    reach = NINETY * math.sqrt(variance)
    return Score(logistic(z), logistic(z - reach), logistic(z + reach))


def moved(level: Level, offset: float, *, failed: bool) -> Level:
    """The level after an outcome. `offset` is the weighed sum of what was scored, without the intercept."""
    p = logistic(level.b + offset)
    v = level.v + DRIFT
    v = v / (1.0 + p * (1.0 - p) * v)
    b = level.b + v * ((1.0 if failed else 0.0) - p)
    return Level(max(B_MIN, min(B_MAX, b)), max(V_MIN, min(V_MAX, v)), min(level.observations + 1, OBSERVATIONS_MAX))


def change_offset(features: Features) -> float:
    """What `moved` needs of a change."""
    return _weighed(inputs(features))


def _weighed(x: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip(WEIGHTS, x, strict=True))
