"""Claude Code's hooks: https://code.claude.com/docs/en/hooks, as of version 2.1.

Every payload has `session_id`, `transcript_path`, `cwd` and, inside a subagent, `agent_id`. `PreToolUse` asks, and is
answered by `hookSpecificOutput.permissionDecision`; a reason goes to the person who is asked, or to the model that is
denied. The others tell. `PostToolUse` and `PostToolUseFailure` tell of a call by its own id, which is the one in the
transcript: hook and watcher seal one and the same deed.

Exit code 1 with words on stderr is shown to the person and blocks nothing; 2 would block.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aver.clock import now
from aver.ingest.deed import Deed
from aver.ingest.hooks.contract import (
    Hook,
    Reading,
    Reply,
    Ruling,
    first_line,
    happened,
    milliseconds,
    objects,
    provenance,
    text,
    written,
)

__all__ = ["HOOK"]

TOOL = "claude-code"

_CALLS = ("PostToolUse", "PostToolUseFailure")
_PROVENANCE = ("cwd", "permission_mode", "prompt_id", "agent_type", "effort")
_BULKY = frozenset({"session_id", "transcript_path", "hook_event_name", "agent_transcript_path", *_PROVENANCE})
"""What of a payload is said elsewhere in a record, or leads to a file of the machine."""


def read(event: str, payload: Mapping[str, Any]) -> Reading:
    """What an event of Claude Code asks and tells."""
    session, agent = text(payload, "session_id"), text(payload, "agent_id")
    if event == "PreToolUse":
        return Reading(session, asks=_asked(payload, session, agent))
    if event in _CALLS and text(payload, "tool_use_id"):  # Without an id it is told, and sealed from the transcript.
        return Reading(session, deeds=(_called(event, payload, agent),))
    if event == "SessionEnd":
        ended = _happened(
            event, f"session ended: {text(payload, 'reason')}", payload, what="session", ends_session=True
        )
        return Reading(session, deeds=(ended,), closes=("",))
    if event == "SubagentStop":
        name = text(payload, "agent_type")
        stopped = _happened(
            event, f"subagent ended: {name}", payload, what="session", key=agent, agent=agent, ends_session=True
        )
        return Reading(session, deeds=(stopped,), closes=(agent,) if agent else ())
    return Reading(session, deeds=(_told(event, payload, agent),))


def _told(event: str, payload: Mapping[str, Any], agent: str) -> Deed:
    if event == "SessionStart":
        words, what = f"session started: {text(payload, 'source')}", "session"
        title, model = text(payload, "session_title") or None, text(payload, "model") or None
        return _happened(event, words, payload, what=what, agent=agent, title=title, model=model)
    if event == "UserPromptSubmit":
        words = f"prompt submitted: {first_line(text(payload, 'prompt'))}"
        return _happened(event, words, payload, key=text(payload, "prompt_id"), agent=agent)
    if event == "PreCompact":
        return _happened(event, f"context compacted: {text(payload, 'trigger')}", payload, agent=agent)
    if event == "Stop":
        return _happened(event, "turn ended", payload, agent=agent)
    return _happened(event, f"hook event: {event}", payload, agent=agent)


def _happened(event: str, summary: str, payload: Mapping[str, Any], **more: Any) -> Deed:
    said = {name: value for name, value in payload.items() if name not in _BULKY and name != "agent_id"}
    return happened(event, summary, {"event": event, **said}, environment=provenance(payload, _PROVENANCE), **more)


def _called(event: str, payload: Mapping[str, Any], agent: str) -> Deed:
    """A call, read as the transcript's result would be. The words that the model gets are not in the payload."""
    from aver.ingest.claude_results import outcome_of, subject_of
    from aver.ingest.deed import Allowed, Call

    tool, arguments, identifier = (
        text(payload, "tool_name"),
        objects(payload, "tool_input"),
        text(payload, "tool_use_id"),
    )
    failed = event == "PostToolUseFailure"
    block = {"is_error": True, "content": text(payload, "error")} if failed else {}
    found = outcome_of(tool, arguments, block, None if failed else payload.get("tool_response"))
    call = Call(
        tool=tool,
        id=identifier,
        arguments=arguments,
        result=found.result or None,
        ok=found.ok,
        error=found.error,
        diff=found.diff,
    )
    took = milliseconds(payload.get("duration_ms"))
    return Deed(
        what="call",
        key=identifier,
        summary=f"{tool}: {subject_of(tool, arguments)}{found.note}",
        at=now(),
        duration_ms=found.duration_ms if took is None else took,
        allowed=found.allowed or Allowed(),
        call=call,
        status=found.status,
        side_effects=found.side_effects,
        environment=provenance(payload, _PROVENANCE),
        agent=agent,
        launched=found.launched,
    )


def _asked(payload: Mapping[str, Any], session: str, agent: str) -> Any:
    from aver.ingest.hooks.asking import action_of, edits_diff

    tool, arguments, cwd = text(payload, "tool_name"), objects(payload, "tool_input"), text(payload, "cwd")
    # Claude Code tells its hooks where the project is. The session may have gone into a directory of it since.
    workspace = os.environ.get("CLAUDE_PROJECT_DIR") or cwd
    kind = text(payload, "agent_type") if agent else ""
    return action_of(
        tool,
        arguments,
        caller=f"{TOOL}/{kind}" if kind else TOOL,
        session=session,
        workspace=workspace,
        cwd=cwd,
        diff=edits_diff(tool, arguments, workspace),
    )


def reply(event: str, ruling: Ruling) -> Reply:
    """The answer to `PreToolUse`."""
    if ruling.word == "leave":
        return Reply()
    said = {"hookEventName": event, "permissionDecision": ruling.word, "permissionDecisionReason": ruling.reason}
    return Reply(written({"hookSpecificOutput": said}))


def stop(event: str, why: str) -> Reply:
    return Reply(written({"continue": False, "stopReason": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read,
    reply=reply,
    done=lambda event: Reply(),
    failed=lambda event, why: Reply(code=1),
    stop=stop,
)
