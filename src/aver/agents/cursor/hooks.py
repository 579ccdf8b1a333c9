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
from aver.hooks.contract import (
    Hook,
    HookDecision,
    HookReply,
    ParsedPayload,
    encode_answer,
    event_from_payload,
    first_line,
    get_text,
    parse_duration_ms,
    pick_present,
)
from aver.ingest.contract import AgentCall, AgentEvent, Permission
from aver.ingest.foreign_json import parse_embedded_json

TOOL = "cursor"

MCP_SERVER = "cursor"
"""In the names of MCP tools: Cursor does not tell which server a tool is of."""

_PERSON_ASKING_EVENTS = ("beforeShellExecution", "beforeMCPExecution")
_TOOLS_WITH_OWN_EVENT = ("Shell", "Read", "MCP")
_GATE_NAMES = {"Delete": "delete_file", "Shell": "Bash", "StrReplace": "str_replace"}
"""What the gate knows tools by, where Cursor's hooks have a name of their own."""

_PROVENANCE = ("cwd", "generation_id", "cursor_version", "workspace_roots", "composer_mode", "sandbox")
_OMITTED_FIELDS = frozenset(
    {"conversation_id", "session_id", "hook_event_name", "transcript_path", "agent_transcript_path", "model"}
    | {"user_email", *_PROVENANCE}
)


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """What an event of Cursor asks and tells."""
    session = get_text(payload, "conversation_id") or get_text(payload, "session_id")
    if event in GATING_EVENTS:
        return ParsedPayload(session, asks=_build_action(event, payload, session))
    if event in ("postToolUse", "postToolUseFailure") and get_text(payload, "tool_use_id"):
        return ParsedPayload(session, events=(_build_call_event(event, payload),))
    if event == "afterFileEdit":
        return ParsedPayload(session, events=(_build_edit_note(event, payload),))
    if event == "sessionEnd":
        words = f"session ended: {get_text(payload, 'reason')}"
        return ParsedPayload(
            session, events=(_build_hook_event(event, words, payload, what="session", ends_session=True),), closes=("",)
        )
    words = {
        "sessionStart": "session started",
        "beforeSubmitPrompt": f"prompt submitted: {first_line(get_text(payload, 'prompt'))}",
        "preCompact": f"context compacted: {get_text(payload, 'trigger')}",
        "subagentStop": f"subagent ended: {get_text(payload, 'subagent_type')}",
        "stop": f"turn ended: {get_text(payload, 'status')}",
    }.get(event, f"hook event: {event}")
    what = "session" if event == "sessionStart" else "note"
    return ParsedPayload(session, events=(_build_hook_event(event, words, payload, what=what),))


def _build_hook_event(event: str, words: str, payload: Mapping[str, Any], **more: Any) -> AgentEvent:
    said = {name: value for name, value in payload.items() if name not in _OMITTED_FIELDS}
    model = get_text(payload, "model") or None
    return event_from_payload(
        event, words, {"event": event, **said}, environment=pick_present(payload, _PROVENANCE), model=model, **more
    )


# --- asking


def _build_action(event: str, payload: Mapping[str, Any], session: str) -> Any:
    """The question; None where another event asks it."""
    from aver.hooks.action import build_action, call_id_for, diff_for_edit

    tool, arguments = _tool_and_arguments(event, payload)
    if event == "preToolUse" and (tool in _TOOLS_WITH_OWN_EVENT or tool.startswith(("MCP:", "mcp__"))):
        return None
    workspace, cwd = _workspace(payload), get_text(payload, "cwd")
    name = _GATE_NAMES.get(tool, tool)
    return build_action(
        name,
        arguments,
        caller=TOOL,
        session=session,
        workspace=workspace,  # Never `cwd` in its place: that is where the agent wants a command to run.
        cwd=cwd,
        diff=diff_for_edit(name, arguments, workspace),
        # Events of their own for commands, MCP tools and reads do not tell the call's id.
        call_id=call_id_for(TOOL, session, get_text(payload, "tool_use_id")),
    )


def _tool_and_arguments(event: str, payload: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if event == "beforeShellExecution":
        return "Bash", {"command": get_text(payload, "command")}
    if event == "beforeReadFile":
        return "Read", {"file_path": get_text(payload, "file_path")}
    name = get_text(payload, "tool_name")
    return (f"mcp__{MCP_SERVER}__{name}" if event == "beforeMCPExecution" else name), _read_arguments(payload)


def _read_arguments(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool is given. Some versions write it as JSON inside a string."""
    given = parse_embedded_json(payload.get("tool_input"))
    return given if isinstance(given, dict) else {"input": given}


def _workspace(payload: Mapping[str, Any]) -> str:
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    return first if isinstance(first, str) else ""


# --- telling


def _build_call_event(event: str, payload: Mapping[str, Any]) -> AgentEvent:
    from aver.agents.cursor.calls import (
        build_diff,
        build_summary,
        find_exit_code,
        find_path,
        launched_agent_id,
        list_effects,
        normalize_streams,
    )

    identifier, tool, arguments = (
        get_text(payload, "tool_use_id"),
        get_text(payload, "tool_name"),
        _read_arguments(payload),
    )
    result, failed = parse_embedded_json(payload.get("tool_output")), event == "postToolUseFailure"
    path = find_path(arguments, result)
    diff = None if failed else build_diff(tool, arguments, result, {}, path)
    ok = not failed and not find_exit_code(result)
    denied = failed and get_text(payload, "failure_type") == "permission_denied"
    return AgentEvent(
        what="call",
        key=identifier,
        summary=build_summary(tool, arguments, path, diff, result),
        at=now(),
        duration_ms=parse_duration_ms(payload.get("duration")),
        model=get_text(payload, "model") or None,
        allowed=Permission(denied=denied),
        call=AgentCall(
            tool=tool,
            id=identifier,
            arguments=arguments,
            result=normalize_streams(tool, result),
            ok=ok,
            error=get_text(payload, "error_message") or None,
            diff=diff,
        ),
        side_effects=() if denied else tuple(list_effects(tool, arguments, path)),
        launched=launched_agent_id(tool, result),
        environment=pick_present(payload, _PROVENANCE),
    )


def _build_edit_note(event: str, payload: Mapping[str, Any]) -> AgentEvent:
    from aver.agents.cursor.calls import build_diff
    from aver.ingest.diffs import format_line_counts

    path = get_text(payload, "file_path")
    diff = build_diff("multiedit", {"edits": payload.get("edits")}, None, {}, path) or ""
    said = {"event": event, "file_path": path, "diff": diff}
    words = f"edited: {path} {format_line_counts(diff)}"
    return event_from_payload(
        event, words, said, environment=pick_present(payload, _PROVENANCE), model=get_text(payload, "model") or None
    )


# --- answering


def reply_ruling(event: str, ruling: HookDecision) -> HookReply:
    """The answer to an event that asks."""
    if ruling.word == "leave":
        return HookReply("{}")
    word = "deny" if ruling.word == "ask" and event not in _PERSON_ASKING_EVENTS else ruling.word
    said = {"permission": word, "user_message": ruling.reason, "agent_message": ruling.reason}
    if event == "preToolUse":  # Earlier versions had other names for it.
        said |= {"decision": word, "reason": ruling.reason}
    return HookReply(encode_answer(said))


def reply_done(event: str) -> HookReply:
    return HookReply('{"continue": true}' if event == "beforeSubmitPrompt" else "{}")


def reply_failed(event: str, why: str) -> HookReply:
    return HookReply("{}") if event in GATING_EVENTS else HookReply(code=1)


def reply_stop(event: str, why: str) -> HookReply:
    if event == "beforeSubmitPrompt":
        return HookReply(encode_answer({"continue": False, "user_message": why}))
    return reply_failed(event, why)


GATING_EVENTS = frozenset({"preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"})

HOOK = Hook(
    tool=TOOL,
    gating=GATING_EVENTS,
    read=read_event,
    reply=reply_ruling,
    done=reply_done,
    failed=reply_failed,
    stop=reply_stop,
)
