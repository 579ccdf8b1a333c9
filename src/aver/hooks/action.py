"""A tool call becomes the action that the gate judges, whichever agent makes it.

The gate knows tools by their names and reads their arguments. It gets an edit as a diff. Aver builds the diff from the
arguments alone. For a file that is written whole, Aver also reads the file as it is now, if it is a plain file of the
workspace that is not guarded: a file that an agent may not read must not come into a record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from aver.diffs import diff_from_insertion, unified_diff
from aver.errors import BadInput
from aver.files.regular import open_regular
from aver.gate.action import TEXT_MAX, Action
from aver.gate.effects.arguments import normalise_name
from aver.gate.effects.known_agents import default_known_agents
from aver.gate.effects.paths import build_path_roots, locate_path
from aver.ingest.draft import event_key

BEFORE_MAX = 1024 * 1024
"""Bytes of a file that Aver reads to see how it would change. A change of a larger file is not shown as a diff."""

REPLACED_MAX = 4 * BEFORE_MAX
"""Characters of a file after all its replacements. A longer one is not shown as a diff."""


def build_action(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    agent: str,
    session: str,
    workspace: str,
    cwd: str = "",
    diff: str | None = None,
    tool_use_id: str = "",
    subagent: str = "",
) -> Action:
    """Build the action that a tool call is. Raises `BadInput` for a call that can be none.

    `cwd` is where a command runs, if that is not the workspace itself. `tool_use_id` is the agent's own id of the call;
    empty where the payload does not say which call it is. `subagent` is the kind of subagent that makes the call.
    """
    if "\0" in workspace or "\0" in cwd:
        raise BadInput("it would happen in a directory that no system can have")
    given = dict(arguments)
    profile = default_known_agents().find_profile(tool)
    if profile is not None and profile.takes_command and cwd and cwd != workspace:
        given.setdefault("cwd", cwd)
    return Action(
        type="code_edit" if diff else find_action_type(tool),
        tool=tool[:TEXT_MAX],
        arguments=given,
        diff=diff or None,
        description=f"call {tool[: TEXT_MAX // 2]}",
        caller=f"{agent}/{subagent}" if subagent else agent,
        session=session,
        workspace=workspace,
        # The key under which the call is sealed afterwards: it ties the decision to the record of the call.
        call_id=event_key(agent, session, tool_use_id) if tool_use_id else "",
    )


def find_action_type(tool: str) -> str:
    """Return the type of a call that has no diff, by what the tables know of its tool."""
    profile = default_known_agents().find_profile(tool)
    if profile is not None and profile.takes_command:
        return "shell_exec"
    return "file_read" if profile is not None and profile.on_paths == ("read",) else "tool_call"


# --- edits as diffs


def diff_for_edit(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """Return the diff of an edit by a tool that names a file and its new text; None for other tools."""
    path = arguments.get("file_path") or arguments.get("path")
    if not isinstance(path, str) or not path:
        return None
    name = normalise_name(tool)
    if name in ("edit", "multiedit", "strreplace"):
        edits = arguments.get("edits") if name == "multiedit" else [arguments]
        if isinstance(edits, list) and any(isinstance(edit, dict) and edit.get("replace_all") for edit in edits):
            return _diff_for_all_hits(path, edits, workspace)
        pairs = []
        for edit in edits if isinstance(edits, list) else []:
            old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
            if not isinstance(old, str) or not isinstance(new, str):
                return None  # A diff of some of the edits would hide the others from the gate.
            pairs.append((old, new))
        return diff_for_replacement(path, pairs, workspace) if pairs else None
    content = arguments.get("content", arguments.get("contents"))
    if name in ("write", "writetofile") and isinstance(content, str):
        return diff_for_write(path, content, workspace)
    return None


def _diff_for_all_hits(path: str, edits: list[Any], workspace: str) -> str | None:
    """Return the diff of edits of which one replaces every hit; None if Aver cannot tell how often it hits."""
    before = _read_current(path, workspace)
    if not isinstance(before, str):
        return None
    text = before
    for edit in edits:
        old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str) or not old:
            return None
        hits = text.count(old) if edit.get("replace_all") else min(text.count(old), 1)
        # Without a hit the editor fails, or it finds another spelling of the text.
        if not hits or len(text) + hits * len(new) > REPLACED_MAX:
            return None
        text = text.replace(old, new, hits)
    return unified_diff(_workspace_path(path, workspace), before, text)


def diff_for_replacement(path: str, pairs: Iterable[tuple[str, str]], workspace: str) -> str:
    """Return the diff of texts that are replaced in a file. Their lines are not known: every hunk begins at line 1."""
    shown = _workspace_path(path, workspace)
    header, hunks = "", list[str]()
    for old, new in pairs:
        # Each diff begins with the same two lines of file names; one diff has them once.
        lines = unified_diff(shown, old, new).split("\n")
        header = "\n".join(lines[:2])
        hunks.append("\n".join(lines[2:]))
    return f"{header}\n{''.join(hunks)}" if "".join(hunks) else ""


def diff_for_write(path: str, content: str, workspace: str) -> str | None:
    """Return the diff of a file that is written whole; None if there is a file that Aver cannot compare with."""
    before = _read_current(path, workspace)
    # A file that Aver must not read is shown by its new lines alone. Without any, nothing would tell that it changes.
    if before is UNCOMPARABLE or (before is UNREAD and not content):
        return None
    return unified_diff(_workspace_path(path, workspace), before if isinstance(before, str) else None, content)


def diff_for_replace_or_create(path: str, old: str | None, new: str, workspace: str) -> str | None:
    """Return the diff by an editor that replaces a text in a file, or makes the file where there is none."""
    if old is None or _read_current(path, workspace) in (None, UNREAD):
        return diff_for_write(path, new, workspace)
    return diff_for_replacement(path, [(old, new)], workspace)


def diff_for_insertion(path: str, line: int, added: str, workspace: str) -> str:
    """Return the diff of lines that are inserted before a line of a file."""
    return diff_from_insertion(_workspace_path(path, workspace), line, added)


def _workspace_path(path: str, workspace: str) -> str:
    """The path relative to the workspace. A diff has only such: one that lies elsewhere begins with `..`."""
    if not os.path.isabs(path) or not os.path.isabs(workspace):
        return path
    if path.startswith(workspace.rstrip("/") + "/"):
        return path[len(workspace.rstrip("/")) + 1 :]
    return os.path.relpath(path, workspace)


class _UncomparableFile:
    """Stands for the text of a file that Aver cannot read, or must not."""


UNCOMPARABLE = _UncomparableFile()
"""The file is there, and it is too large or no regular file."""

UNREAD = _UncomparableFile()
"""Aver does not look: the file is guarded, or not known to lie in the workspace. It may be there or not."""


def _read_current(path: str, workspace: str) -> str | _UncomparableFile | None:
    """The text of a file of the workspace now; None where there is none."""
    if not os.path.isabs(workspace):
        return UNREAD
    try:
        root = os.path.realpath(workspace)
        real = os.path.realpath(os.path.join(root, path))
        # Judge the real path: a link in the workspace may lead to a guarded file, or out of the workspace.
        place = locate_path(real, None, build_path_roots(root, {}))
        if place.where != "workspace" or place.classes:
            return UNREAD
        file = open_regular(real, follow=False)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # There is none, or no system has one of this name.
        return None
    except OSError:
        return UNCOMPARABLE
    with file:
        raw = file.read(BEFORE_MAX + 1)  # One byte more shows that the file is too large.
    return UNCOMPARABLE if len(raw) > BEFORE_MAX else raw.decode("utf-8", "replace")
