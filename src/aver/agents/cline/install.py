"""Cline's settings: its MCP servers, and its hooks, which are files named like their events.

| part | place |
|---|---|
| MCP servers | `cline_mcp_settings.json` in VS Code's storage, or below `~/.cline`; `CLINE_MCP_SETTINGS_PATH` |
| hooks | `~/Documents/Cline/Hooks`; where documents have another name, `~/.cline/hooks` as well |

Cline has no settings for a project. A hook file of Aver has a mark in its second line:

    #!/bin/sh
    # Aver's hook, put here by aver install; aver uninstall takes it away.
    AVER_HOME=/home/me/.aver /usr/bin/aver hook cline PreToolUse

Cline goes on where a hook fails. So the file for `PreToolUse` cancels the call itself where Aver cannot be started.
A file without that mark belongs to the user, and Aver leaves it as it is.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.hooks.contract import encode_answer
from aver.install.client import (
    BLOCKED_MESSAGE,
    Client,
    InstallOutcome,
    InstallState,
    ServerForm,
    ServerPlace,
    find_start_problem,
    hook_command,
)
from aver.install.hooks import HOOKS_PART, NOT_GATED
from aver.install.settings_file import EditResult
from aver.install.undo import UndoLog, change_file, read_settings_file, remove_empty_directories, resolve_target

OWN_MARK = b"# Aver's hook, put here by aver install; aver uninstall takes it away."
"""The second line of a file of Aver."""

FILE_MODE = 0o755

_EVENTS = (
    *("PreToolUse", "PostToolUse", "TaskStart", "TaskResume", "TaskComplete", "TaskCancel", "UserPromptSubmit"),
    *("PreCompact", "TaskError", "SessionShutdown"),
)
"""The last two are events of sessions only."""

_GATING = frozenset({"PreToolUse"})

_UNDO_KEY = ("hook",)


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    if around.project is not None:
        return []
    name = "cline_mcp_settings.json"
    if given := around.environment.get("CLINE_MCP_SETTINGS_PATH"):
        paths = [Path(given)]
    else:
        own = around.home / ".cline" / "data" / "settings"
        stored = user_data_dir(around, "Code") / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
        paths = [directory / name for directory in (own, stored) if directory.is_dir()] or [own / name]
    return [ServerPlace("cline", path, "json", ("mcpServers",)) for path in paths]


def _find_hooks(around: UserEnvironment) -> list[HookFiles]:
    # The editor's extension asks the system for the folder for documents. Sessions, which the command line and later
    # extensions run, look in `Documents` whatever its name is, and in a directory of their own.
    documents = _documents_directory(around)
    directories = [documents / "Cline" / "Hooks"]
    if documents != around.home / "Documents":
        directories.append(Path(around.environment.get("CLINE_DIR") or around.home / ".cline") / "hooks")
    return [HookFiles(directories=tuple(directories))]


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


@dataclass(frozen=True, slots=True)
class HookFiles:
    """Hooks as files, each named like its event."""

    directories: tuple[Path, ...]
    """Each gets the same files: versions of Cline look in different ones, and no version in two of them."""

    def put(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Write a file for each event for which the user has none."""
        results = {
            path: _put_file(path, _script_text(event, around), memory, dry_run=dry_run)
            for event, path in self._event_files()
        }
        changes = set(results.values()) - {"kept"}
        done: EditResult = "kept"
        if changes:
            done = "unchanged" if changes == {"unchanged"} else "installed" if changes == {"installed"} else "updated"
        kept = [path for path, result in results.items() if result == "kept"]
        return InstallOutcome("cline", self.directories[0], done, HOOKS_PART, _kept_message(kept))

    def remove(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Delete Aver's files, and the directories that Aver made for them, if they are empty then."""
        # The file that Aver wrote first goes last: only its change remembers the directories.
        results = [_remove_file(path, memory, dry_run=dry_run) for _, path in reversed(self._event_files())]
        done: EditResult = "removed" if "removed" in results else "absent"
        return InstallOutcome("cline", self.directories[0], done, HOOKS_PART)

    def read_state(self, around: UserEnvironment) -> InstallState:
        """Tell the state of all files together."""
        where = self.directories[0]
        try:
            found = {path: (event, read_settings_file(path)) for event, path in self._event_files()}
        except AverError as error:
            return InstallState("cline", where, "unreadable", error.message, HOOKS_PART)
        ours = {path: raw for path, (_, raw) in found.items() if raw is not None and _is_ours(raw)}
        others = [path for path, (_, raw) in found.items() if raw is not None and path not in ours]
        if not ours:
            state = "foreign" if others else "absent"
            return InstallState("cline", where, state, _kept_message(others), HOOKS_PART)
        outdated = [
            event
            for path, (event, _) in found.items()
            if path not in others and (ours.get(path) != _script_text(event, around) or not os.access(path, os.X_OK))
        ]
        limits = self._find_limits(ours, others)
        is_gated = not any(limit.startswith(NOT_GATED) for limit in limits)
        if outdated:
            events = ", ".join(dict.fromkeys(outdated))
            limits.append(f"these start another Aver, or in another way: {events}; run aver install cline")
        state = "outdated" if outdated else "installed"
        limits += filter(None, [_kept_message(others)])
        return InstallState("cline", where, state, "; ".join(limits), HOOKS_PART, is_gated=is_gated)

    def _find_limits(self, ours: Mapping[Path, bytes], others: list[Path]) -> list[str]:
        """Say why Cline does not ask Aver before a call, or why every call is cancelled."""
        limits = []
        for event, path in self._event_files():
            if event not in _GATING:
                continue
            if path in others or path not in ours:
                limits.append(f"{NOT_GATED}: {path} is not Aver's")
            elif not os.access(path, os.X_OK):
                limits.append(f"{NOT_GATED}: {path} may not be executed")
            elif problem := find_start_problem(b"".join(ours[path].split(b"\n")[2:3]).decode("utf-8", "replace")):
                blocks = b"errorMessage" in ours[path]
                limits.append(f"every call is blocked: {problem}" if blocks else f"{NOT_GATED}: {problem}")
        return list(dict.fromkeys(limits))

    def installed_commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield Aver's files, which Cline runs."""
        for event, path in self._event_files():
            raw = read_settings_file(path)
            if raw is not None and _is_ours(raw):
                yield event, [str(path)]

    def _event_files(self) -> list[tuple[str, Path]]:
        return [(event, resolve_target(where / event, None)) for where in self.directories for event in _EVENTS]


def _put_file(path: Path, text: bytes, memory: UndoLog, *, dry_run: bool) -> EditResult:
    before = read_settings_file(path)
    if before is not None and not _is_ours(before):
        return "kept"
    changed = change_file(
        path, lambda raw: text if raw is None or _is_ours(raw) else raw, mode=FILE_MODE, dry_run=dry_run
    )
    if changed.is_change and not dry_run:
        memory.keep(changed, _UNDO_KEY, 0)
    if not dry_run and not os.access(path, os.X_OK):
        path.chmod(FILE_MODE)
        return "updated"
    if not changed.is_change:
        return "unchanged"
    return "installed" if before is None else "updated"


def _remove_file(path: Path, memory: UndoLog, *, dry_run: bool) -> EditResult:
    known = memory.find_change(path, _UNDO_KEY)
    changed = change_file(path, lambda raw: None if raw is None or _is_ours(raw) else raw, dry_run=dry_run)
    if known is not None and not dry_run:
        memory.forget(path, _UNDO_KEY)
        if changed.after is None:
            remove_empty_directories(tuple(map(Path, known.made)))
    return "removed" if changed.is_change else "absent"


def _script_text(event: str, around: UserEnvironment) -> bytes:
    command = hook_command("cline", event, around)
    if event in _GATING:
        answer = encode_answer({"cancel": True, "errorMessage": BLOCKED_MESSAGE})
        command = f"{command} && exit 0\necho {shlex.quote(answer)}"
    return b"#!/bin/sh\n" + OWN_MARK + b"\n" + command.encode("utf-8", "surrogateescape") + b"\n"


def _is_ours(raw: bytes) -> bool:
    return raw.split(b"\n", 2)[1:2] == [OWN_MARK]


def _kept_message(files: list[Path]) -> str:
    words = "hooks of your own were left as they are, and Aver does not run there: "
    return words + ", ".join(dict.fromkeys(path.name for path in files)) if files else ""


CLIENT = Client(
    name="cline",
    find_servers=_find_servers,
    find_hooks=_find_hooks,
    server_form=ServerForm(is_sse_default=True, limits={"oauth": "Cline logs in to it by itself"}),
    after_hooks="cline in an editor, before version 4, runs hooks if they are enabled in its settings, under Features",
)
