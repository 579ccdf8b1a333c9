"""The words and colours in which a person reads a decision of the gate.

Records, JSON output and the cases of `aver policy test` use the gate's own words: `pass`, `skip` and so on.
"""

from __future__ import annotations

from aver.cli.terminal import StyledText

__all__ = ["decision_label", "decision_note"]

_LABELS = {
    "pass": ("ALLOWED", "good"),
    "human_approved": ("ALLOWED", "good"),
    "human_review": ("NEEDS APPROVAL", "warn"),
    "skip": ("DENIED", "bad"),
    "skipped": ("DENIED", "bad"),
}
_NOTES = {
    "human_approved": "once, because a person approved it",
    "human_review": "a person must approve it first: aver approvals list",
    "skipped": "it was refused too often; do not ask again",
}


def decision_label(decision: str) -> StyledText:
    """ALLOWED, DENIED or NEEDS APPROVAL."""
    return StyledText(*_LABELS[decision])


def decision_note(decision: str) -> str:
    """A few words about a decision that the label does not say; empty for most."""
    return _NOTES.get(decision, "")
