"""Hooks that are files, each with the name of its event: Cline's. Ours carry a mark; others are the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aver.errors import AverError
from aver.files.user_dirs import UserEnvironment
from aver.install.commands import hook_command
from aver.install.file_edit import change_file, read_settings_file, remove_empty_directories, resolve_target
from aver.install.hook_places import HookFiles
from aver.install.mcp_server import InstallOutcome, InstallState
from aver.install.settings_file import EditResult
from aver.install.undo import UndoLog

__all__ = ["OWN_MARK", "hook_file_commands", "put_hook_files", "read_files_state", "remove_hook_files"]

PART = "hooks"

OWN_MARK = b"# Aver's hook, put here by aver install; aver uninstall takes it away."
"""The second line of a file that is ours."""

FILE_MODE = 0o755

_ENTRY_PATH = ("hook",)


def put_hook_files(place: HookFiles, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Have a file for each event, where the user has none."""
    results: dict[Path, EditResult] = {}
    for event, path in _list_event_files(place):
        results[path] = _put_file(path, _script_text(place, event, around), memory, dry_run=dry_run)
    kept = [path for path, result in results.items() if result == "kept"]
    made = set(results.values()) - {"kept"}
    done: EditResult = "kept"
    if made:
        done = "unchanged" if made == {"unchanged"} else "installed" if made == {"installed"} else "updated"
    return InstallOutcome(place.client, place.directories[0], done, PART, _kept_message(kept))


def remove_hook_files(place: HookFiles, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Take our files away, and the directories that were made for them, if they are empty."""
    results = [_remove_file(path, memory, dry_run=dry_run) for _, path in reversed(_list_event_files(place))]
    return InstallOutcome(place.client, place.directories[0], "removed" if "removed" in results else "absent", PART)


def read_files_state(place: HookFiles, around: UserEnvironment) -> InstallState:
    """How things stand there."""
    where = place.directories[0]
    try:
        found = {path: (event, read_settings_file(path)) for event, path in _list_event_files(place)}
    except AverError as error:
        return InstallState(place.client, where, "unreadable", error.message, PART)
    ours = {path: raw for path, (_, raw) in found.items() if raw is not None and _is_ours(raw)}
    others = [path for path, (_, raw) in found.items() if raw is not None and path not in ours]
    if not ours:
        return InstallState(place.client, where, "foreign" if others else "absent", _kept_message(others), PART)
    off = [
        event
        for path, (event, _) in found.items()
        if path not in others and (ours.get(path) != _script_text(place, event, around) or not os.access(path, os.X_OK))
    ]
    if off:
        why = f"another Aver is started, or none, for {', '.join(dict.fromkeys(off))}; install it anew"
        return InstallState(place.client, where, "outdated", why, PART)
    return InstallState(place.client, where, "installed", _kept_message(others), PART)


def hook_file_commands(place: HookFiles) -> Iterator[tuple[str, list[str]]]:
    """What the client runs for each event for which Aver stands there."""
    for event, path in _list_event_files(place):
        raw = read_settings_file(path)
        if raw is not None and _is_ours(raw):
            yield event, [str(path)]


def _put_file(path: Path, text: bytes, memory: UndoLog, *, dry_run: bool) -> EditResult:
    before = read_settings_file(path)
    if before is not None and not _is_ours(before):
        return "kept"
    changed = change_file(
        path, lambda raw: text if raw is None or _is_ours(raw) else raw, mode=FILE_MODE, dry_run=dry_run
    )
    if changed.is_change and not dry_run:
        memory.keep(changed, _ENTRY_PATH, 0)
    if not dry_run and not os.access(path, os.X_OK):
        path.chmod(FILE_MODE)
        return "updated"
    if not changed.is_change:
        return "unchanged"
    return "installed" if before is None else "updated"


def _remove_file(path: Path, memory: UndoLog, *, dry_run: bool) -> EditResult:
    known = memory.find_change(path, _ENTRY_PATH)
    changed = change_file(path, lambda raw: None if raw is None or _is_ours(raw) else raw, dry_run=dry_run)
    if known is not None and not dry_run:
        memory.forget(path, _ENTRY_PATH)
        if changed.after is None:
            remove_empty_directories(tuple(map(Path, known.made)))
    return "removed" if changed.is_change else "absent"


def _script_text(place: HookFiles, event: str, around: UserEnvironment) -> bytes:
    command = hook_command(place.client, event, around.environment)
    return b"#!/bin/sh\n" + OWN_MARK + b"\n" + command.encode("utf-8", "surrogateescape") + b"\n"


def _is_ours(raw: bytes) -> bool:
    return raw.split(b"\n", 2)[1:2] == [OWN_MARK]


def _list_event_files(place: HookFiles) -> list[tuple[str, Path]]:
    """Each event with each file for it."""
    return [(event, resolve_target(where / event, None)) for where in place.directories for event in place.events]


def _kept_message(files: list[Path]) -> str:
    words = "hooks of your own were left as they are, and Aver does not run there: "
    return words + ", ".join(dict.fromkeys(path.name for path in files)) if files else ""
