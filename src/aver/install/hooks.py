"""Put Aver's hooks into a client, take them out, and tell their state.

Aver never touches what belongs to others. Other hooks stay beside Aver's. A file or setting of the user that stands
where Aver's would stand stays, and the outcome says so.

`HookList` is the common form of hooks: a settings file with one list of items per event, as Claude Code, Codex and
Cursor have it:

    {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "aver hook ..."}]}]}}

Cursor's items have the command directly: `{"command": "aver hook cursor ..."}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.install.client import (
    Client,
    InstallOutcome,
    InstallState,
    find_start_problem,
    hook_command,
    hook_places,
    is_guarded,
    is_hook_command,
)
from aver.install.edit import SettingsFormat
from aver.install.settings_file import EditResult, SettingsFile, put_item, read_entry, remove_items
from aver.install.undo import UndoLog

HOOKS_PART = "hooks"

NOT_ACTIVE = "NOT ACTIVE"
"""How a reason begins why a client does not run hooks that are installed."""

NOT_GATED = "NOT GATED"
"""How a reason begins why calls go on without Aver."""

HOOK_SECONDS = 60
"""The time limit that Aver asks clients for. A hook takes a fraction of a second, unless it waits for a lock."""

_MATCH_ALL = (None, "", "*", ".*")


def install_hooks(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Put Aver's hooks into the client's first place and take them out of the others. `dry_run` changes nothing."""
    memory = UndoLog()
    places = hook_places(client, around)
    if not places:
        return []
    wanted, *former = places
    with nullcontext() if dry_run else memory.lock():
        removed = [place.remove(around, memory, dry_run=dry_run) for place in former]
        outcome = wanted.put(around, memory, dry_run=dry_run)
    return [*(one for one in removed if one.done == "removed"), outcome]


def uninstall_hooks(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Take Aver's hooks out of all places of the client."""
    memory = UndoLog()
    with nullcontext() if dry_run else memory.lock():
        done = [place.remove(around, memory, dry_run=dry_run) for place in hook_places(client, around)]
    return [*done[:1], *(one for one in done[1:] if one.done == "removed")]


def read_hooks_state(client: Client, around: UserEnvironment) -> list[InstallState]:
    """Tell the state of a client's hooks: that of the first place, and of others that still have hooks of Aver."""
    found = [place.read_state(around) for place in hook_places(client, around)]
    return [*found[:1], *(one for one in found[1:] if one.state in ("installed", "outdated"))]


def installed_commands(client: Client, around: UserEnvironment) -> Iterator[tuple[str, list[str]]]:
    """Yield each event that has a hook of Aver, with the words that the client runs for it."""
    for place in hook_places(client, around):
        yield from place.installed_commands()


def _find_no_limits(place: HookList, found: Mapping[str, int]) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookList:
    """Hooks as items of lists in a settings file: one list for each event, under `hooks`."""

    client: str
    path: Path
    form: SettingsFormat
    events: tuple[str, ...]
    gating: frozenset[str]
    """The events that ask."""
    build_item: Callable[[str, str], dict[str, Any]]
    """Builds the item for an event and a command."""
    blank: str = ""
    """The text that a new file begins with."""
    find_limits: Callable[[HookList, Mapping[str, int]], Iterable[str]] = _find_no_limits
    """Yields reasons why the client does not run installed hooks. Gets the position of Aver's item, by event."""

    def put(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Put an item under each event, after the items of others."""
        results: set[EditResult] = set()
        for event in self.events:
            command = self._command(event, around)
            ours = [item for item in self._items(event) if self.is_ours(item)]
            # The user may have changed an item that starts the right command, such as its timeout: keep that.
            is_right = len(ours) == 1 and _item_commands(ours[0]) == [command]
            item = ours[0] if is_right else self.build_item(event, command)
            path = ("hooks", event)
            results.add(put_item(self._file(), path, item, self.is_ours, memory, blank=self.blank, dry_run=dry_run))
        done: EditResult = "unchanged"
        if results != {"unchanged"}:
            done = "installed" if results == {"installed"} else "updated"
        return InstallOutcome(self.client, self.path, done, HOOKS_PART)

    def remove(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Take Aver's items out. The last list that Aver made goes first: then white space comes back as it was."""
        results = [
            remove_items(self._file(), ("hooks", event), self.is_ours, memory, blank=self.blank, dry_run=dry_run)
            for event in reversed(self.events)
        ]
        return InstallOutcome(self.client, self.path, "removed" if "removed" in results else "absent", HOOKS_PART)

    def read_state(self, around: UserEnvironment) -> InstallState:
        """Tell the state, and for installed hooks what keeps the client from running or obeying them."""
        try:
            found = {event: self._items(event) for event in self.events}
        except AverError as error:
            return InstallState(self.client, self.path, "unreadable", error.message, HOOKS_PART)
        ours = {event: [item for item in items if self.is_ours(item)] for event, items in found.items()}
        if not any(ours.values()):
            return InstallState(self.client, self.path, "absent", part=HOOKS_PART)
        wanted = {event: self._command(event, around) for event in self.events}
        outdated = [event for event, items in ours.items() if list(map(_item_commands, items)) != [[wanted[event]]]]
        asking = [items for event, items in ours.items() if event in self.gating]
        commands = [str(one) for items in asking for item in items for one in _item_commands(item)]
        limits = [] if all(asking) else [f"{NOT_GATED}: not every event that asks has a hook of Aver"]
        if problem := next(filter(None, map(find_start_problem, commands)), ""):
            blocks = all(map(is_guarded, commands))
            limits.append(f"every call is blocked: {problem}" if blocks else f"{NOT_GATED}: {problem}")
        if outdated:
            why = f"these start another Aver, or in another way: {', '.join(outdated)}; run aver install {self.client}"
            is_gated = not any(limit.startswith(NOT_GATED) for limit in limits)
            return InstallState(
                self.client, self.path, "outdated", "; ".join([*limits, why]), HOOKS_PART, is_gated=is_gated
            )
        positions = {event: items.index(ours[event][0]) for event, items in found.items()}
        limits += self.find_limits(self, positions)
        limits += [f"{event} {why}" for event, [item] in ours.items() for why in _find_restrictions(item)]
        is_gated = not any(limit.startswith((NOT_GATED, NOT_ACTIVE)) for limit in limits)
        return InstallState(self.client, self.path, "installed", "; ".join(limits), HOOKS_PART, is_gated=is_gated)

    def installed_commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the commands of Aver's items. The client gives each to a shell."""
        for event in self.events:
            for item in self._items(event):
                if self.is_ours(item):
                    yield from ((event, ["/bin/sh", "-c", command]) for command in _item_commands(item))

    def is_ours(self, item: Any) -> bool:
        """Whether an item starts Aver and nothing else."""
        commands = _item_commands(item)
        return bool(commands) and all(is_hook_command(command, self.client) for command in commands)

    def _command(self, event: str, around: UserEnvironment) -> str:
        return hook_command(self.client, event, around, guarded=event in self.gating)

    def _items(self, event: str) -> list[Any]:
        found = read_entry(self._file(), ("hooks", event))
        return found if isinstance(found, list) else []

    def _file(self) -> SettingsFile:
        return SettingsFile(self.path, self.form)


def _item_commands(item: Any) -> list[Any]:
    """The commands in an item of anyone: its own, or those of the group that it is."""
    if not isinstance(item, dict):
        return []
    inner = item.get("hooks")
    holders = inner if isinstance(inner, list) else [item]
    return [holder.get("command") for holder in holders if isinstance(holder, dict)]


def _find_restrictions(item: Any) -> Iterator[str]:
    """Yield what is wrong with an item that starts the right command."""
    if item.get("matcher") not in _MATCH_ALL:
        yield f"runs only for {item['matcher']!r}, not for every tool"
    inner = item.get("hooks")
    for hook in inner if isinstance(inner, list) else [item]:
        if not isinstance(hook, dict):
            continue
        if hook.get("if"):
            yield f"runs only where {hook['if']!r} holds"
        if hook.get("async"):
            yield f"is not waited for: it can deny nothing ({NOT_GATED})"
        if hook.get("type", "command") != "command":
            yield f"is a {hook['type']!r}, and no command is run"
