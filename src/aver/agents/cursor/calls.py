"""Tool calls of Cursor: whether a call ended, worked or was refused, and which files it changed.

A call has its own status, the status of the command that it ran, and an exit code. Any of them can mean failure:

    {"name": "run_terminal_cmd", "status": "completed", "additionalData": {"status": "error"},
     "result": "{\\"output\\": \\"1 failed\\", \\"exitCode\\": 1}"}

Results are JSON in a string, and each tool and version has its own form. `build_diff` takes the first of these sources:

1. a patch in the format of Codex;
2. a diff in the result or the arguments, whole or in chunks;
3. the file before and after the edit, which newer versions keep under `composer.content.` keys;
4. old and new strings in the arguments;
5. the whole content of the file in the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.diffs import diff_from_hunks, format_line_counts, unified_diff
from aver.ingest.contract import Permission
from aver.ingest.foreign_json import first_text
from aver.ingest.patches import Patch, read_patch
from aver.text import plural, summary_line

CONTENT_PREFIX = "composer.content."
"""The beginning of the keys under which newer versions keep a file before and after an edit."""

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
    """Return the path that a call names; empty if it names none."""
    for values in where:
        for name in PATH_KEYS:
            value = values.get(name) if isinstance(values, Mapping) else None
            if isinstance(value, Mapping):
                value = value.get("fsPath") or value.get("path")
            if isinstance(value, str) and value:
                return value.removeprefix("file://")
    return ""


def find_content_keys(result: Any) -> dict[str, str]:
    """Return the keys of the file before and after an edit."""
    if not isinstance(result, Mapping):
        return {}
    named = {"before": result.get("beforeContentId"), "after": result.get("afterContentId")}
    return {when: key for when, key in named.items() if isinstance(key, str) and key.startswith(CONTENT_PREFIX)}


def build_diff(
    name: str, arguments: Mapping[str, Any], result: Any, contents: Mapping[str, str], path: str
) -> str | None:
    """Return the diff of a call; None if no source has it. `contents` has the known files before and after, by key."""
    ids = find_content_keys(result)
    after = contents.get(ids.get("after", ""))
    if patch := find_patch(arguments):  # 1
        return patch.diff
    if diff := next(_find_diffs(path, result, arguments), None):  # 2
        return diff
    # 3. Without the content before the edit, the whole file would look new.
    if after is not None and ("before" not in ids or ids["before"] in contents):
        return unified_diff(path, contents.get(ids.get("before", "")), after)
    if pairs := list(_list_replacements(arguments)):  # 4
        return "".join(unified_diff(path, old, new) for old, new in pairs)
    for key in _WHOLE_FILE_KEYS:  # 5
        if isinstance(text := arguments.get(key), str) and text:
            return unified_diff(path, None if name.lower() in _CREATE_TOOLS else "", text)
    return None


def find_patch(arguments: Mapping[str, Any]) -> Patch | None:
    """Return the patch in a call's arguments; None if there is none."""
    texts = (arguments.get(name) for name in ("patch", "input", "raw", "diff"))
    return next((patch for text in texts if isinstance(text, str) and (patch := read_patch(text))), None)


def _find_diffs(path: str, *where: Any) -> Iterator[str]:
    for values in where:
        for name in _DIFF_KEYS:
            text = values.get(name) if isinstance(values, Mapping) else None
            chunks = text.get("chunks") if isinstance(text, Mapping) else None
            if isinstance(chunks, list):
                diff = diff_from_hunks(path, filter(None, map(_hunk_from_chunk, chunks)))
            elif isinstance(text, str):
                # Add the file names or the hunk header, if the tool left them out.
                if "@@ -" in text:
                    named = (
                        text if text.startswith(("--- ", "diff ", "Index: ")) else f"--- a/{path}\n+++ b/{path}\n{text}"
                    )
                    diff = named if named.endswith("\n") else f"{named}\n"
                else:
                    hunk = _hunk_from_chunk({"diffString": text})
                    diff = diff_from_hunks(path, [hunk]) if hunk else ""
            else:
                continue
            if diff:
                yield diff


def _hunk_from_chunk(chunk: Any) -> dict[str, Any] | None:
    """Return a chunk as a hunk; None if it changes nothing. It counts the lines: tools' own counts can be wrong."""
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
"""The most characters of an argument in a summary."""

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

COMMAND_TOOLS = ("run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "shell", "terminal")
_DELETE_TOOLS = ("delete_file", "delete")
_SUBAGENT_TOOLS = ("task", "task_v2", "subagent", "spawn_agent")
_WRITE_TOOLS = ("write", "write_file", "create_file")
_SUBJECT_KEYS = ("command", "query", "search_term", "searchTerm", "pattern", "glob_pattern", "globPattern", "url")
_AGENT_TYPE_KEYS = ("subagent_type", "subagentType", "agent", "name")
_CONTENT_KEYS = ("contents", "content", "fileContents")
_EXIT_CODES = ("exitCodeV2", "exitCode", "exit_code")
_STREAMS = {"output": "stdout", "stdout": "stdout", "stderr": "stderr"}


def call_state(call: Any) -> str:
    """Return `open`, `ended`, or `unclear` if Aver does not know the status."""
    status = call.get("status") if isinstance(call, Mapping) else None
    if status in (*_DONE_STATUSES, *_FAILED_STATUSES, *_DENIED_STATUSES):
        return "ended"
    return "open" if status in _OPEN_STATUSES else "unclear"


def is_denied(call: Mapping[str, Any], result: Any) -> bool:
    """Return whether a person refused the call."""
    # The result of a built-in tool is Cursor's. An MCP server writes its own, so `rejected` there proves nothing.
    own = _writes_result_itself(call.get("name"))
    # A result that has an exit code or output belongs to a call that ran.
    rejected = own and isinstance(result, Mapping) and result.get("rejected") is True and not _shows_a_run(result)
    return (
        rejected
        or "rejected" in (call.get("userDecision"), _additional_value(call, "status"))
        or call.get("status") in _DENIED_STATUSES
    )


def read_success(call: Mapping[str, Any], result: Any) -> tuple[bool | None, str | None]:
    """Return whether a call worked, and the error; None if that is not known yet."""
    if call_state(call) == "open":
        return None, None
    # A server's answer, or the content of a file that is JSON, may have the same members. Only Cursor's own count.
    own = result if isinstance(result, Mapping) and _writes_result_itself(call.get("name")) else None
    error = None if own is None else own.get("error")
    code = find_exit_code(own)
    statuses = [call.get("status"), _additional_value(call, "status")]
    failed = [status for status in statuses if status in _FAILED_STATUSES]
    if failed or error or code:
        # The most telling reason: the result's error, the exit code, the call's error, the status.
        word = failed[0] if failed else statuses[1]
        status = str(word) if word not in (None, "error") else None
        code_message = f"exit code {code}" if code else None
        return False, _error_message(error) or code_message or _error_message(call.get("error")) or status
    if own is not None and own.get("success") is False:
        return False, None
    return (True, None) if call.get("status") in _DONE_STATUSES or result not in (None, "") else (None, None)


def _writes_result_itself(name: Any) -> bool:
    """Return whether Cursor makes the result of this tool: it has members of its own, and foreign text inside them."""
    return str(name).lower() in (*COMMAND_TOOLS, *_DELETE_TOOLS, *EDIT_TOOLS)


def _shows_a_run(result: Mapping[str, Any]) -> bool:
    return find_exit_code(result) is not None or any(result.get(name) for name in _STREAMS)


def find_exit_code(result: Any) -> int | None:
    codes = (result.get(name) for name in _EXIT_CODES) if isinstance(result, Mapping) else ()
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)


def read_permission(call: Mapping[str, Any], *, denied: bool) -> Permission:
    """Return who allowed or refused a call."""
    # `userDecision` is `accepted` even if Cursor asked nobody. So it is kept as a reference, and is no approval.
    decision = call.get("userDecision")
    text = f"userDecision={decision}" if isinstance(decision, str) and decision else None
    return Permission(reference="rejected by the user" if denied else text, denied=denied)


def normalize_streams(name: str, result: Any) -> Any:
    """Return a command's result with the names `stdout`, `stderr` and `exit_code`; other fields stay as they are."""
    if name.lower() not in COMMAND_TOOLS or not isinstance(result, Mapping):
        return result
    streams = {_STREAMS[key]: value for key, value in result.items() if key in _STREAMS}
    rest = {key: value for key, value in result.items() if key not in _STREAMS and key not in _EXIT_CODES}
    code = find_exit_code(result)
    return {**streams, **({} if code is None else {"exit_code": code}), **rest}


def list_effects(name: str, arguments: Mapping[str, Any], path: str) -> Iterator[str]:
    tool = name.lower()
    if tool in COMMAND_TOOLS:
        yield f"ran {_one_line(first_text(arguments, 'command'))}"
    elif tool in _DELETE_TOOLS and path:
        yield f"deleted {path}"
    elif tool in EDIT_TOOLS and (patch := find_patch(arguments)):
        yield from (f"{what} {where}" for what, where in patch.changes)
    elif tool in EDIT_TOOLS and path:
        yield f"{'wrote' if tool in _WRITE_TOOLS else 'edited'} {path}"
    elif tool in _SUBAGENT_TOOLS:
        yield f"delegated to {_one_line(first_text(arguments, *_AGENT_TYPE_KEYS)) or 'a subagent'}"


def launched_agent_id(name: str, result: Any) -> str:
    """Return the id of the subagent that a call launched; empty if its result has none."""
    if name.lower() not in _SUBAGENT_TOOLS or not isinstance(result, Mapping):
        return ""
    return first_text(result, "agentId", "subagentId", "composerId")


def build_summary(name: str, arguments: Mapping[str, Any], path: str, diff: str | None, result: Any) -> str:
    tool = name.lower()
    subject = path if tool in EDIT_TOOLS or tool in _DELETE_TOOLS else ""
    subject = subject or first_text(arguments, *_SUBJECT_KEYS) or path
    if not subject and tool in _SUBAGENT_TOOLS:
        subject = first_text(arguments, *_AGENT_TYPE_KEYS, "description")
    text = f"{name}: {_one_line(subject)}" if subject else name
    if diff is not None:
        return f"{text} {format_line_counts(diff)}"
    content = result if isinstance(result, str) else first_text(result, *_CONTENT_KEYS) or None
    if "read" not in tool or content is None:
        return text
    return f"{text} ({plural(len(content.splitlines()), 'line')})"


def call_provenance(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return further facts about a call, for the event's environment."""
    fields = {
        "model_call_id": call.get("modelCallId"),
        "user_decision": call.get("userDecision"),
        "block_reason": _additional_value(call, "blockReason"),
        "command_status": _additional_value(call, "status"),
    }
    return {name: value for name, value in fields.items() if isinstance(value, str) and value}


def _additional_value(call: Mapping[str, Any], name: str) -> Any:
    more = call.get("additionalData")
    return more.get(name) if isinstance(more, Mapping) else None


def _error_message(error: Any) -> str | None:
    if isinstance(error, Mapping):
        error = next((error[name] for name in _ERROR_MESSAGE_KEYS if isinstance(error.get(name), str)), "") or str(
            error
        )
    return error if isinstance(error, str) and error else None


_ERROR_MESSAGE_KEYS = ("clientVisibleErrorMessage", "message", "modelVisibleErrorMessage")


def _one_line(text: str) -> str:
    return summary_line(text, SUMMARY_ARGUMENT_MAX)
