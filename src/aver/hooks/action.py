"""A tool call becomes the action that the gate judges, whichever agent makes it.

The gate knows tools by their names and reads their arguments. An edit it gets as a diff. Aver builds the diff from the
arguments alone. For a file that is written whole, Aver also reads the file as it is now, if it is a plain file of the
workspace that is not guarded: what an agent may not read must not come into a record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from aver.errors import BadInput
from aver.files.regular import open_regular
from aver.gate.action import TEXT_MAX, Action
from aver.gate.effects.arguments import ToolProfile, mcp_server, normalise_name
from aver.gate.effects.known_agents import default_known_agents
from aver.gate.effects.paths import build_path_roots, locate_path
from aver.ingest.diffs import diff_from_insertion, unified_diff

BEFORE_MAX = 1024 * 1024
"""Bytes of a file that Aver reads to see how it would change. The diff for a larger file shows everything as new."""


def build_action(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    caller: str,
    session: str,
    workspace: str,
    cwd: str = "",
    diff: str | None = None,
    call_id: str = "",
) -> Action:
    """The action that a call is. `cwd` is where a command runs, if that is not the workspace itself. `call_id` is the
    key under which the call is sealed afterwards; empty where the client does not tell which call it is."""
    if "\0" in workspace or "\0" in cwd:
        raise BadInput("it would happen in a directory that no system can have")
    given = dict(arguments)
    use = default_known_agents().find_profile(tool)
    if use is not None and use.takes_command and cwd and cwd != workspace:
        given.setdefault("cwd", cwd)
    return Action(
        type=_action_type(use, diff),
        tool=tool[:TEXT_MAX],
        arguments=given,
        diff=diff or None,
        description=f"call {tool[: TEXT_MAX // 2]}",
        caller=caller,
        session=session,
        workspace=workspace,
        call_id=call_id,
    )


def call_id_for(agent: str, session: str, identifier: str) -> str:
    """The id that ties the decision about a call to its record: `<agent>:<session>:<tool_use_id>`."""
    from aver.ingest.draft import event_key

    return event_key(agent, session, identifier) if identifier else ""


def _action_type(use: ToolProfile | None, diff: str | None) -> str:
    if diff:
        return "code_edit"
    if use is None:
        return "tool_call"
    if use.takes_command:
        return "shell_exec"
    return "file_read" if use.on_paths == ("read",) else "tool_call"


OWN_SERVER = "aver"
"""The name under which `aver install` registers Aver's MCP server."""


def own_tool_hints(tool: str) -> Mapping[str, Any]:
    """Return MCP annotations for the tools of Aver's own server, which write into Aver's ledger alone.

    Hooks get no annotations from the agent. The gate believes these only where the user trusts that server by name,
    because any server may have the name.
    """
    if mcp_server(tool) != OWN_SERVER:
        return {}
    return {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}


# --- edits as diffs


def diff_for_edit(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """Return the diff of an edit by a tool that names a file and its new text; None for other tools."""
    path = arguments.get("file_path") or arguments.get("path")
    if not isinstance(path, str) or not path:
        return None
    name = normalise_name(tool)
    if name in ("edit", "multiedit", "strreplace"):
        pairs = _replacement_pairs(arguments.get("edits")) if name == "multiedit" else _replacement_pairs([arguments])
        return diff_for_replacement(path, pairs, workspace) if pairs else None
    content = arguments.get("content", arguments.get("contents"))
    if name in ("write", "writetofile") and isinstance(content, str):
        return diff_for_write(path, content, workspace)
    return None


def diff_for_replacement(path: str, pairs: Iterable[tuple[str, str]], workspace: str) -> str:
    """Return the diff of texts that are replaced in a file. Their lines are not known: every hunk begins at line 1."""
    shown = _workspace_path(path, workspace)
    header, hunks = "", list[str]()
    for old, new in pairs:
        lines = unified_diff(shown, old, new).split("\n")
        header, hunk = "\n".join(lines[:2]), "\n".join(lines[2:])
        hunks.append(hunk)
    return f"{header}\n{''.join(hunks)}" if "".join(hunks) else ""


def diff_for_write(path: str, content: str, workspace: str) -> str:
    """Return the diff of a file that is written whole."""
    return unified_diff(_workspace_path(path, workspace), _read_current(path, workspace), content)


def diff_for_replace_or_create(path: str, old: str | None, new: str, workspace: str) -> str:
    """Return the diff by an editor that replaces a text in a file, or makes the file where there is none."""
    if old is None or _read_current(path, workspace) is None:
        return diff_for_write(path, new, workspace)
    return diff_for_replacement(path, [(old, new)], workspace)


def diff_for_insertion(path: str, line: int, added: str, workspace: str) -> str:
    """Return the diff of lines that are inserted before a line of a file."""
    return diff_from_insertion(_workspace_path(path, workspace), line, added)


def _replacement_pairs(edits: Any) -> list[tuple[str, str]]:
    found = []
    for edit in edits if isinstance(edits, list) else []:
        old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str):
            return []
        found.append((old, new))
    return found


def _workspace_path(path: str, workspace: str) -> str:
    """The path relative to the workspace, if it lies there."""
    if os.path.isabs(path) and workspace and path.startswith(workspace.rstrip("/") + "/"):
        return path[len(workspace.rstrip("/")) + 1 :]
    return path


def _read_current(path: str, workspace: str) -> str | None:
    """The text of a file of the workspace now; None where there is none, or Aver must not read it."""
    if not os.path.isabs(workspace):
        return None
    try:
        root = os.path.realpath(workspace)
        real = os.path.realpath(os.path.join(root, path))
        place = locate_path(real, None, build_path_roots(root, {}))
        if place.where != "workspace" or place.classes:
            return None
        file = open_regular(real, follow=False)
    except (OSError, ValueError):  # We may not read it, or no system has a file of this name.
        return None
    with file:
        raw = file.read(BEFORE_MAX + 1)
    return None if len(raw) > BEFORE_MAX else raw.decode("utf-8", "replace")
