"""Results of Cline's tools, in tasks and in sessions, and values that both write: times, tokens, metadata.

The result of a task's call is the text that Cline gives to the model. Cline's own words at its beginning say what
happened:

    The user denied this operation.                                          refused by the user
    The tool execution failed with the following error:\\n<error>\\n…          failed
    Command executed.\\nOutput:\\n3 passed                                     worked

`read_outcome` reads only this beginning, never the output of a command or the content of a file. The answer of a
server or of a web page is foreign from its first word. So none of them can make a call look refused.

The result of a session's call is the same for messages and for hooks. It is a text, or a list with one item for each
command or file:

    [{"query": "pytest -q", "result": "3 passed", "success": true}]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import AgentCall, Tokens
from aver.ingest.diffs import diff_from_insertion, unified_diff
from aver.ingest.foreign_json import content_text, parse_embedded_json, utc_from_ms
from aver.ingest.patches import read_patch
from aver.text import summary_line

HEAD_MAX = 400
"""Characters at the beginning of a result that may be Cline's own words."""

_DENIED = ("The user denied this operation", "The user rejected this operation")
_SKIPPED = re.compile(r"Skipping (?:any remaining )?tool\b.{0,80}\buser reject", re.IGNORECASE | re.DOTALL).match
_NOT_RUN = ("was not executed because", "could not be completed", "cannot be used in PLAN MODE")
_CLINEIGNORE_DENIAL = re.compile(
    r"(?:The tool execution failed with the following error:\s*<error>\s*)?Access to .{1,4096}? is blocked by the "
    r"\.clineignore",
    re.DOTALL,
).match
_PERMISSION_DENIALS = ("Command denied by CLINE_COMMAND_PERMISSIONS", "Command execution denied by permission")
_REMOTE_TOOLS = ("use_mcp_tool", "access_mcp_resource", "web_fetch", "web_search")
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


def read_outcome(result: Any, tool: str, *, asked: bool, is_error: bool) -> ClineOutcome:
    """Read the outcome of a task's call from its result. `asked`: whether Cline asked the user before the call."""
    text = result_text(result)
    start = text[:HEAD_MAX].lstrip()
    is_command = tool == "execute_command"
    # Without a question there is no refusal by the user. A file that was read may contain the same words.
    if asked and (start.startswith(_DENIED) or _SKIPPED(start)):
        return ClineOutcome(ok=False, error=start.partition("\n")[0], denied=True, was_run=False)
    if tool in _REMOTE_TOOLS:
        return (
            ClineOutcome(ok=False, error=_error_reason(text))
            if is_error or start.startswith(_FAILED)
            else ClineOutcome()
        )
    if (rule := ".clineignore" if _CLINEIGNORE_DENIAL(text) else None) or start.startswith(_PERMISSION_DENIALS):
        return ClineOutcome(
            ok=False, error=_error_reason(text), denied=True, by_rule=rule or "CLINE_COMMAND_PERMISSIONS", was_run=False
        )
    if any(words in start for words in _NOT_RUN) and not is_command:
        return ClineOutcome(ok=False, error=start.partition("\n")[0], was_run=False)
    if is_error or start.startswith(_FAILED):
        return ClineOutcome(ok=False, error=_error_reason(text), was_run=not start.startswith("Missing value"))
    return _read_command_outcome(text) if is_command else ClineOutcome()


def _read_command_outcome(text: str) -> ClineOutcome:
    output = _OUTPUT(text)
    head = text[: output.start()] if output else text[:HEAD_MAX]
    # Look for the exit code only before `Output:`. After it, the command's own text may name another code.
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
    content = replace_images(parse_embedded_json(value))
    error = _find_error(content, failed=failed)
    # A result with one item becomes that item, with the output under the name that other agents use.
    done = _list_results(content)
    if len(done) != 1 or "success" not in done[0] or not isinstance(done[0].get("result"), str):
        result: Any = content
    else:
        result = {"output" if name == "result" else name: value for name, value in done[0].items()}
    call = replace(call, result=result, ok=error is None, error=error)
    diff, effects = _find_changes(call, _list_results(content))
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


def _find_error(result: Any, *, failed: bool) -> str | None:
    """Return the error of a call; None if it worked. Each item of a result says whether it worked."""
    errors = [str(item.get("error") or "failed") for item in _list_results(result) if item.get("success") is False]
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
