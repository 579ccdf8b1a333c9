"""What a tool does, and the names of arguments that say to what.

A `ToolProfile` describes a tool that Aver knows by its name. The names are data about coding agents: they stand in
`agents/<name>/names.py`, and the gate gets all of them as one `known_agents.KnownAgents`.
"""

from __future__ import annotations

import re

from aver.fast_dataclass import dataclass

__all__ = [
    "BROWSES",
    "COMMAND_KEYS",
    "DELETES",
    "EDITOR",
    "EDITS",
    "FETCHES",
    "GLOBS",
    "NO_EFFECTS",
    "PATCHES",
    "PATH_KEYS",
    "READS",
    "READS_WORKSPACE",
    "RUNS",
    "RUNS_SEVERAL",
    "SEARCHES",
    "SIGNALS",
    "STEERS_AGENT",
    "URL_KEYS",
    "WRITES",
    "ToolProfile",
    "mcp_server",
    "normalise_name",
]

PATH_KEYS = (
    *("file_path", "path", "paths", "file", "files", "filename", "filepath", "notebook_path", "target_file", "source"),
    *("destination", "directory", "dir", "folder", "dir_path", "absolute_path", "relative_workspace_path", "dest"),
    *("file_paths", "old_path", "new_path", "output_path", "output_file", "input_path", "input_file", "uri"),
)
"""Arguments that hold paths, of tools that are not listed too."""

URL_KEYS = (
    "url",
    "uri",
    "urls",
    "endpoint",
    "href",
    "link",
    "webhook",
    "base_url",
    "address",
    "host",
    "hostname",
    "domain",
)
COMMAND_KEYS = ("command", "cmd", "commands", "shell_command", "script", "command_line")


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """What a tool does: effects on the paths it names (`on_paths`), others, and whether it takes a command."""

    on_paths: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    takes_command: bool = False
    takes_url: bool = False
    takes_patch: bool = False
    works_here: bool = False
    """Without a path it acts on the workspace."""
    takes_pattern: bool = False
    """Its `pattern` is one of paths."""
    may_name_none: bool = False
    """Without a path it acts on none."""
    may_only_look: bool = False
    """Its `command` is one of its own: `view` only reads."""
    takes_several: bool = False
    """Its commands are a list of them, each for a shell of its own in the workspace; a list is not one's words."""


READS = ToolProfile(("read",))
READS_WORKSPACE = ToolProfile(("read",), works_here=True)
GLOBS = ToolProfile(("read",), works_here=True, takes_pattern=True)
EDITS = ToolProfile(("read", "write"))
EDITOR = ToolProfile(("read", "write"), may_only_look=True)
WRITES = ToolProfile(("write",))
DELETES = ToolProfile(("delete",))
RUNS = ToolProfile(takes_command=True)
RUNS_SEVERAL = ToolProfile(takes_command=True, takes_several=True)
PATCHES = ToolProfile(("write",), takes_patch=True)
FETCHES = ToolProfile(always=("network",), takes_url=True)
SEARCHES = ToolProfile(always=("network",))
BROWSES = ToolProfile(always=("network", "egress"), takes_url=True)
NO_EFFECTS = ToolProfile()
"""Of tools that ask, think, or start another agent. The gate judges the other agent's actions in turn."""
SIGNALS = ToolProfile(always=("process",))
STEERS_AGENT = ToolProfile(("write",), always=("agent-config",), may_name_none=True)


def normalise_name(name: str) -> str:
    """A name without its dress. What is not ASCII may look like another name, and is none."""
    return re.sub(r"[-_. ]", "", name).lower() if name.isascii() else name


_MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)")


def mcp_server(tool: str) -> str:
    """The server in the name of an MCP tool, `mcp__server__tool`; empty for other tools."""
    found = _MCP.fullmatch(tool)
    return found["server"] if found else ""
