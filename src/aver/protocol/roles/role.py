"""A role: a view of the trace in, one event out, or nothing.

    def criticise(view):
        for proposal in view.open_proposals:
            return Said("proposal_reviewed", {"verdict": "approved", "rationale": "it only reads"}, {"proposal": …})
        return None

Every way to take part comes down to this function: Python functions, programs (`roles.role_process`), the roles that
Aver has (`roles.checks`, `roles.review`), and participants that speak by themselves, whose function always returns None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from aver.fast_dataclass import dataclass


class SaidArtifact(NamedTuple):
    """An artifact that comes with an event."""

    name: str
    data: bytes
    media: str


@dataclass(frozen=True, slots=True)
class Said:
    """One event that a role says: its name, its payload, its references, and artifacts that come along.

    The session fills in what only it can know: the version, the hash of an intent's input, the derived risk, and the
    standings of claims in a final statement.
    """

    event: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[SaidArtifact, ...] = ()


class ViewLike(Protocol):
    """A view, as far as a program gets it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the view as JSON values."""
        ...


def stay_silent(_: ViewLike) -> None:
    """Say nothing: the role of a participant that speaks by itself."""
    return None
