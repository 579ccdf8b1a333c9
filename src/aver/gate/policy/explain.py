"""Why policy answered as it did, and what would have changed the answer.

Not by reading rules, but by asking again: with low risk, without each label of the session, without each effect, with
every doubt removed, without each target. What makes the answer milder is named. Where no single change does, all
but those of targets are tried together, and what is not needed is left out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from aver.fast_dataclass import dataclass
from aver.gate.decision import PolicyAnswer
from aver.gate.policy.bundle import PolicyBundle
from aver.gate.policy.query import TARGETS_MAX, ask_policy
from aver.gate.policy.question import PolicyQuestion, Target

__all__ = ["Counterfactual", "Explanation", "explain_answer"]

_MILDER_OUTCOMES = {"deny": ("step_up", "allow"), "step_up": ("allow",), "allow": ()}

_QuestionChange = tuple[str, Callable[[PolicyQuestion], PolicyQuestion]]


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What would have changed the answer, and to what. All of `changes` are needed."""

    changes: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer, the targets it holds for, and what would have turned it."""

    answer: PolicyAnswer
    by_target: tuple[tuple[Target, PolicyAnswer], ...]
    turns: tuple[Counterfactual, ...]


def explain_answer(bundle: PolicyBundle, question: PolicyQuestion) -> Explanation:
    answer = ask_policy(bundle, question)
    alone = tuple(
        (target, ask_policy(bundle, replace(question, targets=(target,)))) for target in question.targets[:TARGETS_MAX]
    )
    turns = list(_find_counterfactuals(bundle, question, answer.outcome))
    if answer.outcome == "step_up":
        turns.append(Counterfactual(("a human approved it",), "allow"))
    return Explanation(answer, alone, tuple(turns))


def _find_counterfactuals(bundle: PolicyBundle, question: PolicyQuestion, outcome: str) -> Iterator[Counterfactual]:
    def milder(changes: list[_QuestionChange]) -> str | None:
        changed = question
        for _, change in changes:
            changed = change(changed)
        found = ask_policy(bundle, changed).outcome
        return found if found in _MILDER_OUTCOMES[outcome] else None

    changes = list(_possible_changes(question))
    single = [(change, found) for change in (*changes, *_target_removals(question)) if (found := milder([change]))]
    for (words, _), found in single:
        yield Counterfactual((words,), found)
    if single or not milder(changes):
        return
    needed = changes
    for change in changes:
        rest = [one for one in needed if one is not change]
        if milder(rest):
            needed = rest
    yield Counterfactual(tuple(words for words, _ in needed), milder(needed) or outcome)


def _possible_changes(question: PolicyQuestion) -> Iterator[_QuestionChange]:
    """What could be milder in the question."""
    if question.risk != "low":
        yield "its risk were low", lambda asked: replace(asked, risk="low", score=(0, 0, 0))
    if question.unclear or not question.arguments.complete:
        yield "all of it were understood", _without_doubts
    for label in sorted(question.labels):
        yield f"the session were not marked {label!r}", _without_label(label)
    for effect in sorted(question.effects):
        yield f"it had not the effect {effect!r}", _without_effect(effect)


def _target_removals(question: PolicyQuestion) -> Iterator[_QuestionChange]:
    for target in question.targets if 1 < len(question.targets) <= TARGETS_MAX else ():
        yield f"it left {target.kind.lower()} {target.name} alone", _without_target(target)


def _without_doubts(asked: PolicyQuestion) -> PolicyQuestion:
    return replace(asked, unclear=False, arguments=replace(asked.arguments, complete=True))


def _without_label(label: str) -> Callable[[PolicyQuestion], PolicyQuestion]:
    return lambda asked: replace(asked, labels=asked.labels - {label})


def _without_effect(effect: str) -> Callable[[PolicyQuestion], PolicyQuestion]:
    return lambda asked: replace(asked, effects=asked.effects - {effect})


def _without_target(target: Target) -> Callable[[PolicyQuestion], PolicyQuestion]:
    return lambda asked: replace(asked, targets=tuple(one for one in asked.targets if one is not target))
