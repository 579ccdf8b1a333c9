"""Actions that are not changes: commands, network, deletion, tools, reads, and changes that do not show themselves.

Nobody has measured how often those fail, so their priors are set and not fitted, and their intervals are wide: only a
workspace's own outcomes narrow them. A few named inputs, each 0 or 1 but for the last, enter the sum with a weight:

    effect.<class>    what the action does, as `aver.gate.effects` names it; `effect.unknown` where that is not known
    place.<class>     what it does it to: outside the workspace, or something guarded
    failures          recent failures of the same tool, as ln(1 + failures)

Successes of a tool lower nothing: whoever asks could collect them with something harmless.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from aver.gate.action import Action, Facts
from aver.gate.risk.model import Level, Score, interval

__all__ = ["CHANGE_TYPES", "kind_features", "kind_in", "kind_offset", "kind_score"]

CHANGE_TYPES = frozenset({"code_edit", "file_write", "code_gen"})
READING_TYPES = frozenset({"decision", "observation", "file_read"})

_KINDS = {
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

_NAMES = frozenset({"unseen", "read", "deletion", "command", "network", "tool"})

_HARMLESS = frozenset({"read"})
_TOLD_BY_EFFECTS = frozenset({"tool_call", "action", "unknown", "command", "shell_exec", "code_gen"})
"""Types of action that may do nothing but read. An edit, a deletion or a request that claims so is not believed."""

_EFFECTS = {
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
_UNKNOWN_EFFECT = 1.0
_PLACES = {"workspace": 0.0, "temporary": 0.0}
_OTHER_PLACE = 0.7
_FAILURES = 0.6

_DEVIATION = 0.5
"""Of each weight, as a share of it. They are guesses."""

FAILURES_MAX = 10_000


def kind_features(
    action: Action, facts: Facts, effects: Collection[str] | None, places: Collection[str]
) -> dict[str, float]:
    """The named inputs of an action. `effects` None means that nobody knows them."""
    features = {_kind(action, effects): 1.0}
    if effects is None and action.type not in READING_TYPES:
        features["effect.unknown"] = 1.0
    features |= {f"effect.{name}": 1.0 for name in sorted(effects or ())}
    features |= {f"place.{name}": 1.0 for name in sorted(places)}
    if facts.failures > 0:
        features["failures"] = _bounded(facts.failures)
    return features


def _kind(action: Action, effects: Collection[str] | None) -> str:
    known = _KINDS.get(action.type)
    if effects is None:
        return known or "tool"
    harmless = _HARMLESS.issuperset(effects)
    if harmless and (known == "read" or action.type in _TOLD_BY_EFFECTS):
        return "read"
    if known is not None and known != "read":
        return known
    if "delete" in effects:
        return "deletion"
    return "network" if {"network", "egress"} & set(effects) else "tool"


def kind_in(features: Mapping[str, float]) -> str | None:
    """The kind that features are of; None if they are a change's."""
    return next((name for name in features if name in _NAMES), None)


def kind_offset(features: Mapping[str, float]) -> float:
    """The weighed sum without the intercept."""
    return sum(weighed for weighed in _weighed(features))


def kind_score(features: Mapping[str, float], level: Level) -> Score:
    parts = _weighed(features)
    return interval(level.b + sum(parts), level.v + sum((_DEVIATION * part) ** 2 for part in parts))


def _weighed(features: Mapping[str, float]) -> list[float]:
    parts = []
    for name, value in features.items():
        family, _, rest = name.partition(".")
        if family == "effect":
            parts.append(_EFFECTS.get(rest, _UNKNOWN_EFFECT))
        elif family == "place":
            parts.append(_PLACES.get(rest, _OTHER_PLACE))
        elif name == "failures":
            parts.append(_FAILURES * math.log1p(_bounded(value)))
    return parts


def _bounded(value: float) -> float:
    """A count that may come from outside."""
    if not isinstance(value, int | float) or not value <= FAILURES_MAX:
        return FAILURES_MAX
    return max(0.0, value)
