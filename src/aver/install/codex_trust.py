"""Whether Codex runs our hooks: only those that its user has trusted, in Codex itself, by looking at them.

Codex keeps that in its settings, under `hooks.state."<file>:<event>:<group>:<hook>"`. Aver reads it, to say what is
still to be done, and never writes it: trust is the user's to give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.errors import AverError
from aver.install.hook_places import HookList
from aver.install.settings_file import SettingsFile, read_entry

__all__ = ["find_untrusted_events"]


def find_untrusted_events(place: HookList, found: Mapping[str, int]) -> list[str]:
    """The events whose hook is not trusted or switched off, of those that stand in the file; each with its place in the
    event's list."""
    try:
        state = read_entry(SettingsFile(place.path.with_name("config.toml"), "toml"), ("hooks", "state"))
    except AverError:
        return list(found)
    known = state if isinstance(state, dict) else {}
    return [
        event for event, at in found.items() if not _is_trusted(known.get(f"{place.path}:{_snake_case(event)}:{at}:0"))
    ]


def _is_trusted(state: object) -> bool:
    return isinstance(state, dict) and bool(state.get("trusted_hash")) and state.get("enabled") is not False


def _snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
