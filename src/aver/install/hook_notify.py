"""The one command that older versions of Codex tell of each turn's end: `notify` in its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from aver.errors import AverError, Refused
from aver.install.commands import this_aver
from aver.install.entries import Key, SettingsFile, put, standing_in, take
from aver.install.hook_places import Notify
from aver.install.memory import Memory
from aver.install.registering import Outcome, Standing
from aver.surroundings import Surroundings

__all__ = ["commands", "put_notify", "standing", "take_notify"]

PART = "hooks"

EVENT = "notify"


def put_notify(place: Notify, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Have Aver told, unless the user has somebody else told: there can be only one."""
    try:
        done = put(_file(place), _key(place), _words(around), _is_ours, memory, dry_run=dry_run)
    except Refused as refusal:
        if refusal.code != "FOREIGN":
            raise
        why = f"{place.name} is a command of your own and was left as it is: Aver is not told"
        return Outcome(place.client, place.path, "kept", PART, why)
    return Outcome(place.client, place.path, done, PART)


def take_notify(place: Notify, around: Surroundings, memory: Memory, *, dry_run: bool) -> Outcome:
    """Have Aver not told. What is not ours stays."""
    found = standing_in(_file(place), _key(place))
    if found is not None and not _is_ours(found):
        return Outcome(place.client, place.path, "absent", PART)
    return Outcome(place.client, place.path, take(_file(place), _key(place), _is_ours, memory, dry_run=dry_run), PART)


def standing(place: Notify, around: Surroundings) -> Standing:
    """How things stand there."""
    try:
        found = standing_in(_file(place), _key(place))
    except AverError as error:
        return Standing(place.client, place.path, "unreadable", error.message, PART)
    if found is None:
        return Standing(place.client, place.path, "absent", part=PART)
    if not _is_ours(found):
        return Standing(place.client, place.path, "foreign", f"{place.name} is a command of your own", PART)
    if found != _words(around):
        return Standing(place.client, place.path, "outdated", "another Aver is told; install it anew", PART)
    return Standing(place.client, place.path, "installed", "older versions tell only of a turn's end", PART)


def commands(place: Notify) -> Iterator[tuple[str, list[str]]]:
    """What the client runs. The payload comes as one more word."""
    found = standing_in(_file(place), _key(place))
    if _is_ours(found):
        yield EVENT, list(found)


def _words(around: Surroundings) -> list[str]:
    home = around.environment.get("AVER_HOME")
    given = ["/usr/bin/env", f"AVER_HOME={os.path.abspath(home)}"] if home else []
    return [*given, *this_aver(), "hook", "codex", EVENT]


def _is_ours(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return False
    return value[-3:] == ["hook", "codex", EVENT] and os.path.basename("".join(value[-4:-3])) == "aver"


def _file(place: Notify) -> SettingsFile:
    return SettingsFile(place.path, "toml")


def _key(place: Notify) -> Key:
    return (place.name,)
