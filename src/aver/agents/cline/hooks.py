"""Cline's hooks: https://docs.cline.bot/customization/hooks, as of version 3.82 of the editor's extension; and those of
its sessions, as of version 3.0.65 of the command line.

A payload has its content under the event's own name (`preToolUse`). The answer is `cancel`, with an `errorMessage`.
Cline cannot ask a person through it: a call that a person must approve is cancelled, and the message says how to
approve it. A session ends its run with that. A hook that fails blocks nothing.

Payloads of sessions have more: the call with its id and its arguments as they are (`tool_call`), its result
(`tool_result`), the session (`rootSessionId`, while `taskId` is a conversation of it), and the agent, if the session
launched one. So Aver seals the call at once, by its id. Without an id, Aver keeps `PostToolUse` as a note, and the call
itself is sealed from Cline's own history, by its id there, and not twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver.hooks.contract import (
    Hook,
    HookDecision,
    HookReply,
    ParsedPayload,
    encode_answer,
    event_from_payload,
    first_line,
    get_object,
    get_text,
    parse_duration_ms,
)
from aver.ingest.contract import AgentEvent
from aver.ingest.foreign_json import to_utc, utc_from_ms

if TYPE_CHECKING:
    from aver.gate.action import Action

TOOL = "cline"

_END_EVENTS = ("TaskComplete", "TaskCancel", "TaskError", "SessionShutdown")
_CONTINUE_REPLY = '{"cancel": false}'


def identify(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the session and the call of a payload; empty where it names none. Only sessions name their calls."""
    session = get_text(get_object(payload, "sessionContext"), "rootSessionId") or get_text(payload, "taskId")
    call = get_text(get_object(payload, "tool_call"), "id") or get_text(get_object(payload, "tool_result"), "id")
    return session, call


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """Return what an event of Cline asks or reports."""
    session, _ = identify(payload)
    # The session's own agent has an id, too. Only an agent that it launched has a parent, and a chain of its own.
    agent = get_text(payload, "agent_id") if get_text(payload, "parent_agent_id") else ""
    about = get_object(payload, event[:1].lower() + event[1:])
    if event == "PreToolUse":
        return ParsedPayload(session, asks=_build_action(payload, about, session))
    result = get_object(payload, "tool_result")
    if event == "PostToolUse" and get_text(result, "id"):
        return ParsedPayload(session, events=(_build_call_event(payload, result, agent),))

    words = {
        "TaskStart": "task started",
        "TaskResume": "task resumed",
        "TaskComplete": "task completed",
        "TaskCancel": "task cancelled",
        "TaskError": f"task failed: {first_line(get_text(get_object(payload, 'error'), 'message'))}",
        "SessionShutdown": "session stopped",
        "UserPromptSubmit": f"prompt submitted: {first_line(get_text(about, 'prompt'))}",
        "PreCompact": "context compacted",
    }.get(event, f"hook event: {event}")
    ends = event in _END_EVENTS
    more: dict[str, Any] = {"agent": agent, "ends_session": ends}
    if event == "PostToolUse":
        words, more = _describe_call_note(about)
    reported = event_from_payload(
        event,
        words,
        {"event": event, **about},
        what="session" if event.startswith(("Task", "Session")) else "note",
        at=_parse_time(payload.get("timestamp")),
        model=get_text(get_object(payload, "model"), "slug") or None,
        environment=_environment(payload),
        **more,
    )
    prompt = get_text(about, "prompt") if event == "UserPromptSubmit" and not agent else ""
    return ParsedPayload(session, events=(reported,), closes=(agent,) if ends else (), prompt=prompt)


def _describe_call_note(about: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the summary, and status and duration, of a call that Cline reports without its id."""
    arguments, failed = get_object(about, "parameters"), about.get("success") is False
    subjects = (arguments.get(name) for name in _SUBJECT_KEYS)
    subject = next((first_line(value) for value in subjects if isinstance(value, str)), "")
    tool, took = _tool_name(about), about.get("executionTimeMs")
    if isinstance(took, str) and took.isdecimal() and len(took) < 13:  # Cline writes numbers as text here.
        took = int(took)
    words = f"{tool}: {subject}" if subject else tool
    more = {"status": "failure" if failed else None, "duration_ms": parse_duration_ms(took)}
    return f"{words} (failed)" if failed else words, more


_SUBJECT_KEYS = ("command", "path", "regex", "url", "tool_name", "question", "result")


def _tool_name(about: Mapping[str, Any]) -> str:
    return get_text(about, "toolName") or get_text(about, "tool")


def _environment(payload: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "cline_version": get_text(payload, "clineVersion"),
        "workspace_roots": payload.get("workspaceRoots"),
        "conversation_id": get_text(payload, "taskId") if payload.get("sessionContext") else "",
    }
    return {name: value for name, value in found.items() if value}


def _parse_time(stamp: Any) -> str | None:
    """Return a time in UTC. The editor writes milliseconds since 1970 as text, a session writes ISO 8601."""
    if isinstance(stamp, str) and not stamp.isdecimal():
        return to_utc(stamp)
    return utc_from_ms(int(stamp)) if isinstance(stamp, str) and len(stamp) < 17 else utc_from_ms(stamp)


def _build_action(payload: Mapping[str, Any], about: Mapping[str, Any], session: str) -> Action:
    from aver.hooks.action import build_action

    call = get_object(payload, "tool_call")
    tool, arguments = get_text(call, "name"), get_object(about, "parameters")
    if tool:  # A session names the tools of MCP servers `server__tool`.
        given = call.get("input")
        tool, arguments = (
            f"mcp__{tool}" if "__" in tool else tool,
            given if isinstance(given, dict) else {"input": given},
        )
    else:
        tool = _tool_name(about)
    roots = payload.get("workspaceRoots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    workspace = first if isinstance(first, str) else ""
    return build_action(
        tool,
        arguments,
        agent=TOOL,
        session=session,
        workspace=workspace,
        diff=_build_diff(tool, arguments, workspace),
        tool_use_id=get_text(call, "id"),
    )


def _build_diff(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """Return the change that a call would make; None where the arguments do not show it."""
    from aver.hooks.action import diff_for_edit, diff_for_insertion, diff_for_replace_or_create
    from aver.ingest.patches import diff_from_blocks, read_patch

    change, path, patch = (arguments.get(name) for name in ("diff", "path", "input"))
    if tool == "replace_in_file" and isinstance(change, str) and isinstance(path, str):
        return diff_from_blocks(path, change) or None
    if tool == "apply_patch" and isinstance(patch, str):
        found = read_patch(patch)
        return None if found is None else found.diff
    if tool != "editor" or not isinstance(path, str):
        return diff_for_edit(tool, arguments, workspace)
    # The editor of a session inserts lines, replaces a text, or writes a new file.
    new, old, line = (arguments.get(name) for name in ("new_text", "old_text", "insert_line"))
    if not isinstance(new, str) or not isinstance(old, str | None):
        return None
    if line is not None:
        return diff_for_insertion(path, line, new, workspace) if type(line) is int and line > 0 else None
    return diff_for_replace_or_create(path, old, new, workspace)


def _build_call_event(payload: Mapping[str, Any], result: Mapping[str, Any], agent: str) -> AgentEvent:
    """Build the event of a session's call, as the adapter builds it from the session's messages."""
    from aver.agents.cline.results import finish_call, start_call
    from aver.diffs import format_line_counts

    started, summary = start_call(get_text(result, "name") or "unnamed", get_text(result, "id"), result.get("input"))
    call, effects = finish_call(started, result.get("output"), failed=bool(result.get("error")))
    return AgentEvent(
        what="call",
        key=call.id,
        summary=f"{summary} {format_line_counts(call.diff)}" if call.diff else summary,
        at=_parse_time(result.get("startedAt")) or _parse_time(payload.get("timestamp")),
        duration_ms=parse_duration_ms(result.get("durationMs")),
        call=call,
        side_effects=effects,
        environment=_environment(payload),
        agent=agent,
    )


def write_reply(event: str, decision: HookDecision) -> HookReply:
    """Write the answer to `PreToolUse`."""
    if decision.word in ("allow", "leave"):
        return HookReply(_CONTINUE_REPLY)
    return write_stop(event, decision.reason)


def write_stop(event: str, why: str) -> HookReply:
    """Write the answer that cancels: the call that an event asks about, or else the run."""
    return HookReply(encode_answer({"cancel": True, "errorMessage": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    identify=identify,
    read=read_event,
    reply=write_reply,
    done=lambda event: HookReply(_CONTINUE_REPLY),
    failed=lambda event, why: HookReply(_CONTINUE_REPLY) if event == "PreToolUse" else HookReply(code=1),
    can_allow=False,
    stop=write_stop,
)
