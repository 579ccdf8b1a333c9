"""A client: one program into whose settings Aver can be put, and the places there.

A `Client` is all that the engine in this folder must know of a program. Each coding agent describes itself as one in
`agents/<name>/install.py`. VS Code is no agent, but starts MCP servers for the agents that run in it; its `VSCODE`
stands here. The engine has no table of clients: the caller passes the `Client`.

A client may have two parts of Aver:

    mcp      the MCP server, as an entry among the client's own MCP servers     ServerPlace
    hooks    commands that the client runs before and after what its agent does  HookPlace

Hooks are for the user alone. In a project's settings they would run for everyone who opens the project.

Both parts start Aver by a command. `aver_command` and `hook_command` build it, and `is_hook_command` recognises it in
the settings of a client.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.install.edit import SettingsFormat

if TYPE_CHECKING:
    from aver.install.settings_file import EditResult
    from aver.install.undo import UndoLog


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """The change that Aver made to one file or directory of a client."""

    client: str
    path: Path
    done: EditResult
    part: str = "mcp"
    """`mcp` or `hooks`."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class InstallState:
    """The state of one part in one place: `installed`, `outdated`, `foreign`, `absent` or `unreadable`, and why."""

    client: str
    path: Path
    state: str
    why: str = ""
    part: str = "mcp"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One file in which a client looks for MCP servers."""

    client: str
    path: Path
    form: SettingsFormat
    servers: tuple[str, ...]
    """The path of the table that holds the servers by their names."""
    names_type: bool = False
    """Whether an entry needs `type = "stdio"`."""
    shared: bool = False
    """Whether the file belongs to a project, so that people on other machines get it too."""
    workspace: str = ""
    """The client's placeholder for the open folder; empty where the client starts servers in that folder."""


class HookPlace(Protocol):
    """One place in which a client looks for hooks, and how Aver puts its own there.

    `install.hooks.HookList` is one for settings with a list per event; a client that keeps hooks in another way has a
    class of its own in its folder.
    """

    def put(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Put Aver's hooks there, beside those of others."""

    def remove(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Take Aver's hooks out, and nothing else."""

    def read_state(self, around: UserEnvironment) -> InstallState:
        """Tell the state. Changes nothing; a file that cannot be read is the state `unreadable`."""

    def installed_commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each event that has a hook of Aver there, with the words that the client runs for it."""


def _find_no_hooks(around: UserEnvironment) -> Iterable[HookPlace]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One program that Aver can be put into."""

    name: str
    """The name on the command line, such as `claude-code`."""
    find_servers: Callable[[UserEnvironment], list[ServerPlace]]
    """The files for the user, or for `around.project`; empty where projects have no settings."""
    find_hooks: Callable[[UserEnvironment], Iterable[HookPlace]] = _find_no_hooks
    """The places of hooks for the user. Hooks go into the first; earlier versions of the client used the others."""
    after_hooks: str = ""
    """The step that the user must still take before the client runs the hooks."""


def server_places(client: Client, around: UserEnvironment) -> list[ServerPlace]:
    """List the files of the user or of the project. Raises `BadInput` where the client has none for a project."""
    found = client.find_servers(around)
    if not found:
        raise BadInput(f"{client.name} has no settings for a project", advice="leave out --project")
    return [replace(place, shared=around.project is not None) for place in found]


def hook_places(client: Client, around: UserEnvironment) -> list[HookPlace]:
    """List the places of a client's hooks: none for a project."""
    return [] if around.project is not None else list(client.find_hooks(around))


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    directory = user_data_dir(around, "Code") if around.project is None else around.project / ".vscode"
    path = directory / "mcp.json"
    return [ServerPlace("vscode", path, "jsonc", ("servers",), names_type=True, workspace="${workspaceFolder}")]


VSCODE = Client(name="vscode", find_servers=_find_servers)


def aver_command() -> list[str]:
    """Return the words of the command that starts this Aver.

    `-P` keeps the current folder off the import path: a repository could bring an `aver.py`.
    """
    script = Path(sys.executable).with_name("aver")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "aver"]


def hook_command(tool: str, event: str, environment: Mapping[str, str]) -> str:
    """Return the shell command for a hook. It has AVER_HOME, but not AVER_LEDGER, which may hold a password."""
    words = shlex.join([*aver_command(), "hook", tool, event])
    home = environment.get("AVER_HOME")
    return f"AVER_HOME={shlex.quote(os.path.abspath(home))} {words}" if home else words


def is_hook_command(command: object, tool: str) -> bool:
    """Whether a command starts an Aver, this or another installation, for a hook of this agent."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    at = next((at for at, word in enumerate(words) if word == "hook" and words[at + 1 : at + 2] == [tool]), 0)
    return at > 0 and os.path.basename(words[at - 1]) == "aver"
