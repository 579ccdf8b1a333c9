"""The gate's answer to one question, in the words of the CapSeal Agent Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.gate.effects.effects import Effects
    from aver.gate.risk.features import MeasuredChange

DecisionWord = Literal["pass", "skip", "human_review", "human_approved", "skipped"]
"""`pass`: it may happen. `skip`: refused. `human_review`: a person must approve. `human_approved`: one has. `skipped`:
refused too often, the agent is to give up."""

DECISIONS: tuple[str, ...] = get_args(DecisionWord)

Caution = Literal["balanced", "strict"]
"""How much is asked about. Rules read it as `context.caution`."""

CAUTIONS: tuple[str, ...] = get_args(Caution)

UNCLEAR_REASON = "does something that Aver does not understand"
"""The reason of the starter rule about unclear actions. In a decision, the unclear part itself stands in its place."""

NO_OUTCOMES_REASON = "no outcomes of this workspace are known yet"
"""A reason of decisions whose risk rests on the shipped prior alone. It is sealed, so its text must not change."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How likely the action is to fail: a probability, its interval, and what both rest on."""

    score: float
    low: float
    high: float
    observations: int
    """Outcomes that were learned in this workspace. With 0, the estimate rests on the shipped prior alone."""
    model: str
    """The model's name and the digest of its state, so that the estimate can be computed again."""
    features: Mapping[str, float] = field(default_factory=dict)
    fixes: tuple[int, ...] = ()
    """The answers of the repository's history, in the order of the questions."""
    change: MeasuredChange | None = None
    """The measures of the action's own diff, if it has one."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where risk alone passes or denies an action. They apply to the interval, never to the bare score."""

    pass_below: float = 0.05
    """Passes when the upper end of the interval is at most this."""
    skip_above: float | None = None
    """Denies when the lower end is above this; unset, risk denies nothing."""

    def to_dict(self) -> dict[str, float | None]:
        return {"pass_below": self.pass_below, "skip_above": self.skip_above}


RiskWord = Literal["low", "unsure", "high"]


def find_risk_word(interval: Sequence[float] | None, thresholds: Thresholds) -> RiskWord:
    """Return what the rules see of a risk. An action that was not judged counts as `unsure`."""
    # A threshold applies to the end of the interval that is worse for it: where little is known, risk decides nothing.
    if interval is None:
        return "unsure"
    low, high = interval
    if high <= thresholds.pass_below:
        return "low"
    return "high" if thresholds.skip_above is not None and low > thresholds.skip_above else "unsure"


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """The answer of the policy rules about an action."""

    outcome: Literal["allow", "step_up", "deny"]
    rules: tuple[str, ...]
    """The ids of the policies that decided."""
    bundle: str
    """The digest of the policy bundle that was asked."""
    reasons: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    patch: str = ""
    """How the action must be changed before it happens: `@patch` of the deciding rules; empty if it need not be."""
    code: str = ""
    """The reason code that `@code` of the deciding forbid gives; empty if it gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one action, and all facts that it rests on."""

    decision: DecisionWord
    """`pass`, `skip`, `human_review`, `human_approved` or `skipped`."""
    digest: str
    """`Action.digest` of the action that was judged; empty where it has none."""
    score: float | None
    """The estimated probability that the action fails; None where it was not judged."""
    interval: tuple[float, float] | None
    """The interval of the score."""
    observations: int
    """Outcomes of this workspace that the score rests on."""
    policy: PolicyAnswer | None
    """The answer of the policy rules; None where they were not asked."""
    reasons: tuple[str, ...]
    """Why, in words."""
    gate_id: str
    """The decision's own id. `aver gate outcome` and `AgentRuntime.record` take it."""
    thresholds: Thresholds
    estimate: Estimate | None = None
    effects: Effects | None = None

    @property
    def allows(self) -> bool:
        """Whether the action may happen now."""
        return self.decision in ("pass", "human_approved")

    @property
    def shown_reasons(self) -> tuple[str, ...]:
        """The reasons for people and agents: see `select_reasons`."""
        return select_reasons(self.reasons)


def select_reasons(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the reasons that help a reader: that no outcomes are known yet never decides alone."""
    return tuple(reason for reason in reasons if reason != NO_OUTCOMES_REASON)
