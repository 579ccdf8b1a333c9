"""What a gate's decision was about, in a few words: how large a change is, how many files, and what it does besides.

    simple + single-file                       a change of at most ten lines in one file
    unseen + multi-file + delete               a change that was not shown, which deletes

For people and agents who read it; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["decision_label"]

_UNLABELLED_EFFECTS = frozenset({"read", "write"})


def decision_label(result: Mapping[str, Any]) -> str:
    """The label of a decision, from what its record says in `outcome.result`."""
    features, action = result.get("features") or {}, result["action"]
    files = max(int(features.get("files", 0)), len(action["files"]))
    parts = [
        _size_label(features),
        _files_label(files),
        *sorted(set(result.get("effects") or ()) - _UNLABELLED_EFFECTS),
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
