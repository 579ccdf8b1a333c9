"""Register Aver's MCP server with a client, take it out, and tell its state.

The server is one entry among the client's MCP servers:

    "aver": {"command": "/usr/bin/aver", "args": ["mcp", "--agent", "cursor"], "env": {"AVER_HOME": "..."}}

In a project's settings the command is `aver` alone, so that it works for everyone who opens the project.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from aver.errors import AverError
from aver.files.user_dirs import UserEnvironment
from aver.install.client import Client, InstallOutcome, InstallState, ServerPlace, aver_command, server_places
from aver.install.settings_file import EntryPath, SettingsFile, put_entry, read_entry, remove_entry
from aver.install.undo import UndoLog

SERVER_NAME = "aver"
"""The name of the entry in clients' settings."""


MISSING_MESSAGE = "needs aver-ledger[mcp]"

_PACKAGES = ("mcp", "anyio")


def find_missing_package() -> str:
    """Return the package that the server needs and that is not installed; empty where it can run."""
    from importlib.util import find_spec

    return next((name for name in _PACKAGES if find_spec(name) is None), "")


def server_commands(client: Client, around: UserEnvironment) -> list[tuple[list[str], dict[str, str]]]:
    """Return the commands, with their variables, by which a client starts Aver's server.

    The user's home stands for the folder that the client would have open.
    """
    found = []
    for place in server_places(client, around):
        entry = read_entry(_settings_file(place, around), _entry_path(place))
        if _is_ours(entry):
            given = entry.get("env")
            words = [str(entry["command"]), *map(str, entry["args"])]
            words = [str(around.home) if word and word == place.workspace else word for word in words]
            found.append((words, {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}))
    return found


def install_server(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Put the server into a client's settings, if it can run here. `dry_run` changes nothing."""
    if find_missing_package():
        places = server_places(client, around)
        return [InstallOutcome(client.name, place.path, "skipped", why=MISSING_MESSAGE) for place in places]
    memory = UndoLog()
    done = []
    with nullcontext() if dry_run else memory.lock():
        for place in server_places(client, around):
            entry = build_server_entry(place, around.environment)
            result = put_entry(
                _settings_file(place, around), _entry_path(place), entry, _is_ours, memory, dry_run=dry_run
            )
            done.append(InstallOutcome(client.name, place.path, result))
    return done


def uninstall_server(client: Client, around: UserEnvironment, *, dry_run: bool = False) -> list[InstallOutcome]:
    """Take the server out of a client's settings."""
    memory = UndoLog()
    done = []
    with nullcontext() if dry_run else memory.lock():
        for place in server_places(client, around):
            result = remove_entry(_settings_file(place, around), _entry_path(place), _is_ours, memory, dry_run=dry_run)
            done.append(InstallOutcome(client.name, place.path, result))
    return done


def read_server_state(client: Client, around: UserEnvironment) -> list[InstallState]:
    """Tell the state of the server in each of a client's files. Changes nothing."""
    return [_read_place_state(place, around) for place in server_places(client, around)]


def _read_place_state(place: ServerPlace, around: UserEnvironment) -> InstallState:
    try:
        found = read_entry(_settings_file(place, around), _entry_path(place))
    except AverError as error:
        return InstallState(place.client, place.path, "unreadable", error.message)
    if found is None:
        return InstallState(place.client, place.path, "absent")
    if not _is_ours(found):
        return InstallState(place.client, place.path, "foreign", f"another MCP server has the name {SERVER_NAME} there")
    wanted = build_server_entry(place, around.environment)
    if any(found.get(name) != value for name, value in wanted.items()):
        why = f"it starts another Aver, or in another way; run aver install {place.client}"
        return InstallState(place.client, place.path, "outdated", why)
    return InstallState(place.client, place.path, "installed")


def build_server_entry(place: ServerPlace, environment: Mapping[str, str]) -> dict[str, Any]:
    """Build the entry that makes a client start this Aver; in a project, the Aver of each person who opens it."""
    command, *arguments = ["aver"] if place.shared else aver_command()
    arguments += ["mcp", "--agent", place.client]
    if place.workspace:
        arguments += ["--workspace", place.workspace]
    entry: dict[str, Any] = {"type": "stdio"} if place.names_type else {}
    entry |= {"command": command, "args": arguments}
    home = environment.get("AVER_HOME")
    if home and not place.shared:
        # Not AVER_LEDGER: a ledger's URL may hold a password.
        entry["env"] = {"AVER_HOME": os.path.abspath(home)}
    return entry


def _is_ours(entry: Any) -> bool:
    """Whether an entry starts an Aver, this or another installation."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or not isinstance(arguments, list) or "mcp" not in arguments:
        return False
    return os.path.basename(command) == "aver" or "aver" in arguments[: arguments.index("mcp")]


def _settings_file(place: ServerPlace, around: UserEnvironment) -> SettingsFile:
    return SettingsFile(place.path, place.form, around.project)


def _entry_path(place: ServerPlace) -> EntryPath:
    return (*place.servers, SERVER_NAME)
