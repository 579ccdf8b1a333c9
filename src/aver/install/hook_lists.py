"""Hooks that stand in lists of a settings file, one list for each event: Claude Code's, Codex's, Cursor's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aver.errors import AverError
from aver.install.commands import hook_command
from aver.install.entries import Key, Result, SettingsFile, put_item, standing_in, take_items
from aver.install.hook_places import HookList
from aver.install.memory import Memory
from aver.install.registering import Outcome, Standing
from aver.surroundings import Surroundings

__all__ = ["commands", "put", "standing", "take"]

PART = "hooks"


def put(place: HookList, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Have Aver stand under each event, beside what stands there."""
    results: list[Result] = []
    for event in place.events:
        command = hook_command(place.client, event, around.environment)
        ours = [one for one in _items(place, event) if place.is_ours(one)]
        # What its owner changed about an item that starts the right command, such as its timeout, stays.
        item = ours[0] if len(ours) == 1 and place.commands(ours[0]) == [command] else place.made(event, command)
        results.append(
            put_item(_file(place), _key(event), item, place.is_ours, memory, blank=place.blank, dry_run=dry_run)
        )
    done: Result = "unchanged"
    if set(results) != {"unchanged"}:
        done = "installed" if set(results) == {"installed"} else "updated"
    return Outcome(place.client, place.path, done, PART)


def take(place: HookList, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Have Aver stand under no event. The last that was put in is taken out first: so bytes come back as they were."""
    results = [
        take_items(_file(place), _key(event), place.is_ours, memory, blank=place.blank, dry_run=dry_run)
        for event in reversed(place.events)
    ]
    return Outcome(place.client, place.path, "removed" if "removed" in results else "absent", PART)


def standing(place: HookList, around: Surroundings) -> Standing:
    """How things stand there."""
    try:
        found = {event: [one for one in _items(place, event) if place.is_ours(one)] for event in place.events}
    except AverError as error:
        return Standing(place.client, place.path, "unreadable", error.message, PART)
    present = [event for event, items in found.items() if items]
    if not present:
        return Standing(place.client, place.path, "absent", part=PART)
    wanted = {event: hook_command(place.client, event, around.environment) for event in place.events}
    off = [event for event, items in found.items() if [place.commands(one) for one in items] != [[wanted[event]]]]
    if off:
        why = f"another Aver is started, or none, for {', '.join(off)}; install it anew"
        return Standing(place.client, place.path, "outdated", why, PART)
    return Standing(place.client, place.path, "installed", _still_to_do(place), PART)


def _still_to_do(place: HookList) -> str:
    """What keeps the client from running hooks that stand in its settings as they should."""
    from aver.install.hook_limits import limits

    found: dict[str, tuple[int, Any]] = {}
    for event in place.events:
        items = _items(place, event)
        at = list(map(place.is_ours, items)).index(True)
        found[event] = at, items[at]
    return "; ".join(limits(place, found))


def commands(place: HookList) -> Iterator[tuple[str, list[str]]]:
    """What the client runs for each event for which Aver stands there."""
    for event in place.events:
        for item in _items(place, event):
            if place.is_ours(item):
                yield from ((event, ["/bin/sh", "-c", command]) for command in place.commands(item))


def _items(place: HookList, event: str) -> list[Any]:
    found = standing_in(_file(place), _key(event))
    return found if isinstance(found, list) else []


def _file(place: HookList) -> SettingsFile:
    return SettingsFile(place.path, place.form)


def _key(event: str) -> Key:
    return ("hooks", event)
