"""Cline's hooks: https://docs.cline.bot/customization/hooks, as of version 3.82 of the editor's extension; and those of
its sessions, as of version 3.0.65 of the command line.

A payload says what it is about under the event's own name (`preToolUse`). The answer is `cancel`, with an
`errorMessage`: a person cannot be asked through it, so what a person must approve is cancelled with the words that say
how. A session ends its run with that; a hook that fails blocks nothing.

Sessions tell more: the call with its id and its arguments as they are (`tool_call`), what came of it (`tool_result`),
the session (`rootSessionId`, while `taskId` is a conversation of it) and the agent, if it is one that the session
launched. So the call is sealed at once, by its id. Without an id what `PostToolUse` tells is kept as a note: the call
itself is sealed from Cline's own history, by its id there, and not twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from aver.ingest.contract import AgentEvent, EventKind
from aver.ingest.foreign_json import to_utc, utc_from_ms

TOOL = "cline"

_END_EVENTS = ("TaskComplete", "TaskCancel", "TaskError", "SessionShutdown")
_CONTINUE_REPLY = '{"cancel": false}'


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """What an event of Cline asks and tells."""
    session = get_text(get_object(payload, "sessionContext"), "rootSessionId") or get_text(payload, "taskId")
    agent = get_text(payload, "agent_id") if get_text(payload, "parent_agent_id") else ""
    about = get_object(payload, event[:1].lower() + event[1:])
    if event == "PreToolUse":
        return ParsedPayload(session, asks=_build_action(payload, about, session))
    if event == "PostToolUse":
        result = get_object(payload, "tool_result")
        reported = (
            _build_call_event(payload, result, agent)
            if get_text(result, "id")
            else _build_call_note(event, payload, about)
        )
        return ParsedPayload(session, events=(reported,))
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
    what: EventKind = "session" if event.startswith(("Task", "Session")) else "note"
    reported = _build_hook_event(
        event, words, payload, about, what=what, agent=agent, ends_session=event in _END_EVENTS
    )
    return ParsedPayload(session, events=(reported,), closes=(agent,) if event in _END_EVENTS else ())


def _build_hook_event(
    event: str, words: str, payload: Mapping[str, Any], about: Mapping[str, Any], **more: Any
) -> AgentEvent:
    return event_from_payload(
        event,
        words,
        {"event": event, **about},
        at=_parse_time(payload.get("timestamp")),
        model=get_text(get_object(payload, "model"), "slug") or None,
        environment=_environment(payload),
        **more,
    )


def _environment(payload: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        "cline_version": get_text(payload, "clineVersion"),
        "workspace_roots": payload.get("workspaceRoots"),
        "conversation_id": get_text(payload, "taskId") if payload.get("sessionContext") else "",
    }
    return {name: value for name, value in told.items() if value}


def _parse_time(stamp: Any) -> str | None:
    """Milliseconds since 1970, which Cline writes as text; of a session, the time as it is."""
    if isinstance(stamp, str) and not stamp.isdecimal():
        return to_utc(stamp)
    return utc_from_ms(int(stamp)) if isinstance(stamp, str) and len(stamp) < 17 else utc_from_ms(stamp)


def _build_action(payload: Mapping[str, Any], about: Mapping[str, Any], session: str) -> Any:
    from aver.hooks.action import build_action, call_id_for

    tool, arguments = _tool_and_arguments(payload, about)
    roots = payload.get("workspaceRoots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    workspace = first if isinstance(first, str) else ""
    diff = _build_diff(tool, arguments, workspace)
    call_id = call_id_for(TOOL, session, get_text(get_object(payload, "tool_call"), "id"))
    return build_action(tool, arguments, caller=TOOL, session=session, workspace=workspace, diff=diff, call_id=call_id)


def _tool_and_arguments(payload: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Which tool would be called, and with what. Sessions name those of MCP servers `server__tool`."""
    call = get_object(payload, "tool_call")
    if not get_text(call, "name"):
        return _tool_name(about), get_object(about, "parameters")
    tool, given = get_text(call, "name"), call.get("input")
    return f"mcp__{tool}" if "__" in tool else tool, given if isinstance(given, dict) else {"input": given}


def _build_diff(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """The change that a call would make, as far as it says."""
    from aver.hooks.action import diff_for_edit

    change, path = arguments.get("diff"), arguments.get("path")
    if tool == "replace_in_file" and isinstance(change, str) and isinstance(path, str):
        from aver.ingest.patches import diff_from_blocks

        return diff_from_blocks(path, change) or None
    if tool == "editor" and isinstance(path, str):
        return _editor_diff(path, arguments, workspace)
    patch = arguments.get("input")
    if tool == "apply_patch" and isinstance(patch, str):
        from aver.ingest.patches import read_patch

        found = read_patch(patch)
        return None if found is None else found.diff
    return diff_for_edit(tool, arguments, workspace)


def _editor_diff(path: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """What a session's editor would change; None where it is told so in another form than is known."""
    from aver.hooks.action import diff_for_insertion, diff_for_replace_or_create

    new, old, line = (arguments.get(name) for name in ("new_text", "old_text", "insert_line"))
    if not isinstance(new, str) or not isinstance(old, str | None):
        return None
    if line is not None:
        return diff_for_insertion(path, line, new, workspace) if type(line) is int and line > 0 else None
    return diff_for_replace_or_create(path, old, new, workspace)


def _build_call_event(payload: Mapping[str, Any], result: Mapping[str, Any], agent: str) -> AgentEvent:
    """A call of a session, just as its messages will tell it."""
    from aver.agents.cline.results import finish_call, start_call
    from aver.ingest.diffs import format_line_counts

    begun, summary = start_call(get_text(result, "name") or "unnamed", get_text(result, "id"), result.get("input"))
    call, effects = finish_call(begun, result.get("output"), failed=bool(result.get("error")))
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


def _build_call_note(event: str, payload: Mapping[str, Any], about: Mapping[str, Any]) -> AgentEvent:
    tool, arguments = _tool_name(about), get_object(about, "parameters")
    subject = next((first_line(value) for name in _SUBJECT_KEYS if isinstance(value := arguments.get(name), str)), "")
    worked = about.get("success")
    words = f"{tool}: {subject}" if subject else tool
    took = about.get("executionTimeMs")
    took = int(took) if isinstance(took, str) and took.isdecimal() and len(took) < 13 else took
    return _build_hook_event(
        event,
        f"{words} (failed)" if worked is False else words,
        payload,
        about,
        status="failure" if worked is False else None,
        duration_ms=parse_duration_ms(took),
    )


_SUBJECT_KEYS = ("command", "path", "regex", "url", "tool_name", "question", "result")


def _tool_name(about: Mapping[str, Any]) -> str:
    return get_text(about, "toolName") or get_text(about, "tool")


def reply_ruling(event: str, ruling: HookDecision) -> HookReply:
    """The answer to `PreToolUse`."""
    if ruling.word in ("allow", "leave"):
        return HookReply(_CONTINUE_REPLY)
    return HookReply(encode_answer({"cancel": True, "errorMessage": ruling.reason}))


def reply_stop(event: str, why: str) -> HookReply:
    return HookReply(encode_answer({"cancel": True, "errorMessage": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read_event,
    reply=reply_ruling,
    done=lambda event: HookReply(_CONTINUE_REPLY),
    failed=lambda event, why: HookReply(code=1),
    stop=reply_stop,
)
