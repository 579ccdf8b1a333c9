"""What a gate's decision was about, in a few words: how large a change is, how many files, and what it does besides.

    simple + single-file                       a change of at most ten lines in one file
    unseen + multi-file + delete               a change that was not shown, which deletes

For people and agents who read it; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["label_of"]

_PLAIN = frozenset({"read", "write"})


def label_of(result: Mapping[str, Any]) -> str:
    """The label of a decision, from what its record says in `outcome.result`."""
    features, action = result.get("features") or {}, result["action"]
    files = max(int(features.get("files", 0)), len(action["files"]))
    parts = [_size(features), _spread(files), *sorted(set(result.get("effects") or ()) - _PLAIN)]
    return " + ".join(part for part in parts if part) or "unclassified"


def _size(features: Mapping[str, Any]) -> str:
    if "added" not in features:
        return "unseen" if features.get("unseen") else ""
    lines = features["added"] + features["removed"]
    return "simple" if lines <= 10 else "moderate" if lines <= 50 else "complex"


def _spread(files: int) -> str:
    if files == 0:
        return ""
    return "single-file" if files == 1 else "multi-file" if files <= 3 else "cross-cutting"
