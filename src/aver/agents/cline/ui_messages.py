"""Calls as Cline shows them to the user: the tool, its arguments and the shown part of its result.

    {"ts": 1780218003000, "type": "ask", "ask": "command", "text": "pytest -q", "conversationHistoryIndex": 2}
    {"ts": 1780218004000, "type": "say", "say": "command_output", "text": "3 passed in 0.02s"}

`say` means that Cline did not ask the user, `ask` that it did. `text` depends on the kind:

    tool              {"tool": "editedExistingFile", "path": …, "content": "------- SEARCH …"}
    command           the command; then messages command_output
    use_mcp_server    {"serverName", "type", "toolName", "arguments"}; then mcp_server_response
    browser_action    the address, or {"action", "coordinate", "text"}; then browser_action_result
    use_subagents     {"prompts"}; then messages subagent, with their progress
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aver.agents.cline.api_calls import ApiCall, CallQuery
from aver.diffs import format_line_counts, unified_diff
from aver.fast_dataclass import dataclass
from aver.ingest.attachments import replace_images
from aver.ingest.foreign_json import first_text, parse_embedded_json
from aver.ingest.patches import diff_from_blocks, parse_blocks, read_patch
from aver.text import plural, summary_line

OUTPUT_MESSAGES = {
    "command_output": "command",
    "command_permission_denied": "command",
    "mcp_server_response": "use_mcp_server",
    "browser_action_result": "browser_action",
    "subagent": "use_subagents",
}
"""Messages with the result of a call, and the kind of that call."""

_EDIT_TOOLS = (
    "replace_in_file",
    "write_to_file",
    "apply_patch",
    "apply_diff",
    "edit_file",
    "insert_content",
    "new_rule",
)
_TOOLS_BY_SHOWN_NAME = {
    "editedExistingFile": _EDIT_TOOLS,
    "newFileCreated": _EDIT_TOOLS,
    "fileDeleted": ("delete_file", "apply_patch"),
    "readFile": ("read_file",),
    "listFilesTopLevel": ("list_files",),
    "listFilesRecursive": ("list_files",),
    "listCodeDefinitionNames": ("list_code_definition_names",),
    "searchFiles": ("search_files",),
    "webFetch": ("web_fetch",),
    "webSearch": ("web_search",),
    "useSkill": ("use_skill",),
}
_COMMAND_TOOLS = ("execute_command", "run_commands", "bash")
_NEEDS_APPROVAL = "REQ_APP"
"""Cline adds this word to a command that needs approval, although it approves other commands itself."""

LINE_MAX = 200
"""The most characters of an argument in a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call as Cline showed it."""

    kind: str
    """`tool`, `command`, `use_mcp_server`, `browser_action` or `use_subagents`."""
    name: str
    """The name that Cline shows: `editedExistingFile`, `command`."""
    arguments: Mapping[str, Any]
    match: CallQuery


def read_shown_call(message: Mapping[str, Any], kind: str) -> ShownCall | None:
    """Return the call that a message shows; None if it shows none."""
    index = message.get("conversationHistoryIndex")
    at = index if isinstance(index, int) and not isinstance(index, bool) else None
    text = message.get("text")
    text = text if isinstance(text, str) else ""
    fields = parse_embedded_json(text)
    fields = fields if isinstance(fields, dict) else {}
    if kind == "tool":
        name = str(fields.get("tool") or "tool")
        if name == "summarizeTask":
            return None  # Cline's own call, which shortens the conversation.
        names = _TOOLS_BY_SHOWN_NAME.get(name, (name, re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()))
        keys = ("path", "regex", "url", "query")
        same = {key: value for key in keys if isinstance(value := fields.get(key), str)}
        if name in ("webFetch", "webSearch"):
            same.pop("path", None)  # There it holds the address.
        content = fields.get("diff") or fields.get("content")
        match = CallQuery(
            names=frozenset(names), arguments=same, content=content if isinstance(content, str) else "", history=at
        )
        return ShownCall(kind="tool", name=name, arguments=fields, match=match)
    if kind == "command":
        # The history has the command without the mark.
        command = text.rstrip().removesuffix(_NEEDS_APPROVAL).rstrip()
        match = CallQuery(names=frozenset(_COMMAND_TOOLS), arguments={"command": command}, history=at)
        return ShownCall(kind="command", name="command", arguments={"command": command}, match=match)
    if kind == "use_mcp_server":
        shown_keys = {"server_name": "serverName", "tool_name": "toolName", "arguments": "arguments", "uri": "uri"}
        same = {key: value for key, name in shown_keys.items() if isinstance(value := fields.get(name), str)}
        mcp_arguments = (
            {**fields, "arguments": parse_embedded_json(fields.get("arguments"))} if "arguments" in fields else fields
        )
        match = CallQuery(names=frozenset({"use_mcp_tool", "access_mcp_resource"}), arguments=same, history=at)
        return ShownCall(kind="use_mcp_server", name="use_mcp_server", arguments=mcp_arguments, match=match)
    if kind in ("browser_action", "browser_action_launch"):
        arguments = fields if kind == "browser_action" else {"action": "launch", "url": text}
        named = {name: str(arguments[name]) for name in ("action", "coordinate", "url") if arguments.get(name)}
        match = CallQuery(names=frozenset({"browser_action"}), arguments=named, history=at)
        return ShownCall(kind="browser_action", name="browser_action", arguments=arguments, match=match)
    if kind == "use_subagents":
        match = CallQuery(names=frozenset({"use_subagents", "new_subagent"}), arguments={}, history=at)
        return ShownCall(kind=kind, name=kind, arguments=fields, match=match)
    return None


def read_shown_result(kind: str, outputs: list[Any]) -> Any:
    """Return the part of the result that Cline showed."""
    if kind == "command":
        return "\n".join(text for text in outputs if isinstance(text, str) and text)
    values = [replace_images(parse_embedded_json(text)) for text in outputs if text not in (None, "")]
    if kind == "use_subagents":
        return values[-1] if values else None
    return values[0] if len(values) == 1 else values or None


def build_diff(shown: ShownCall | None, call: ApiCall | None) -> str | None:
    """Return the unified diff of an edit, from the shown arguments or else from the model's; None for other calls."""
    arguments: Mapping[str, Any] = shown.arguments if shown else {}
    asked: Mapping[str, Any] = call.arguments if call else {}
    name = shown.name if shown else ""
    if name not in ("editedExistingFile", "newFileCreated") and (call is None or call.name not in _EDIT_TOOLS or name):
        return None
    path = first_text(arguments, "path") or first_text(asked, "path", "absolutePath", "file_path")
    # Newer versions show the line of each block in the file.
    starts = arguments.get("startLineNumbers")
    for text in (
        first_text(arguments, "diff"),
        first_text(arguments, "content"),
        first_text(asked, "diff", "input"),
    ):
        if parse_blocks(text):
            return diff_from_blocks(path, text, starts if isinstance(starts, list) else ())
        if patch := read_patch(text):
            return patch.diff
        if "@@ -" in text:
            named = text if text.startswith("--- ") else f"--- a/{path}\n+++ b/{path}\n{text}"
            return named if named.endswith("\n") else f"{named}\n"
    whole = first_text(arguments, "content") or first_text(asked, "content")
    return unified_diff(path, None if name == "newFileCreated" else "", whole) if whole else None


def list_effects(shown: ShownCall | None, call: ApiCall | None) -> Iterator[str]:
    """Yield the effects of a call that was carried out."""
    arguments = {**(call.arguments if call else {}), **(shown.arguments if shown else {})}
    name, asked = shown.name if shown else "", call.name if call else ""
    path = first_text(arguments, "path", "absolutePath", "file_path")
    patch = read_patch(first_text(arguments, "input")) if asked == "apply_patch" else None
    if name == "command" or asked in _COMMAND_TOOLS:
        yield f"ran {_one_line(first_text(arguments, 'command'))}"
    elif name == "fileDeleted" or asked == "delete_file":
        yield f"deleted {path}"
    elif name == "newFileCreated":
        yield f"wrote {path}"
    elif name == "editedExistingFile":
        yield f"edited {path}"
    elif patch is not None:
        yield from (f"{what} {where}" for what, where in patch.changes)
    elif asked in _EDIT_TOOLS and path:
        yield f"{'wrote' if asked in ('write_to_file', 'new_rule') else 'edited'} {path}"
    elif name == "use_subagents" or asked == "use_subagents":
        prompts = arguments.get("prompts")
        count = len(prompts) if isinstance(prompts, list) else 1
        yield f"delegated to {count} subagent{'s' if count != 1 else ''}"


def build_summary(shown: ShownCall | None, call: ApiCall | None, diff: str | None, result: Any) -> str:
    arguments = {**(call.arguments if call else {}), **(shown.arguments if shown else {})}
    name = call.name if call else shown.name if shown else "call"
    if first_text(arguments, "serverName", "server_name"):
        server = first_text(arguments, "serverName", "server_name")
        subject = f"{server} {first_text(arguments, 'toolName', 'tool_name', 'uri')}"
    else:
        keys = ("command", "regex", "url", "query", "path", "absolutePath", "file_path", "action")
        subject = first_text(arguments, *keys)
    line = f"{name}: {_one_line(subject)}" if subject else name
    if diff is not None:
        return f"{line} {format_line_counts(diff)}"
    if name in ("read_file", "readFile") and isinstance(result, str):
        return f"{line} ({plural(len(result.splitlines()), 'line')})"
    return line + _summarize_subagents(result) if shown and shown.kind == "use_subagents" else line


def _summarize_subagents(status: Any) -> str:
    """Summarize the work of subagents: `[subagents: 2 of 2, 9 tool calls]`."""
    if not isinstance(status, Mapping):
        return ""
    counts = [status.get(name) for name in ("successes", "total", "toolCalls")]
    if not all(isinstance(count, int) for count in counts):
        return ""
    return f" [subagents: {counts[0]} of {counts[1]}, {counts[2]} tool calls]"


def _one_line(text: str) -> str:
    return summary_line(text, LINE_MAX)
