"""What the gate says, in the words of the CapSeal Agent Protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.gate.effects.effects import Effects
    from aver.gate.risk.features import MeasuredChange

__all__ = ["DECISIONS", "Decision", "DecisionWord", "Estimate", "PolicyAnswer", "Thresholds"]

DecisionWord = Literal["pass", "skip", "human_review", "human_approved", "skipped"]
DECISIONS: tuple[str, ...] = get_args(DecisionWord)


@dataclass(frozen=True, slots=True)
class Estimate:
    """How likely the action is to fail: a probability, the interval it lies in, and what it rests on."""

    score: float
    low: float
    high: float
    observations: int
    """Outcomes that this workspace has contributed; 0 means that only the shipped prior speaks."""
    model: str
    """Which model and state gave it: a name and the state's digest, so that it can be computed again."""
    features: Mapping[str, float] = field(default_factory=dict)
    fixes: tuple[int, ...] = ()
    """What the repository's history answered, in the order in which it was asked."""
    change: MeasuredChange | None = None
    """What was measured on the action's own diff, if it has one."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where risk alone passes or denies an action. On the interval, never on the bare score."""

    pass_below: float = 0.05
    """Passes when the upper end of the interval is at most this."""
    skip_above: float | None = None
    """Denies when the lower end is above this; unset, risk denies nothing."""


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """What policy says of an action."""

    outcome: Literal["allow", "step_up", "deny"]
    rules: tuple[str, ...]
    """The ids of the policies that decided."""
    bundle: str
    """The digest of the policy bundle that was asked."""
    reasons: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one question, and all that it rests on."""

    decision: DecisionWord
    digest: str
    """Of exactly the action that was judged."""
    score: float | None
    interval: tuple[float, float] | None
    observations: int
    policy: PolicyAnswer | None
    reasons: tuple[str, ...]
    gate_id: str
    thresholds: Thresholds
    estimate: Estimate | None = None
    effects: Effects | None = None

    @property
    def allows(self) -> bool:
        return self.decision in ("pass", "human_approved")
