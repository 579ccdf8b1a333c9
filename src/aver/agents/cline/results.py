"""What the results say that Cline gives back to the model: they are texts, and the texts tell what happened.

Only what Cline itself writes at the beginning of a result is read, never what a command or a file says below it. What a
server or a page answers is theirs from its first word: it cannot make a call that was made look like one that was
refused, and neither can a file that was read without asking.

Values as Cline writes them: times, counts of tokens, lists, what it keeps of a task's surroundings.

What a tool of a Cline session was given and what it gave back, as its messages and its hooks tell it alike.

Results are those that the model is given: of a command its output, of several commands or files in one call a list,
with what came of each.
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
"""Characters at the beginning of a result in which Cline says what became of the call."""

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
    """What became of a call."""

    ok: bool | None = True
    error: str | None = None
    denied: bool = False
    by_rule: str | None = None
    """Of what was denied: the rule that did it; None where a person did."""
    status: Literal["partial"] | None = None
    exit_code: int | None = None
    was_run: bool = True
    """Whether the result shows that it was carried out, and so that whoever was asked had allowed it."""


def read_outcome(result: Any, tool: str, *, asked: bool, is_error: bool) -> ClineOutcome:
    """What a result tells of a call of a tool. Where nobody was asked, nobody refused."""
    text = result_text(result)
    start = text[:HEAD_MAX].lstrip()
    is_command = tool == "execute_command"
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
    """A result without pictures, and without the whole file that Cline repeats after every edit."""
    if isinstance(result, str):
        # The text with the first file in it by size and digest: Cline repeats one.
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
    """What is worth telling of a task's surroundings: the newest entries of what Cline keeps."""
    model = next((one for one in reversed(list_or_empty(metadata.get("model_usage"))) if isinstance(one, dict)), {})
    host = next(
        (one for one in reversed(list_or_empty(metadata.get("environment_history"))) if isinstance(one, dict)), {}
    )
    told = {
        "model": model.get("model_id"),
        "provider": model.get("model_provider_id"),
        "mode": model.get("mode"),
        **{name: host.get(name) for name in _HOST_FIELDS},
    }
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def read_task_tokens(info: Any) -> Tokens | None:
    """Of a task's request. It counts what was cached apart from what went in."""
    native = _pick_counts(info, _TASK_COUNTS)
    parts = [native[name] for name in ("tokensIn", "cacheWrites", "cacheReads") if name in native]
    return _build_tokens(native, sum(map(int, parts)) if parts else None, "tokensOut")


def read_session_tokens(metrics: Any) -> Tokens | None:
    """Of an answer in a session. What was cached is part of what went in."""
    native = _pick_counts(metrics, _SESSION_COUNTS)
    return _build_tokens(native, int(native["inputTokens"]) if "inputTokens" in native else None, "outputTokens")


def _pick_counts(told: Any, names: tuple[str, ...]) -> dict[str, Any]:
    counts = told if isinstance(told, Mapping) else {}
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


def is_before(one: Any, other: Any) -> bool:
    return _is_count(one) and (not _is_count(other) or one <= other)


def message_text(message: Mapping[str, Any]) -> str:
    text = message.get("text")
    return text if isinstance(text, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53


LINE_MAX = 160
"""Characters of what a call is about, on the line by which it is told."""

_COMMAND_TOOLS, _EDITOR_TOOL, _PATCH_TOOL = ("run_commands", "execute_command", "bash"), "editor", "apply_patch"
_SUBJECT_KEYS = (
    *("path", "files", "file_paths", "paths", "commands", "command", "cmd", "queries", "query", "requests", "url"),
    *("task", "question", "skill"),
)
_COMMAND_EXITED = re.compile(r"Command exited with code \d").match
_FILE_CREATED = re.compile(r"File created").match
"""What an editor says that found no file to replace a text in, and made one of the new text alone."""


def start_call(name: str, identifier: str, given: Any) -> tuple[AgentCall, str]:
    """A call that was made, and the line by which it is told."""
    told = parse_embedded_json(given)
    arguments = told if isinstance(told, dict) else {"input": told}
    subject = _find_subject(name, arguments)
    summary = f"{one_line(name)}: {subject}" if subject else one_line(name)
    return AgentCall(tool=name, id=identifier, arguments=replace_images(arguments)), summary


def finish_call(call: AgentCall, told: Any, *, failed: bool) -> tuple[AgentCall, tuple[str, ...]]:
    """The call with what came of it, and what it did besides."""
    content = replace_images(parse_embedded_json(told))
    error = _find_error(content, failed=failed)
    # The result of a call that did one thing: what came of it, under the name that outputs have; else as it is.
    done = _list_results(content)
    if len(done) != 1 or "success" not in done[0] or not isinstance(done[0].get("result"), str):
        result: Any = content
    else:
        result = {"output" if name == "result" else name: value for name, value in done[0].items()}
    call = replace(call, result=result, ok=error is None, error=error)
    diff, effects = _find_changes(call, _list_results(content))
    return replace(call, diff=diff), effects


def _find_changes(call: AgentCall, done: list[dict[str, Any]]) -> tuple[str | None, tuple[str, ...]]:
    """What a call did to files, if it worked; or which commands it ran, be it that one of them failed."""
    told = call.arguments
    if call.tool in _COMMAND_TOOLS:
        ran = call.ok or any(_COMMAND_EXITED(str(one.get("error"))) for one in done)
        return None, tuple(f"ran {command}" for command in _list_commands(told)) if ran else ()
    if not call.ok:
        return None, ()
    if (
        call.tool == _PATCH_TOOL
        and isinstance(text := told.get("input"), str)
        and (patch := read_patch(text)) is not None
    ):
        return patch.diff, tuple(f"{verb} {path}" for verb, path in patch.changes)
    path, new, old = (told.get(name) for name in ("path", "new_text", "old_text"))
    if call.tool != _EDITOR_TOOL or not isinstance(path, str) or not isinstance(new, str):
        return None, ()
    line = told.get("insert_line")
    if isinstance(line, int):
        return diff_from_insertion(path, line, new), (f"edited {path}",)
    if isinstance(old, str) and not any(_FILE_CREATED(str(one.get("result"))) for one in done):
        return unified_diff(path, old, new), (f"edited {path}",)
    return unified_diff(path, None, new), (f"wrote {path}",)


def _list_commands(arguments: Mapping[str, Any]) -> list[str]:
    found = next((arguments[name] for name in ("commands", "command", "cmd", "input") if name in arguments), None)
    if isinstance(found, str) and isinstance(args := arguments.get("args"), list):
        found = [{"command": found, "args": args}]
    return [text for one in (found if isinstance(found, list) else [found]) if (text := _command_text(one))]


def _command_text(one: Any) -> str:
    if isinstance(one, Mapping):
        words = [one.get("command"), *list_or_empty(one.get("args"))]
        return " ".join(word for word in words if isinstance(word, str))
    return one if isinstance(one, str) else ""


def _list_results(content: Any) -> list[dict[str, Any]]:
    """What was done in a call: `{query, result, success, error}` for each command, file or search."""
    return [one for one in (content if isinstance(content, list) else [content]) if isinstance(one, dict)]


def _find_error(result: Any, *, failed: bool) -> str | None:
    """Why a call failed; None where it worked. Of several things done in one call, each says whether it did."""
    errors = [str(one.get("error") or "failed") for one in _list_results(result) if one.get("success") is False]
    if errors:
        return "; ".join(errors)
    if not failed:
        return None
    told = result.get("error") if isinstance(result, dict) else result
    return told if isinstance(told, str) and told else "the tool reported an error"


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
    parts = value if isinstance(value, list) else [value]
    texts = [one if isinstance(one, str) else _item_name(one) for one in parts]
    return one_line(", ".join(filter(None, texts)))


def _item_name(one: Any) -> str:
    if not isinstance(one, Mapping):
        return ""
    return next((one[key] for key in ("path", "url", "query") if isinstance(one.get(key), str)), "")


def one_line(text: str) -> str:
    return summary_line(text, LINE_MAX, window=4 * LINE_MAX)
