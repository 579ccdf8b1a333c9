"""Registering the MCP server with a client, taking it out, and telling how things stand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.install.clients import Place, Surroundings, places
from aver.install.commands import this_aver
from aver.install.entries import Key, Result, SettingsFile, put, standing_in, take
from aver.install.memory import Memory

__all__ = ["Outcome", "Standing", "entry_for", "install", "standing", "uninstall"]

NAME = "aver"
"""What the server is called in clients' settings."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to one file."""

    client: str
    path: Path
    done: Result
    part: str = "mcp"
    """What it is about: `mcp`, the server, or `hooks`."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand in one file: `installed`, `outdated`, `foreign`, `absent` or `unreadable`, and why."""

    client: str
    path: Path
    state: str
    why: str = ""
    part: str = "mcp"


def install(client: str, around: Surroundings, *, dry_run: bool = False) -> list[Outcome]:
    """Put the server into a client's settings. `dry_run` only tells what would be done."""
    memory = Memory()
    done = []
    with nullcontext() if dry_run else memory.held():
        for place in places(client, around):
            entry = entry_for(place, around.environment)
            result = put(_file(place, around), _key(place), entry, _is_ours, memory, dry_run=dry_run)
            done.append(Outcome(client, place.path, result))
    return done


def uninstall(client: str, around: Surroundings, *, dry_run: bool = False) -> list[Outcome]:
    """Take the server out of a client's settings."""
    memory = Memory()
    done = []
    with nullcontext() if dry_run else memory.held():
        for place in places(client, around):
            result = take(_file(place, around), _key(place), _is_ours, memory, dry_run=dry_run)
            done.append(Outcome(client, place.path, result))
    return done


def standing(client: str, around: Surroundings) -> list[Standing]:
    """How things stand with a client. Nothing is changed, and whatever is wrong is told."""
    return [_standing(place, around) for place in places(client, around)]


def _standing(place: Place, around: Surroundings) -> Standing:
    try:
        found = standing_in(_file(place, around), _key(place))
    except AverError as error:
        return Standing(place.client, place.path, "unreadable", error.message)
    if found is None:
        return Standing(place.client, place.path, "absent")
    if not _is_ours(found):
        return Standing(place.client, place.path, "foreign", f"another server is called {NAME} there")
    wanted = entry_for(place, around.environment)
    if any(found.get(name) != value for name, value in wanted.items()):
        why = "it starts another Aver, or in another way; install it anew"
        return Standing(place.client, place.path, "outdated", why)
    return Standing(place.client, place.path, "installed")


def entry_for(place: Place, environment: Mapping[str, str]) -> dict[str, Any]:
    """The entry that has a client start this very Aver; in a project, the one that whoever opens it has."""
    command, *arguments = ["aver"] if place.shared else this_aver()
    arguments += ["mcp", "--agent", place.client]
    if place.workspace:
        arguments += ["--workspace", place.workspace]
    entry: dict[str, Any] = {"type": "stdio"} if place.names_type else {}
    entry |= {"command": command, "args": arguments}
    home = environment.get("AVER_HOME")
    if home and not place.shared:
        # A ledger's URL is not put there: it may hold a password.
        entry["env"] = {"AVER_HOME": os.path.abspath(home)}
    return entry


def _is_ours(entry: Any) -> bool:
    """Whether an entry starts an Aver, this one or another."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or not isinstance(arguments, list) or "mcp" not in arguments:
        return False
    return os.path.basename(command) == "aver" or "aver" in arguments[: arguments.index("mcp")]


def _file(place: Place, around: Surroundings) -> SettingsFile:
    return SettingsFile(place.path, place.form, around.project)


def _key(place: Place) -> Key:
    return (*place.servers, NAME)
