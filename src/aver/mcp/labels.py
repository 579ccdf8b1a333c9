"""A short label for a decision: the size of the change, the number of files, and its other effects.

    simple + single-file                       a change of at most ten lines in one file
    unseen + multi-file + delete               a change that the agent did not show, and that deletes

Labels are for people and agents to read. Aver decides nothing by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.gate.decision_record import RecordedDecision

__all__ = ["decision_label"]

_UNLABELLED_EFFECTS = frozenset({"read", "write"})


def decision_label(decision: RecordedDecision) -> str:
    """Return the label of a decision."""
    features = decision.result.get("features") or {}
    files = max(int(features.get("files", 0)), len(decision.action["files"]))
    parts = [
        _size_label(features),
        _files_label(files),
        *sorted(set(decision.result.get("effects") or ()) - _UNLABELLED_EFFECTS),
    ]
    return " + ".join(part for part in parts if part) or "unclassified"


def _size_label(features: Mapping[str, Any]) -> str:
    if "added" not in features:
        return "unseen" if features.get("unseen") else ""
    lines = features["added"] + features["removed"]
    return "simple" if lines <= 10 else "moderate" if lines <= 50 else "complex"


def _files_label(files: int) -> str:
    if files == 0:
        return ""
    return "single-file" if files == 1 else "multi-file" if files <= 3 else "cross-cutting"
