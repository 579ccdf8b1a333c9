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
from aver.install.document import Format
from aver.surroundings import Surroundings, user_data

__all__ = ["CLIENTS", "Place", "Surroundings", "places"]


@dataclass(frozen=True, slots=True)
class Place:
    """One file in which a client looks for MCP servers."""

    client: str
    path: Path
    form: Format
    servers: tuple[str, ...]
    """Where in the file the servers stand, by their names."""
    names_type: bool = False
    """Whether an entry says that it is of type `stdio`."""
    shared: bool = False
    """Whether others get the file too, on other machines: it is of a project."""
    workspace: str = ""
    """What the client puts the open folder's path in place of; empty where it starts servers in that folder."""


def places(client: str, around: Surroundings) -> list[Place]:
    """The files of a client that are to be changed: of the user, or of the project."""
    found = CLIENTS[client](around)
    if not found:
        raise BadInput(f"{client} has no settings for a project", advice="leave out --project")
    return [replace(place, shared=around.project is not None) for place in found]


def _claude_code(around: Surroundings) -> list[Place]:
    home = Path(around.environment.get("CLAUDE_CONFIG_DIR") or around.home)
    path = home / ".claude.json" if around.project is None else around.project / ".mcp.json"
    return [Place("claude-code", path, "json", ("mcpServers",), names_type=True)]


def _codex(around: Surroundings) -> list[Place]:
    home = Path(around.environment.get("CODEX_HOME") or around.home / ".codex")
    directory = home if around.project is None else around.project / ".codex"
    return [Place("codex", directory / "config.toml", "toml", ("mcp_servers",))]


def _cursor(around: Surroundings) -> list[Place]:
    base = around.home if around.project is None else around.project
    workspace = "" if around.project is None else "${workspaceFolder}"
    return [Place("cursor", base / ".cursor" / "mcp.json", "jsonc", ("mcpServers",), workspace=workspace)]


def _cline(around: Surroundings) -> list[Place]:
    if around.project is not None:
        return []
    name = "cline_mcp_settings.json"
    if given := around.environment.get("CLINE_MCP_SETTINGS_PATH"):
        paths = [Path(given)]
    else:
        own = around.home / ".cline" / "data" / "settings"
        stored = user_data(around, "Code") / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
        paths = [directory / name for directory in (own, stored) if directory.is_dir()] or [own / name]
    return [Place("cline", path, "json", ("mcpServers",)) for path in paths]


def _vscode(around: Surroundings) -> list[Place]:
    directory = user_data(around, "Code") if around.project is None else around.project / ".vscode"
    path = directory / "mcp.json"
    return [Place("vscode", path, "jsonc", ("servers",), names_type=True, workspace="${workspaceFolder}")]


CLIENTS: Mapping[str, Callable[[Surroundings], list[Place]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "cline": _cline,
    "vscode": _vscode,
}
