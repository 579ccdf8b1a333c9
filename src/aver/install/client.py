"""A client: one program into whose settings Aver can be put, and the places there.

A `Client` is all that the engine in this folder must know of a program. Each coding agent describes itself as one in
`agents/<name>/install.py`. VS Code is no agent, but starts MCP servers for the agents that run in it. The engine has no
table of clients: the caller passes the `Client`.

A client may have three parts of Aver:

    mcp      the MCP server, as an entry among the client's own MCP servers      ServerPlace
    hooks    commands that the client runs before and after what its agent does  HookPlace
    proxy    `aver proxy` before each of the client's own MCP servers            ServerPlace, ServerForm

Hooks are for the user alone. In a project's settings they would run for everyone who opens the project.

Both parts start Aver by a command. `aver_command` and `hook_command` build it, and `is_hook_command` recognises it in
the settings of a client.

A hook that asks must not let a call through because Aver cannot start: its program was removed, may not be executed, or
does not find its modules. Most clients go on after any exit code but 2. So the command of such a hook is guarded: a
shell starts Aver, and turns every exit code but 0 and 2 into 2. Aver itself ends such a hook with 0 or 2 only.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
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
    """`mcp`, `hooks` or `proxy`."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class InstallState:
    """The state of one part in one place: `installed`, `outdated`, `foreign`, `absent` or `unreadable`, and why."""

    client: str
    path: Path
    state: str
    why: str = ""
    part: str = "mcp"
    is_gated: bool = False
    """Whether the client asks Aver before each call, as far as Aver can see: of hooks alone."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerForm:
    """How a client writes down one of its MCP servers, as far as clients differ.

    All of them have `command`, `args` and `env` for a server that they start, and `url` for one elsewhere.
    """

    http_types: tuple[str, ...] = ("http", "streamable-http", "streamableHttp")
    """Values of `type` for a server over streamable HTTP."""
    sse_types: tuple[str, ...] = ("sse",)
    """Values of `type` for the older transport."""
    is_sse_default: bool = False
    """Whether a server with a URL and no `type` speaks the older transport."""
    headers: str = "headers"
    """The setting with the headers of a server at a URL."""
    indirect_headers: str = ""
    """The setting with headers whose values are names of variables."""
    bearer: str = ""
    """The setting with the name of the variable that has the token."""
    forwards: str = ""
    """The setting with the names of variables that the client passes on to a server that it starts."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Settings that the proxy cannot carry over, and why."""


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
    server_form: ServerForm = ServerForm()
    """How the client writes its MCP servers."""
    find_own_servers: Callable[[UserEnvironment], list[ServerPlace]] | None = None
    """All places of the client's own MCP servers, where these are more than the files for Aver's server."""
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


def aver_command() -> list[str]:
    """Return the words of the command that starts this Aver.

    `-P` keeps the current folder off the import path: a repository could bring an `aver.py`.
    """
    script = Path(sys.executable).with_name("aver")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "aver"]


BLOCKED_MESSAGE = (
    "Permission denied by hook: Aver could not be started, so nobody judged this call, and it was not done. "
    "A person must repair Aver: run aver doctor, or install it again."
)
"""The message to the agent and the person where Aver cannot start. It has no quotes, which a shell would read."""

_GUARD = f'"$@"; code=$?; case $code in 0|2) exit $code;; esac; echo "{BLOCKED_MESSAGE}" >&2; exit 2'

_GUARD_NAME = "aver-hook"
"""The name of the guarding shell, for messages of its own."""


def hook_command(tool: str, event: str, around: UserEnvironment, *, guarded: bool = False) -> str:
    """Return the shell command for a hook. A `guarded` one blocks where Aver cannot start.

    It names AVER_HOME: settings of a project can set variables for hooks, and must not lead Aver to another home. It
    does not have AVER_LEDGER, which may hold a password.
    """
    words = [*aver_command(), "hook", tool, event]
    if guarded:
        words = ["/bin/sh", "-c", _GUARD, _GUARD_NAME, *words]
    return f"AVER_HOME={shlex.quote(hook_home(around))} {shlex.join(words)}"


def hook_home(around: UserEnvironment) -> str:
    """The home of Aver that hooks of this user have."""
    return os.path.abspath(around.environment.get("AVER_HOME") or around.home / ".aver")


def find_start_problem(command: str) -> str:
    """Return why a hook's command cannot start Aver; empty where it can, as far as one can see without starting it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "the command cannot be read"
    at = next((at for at, word in enumerate(words) if word == "hook" and at), 0)
    if not at:
        return ""
    # The program is the last word before `hook` that is a path: after it come only options of Python.
    program = next((word for word in reversed(words[:at]) if word.startswith("/")), "")
    if not program or os.access(program, os.X_OK):
        return ""
    return f"{program} {'may not be executed' if os.path.exists(program) else 'does not exist'}"


def is_guarded(command: str) -> bool:
    """Whether a hook's command blocks where Aver cannot start."""
    try:
        return _GUARD_NAME in shlex.split(command)
    except ValueError:
        return False


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
