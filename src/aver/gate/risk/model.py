"""The risk model: the probability that an action fails, its interval, and how the level of a workspace is learned.

**Changes.** The probability that a change fails is

    p = σ(b + 0.48 ln(1 + added) − 0.05 ln(1 + removed) + 0.25 ln(1 + branches)
            + 0.016 · indentation + 0.22 ln(1 + fixes))

The weights come from 15 public histories and are fixed. One workspace has too little data to improve them. Only the
intercept `b`, the *level*, moves, with its variance `v`. Each outcome `y` that becomes known updates both:

    v ← v + 0.001;   v ← v / (1 + p(1 − p)v);   b ← b + v(y − p)

The level starts at b = −4.37, v = 0.1. The interval covers 90 %: on the scale of the sum, 1.645 standard deviations to
either side, from `v` and from the uncertainty of the weights.

The five inputs do not cover everything in a change. If it touches unmeasured files, or has unclear parts, the upper end
of the interval is at least `UNMEASURED_HIGH_MIN` or `UNCLEAR_HIGH_MIN`. Missing data thus shows as a wide interval.

**Other actions**: commands, network, deletion, tools, reads, and changes without a diff. No measurements exist of how
often they fail. Their priors are set by hand, with wide intervals that only a workspace's own outcomes narrow. A few
named inputs enter the sum with a weight. Each is 0 or 1, except the last:

    effect.<class>    an effect of the action (see `gate.effects`); `effect.unknown` if the effects are not known
    place.<class>     what it acts on: outside the workspace, or something guarded
    failures          recent failures of the same tool, as ln(1 + failures)

Successes of a tool lower nothing, because an agent could collect them with harmless calls.

All functions here are pure arithmetic.
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

CHANGE = "change"
"""The kind of action that is a change with a diff."""

WEIGHTS = (0.48, -0.05, 0.25, 0.016, 0.22)
WEIGHT_DEVIATIONS = (0.1, 0.06, 0.12, 0.006, 0.16)
"""Standard deviations of the weights between repositories."""

VARIANCE_DRIFT = 0.001
"""Variance added for each outcome. The level of a workspace moves over time, so old outcomes count less."""

Z_90 = 1.6448536269514722
"""Standard deviations to either side of the mean that cover 90 % of a normal distribution."""

UNMEASURED_HIGH_MIN = 0.25
"""The least upper end for a change with unmeasured files."""

UNCLEAR_HIGH_MIN = 0.8
"""The least upper end for a change with unclear parts."""

B_MIN, B_MAX, V_MIN, V_MAX = -10.0, 4.0, 1e-6, 4.0
"""Bounds of a plausible level. Numbers beyond them come from damage: σ(−10) is one in 22,000."""

OBSERVATIONS_MAX = 10**9


@dataclass(frozen=True, slots=True)
class RiskLevel:
    """A moving intercept `b`, its variance `v`, and the number of outcomes it has learned from."""

    b: float
    v: float
    observations: int = 0

    def is_sound(self) -> bool:
        """Whether learning can lead to these numbers. NaN and infinities fail the comparisons."""
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
    # The following priors are set by hand. They are wide, so that a risky action never passes on the prior alone.
    "unseen": RiskLevel(-2.6, 2.0),
    "command": RiskLevel(-2.6, 1.0),
    "network": RiskLevel(-2.6, 1.0),
    "deletion": RiskLevel(-2.2, 1.0),
    "tool": RiskLevel(-2.6, 1.5),
    "read": RiskLevel(-5.0, 0.3),
}
"""The start of each level, by kind of action."""


@dataclass(frozen=True, slots=True)
class RiskState:
    """The learned level of each kind of action in a workspace. An empty state is the shipped prior."""

    levels: Mapping[str, RiskLevel] = field(default_factory=dict)
    learned_until: int = 0
    """The time, in seconds since 1970, up to which outcomes of the git history are in the levels."""
    note: str = ""
    """Why a stored state was not used; empty in all other cases."""

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
        """SHA-256 over the learned levels. Every estimate names the state it used by this digest."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()


@dataclass(frozen=True, slots=True)
class Score:
    """A probability and its 90 % interval."""

    p: float
    low: float
    high: float


def logistic(z: float) -> float:
    # `math.exp` overflows from 710 on.
    return 1.0 / (1.0 + math.exp(-z)) if z > -700 else 0.0


def model_inputs(features: Features) -> tuple[float, float, float, float, float]:
    """Return the five inputs as they enter the sum."""
    log1p = math.log1p
    return (
        log1p(features.added),
        log1p(features.removed),
        log1p(features.branches),
        float(features.indentation),
        log1p(features.fixes),
    )


def score_with_prior(features: Features) -> float:
    """Return the probability by the shipped prior alone. Reports rank changes by it, because it never moves."""
    return logistic(PRIORS[CHANGE].b + change_offset(features))


def score_change(features: Features, level: RiskLevel) -> Score:
    """Score a change at the level of a workspace."""
    x = model_inputs(features)
    # The larger an input, the more the uncertainty of its weight matters.
    variance = sum((deviation * value) ** 2 for deviation, value in zip(WEIGHT_DEVIATIONS, x, strict=True))
    found = score_from_logit(level.b + change_offset(features), level.v + variance)
    # The five inputs say nothing about such parts, so the interval must not be narrow.
    least = UNCLEAR_HIGH_MIN if features.unclear else UNMEASURED_HIGH_MIN if features.unmeasured else 0.0
    return found if found.high >= least else replace(found, high=least)


def score_from_logit(z: float, variance: float) -> Score:
    """Return the probability at `z`, with the 90 % interval for this variance of `z`."""
    reach = Z_90 * math.sqrt(variance)
    return Score(logistic(z), logistic(z - reach), logistic(z + reach))


def update_level(level: RiskLevel, offset: float, *, failed: bool) -> RiskLevel:
    """Return the level after an outcome. `offset` is the weighted sum of the scored inputs, without `b`."""
    # One step of a Kalman-like filter: the variance first grows by drift, then shrinks by what the outcome tells.
    p = logistic(level.b + offset)
    v = level.v + VARIANCE_DRIFT
    v = v / (1.0 + p * (1.0 - p) * v)
    b = level.b + v * ((1.0 if failed else 0.0) - p)
    return RiskLevel(
        max(B_MIN, min(B_MAX, b)), max(V_MIN, min(V_MAX, v)), min(level.observations + 1, OBSERVATIONS_MAX)
    )


def change_offset(features: Features) -> float:
    """Return the weighted sum of a change's inputs, without the intercept."""
    return sum(weight * value for weight, value in zip(WEIGHTS, model_inputs(features), strict=True))


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
"""Kinds by the type of the action. All other types are `tool`."""

KIND_NAMES = frozenset({"unseen", "read", "deletion", "command", "network", "tool"})
"""The features of an action have one of these names. Those of a change have none."""

_HARMLESS_EFFECTS = frozenset({"read"})
_TYPES_JUDGED_BY_EFFECTS = frozenset({"tool_call", "action", "unknown", "command", "shell_exec", "code_gen"})
"""Types of action that may turn out to only read. An edit, a deletion or a request never counts as a read."""

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
"""The standard deviation of each weight, as a share of the weight. The weights are guesses."""

FAILURES_MAX = 10_000


def build_action_features(
    action: Action, facts: Facts, effects: Collection[str] | None, places: Collection[str]
) -> dict[str, float]:
    """Return the named inputs of an action. `effects` is None if they are not known."""
    kind = known = _KIND_BY_TYPE.get(action.type, "tool")
    if effects is not None:
        # An action that only reads is a read, if its type allows that. A tool, or a read that does more, gets its kind
        # from its effects.
        if _HARMLESS_EFFECTS.issuperset(effects) and (known == "read" or action.type in _TYPES_JUDGED_BY_EFFECTS):
            kind = "read"
        elif action.type not in _KIND_BY_TYPE or known == "read":
            kind = "deletion" if "delete" in effects else "network" if {"network", "egress"} & set(effects) else "tool"
    features = {kind: 1.0}
    if effects is None and action.type not in READING_TYPES:
        features["effect.unknown"] = 1.0
    features |= {f"effect.{name}": 1.0 for name in sorted(effects or ())}
    features |= {f"place.{name}": 1.0 for name in sorted(places)}
    if facts.failures > 0:
        features["failures"] = _clamp_failures(facts.failures)
    return features


def action_offset(features: Mapping[str, float]) -> float:
    """Return the weighted sum of an action's inputs, without the intercept."""
    return sum(_weigh_action_inputs(features))


def score_action(features: Mapping[str, float], level: RiskLevel) -> Score:
    parts = _weigh_action_inputs(features)
    return score_from_logit(level.b + sum(parts), level.v + sum((_DEVIATION_SHARE * part) ** 2 for part in parts))


def _weigh_action_inputs(features: Mapping[str, float]) -> list[float]:
    parts = []
    for name, value in features.items():
        # The name of the kind has no dot, and adds nothing: the level of that kind is in `b`.
        family, _, rest = name.partition(".")
        if family == "effect":
            parts.append(_EFFECT_WEIGHTS.get(rest, _UNKNOWN_EFFECT_WEIGHT))
        elif family == "place":
            parts.append(_PLACE_WEIGHTS.get(rest, _OTHER_PLACE_WEIGHT))
        elif name == "failures":
            parts.append(_FAILURES_WEIGHT * math.log1p(_clamp_failures(value)))
    return parts


def _clamp_failures(value: float) -> float:
    """Bring an untrusted count within its bounds. NaN becomes the maximum."""
    if not isinstance(value, int | float) or not value <= FAILURES_MAX:
        return FAILURES_MAX
    return max(0.0, value)
