"""Estimates the risk of an action, and learns from its outcome.

A change is scored twice: by itself, and together with all changes of its session since a human last approved one. The
higher risk counts, so splitting a change into parts gains nothing. An action that is not a change, or shows no diff, is
scored by its kind. If several scores apply, the one with the highest upper end counts, because decisions use that end.

An `Estimate` carries the features that it was computed from. A verifier recomputes it from them with
`estimate_from_features`. `learn_outcome` learns from the same features.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Literal, Protocol, get_args

from aver.errors import BadInput
from aver.gate.action import Action, Facts
from aver.gate.decision import NO_OUTCOMES_REASON, Estimate
from aver.gate.risk.diff import read_diff
from aver.gate.risk.features import Features, MeasuredChange, measure_diff, measure_parts
from aver.gate.risk.model import (
    CHANGE,
    CHANGE_TYPES,
    KIND_NAMES,
    RiskState,
    Score,
    action_offset,
    build_action_features,
    change_offset,
    score_action,
    score_change,
    update_level,
)

MODEL = "aver-risk-1"
"""The name of the shipped weights and priors. Another set must get another name."""

ActionOutcome = Literal["survived", "reverted", "repaired", "tests_failed", "failed"]
OUTCOMES: tuple[str, ...] = get_args(ActionOutcome)
"""Outcomes that may become known of an action. An agent's own claim of success is not one of them."""

_EFFECTS_OF_A_CHANGE = frozenset({"read", "write", "create", "seen", "arrange", "git-state", "file-state", "scratch"})


class FixHistory(Protocol):
    """The past of a repository, as far as risk needs it."""

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        """Count bug fixes to these files in the 180 days before `now`, summed over the files."""


def estimate(
    action: Action,
    facts: Facts,
    state: RiskState,
    history: FixHistory | None = None,
    *,
    effects: Collection[str] | None = None,
    places: Collection[str] = (),
) -> Estimate:
    """Estimate how likely an action is to fail.

    `effects` are the names of its effects, `places` the zones and classes that it touches, as `gate.effects` names
    them. None means that the effects are not known. If the diff shows all effects, both are ignored.
    """
    # 1. The action's own change, and that together with the session's earlier changes.
    diff = _find_diff(action, facts)
    own = None if diff is None else measure_diff(diff, workspace=action.workspace)
    changes = _list_changes(own, action, facts)
    fixes: list[int] = []
    candidates: list[Mapping[str, float]] = []
    for change in changes:
        count = 0 if history is None else history.fixes_before(change.sources, facts.now)
        fixes.append(count)
        candidates.append(replace(change.features, fixes=count).to_dict())
    # 2. The kind of the action, unless the diff shows all that it does.
    only_changes = action.type in CHANGE_TYPES if effects is None else _EFFECTS_OF_A_CHANGE.issuperset(effects)
    if own is None or not only_changes:
        candidates.append(build_action_features(action, facts, effects, places))
    # 3. The score with the highest upper end.
    found = max(
        (estimate_from_features(features, state) for features in candidates),
        key=attrgetter("high", "score"),
    )
    # The decision's record keeps the counts of fixes: the repository cannot be asked for them later.
    return replace(found, fixes=tuple(fixes), change=own)


def find_fixes(action: Action, facts: Facts, history: FixHistory | None) -> tuple[int, ...]:
    """Return the answers of a history that `estimate` asks for about this action, in its order."""
    diff = _find_diff(action, facts)
    if history is None:  # Every answer is 0, whatever the files are: only the number of questions counts.
        own = None if diff is None else MeasuredChange(Features(), ())
        return (0,) * len(_list_changes(own, action, facts))
    # Not `measure_diff`: the names of the files are enough, so no line is looked into.
    own = None if diff is None else measure_parts(read_diff(diff), workspace=action.workspace)
    return tuple(history.fixes_before(change.sources, facts.now) for change in _list_changes(own, action, facts))


def _find_diff(action: Action, facts: Facts) -> str | None:
    """Return the diff of an action. A command has none of its own; the facts have one where it shows what it writes."""
    # The gateway makes this diff itself: empty, it says that the file has this content already. From an agent, an empty
    # diff would say nothing.
    if action.diff == "" and action.request_sha256:
        return ""
    diff = action.diff if action.diff is not None else facts.written
    return diff if diff and not diff.isspace() else None


def _list_changes(own: MeasuredChange | None, action: Action, facts: Facts) -> list[MeasuredChange]:
    """Return an action's own change, and that together with the session's earlier changes.

    The earlier changes do not matter for an action that only reads or runs something.
    """
    changes = [] if own is None else [own]
    if facts.changed and (own is not None or action.type in CHANGE_TYPES):
        before = MeasuredChange(Features.from_dict(facts.changed), facts.changed_files)
        changes.append(before if own is None else own.plus(before))
    return changes


def estimate_from_features(features: Mapping[str, float], state: RiskState) -> Estimate:
    """Return the estimate for these features, at a state."""
    kind = next((name for name in features if name in KIND_NAMES), None)  # None is a change.
    level = state.level(kind or CHANGE)
    found: Score = score_change(Features.from_dict(features), level) if kind is None else score_action(features, level)
    return Estimate(found.p, found.low, found.high, level.observations, f"{MODEL}:{state.digest}", features)


def learn_outcome(state: RiskState, features: Mapping[str, float], outcome: ActionOutcome) -> RiskState:
    """Return the state after the outcome of an action with these features. Raises BadInput for an unknown outcome."""
    if outcome not in OUTCOMES:
        raise BadInput(f"{outcome!r} is not an outcome", advice=f"use one of {', '.join(OUTCOMES)}")
    kind = next((name for name in features if name in KIND_NAMES), None)
    offset = change_offset(Features.from_dict(features)) if kind is None else action_offset(features)
    # Only the level of this kind moves.
    level = update_level(state.level(kind or CHANGE), offset, failed=outcome != "survived")
    return RiskState({**state.levels, kind or CHANGE: level}, state.learned_until)


def explain_estimate(found: Estimate, state: RiskState) -> tuple[str, ...]:
    """Return what an estimate is based on, as texts for the reasons of a decision."""
    features = found.features
    words = []
    if "added" in features:
        if features["added"] or features["files"]:  # A change of settings or data adds no code.
            files = _format_count(features["files"], "source file")
            words.append(f"{_format_count(features['added'], 'line')} of code added in {files}")
        if features["unmeasured"]:
            words.append(f"{_format_count(features['unmeasured'], 'file')} of a kind that was never measured")
        if features["unclear"]:
            words.append(f"{_format_count(features['unclear'], 'part')} of the change could not be judged by its lines")
        if features["fixes"]:
            words.append(f"{_format_count(features['fixes'], 'recent bug fix', 'recent bug fixes')} to the same files")
    elif "unseen" in features:
        if found.change is None:
            words.append("the change itself was not shown")
        else:  # As of a git hook: the diff shows the file, and not what runs later because of it.
            words.append("the change has effects that its lines do not show")
    if features.get("failures"):
        words.append(f"{_format_count(features['failures'], 'recent failure')} of the same tool")
    if not found.observations:
        words.append(NO_OUTCOMES_REASON)
    if state.note:
        words.append(state.note)
    return tuple(words)


def _format_count(count: float, one: str, many: str = "") -> str:
    return f"{count:.0f} {one if count == 1 else many or one + 's'}"
