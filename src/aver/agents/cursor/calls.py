"""What Cursor's tools did to files: the unified diff of a call, from whatever its version of Cursor keeps.

In this order: a patch as models of the Codex family write it; a diff that stands in the result or the arguments, whole
or in chunks; the file before and after, which newer versions keep under names of their own; old and new strings; the
contents of a file that was written.

What came of a tool call of Cursor's: whether it ended, worked or was refused, and what it did.

A call carries a status of its own, one of the command that it ran, and an exit code; any of them can tell that it
failed. Results are JSON in a string, and differ from tool to tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.ingest.contract import Permission
from aver.ingest.diffs import diff_from_hunks, format_line_counts, unified_diff
from aver.ingest.patches import Patch, read_patch
from aver.text import plural, summary_line

CONTENT_PREFIX = "composer.content."
"""How the keys begin under which newer versions keep files before and after an edit."""

EDIT_TOOLS = frozenset(
    {
        *("edit_file", "edit_file_v2", "edit", "search_replace", "strreplace", "multiedit", "multi_edit", "reapply"),
        *("write", "write_file", "create_file", "apply_patch", "edit_notebook", "notebook_edit"),
    }
)
PATH_KEYS = (
    *("relativeWorkspacePath", "relative_workspace_path", "target_file", "targetFile", "file_path", "filePath", "path"),
    *("target_notebook", "fileName", "uri", "targetDirectory", "target_directory"),
)
_DIFF_KEYS = ("diff", "patch", "unifiedDiff", "diffString")
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "oldText")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "newText")
_WHOLE_FILE_KEYS = ("contents", "content", "file_text", "streamingContent", "code_edit")
_CREATE_TOOLS = ("create_file",)


def find_path(*where: Any) -> str:
    """The path that a call names; empty where it names none."""
    for values in where:
        for name in PATH_KEYS:
            value = values.get(name) if isinstance(values, Mapping) else None
            if isinstance(value, Mapping):
                value = value.get("fsPath") or value.get("path")
            if isinstance(value, str) and value:
                return value.removeprefix("file://")
    return ""


def find_content_keys(result: Any) -> dict[str, str]:
    """Under which keys the file before and after an edit is kept."""
    if not isinstance(result, Mapping):
        return {}
    named = {"before": result.get("beforeContentId"), "after": result.get("afterContentId")}
    return {when: key for when, key in named.items() if isinstance(key, str) and key.startswith(CONTENT_PREFIX)}


def build_diff(
    name: str, arguments: Mapping[str, Any], result: Any, contents: Mapping[str, str], path: str
) -> str | None:
    """The diff of a call; None where nothing tells what changed. `contents` are the files before and after, as far as
    they are known, by key."""
    ids = find_content_keys(result)
    after = contents.get(ids.get("after", ""))
    if patch := find_patch(arguments):
        return patch.diff
    if told := next(_find_diffs(path, result, arguments), None):
        return told
    if after is not None and ("before" not in ids or ids["before"] in contents):
        return unified_diff(path, contents.get(ids.get("before", "")), after)
    if pairs := list(_list_replacements(arguments)):
        return "".join(unified_diff(path, old, new) for old, new in pairs)
    for key in _WHOLE_FILE_KEYS:
        if isinstance(text := arguments.get(key), str) and text:
            return unified_diff(path, None if name.lower() in _CREATE_TOOLS else "", text)
    return None


def find_patch(arguments: Mapping[str, Any]) -> Patch | None:
    """The patch that a call was given; None where it was given none."""
    texts = (arguments.get(name) for name in ("patch", "input", "raw", "diff"))
    return next((patch for text in texts if isinstance(text, str) and (patch := read_patch(text))), None)


def _find_diffs(path: str, *where: Any) -> Iterator[str]:
    for values in where:
        for name in _DIFF_KEYS:
            told = values.get(name) if isinstance(values, Mapping) else None
            chunks = told.get("chunks") if isinstance(told, Mapping) else None
            if isinstance(chunks, list):
                diff = diff_from_hunks(path, filter(None, map(_hunk_from_chunk, chunks)))
            elif isinstance(told, str):
                # A diff with the names of files and the headers of hunks, whatever the tool left out.
                if "@@ -" in told:
                    named = (
                        told if told.startswith(("--- ", "diff ", "Index: ")) else f"--- a/{path}\n+++ b/{path}\n{told}"
                    )
                    diff = named if named.endswith("\n") else f"{named}\n"
                else:
                    hunk = _hunk_from_chunk({"diffString": told})
                    diff = diff_from_hunks(path, [hunk]) if hunk else ""
            else:
                continue
            if diff:
                yield diff


def _hunk_from_chunk(chunk: Any) -> dict[str, Any] | None:
    """A chunk as a hunk. How many lines it has is counted: what tools say of that does not always fit."""
    text = chunk.get("diffString") if isinstance(chunk, Mapping) else None
    if not isinstance(text, str):
        return None
    lines = [line for line in text.removesuffix("\n").split("\n") if not line.startswith(("--- ", "+++ ", "@@"))]
    lines = [line if line.startswith(("+", "-", " ", "\\")) else f" {line}" for line in lines]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    if not added and not removed:
        return None
    same = sum(line.startswith(" ") for line in lines)
    return {
        "oldStart": _line_number(chunk.get("oldStart")),
        "oldLines": removed + same,
        "newStart": _line_number(chunk.get("newStart")),
        "newLines": added + same,
        "lines": lines,
    }


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else 1


def _list_replacements(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, Mapping):
            old = next((value for name in _OLD_TEXT_KEYS if isinstance(value := edit.get(name), str)), None)
            new = next((value for name in _NEW_TEXT_KEYS if isinstance(value := edit.get(name), str)), None)
            if old is not None and new is not None:
                yield old, new


SUMMARY_ARGUMENT_MAX = 200
"""Characters of an argument that stand in a summary."""

_OPEN_STATUSES = (
    "loading",
    "running",
    "started",
    "pending",
    "streaming",
    "generating",
    "queued",
    "waiting",
    "requested",
)
_DONE_STATUSES = ("completed", "success", "succeeded", "done", "finished")
_FAILED_STATUSES = ("error", "failed", "failure", "cancelled", "canceled", "aborted", "timeout", "timed_out")
_DENIED_STATUSES = ("rejected", "denied", "declined", "skipped")

_COMMAND_TOOLS = ("run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "shell", "terminal")
_DELETE_TOOLS = ("delete_file", "delete")
_SUBAGENT_TOOLS = ("task", "task_v2", "subagent", "spawn_agent")
_WRITE_TOOLS = ("write", "write_file", "create_file")
_SUBJECT_KEYS = ("command", "query", "search_term", "searchTerm", "pattern", "glob_pattern", "globPattern", "url")
_CONTENT_KEYS = ("contents", "content", "fileContents")
_EXIT_CODES = ("exitCodeV2", "exitCode", "exit_code")
_STREAMS = {"output": "stdout", "stdout": "stdout", "stderr": "stderr"}


def call_state(call: Any) -> str:
    """`open`, `ended`, or `unclear` where the version of Cursor has a word of its own for it."""
    status = call.get("status") if isinstance(call, Mapping) else None
    if status in (*_DONE_STATUSES, *_FAILED_STATUSES, *_DENIED_STATUSES):
        return "ended"
    return "open" if status in _OPEN_STATUSES else "unclear"


def is_denied(call: Mapping[str, Any], result: Any) -> bool:
    """Whether a person refused it. In the result of a tool of Cursor's own that is Cursor's word; a server's answer may
    say what it likes."""
    own = str(call.get("name")).lower() in (*_COMMAND_TOOLS, *_DELETE_TOOLS, *EDIT_TOOLS)
    rejected = own and isinstance(result, Mapping) and result.get("rejected") is True
    return (
        rejected
        or "rejected" in (call.get("userDecision"), _additional_value(call, "status"))
        or call.get("status") in _DENIED_STATUSES
    )


def read_success(call: Mapping[str, Any], result: Any) -> tuple[bool | None, str | None]:
    """Whether a call worked, and if not, why; None where that is not known yet."""
    if call_state(call) == "open":
        return None, None
    error = result.get("error") if isinstance(result, Mapping) else None
    code = find_exit_code(result)
    if call.get("status") in _FAILED_STATUSES or _additional_value(call, "status") in _FAILED_STATUSES or error or code:
        return False, _error_message(error) or (f"exit code {code}" if code else None) or _error_message(
            call.get("error")
        ) or _failure_status(call)
    if isinstance(result, Mapping) and result.get("success") is False:
        return False, None
    return (True, None) if call.get("status") in _DONE_STATUSES or result not in (None, "") else (None, None)


def find_exit_code(result: Any) -> int | None:
    codes = (result.get(name) for name in _EXIT_CODES) if isinstance(result, Mapping) else ()
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)


def read_permission(call: Mapping[str, Any], *, denied: bool) -> Permission:
    """`userDecision` is also `accepted` where nobody was asked: it is told, and proves nothing."""
    decision = call.get("userDecision")
    told = f"userDecision={decision}" if isinstance(decision, str) and decision else None
    return Permission(reference="rejected by the user" if denied else told, denied=denied)


def normalize_streams(name: str, result: Any) -> Any:
    """The result of a command by the names that all tools' commands have; what else there is stays as it is."""
    if name.lower() not in _COMMAND_TOOLS or not isinstance(result, Mapping):
        return result
    streams = {_STREAMS[key]: value for key, value in result.items() if key in _STREAMS}
    rest = {key: value for key, value in result.items() if key not in _STREAMS and key not in _EXIT_CODES}
    code = find_exit_code(result)
    return {**streams, **({} if code is None else {"exit_code": code}), **rest}


def list_effects(name: str, arguments: Mapping[str, Any], path: str) -> Iterator[str]:
    tool = name.lower()
    if tool in _COMMAND_TOOLS:
        yield f"ran {_one_line(_string_at(arguments, 'command'))}"
    elif tool in _DELETE_TOOLS and path:
        yield f"deleted {path}"
    elif tool in EDIT_TOOLS and (patch := find_patch(arguments)):
        yield from (f"{what} {where}" for what, where in patch.changes)
    elif tool in EDIT_TOOLS and path:
        yield f"{'wrote' if tool in _WRITE_TOOLS else 'edited'} {path}"
    elif tool in _SUBAGENT_TOOLS:
        yield f"delegated to {_one_line(_agent_type(arguments)) or 'a subagent'}"


def launched_agent_id(name: str, result: Any) -> str:
    """The id of the subagent that a call launched, where its result tells."""
    if name.lower() not in _SUBAGENT_TOOLS or not isinstance(result, Mapping):
        return ""
    return next(
        (_string_at(result, key) for key in ("agentId", "subagentId", "composerId") if _string_at(result, key)), ""
    )


def build_summary(name: str, arguments: Mapping[str, Any], path: str, diff: str | None, result: Any) -> str:
    tool = name.lower()
    subject = path if tool in EDIT_TOOLS or tool in _DELETE_TOOLS else ""
    subject = (
        subject or next((_string_at(arguments, key) for key in _SUBJECT_KEYS if _string_at(arguments, key)), "") or path
    )
    if not subject and tool in _SUBAGENT_TOOLS:
        subject = _agent_type(arguments) or _string_at(arguments, "description")
    told = f"{name}: {_one_line(subject)}" if subject else name
    if diff is not None:
        return f"{told} {format_line_counts(diff)}"
    lines = _count_lines_read(result) if "read" in tool else None
    return told if lines is None else f"{told} ({plural(lines, 'line')})"


def call_provenance(call: Mapping[str, Any]) -> dict[str, Any]:
    """What else is told of a call, for provenance."""
    told = {
        "model_call_id": call.get("modelCallId"),
        "user_decision": call.get("userDecision"),
        "block_reason": _additional_value(call, "blockReason"),
        "command_status": _additional_value(call, "status"),
    }
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def _additional_value(call: Mapping[str, Any], name: str) -> Any:
    more = call.get("additionalData")
    return more.get(name) if isinstance(more, Mapping) else None


def _failure_status(call: Mapping[str, Any]) -> str | None:
    status = call.get("status") if call.get("status") in _FAILED_STATUSES else _additional_value(call, "status")
    return str(status) if status not in (None, "error") else None


def _error_message(error: Any) -> str | None:
    if isinstance(error, Mapping):
        error = next(
            (error.get(name) for name in _ERROR_MESSAGE_KEYS if isinstance(error.get(name), str)), None
        ) or str(error)
    return error if isinstance(error, str) and error else None


_ERROR_MESSAGE_KEYS = ("clientVisibleErrorMessage", "message", "modelVisibleErrorMessage")


def _count_lines_read(result: Any) -> int | None:
    text = next((_string_at(result, key) for key in _CONTENT_KEYS if _string_at(result, key)), None)
    text = result if isinstance(result, str) else text
    return None if text is None else len(text.splitlines())


def _agent_type(arguments: Mapping[str, Any]) -> str:
    keys = ("subagent_type", "subagentType", "agent", "name")
    return next((_string_at(arguments, key) for key in keys if _string_at(arguments, key)), "")


def _string_at(values: Any, name: str) -> str:
    value = values.get(name) if isinstance(values, Mapping) else None
    return value if isinstance(value, str) else ""


def _one_line(text: str) -> str:
    return summary_line(text, SUMMARY_ARGUMENT_MAX, window=2 * SUMMARY_ARGUMENT_MAX)
