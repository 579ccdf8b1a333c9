"""Putting Aver's hooks into a client, taking them out, and telling how things stand.

What is somebody else's is never touched: other hooks stay beside ours, a file or a setting that is not ours and stands
where ours would stays, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from aver.install import hook_files, hook_lists, hook_notify
from aver.install.hook_places import HookFiles, HookList, Place, hook_places
from aver.install.memory import Memory
from aver.install.registering import Outcome, Standing
from aver.surroundings import Surroundings

__all__ = ["hooks_standing", "install_hooks", "installed_commands", "uninstall_hooks"]


def install_hooks(client: str, around: Surroundings, *, dry_run: bool = False) -> list[Outcome]:
    """Put Aver's hooks into a client. `dry_run` only tells what would be done."""
    memory = Memory()
    places = hook_places(client, around)
    if not places:
        return []
    wanted, *former = places
    with nullcontext() if dry_run else memory.held():
        gone = [_take(place, around, memory, dry_run=dry_run) for place in former]
        done = _put(wanted, around, memory, dry_run=dry_run)
    return [*(one for one in gone if one.done == "removed"), done]


def uninstall_hooks(client: str, around: Surroundings, *, dry_run: bool = False) -> list[Outcome]:
    """Take Aver's hooks out of a client."""
    memory = Memory()
    with nullcontext() if dry_run else memory.held():
        done = [_take(place, around, memory, dry_run=dry_run) for place in hook_places(client, around)]
    return [*done[:1], *(one for one in done[1:] if one.done == "removed")]


def hooks_standing(client: str, around: Surroundings) -> list[Standing]:
    """How things stand with a client's hooks. Nothing is changed, and whatever is wrong is told."""
    found = [_standing(place, around) for place in hook_places(client, around)]
    return [*found[:1], *(one for one in found[1:] if one.state in ("installed", "outdated"))]


def installed_commands(client: str, around: Surroundings) -> Iterator[tuple[str, list[str]]]:
    """The events for which Aver stands in a client's hooks, and the words that the client runs for each."""
    for place in hook_places(client, around):
        if isinstance(place, HookList):
            yield from hook_lists.commands(place)
        elif isinstance(place, HookFiles):
            yield from hook_files.commands(place)
        else:
            yield from hook_notify.commands(place)


def _put(place: Place, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    if isinstance(place, HookList):
        return hook_lists.put(place, around, memory, dry_run=dry_run)
    if isinstance(place, HookFiles):
        return hook_files.put(place, around, memory, dry_run=dry_run)
    return hook_notify.put_notify(place, around, memory, dry_run=dry_run)


def _take(place: Place, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    if isinstance(place, HookList):
        return hook_lists.take(place, around, memory, dry_run=dry_run)
    if isinstance(place, HookFiles):
        return hook_files.take(place, around, memory, dry_run=dry_run)
    return hook_notify.take_notify(place, around, memory, dry_run=dry_run)


def _standing(place: Place, around: Surroundings) -> Standing:
    if isinstance(place, HookList):
        return hook_lists.standing(place, around)
    if isinstance(place, HookFiles):
        return hook_files.standing(place, around)
    return hook_notify.standing(place, around)
