"""Where each client keeps its hooks for the user, and how one looks there.

| client | file | a hook there |
|---|---|---|
| `claude-code` | `~/.claude/settings.json` | a group with a matcher, under the event |
| `codex` | `~/.codex/hooks.json` | the same |
| `codex` before 0.124 | `notify` in `~/.codex/config.toml` | one command, told at the end of each turn |
| `cursor` | `~/.cursor/hooks.json` | a command, under the event |
| `cline` | `~/Documents/Cline/Hooks` | a file with the event's name |
| `cline`, where documents have another name | `~/.cline/hooks` as well | the same |

Hooks are for the user alone. In a project's settings they would run on whoever opens the project.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.install.commands import is_hook_command
from aver.install.edit import SettingsFormat

__all__ = ["HOOK_CLIENTS", "HookFiles", "HookList", "HookPlace", "NotifyCommand", "hook_places"]

HOOK_SECONDS = 60
"""How long a hook may take, for clients that ask. It takes a fraction of one; a ledger's lock is waited for longer."""

SESSION_END_SECONDS = 3
"""The same for Codex at the end of a session."""

VERSION_SECONDS = 20.0
"""How long a client may take to say which version it is."""

HOOKS_SINCE = (0, 124)
"""The first Codex whose hooks are on without being asked for."""

_CLAUDE_CODE_EVENTS = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "UserPromptSubmit", "SubagentStop"),
    *("PreCompact", "Stop", "SessionEnd"),
)
_CODEX_EVENTS = (
    *("PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStop", "PreCompact", "Stop"),
    "SessionEnd",
)
_CURSOR_EVENTS = (
    *("preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "postToolUse"),
    *("postToolUseFailure", "afterFileEdit", "sessionStart", "beforeSubmitPrompt", "subagentStop", "preCompact"),
    *("stop", "sessionEnd"),
)
_CLINE_EVENTS = (
    *("PreToolUse", "PostToolUse", "TaskStart", "TaskResume", "TaskComplete", "TaskCancel", "UserPromptSubmit"),
    *("PreCompact", "TaskError", "SessionShutdown"),
)
"""The last two are those of sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookList:
    """Hooks as items of lists in a file: one list for each event, under `hooks`."""

    client: str
    path: Path
    form: SettingsFormat
    events: tuple[str, ...]
    made: Callable[[str, str], dict[str, Any]]
    """The item for an event and a command."""
    blank: str = ""
    """What a new file begins with."""

    def commands(self, item: Any) -> list[Any]:
        """The commands in an item, whoever put it there."""
        if not isinstance(item, dict):
            return []
        inner = item.get("hooks")
        holders = inner if isinstance(inner, list) else [item]
        return [one.get("command") for one in holders if isinstance(one, dict)]

    def is_ours(self, item: Any) -> bool:
        """Whether an item starts Aver and nothing else."""
        commands = self.commands(item)
        return bool(commands) and all(is_hook_command(command, self.client) for command in commands)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFiles:
    """Hooks as files, each with the name of its event."""

    client: str
    directories: tuple[Path, ...]
    """All get the same: versions of the client look in different ones, and none in two of them."""
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyCommand:
    """One command that is told of each turn's end: a setting of its own in a TOML file."""

    client: str
    path: Path
    name: str = "notify"


HookPlace = HookList | HookFiles | NotifyCommand


def hook_places(client: str, around: UserEnvironment) -> list[HookPlace]:
    """Where a client's hooks are put: the first. In the others an earlier version of the client looked for them."""
    find = HOOK_CLIENTS.get(client)
    return [] if find is None or around.project is not None else list(find(around))


def _claude_code_places(around: UserEnvironment) -> Iterator[HookPlace]:
    home = Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home / ".claude")
    yield HookList(
        client="claude-code",
        path=home / "settings.json",
        form="json",
        events=_CLAUDE_CODE_EVENTS,
        made=_claude_code_item,
    )


def _codex_places(around: UserEnvironment) -> Iterator[HookPlace]:
    home = Path(around.environment.get("CODEX_HOME") or around.home / ".codex")
    version = _program_version("codex", around.environment)
    notify = NotifyCommand(client="codex", path=home / "config.toml")
    hooks = HookList(client="codex", path=home / "hooks.json", form="json", events=_CODEX_EVENTS, made=_codex_item)
    yield from (notify, hooks) if version is not None and version < HOOKS_SINCE else (hooks, notify)


def _cursor_places(around: UserEnvironment) -> Iterator[HookPlace]:
    path = around.home / ".cursor" / "hooks.json"
    blank = '{\n  "version": 1\n}\n'
    yield HookList(client="cursor", path=path, form="json", events=_CURSOR_EVENTS, made=_cursor_item, blank=blank)


def _cline_places(around: UserEnvironment) -> Iterator[HookPlace]:
    """The editor's extension asks the system for the folder for documents. Sessions, which the command line and later
    extensions run, look in `Documents` whatever that is called, and in a directory of their own."""
    documents = _documents_directory(around)
    directories = [documents / "Cline" / "Hooks"]
    if documents != around.home / "Documents":
        directories.append(Path(around.environment.get("CLINE_DIR") or around.home / ".cline") / "hooks")
    yield HookFiles(client="cline", directories=tuple(directories), events=_CLINE_EVENTS)


HOOK_CLIENTS: Mapping[str, Callable[[UserEnvironment], Iterator[HookPlace]]] = {
    "claude-code": _claude_code_places,
    "codex": _codex_places,
    "cursor": _cursor_places,
    "cline": _cline_places,
}

_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def _claude_code_item(event: str, command: str) -> dict[str, Any]:
    return (
        {"matcher": "*", **_command_group(event, command)} if event in _TOOL_EVENTS else _command_group(event, command)
    )


def _command_group(event: str, command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]}


def _codex_item(event: str, command: str) -> dict[str, Any]:
    """Codex waits for the end of a session no longer, and complains where more is asked for."""
    seconds = SESSION_END_SECONDS if event == "SessionEnd" else HOOK_SECONDS
    return {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}


def _cursor_item(event: str, command: str) -> dict[str, Any]:
    return {"command": command, "timeout": HOOK_SECONDS}


def _program_version(program: str, environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The version that an installed program says it is; None where there is none, or it does not say."""
    path = shutil.which(program, path=environment.get("PATH", ""))
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    found = re.search(r"\b([0-9]{1,6})\.([0-9]{1,6})\.", done.stdout[:1000])
    return None if found is None else (int(found[1]), int(found[2]))


def _documents_directory(around: UserEnvironment) -> Path:
    """The folder for documents, which may have another name in another language."""
    usual = around.home / "Documents"
    if around.platform in ("darwin", "win32"):
        return usual
    settings = Path(around.environment.get("XDG_CONFIG_HOME") or around.home / ".config") / "user-dirs.dirs"
    try:
        text = settings.read_text("utf-8", "replace")
    except OSError:
        return usual
    found = re.search(r'^XDG_DOCUMENTS_DIR="(\$HOME)?/?([^"\n]*)"', text, re.MULTILINE)
    if found is None or not found[2]:
        return usual
    return around.home / found[2] if found[1] else Path("/") / found[2]
