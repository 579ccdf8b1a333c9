"""Claude Code's hooks: https://code.claude.com/docs/en/hooks, as of version 2.1.

Every payload has `session_id`, `transcript_path`, `cwd` and, inside a subagent, `agent_id`. `PreToolUse` asks, and is
answered by `hookSpecificOutput.permissionDecision`. The reason goes to the person who is asked, or to the model that is
denied. All other events report. `PostToolUse` and `PostToolUseFailure` name a call by the id that the transcript also
has, so a hook and a watcher seal one and the same event.

Claude Code shows standard error to the person after exit code 1, and goes on. Exit code 2 would block.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
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
_OMITTED_FIELDS = frozenset(
    {"session_id", "transcript_path", "hook_event_name", "agent_transcript_path", "agent_id", *_PROVENANCE}
)
"""Members of a payload that a record has elsewhere, or that lead to a file of the machine."""


def identify(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the session and the call of a payload; empty where it names none."""
    return get_text(payload, "session_id"), get_text(payload, "tool_use_id")


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """Return what an event of Claude Code asks or reports."""
    session, agent = get_text(payload, "session_id"), get_text(payload, "agent_id")
    if event == "PreToolUse":
        from aver.hooks.action import build_action, diff_for_edit

        tool, arguments = get_text(payload, "tool_name"), get_object(payload, "tool_input")
        # Claude Code tells its hooks where the project is. The session may have gone into a directory of it since.
        cwd = get_text(payload, "cwd")
        workspace = os.environ.get("CLAUDE_PROJECT_DIR") or cwd
        action = build_action(
            tool,
            arguments,
            agent=TOOL,
            session=session,
            workspace=workspace,
            cwd=cwd,
            diff=diff_for_edit(tool, arguments, workspace),
            tool_use_id=get_text(payload, "tool_use_id"),
            subagent=get_text(payload, "agent_type") if agent else "",
        )
        return ParsedPayload(session, asks=action)
    # A call without an id becomes a note. The watcher seals the call itself from the transcript.
    if event in _CALL_EVENTS and get_text(payload, "tool_use_id"):
        # In other modes Claude Code may answer a hook's question by itself. A call that was stopped says nothing.
        asked = get_text(payload, "permission_mode") == "default" and payload.get("is_interrupt") is not True
        return ParsedPayload(session, events=(_build_call_event(event, payload, agent),), asked_person=asked)

    words, more, closes = f"hook event: {event}", dict[str, Any](agent=agent), tuple[str, ...]()
    prompt = get_text(payload, "prompt") if event == "UserPromptSubmit" and not agent else ""
    if event == "SessionStart":
        words = f"session started: {get_text(payload, 'source')}"
        more |= {"what": "session", "title": get_text(payload, "session_title") or None}
        more["model"] = get_text(payload, "model") or None
    elif event == "SessionEnd":
        words, closes = f"session ended: {get_text(payload, 'reason')}", ("",)
        more = {"what": "session", "ends_session": True}
    elif event == "SubagentStop":
        words, closes = f"subagent ended: {get_text(payload, 'agent_type')}", (agent,) if agent else ()
        more |= {"what": "session", "key": agent, "ends_session": True}
    elif event == "UserPromptSubmit":
        words = f"prompt submitted: {first_line(get_text(payload, 'prompt'))}"
        more["key"] = get_text(payload, "prompt_id")
    elif event == "PreCompact":
        words = f"context compacted: {get_text(payload, 'trigger')}"
    elif event == "Stop":
        words = "turn ended"
    content, environment = {"event": event, **payload}, pick_present(payload, _PROVENANCE)
    reported = event_from_payload(event, words, content, omitted=_OMITTED_FIELDS, environment=environment, **more)
    return ParsedPayload(session, events=(reported,), closes=closes, prompt=prompt)


def _build_call_event(event: str, payload: Mapping[str, Any], agent: str) -> AgentEvent:
    """Build the event of a call as from the transcript's result. The payload lacks the text that the model gets."""
    from aver.agents.claude_code.results import find_subject, read_outcome
    from aver.ingest.contract import AgentCall, Permission

    tool, arguments = get_text(payload, "tool_name"), get_object(payload, "tool_input")
    identifier = get_text(payload, "tool_use_id")
    failed = event == "PostToolUseFailure"
    block = {"is_error": True, "content": get_text(payload, "error")} if failed else {}
    response = None if failed else payload.get("tool_response")
    found = read_outcome(tool, arguments, block, response, is_interrupt=payload.get("is_interrupt") is True)
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


def write_reply(event: str, decision: HookDecision) -> HookReply:
    """Write the answer to `PreToolUse`."""
    answer: dict[str, Any] = {"hookEventName": event}
    if decision.word != "leave":
        answer |= {"permissionDecision": decision.word, "permissionDecisionReason": decision.reason}
    elif decision.arguments is None:
        return HookReply()
    if decision.arguments is not None:
        answer["updatedInput"] = dict(decision.arguments)
    return HookReply(encode_answer({"hookSpecificOutput": answer}))


def write_failed(event: str, why: str) -> HookReply:
    """Write the answer where Aver failed and the agent goes on. An exit code other than 0 would block a call."""
    return HookReply(encode_answer({"systemMessage": why})) if event == "PreToolUse" else HookReply(code=1)


def find_refused(payload: Mapping[str, Any], calls: Collection[str]) -> Collection[str]:
    """Return those of the calls that Claude Code has refused, by the transcript that the payload names."""
    from aver.agents.claude_code.refusals import find_refused_calls
    from aver.ingest.draft import event_key

    session = get_text(payload, "session_id")
    refused = find_refused_calls(get_text(payload, "transcript_path"), session)
    return [key for identifier in refused if (key := event_key(TOOL, session, identifier)) in calls]


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    identify=identify,
    read=read_event,
    reply=write_reply,
    done=lambda event: HookReply(),
    failed=write_failed,
    stop=lambda event, why: HookReply(encode_answer({"continue": False, "stopReason": why})),
    can_rewrite=True,
    asks_person=frozenset({"PreToolUse"}),
    find_refused=find_refused,
)
