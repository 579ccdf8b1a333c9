"""The outcome of a Codex call, from its output and its reports.

The output is the text that the model saw. Reports are events with facts that Codex itself knows:

    {"type": "function_call_output", "call_id": "call_2", "output": "Process exited with code 1\\nOutput:\\n1 failed"}
    {"type": "exec_command_end", "call_id": "call_2", "exit_code": 1, "stdout": "1 failed", "stderr": ""}

Versions of Codex differ in which of them they write, in which order and in which form. `build_outcome` joins all of
them. A call failed if any of them says so.

The output of a command, of a server and of a file is foreign text: it may contain any words. Codex writes a head before
the output of every command that it starts, so a text without a head is Codex's own where the tool runs commands or
patches. Only there, and in the `Err` of a report, words can say that a call was refused. An exit code counts only in
the head of such a tool. Where no field says how a call ended, `from_words` is true, and the record notes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aver.fast_dataclass import dataclass
from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.command_line import command_line
from aver.ingest.foreign_json import content_text, first_text, parse_embedded_json
from aver.ingest.patches import BEGIN, Patch, patch_from_changes, read_patch

NO_OUTPUT = object()
"""The output of a call that has none yet."""

HEAD_MAX = 2_000
"""Characters at the start of an output in which Codex says how the command ended."""

ERROR_MAX = 2_000
"""Characters of an output that become the error of a failed call. The result has the whole output."""

SHELL_TOOLS = ("shell", "container.exec", "local_shell", "shell_command", "exec_command", "write_stdin", "user_shell")
"""Tools that run commands. Their output says how the command ended; without that, the command did not run."""

_HEAD_LINE = re.compile(
    r"(?:Chunk ID: .*|Wall time: (?P<wall>[0-9.]{1,20}) seconds|Process exited with code (?P<exited>-?[0-9]{1,9})"
    r"|Exit code: (?P<code>-?[0-9]{1,9})|Process running with session ID (?P<running>.*)|Original token count: .*"
    r"|Total output lines: .*)"
).fullmatch

_HEADED_TOOLS = frozenset({*SHELL_TOOLS, "apply_patch"})
"""Tools whose output has a head if they ran. Without one, the text is Codex's own."""

_FAILURE_TEXT = re.compile(
    r"unsupported (?:custom )?(?:tool )?call\b|failed to parse function arguments|[a-z_]{1,40} verification failed: "
    r"|[a-z_]{1,40} failed(?: for .{1,200})?: |execution error: |err: |aborted\b|command aborted by user"
).match
_DENIED_BY_PERSON = re.compile(
    r"(?:exec command|patch|command) rejected by user|user (?:rejected|cancelled) MCP tool call[^\n]{0,400}"
).fullmatch
_DENIED_BY_RULE = re.compile(
    r"approval policy is Never; reject command|MCP tool call requires approval, but approval policy is never"
    r"|`[^\n]{1,400}` rejected: |patch rejected: |write_stdin rejected: |rejected by configuration"
    r"|[^\n]{1,200}; rejected by user approval settings|automatic approval review denied the action"
    r"|(?:Command|Tool call) blocked by PreToolUse hook: |MCP tool call blocked by app configuration"
).match
_MCP_REFUSAL = re.compile(
    r"user (?:rejected|cancelled) MCP tool call[^\n]{0,400}"
    r"|MCP tool call (?:requires approval, but approval policy is never|blocked by app configuration)[^\n]{0,400}"
).fullmatch
"""The whole `Err` of a call that Codex did not send to the server. Codex words a server's own error in another way."""


class Refusal(NamedTuple):
    """A call was asked for and did not happen."""

    by_person: bool | None
    """None where the rollout only says that it was declined."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """The facts about a call in one event."""

    id: str
    kind: str
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    exit_code: int | None = None
    ok: bool | None = None
    texts: Mapping[str, str]
    """`stdout`, `stderr`, `aggregated_output`."""
    answer: Any = None
    """The answer of an MCP server or another tool."""
    error: str = ""
    duration_ms: int | None = None
    changes: Any = None
    declined: bool = False
    asked: bool = False
    """A person or a reviewer was asked about a patch, and allowed it."""
    source: str = ""
    launched: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexOutcome:
    result: Any
    ok: bool | None
    error: str | None = None
    running: str = ""
    """The id of the process, if the command is still running."""
    diff: str | None = None
    effects: tuple[str, ...] = ()
    duration_ms: int | None = None
    refusal: Refusal | None = None
    launched: str = ""
    from_words: bool = False
    """Whether only the text of the output says how the call ended."""


class _ParsedOutput(NamedTuple):
    body: Any
    exit_code: int | None = None
    ok: bool | None = None
    seconds: float | None = None
    running: str = ""
    from_words: bool = False
    """Whether `ok` is read from the text, because the output has neither a head nor fields."""


def read_report(kind: str, body: Mapping[str, Any]) -> CallReport | None:
    """Read the facts about a call in an event, or in the item of an event; None if it names no call."""
    identifier = body.get("call_id") or body.get("id")
    if not isinstance(identifier, str) or not identifier:
        return None
    invocation = body.get("invocation")
    named = invocation if isinstance(invocation, Mapping) else body
    answer, error = _read_answer(kind, body)
    exit_code, status = _int_or_none(body.get("exit_code")), body.get("status")
    source = body.get("source")
    agents = body.get("receiver_thread_ids")
    launched = body.get("new_thread_id") or (agents[0] if isinstance(agents, list) and len(agents) == 1 else None)
    tool, server = named.get("tool"), named.get("server")
    if isinstance(tool, str) and tool:
        tool_name = f"mcp__{server}__{tool}" if isinstance(server, str) and server else tool
    else:
        tool_name = "user_shell" if named.get("source") == "user_shell" else _TOOL_BY_KIND.get(kind, kind)
    given = named.get("arguments")
    if isinstance(given, Mapping):
        arguments: dict[str, Any] = dict(given)
    else:
        keys = ("command", "cwd", "query", "action", "prompt", "path", "revised_prompt", "saved_path")
        arguments = {key: named[key] for key in keys if named.get(key) is not None}
    return CallReport(
        id=identifier,
        kind=kind,
        tool=tool_name,
        arguments=arguments,
        exit_code=exit_code,
        ok=_read_success(exit_code, body.get("success"), status, answer, error),
        texts={name: text for name in _STREAM_FIELDS if isinstance(text := body.get(name), str)},
        answer=answer,
        error=error,
        duration_ms=_parse_duration(body.get("duration")),
        changes=body.get("changes"),
        declined=status == "declined",
        asked=body.get("auto_approved") is False,
        source=source if isinstance(source, str) else "",
        launched=launched if isinstance(launched, str) and body.get("tool", "spawn_agent") == "spawn_agent" else "",
    )


_STREAM_FIELDS = ("stdout", "stderr", "aggregated_output")


def build_outcome(
    tool: str, arguments: Mapping[str, Any], output: Any, reports: Sequence[CallReport], cwd: str
) -> CodexOutcome:
    """Join the output of a call and the reports about it."""
    parsed = _parse_output(output, tool, has_patch=BEGIN in command_line(arguments))
    refusal = _find_refusal(tool, parsed, reports)
    codes = (parsed.exit_code, *(report.exit_code for report in reports))
    exit_code = next((code for code in codes if code is not None), None)
    ok = _combine_success(
        [parsed.ok, None if exit_code is None else exit_code == 0, *(report.ok for report in reports)]
    )
    if refusal is not None:
        ok = False
    # The patch of a failed call changed nothing.
    patch = _find_patch(tool, arguments, reports, cwd) if ok is not False else None
    command = command_line(arguments)
    launched = next((report.launched for report in reports if report.launched), "")
    if not launched and tool == "spawn_agent":
        launched = first_text(parse_embedded_json(parsed.body), "agent_id")
    durations = [report.duration_ms for report in reports if report.duration_ms is not None]
    if not durations and parsed.seconds is not None:
        durations = [round(parsed.seconds * 1000)]
    effects = [f"{verb} {path}" for verb, path in patch.changes] if patch is not None else []
    # A command that only feeds a patch to `apply_patch` is an edit, not a command.
    if command and (ok or exit_code is not None or parsed.running) and not (patch is not None and BEGIN in command):
        effects.append(f"ran {command}")
    # The type of the subagent tells a reader more than its id.
    if launched:
        named = arguments.get("agent_type") or arguments.get("task_name")
        agent_name = named if isinstance(named, str) else launched
        effects.append(f"delegated to {agent_name}")
    return CodexOutcome(
        result=_build_result(parsed, exit_code, reports),
        ok=ok,
        error=_find_error(parsed, exit_code, reports) if ok is False else None,
        running=parsed.running,
        diff=None if patch is None else patch.diff,
        effects=tuple(effects),
        duration_ms=durations[0] if durations else None,
        refusal=refusal,
        launched=launched,
        from_words=_is_told_by_words(parsed, exit_code, refusal, reports),
    )


def _is_told_by_words(
    parsed: _ParsedOutput, exit_code: int | None, refusal: Refusal | None, reports: Sequence[CallReport]
) -> bool:
    if refusal is not None:
        return refusal.by_person is not None  # `declined` is a field of a report; the others are words.
    return parsed.from_words and exit_code is None and all(report.ok is None for report in reports)


def _parse_output(output: Any, tool: str, *, has_patch: bool = False) -> _ParsedOutput:
    if output is NO_OUTPUT:
        return _ParsedOutput(None)
    is_headed = tool in _HEADED_TOOLS
    # JSON inside a text is Codex's own only for the tools that have a head. A server's answer may be JSON, too.
    value = parse_embedded_json(output) if is_headed or tool == "spawn_agent" else output
    if isinstance(value, Mapping):
        facts = value.get("metadata")
        if is_headed and isinstance(facts, Mapping) and "output" in value:
            seconds = facts.get("duration_seconds")
            return _ParsedOutput(value["output"], _int_or_none(facts.get("exit_code")), seconds=_float_or_none(seconds))
        if isinstance(output, Mapping) and "content" in value and isinstance(value.get("success"), bool):
            return _ParsedOutput(replace_images(value["content"]), ok=value["success"])
    if isinstance(output, list):
        return _parse_blocks(output, is_headed=is_headed)
    if not isinstance(output, str):
        done = output.get("status") in ("completed", "generating") if isinstance(output, Mapping) else True
        return _ParsedOutput(replace_images(output), ok=done)
    parsed = _parse_headed_output(output, is_headed=is_headed, has_patch=has_patch)
    if parsed is not None:
        return parsed
    if is_headed or (tool == "spawn_agent" and value is output):
        return _ParsedOutput(output, ok=False, from_words=True)
    # A tool without a head: words of failure may be Codex's, or the tool's own output. Then nobody knows.
    return _ParsedOutput(output, ok=None if _FAILURE_TEXT(output) else True, from_words=True)


def _parse_blocks(output: list[Any], *, is_headed: bool) -> _ParsedOutput:
    """Parse content blocks. Codex may have added its own head to the first of them."""
    first = output[0].get("text") if output and isinstance(output[0], Mapping) else None
    head = _parse_headed_output(first, is_headed=is_headed) if isinstance(first, str) else None
    if head is None:
        body = output
        fails = isinstance(first, str) and _FAILURE_TEXT(first) is not None
        head = _ParsedOutput(None, ok=False if is_headed else None if fails else True, from_words=True)
    else:
        body = output[1:] if not head.body else [{**output[0], "text": head.body}, *output[1:]]
    only_text = all(isinstance(block, Mapping) and isinstance(block.get("text"), str) for block in body)
    return head._replace(body=content_text(body) if only_text else replace_images(body))


def _parse_headed_output(text: str, *, is_headed: bool, has_patch: bool = False) -> _ParsedOutput | None:
    """Parse an output whose first lines say how a command ended; None if it has no such head.

    The command's own output follows `Output:`. A text about exit codes there is the command's, so it does not count.
    For a tool that runs no command, an exit code in the head is the tool's own output.
    """
    facts: dict[str, str] = {}
    # If Codex finds a patch inside a command, the output has a second head inside the first.
    for _ in range(2 if has_patch else 1):
        lines = text[:HEAD_MAX].split("\n")
        size = 0
        for line in lines:
            size += len(line) + 1
            if line == "Output:":
                break
            found = _HEAD_LINE(line)
            if found is None or (not is_headed and not line.startswith(("Wall time: ", "Total output lines: "))):
                return _output_from_facts(facts, text) if facts else None
            facts |= {name: value for name, value in found.groupdict().items() if value is not None} or {"": ""}
        else:
            return _output_from_facts(facts, text) if facts else None
        text = text[size:]
        if facts.keys() & {"exited", "code", "running"}:
            break
    return _output_from_facts(facts, text)


def _output_from_facts(facts: Mapping[str, str], body: str) -> _ParsedOutput:
    code = facts.get("exited") or facts.get("code")
    seconds = _float_or_none(facts.get("wall"))
    running = facts.get("running", "")
    return _ParsedOutput(body, None if code is None else int(code), None if running else True, seconds, running)


def _find_refusal(tool: str, parsed: _ParsedOutput, reports: Sequence[CallReport]) -> Refusal | None:
    """Return the refusal of a call, if a report or Codex's own text states one."""
    if parsed.exit_code is not None or any(report.answer is not None or report.exit_code == 0 for report in reports):
        return None
    if any(report.declined for report in reports):
        return Refusal(by_person=None, words="declined")
    words = [report.error.strip() for report in reports if report.error and _MCP_REFUSAL(report.error.strip())]
    # The text of a tool that ran commands or patches is Codex's own only if it has no head: then nothing ran.
    if tool in _HEADED_TOOLS and parsed.from_words and isinstance(parsed.body, str):
        words.append(parsed.body[:HEAD_MAX].strip())
    for text in words:
        if _DENIED_BY_PERSON(text):
            return Refusal(by_person=True, words=text)
        if _DENIED_BY_RULE(text):
            return Refusal(by_person=False, words=text)
    return None


def _find_patch(tool: str, arguments: Mapping[str, Any], reports: Iterable[CallReport], cwd: str) -> Patch | None:
    for report in reports:
        if (done := patch_from_changes(report.changes, cwd)) is not None:
            return done
    given = [arguments.get(name) for name in ("input", "patch", "arguments")] if tool == "apply_patch" else []
    texts = [text for text in (*given, command_line(arguments)) if isinstance(text, str)]
    words = arguments.get("command")
    if isinstance(words, list) and words[:1] == ["apply_patch"]:
        texts += [word for word in words if isinstance(word, str)]
    return next((patch for text in texts if (patch := read_patch(text)) is not None), None)


def _build_result(parsed: _ParsedOutput, exit_code: int | None, reports: Sequence[CallReport]) -> Any:
    texts = {name: text for report in reports for name, text in report.texts.items() if text and text != parsed.body}
    answers = [report.answer for report in reports if report.answer is not None]
    if exit_code is None and not texts and not answers:
        return parsed.body
    result: dict[str, Any] = {} if parsed.body is None else {"output": parsed.body}
    if exit_code is not None:
        result["exit_code"] = exit_code
    if answers:
        result["answer"] = answers[-1]
    return result | texts


def _find_error(parsed: _ParsedOutput, exit_code: int | None, reports: Iterable[CallReport]) -> str:
    words = [word for report in reports for word in (report.error, report.texts.get("stderr", "")) if word]
    if exit_code:
        words.append(f"exit code {exit_code}")
    if isinstance(parsed.body, str):
        words.append(parsed.body.strip())
    return next((word[:ERROR_MAX] for word in words if word), "failed")


def _read_answer(kind: str, body: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the answer of a tool, and its error."""
    result, error = body.get("result"), body.get("error")
    if kind in ("ImageGeneration", "image_generation_end") and isinstance(result, str):
        result = digest_reference(result, "image")
    if isinstance(result, dict) and len(result) == 1 and ("Ok" in result or "Err" in result):
        error = result.get("Err", error)
        result = result.get("Ok")
    if isinstance(error, Mapping):
        error = error.get("message")
    items = body.get("content_items")
    return replace_images(items if result is None else result), error if isinstance(error, str) else ""


def _read_success(exit_code: int | None, success: Any, status: Any, answer: Any, error: str) -> bool | None:
    verdicts = [None if exit_code is None else exit_code == 0, success if isinstance(success, bool) else None]
    if status in ("completed", "failed", "declined"):
        verdicts.append(status == "completed")
    if isinstance(answer, Mapping) and (answer.get("isError") is True or answer.get("is_error") is True):
        verdicts.append(False)
    return _combine_success([*verdicts, False if error else None])


def _combine_success(verdicts: Iterable[bool | None]) -> bool | None:
    known = {report for report in verdicts if report is not None}
    return None if not known else False not in known


_TOOL_BY_KIND = {
    "exec_command_end": "exec_command",
    "CommandExecution": "exec_command",
    "patch_apply_end": "apply_patch",
} | {
    "FileChange": "apply_patch",
    "web_search_end": "web_search",
    "WebSearch": "web_search",
    "ImageGeneration": "image_generation",
    "image_generation_end": "image_generation",
    "ImageView": "view_image",
    "view_image_tool_call": "view_image",
}


def _parse_duration(value: Any) -> int | None:
    """`{"secs", "nanos"}`, or seconds as a number or in words: `1.5s`, `20ms`."""
    if isinstance(value, Mapping):
        seconds, nanos = _int_or_none(value.get("secs")), _int_or_none(value.get("nanos"))
        return None if seconds is None else seconds * 1000 + (nanos or 0) // 1_000_000
    if isinstance(value, str) and (found := re.fullmatch(r"([0-9.]{1,20})(ms|s)", value)):
        number = _float_or_none(found[1])
        return None if number is None else round(number * (1 if found[2] == "ms" else 1000))
    return None


def _int_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _float_or_none(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and 0 <= number < 2**40 else None
