"""The tools of coding agents, by name: what each does, and which of its arguments say to what.

Names are of Claude Code, Codex, Cursor, Cline and Gemini CLI, and of the tools that models are commonly given. They are
compared without regard to case, hyphens and underscores: `write_file`, `WriteFile` and `write-file` are one tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.values import dataclass

__all__ = [
    *("COMMAND_KEYS", "PATH_KEYS", "URL_KEYS", "ToolUse", "calls_servers", "is_surely_of", "mcp_server", "plain"),
    "use_of",
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
class ToolUse:
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


_READS = ToolUse(("read",))
_LOOKS = ToolUse(("read",), works_here=True)
_GLOBS = ToolUse(("read",), works_here=True, takes_pattern=True)
_EDITS = ToolUse(("read", "write"))
_EDITOR = ToolUse(("read", "write"), may_only_look=True)
_WRITES = ToolUse(("write",))
_DELETES = ToolUse(("delete",))
_RUNS = ToolUse(takes_command=True)
_RUNS_SEVERAL = ToolUse(takes_command=True, takes_several=True)
_PATCHES = ToolUse(("write",), takes_patch=True)
_FETCHES = ToolUse(always=("network",), takes_url=True)
_SEARCHES = ToolUse(always=("network",))
_BROWSES = ToolUse(always=("network", "egress"), takes_url=True)
_SPEAKS = ToolUse()
_SIGNALS = ToolUse(always=("process",))
_STEERS = ToolUse(("write",), always=("agent-config",), may_name_none=True)


def _named(uses: Mapping[str, ToolUse]) -> Mapping[str, ToolUse]:
    return {plain(name): use for names, use in uses.items() for name in names.split()}


def plain(name: str) -> str:
    """A name without its dress. What is not ASCII may look like another name, and is none."""
    return re.sub(r"[-_. ]", "", name).lower() if name.isascii() else name


_TOOLS = _named(
    {
        "Bash shell local_shell container.exec exec exec_command execute_command run_command run_terminal_cmd": _RUNS,
        "terminal run_in_terminal run_shell_command shell_command unified_exec bash_tool execute_bash": _RUNS,
        "run_commands": _RUNS_SEVERAL,
        "Read read_file view open_file cat read_many_files NotebookRead view_image read_text_file": _READS,
        "get_file_contents read_files": _READS,
        "Glob file_search find_files": _GLOBS,
        "LS list_dir list_files list_directory search_file_content directory_tree get_errors read_lints": _LOOKS,
        "Grep grep_search search_files codebase_search search_codebase list_code_definition_names": _LOOKS,
        "list_code_usages semantic_search view_file_outline get_diagnostics": _LOOKS,
        "Edit MultiEdit edit_file replace replace_in_file search_replace apply_diff insert_content str_replace": _EDITS,
        "NotebookEdit edit_notebook reapply replace_string_in_file insert_edit_into_file smart_edit editor": _EDITS,
        "str_replace_editor str_replace_based_edit_tool text_editor": _EDITOR,
        "Write write_file write_to_file create_file new_file create_directory save_file": _WRITES,
        "delete_file remove_file": _DELETES,
        "apply_patch": _PATCHES,
        "WebFetch fetch fetch_url read_url_content fetch_webpage open_url http_get fetch_web_content": _FETCHES,
        "WebSearch google_web_search search_web": _SEARCHES,
        "browser_action browser computer browser_navigate browser_click browser_type": _BROWSES,
        "Task Agent new_task dispatch_agent TodoWrite TodoRead update_plan EnterPlanMode ExitPlanMode": _SPEAKS,
        "attempt_completion ask_followup_question AskUserQuestion plan_mode_respond think sequentialthinking": _SPEAKS,
        "BashOutput TaskOutput get_terminal_output manage_todo_list spawn_agent ask_question submit_and_exit": _SPEAKS,
        "ToolSearch TaskCreate TaskList TaskGet TaskUpdate": _SPEAKS,
        "KillShell KillBash TaskStop": _SIGNALS,
        "save_memory update_memory memory create_rule new_rule write_rule update_rules": _STEERS,
    }
)
"""Tools that start another agent, ask, or think do nothing themselves: what the other agent does is judged in turn."""

_MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)")
_CALLS_SERVERS = frozenset({"usemcptool", "accessmcpresource"})


def use_of(tool: str) -> ToolUse | None:
    """What a tool does; None where nothing is known of it."""
    return None if mcp_server(tool) else _TOOLS.get(plain(tool))


def mcp_server(tool: str) -> str:
    """The server in the name of an MCP tool, `mcp__server__tool`; empty for other tools."""
    found = _MCP.fullmatch(tool)
    return found["server"] if found else ""


def calls_servers(tool: str) -> bool:
    """Whether a tool is the one of an agent that calls those of MCP servers, and names the server in its arguments."""
    return plain(tool) in _CALLS_SERVERS


def is_surely_of(tool: str, server: str) -> bool:
    """Whether an MCP tool is of this server: `mcp__a__b__c` may be of `a` and of `a__b`."""
    return calls_servers(tool) or "__" not in tool.removeprefix(f"mcp__{server}__")
