"""What keeps a client from running hooks that stand in its settings, or from heeding what they say.

A canary goes through the command itself and cannot see that: hooks that are switched off, that are run for some tools
only, whose answer nobody waits for, or that Codex does not trust. It is read here, and never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.install.codex_trust import find_untrusted_events
from aver.install.hook_places import HookList
from aver.install.settings_file import EntryPath, SettingsFile, read_entry

__all__ = ["find_limits"]

MANAGED_SETTINGS = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Where whoever looks after a machine puts settings of Claude Code that its users cannot change."""

_MATCH_ALL = (None, "", "*", ".*")


def find_limits(place: HookList, found: Mapping[str, tuple[int, Any]]) -> Iterator[str]:
    """What keeps hooks of ours from their work. They are given by their events: each its place in the list, and what
    stands there."""
    if place.client == "claude-code":
        yield from _find_disabled(place.path)
    elif place.client == "codex":
        yield from _find_untrusted(place, found)
    for event, (_, item) in found.items():
        yield from (f"{event} {why}" for why in _find_restrictions(item))


def _find_disabled(settings: Path) -> Iterator[str]:
    if _read_setting(SettingsFile(settings, "json"), ("disableAllHooks",)) is True:
        yield f"Claude Code runs no hooks: {settings} says disableAllHooks"
    for path in MANAGED_SETTINGS:
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if _read_setting(SettingsFile(path, "json"), (name,)) is True:
                yield f"Claude Code does not run hooks of yours: {path} says {name}"


def _find_untrusted(place: HookList, found: Mapping[str, tuple[int, Any]]) -> Iterator[str]:
    config = place.path.with_name("config.toml")
    for name in ("hooks", "codex_hooks"):
        if _read_setting(SettingsFile(config, "toml"), ("features", name)) is False:
            yield f"Codex runs no hooks: {config} says {name} = false under [features]"
    left = find_untrusted_events(place, {event: at for event, (at, _) in found.items()})
    if left:
        yield f"Codex does not run what it does not trust: start it and enter /hooks ({', '.join(left)})"


def _find_restrictions(item: Any) -> Iterator[str]:
    """What is wrong with an item that starts the right command."""
    if item.get("matcher") not in _MATCH_ALL:
        yield f"runs only for {item['matcher']!r}, not for every tool"
    inner = item.get("hooks")
    for one in inner if isinstance(inner, list) else [item]:
        if not isinstance(one, dict):
            continue
        if one.get("if"):
            yield f"runs only where {one['if']!r} holds"
        if one.get("async"):
            yield "is not waited for: it can deny nothing"
        if one.get("type", "command") != "command":
            yield f"is a {one['type']!r}, and no command is run"


def _read_setting(file: SettingsFile, key: EntryPath) -> Any:
    try:
        return read_entry(file, key)
    except AverError:  # The client cannot read it, either.
        return None
