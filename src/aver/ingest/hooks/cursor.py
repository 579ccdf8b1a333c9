"""Cursor's hooks: https://cursor.com/docs/agent/hooks, as of version 2.

Commands, MCP tools and reads have events of their own that ask, and so has every tool (`preToolUse`): what has one of
its own is judged there, once. A person can be asked about commands and MCP tools; elsewhere `ask` is not understood,
and what a person must approve is denied with the words that say how.

`postToolUse` tells of a call by its id. `afterFileEdit` tells what became of a file, without one: it is kept as a note
with the diff, beside the call.

An event that asks is always answered in words: on some of them Cursor takes a failing hook for a denial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.clock import now
from aver.ingest.deed import Allowed, Call, Deed
from aver.ingest.hooks.contract import (
    Hook,
    Reading,
    Reply,
    Ruling,
    first_line,
    happened,
    milliseconds,
    provenance,
    text,
    written,
)
from aver.ingest.records import as_json

__all__ = ["HOOK"]

TOOL = "cursor"

SERVER = "cursor"
"""In the names of MCP tools: Cursor does not tell which server a tool is of."""

_ASKS_A_PERSON = ("beforeShellExecution", "beforeMCPExecution")
_JUDGED_ELSEWHERE = ("Shell", "Read", "MCP")
_GATE_NAMES = {"Delete": "delete_file", "Shell": "Bash", "StrReplace": "str_replace"}
"""What the gate knows tools by, where Cursor's hooks have a name of their own."""

_PROVENANCE = ("cwd", "generation_id", "cursor_version", "workspace_roots", "composer_mode", "sandbox")
_SAID_ELSEWHERE = frozenset(
    {"conversation_id", "session_id", "hook_event_name", "transcript_path", "agent_transcript_path", "model"}
    | {"user_email", *_PROVENANCE}
)


def read(event: str, payload: Mapping[str, Any]) -> Reading:
    """What an event of Cursor asks and tells."""
    session = text(payload, "conversation_id") or text(payload, "session_id")
    if event in GATING:
        return Reading(session, asks=_asked(event, payload, session))
    if event in ("postToolUse", "postToolUseFailure") and text(payload, "tool_use_id"):
        return Reading(session, deeds=(_called(event, payload),))
    if event == "afterFileEdit":
        return Reading(session, deeds=(_edited(event, payload),))
    if event == "sessionEnd":
        words = f"session ended: {text(payload, 'reason')}"
        return Reading(session, deeds=(_told(event, words, payload, what="session", ends_session=True),), closes=("",))
    words = {
        "sessionStart": "session started",
        "beforeSubmitPrompt": f"prompt submitted: {first_line(text(payload, 'prompt'))}",
        "preCompact": f"context compacted: {text(payload, 'trigger')}",
        "subagentStop": f"subagent ended: {text(payload, 'subagent_type')}",
        "stop": f"turn ended: {text(payload, 'status')}",
    }.get(event, f"hook event: {event}")
    what = "session" if event == "sessionStart" else "note"
    return Reading(session, deeds=(_told(event, words, payload, what=what),))


def _told(event: str, words: str, payload: Mapping[str, Any], **more: Any) -> Deed:
    said = {name: value for name, value in payload.items() if name not in _SAID_ELSEWHERE}
    model = text(payload, "model") or None
    return happened(
        event, words, {"event": event, **said}, environment=provenance(payload, _PROVENANCE), model=model, **more
    )


# --- asking


def _asked(event: str, payload: Mapping[str, Any], session: str) -> Any:
    """The question; None where another event asks it."""
    from aver.ingest.hooks.asking import action_of, edits_diff

    tool, arguments = _tool_and_arguments(event, payload)
    if event == "preToolUse" and (tool in _JUDGED_ELSEWHERE or tool.startswith(("MCP:", "mcp__"))):
        return None
    workspace, cwd = _workspace(payload), text(payload, "cwd")
    name = _GATE_NAMES.get(tool, tool)
    return action_of(
        name,
        arguments,
        caller=TOOL,
        session=session,
        workspace=workspace,  # Never `cwd` in its place: that is where the agent wants a command to run.
        cwd=cwd,
        diff=edits_diff(name, arguments, workspace),
    )


def _tool_and_arguments(event: str, payload: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if event == "beforeShellExecution":
        return "Bash", {"command": text(payload, "command")}
    if event == "beforeReadFile":
        return "Read", {"file_path": text(payload, "file_path")}
    name = text(payload, "tool_name")
    return (f"mcp__{SERVER}__{name}" if event == "beforeMCPExecution" else name), _arguments(payload)


def _arguments(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool is given. Some versions write it as JSON inside a string."""
    given = as_json(payload.get("tool_input"))
    return given if isinstance(given, dict) else {"input": given}


def _workspace(payload: Mapping[str, Any]) -> str:
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    return first if isinstance(first, str) else ""


# --- telling


def _called(event: str, payload: Mapping[str, Any]) -> Deed:
    from aver.ingest.cursor_calls import as_streams, effects, exit_code, launched, summary
    from aver.ingest.cursor_edits import diff_of, path_in

    identifier, tool, arguments = text(payload, "tool_use_id"), text(payload, "tool_name"), _arguments(payload)
    result, failed = as_json(payload.get("tool_output")), event == "postToolUseFailure"
    path = path_in(arguments, result)
    diff = None if failed else diff_of(tool, arguments, result, {}, path)
    ok = not failed and not exit_code(result)
    denied = failed and text(payload, "failure_type") == "permission_denied"
    return Deed(
        what="call",
        key=identifier,
        summary=summary(tool, arguments, path, diff, result),
        at=now(),
        duration_ms=milliseconds(payload.get("duration")),
        model=text(payload, "model") or None,
        allowed=Allowed(denied=denied),
        call=Call(
            tool=tool,
            id=identifier,
            arguments=arguments,
            result=as_streams(tool, result),
            ok=ok,
            error=text(payload, "error_message") or None,
            diff=diff,
        ),
        side_effects=() if denied else tuple(effects(tool, arguments, path)),
        launched=launched(tool, result),
        environment=provenance(payload, _PROVENANCE),
    )


def _edited(event: str, payload: Mapping[str, Any]) -> Deed:
    from aver.ingest.cursor_edits import diff_of
    from aver.ingest.diffs import tally

    path = text(payload, "file_path")
    diff = diff_of("multiedit", {"edits": payload.get("edits")}, None, {}, path) or ""
    said = {"event": event, "file_path": path, "diff": diff}
    words = f"edited: {path} {tally(diff)}"
    return happened(
        event, words, said, environment=provenance(payload, _PROVENANCE), model=text(payload, "model") or None
    )


# --- answering


def reply(event: str, ruling: Ruling) -> Reply:
    """The answer to an event that asks."""
    if ruling.word == "leave":
        return Reply("{}")
    word = "deny" if ruling.word == "ask" and event not in _ASKS_A_PERSON else ruling.word
    said = {"permission": word, "user_message": ruling.reason, "agent_message": ruling.reason}
    if event == "preToolUse":  # Earlier versions had other names for it.
        said |= {"decision": word, "reason": ruling.reason}
    return Reply(written(said))


def done(event: str) -> Reply:
    return Reply('{"continue": true}' if event == "beforeSubmitPrompt" else "{}")


def failed(event: str, why: str) -> Reply:
    return Reply("{}") if event in GATING else Reply(code=1)


def stop(event: str, why: str) -> Reply:
    if event == "beforeSubmitPrompt":
        return Reply(written({"continue": False, "user_message": why}))
    return failed(event, why)


GATING = frozenset({"preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"})

HOOK = Hook(tool=TOOL, gating=GATING, read=read, reply=reply, done=done, failed=failed, stop=stop)
