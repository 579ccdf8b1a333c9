"""What came of a tool call of Claude Code: the shapes of `tool_result` and `toolUseResult`, read into one.

A result stands twice in a transcript: as text, which the model saw, and as an object, whose shape is the tool's own.
The object tells more and is preferred. A subagent's transcript has only the text; then an edit's diff is made from its
arguments, and says what was replaced, but not at which line.

Nothing here fails on what it is given, and nothing is a failure or a refusal unless the result says that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from aver.ingest.claude_values import Json, items, light, one_line, whole_number, words
from aver.ingest.deed import Allowed, counted
from aver.ingest.diffs import from_hunks, tally, unified
from aver.ingest.heavy import reference
from aver.ingest.records import text_in
from aver.values import dataclass

__all__ = ["AGENT_TOOLS", "Outcome", "outcome_of", "subject_of"]

AGENT_TOOLS = ("Agent", "Task")
"""The tool that launches a subagent, by its newer and its older name."""

_COMMANDS = ("Bash", "PowerShell")
_OF_SERVERS = "mcp__"
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code ([0-9]{1,10})(?:\n|\Z)").match
_AGENT_ID = re.compile(r"\bagentId: ([A-Za-z0-9_-]{1,64})").search
_NUMBERED_LINE = re.compile(r"^ *[0-9]{1,9}[→\t]", re.MULTILINE)

_BY_THE_USER = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user",
    "[Request interrupted by user",
)
_BY_A_HOOK = (
    "PreToolUse:",
    "Hook PreToolUse:",
    "Permission denied by hook",
    "Permission denied by PermissionRequest hook",
)
_BY_A_RULE = re.compile(
    r"Permission (?:to|for) .{0,4000}?(?:been|was) denied"
    r"|.{0,200}?requested permissions? to .{0,4000}?haven't granted it"
    r"|.{0,4000}?was blocked\. For security, Claude Code may only"
    r"|[A-Za-z]{1,40} operation blocked by hook",
    re.DOTALL,
).match

_REJECTED = Allowed(by="unknown", reference="rejected by the user", denied=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a call."""

    ok: bool
    result: Any = None
    error: str | None = None
    diff: str | None = None
    note: str = ""
    """What is added to the line for a person: ` (+3/-1)`."""
    side_effects: tuple[str, ...] = ()
    status: Literal["partial", "pending"] | None = None
    allowed: Allowed | None = None
    """Where the result itself tells who allowed or refused it."""
    duration_ms: int | None = None
    launched: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A call that worked, and what it gave back."""

    tool: str
    arguments: Json
    text: str
    data: Any
    """The object beside the text; None where there is none."""


def outcome_of(tool: str, arguments: Json, block: Json, data: Any, denial_kind: Any = None) -> Outcome:
    """What a `tool_result` block says, with the `toolUseResult` beside it if that is known to belong to it."""
    text = text_in(block.get("content"))
    if block.get("is_error") is True:
        return _failed(tool, arguments, text, data, denial_kind)
    given = _Given(tool=tool, arguments=arguments, text=text, data=data)
    read = _READERS.get(tool)
    outcome = read(given) if read is not None else None
    return outcome or Outcome(ok=True, result=_plain(given, block.get("content")), allowed=_approved(given))


def subject_of(tool: str, arguments: Json) -> str:
    """What a call is about, in one line: a path, a command, a pattern, a question."""
    for name in ("file_path", "notebook_path", "command", "pattern", "query", "url", "description", "path", "skill"):
        if value := words(arguments.get(name)):
            return one_line(value)
    return one_line(next((value for value in arguments.values() if isinstance(value, str) and value.strip()), ""))


# --- what did not work


def _failed(tool: str, arguments: Json, text: str, data: Any, denial_kind: Any) -> Outcome:
    error = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>") or words(data) or "failed"
    if denied := _denial(tool, error, data, denial_kind):
        return Outcome(ok=False, result=text, error=error, allowed=denied, note=" (denied)")
    if tool not in _COMMANDS:
        return Outcome(ok=False, result=text, error=error, note=" (failed)")
    return _failed_command(words(arguments.get("command")), error)


def _denial(tool: str, error: str, data: Any, kind: Any) -> Allowed | None:
    """Who refused a call; None where it was made, and failed. Of a server's tool, the words of the error are the
    server's: it could make a call that was made look refused."""
    if data == "User rejected tool use" or kind == "user-rejected":
        return _REJECTED
    if isinstance(kind, str) and kind:
        return Allowed(by="policy", reference=kind, denied=True)
    if tool.startswith(_OF_SERVERS):
        return None
    if error.startswith(_BY_THE_USER):
        return _REJECTED
    if error.startswith(_BY_A_HOOK):
        return Allowed(by="policy", reference="hook=PreToolUse", denied=True)
    if error.startswith("Permission for this tool use was denied"):
        return _REJECTED if "The user said:" in error else Allowed(denied=True)
    return Allowed(by="policy", reference=one_line(error), denied=True) if _BY_A_RULE(error) else None


def _failed_command(command: str, error: str) -> Outcome:
    interrupted = "Command was aborted before completion" in error or "Request interrupted by user" in error
    exited = _EXIT_CODE(error)
    result: dict[str, Any] = {"output": error[exited.end() :] if exited else error}
    if exited:
        result["exit_code"] = int(exited[1])
    if interrupted:
        result["interrupted"] = True
    # Without an exit code nothing shows that it ran at all: arguments that were not valid fail like this, too.
    ran = (f"ran {command}",) if command and (exited or interrupted) else ()
    return Outcome(
        ok=False,
        result=result,
        error=f"Exit code {exited[1]}" if exited else error,
        note=" (interrupted)" if interrupted else f" (exit {exited[1]})" if exited else " (failed)",
        side_effects=ran,
        status="partial" if interrupted else None,
    )


# --- what worked


def _edited(given: _Given) -> Outcome:
    data = given.data if isinstance(given.data, dict) else {}
    path = _path(given)
    diff = _diff(given, data, path)
    verb = "wrote" if given.tool == "Write" else "edited"
    changed_by_user = data.get("userModified") is True
    return Outcome(
        ok=True,
        result=given.text,
        diff=diff,
        note=f" {tally(diff)}" if diff else "",
        side_effects=(f"{verb} {path}",) if path else (),
        allowed=Allowed(by="human_approved", reference="the user changed the edit") if changed_by_user else None,
    )


def _diff(given: _Given, data: Json, path: str) -> str | None:
    created = data.get("type") == "create"
    if diff := from_hunks(path, items(data.get("structuredPatch")), new_file=created):
        return diff
    if given.tool == "NotebookEdit":
        return _notebook_diff(given, data, path)
    content = data.get("content", given.arguments.get("content"))
    if given.tool == "Write":
        # Without its original, only of a file that was not there before is it known what changed.
        created = created or given.text.startswith("File created")
        return unified(path, None, content) if created and isinstance(content, str) else None
    edits = items(given.arguments.get("edits")) if given.tool == "MultiEdit" else [given.arguments]
    return "".join(_replaced(path, edit) for edit in edits if isinstance(edit, dict)) or None


def _replaced(path: str, edit: Json) -> str:
    old, new = edit.get("old_string"), edit.get("new_string")
    return unified(path, old, new) if isinstance(old, str) and isinstance(new, str) else ""


def _notebook_diff(given: _Given, data: Json, path: str) -> str | None:
    before, after = data.get("original_file"), data.get("updated_file")
    if isinstance(before, str) and isinstance(after, str) and before != after:
        return unified(path, before, after)
    deleted = given.arguments.get("edit_mode") == "delete"
    old = words(data.get("old_source"))
    new = "" if deleted else words(data.get("new_source", given.arguments.get("new_source")))
    return unified(path, old, new) or None


def _command(given: _Given) -> Outcome | None:
    data = given.data
    command = words(given.arguments.get("command"))
    effects = (f"ran {command}",) if command else ()
    if not isinstance(data, dict):
        return Outcome(ok=True, result={"output": given.text}, side_effects=effects)
    kept = {name: light(value) for name, value in data.items() if value not in (None, False, "") or name in _STREAMS}
    if data.get("isImage") is True:
        kept["stdout"] = reference(words(data.get("stdout")), "image")
    if data.get("interrupted") is True:
        return Outcome(
            ok=False, result=kept, error="interrupted", note=" (interrupted)", side_effects=effects, status="partial"
        )
    if task := words(data.get("backgroundTaskId")):
        note = f" (in background: {one_line(task)})"
        return Outcome(ok=True, result=kept, note=note, side_effects=effects, status="pending")
    if not data.get("returnCodeInterpretation"):
        kept["exit_code"] = 0  # Any other is told as an error, or interpreted.
    return Outcome(ok=True, result=kept, side_effects=effects)


_STREAMS = ("stdout", "stderr")


def _read(given: _Given) -> Outcome | None:
    data = given.data if isinstance(given.data, dict) else {}
    file = data.get("file")
    if not isinstance(file, dict):
        count = len(_NUMBERED_LINE.findall(given.text))
        return (
            Outcome(ok=True, result={"content": given.text, "lines": count}, note=f" ({counted(count, 'line')})")
            if count
            else None
        )
    if data.get("type") != "text":
        sort, kept = words(data.get("type")), light(file)
        if isinstance(picture := file.get("base64"), str):
            kept["base64"] = reference(picture, words(file.get("type")) or "application/octet-stream")
        return Outcome(ok=True, result={"type": sort, "file": kept}, note=f" ({one_line(sort)})")
    lines = whole_number(file.get("numLines"))
    content = words(file.get("content"))
    lines = content.count("\n") + 1 if lines is None else lines
    result: dict[str, Any] = {"content": content, "lines": lines}
    named = {"start_line": "startLine", "total_lines": "totalLines"}
    result |= {name: file[theirs] for name, theirs in named.items() if whole_number(file.get(theirs)) is not None}
    return Outcome(ok=True, result=result, note=f" ({counted(lines, 'line')})")


def _found(given: _Given) -> Outcome | None:
    if not isinstance(given.data, dict):
        return None
    files, lines = whole_number(given.data.get("numFiles")), whole_number(given.data.get("numLines"))
    note = f" ({counted(lines, 'line')})" if lines else "" if files is None else f" ({counted(files, 'file')})"
    return Outcome(ok=True, result=light(given.data), note=note, duration_ms=whole_number(given.data.get("durationMs")))


def _searched(given: _Given) -> Outcome | None:
    if not isinstance(given.data, dict):
        return None
    results = items(given.data.get("results"))
    hits = [hit for found in results if isinstance(found, dict) for hit in items(found.get("content"))]
    links = [hit for hit in hits if isinstance(hit, dict) and isinstance(hit.get("url"), str)]
    said = "\n".join(found for found in results if isinstance(found, str))
    query = words(given.data.get("query")) or words(given.arguments.get("query"))
    result = {
        "query": query,
        "urls": [link["url"] for link in links],
        "titles": [words(link.get("title")) for link in links],
    }
    return Outcome(
        ok=True, result=result | ({"text": said} if said else {}), note=f" ({counted(len(links), 'result')})"
    )


def _fetched(given: _Given) -> Outcome | None:
    if not isinstance(given.data, dict):
        return None
    code = whole_number(given.data.get("code"))
    note = "" if code is None else f" (HTTP {code})"
    return Outcome(ok=True, result=light(given.data), note=note, duration_ms=whole_number(given.data.get("durationMs")))


def _delegated(given: _Given) -> Outcome:
    data = given.data if isinstance(given.data, dict) else {}
    name = words(data.get("agentType")) or words(given.arguments.get("subagent_type")) or "agent"
    told = _AGENT_ID(given.text)
    launched = words(data.get("agentId")) or (told[1] if told else "")
    # What the subagent was asked stands in the arguments, and all that it did in a chain of its own.
    result = {key: light(value) for key, value in data.items() if key not in ("prompt", "content")}
    if answer := text_in(data.get("content")) or given.text:
        result["content"] = answer
    goes_on = data.get("isAsync") is True or words(data.get("status")).endswith("_launched")
    return Outcome(
        ok=True,
        result=result,
        note=f" [{name}: in background]" if goes_on else _scorecard(name, data),
        side_effects=(f"delegated to {name}",),
        status="pending" if goes_on else None,
        duration_ms=whole_number(data.get("totalDurationMs")),
        launched=launched,
    )


def _scorecard(name: str, data: Json) -> str:
    """What a subagent did, in a few words: `[Explore: 2 edits, +14/-3, 9 tool calls]`."""
    stats = data.get("toolStats")
    parts: list[str] = []
    if isinstance(stats, dict):
        edits, added, removed = (
            whole_number(stats.get(key)) or 0 for key in ("editFileCount", "linesAdded", "linesRemoved")
        )
        parts = [counted(edits, "edit"), f"+{added}/-{removed}"]
    calls = whole_number(data.get("totalToolUseCount"))
    if calls is not None:
        parts.append(counted(calls, "tool call"))
    return f" [{one_line(name)}: {', '.join(parts)}]" if parts else f" [{one_line(name)}]"


def _plain(given: _Given, content: Any) -> Any:
    """Of tools that we know nothing about: the object, and what the model saw of it where that is something else."""
    said = given.text if isinstance(content, str) else light(content)
    if not isinstance(given.data, dict | list) or not given.data:
        return said
    data = light(given.data)
    return data if not said or data == said else {"said": said, "data": data}


def _approved(given: _Given) -> Allowed | None:
    """A plan that was shown to the user, and that the user agreed to: the one approval that a transcript spells out."""
    if given.tool == "ExitPlanMode" and given.text.startswith("User has approved"):
        return Allowed(by="human_approved", reference="the user approved the plan")
    return None


def _path(given: _Given) -> str:
    data = given.data if isinstance(given.data, dict) else {}
    told = (data.get("filePath"), data.get("notebook_path"))
    asked = (given.arguments.get("file_path"), given.arguments.get("notebook_path"))
    return next((path for path in (*told, *asked) if isinstance(path, str) and path), "")


_READERS: Mapping[str, Callable[[_Given], Outcome | None]] = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), _edited),
    **dict.fromkeys(_COMMANDS, _command),
    **dict.fromkeys(("Glob", "Grep", "LS"), _found),
    **dict.fromkeys(AGENT_TOOLS, _delegated),
    "Read": _read,
    "WebSearch": _searched,
    "WebFetch": _fetched,
}
