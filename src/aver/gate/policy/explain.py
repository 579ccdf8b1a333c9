"""Why policy answered as it did, and what would have changed the answer.

Not by reading rules, but by asking again: with low risk, without each label of the session, without each effect, with
every doubt removed, about each target alone. What makes the answer milder is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from aver.gate.decision import PolicyAnswer
from aver.gate.policy.asking import ask
from aver.gate.policy.bundle import Bundle
from aver.gate.policy.circumstances import Circumstances

__all__ = ["Explanation", "Turn", "explained"]

_MILDER = {"deny": ("step_up", "allow"), "step_up": ("allow",), "allow": ()}


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that would have changed the answer, and to what."""

    change: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer, the targets it holds for, and what would have turned it."""

    answer: PolicyAnswer
    by_target: tuple[tuple[str, PolicyAnswer], ...]
    turns: tuple[Turn, ...]


def explained(bundle: Bundle, question: Circumstances) -> Explanation:
    answer = ask(bundle, question)
    alone = tuple(
        (f"{target.kind.lower()} {target.name}", ask(bundle, replace(question, targets=(target,))))
        for target in question.targets
    )
    turns = []
    for change, other in _changes(question):
        outcome = ask(bundle, other).outcome
        if outcome in _MILDER[answer.outcome]:
            turns.append(Turn(change, outcome))
    if answer.outcome == "step_up":
        turns.append(Turn("a human approves it", "allow"))
    return Explanation(answer, alone, tuple(turns))


def _changes(question: Circumstances) -> Iterator[tuple[str, Circumstances]]:
    """The same question, milder in one respect."""
    if question.risk != "low":
        yield "its risk were low", replace(question, risk="low", score=(0, 0, 0))
    if question.unclear:
        yield "all of it were understood", replace(question, unclear=False)
    for label in sorted(question.labels):
        yield f"the session were not marked {label!r}", replace(question, labels=question.labels - {label})
    for effect in sorted(question.effects):
        yield f"it did not {effect!r}", replace(question, effects=question.effects - {effect})
    if len(question.targets) > 1:
        for target in question.targets:
            rest = tuple(other for other in question.targets if other is not target)
            yield f"it left {target.name} alone", replace(question, targets=rest)
