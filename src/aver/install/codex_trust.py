"""Whether Codex runs our hooks: only those that its user has trusted, in Codex itself, by looking at them.

Codex keeps that in its settings, under `hooks.state."<file>:<event>:<group>:<hook>"`. Aver reads it, to say what is
still to be done, and never writes it: trust is the user's to give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.errors import AverError
from aver.install.entries import SettingsFile, standing_in
from aver.install.hook_places import HookList

__all__ = ["not_trusted"]


def not_trusted(place: HookList, found: Mapping[str, int]) -> list[str]:
    """The events whose hook is not trusted or switched off, of those that stand in the file; each with its place in the
    event's list."""
    try:
        state = standing_in(SettingsFile(place.path.with_name("config.toml"), "toml"), ("hooks", "state"))
    except AverError:
        return list(found)
    known = state if isinstance(state, dict) else {}
    return [event for event, at in found.items() if not _is_trusted(known.get(f"{place.path}:{_label(event)}:{at}:0"))]


def _is_trusted(state: object) -> bool:
    return isinstance(state, dict) and bool(state.get("trusted_hash")) and state.get("enabled") is not False


def _label(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
