"""Claude Code's hooks: https://code.claude.com/docs/en/hooks, as of version 2.1.

Every payload has `session_id`, `transcript_path`, `cwd` and, inside a subagent, `agent_id`. `PreToolUse` asks, and is
answered by `hookSpecificOutput.permissionDecision`; a reason goes to the person who is asked, or to the model that is
denied. The others tell. `PostToolUse` and `PostToolUseFailure` tell of a call by its own id, which is the one in the
transcript: hook and watcher seal the same event.

Exit code 1 with words on stderr is shown to the person and blocks nothing; 2 would block.
"""

from __future__ import annotations

import os
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
    get_object,
    get_text,
    parse_duration_ms,
    pick_present,
)
from aver.ingest.contract import AgentEvent

TOOL = "claude-code"

_CALL_EVENTS = ("PostToolUse", "PostToolUseFailure")
_PROVENANCE = ("cwd", "permission_mode", "prompt_id", "agent_type", "effort")
_OMITTED_FIELDS = frozenset({"session_id", "transcript_path", "hook_event_name", "agent_transcript_path", *_PROVENANCE})
"""What of a payload is said elsewhere in a record, or leads to a file of the machine."""


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """What an event of Claude Code asks and tells."""
    session, agent = get_text(payload, "session_id"), get_text(payload, "agent_id")
    if event == "PreToolUse":
        return ParsedPayload(session, asks=_build_action(payload, session, agent))
    if event in _CALL_EVENTS and get_text(
        payload, "tool_use_id"
    ):  # Without an id it is told, and sealed from the transcript.
        return ParsedPayload(session, events=(_build_call_event(event, payload, agent),))
    if event == "SessionEnd":
        ended = _build_hook_event(
            event, f"session ended: {get_text(payload, 'reason')}", payload, what="session", ends_session=True
        )
        return ParsedPayload(session, events=(ended,), closes=("",))
    if event == "SubagentStop":
        name = get_text(payload, "agent_type")
        stopped = _build_hook_event(
            event, f"subagent ended: {name}", payload, what="session", key=agent, agent=agent, ends_session=True
        )
        return ParsedPayload(session, events=(stopped,), closes=(agent,) if agent else ())
    return ParsedPayload(session, events=(_read_session_event(event, payload, agent),))


def _read_session_event(event: str, payload: Mapping[str, Any], agent: str) -> AgentEvent:
    if event == "SessionStart":
        words, what = f"session started: {get_text(payload, 'source')}", "session"
        title, model = get_text(payload, "session_title") or None, get_text(payload, "model") or None
        return _build_hook_event(event, words, payload, what=what, agent=agent, title=title, model=model)
    if event == "UserPromptSubmit":
        words = f"prompt submitted: {first_line(get_text(payload, 'prompt'))}"
        return _build_hook_event(event, words, payload, key=get_text(payload, "prompt_id"), agent=agent)
    if event == "PreCompact":
        return _build_hook_event(event, f"context compacted: {get_text(payload, 'trigger')}", payload, agent=agent)
    if event == "Stop":
        return _build_hook_event(event, "turn ended", payload, agent=agent)
    return _build_hook_event(event, f"hook event: {event}", payload, agent=agent)


def _build_hook_event(event: str, summary: str, payload: Mapping[str, Any], **more: Any) -> AgentEvent:
    said = {name: value for name, value in payload.items() if name not in _OMITTED_FIELDS and name != "agent_id"}
    return event_from_payload(
        event, summary, {"event": event, **said}, environment=pick_present(payload, _PROVENANCE), **more
    )


def _build_call_event(event: str, payload: Mapping[str, Any], agent: str) -> AgentEvent:
    """A call, read as the transcript's result would be. The words that the model gets are not in the payload."""
    from aver.agents.claude_code.results import find_subject, read_outcome
    from aver.ingest.contract import AgentCall, Permission

    tool, arguments, identifier = (
        get_text(payload, "tool_name"),
        get_object(payload, "tool_input"),
        get_text(payload, "tool_use_id"),
    )
    failed = event == "PostToolUseFailure"
    block = {"is_error": True, "content": get_text(payload, "error")} if failed else {}
    found = read_outcome(tool, arguments, block, None if failed else payload.get("tool_response"))
    call = AgentCall(
        tool=tool,
        id=identifier,
        arguments=arguments,
        result=found.result or None,
        ok=found.ok,
        error=found.error,
        diff=found.diff,
    )
    took = parse_duration_ms(payload.get("duration_ms"))
    return AgentEvent(
        what="call",
        key=identifier,
        summary=f"{tool}: {find_subject(tool, arguments)}{found.note}",
        at=now(),
        duration_ms=found.duration_ms if took is None else took,
        allowed=found.allowed or Permission(),
        call=call,
        status=found.status,
        side_effects=found.side_effects,
        environment=pick_present(payload, _PROVENANCE),
        agent=agent,
        launched=found.launched,
    )


def _build_action(payload: Mapping[str, Any], session: str, agent: str) -> Any:
    from aver.hooks.action import build_action, call_id_for, diff_for_edit

    tool, arguments, cwd = get_text(payload, "tool_name"), get_object(payload, "tool_input"), get_text(payload, "cwd")
    # Claude Code tells its hooks where the project is. The session may have gone into a directory of it since.
    workspace = os.environ.get("CLAUDE_PROJECT_DIR") or cwd
    kind = get_text(payload, "agent_type") if agent else ""
    return build_action(
        tool,
        arguments,
        caller=f"{TOOL}/{kind}" if kind else TOOL,
        session=session,
        workspace=workspace,
        cwd=cwd,
        diff=diff_for_edit(tool, arguments, workspace),
        call_id=call_id_for(TOOL, session, get_text(payload, "tool_use_id")),
    )


def reply_ruling(event: str, ruling: HookDecision) -> HookReply:
    """The answer to `PreToolUse`."""
    if ruling.word == "leave":
        return HookReply()
    said = {"hookEventName": event, "permissionDecision": ruling.word, "permissionDecisionReason": ruling.reason}
    return HookReply(encode_answer({"hookSpecificOutput": said}))


def reply_stop(event: str, why: str) -> HookReply:
    return HookReply(encode_answer({"continue": False, "stopReason": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read_event,
    reply=reply_ruling,
    done=lambda event: HookReply(),
    failed=lambda event, why: HookReply(code=1),
    stop=reply_stop,
)
