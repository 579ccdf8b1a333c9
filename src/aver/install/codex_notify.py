"""The one command that older versions of Codex tell of each turn's end: `notify` in its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from aver.errors import AverError, Refused
from aver.files.user_dirs import UserEnvironment
from aver.install.commands import aver_command
from aver.install.hook_places import NotifyCommand
from aver.install.mcp_server import InstallOutcome, InstallState
from aver.install.settings_file import EntryPath, SettingsFile, put_entry, read_entry, remove_entry
from aver.install.undo import UndoLog

__all__ = ["notify_commands", "put_notify", "read_notify_state", "remove_notify"]

PART = "hooks"

NOTIFY_EVENT = "notify"


def put_notify(place: NotifyCommand, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Have Aver told, unless the user has somebody else told: there can be only one."""
    try:
        done = put_entry(
            _settings_file(place), _entry_path(place), _command_words(around), _is_ours, memory, dry_run=dry_run
        )
    except Refused as refusal:
        if refusal.code != "FOREIGN":
            raise
        why = f"{place.name} is a command of your own and was left as it is: Aver is not told"
        return InstallOutcome(place.client, place.path, "kept", PART, why)
    return InstallOutcome(place.client, place.path, done, PART)


def remove_notify(place: NotifyCommand, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Have Aver not told. What is not ours stays."""
    found = read_entry(_settings_file(place), _entry_path(place))
    if found is not None and not _is_ours(found):
        return InstallOutcome(place.client, place.path, "absent", PART)
    return InstallOutcome(
        place.client,
        place.path,
        remove_entry(_settings_file(place), _entry_path(place), _is_ours, memory, dry_run=dry_run),
        PART,
    )


def read_notify_state(place: NotifyCommand, around: UserEnvironment) -> InstallState:
    """How things stand there."""
    try:
        found = read_entry(_settings_file(place), _entry_path(place))
    except AverError as error:
        return InstallState(place.client, place.path, "unreadable", error.message, PART)
    if found is None:
        return InstallState(place.client, place.path, "absent", part=PART)
    if not _is_ours(found):
        return InstallState(place.client, place.path, "foreign", f"{place.name} is a command of your own", PART)
    if found != _command_words(around):
        return InstallState(place.client, place.path, "outdated", "another Aver is told; install it anew", PART)
    return InstallState(place.client, place.path, "installed", "older versions tell only of a turn's end", PART)


def notify_commands(place: NotifyCommand) -> Iterator[tuple[str, list[str]]]:
    """What the client runs. The payload comes as one more word."""
    found = read_entry(_settings_file(place), _entry_path(place))
    if _is_ours(found):
        yield NOTIFY_EVENT, list(found)


def _command_words(around: UserEnvironment) -> list[str]:
    home = around.environment.get("AVER_HOME")
    given = ["/usr/bin/env", f"AVER_HOME={os.path.abspath(home)}"] if home else []
    return [*given, *aver_command(), "hook", "codex", NOTIFY_EVENT]


def _is_ours(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return False
    return value[-3:] == ["hook", "codex", NOTIFY_EVENT] and os.path.basename("".join(value[-4:-3])) == "aver"


def _settings_file(place: NotifyCommand) -> SettingsFile:
    return SettingsFile(place.path, "toml")


def _entry_path(place: NotifyCommand) -> EntryPath:
    return (place.name,)
