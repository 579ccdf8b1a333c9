"""Cursor's settings: its MCP servers and its hooks.

| part | for the user | for a project |
|---|---|---|
| MCP servers | `~/.cursor/mcp.json` | `.cursor/mcp.json` |
| hooks | `~/.cursor/hooks.json`, a command under the event | |
"""

from __future__ import annotations

from typing import Any

from aver.agents.cursor.hooks import GATING_EVENTS
from aver.files.user_dirs import UserEnvironment
from aver.install.client import Client, ServerForm, ServerPlace
from aver.install.hooks import HOOK_SECONDS, HookList

_EVENTS = (
    *("preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "postToolUse"),
    *("postToolUseFailure", "afterFileEdit", "sessionStart", "beforeSubmitPrompt", "subagentStop", "preCompact"),
    *("stop", "sessionEnd"),
)


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    base = around.home if around.project is None else around.project
    workspace = "" if around.project is None else "${workspaceFolder}"
    return [ServerPlace("cursor", base / ".cursor" / "mcp.json", "jsonc", ("mcpServers",), workspace=workspace)]


def _find_hooks(around: UserEnvironment) -> list[HookList]:
    path = around.home / ".cursor" / "hooks.json"
    # Cursor reads no file without a version.
    blank = '{\n  "version": 1\n}\n'
    return [
        HookList(
            client="cursor",
            path=path,
            form="json",
            events=_EVENTS,
            gating=GATING_EVENTS,
            build_item=_build_item,
            blank=blank,
        )
    ]


def _build_item(event: str, command: str) -> dict[str, Any]:
    return {"command": command, "timeout": HOOK_SECONDS}


CLIENT = Client(
    name="cursor",
    find_servers=_find_servers,
    find_hooks=_find_hooks,
    server_form=ServerForm(limits={"auth": "Cursor logs in to it by itself"}),
)
