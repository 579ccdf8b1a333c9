"""VS Code's settings: its MCP servers.

| part | for the user | for a project |
|---|---|---|
| MCP servers | `mcp.json` in the directory of its settings | `.vscode/mcp.json` |

A server has a `type`: `stdio`, `http` or `sse`. Without one, VS Code takes a server with a URL for one over HTTP.
"""

from __future__ import annotations

from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.install.client import Client, ServerForm, ServerPlace


def _find_servers(around: UserEnvironment) -> list[ServerPlace]:
    directory = user_data_dir(around, "Code") if around.project is None else around.project / ".vscode"
    path = directory / "mcp.json"
    return [ServerPlace("vscode", path, "jsonc", ("servers",), names_type=True, workspace="${workspaceFolder}")]


CLIENT = Client(
    name="vscode",
    find_servers=_find_servers,
    server_form=ServerForm(limits={"oauth": "VS Code logs in to it by itself"}),
)
