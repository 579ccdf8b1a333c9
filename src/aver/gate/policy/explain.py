"""Explains an answer of policy: what would have changed it.

Aver does not analyse the rules. It asks them again about changed questions:

1. with one change each: low risk, no unclear parts, without one label, without one effect, without one target;
2. if no single change makes the answer milder: with all changes of step 1 together, except those of targets. Aver then
   removes each change that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.gate.decision import PolicyAnswer
from aver.gate.policy.bundle import PolicyBundle
from aver.gate.policy.query import TARGETS_MAX, PolicyQuestion, Target, ask_policy

__all__ = ["Counterfactual", "Explanation", "explain_answer"]

_MILDER_OUTCOMES = {"deny": ("step_up", "allow"), "step_up": ("allow",), "allow": ()}

_QuestionChange = tuple[str, Callable[[PolicyQuestion], PolicyQuestion]]


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Changes that together would give another answer, and that answer. All of `changes` are needed."""

    changes: tuple[str, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer, the answer for each target alone, and the changes that would give another answer."""

    answer: PolicyAnswer
    by_target: tuple[tuple[Target, PolicyAnswer], ...]
    turns: tuple[Counterfactual, ...]


def explain_answer(bundle: PolicyBundle, question: PolicyQuestion) -> Explanation:
    """Ask the rules, and explain their answer."""
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
        """Ask with these changes. Returns the outcome if it is milder."""
        changed = question
        for _, change in changes:
            changed = change(changed)
        found = ask_policy(bundle, changed).outcome
        return found if found in _MILDER_OUTCOMES[outcome] else None

    changes = list(_possible_changes(question))
    # 1.
    single = [(change, found) for change in (*changes, *_target_removals(question)) if (found := milder([change]))]
    for (words, _), found in single:
        yield Counterfactual((words,), found)
    if single or not milder(changes):
        return
    # 2.
    needed = changes
    for change in changes:
        rest = [other for other in needed if other is not change]
        if milder(rest):
            needed = rest
    yield Counterfactual(tuple(words for words, _ in needed), milder(needed) or outcome)


def _possible_changes(question: PolicyQuestion) -> Iterator[_QuestionChange]:
    """Yield the changes that could make the answer milder, with words for each."""
    if question.risk != "low":
        yield "its risk were low", lambda asked: replace(asked, risk="low", score=(0, 0, 0))
    if question.unclear or not question.arguments.complete:
        yield (
            "all of it were understood",
            lambda asked: replace(asked, unclear=False, arguments=replace(asked.arguments, complete=True)),
        )
    for label in sorted(question.labels):
        yield f"the session were not marked {label!r}", partial(_drop, "labels", label)
    for effect in sorted(question.effects):
        yield f"it had not the effect {effect!r}", partial(_drop, "effects", effect)


def _drop(name: Literal["labels", "effects"], value: str, asked: PolicyQuestion) -> PolicyQuestion:
    return replace(asked, **{name: getattr(asked, name) - {value}})


def _target_removals(question: PolicyQuestion) -> Iterator[_QuestionChange]:
    for target in question.targets if 1 < len(question.targets) <= TARGETS_MAX else ():
        others = tuple(other for other in question.targets if other is not target)
        yield f"it left {target.kind.lower()} {target.name} alone", partial(replace, targets=others)
