"""Hooks that are files, each with the name of its event: Cline's. Ours carry a mark; others are the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aver.errors import AverError
from aver.install.commands import hook_command
from aver.install.entries import Result
from aver.install.files import change_file, read_settings_file, remove_empty, target_of
from aver.install.hook_places import HookFiles
from aver.install.memory import Memory
from aver.install.registering import Outcome, Standing
from aver.surroundings import Surroundings

__all__ = ["MARK", "commands", "put", "standing", "take"]

PART = "hooks"

MARK = b"# Aver's hook, put here by aver install; aver uninstall takes it away."
"""The second line of a file that is ours."""

MODE = 0o755

_KEY = ("hook",)


def put(place: HookFiles, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Have a file for each event, where the user has none."""
    results: dict[Path, Result] = {}
    for event, path in _files(place):
        results[path] = _put(path, _text(place, event, around), memory, dry_run=dry_run)
    kept = [path for path, result in results.items() if result == "kept"]
    made = set(results.values()) - {"kept"}
    done: Result = "kept"
    if made:
        done = "unchanged" if made == {"unchanged"} else "installed" if made == {"installed"} else "updated"
    return Outcome(place.client, place.directories[0], done, PART, _left(kept))


def take(place: HookFiles, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Take our files away, and the directories that were made for them, if they are empty."""
    results = [_take(path, memory, dry_run=dry_run) for _, path in reversed(_files(place))]
    return Outcome(place.client, place.directories[0], "removed" if "removed" in results else "absent", PART)


def standing(place: HookFiles, around: Surroundings) -> Standing:
    """How things stand there."""
    where = place.directories[0]
    try:
        found = {path: (event, read_settings_file(path)) for event, path in _files(place)}
    except AverError as error:
        return Standing(place.client, where, "unreadable", error.message, PART)
    ours = {path: raw for path, (_, raw) in found.items() if raw is not None and _is_ours(raw)}
    others = [path for path, (_, raw) in found.items() if raw is not None and path not in ours]
    if not ours:
        return Standing(place.client, where, "foreign" if others else "absent", _left(others), PART)
    off = [
        event
        for path, (event, _) in found.items()
        if path not in others and (ours.get(path) != _text(place, event, around) or not os.access(path, os.X_OK))
    ]
    if off:
        why = f"another Aver is started, or none, for {', '.join(dict.fromkeys(off))}; install it anew"
        return Standing(place.client, where, "outdated", why, PART)
    return Standing(place.client, where, "installed", _left(others), PART)


def commands(place: HookFiles) -> Iterator[tuple[str, list[str]]]:
    """What the client runs for each event for which Aver stands there."""
    for event, path in _files(place):
        raw = read_settings_file(path)
        if raw is not None and _is_ours(raw):
            yield event, [str(path)]


def _put(path: Path, text: bytes, memory: Memory, *, dry_run: bool) -> Result:
    before = read_settings_file(path)
    if before is not None and not _is_ours(before):
        return "kept"
    changed = change_file(path, lambda raw: text if raw is None or _is_ours(raw) else raw, mode=MODE, dry_run=dry_run)
    if changed.is_change and not dry_run:
        memory.keep(changed, _KEY, 0)
    if not dry_run and not os.access(path, os.X_OK):
        path.chmod(MODE)
        return "updated"
    if not changed.is_change:
        return "unchanged"
    return "installed" if before is None else "updated"


def _take(path: Path, memory: Memory, *, dry_run: bool) -> Result:
    known = memory.recall(path, _KEY)
    changed = change_file(path, lambda raw: None if raw is None or _is_ours(raw) else raw, dry_run=dry_run)
    if known is not None and not dry_run:
        memory.forget(path, _KEY)
        if changed.after is None:
            remove_empty(tuple(map(Path, known.made)))
    return "removed" if changed.is_change else "absent"


def _text(place: HookFiles, event: str, around: Surroundings) -> bytes:
    command = hook_command(place.client, event, around.environment)
    return b"#!/bin/sh\n" + MARK + b"\n" + command.encode("utf-8", "surrogateescape") + b"\n"


def _is_ours(raw: bytes) -> bool:
    return raw.split(b"\n", 2)[1:2] == [MARK]


def _files(place: HookFiles) -> list[tuple[str, Path]]:
    """Each event with each file for it."""
    return [(event, target_of(where / event, None)) for where in place.directories for event in place.events]


def _left(files: list[Path]) -> str:
    words = "hooks of your own were left as they are, and Aver does not run there: "
    return words + ", ".join(dict.fromkeys(path.name for path in files)) if files else ""
