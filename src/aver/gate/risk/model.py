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

Actions that are not changes: commands, network, deletion, tools, reads, and changes that do not show themselves.

Nobody has measured how often those fail, so their priors are set and not fitted, and their intervals are wide: only a
workspace's own outcomes narrow them. A few named inputs, each 0 or 1 but for the last, enter the sum with a weight:

    effect.<class>    what the action does, as `gate.effects` names it; `effect.unknown` where that is not known
    place.<class>     what it does it to: outside the workspace, or something guarded
    failures          recent failures of the same tool, as ln(1 + failures)

Successes of a tool lower nothing: whoever asks could collect them with something harmless.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

from aver.capsule.canonical import canonical_json
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.risk.features import Features

__all__ = [
    "CHANGE",
    "CHANGE_TYPES",
    "PRIORS",
    "UNCLEAR_HIGH_MIN",
    "UNMEASURED_HIGH_MIN",
    "RiskLevel",
    "RiskState",
    "Score",
    "action_offset",
    "build_action_features",
    "change_offset",
    "find_kind",
    "logistic",
    "model_inputs",
    "score_action",
    "score_change",
    "score_from_logit",
    "score_with_prior",
    "update_level",
]


CHANGE = "change"
"""The level of changes that were seen."""

WEIGHTS = (0.48, -0.05, 0.25, 0.016, 0.22)
WEIGHT_DEVIATIONS = (0.1, 0.06, 0.12, 0.006, 0.16)
"""Of the weights, between repositories."""

VARIANCE_DRIFT = 0.001
"""What is added to the variance for each outcome: a workspace's level moves, and old outcomes count less and less."""

Z_90 = 1.6448536269514722
"""Standard deviations to either side that hold 90 % of a normal distribution."""

UNMEASURED_HIGH_MIN = 0.25
"""The least upper end for a change with files on which the model was never measured."""

UNCLEAR_HIGH_MIN = 0.8
"""The least upper end for a change that could not all be read."""

B_MIN, B_MAX, V_MIN, V_MAX = -10.0, 4.0, 1e-6, 4.0
"""Beyond these a level is not evidence but damage: σ(−10) is one in 22,000."""

OBSERVATIONS_MAX = 10**9


@dataclass(frozen=True, slots=True)
class RiskLevel:
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


PRIORS: Mapping[str, RiskLevel] = {
    CHANGE: RiskLevel(-4.37, 0.1),
    # What follows is not measured but set: wide, so that it never passes by itself where something is at stake.
    "unseen": RiskLevel(-2.6, 2.0),
    "command": RiskLevel(-2.6, 1.0),
    "network": RiskLevel(-2.6, 1.0),
    "deletion": RiskLevel(-2.2, 1.0),
    "tool": RiskLevel(-2.6, 1.5),
    "read": RiskLevel(-5.0, 0.3),
}
"""Where each level starts. All but the first are of actions that are not, or do not show, a change (see `kinds`)."""


@dataclass(frozen=True, slots=True)
class RiskState:
    """What a workspace has taught: a level per kind of action. The empty one is the shipped prior."""

    levels: Mapping[str, RiskLevel] = field(default_factory=dict)
    learned_until: int = 0
    """Outcomes of the git history that were known at this time, in seconds since 1970, are in the levels."""
    note: str = ""
    """Why this is the prior although something was stored; empty otherwise."""

    def level(self, kind: str) -> RiskLevel:
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
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()


@dataclass(frozen=True, slots=True)
class Score:
    """A probability and its 90 % interval."""

    p: float
    low: float
    high: float


def logistic(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z > -700 else 0.0


def model_inputs(features: Features) -> tuple[float, float, float, float, float]:
    """The five inputs as they enter the sum."""
    log1p = math.log1p
    return (
        log1p(features.added),
        log1p(features.removed),
        log1p(features.branches),
        float(features.indentation),
        log1p(features.fixes),
    )


def score_with_prior(features: Features) -> float:
    """The probability by the shipped prior alone: what changes are ranked by, since it never moves."""
    return logistic(PRIORS[CHANGE].b + _weigh_inputs(model_inputs(features)))


def score_change(features: Features, level: RiskLevel) -> Score:
    """How likely the change is to fail, at a workspace's level."""
    x = model_inputs(features)
    variance = sum((deviation * value) ** 2 for deviation, value in zip(WEIGHT_DEVIATIONS, x, strict=True))
    found = score_from_logit(level.b + _weigh_inputs(x), level.v + variance)
    least = UNCLEAR_HIGH_MIN if features.unclear else UNMEASURED_HIGH_MIN if features.unmeasured else 0.0
    return found if found.high >= least else replace(found, high=least)


def score_from_logit(z: float, variance: float) -> Score:
    """The probability at `z`, and where it lies with 90 % if `z` is off by `variance`."""
    reach = Z_90 * math.sqrt(variance)
    return Score(logistic(z), logistic(z - reach), logistic(z + reach))


def update_level(level: RiskLevel, offset: float, *, failed: bool) -> RiskLevel:
    """The level after an outcome. `offset` is the weighed sum of what was scored, without the intercept."""
    p = logistic(level.b + offset)
    v = level.v + VARIANCE_DRIFT
    v = v / (1.0 + p * (1.0 - p) * v)
    b = level.b + v * ((1.0 if failed else 0.0) - p)
    return RiskLevel(
        max(B_MIN, min(B_MAX, b)), max(V_MIN, min(V_MAX, v)), min(level.observations + 1, OBSERVATIONS_MAX)
    )


def change_offset(features: Features) -> float:
    """What `moved` needs of a change."""
    return _weigh_inputs(model_inputs(features))


def _weigh_inputs(x: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip(WEIGHTS, x, strict=True))


CHANGE_TYPES = frozenset({"code_edit", "file_write", "code_gen"})
READING_TYPES = frozenset({"decision", "observation", "file_read"})

_KIND_BY_TYPE = {
    **dict.fromkeys(CHANGE_TYPES, "unseen"),
    **dict.fromkeys(READING_TYPES, "read"),
    "file_delete": "deletion",
    "shell_exec": "command",
    "command": "command",
    "api_request": "network",
    "web_request": "network",
    "browser_action": "network",
}
"""By the type of action; `tool` for what says nothing of itself."""

_KIND_NAMES = frozenset({"unseen", "read", "deletion", "command", "network", "tool"})

_HARMLESS_EFFECTS = frozenset({"read"})
_TYPES_JUDGED_BY_EFFECTS = frozenset({"tool_call", "action", "unknown", "command", "shell_exec", "code_gen"})
"""Types of action that may do nothing but read. An edit, a deletion or a request that claims so is not believed."""

_EFFECT_WEIGHTS = {
    "read": 0.0,
    "arrange": 0.3,
    "write": 0.3,
    "process": 0.4,
    "network": 0.4,
    "build": 0.5,
    "execute": 0.5,
    "delete": 0.6,
    "git-history": 0.8,
    "install": 0.8,
    "secret": 0.8,
    "egress": 1.0,
    "persist": 1.0,
    "agent-config": 1.0,
    "privilege": 1.2,
    "system": 1.2,
}
_UNKNOWN_EFFECT_WEIGHT = 1.0
_PLACE_WEIGHTS = {"workspace": 0.0, "temporary": 0.0}
_OTHER_PLACE_WEIGHT = 0.7
_FAILURES_WEIGHT = 0.6

_DEVIATION_SHARE = 0.5
"""Of each weight, as a share of it. They are guesses."""

FAILURES_MAX = 10_000


def build_action_features(
    action: Action, facts: Facts, effects: Collection[str] | None, places: Collection[str]
) -> dict[str, float]:
    """The named inputs of an action. `effects` None means that nobody knows them."""
    features = {_choose_kind(action, effects): 1.0}
    if effects is None and action.type not in READING_TYPES:
        features["effect.unknown"] = 1.0
    features |= {f"effect.{name}": 1.0 for name in sorted(effects or ())}
    features |= {f"place.{name}": 1.0 for name in sorted(places)}
    if facts.failures > 0:
        features["failures"] = _clamp_failures(facts.failures)
    return features


def _choose_kind(action: Action, effects: Collection[str] | None) -> str:
    known = _KIND_BY_TYPE.get(action.type)
    if effects is None:
        return known or "tool"
    harmless = _HARMLESS_EFFECTS.issuperset(effects)
    if harmless and (known == "read" or action.type in _TYPES_JUDGED_BY_EFFECTS):
        return "read"
    if known is not None and known != "read":
        return known
    if "delete" in effects:
        return "deletion"
    return "network" if {"network", "egress"} & set(effects) else "tool"


def find_kind(features: Mapping[str, float]) -> str | None:
    """The kind that features are of; None if they are a change's."""
    return next((name for name in features if name in _KIND_NAMES), None)


def action_offset(features: Mapping[str, float]) -> float:
    """The weighed sum without the intercept."""
    return sum(weighed for weighed in _weigh_action_inputs(features))


def score_action(features: Mapping[str, float], level: RiskLevel) -> Score:
    parts = _weigh_action_inputs(features)
    return score_from_logit(level.b + sum(parts), level.v + sum((_DEVIATION_SHARE * part) ** 2 for part in parts))


def _weigh_action_inputs(features: Mapping[str, float]) -> list[float]:
    parts = []
    for name, value in features.items():
        family, _, rest = name.partition(".")
        if family == "effect":
            parts.append(_EFFECT_WEIGHTS.get(rest, _UNKNOWN_EFFECT_WEIGHT))
        elif family == "place":
            parts.append(_PLACE_WEIGHTS.get(rest, _OTHER_PLACE_WEIGHT))
        elif name == "failures":
            parts.append(_FAILURES_WEIGHT * math.log1p(_clamp_failures(value)))
    return parts


def _clamp_failures(value: float) -> float:
    """A count that may come from outside."""
    if not isinstance(value, int | float) or not value <= FAILURES_MAX:
        return FAILURES_MAX
    return max(0.0, value)
