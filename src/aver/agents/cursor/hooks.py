"""Cursor's hooks: https://cursor.com/docs/agent/hooks, as of version 2.

Commands, MCP tools and reads each have an event of their own that asks. Every tool also has `preToolUse`. Aver judges a
call with an event of its own there, once. Cursor can ask a person about commands and MCP tools. Elsewhere it does not
understand `ask`: such a call is denied, and the reason says how to approve it.

`postToolUse` reports a call by its id. `afterFileEdit` reports the change of a file, without an id: Aver keeps it as a
note with the diff, beside the call.

An event that asks always gets an answer on standard output: on some events Cursor takes a failing hook for a denial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from aver.gate.action import Action

TOOL = "cursor"

MCP_SERVER = "cursor"
"""In the names of MCP tools: Cursor does not say which server a tool belongs to."""

GATING_EVENTS = frozenset({"preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"})
_PERSON_ASKING_EVENTS = ("beforeShellExecution", "beforeMCPExecution")
_TOOLS_WITH_OWN_EVENT = ("Shell", "Read", "MCP")
_GATE_NAMES = {"Delete": "delete_file", "Shell": "Bash", "StrReplace": "str_replace"}
"""The names by which the gate knows tools that have another name in Cursor's hooks."""

_PROVENANCE = ("cwd", "generation_id", "cursor_version", "workspace_roots", "composer_mode", "sandbox")
_OMITTED_FIELDS = frozenset(
    {"conversation_id", "session_id", "hook_event_name", "transcript_path", "agent_transcript_path", "model"}
    | {"user_email", *_PROVENANCE}
)
"""Members of a payload that a record has elsewhere, lead to a file of the machine, or name the person."""

_JSON_FIELDS = ("tool_input", "tool_output", "result_json")
"""Members of a payload that may be JSON inside a string."""


def identify(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the session and the call of a payload; empty where it names none."""
    session = get_text(payload, "conversation_id") or get_text(payload, "session_id")
    return session, get_text(payload, "tool_use_id")


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """Return what an event of Cursor asks or reports."""
    session, _ = identify(payload)
    if event in GATING_EVENTS:
        return ParsedPayload(session, asks=_build_action(event, payload, session))
    if event in ("postToolUse", "postToolUseFailure") and get_text(payload, "tool_use_id"):
        return ParsedPayload(session, events=(_build_call_event(event, payload),))

    # Inside a text of JSON, escapes would hide secrets from masking.
    embedded = {name: parse_embedded_json(payload[name]) for name in _JSON_FIELDS if name in payload}
    content: dict[str, Any] = {"event": event, **payload, **embedded}
    words = {
        "sessionStart": "session started",
        "sessionEnd": f"session ended: {get_text(payload, 'reason')}",
        "beforeSubmitPrompt": f"prompt submitted: {first_line(get_text(payload, 'prompt'))}",
        "preCompact": f"context compacted: {get_text(payload, 'trigger')}",
        "subagentStop": f"subagent ended: {get_text(payload, 'subagent_type')}",
        "stop": f"turn ended: {get_text(payload, 'status')}",
    }.get(event, f"hook event: {event}")
    if event == "afterFileEdit":
        from aver.agents.cursor.calls import build_diff
        from aver.diffs import format_line_counts

        path = get_text(payload, "file_path")
        diff = build_diff("multiedit", {"edits": payload.get("edits")}, None, {}, path) or ""
        content = {"event": event, "file_path": path, "diff": diff}
        words = f"edited: {path} {format_line_counts(diff)}"
    reported = event_from_payload(
        event,
        words,
        content,
        what="session" if event in ("sessionStart", "sessionEnd") else "note",
        omitted=_OMITTED_FIELDS,
        environment=pick_present(payload, _PROVENANCE),
        model=get_text(payload, "model") or None,
        ends_session=event == "sessionEnd",
    )
    prompt = get_text(payload, "prompt") if event == "beforeSubmitPrompt" else ""
    closes = ("",) if event == "sessionEnd" else ()
    return ParsedPayload(session, events=(reported,), closes=closes, prompt=prompt)


# --- events that ask


def _build_action(event: str, payload: Mapping[str, Any], session: str) -> Action | None:
    """Build the action that an event asks about; None where another event asks about it."""
    from aver.hooks.action import build_action, diff_for_edit

    tool = get_text(payload, "tool_name")
    if event == "beforeShellExecution":
        tool, arguments = "Bash", {"command": get_text(payload, "command")}
    elif event == "beforeReadFile":
        tool, arguments = "Read", {"file_path": get_text(payload, "file_path")}
    else:
        arguments = _read_arguments(payload)
    if event == "beforeMCPExecution":
        tool = f"mcp__{MCP_SERVER}__{tool}"
    if event == "preToolUse" and (tool in _TOOLS_WITH_OWN_EVENT or tool.startswith(("MCP:", "mcp__"))):
        return None
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    # Never `cwd` in place of the workspace: that is where the agent wants a command to run.
    workspace = first if isinstance(first, str) else ""
    name = _GATE_NAMES.get(tool, tool)
    return build_action(
        name,
        arguments,
        agent=TOOL,
        session=session,
        workspace=workspace,
        cwd=get_text(payload, "cwd"),
        diff=diff_for_edit(name, arguments, workspace),
        tool_use_id=get_text(payload, "tool_use_id"),  # Only `preToolUse` has it.
    )


def _read_arguments(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call. Some versions write them as JSON inside a string."""
    given = parse_embedded_json(payload.get("tool_input"))
    return given if isinstance(given, dict) else {"input": given}


# --- events that report a call


def _build_call_event(event: str, payload: Mapping[str, Any]) -> AgentEvent:
    from aver.agents.cursor.calls import (
        COMMAND_TOOLS,
        build_diff,
        build_summary,
        find_exit_code,
        find_path,
        launched_agent_id,
        list_effects,
        normalize_streams,
    )

    identifier = get_text(payload, "tool_use_id")
    tool, arguments = get_text(payload, "tool_name"), _read_arguments(payload)
    result, failed = parse_embedded_json(payload.get("tool_output")), event == "postToolUseFailure"
    path = find_path(arguments, result)
    diff = None if failed else build_diff(tool, arguments, result, {}, path)
    # Only a command has an exit code. A file or a server's answer that is JSON may have a member with that name.
    ok = not failed and not (tool.lower() in COMMAND_TOOLS and find_exit_code(result))
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


# --- answers


def write_reply(event: str, decision: HookDecision) -> HookReply:
    """Write the answer to an event that asks."""
    if decision.word == "leave":
        return HookReply("{}")
    word = "deny" if decision.word == "ask" and event not in _PERSON_ASKING_EVENTS else decision.word
    answer = {"permission": word, "user_message": decision.reason, "agent_message": decision.reason}
    if event == "preToolUse":  # Earlier versions had other names for it.
        answer |= {"decision": word, "reason": decision.reason}
    return HookReply(encode_answer(answer))


def write_done(event: str) -> HookReply:
    """Write the answer to an event that only reports."""
    return HookReply('{"continue": true}' if event == "beforeSubmitPrompt" else "{}")


def write_failed(event: str, why: str) -> HookReply:
    """Write the answer where Aver failed. A failing hook would be a denial on an event that asks."""
    return HookReply("{}") if event in GATING_EVENTS else HookReply(code=1)


def write_stop(event: str, why: str) -> HookReply:
    """Write the answer that ends the agent's work. Only a prompt can be stopped."""
    if event == "beforeSubmitPrompt":
        return HookReply(encode_answer({"continue": False, "user_message": why}))
    return write_failed(event, why)


HOOK = Hook(
    tool=TOOL,
    gating=GATING_EVENTS,
    identify=identify,
    read=read_event,
    reply=write_reply,
    done=write_done,
    failed=write_failed,
    stop=write_stop,
    asks_person=frozenset(_PERSON_ASKING_EVENTS),
)
