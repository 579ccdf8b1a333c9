"""VS Code as a client: it starts MCP servers for the agents that run in it, and has no hooks.

for the user     mcp.json in the user's settings directory
for a project    .vscode/mcp.json
"""

from __future__ import annotations

from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.install.client import Client, ServerPlace

__all__ = ["VSCODE"]


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    directory = user_data_dir(around, "Code") if around.project is None else around.project / ".vscode"
    path = directory / "mcp.json"
    return [ServerPlace("vscode", path, "jsonc", ("servers",), names_type=True, workspace="${workspaceFolder}")]


VSCODE = Client(name="vscode", find_servers=_find_servers)
