"""Codex's settings: its MCP servers, its hooks, and for versions without hooks the `notify` command.

| part | for the user | for a project |
|---|---|---|
| MCP servers | `~/.codex/config.toml` | `.codex/config.toml` |
| hooks, from 0.124 on | `~/.codex/hooks.json`, a group under the event | |
| hooks, before 0.124 | `notify` in `~/.codex/config.toml`: one command, run at the end of each turn | |

`CODEX_HOME` moves the user's files, as it does for Codex.

Codex runs only hooks that its user has looked at and trusted, in Codex itself. It keeps that in its settings, under
`hooks.state."<file>:<event>:<group>:<hook>"`. Aver reads it, to say what is still to be done, and never writes it:
only the user may give trust.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.errors import AverError, Refused
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.install.client import Client, HookPlace, InstallOutcome, InstallState, ServerForm, ServerPlace, aver_command
from aver.install.hooks import HOOK_SECONDS, HOOKS_PART, NOT_ACTIVE, NOT_GATED, HookList
from aver.install.settings_file import SettingsFile, put_entry, read_entry, remove_entry
from aver.install.undo import UndoLog

SESSION_END_SECONDS = 3
"""The time limit for the end of a session. Codex waits no longer there, and complains where more is asked for."""

VERSION_SECONDS = 20.0
"""How long Codex may take to tell its version."""

HOOKS_SINCE = (0, 124)
"""The first version that has hooks switched on by default."""

_EVENTS = (
    *("PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStop", "PreCompact", "Stop"),
    "SessionEnd",
)


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    directory = _user_directory(around) if around.project is None else around.project / ".codex"
    return [ServerPlace("codex", directory / "config.toml", "toml", ("mcp_servers",))]


def _find_hooks(around: UserEnvironment) -> Iterable[HookPlace]:
    home = _user_directory(around)
    version = _program_version("codex", around.environment)
    notify = NotifyCommand(path=home / "config.toml")
    hooks = HookList(
        client="codex",
        path=home / "hooks.json",
        form="json",
        events=_EVENTS,
        gating=frozenset({"PreToolUse"}),
        build_item=_build_item,
        find_limits=_find_limits,
    )
    return (notify, hooks) if version is not None and version < HOOKS_SINCE else (hooks, notify)


def _user_directory(around: UserEnvironment) -> Path:
    return Path(around.environment.get("CODEX_HOME") or around.home / ".codex")


def _build_item(event: str, command: str) -> dict[str, Any]:
    seconds = SESSION_END_SECONDS if event == "SessionEnd" else HOOK_SECONDS
    return {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}


def _program_version(program: str, environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The version that an installed program tells; None where there is no program, or it tells none."""
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


# --- hooks that Codex does not run


def _find_limits(place: HookList, found: Mapping[str, int]) -> Iterator[str]:
    """Yield what keeps Codex from running Aver's hooks: hooks are switched off, or not trusted."""
    config = place.path.with_name("config.toml")
    for name in ("hooks", "codex_hooks"):
        if _read_setting(config, ("features", name)) is False:
            yield f"{NOT_ACTIVE}: Codex runs no hooks: {config} says {name} = false under [features]"
    state = _read_setting(config, ("hooks", "state"))
    known = state if isinstance(state, dict) else {}
    untrusted = [
        event for event, at in found.items() if not _is_trusted(known.get(f"{place.path}:{_snake_case(event)}:{at}:0"))
    ]
    if untrusted:
        asked = ", ".join(untrusted)
        yield f"{NOT_ACTIVE}: Codex runs only hooks that you trust: start it and enter /hooks ({asked})"


def _is_trusted(state: object) -> bool:
    return isinstance(state, dict) and bool(state.get("trusted_hash")) and state.get("enabled") is not False


def _snake_case(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _read_setting(config: Path, path: tuple[str, ...]) -> Any:
    try:
        return read_entry(SettingsFile(config, "toml"), path)
    except AverError:  # Codex cannot read the file either.
        return None


# --- versions without hooks


@dataclass(frozen=True, slots=True)
class NotifyCommand:
    """The setting `notify`: one command, which Codex runs at the end of each turn with the payload as last word."""

    path: Path

    def put(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Set Aver's command, unless the user has a command of their own: there can be only one."""
        try:
            done = put_entry(self._file(), (_NOTIFY,), _notify_words(around), _is_ours, memory, dry_run=dry_run)
        except Refused as refusal:
            if refusal.code != "FOREIGN":
                raise
            why = "notify is a command of your own and was left as it is: Codex does not run Aver"
            return InstallOutcome("codex", self.path, "kept", HOOKS_PART, why)
        return InstallOutcome("codex", self.path, done, HOOKS_PART)

    def remove(self, around: UserEnvironment, memory: UndoLog, *, dry_run: bool) -> InstallOutcome:
        """Remove Aver's command. A command of the user stays."""
        found = read_entry(self._file(), (_NOTIFY,))
        if found is not None and not _is_ours(found):
            return InstallOutcome("codex", self.path, "absent", HOOKS_PART)
        done = remove_entry(self._file(), (_NOTIFY,), _is_ours, memory, dry_run=dry_run)
        return InstallOutcome("codex", self.path, done, HOOKS_PART)

    def read_state(self, around: UserEnvironment) -> InstallState:
        """Tell the state of the setting."""
        try:
            found = read_entry(self._file(), (_NOTIFY,))
        except AverError as error:
            return InstallState("codex", self.path, "unreadable", error.message, HOOKS_PART)
        if found is None:
            return InstallState("codex", self.path, "absent", part=HOOKS_PART)
        if not _is_ours(found):
            return InstallState("codex", self.path, "foreign", "notify is a command of your own", HOOKS_PART)
        if found != _notify_words(around):
            why = "it starts another Aver; run aver install codex"
            return InstallState("codex", self.path, "outdated", why, HOOKS_PART)
        why = f"{NOT_GATED}: this version of Codex reports only the end of a turn"
        return InstallState("codex", self.path, "installed", why, HOOKS_PART)

    def installed_commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the command, if it is Aver's."""
        found = read_entry(self._file(), (_NOTIFY,))
        if _is_ours(found):
            yield _NOTIFY, list(found)

    def _file(self) -> SettingsFile:
        return SettingsFile(self.path, "toml")


_NOTIFY = "notify"
"""The setting's name, and the event's name for `aver hook codex`."""


def _notify_words(around: UserEnvironment) -> list[str]:
    home = around.environment.get("AVER_HOME")
    prefix = ["/usr/bin/env", f"AVER_HOME={os.path.abspath(home)}"] if home else []
    return [*prefix, *aver_command(), "hook", "codex", _NOTIFY]


def _is_ours(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return False
    return value[-3:] == ["hook", "codex", _NOTIFY] and os.path.basename("".join(value[-4:-3])) == "aver"


CLIENT = Client(
    name="codex",
    find_servers=_find_servers,
    find_hooks=_find_hooks,
    server_form=ServerForm(
        headers="http_headers",
        indirect_headers="env_http_headers",
        bearer="bearer_token_env_var",
        forwards="env_vars",
        limits={
            "oauth_resource": "Codex logs in to it by itself",
            "scopes": "Codex logs in to it by itself",
            "experimental_environment": "Codex runs it elsewhere",
        },
    ),
    after_hooks="hooks are NOT ACTIVE until you trust them: start codex and enter /hooks; also after an update",
)
