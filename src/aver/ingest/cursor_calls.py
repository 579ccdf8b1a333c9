"""What came of a tool call of Cursor's: whether it ended, worked or was refused, and what it did.

A call carries a status of its own, one of the command that it ran, and an exit code; any of them can tell that it
failed. Results are JSON in a string, and differ from tool to tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.ingest.cursor_edits import EDITS, patch_in
from aver.ingest.deed import Allowed, counted
from aver.ingest.diffs import tally

__all__ = ["about", "allowed", "as_streams", "effects", "launched", "state_of", "summary", "was_denied", "worth"]

SUMMARY_ARGUMENT = 200
"""Characters of an argument that stand in a summary."""

_OPEN = ("loading", "running", "started", "pending", "streaming", "generating", "queued", "waiting", "requested")
_DONE = ("completed", "success", "succeeded", "done", "finished")
_FAILED = ("error", "failed", "failure", "cancelled", "canceled", "aborted", "timeout", "timed_out")
_DENIED = ("rejected", "denied", "declined", "skipped")

_COMMANDS = ("run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "shell", "terminal")
_DELETES = ("delete_file", "delete")
_DELEGATES = ("task", "task_v2", "subagent", "spawn_agent")
_WRITES = ("write", "write_file", "create_file")
_NAMED_BY = ("command", "query", "search_term", "searchTerm", "pattern", "glob_pattern", "globPattern", "url")
_READ = ("contents", "content", "fileContents")
_EXIT_CODES = ("exitCodeV2", "exitCode", "exit_code")
_STREAMS = {"output": "stdout", "stdout": "stdout", "stderr": "stderr"}


def state_of(call: Any) -> str:
    """`open`, `ended`, or `unclear` where the version of Cursor has a word of its own for it."""
    status = call.get("status") if isinstance(call, Mapping) else None
    if status in (*_DONE, *_FAILED, *_DENIED):
        return "ended"
    return "open" if status in _OPEN else "unclear"


def was_denied(call: Mapping[str, Any], result: Any) -> bool:
    """Whether a person refused it. In the result of a tool of Cursor's own that is Cursor's word; a server's answer may
    say what it likes."""
    own = str(call.get("name")).lower() in (*_COMMANDS, *_DELETES, *EDITS)
    rejected = own and isinstance(result, Mapping) and result.get("rejected") is True
    return rejected or "rejected" in (call.get("userDecision"), _more(call, "status")) or call.get("status") in _DENIED


def worth(call: Mapping[str, Any], result: Any) -> tuple[bool | None, str | None]:
    """Whether a call worked, and if not, why; None where that is not known yet."""
    if state_of(call) == "open":
        return None, None
    error = result.get("error") if isinstance(result, Mapping) else None
    code = exit_code(result)
    if call.get("status") in _FAILED or _more(call, "status") in _FAILED or error or code:
        return False, _words(error) or (f"exit code {code}" if code else None) or _words(call.get("error")) or _why(
            call
        )
    if isinstance(result, Mapping) and result.get("success") is False:
        return False, None
    return (True, None) if call.get("status") in _DONE or result not in (None, "") else (None, None)


def exit_code(result: Any) -> int | None:
    codes = (result.get(name) for name in _EXIT_CODES) if isinstance(result, Mapping) else ()
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)


def allowed(call: Mapping[str, Any], *, denied: bool) -> Allowed:
    """`userDecision` is also `accepted` where nobody was asked: it is told, and proves nothing."""
    decision = call.get("userDecision")
    told = f"userDecision={decision}" if isinstance(decision, str) and decision else None
    return Allowed(reference="rejected by the user" if denied else told, denied=denied)


def as_streams(name: str, result: Any) -> Any:
    """The result of a command by the names that all tools' commands have; what else there is stays as it is."""
    if name.lower() not in _COMMANDS or not isinstance(result, Mapping):
        return result
    streams = {_STREAMS[key]: value for key, value in result.items() if key in _STREAMS}
    rest = {key: value for key, value in result.items() if key not in _STREAMS and key not in _EXIT_CODES}
    code = exit_code(result)
    return {**streams, **({} if code is None else {"exit_code": code}), **rest}


def effects(name: str, arguments: Mapping[str, Any], path: str) -> Iterator[str]:
    tool = name.lower()
    if tool in _COMMANDS:
        yield f"ran {_line(_text_of(arguments, 'command'))}"
    elif tool in _DELETES and path:
        yield f"deleted {path}"
    elif tool in EDITS and (patch := patch_in(arguments)):
        yield from (f"{what} {where}" for what, where in patch.changes)
    elif tool in EDITS and path:
        yield f"{'wrote' if tool in _WRITES else 'edited'} {path}"
    elif tool in _DELEGATES:
        yield f"delegated to {_line(_kind_of_agent(arguments)) or 'a subagent'}"


def launched(name: str, result: Any) -> str:
    """The id of the subagent that a call launched, where its result tells."""
    if name.lower() not in _DELEGATES or not isinstance(result, Mapping):
        return ""
    return next((_text_of(result, key) for key in ("agentId", "subagentId", "composerId") if _text_of(result, key)), "")


def summary(name: str, arguments: Mapping[str, Any], path: str, diff: str | None, result: Any) -> str:
    tool = name.lower()
    subject = path if tool in EDITS or tool in _DELETES else ""
    subject = subject or next((_text_of(arguments, key) for key in _NAMED_BY if _text_of(arguments, key)), "") or path
    if not subject and tool in _DELEGATES:
        subject = _kind_of_agent(arguments) or _text_of(arguments, "description")
    told = f"{name}: {_line(subject)}" if subject else name
    if diff is not None:
        return f"{told} {tally(diff)}"
    lines = _lines_read(result) if "read" in tool else None
    return told if lines is None else f"{told} ({counted(lines, 'line')})"


def about(call: Mapping[str, Any]) -> dict[str, Any]:
    """What else is told of a call, for provenance."""
    told = {
        "model_call_id": call.get("modelCallId"),
        "user_decision": call.get("userDecision"),
        "block_reason": _more(call, "blockReason"),
        "command_status": _more(call, "status"),
    }
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def _more(call: Mapping[str, Any], name: str) -> Any:
    more = call.get("additionalData")
    return more.get(name) if isinstance(more, Mapping) else None


def _why(call: Mapping[str, Any]) -> str | None:
    status = call.get("status") if call.get("status") in _FAILED else _more(call, "status")
    return str(status) if status not in (None, "error") else None


def _words(error: Any) -> str | None:
    if isinstance(error, Mapping):
        error = next((error.get(name) for name in _MESSAGES if isinstance(error.get(name), str)), None) or str(error)
    return error if isinstance(error, str) and error else None


_MESSAGES = ("clientVisibleErrorMessage", "message", "modelVisibleErrorMessage")


def _lines_read(result: Any) -> int | None:
    text = next((_text_of(result, key) for key in _READ if _text_of(result, key)), None)
    text = result if isinstance(result, str) else text
    return None if text is None else len(text.splitlines())


def _kind_of_agent(arguments: Mapping[str, Any]) -> str:
    keys = ("subagent_type", "subagentType", "agent", "name")
    return next((_text_of(arguments, key) for key in keys if _text_of(arguments, key)), "")


def _text_of(values: Any, name: str) -> str:
    value = values.get(name) if isinstance(values, Mapping) else None
    return value if isinstance(value, str) else ""


def _line(text: str) -> str:
    line = " ".join(text[: 2 * SUMMARY_ARGUMENT].split())
    return line if len(line) <= SUMMARY_ARGUMENT else f"{line[: SUMMARY_ARGUMENT - 1]}…"
