"""Claude Code's settings: its MCP servers and its hooks.

| part | for the user | for a project |
|---|---|---|
| MCP servers | `~/.claude.json` | `.mcp.json` |
| hooks | `~/.claude/settings.json`, a group with a matcher under the event | |

`CLAUDE_CONFIG_DIR` moves the user's files, as it does for Claude Code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.files.user_dirs import UserEnvironment
from aver.install.client import Client, ServerForm, ServerPlace
from aver.install.hooks import HOOK_SECONDS, NOT_ACTIVE, HookList
from aver.install.settings_file import SettingsFile, read_entry

MANAGED_SETTINGS = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Settings that an administrator puts on a machine; users cannot change them."""

_EVENTS = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "UserPromptSubmit", "SubagentStop"),
    *("PreCompact", "Stop", "SessionEnd"),
)
_TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    home = Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home)
    path = home / ".claude.json" if around.project is None else around.project / ".mcp.json"
    return [ServerPlace("claude-code", path, "json", ("mcpServers",), names_type=True)]


def _find_hooks(around: UserEnvironment) -> list[HookList]:
    home = Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home / ".claude")
    return [
        HookList(
            client="claude-code",
            path=home / "settings.json",
            form="json",
            events=_EVENTS,
            gating=frozenset({"PreToolUse"}),
            build_item=_build_item,
            find_limits=_find_limits,
        )
    ]


def _build_item(event: str, command: str) -> dict[str, Any]:
    group = {"hooks": [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]}
    return {"matcher": "*", **group} if event in _TOOL_EVENTS else group


def _find_limits(place: HookList, found: Mapping[str, int]) -> Iterator[str]:
    """Yield settings of the user or of the machine that switch the user's hooks off."""
    if _is_set(place.path, "disableAllHooks"):
        yield f"{NOT_ACTIVE}: Claude Code runs no hooks: {place.path} says disableAllHooks"
    for path in MANAGED_SETTINGS:
        for name in ("disableAllHooks", "allowManagedHooksOnly"):
            if _is_set(path, name):
                yield f"{NOT_ACTIVE}: Claude Code does not run hooks of yours: {path} says {name}"


def _is_set(path: Path, name: str) -> bool:
    try:
        return read_entry(SettingsFile(path, "json"), (name,)) is True
    except AverError:  # Claude Code cannot read the file either.
        return False


def _find_own_servers(around: UserEnvironment) -> list[ServerPlace]:
    """Also the servers that the user has for single projects, which are in the same file."""
    [shared] = _find_servers(around)
    if around.project is not None:
        return [shared]
    try:
        projects = read_entry(SettingsFile(shared.path, "json"), ("projects",))
    except AverError:  # Claude Code cannot read the file either.
        projects = None
    named = projects if isinstance(projects, dict) else {}
    own = [replace(shared, servers=("projects", path, "mcpServers")) for path in named]
    return [shared, *own]


CLIENT = Client(
    name="claude-code",
    find_servers=_find_servers,
    find_hooks=_find_hooks,
    find_own_servers=_find_own_servers,
    server_form=ServerForm(
        limits={
            "headersHelper": "Claude Code runs a program for its headers",
            "oauth": "Claude Code logs in to it by itself",
        }
    ),
)
