"""Results of Claude Code's tools: `read_outcome` turns a `tool_result` block and `toolUseResult` into one outcome.

A transcript has each result twice: as the text that the model saw, and as an object in the tool's own form. For an
edit:

    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "The file was updated."}
    {"filePath": "/work/totals.py", "structuredPatch": [{"oldStart": 7, "lines": ["-a", "+b"], …}]}

The object says more, so Aver prefers it. A subagent's transcript and a hook may have only the text. Then Aver makes the
diff of an edit from its arguments, without line numbers.

No input makes these functions fail. A call counts as failed only if the result has `is_error`. It counts as refused
only if Claude Code's own fields say so: `toolDenialKind`, `toolUseResult`, `permissionDecision`, a hook's attachment.
The text of an error is often the output of a command, a server or a subagent, and may contain any words. Only for tools
that return nothing of others (`_OWN_TEXT_TOOLS`) the first line of the error counts, and the record notes
`said_by: words`.

Aver does not keep whole files from before an edit, nor pictures in base64: it keeps their size and digest. The raw
record is sealed by its digest, so the seal still covers them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from aver.diffs import diff_from_hunks, format_line_counts, unified_diff
from aver.fast_dataclass import dataclass
from aver.ingest.attachments import digest_reference, replace_attachments
from aver.ingest.contract import Permission
from aver.ingest.foreign_json import content_text
from aver.text import plural, summary_line

AGENT_TOOLS = ("Agent", "Task")
"""The tool that launches a subagent: its newer and its older name."""

_COMMAND_TOOLS = ("Bash", "PowerShell")
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code ([0-9]{1,10})(?:\n|\Z)").match
_AGENT_ID = re.compile(r"\bagentId: ([A-Za-z0-9_-]{1,64})").search
_NUMBERED_LINE = re.compile(r"^ *[0-9]{1,9}[→\t]", re.MULTILINE)

_OWN_TEXT_TOOLS = frozenset(
    {"Edit", "ExitPlanMode", "Glob", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "TodoWrite", "Write"}
)
"""Tools whose errors Claude Code words itself. No output of a command, a server or a file begins such an error."""

_USER_DENIALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user",
    "[Request interrupted by user",
)
_HOOK_DENIALS = (
    "PreToolUse:",
    "Hook PreToolUse:",
    "Permission denied by hook",
    "Permission denied by PermissionRequest hook",
)
_RULE_DENIAL = re.compile(
    r"Permission (?:to|for) [^\n]{0,4000}?(?:been|was) denied"
    r"|Claude requested permissions? to [^\n]{0,4000}?haven't granted it"
    r"|[A-Za-z]{1,40} operation blocked by hook"
).match
_ABORTED = "<error>Command was aborted before completion</error>"

_REJECTED = Permission(by="unknown", reference="rejected by the user", denied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeOutcome:
    """The outcome of a call."""

    ok: bool
    result: Any = None
    error: str | None = None
    diff: str | None = None
    note: str = ""
    """The end of the summary line, such as ` (+3/-1)`."""
    side_effects: tuple[str, ...] = ()
    status: Literal["partial", "pending"] | None = None
    allowed: Permission | None = None
    """Who allowed or refused the call, if the result itself says so."""
    duration_ms: int | None = None
    launched: str = ""
    from_words: bool = False
    """Whether Claude Code's own words, and none of its fields, say how the call ended or who allowed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SuccessfulCall:
    """A call that worked, and its result."""

    tool: str
    arguments: Json
    text: str
    data: Any
    """The object beside the text; None where there is none."""


def read_outcome(
    tool: str, arguments: Json, block: Json, data: Any, denial_kind: Any = None, *, is_interrupt: bool | None = None
) -> ClaudeOutcome:
    """Read a `tool_result` block. `data` is the `toolUseResult` beside it, if it surely belongs to this block.

    `is_interrupt` is the flag of a hook's payload. Such a payload reports a call that was made, so it is no refusal.
    """
    text = content_text(block.get("content"))
    if block.get("is_error") is True:
        error = (
            text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>") or string_or_empty(data) or "failed"
        )
        if is_interrupt is None and (denied := _find_denial(data, denial_kind)):
            return ClaudeOutcome(ok=False, result=text, error=error, allowed=denied, note=" (denied)")
        if is_interrupt is None and tool in _OWN_TEXT_TOOLS and (denied := _find_denial_in_words(error)):
            return ClaudeOutcome(ok=False, result=text, error=error, allowed=denied, note=" (denied)", from_words=True)
        if tool not in _COMMAND_TOOLS:
            return ClaudeOutcome(ok=False, result=text, error=error, note=" (failed)")
        return _read_failed_command(string_or_empty(arguments.get("command")), error, is_interrupt)
    given = _SuccessfulCall(tool=tool, arguments=arguments, text=text, data=data)
    read = _RESULT_READERS.get(tool)
    if read is not None and (outcome := read(given)) is not None:
        return outcome
    # The approval of a plan is the only approval by a person that a transcript states in words.
    plan_approved = tool == "ExitPlanMode" and text.startswith("User has approved")
    return ClaudeOutcome(
        ok=True,
        result=_read_generic_result(given, block.get("content")),
        allowed=Permission(by="human_approved", reference="the user approved the plan") if plan_approved else None,
        from_words=plan_approved,
    )


def find_subject(tool: str, arguments: Json) -> str:
    """Return the argument that names the object of a call, as one line: a path, a command, a pattern, a question."""
    for name in ("file_path", "notebook_path", "command", "pattern", "query", "url", "description", "path", "skill"):
        if value := string_or_empty(arguments.get(name)):
            return one_line(value)
    from aver.capsule.masking.named_values import is_sensitive_name

    texts = (value for name, value in arguments.items() if isinstance(value, str) and not is_sensitive_name(name))
    return one_line(next((text for text in texts if text.strip()), ""))


# --- failures


def _find_denial(data: Any, kind: Any) -> Permission | None:
    """Return who refused a call, as Claude Code's own fields say; None if they do not say that it was refused."""
    # An error is `Error: …` in `toolUseResult`, so no output can be this text.
    if data == "User rejected tool use" or kind == "user-rejected":
        return _REJECTED
    return Permission(by="policy", reference=kind, denied=True) if isinstance(kind, str) and kind else None


def _find_denial_in_words(error: str) -> Permission | None:
    """Return who refused a call of `_OWN_TEXT_TOOLS`, from the first line of its error."""
    if error.startswith(_USER_DENIALS):
        return _REJECTED
    if error.startswith(_HOOK_DENIALS):
        return Permission(by="policy", reference="hook=PreToolUse", denied=True)
    if error.startswith("Permission for this tool use was denied"):
        return _REJECTED if "The user said:" in error else Permission(denied=True)
    return Permission(by="policy", reference=one_line(error), denied=True) if _RULE_DENIAL(error) else None


def _read_failed_command(command: str, error: str, is_interrupt: bool | None) -> ClaudeOutcome:
    """Read the error of a command: `Exit code 1`, a line end, its output.

    Without an exit code the command may not have run at all, or it was interrupted. Then Claude Code says it in words,
    and the output may stand before them.
    """
    exited = _EXIT_CODE(error)
    told = not exited and (error.rstrip().endswith(_ABORTED) or error.startswith("[Request interrupted by user"))
    interrupted = told if is_interrupt is None else is_interrupt
    result: dict[str, Any] = {"output": error[exited.end() :] if exited else error}
    if exited:
        result["exit_code"] = int(exited[1])
    if interrupted:
        result["interrupted"] = True
    return ClaudeOutcome(
        ok=False,
        result=result,
        error=f"Exit code {exited[1]}" if exited else error,
        note=" (interrupted)" if interrupted else f" (exit {exited[1]})" if exited else " (failed)",
        side_effects=(f"ran {command}",) if command and (exited or interrupted) else (),
        status="partial" if interrupted else None,
        from_words=not exited and is_interrupt is None,
    )


# --- results of calls that worked


def _read_edit_result(given: _SuccessfulCall) -> ClaudeOutcome:
    data = given.data if isinstance(given.data, dict) else {}
    path_data = given.data if isinstance(given.data, dict) else {}
    told = (path_data.get("filePath"), path_data.get("notebook_path"))
    asked = (given.arguments.get("file_path"), given.arguments.get("notebook_path"))
    path = next((path for path in (*told, *asked) if isinstance(path, str) and path), "")
    diff = _build_diff(given, data, path)
    verb = "wrote" if given.tool == "Write" else "edited"
    changed_by_user = data.get("userModified") is True
    return ClaudeOutcome(
        ok=True,
        result=given.text,
        diff=diff,
        note=f" {format_line_counts(diff)}" if diff else "",
        side_effects=(f"{verb} {path}",) if path else (),
        allowed=Permission(by="human_approved", reference="the user changed the edit") if changed_by_user else None,
    )


def _build_diff(given: _SuccessfulCall, data: Json, path: str) -> str | None:
    created = data.get("type") == "create"
    if diff := diff_from_hunks(path, list_or_empty(data.get("structuredPatch")), new_file=created):
        return diff
    if given.tool == "NotebookEdit":
        before, after = data.get("original_file"), data.get("updated_file")
        if isinstance(before, str) and isinstance(after, str) and before != after:
            return unified_diff(path, before, after)
        deleted = given.arguments.get("edit_mode") == "delete"
        old = string_or_empty(data.get("old_source"))
        new = "" if deleted else string_or_empty(data.get("new_source", given.arguments.get("new_source")))
        return unified_diff(path, old, new) or None
    content = data.get("content", given.arguments.get("content"))
    if given.tool == "Write":
        # The original content is unknown here. So only a new file has a known diff.
        created = created or given.text.startswith("File created")
        return unified_diff(path, None, content) if created and isinstance(content, str) else None
    edits = list_or_empty(given.arguments.get("edits")) if given.tool == "MultiEdit" else [given.arguments]
    return "".join(_replacement_diff(path, edit) for edit in edits if isinstance(edit, dict)) or None


def _replacement_diff(path: str, edit: Json) -> str:
    old, new = edit.get("old_string"), edit.get("new_string")
    return unified_diff(path, old, new) if isinstance(old, str) and isinstance(new, str) else ""


def _read_command_result(given: _SuccessfulCall) -> ClaudeOutcome | None:
    data = given.data
    command = string_or_empty(given.arguments.get("command"))
    effects = (f"ran {command}",) if command else ()
    if not isinstance(data, dict):
        return ClaudeOutcome(ok=True, result={"output": given.text}, side_effects=effects)
    kept = {
        name: replace_files(value) for name, value in data.items() if value not in (None, False, "") or name in _STREAMS
    }
    if data.get("isImage") is True:
        kept["stdout"] = digest_reference(string_or_empty(data.get("stdout")), "image")
    if data.get("interrupted") is True:
        return ClaudeOutcome(
            ok=False, result=kept, error="interrupted", note=" (interrupted)", side_effects=effects, status="partial"
        )
    if task := string_or_empty(data.get("backgroundTaskId")):
        note = f" (in background: {one_line(task)})"
        return ClaudeOutcome(ok=True, result=kept, note=note, side_effects=effects, status="pending")
    if not data.get("returnCodeInterpretation"):
        # Claude Code writes no exit code for success. Another code makes an error, or `returnCodeInterpretation`.
        kept["exit_code"] = 0
    return ClaudeOutcome(ok=True, result=kept, side_effects=effects)


_STREAMS = ("stdout", "stderr")


def _read_file_result(given: _SuccessfulCall) -> ClaudeOutcome | None:
    data = given.data if isinstance(given.data, dict) else {}
    file = data.get("file")
    if not isinstance(file, dict):
        # Only the text, in which each line of the file has its number: `  7→return total`.
        count = len(_NUMBERED_LINE.findall(given.text))
        if not count:
            return None
        return ClaudeOutcome(
            ok=True, result={"content": given.text, "lines": count}, note=f" ({plural(count, 'line')})"
        )
    if data.get("type") != "text":
        # A picture, a notebook or a PDF.
        kind, kept = string_or_empty(data.get("type")), replace_files(file)
        if isinstance(picture := file.get("base64"), str):
            kept["base64"] = digest_reference(picture, string_or_empty(file.get("type")) or "application/octet-stream")
        return ClaudeOutcome(ok=True, result={"type": kind, "file": kept}, note=f" ({one_line(kind)})")
    lines = count_or_none(file.get("numLines"))
    content = string_or_empty(file.get("content"))
    lines = content.count("\n") + 1 if lines is None else lines
    result: dict[str, Any] = {"content": content, "lines": lines}
    named = {"start_line": "startLine", "total_lines": "totalLines"}
    result |= {name: file[theirs] for name, theirs in named.items() if count_or_none(file.get(theirs)) is not None}
    return ClaudeOutcome(ok=True, result=result, note=f" ({plural(lines, 'line')})")


def _read_search_result(given: _SuccessfulCall) -> ClaudeOutcome | None:
    if not isinstance(given.data, dict):
        return None
    files, lines = count_or_none(given.data.get("numFiles")), count_or_none(given.data.get("numLines"))
    note = f" ({plural(lines, 'line')})" if lines else "" if files is None else f" ({plural(files, 'file')})"
    return ClaudeOutcome(
        ok=True, result=replace_files(given.data), note=note, duration_ms=count_or_none(given.data.get("durationMs"))
    )


def _read_web_search_result(given: _SuccessfulCall) -> ClaudeOutcome | None:
    if not isinstance(given.data, dict):
        return None
    # `results` has the model's texts as strings, and the hits as `{"content": [{"title", "url"}, …]}`.
    results = list_or_empty(given.data.get("results"))
    hits = [hit for found in results if isinstance(found, dict) for hit in list_or_empty(found.get("content"))]
    links = [hit for hit in hits if isinstance(hit, dict) and isinstance(hit.get("url"), str)]
    text = "\n".join(found for found in results if isinstance(found, str))
    query = string_or_empty(given.data.get("query")) or string_or_empty(given.arguments.get("query"))
    result = {
        "query": query,
        "urls": [link["url"] for link in links],
        "titles": [string_or_empty(link.get("title")) for link in links],
    }
    return ClaudeOutcome(
        ok=True, result=result | ({"text": text} if text else {}), note=f" ({plural(len(links), 'result')})"
    )


def _read_web_fetch_result(given: _SuccessfulCall) -> ClaudeOutcome | None:
    if not isinstance(given.data, dict):
        return None
    code = count_or_none(given.data.get("code"))
    note = "" if code is None else f" (HTTP {code})"
    return ClaudeOutcome(
        ok=True, result=replace_files(given.data), note=note, duration_ms=count_or_none(given.data.get("durationMs"))
    )


def _read_subagent_result(given: _SuccessfulCall) -> ClaudeOutcome:
    data = given.data if isinstance(given.data, dict) else {}
    name = string_or_empty(data.get("agentType")) or string_or_empty(given.arguments.get("subagent_type")) or "agent"
    told = _AGENT_ID(given.text)
    launched = string_or_empty(data.get("agentId")) or (told[1] if told else "")
    # The prompt is in the arguments, and the subagent's own events are in a chain of their own.
    result = {key: replace_files(value) for key, value in data.items() if key not in ("prompt", "content")}
    if answer := content_text(data.get("content")) or given.text:
        result["content"] = answer
    goes_on = data.get("isAsync") is True or string_or_empty(data.get("status")).endswith("_launched")
    return ClaudeOutcome(
        ok=True,
        result=result,
        note=f" [{name}: in background]" if goes_on else _summarize_subagent(name, data),
        side_effects=(f"delegated to {name}",),
        status="pending" if goes_on else None,
        duration_ms=count_or_none(data.get("totalDurationMs")),
        launched=launched,
    )


def _summarize_subagent(name: str, data: Json) -> str:
    """Summarize the work of a subagent: `[Explore: 2 edits, +14/-3, 9 tool calls]`."""
    stats = data.get("toolStats")
    parts: list[str] = []
    if isinstance(stats, dict):
        edits, added, removed = (
            count_or_none(stats.get(key)) or 0 for key in ("editFileCount", "linesAdded", "linesRemoved")
        )
        parts = [plural(edits, "edit"), f"+{added}/-{removed}"]
    calls = count_or_none(data.get("totalToolUseCount"))
    if calls is not None:
        parts.append(plural(calls, "tool call"))
    return f" [{one_line(name)}: {', '.join(parts)}]" if parts else f" [{one_line(name)}]"


def _read_generic_result(given: _SuccessfulCall, content: Any) -> Any:
    """Return the result of a tool without a reader: the object, and the text that the model saw if it differs."""
    text = given.text if isinstance(content, str) else replace_files(content)
    if not isinstance(given.data, dict | list) or not given.data:
        return text
    data = replace_files(given.data)
    return data if not text or data == text else {"said": text, "data": data}


_RESULT_READERS: Mapping[str, Callable[[_SuccessfulCall], ClaudeOutcome | None]] = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), _read_edit_result),
    **dict.fromkeys(_COMMAND_TOOLS, _read_command_result),
    **dict.fromkeys(("Glob", "Grep", "LS"), _read_search_result),
    **dict.fromkeys(AGENT_TOOLS, _read_subagent_result),
    "Read": _read_file_result,
    "WebSearch": _read_web_search_result,
    "WebFetch": _read_web_fetch_result,
}


Json = Mapping[str, Any]

LINE_MAX = 160
"""The most characters of one part of a summary line."""

BULKY_SIZE = 8 * 1024
"""Texts that Claude Code adds itself (tools, reminders, files) are kept whole up to this many bytes of JSON."""

EXCERPT_MAX = 400
"""Characters that are kept from the beginning of a longer text."""

_WHOLE_FILES = ("originalFile", "original_file", "updated_file", "base64")


def string_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def count_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def one_line(text: str) -> str:
    return summary_line(text, LINE_MAX, window=4 * LINE_MAX)


def replace_files(value: Any) -> Any:
    """Return the value with digests instead of whole files and pictures."""
    return replace_attachments(value, _WHOLE_FILES)


def shorten_if_bulky(value: Any) -> Any:
    """Return a value that Claude Code added itself: whole if it is small, else its beginning, size and digest."""
    import json  # Here, because `aver hook` loads this module at every call and never needs it.

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) <= BULKY_SIZE // 4 or len(text.encode("utf-8", "surrogatepass")) <= BULKY_SIZE:
        return replace_files(value)
    return {**digest_reference(text), "begins": text[:EXCERPT_MAX]}
