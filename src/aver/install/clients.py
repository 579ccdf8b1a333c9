"""The programs that Aver can be put into, where each keeps its MCP servers, and how an entry looks there.

| client | for the user | for a project |
|---|---|---|
| `claude-code` | `~/.claude.json` | `.mcp.json` |
| `codex` | `~/.codex/config.toml` | `.codex/config.toml` |
| `cursor` | `~/.cursor/mcp.json` | `.cursor/mcp.json` |
| `cline` | its settings in VS Code's storage, or `~/.cline` | |
| `vscode` | `mcp.json` in the user's settings | `.vscode/mcp.json` |

`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `CLINE_MCP_SETTINGS_PATH` and `XDG_CONFIG_HOME` are followed, as the clients do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from aver.errors import BadInput
from aver.files.user_dirs import UserEnvironment, user_data_dir
from aver.install.edit import SettingsFormat

__all__ = ["CLIENTS", "ServerPlace", "UserEnvironment", "server_places"]


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One file in which a client looks for MCP servers."""

    client: str
    path: Path
    form: SettingsFormat
    servers: tuple[str, ...]
    """Where in the file the servers stand, by their names."""
    names_type: bool = False
    """Whether an entry says that it is of type `stdio`."""
    shared: bool = False
    """Whether others get the file too, on other machines: it is of a project."""
    workspace: str = ""
    """What the client puts the open folder's path in place of; empty where it starts servers in that folder."""


def server_places(client: str, around: UserEnvironment) -> list[ServerPlace]:
    """The files of a client that are to be changed: of the user, or of the project."""
    found = CLIENTS[client](around)
    if not found:
        raise BadInput(f"{client} has no settings for a project", advice="leave out --project")
    return [replace(place, shared=around.project is not None) for place in found]


def _claude_code_places(around: UserEnvironment) -> list[ServerPlace]:
    home = Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home)
    path = home / ".claude.json" if around.project is None else around.project / ".mcp.json"
    return [ServerPlace("claude-code", path, "json", ("mcpServers",), names_type=True)]


def _codex_places(around: UserEnvironment) -> list[ServerPlace]:
    home = Path(around.environment.get("CODEX_HOME") or around.home / ".codex")
    directory = home if around.project is None else around.project / ".codex"
    return [ServerPlace("codex", directory / "config.toml", "toml", ("mcp_servers",))]


def _cursor_places(around: UserEnvironment) -> list[ServerPlace]:
    base = around.home if around.project is None else around.project
    workspace = "" if around.project is None else "${workspaceFolder}"
    return [ServerPlace("cursor", base / ".cursor" / "mcp.json", "jsonc", ("mcpServers",), workspace=workspace)]


def _cline_places(around: UserEnvironment) -> list[ServerPlace]:
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


def _vscode_places(around: UserEnvironment) -> list[ServerPlace]:
    directory = user_data_dir(around, "Code") if around.project is None else around.project / ".vscode"
    path = directory / "mcp.json"
    return [ServerPlace("vscode", path, "jsonc", ("servers",), names_type=True, workspace="${workspaceFolder}")]


CLIENTS: Mapping[str, Callable[[UserEnvironment], list[ServerPlace]]] = {
    "claude-code": _claude_code_places,
    "codex": _codex_places,
    "cursor": _cursor_places,
    "cline": _cline_places,
    "vscode": _vscode_places,
}
