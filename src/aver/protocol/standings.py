"""Where things of a trace stand: participants, proposals, intents, executions, claims and challenges.

The fold (`aver.protocol.trace`) owns these objects and changes them. Everyone else only reads them.

    proposals    open approved conditional rejected
    intents      open approved blocked started ended
    claims       issued disputed settled refuted retracted
    challenges   open withdrawn dismissed upheld moot
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from aver.fast_dataclass import dataclass
from aver.keys.public_key import PublicKey

ARTIFACT_INPUT, ARTIFACT_COMPLETED, ARTIFACT_FAILED, ARTIFACT_RECORDED = 1, 2, 4, 8
"""How an artifact came into a trace: as an input, by a call that completed or failed, or recorded. Bits, because one
digest may come in several ways."""


@dataclass(frozen=True, slots=True)
class Participant:
    """One key that takes part, or took part until it was rotated."""

    agent: str
    role: str
    key: PublicKey
    held: str
    """`here`: the key lies in the operator's home. `elsewhere`: it does not."""
    joined: str
    """The id of the event by which the key joined."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "role": self.role,
            "public_key": self.key.ed25519,
            "public_key_pq": self.key.ml_dsa_65,
            "held": self.held,
        }


@dataclass(slots=True)
class ProposalStanding:
    """A proposal, and the latest review of each critic, by the critic's name."""

    id: str
    agent: str
    payload: Mapping[str, Any]
    revises: str | None = None
    revised_by: str | None = None
    reviews: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The conditions of each critic's latest review."""
    ends: int = 0
    """How many of its calls have ended, in whichever way."""

    def standing(self, critics: Iterable[str]) -> str:
        """`open`, `approved`, `conditional` or `rejected`: one rejection outweighs, and every critic must approve."""
        return judge_reviews(self.reviews, critics)

    def is_executable(self, critics: Iterable[str]) -> bool:
        """Whether calls may be made for it now."""
        return self.revised_by is None and self.standing(critics) in ("approved", "conditional")


@dataclass(slots=True)
class IntentStanding:
    """An intent, and what became of it."""

    id: str
    agent: str
    proposal: str
    tool: str
    input_sha256: str
    risk: str
    """The worse of the declared and the derived class."""
    payload: Mapping[str, Any]
    retry_of: str | None
    attempt: int
    """1 for a first attempt; a retry has one more than the intent that it names."""
    reviews: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The verdict and the id of each critic's latest review."""
    start: str | None = None
    """The id of its execution."""
    end: str | None = None
    """The id of the event that ended it."""
    code: str = ""
    """`COMPLETED`, or the code of its failure, once it has ended."""

    def standing(self, critics: Iterable[str]) -> str:
        """`open`, `approved`, `blocked`, `started` or `ended`."""
        if self.end is not None:
            return "ended"
        if self.start is not None:
            return "started"
        found = judge_reviews({agent: verdict for agent, (verdict, _) in self.reviews.items()}, critics)
        return "blocked" if found == "rejected" else found


@dataclass(slots=True)
class ExecutionStanding:
    """A call that was started. Its id is that of its start."""

    id: str
    intent: str
    agent: str
    decision: str
    until: str
    payload: Mapping[str, Any]
    is_approved: bool
    """Whether every critic had approved this very intent when the call began."""
    end: str | None = None
    code: str = ""
    exit_code: int | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    """The digests of its outputs, by name."""
    recorded: list[str] = field(default_factory=list)
    """The digests of artifacts that were recorded for it, in order."""


@dataclass(slots=True)
class ClaimStanding:
    """A claim as it is worded now, and the challenges to it."""

    id: str
    agent: str
    proposal: str
    about: str
    text: str
    confidence: float
    evidence: tuple[Mapping[str, Any], ...]
    standing: str = "issued"
    worded_by: str = ""
    """The id of the event that has its present words."""
    speaker: str = ""
    """The agent whose words they are: a planner may word an executor's claim anew."""
    challenges: list[str] = field(default_factory=list)
    open_challenges: int = 0


@dataclass(slots=True)
class ChallengeStanding:
    """A challenge to a claim."""

    id: str
    claim: str
    agent: str
    reason: str
    evidence: tuple[Mapping[str, Any], ...]
    standing: str = "open"


def judge_reviews(reviews: Mapping[str, str], critics: Iterable[str]) -> str:
    """Return what the latest reviews of all critics come to: `open`, `approved`, `conditional` or `rejected`."""
    verdicts = [reviews.get(agent) for agent in critics]
    if "rejected" in verdicts or "blocked" in verdicts:
        return "rejected"
    if not verdicts or None in verdicts:
        return "open"
    return "conditional" if "conditional" in verdicts else "approved"
