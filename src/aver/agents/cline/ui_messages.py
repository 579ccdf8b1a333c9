"""What a person was shown of a call in Cline: which tool, on what, and what was shown of its result.

say|ask tool              {"tool": "editedExistingFile", "path": …, "content": "------- SEARCH …"}
say|ask command           the command; then command_output
say|ask use_mcp_server    {"serverName", "type", "toolName", "arguments"}; then mcp_server_response
say|ask browser_action…   the address, or {"action", "coordinate", "text"}; then browser_action_result
say|ask use_subagents     {"prompts"}; then subagent, with how far they are
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aver.agents.cline.api_calls import ApiCall, CallQuery
from aver.fast_dataclass import dataclass
from aver.ingest.attachments import replace_images
from aver.ingest.diffs import format_line_counts, unified_diff
from aver.ingest.foreign_json import parse_embedded_json
from aver.ingest.patches import diff_from_blocks, parse_blocks, read_patch
from aver.text import plural, summary_line

OUTPUT_MESSAGES = {
    "command_output": "command",
    "command_permission_denied": "command",
    "mcp_server_response": "use_mcp_server",
    "browser_action_result": "browser_action",
    "subagent": "use_subagents",
}
"""Messages that show what came of a call, and of which sort of call."""

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
"""What Cline writes behind a command that it asks for although others are allowed."""

LINE_MAX = 200
"""Characters of an argument that stand in a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call as it was shown."""

    sort: str
    """`tool`, `command`, `use_mcp_server`, `browser_action` or `use_subagents`."""
    name: str
    """As Cline shows it: `editedExistingFile`, `command`."""
    arguments: Mapping[str, Any]
    match: CallQuery


def read_shown_call(message: Mapping[str, Any], sort: str) -> ShownCall | None:
    """The call that a message shows; None where it shows none."""
    index = message.get("conversationHistoryIndex")
    at = index if isinstance(index, int) and not isinstance(index, bool) else None
    text = message.get("text")
    text = text if isinstance(text, str) else ""
    told = parse_embedded_json(text)
    told = told if isinstance(told, dict) else {}
    if sort == "tool":
        name = str(told.get("tool") or "tool")
        if name == "summarizeTask":
            return None  # Cline's own: it makes room in the conversation.
        names = _TOOLS_BY_SHOWN_NAME.get(name, (name, re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()))
        keys = ("path", "regex", "url", "query")
        same = {key: value for key in keys if isinstance(value := told.get(key), str)}
        if name in ("webFetch", "webSearch"):
            same.pop("path", None)  # There it holds the address.
        content = told.get("diff") or told.get("content")
        match = CallQuery(
            names=frozenset(names), arguments=same, content=content if isinstance(content, str) else "", history=at
        )
        return ShownCall(sort="tool", name=name, arguments=told, match=match)
    if sort == "command":
        command = text.rstrip().removesuffix(_NEEDS_APPROVAL).rstrip()
        command_match = CallQuery(names=frozenset(_COMMAND_TOOLS), arguments={"command": command}, history=at)
        return ShownCall(sort="command", name="command", arguments={"command": command}, match=command_match)
    if sort == "use_mcp_server":
        shown_keys = {"server_name": "serverName", "tool_name": "toolName", "arguments": "arguments", "uri": "uri"}
        same = {key: value for key, name in shown_keys.items() if isinstance(value := told.get(name), str)}
        mcp_arguments = (
            {**told, "arguments": parse_embedded_json(told.get("arguments"))} if "arguments" in told else told
        )
        mcp_match = CallQuery(names=frozenset({"use_mcp_tool", "access_mcp_resource"}), arguments=same, history=at)
        return ShownCall(sort="use_mcp_server", name="use_mcp_server", arguments=mcp_arguments, match=mcp_match)
    if sort in ("browser_action", "browser_action_launch"):
        arguments = told if sort == "browser_action" else {"action": "launch", "url": text}
        named = {name: str(arguments[name]) for name in ("action", "coordinate", "url") if arguments.get(name)}
        match = CallQuery(names=frozenset({"browser_action"}), arguments=named, history=at)
        return ShownCall(sort="browser_action", name="browser_action", arguments=arguments, match=match)
    if sort == "use_subagents":
        match = CallQuery(names=frozenset({"use_subagents", "new_subagent"}), arguments={}, history=at)
        return ShownCall(sort=sort, name=sort, arguments=told, match=match)
    return None


def read_shown_result(sort: str, outputs: list[Any]) -> Any:
    """What a person was shown of the result."""
    if sort == "command":
        return "\n".join(text for text in outputs if isinstance(text, str) and text)
    values = [replace_images(parse_embedded_json(text)) for text in outputs if text not in (None, "")]
    if sort == "use_subagents":
        return values[-1] if values else None
    return values[0] if len(values) == 1 else values or None


def build_diff(shown: ShownCall | None, call: ApiCall | None) -> str | None:
    """The unified diff of an edit: from what was shown of it, else from what the model asked for."""
    arguments: Mapping[str, Any] = shown.arguments if shown else {}
    asked: Mapping[str, Any] = call.arguments if call else {}
    name = shown.name if shown else ""
    if name not in ("editedExistingFile", "newFileCreated") and (call is None or call.name not in _EDIT_TOOLS or name):
        return None
    path = _first_string(arguments, "path") or _first_string(asked, "path", "absolutePath", "file_path")
    starts = arguments.get("startLineNumbers")
    for text in (
        _first_string(arguments, "diff"),
        _first_string(arguments, "content"),
        _first_string(asked, "diff", "input"),
    ):
        if parse_blocks(text):
            return diff_from_blocks(path, text, starts if isinstance(starts, list) else ())
        if patch := read_patch(text):
            return patch.diff
        if "@@ -" in text:
            named = text if text.startswith("--- ") else f"--- a/{path}\n+++ b/{path}\n{text}"
            return named if named.endswith("\n") else f"{named}\n"
    whole = _first_string(arguments, "content") or _first_string(asked, "content")
    return unified_diff(path, None if name == "newFileCreated" else "", whole) if whole else None


def list_effects(shown: ShownCall | None, call: ApiCall | None) -> Iterator[str]:
    """What a call did, once it is known that it was done."""
    arguments = {**(call.arguments if call else {}), **(shown.arguments if shown else {})}
    name, asked = shown.name if shown else "", call.name if call else ""
    path = _first_string(arguments, "path", "absolutePath", "file_path")
    patch = read_patch(_first_string(arguments, "input")) if asked == "apply_patch" else None
    if name == "command" or asked in _COMMAND_TOOLS:
        yield f"ran {_one_line(_first_string(arguments, 'command'))}"
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
    if _first_string(arguments, "serverName", "server_name"):
        server = _first_string(arguments, "serverName", "server_name")
        subject = f"{server} {_first_string(arguments, 'toolName', 'tool_name', 'uri')}"
    else:
        keys = ("command", "regex", "url", "query", "path", "absolutePath", "file_path", "action")
        subject = next((_first_string(arguments, key) for key in keys if _first_string(arguments, key)), "")
    told = f"{name}: {_one_line(subject)}" if subject else name
    if diff is not None:
        return f"{told} {format_line_counts(diff)}"
    if name in ("read_file", "readFile") and isinstance(result, str):
        return f"{told} ({plural(len(result.splitlines()), 'line')})"
    return told + _summarize_subagents(result) if shown and shown.sort == "use_subagents" else told


def _summarize_subagents(status: Any) -> str:
    """How subagents did: `[subagents: 2 of 2, 9 tool calls]`."""
    if not isinstance(status, Mapping):
        return ""
    counts = [status.get(name) for name in ("successes", "total", "toolCalls")]
    if not all(isinstance(count, int) for count in counts):
        return ""
    return f" [subagents: {counts[0]} of {counts[1]}, {counts[2]} tool calls]"


def _first_string(values: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := values.get(name), str) and value), "")


def _one_line(text: str) -> str:
    return summary_line(text, LINE_MAX, window=2 * LINE_MAX)
