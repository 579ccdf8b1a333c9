"""An action and its facts become one `Estimate`; an outcome that has become known becomes a new `State`.

A change is scored twice: by itself, and as part of all that its session has changed so far. The larger risk counts, so
that a change gains nothing by being split. An action that is no change, or does not show it, is scored by its kind.
Where several scores apply, the one with the highest upper end counts, because that is what decisions are made on.

An `Estimate` carries the numbers that it was computed from. `rescored` computes it again from those, for whoever
verifies a decision; `updated` learns from them, so that what is learned from is what was scored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol, get_args

from aver.errors import BadInput
from aver.gate.action import DIFF_MAX, Action, Facts
from aver.gate.decision import Estimate
from aver.gate.risk.features import Features, features_of
from aver.gate.risk.kinds import CHANGE_TYPES, kind_features, kind_in, kind_offset, kind_score
from aver.gate.risk.model import CHANGE, Score, State, change_offset, moved, score

__all__ = ["MODEL", "OUTCOMES", "History", "Outcome", "estimate", "reasons", "rescored", "updated"]

MODEL = "aver-risk-1"
"""The weights and priors that this program ships. Another set gets another name."""

Outcome = Literal["survived", "reverted", "repaired", "tests_failed", "failed"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
"""What may become known of an action. That its agent calls it a success is none of them."""

_EFFECTS_OF_A_CHANGE = frozenset({"read", "write"})


class History(Protocol):
    """What is known of a repository's past."""

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        """Bug fixes to these files in the 180 days before `now`, summed over the files."""


def estimate(
    action: Action,
    facts: Facts,
    state: State,
    history: History | None = None,
    *,
    effects: Collection[str] | None = None,
    places: Collection[str] = (),
) -> Estimate:
    """How likely an action is to fail.

    `effects` are the classes of what it does and `places` those of what it does it to, as `aver.gate.effects` names
    them; None means that nobody knows. Of a change that shows itself they count only if they are more than a change's.
    """
    candidates: list[Mapping[str, float]] = []
    shown = _shown(action, facts)
    if shown:
        fixes = None if history is None else _counter(history, facts.now)
        candidates += [_measured(diff, action.workspace, fixes) for diff in shown]
    if not _is_shown_change(action, effects):
        candidates.append(kind_features(action, facts, effects, places))
    return max((rescored(features, state) for features in candidates), key=lambda found: (found.high, found.score))


def rescored(features: Mapping[str, float], state: State) -> Estimate:
    """The estimate that rests on these features, at a state."""
    kind = kind_in(features)
    level = state.level(kind or CHANGE)
    found: Score = score(Features.from_dict(features), level) if kind is None else kind_score(features, level)
    return Estimate(found.p, found.low, found.high, level.observations, f"{MODEL}:{state.digest}", features)


def updated(state: State, features: Mapping[str, float], outcome: Outcome) -> State:
    """The state after the outcome of an action that was scored by these features."""
    if outcome not in OUTCOMES:
        raise BadInput(f"{outcome!r} is not an outcome", advice=f"use one of {', '.join(OUTCOMES)}")
    kind = kind_in(features)
    offset = change_offset(Features.from_dict(features)) if kind is None else kind_offset(features)
    level = moved(state.level(kind or CHANGE), offset, failed=outcome != "survived")
    return State({**state.levels, kind or CHANGE: level}, state.learned_until)


def reasons(found: Estimate, state: State) -> tuple[str, ...]:
    """What an estimate rests on, in words."""
    features = found.features
    words = []
    if "added" in features:
        files = _counted(features["files"], "source file")
        words.append(f"{_counted(features['added'], 'line')} of code added in {files}")
        if features["unmeasured"]:
            words.append(f"{_counted(features['unmeasured'], 'file')} of a kind that was never measured")
        if features["unclear"]:
            words.append(f"{_counted(features['unclear'], 'part')} of the change could not be judged by its lines")
        if features["fixes"]:
            words.append(f"{_counted(features['fixes'], 'recent bug fix', 'recent bug fixes')} to the same files")
    elif "unseen" in features:
        words.append("the change itself was not shown")
    if features.get("failures"):
        words.append(f"{_counted(features['failures'], 'recent failure')} of the same tool")
    if not found.observations:
        words.append("no outcomes of this workspace are known yet")
    if state.note:
        words.append(state.note)
    return tuple(words)


def _shown(action: Action, facts: Facts) -> list[str]:
    """The diffs to score. What a session has changed concerns its changes, not what it reads and runs."""
    diffs = [action.diff]
    if action.type in CHANGE_TYPES or action.diff is not None:
        diffs.append(facts.session_diff)
    return [diff for diff in dict.fromkeys(diffs) if diff is not None and not diff.isspace() and diff]


def _is_shown_change(action: Action, effects: Collection[str] | None) -> bool:
    """Whether the diff says all that the action does."""
    if not action.diff or action.diff.isspace():
        return False
    if effects is None:
        return action.type in CHANGE_TYPES
    return _EFFECTS_OF_A_CHANGE.issuperset(effects)


def _measured(diff: str, workspace: str, fixes: Callable[[Collection[str]], int] | None) -> Mapping[str, float]:
    if len(diff) > DIFF_MAX:
        return Features(unclear=1).to_dict()
    return features_of(diff, workspace=workspace, fixes=fixes).to_dict()


def _counter(history: History, now: str) -> Callable[[Collection[str]], int]:
    return lambda paths: history.fixes_before(paths, now)


def _counted(count: float, one: str, many: str = "") -> str:
    return f"{count:.0f} {one if count == 1 else many or one + 's'}"
