"""Results of Cline's tools, in tasks and in sessions, and values that both write: times, tokens, metadata.

The result of a task's call is the text that Cline gives to the model. Cline's own words at its beginning say what
happened:

    The user denied this operation.                                          refused by the user
    The tool execution failed with the following error:\\n<error>\\n…          failed
    Command executed.\\nOutput:\\n3 passed                                     worked

`read_outcome` reads only this beginning, and only for tools whose result Cline begins itself: commands and edits. The
result of any other tool is foreign from its first word: the content of a file, the answer of a server, a web page.
There only a field counts, `is_error`, or a message of Cline's own (`clineignore_error`). If such a result has the form
of a refusal or of an error, Aver does not know how the call ended. Words that decided something are noted as `said_by`.

The result of a session's call is the same for messages and for hooks. It is a text, or a list with one item for each
command or file:

    [{"query": "pytest -q", "result": "3 passed", "success": true}]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from aver.diffs import diff_from_insertion, unified_diff
from aver.fast_dataclass import dataclass
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import AgentCall, Tokens
from aver.ingest.foreign_json import content_text, parse_embedded_json, utc_from_ms
from aver.ingest.patches import read_patch
from aver.text import summary_line

HEAD_MAX = 400
"""Characters at the beginning of a result that may be Cline's own words."""

COMMAND_HEAD_LINES = 2
"""Lines before a command's output in which Cline says how the command ended."""

_DENIED = ("The user denied this operation", "The user rejected this operation")
_SKIPPED = re.compile(r"Skipping (?:any remaining )?tool\b[^\n]{0,80}\buser reject", re.IGNORECASE).match
_NOT_RUN = re.compile(
    r"Tool ['\"\[]?[A-Za-z0-9_.-]{1,120}['\"\]]? (?:was not executed because|cannot be used in PLAN MODE)"
    r"|(?:The tool execution|This operation|The operation|The tool call|The edit) could not be completed"
).match
_CLINEIGNORE_DENIAL = re.compile(
    r"(?:The tool execution failed with the following error:\s{0,8}<error>\s{0,8})?"
    r"Access to [^\n]{1,4096}? is blocked by the \.clineignore"
).match
_PERMISSION_DENIALS = ("Command denied by CLINE_COMMAND_PERMISSIONS", "Command execution denied by permission")
_COMMAND_TOOL = "execute_command"
_OWN_RESULT_TOOLS = frozenset(
    {_COMMAND_TOOL, "write_to_file", "replace_in_file", "apply_patch", "apply_diff", "edit_file", "insert_content"}
    | {"new_rule", "delete_file", "editedExistingFile", "newFileCreated", "fileDeleted", "command"}
)
"""Tools whose result begins with Cline's own words. What a command wrote, or a file contains, comes after them."""

_ERROR_FORM = "The tool execution failed with the following error:"
_FAILED = ("The tool execution failed", "[ERROR]", "Error:", "Error executing", "Missing value for required parameter")
_EXIT_CODE = re.compile(r"\bexit(?:ed with)?(?: code| status):? ?\(?(-?[0-9]{1,10})", re.IGNORECASE).search
_OUTPUT = re.compile(r"^(?:Output|Here's the output(?: so far)?):\s*$", re.MULTILINE).search
_STILL_RUNNING = re.compile(r"Command is still running|Command is running in the background", re.IGNORECASE).search
_COMMAND_FAILED = re.compile(
    r"not successful|timed out|was (?:cancelled|terminated|killed)|Command failed", re.IGNORECASE
).search
_FILE = re.compile(r"<(final_file_content|file_content)\b[^>\n]{0,4096}>\n").search


@dataclass(frozen=True, slots=True, kw_only=True)
class ClineOutcome:
    """The outcome of a task's call."""

    ok: bool | None = True
    error: str | None = None
    denied: bool = False
    by_rule: str | None = None
    """The rule that refused the call; None if a person refused it."""
    status: Literal["partial"] | None = None
    exit_code: int | None = None
    was_run: bool = True
    """Whether the result shows that the call was carried out. Then a person who was asked had agreed."""
    from_words: bool = False
    """Whether only the text of the result says how the call ended."""


def read_outcome(result: Any, tool: str, *, asked: bool, is_error: bool, ignored: bool = False) -> ClineOutcome:
    """Read the outcome of a task's call from its result.

    `asked`: whether Cline asked the user before the call. `ignored`: whether Cline showed that `.clineignore` covers
    the call's path.
    """
    text = result_text(result)
    start = text[:HEAD_MAX].lstrip()
    if ignored and _CLINEIGNORE_DENIAL(start):
        return ClineOutcome(ok=False, error=_error_reason(text), denied=True, by_rule=".clineignore", was_run=False)
    if tool not in _OWN_RESULT_TOOLS:
        if is_error:
            return ClineOutcome(ok=False, error=_error_reason(text))
        is_ambiguous = start.startswith((*_DENIED, _ERROR_FORM)) or _SKIPPED(start) or _NOT_RUN(start)
        return ClineOutcome(ok=None, was_run=False, from_words=True) if is_ambiguous else ClineOutcome()
    outcome = _read_own_words(text, start, tool, asked=asked, is_error=is_error)
    return replace(outcome, from_words=not is_error)


def _read_own_words(text: str, start: str, tool: str, *, asked: bool, is_error: bool) -> ClineOutcome:
    """Read the beginning of a result of `_OWN_RESULT_TOOLS`."""
    # Without a question there is no refusal by the user.
    if asked and (start.startswith(_DENIED) or _SKIPPED(start)):
        return ClineOutcome(ok=False, error=start.partition("\n")[0], denied=True, was_run=False)
    is_command = tool in (_COMMAND_TOOL, "command")
    if is_command and start.startswith(_PERMISSION_DENIALS):
        return ClineOutcome(
            ok=False, error=_error_reason(text), denied=True, by_rule="CLINE_COMMAND_PERMISSIONS", was_run=False
        )
    if _NOT_RUN(start):
        return ClineOutcome(ok=False, error=start.partition("\n")[0], was_run=False)
    if is_error or start.startswith(_FAILED):
        return ClineOutcome(ok=False, error=_error_reason(text), was_run=not start.startswith("Missing value"))
    return _read_command_outcome(text) if is_command else ClineOutcome()


def _read_command_outcome(text: str) -> ClineOutcome:
    output = _OUTPUT(text)
    # Cline's own words are the lines before `Output:`, at most two. After it, the command's text may say anything.
    before = text[: output.start()] if output else text[:HEAD_MAX]
    head = "\n".join(before.strip().split("\n")[:COMMAND_HEAD_LINES])
    code = _EXIT_CODE(head)
    if code and int(code[1]):
        return ClineOutcome(ok=False, error=f"exit code {code[1]}", exit_code=int(code[1]))
    if code:
        return ClineOutcome(exit_code=0)
    if _STILL_RUNNING(head):
        return ClineOutcome(ok=None, status="partial")
    if _COMMAND_FAILED(head):
        return ClineOutcome(ok=False, error=head.strip().partition("\n")[0])
    return ClineOutcome()


def result_text(result: Any) -> str:
    return result if isinstance(result, str) else content_text(result)


def replace_files(result: Any) -> Any:
    """Return a result without pictures, and without the whole file that Cline repeats after every edit."""
    if isinstance(result, str):
        # Replace the first file in the text by its size and digest.
        found = _FILE(result)
        end = result.rfind(f"\n</{found[1]}>") if found else -1
        if found is None or end < found.end():
            return result
        kept = digest_reference(result[found.end() : end])
        return f"{result[: found.end()]}[{kept['size']} bytes, sha256 {kept['sha256']}]{result[end:]}"
    if isinstance(result, list):
        return [replace_files(item) for item in result]
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        return {**replace_images(result), "text": replace_files(result["text"])}
    return replace_images(result)


def _error_reason(text: str) -> str:
    inner = text.partition("<error>")[2].partition("</error>")[0].strip()
    return inner or text.strip()[:HEAD_MAX]


_TASK_COUNTS = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost")
_SESSION_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "cost")
_HOST_FIELDS = ("cline_version", "os_name", "os_version", "host_name", "host_version")


def task_info(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model and the host of a task: the newest entries in its metadata."""
    model = next((item for item in reversed(list_or_empty(metadata.get("model_usage"))) if isinstance(item, dict)), {})
    host = next(
        (item for item in reversed(list_or_empty(metadata.get("environment_history"))) if isinstance(item, dict)), {}
    )
    facts = {
        "model": model.get("model_id"),
        "provider": model.get("model_provider_id"),
        "mode": model.get("mode"),
        **{name: host.get(name) for name in _HOST_FIELDS},
    }
    return {name: value for name, value in facts.items() if isinstance(value, str) and value}


def read_task_tokens(info: Any) -> Tokens | None:
    """Return the tokens of a task's request. Its cached tokens are not part of `tokensIn`."""
    native = _pick_counts(info, _TASK_COUNTS)
    parts = [native[name] for name in ("tokensIn", "cacheWrites", "cacheReads") if name in native]
    return _build_tokens(native, sum(map(int, parts)) if parts else None, "tokensOut")


def read_session_tokens(metrics: Any) -> Tokens | None:
    """Return the tokens of an answer in a session. Its cached tokens are part of `inputTokens`."""
    native = _pick_counts(metrics, _SESSION_COUNTS)
    return _build_tokens(native, int(native["inputTokens"]) if "inputTokens" in native else None, "outputTokens")


def _pick_counts(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    counts = value if isinstance(value, Mapping) else {}
    return {name: counts[name] for name in names if _is_count(counts.get(name))}


def _build_tokens(native: dict[str, Any], went_in: int | None, came_out: str) -> Tokens | None:
    if not any(native.values()):
        return None
    return Tokens(
        input=went_in,
        output=int(native[came_out]) if came_out in native else None,
        cost_usd=float(native["cost"]) if "cost" in native else None,
        native=native,
    )


def message_time(message: Any) -> str | None:
    return utc_from_ms(message.get("ts")) if isinstance(message, dict) else None


def is_before(item: Any, other: Any) -> bool:
    return _is_count(item) and (not _is_count(other) or item <= other)


def message_text(message: Mapping[str, Any]) -> str:
    text = message.get("text")
    return text if isinstance(text, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53


LINE_MAX = 160
"""The most characters of a summary."""

_COMMAND_TOOLS, _EDITOR_TOOL, _PATCH_TOOL = ("run_commands", "execute_command", "bash"), "editor", "apply_patch"
_SUBJECT_KEYS = (
    *("path", "files", "file_paths", "paths", "commands", "command", "cmd", "queries", "query", "requests", "url"),
    *("task", "question", "skill"),
)
_COMMAND_EXITED = re.compile(r"Command exited with code \d").match
_FILE_CREATED = re.compile(r"File created").match
"""The editor's result if the file did not exist. It then wrote a file with the new text alone."""


def start_call(name: str, identifier: str, given: Any) -> tuple[AgentCall, str]:
    """Return a session's call and its summary."""
    value = parse_embedded_json(given)
    arguments = value if isinstance(value, dict) else {"input": value}
    subject = _find_subject(name, arguments)
    summary = f"{one_line(name)}: {subject}" if subject else one_line(name)
    return AgentCall(tool=name, id=identifier, arguments=replace_images(arguments)), summary


def finish_call(call: AgentCall, value: Any, *, failed: bool) -> tuple[AgentCall, tuple[str, ...]]:
    """Return the call with its result, and its effects."""
    # The answer of a server (`server__tool`) may be JSON of the same form. It does not say how the call ended.
    content = replace_images(value if "__" in call.tool else parse_embedded_json(value))
    done = [] if "__" in call.tool else _list_results(content)
    error = _find_error(content, done, failed=failed)
    # A result with one item becomes that item, with the output under the name that other agents use.
    if len(done) != 1 or "success" not in done[0] or not isinstance(done[0].get("result"), str):
        result: Any = content
    else:
        result = {"output" if name == "result" else name: value for name, value in done[0].items()}
    call = replace(call, result=result, ok=error is None, error=error)
    diff, effects = _find_changes(call, done)
    return replace(call, diff=diff), effects


def _find_changes(call: AgentCall, done: list[dict[str, Any]]) -> tuple[str | None, tuple[str, ...]]:
    """Return the diff of a call that worked, and its effects. A command has an effect even if it failed."""
    arguments = call.arguments
    if call.tool in _COMMAND_TOOLS:
        ran = call.ok or any(_COMMAND_EXITED(str(item.get("error"))) for item in done)
        return None, tuple(f"ran {command}" for command in _list_commands(arguments)) if ran else ()
    if not call.ok:
        return None, ()
    if (
        call.tool == _PATCH_TOOL
        and isinstance(text := arguments.get("input"), str)
        and (patch := read_patch(text)) is not None
    ):
        return patch.diff, tuple(f"{verb} {path}" for verb, path in patch.changes)
    path, new, old = (arguments.get(name) for name in ("path", "new_text", "old_text"))
    if call.tool != _EDITOR_TOOL or not isinstance(path, str) or not isinstance(new, str):
        return None, ()
    line = arguments.get("insert_line")
    if isinstance(line, int):
        return diff_from_insertion(path, line, new), (f"edited {path}",)
    if isinstance(old, str) and not any(_FILE_CREATED(str(item.get("result"))) for item in done):
        return unified_diff(path, old, new), (f"edited {path}",)
    return unified_diff(path, None, new), (f"wrote {path}",)


def _list_commands(arguments: Mapping[str, Any]) -> list[str]:
    found = next((arguments[name] for name in ("commands", "command", "cmd", "input") if name in arguments), None)
    if isinstance(found, str) and isinstance(args := arguments.get("args"), list):
        found = [{"command": found, "args": args}]
    commands: list[str] = []
    for item in found if isinstance(found, list) else [found]:
        # A command is a text, or `{"command": "pytest", "args": ["-q"]}`.
        words = [item.get("command"), *list_or_empty(item.get("args"))] if isinstance(item, Mapping) else [item]
        commands.append(" ".join(word for word in words if isinstance(word, str)))
    return [command for command in commands if command]


def _list_results(content: Any) -> list[dict[str, Any]]:
    """Return the items of a result: `{query, result, success, error}` for each command, file or search."""
    return [item for item in (content if isinstance(content, list) else [content]) if isinstance(item, dict)]


def _find_error(result: Any, done: list[dict[str, Any]], *, failed: bool) -> str | None:
    """Return the error of a call; None if it worked. Each item of a result says whether it worked."""
    errors = [str(item.get("error") or "failed") for item in done if item.get("success") is False]
    if errors:
        return "; ".join(errors)
    if not failed:
        return None
    error = result.get("error") if isinstance(result, dict) else result
    return error if isinstance(error, str) and error else "the tool reported an error"


def _find_subject(name: str, arguments: Mapping[str, Any]) -> str:
    if (
        name == _PATCH_TOOL
        and isinstance(text := arguments.get("input"), str)
        and (patch := read_patch(text)) is not None
    ):
        return one_line(", ".join(dict.fromkeys(path for _, path in patch.changes)))
    if name in _COMMAND_TOOLS and (commands := _list_commands(arguments)):
        return one_line("; ".join(commands))
    value = next((arguments[key] for key in _SUBJECT_KEYS if arguments.get(key)), None)
    texts: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        # An item of a list is a text, or an object such as `{"path": "a.py", "start_line": 1}`.
        if isinstance(item, Mapping):
            item = next((item[key] for key in ("path", "url", "query") if isinstance(item.get(key), str)), "")
        texts += [item] if isinstance(item, str) and item else []
    return one_line(", ".join(texts))


def one_line(text: str) -> str:
    return summary_line(text, LINE_MAX, window=4 * LINE_MAX)
