"""The tools of coding agents, by name: what each does, and which of its arguments say to what.

Names are of Claude Code, Codex, Cursor, Cline and Gemini CLI, and of the tools that models are commonly given. They are
compared without regard to case, hyphens and underscores: `write_file`, `WriteFile` and `write-file` are one tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.fast_dataclass import dataclass

__all__ = [
    *(
        "COMMAND_KEYS",
        "PATH_KEYS",
        "URL_KEYS",
        "ToolProfile",
        "is_mcp_caller",
        "is_tool_of_server",
        "mcp_server",
        "normalise_name",
    ),
    "find_tool_profile",
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


_READS = ToolProfile(("read",))
_READS_WORKSPACE = ToolProfile(("read",), works_here=True)
_GLOBS = ToolProfile(("read",), works_here=True, takes_pattern=True)
_EDITS = ToolProfile(("read", "write"))
_EDITOR = ToolProfile(("read", "write"), may_only_look=True)
_WRITES = ToolProfile(("write",))
_DELETES = ToolProfile(("delete",))
_RUNS = ToolProfile(takes_command=True)
_RUNS_SEVERAL = ToolProfile(takes_command=True, takes_several=True)
_PATCHES = ToolProfile(("write",), takes_patch=True)
_FETCHES = ToolProfile(always=("network",), takes_url=True)
_SEARCHES = ToolProfile(always=("network",))
_BROWSES = ToolProfile(always=("network", "egress"), takes_url=True)
_NO_EFFECTS = ToolProfile()
_SIGNALS = ToolProfile(always=("process",))
_STEERS_AGENT = ToolProfile(("write",), always=("agent-config",), may_name_none=True)


def _index_profiles(uses: Mapping[str, ToolProfile]) -> Mapping[str, ToolProfile]:
    return {normalise_name(name): use for names, use in uses.items() for name in names.split()}


def normalise_name(name: str) -> str:
    """A name without its dress. What is not ASCII may look like another name, and is none."""
    return re.sub(r"[-_. ]", "", name).lower() if name.isascii() else name


_TOOLS = _index_profiles(
    {
        "Bash shell local_shell container.exec exec exec_command execute_command run_command run_terminal_cmd": _RUNS,
        "terminal run_in_terminal run_shell_command shell_command unified_exec bash_tool execute_bash": _RUNS,
        "run_commands": _RUNS_SEVERAL,
        "Read read_file view open_file cat read_many_files NotebookRead view_image read_text_file": _READS,
        "get_file_contents read_files": _READS,
        "Glob file_search find_files": _GLOBS,
        "LS list_dir list_files list_directory search_file_content": _READS_WORKSPACE,
        "directory_tree get_errors read_lints": _READS_WORKSPACE,
        "Grep grep_search search_files codebase_search search_codebase list_code_definition_names": _READS_WORKSPACE,
        "list_code_usages semantic_search view_file_outline get_diagnostics": _READS_WORKSPACE,
        "Edit MultiEdit edit_file replace replace_in_file search_replace apply_diff insert_content str_replace": _EDITS,
        "NotebookEdit edit_notebook reapply replace_string_in_file insert_edit_into_file smart_edit editor": _EDITS,
        "str_replace_editor str_replace_based_edit_tool text_editor": _EDITOR,
        "Write write_file write_to_file create_file new_file create_directory save_file": _WRITES,
        "delete_file remove_file": _DELETES,
        "apply_patch": _PATCHES,
        "WebFetch fetch fetch_url read_url_content fetch_webpage open_url http_get fetch_web_content": _FETCHES,
        "WebSearch google_web_search search_web": _SEARCHES,
        "browser_action browser computer browser_navigate browser_click browser_type": _BROWSES,
        "Task Agent new_task dispatch_agent TodoWrite TodoRead update_plan EnterPlanMode ExitPlanMode": _NO_EFFECTS,
        "attempt_completion ask_followup_question AskUserQuestion": _NO_EFFECTS,
        "plan_mode_respond think sequentialthinking": _NO_EFFECTS,
        "BashOutput TaskOutput get_terminal_output manage_todo_list": _NO_EFFECTS,
        "spawn_agent ask_question submit_and_exit": _NO_EFFECTS,
        "ToolSearch TaskCreate TaskList TaskGet TaskUpdate": _NO_EFFECTS,
        "KillShell KillBash TaskStop": _SIGNALS,
        "save_memory update_memory memory create_rule new_rule write_rule update_rules": _STEERS_AGENT,
    }
)
"""Tools that start another agent, ask, or think do nothing themselves: what the other agent does is judged in turn."""

_MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)")
_MCP_CALLERS = frozenset({"usemcptool", "accessmcpresource"})


def find_tool_profile(tool: str) -> ToolProfile | None:
    """What a tool does; None where nothing is known of it."""
    return None if mcp_server(tool) else _TOOLS.get(normalise_name(tool))


def mcp_server(tool: str) -> str:
    """The server in the name of an MCP tool, `mcp__server__tool`; empty for other tools."""
    found = _MCP.fullmatch(tool)
    return found["server"] if found else ""


def is_mcp_caller(tool: str) -> bool:
    """Whether a tool is the one of an agent that calls those of MCP servers, and names the server in its arguments."""
    return normalise_name(tool) in _MCP_CALLERS


def is_tool_of_server(tool: str, server: str) -> bool:
    """Whether an MCP tool is of this server: `mcp__a__b__c` may be of `a` and of `a__b`."""
    return is_mcp_caller(tool) or "__" not in tool.removeprefix(f"mcp__{server}__")
