"""What came of a tool call of Cursor's: whether it ended, worked or was refused, and what it did.

A call carries a status of its own, one of the command that it ran, and an exit code; any of them can tell that it
failed. Results are JSON in a string, and differ from tool to tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.agents.cursor.edits import EDIT_TOOLS, find_patch
from aver.ingest.agent_event import Permission
from aver.ingest.diffs import format_line_counts
from aver.text import plural, summary_line

__all__ = [
    "build_summary",
    "call_provenance",
    "call_state",
    "is_denied",
    "launched_agent_id",
    "list_effects",
    "normalize_streams",
    "read_permission",
    "read_success",
]

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
