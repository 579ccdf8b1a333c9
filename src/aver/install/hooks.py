"""Putting Aver's hooks into a client, taking them out, and telling how things stand.

What is somebody else's is never touched: other hooks stay beside ours, a file or a setting that is not ours and stands
where ours would stays, and that is said.

Hooks that stand in lists of a settings file, one list for each event: Claude Code's, Codex's, Cursor's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from aver.errors import AverError
from aver.files.user_dirs import UserEnvironment
from aver.install import cline_hook_files, codex_notify
from aver.install.commands import hook_command
from aver.install.hook_places import HookFiles, HookList, HookPlace, hook_places
from aver.install.mcp_server import InstallOutcome, InstallState
from aver.install.settings_file import EditResult, EntryPath, SettingsFile, put_item, read_entry, remove_items
from aver.install.undo import UndoLog

__all__ = [
    "commands_in_lists",
    "install_hooks",
    "installed_commands",
    "put_in_lists",
    "read_hooks_state",
    "read_lists_state",
    "remove_from_lists",
    "uninstall_hooks",
]


def install_hooks(client: str, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Put Aver's hooks into a client. `dry_run` only tells what would be done."""
    memory = UndoLog()
    places = hook_places(client, around)
    if not places:
        return []
    wanted, *former = places
    with nullcontext() if dry_run else memory.held():
        gone = [_remove_hooks(place, around, memory, dry_run=dry_run) for place in former]
        done = _put_hooks(wanted, around, memory, dry_run=dry_run)
    return [*(one for one in gone if one.done == "removed"), done]


def uninstall_hooks(client: str, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Take Aver's hooks out of a client."""
    memory = UndoLog()
    with nullcontext() if dry_run else memory.held():
        done = [_remove_hooks(place, around, memory, dry_run=dry_run) for place in hook_places(client, around)]
    return [*done[:1], *(one for one in done[1:] if one.done == "removed")]


def read_hooks_state(client: str, around: UserEnvironment) -> list[InstallState]:
    """How things stand with a client's hooks. Nothing is changed, and whatever is wrong is told."""
    found = [_read_place_state(place, around) for place in hook_places(client, around)]
    return [*found[:1], *(one for one in found[1:] if one.state in ("installed", "outdated"))]


def installed_commands(client: str, around: UserEnvironment) -> Iterator[tuple[str, list[str]]]:
    """The events for which Aver stands in a client's hooks, and the words that the client runs for each."""
    for place in hook_places(client, around):
        if isinstance(place, HookList):
            yield from commands_in_lists(place)
        elif isinstance(place, HookFiles):
            yield from cline_hook_files.hook_file_commands(place)
        else:
            yield from codex_notify.notify_commands(place)


def _put_hooks(place: HookPlace, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    if isinstance(place, HookList):
        return put_in_lists(place, around, memory, dry_run=dry_run)
    if isinstance(place, HookFiles):
        return cline_hook_files.put_hook_files(place, around, memory, dry_run=dry_run)
    return codex_notify.put_notify(place, around, memory, dry_run=dry_run)


def _remove_hooks(place: HookPlace, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    if isinstance(place, HookList):
        return remove_from_lists(place, around, memory, dry_run=dry_run)
    if isinstance(place, HookFiles):
        return cline_hook_files.remove_hook_files(place, around, memory, dry_run=dry_run)
    return codex_notify.remove_notify(place, around, memory, dry_run=dry_run)


def _read_place_state(place: HookPlace, around: UserEnvironment) -> InstallState:
    if isinstance(place, HookList):
        return read_lists_state(place, around)
    if isinstance(place, HookFiles):
        return cline_hook_files.read_files_state(place, around)
    return codex_notify.read_notify_state(place, around)


PART = "hooks"


def put_in_lists(place: HookList, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Have Aver stand under each event, beside what stands there."""
    results: list[EditResult] = []
    for event in place.events:
        command = hook_command(place.client, event, around.environment)
        ours = [one for one in _event_items(place, event) if place.is_ours(one)]
        # What its owner changed about an item that starts the right command, such as its timeout, stays.
        item = ours[0] if len(ours) == 1 and place.commands(ours[0]) == [command] else place.made(event, command)
        results.append(
            put_item(
                _settings_file(place),
                _entry_path(event),
                item,
                place.is_ours,
                memory,
                blank=place.blank,
                dry_run=dry_run,
            )
        )
    done: EditResult = "unchanged"
    if set(results) != {"unchanged"}:
        done = "installed" if set(results) == {"installed"} else "updated"
    return InstallOutcome(place.client, place.path, done, PART)


def remove_from_lists(place: HookList, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
    """Have Aver stand under no event. The last that was put in is taken out first: so bytes come back as they were."""
    results = [
        remove_items(
            _settings_file(place), _entry_path(event), place.is_ours, memory, blank=place.blank, dry_run=dry_run
        )
        for event in reversed(place.events)
    ]
    return InstallOutcome(place.client, place.path, "removed" if "removed" in results else "absent", PART)


def read_lists_state(place: HookList, around: UserEnvironment) -> InstallState:
    """How things stand there."""
    try:
        found = {event: [one for one in _event_items(place, event) if place.is_ours(one)] for event in place.events}
    except AverError as error:
        return InstallState(place.client, place.path, "unreadable", error.message, PART)
    present = [event for event, items in found.items() if items]
    if not present:
        return InstallState(place.client, place.path, "absent", part=PART)
    wanted = {event: hook_command(place.client, event, around.environment) for event in place.events}
    off = [event for event, items in found.items() if [place.commands(one) for one in items] != [[wanted[event]]]]
    if off:
        why = f"another Aver is started, or none, for {', '.join(off)}; install it anew"
        return InstallState(place.client, place.path, "outdated", why, PART)
    return InstallState(place.client, place.path, "installed", _describe_limits(place), PART)


def _describe_limits(place: HookList) -> str:
    """What keeps the client from running hooks that stand in its settings as they should."""
    from aver.install.hook_limits import find_limits

    found: dict[str, tuple[int, Any]] = {}
    for event in place.events:
        items = _event_items(place, event)
        at = list(map(place.is_ours, items)).index(True)
        found[event] = at, items[at]
    return "; ".join(find_limits(place, found))


def commands_in_lists(place: HookList) -> Iterator[tuple[str, list[str]]]:
    """What the client runs for each event for which Aver stands there."""
    for event in place.events:
        for item in _event_items(place, event):
            if place.is_ours(item):
                yield from ((event, ["/bin/sh", "-c", command]) for command in place.commands(item))


def _event_items(place: HookList, event: str) -> list[Any]:
    found = read_entry(_settings_file(place), _entry_path(event))
    return found if isinstance(found, list) else []


def _settings_file(place: HookList) -> SettingsFile:
    return SettingsFile(place.path, place.form)


def _entry_path(event: str) -> EntryPath:
    return ("hooks", event)
