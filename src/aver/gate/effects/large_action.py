"""Bounds of what the gate reads and seals of one action.

A call may have arguments of many megabytes. Reading, masking and sealing them would take seconds and fill the ledger,
and nobody could look at them. `bound_action` therefore puts a short account in the place of each text that is too
long, before the gate does anything else:

    {"command": {"cut": {"sha256": "…", "characters": 60000000, "begins": "echo …"}}}

The account has the digest of the whole text. So the action's own digest, and an approval of it, are still of that text
and no other. The gate cannot read such an action, so it is unclear, and a person must approve it. A long diff is
treated alike: the action is then a change that was not shown.

    >>> from aver.gate.action import Action
    >>> action = bound_action(Action(type="shell_exec", tool="Bash", arguments={"command": "a" * 2_000_000}))
    >>> action.arguments["command"]["cut"]["characters"]
    2000000
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.gate.action import Action

TEXT_MAX = 1024 * 1024
"""Characters of one text of an action, and of all together. `gate.shell` reads no longer command."""

BEGINNING_MAX = 2000
"""Characters that the account repeats."""

DEPTH_MAX = 64
"""Levels of nesting that are looked at. Deeper values cannot be read, so nothing of them passes."""

DIFF_ARGUMENT = "aver_diff"
"""The argument that has the account of a diff."""


def bound_action(action: Action) -> Action:
    """Return the action with an account in the place of each text that is too long; itself where none is."""
    if action.diff is not None and len(action.diff) > TEXT_MAX:
        action = replace(action, diff=None, arguments={**action.arguments, DIFF_ARGUMENT: _account(action.diff)})
    if _count_characters(action.arguments, 0) <= TEXT_MAX:
        return action
    # Many texts may be too long together. Then all but short ones are cut.
    longest = TEXT_MAX if _count_characters(_cut(action.arguments, TEXT_MAX, 0), 0) <= TEXT_MAX else BEGINNING_MAX
    return replace(action, arguments=_cut(action.arguments, longest, 0))


def _count_characters(value: Any, depth: int) -> int:
    if isinstance(value, str):
        return len(value)
    if depth >= DEPTH_MAX:
        return 0
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _count_characters(item, depth + 1) for key, item in value.items())
    return sum(_count_characters(item, depth + 1) for item in value) if isinstance(value, list | tuple) else 0


def _cut(value: Any, longest: int, depth: int) -> Any:
    """Return a value with an account in the place of each text that is longer than `longest`."""
    if isinstance(value, str):
        return _account(value) if len(value) > longest else value
    if depth >= DEPTH_MAX:
        return value
    if isinstance(value, Mapping):
        return {key: _cut(item, longest, depth + 1) for key, item in value.items()}
    return [_cut(item, longest, depth + 1) for item in value] if isinstance(value, list | tuple) else value


def _account(text: str) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    beginning = text[:BEGINNING_MAX].encode("utf-8", "replace").decode()
    return {"cut": {"sha256": digest, "characters": len(text), "begins": beginning}}
