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

from aver.ingest.deed import Deed, What
from aver.ingest.hooks.contract import (
    Hook,
    Reading,
    Reply,
    Ruling,
    first_line,
    happened,
    milliseconds,
    objects,
    text,
    written,
)
from aver.ingest.times import from_ms, utc

__all__ = ["HOOK"]

TOOL = "cline"

_ENDS = ("TaskComplete", "TaskCancel", "TaskError", "SessionShutdown")
_GOES_ON = '{"cancel": false}'


def read(event: str, payload: Mapping[str, Any]) -> Reading:
    """What an event of Cline asks and tells."""
    session = text(objects(payload, "sessionContext"), "rootSessionId") or text(payload, "taskId")
    agent = text(payload, "agent_id") if text(payload, "parent_agent_id") else ""
    about = objects(payload, event[:1].lower() + event[1:])
    if event == "PreToolUse":
        return Reading(session, asks=_asked(payload, about, session))
    if event == "PostToolUse":
        result = objects(payload, "tool_result")
        deed = _sealed(payload, result, agent) if text(result, "id") else _called(event, payload, about)
        return Reading(session, deeds=(deed,))
    words = {
        "TaskStart": "task started",
        "TaskResume": "task resumed",
        "TaskComplete": "task completed",
        "TaskCancel": "task cancelled",
        "TaskError": f"task failed: {first_line(text(objects(payload, 'error'), 'message'))}",
        "SessionShutdown": "session stopped",
        "UserPromptSubmit": f"prompt submitted: {first_line(text(about, 'prompt'))}",
        "PreCompact": "context compacted",
    }.get(event, f"hook event: {event}")
    what: What = "session" if event.startswith(("Task", "Session")) else "note"
    deed = _told(event, words, payload, about, what=what, agent=agent, ends_session=event in _ENDS)
    return Reading(session, deeds=(deed,), closes=(agent,) if event in _ENDS else ())


def _told(event: str, words: str, payload: Mapping[str, Any], about: Mapping[str, Any], **more: Any) -> Deed:
    return happened(
        event,
        words,
        {"event": event, **about},
        at=_time(payload.get("timestamp")),
        model=text(objects(payload, "model"), "slug") or None,
        environment=_environment(payload),
        **more,
    )


def _environment(payload: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        "cline_version": text(payload, "clineVersion"),
        "workspace_roots": payload.get("workspaceRoots"),
        "conversation_id": text(payload, "taskId") if payload.get("sessionContext") else "",
    }
    return {name: value for name, value in told.items() if value}


def _time(stamp: Any) -> str | None:
    """Milliseconds since 1970, which Cline writes as text; of a session, the time as it is."""
    if isinstance(stamp, str) and not stamp.isdecimal():
        return utc(stamp)
    return from_ms(int(stamp)) if isinstance(stamp, str) and len(stamp) < 17 else from_ms(stamp)


def _asked(payload: Mapping[str, Any], about: Mapping[str, Any], session: str) -> Any:
    from aver.ingest.hooks.asking import action_of

    tool, arguments = _question(payload, about)
    roots = payload.get("workspaceRoots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    workspace = first if isinstance(first, str) else ""
    diff = _diff(tool, arguments, workspace)
    return action_of(tool, arguments, caller=TOOL, session=session, workspace=workspace, diff=diff)


def _question(payload: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Which tool would be called, and with what. Sessions name those of MCP servers `server__tool`."""
    call = objects(payload, "tool_call")
    if not text(call, "name"):
        return _tool(about), objects(about, "parameters")
    tool, given = text(call, "name"), call.get("input")
    return f"mcp__{tool}" if "__" in tool else tool, given if isinstance(given, dict) else {"input": given}


def _diff(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """The change that a call would make, as far as it says."""
    from aver.ingest.hooks.asking import edits_diff

    change, path = arguments.get("diff"), arguments.get("path")
    if tool == "replace_in_file" and isinstance(change, str) and isinstance(path, str):
        from aver.ingest.search_replace import as_diff

        return as_diff(path, change) or None
    if tool == "editor" and isinstance(path, str):
        return _editors_diff(path, arguments, workspace)
    patch = arguments.get("input")
    if tool == "apply_patch" and isinstance(patch, str):
        from aver.ingest.patches import read_patch

        found = read_patch(patch)
        return None if found is None else found.diff
    return edits_diff(tool, arguments, workspace)


def _editors_diff(path: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """What a session's editor would change; None where it is told so in another form than is known."""
    from aver.ingest.hooks.asking import inserted_diff, put_diff

    new, old, line = (arguments.get(name) for name in ("new_text", "old_text", "insert_line"))
    if not isinstance(new, str) or not isinstance(old, str | None):
        return None
    if line is not None:
        return inserted_diff(path, line, new, workspace) if type(line) is int and line > 0 else None
    return put_diff(path, old, new, workspace)


def _sealed(payload: Mapping[str, Any], result: Mapping[str, Any], agent: str) -> Deed:
    """A call of a session, just as its messages will tell it."""
    from aver.ingest.cline_tools import call_begun, call_ended
    from aver.ingest.diffs import tally

    begun, summary = call_begun(text(result, "name") or "unnamed", text(result, "id"), result.get("input"))
    call, effects = call_ended(begun, result.get("output"), failed=bool(result.get("error")))
    return Deed(
        what="call",
        key=call.id,
        summary=f"{summary} {tally(call.diff)}" if call.diff else summary,
        at=_time(result.get("startedAt")) or _time(payload.get("timestamp")),
        duration_ms=milliseconds(result.get("durationMs")),
        call=call,
        side_effects=effects,
        environment=_environment(payload),
        agent=agent,
    )


def _called(event: str, payload: Mapping[str, Any], about: Mapping[str, Any]) -> Deed:
    tool, arguments = _tool(about), objects(about, "parameters")
    subject = next((first_line(value) for name in _SUBJECTS if isinstance(value := arguments.get(name), str)), "")
    worked = about.get("success")
    words = f"{tool}: {subject}" if subject else tool
    took = about.get("executionTimeMs")
    took = int(took) if isinstance(took, str) and took.isdecimal() and len(took) < 13 else took
    return _told(
        event,
        f"{words} (failed)" if worked is False else words,
        payload,
        about,
        status="failure" if worked is False else None,
        duration_ms=milliseconds(took),
    )


_SUBJECTS = ("command", "path", "regex", "url", "tool_name", "question", "result")


def _tool(about: Mapping[str, Any]) -> str:
    return text(about, "toolName") or text(about, "tool")


def reply(event: str, ruling: Ruling) -> Reply:
    """The answer to `PreToolUse`."""
    if ruling.word in ("allow", "leave"):
        return Reply(_GOES_ON)
    return Reply(written({"cancel": True, "errorMessage": ruling.reason}))


def stop(event: str, why: str) -> Reply:
    return Reply(written({"cancel": True, "errorMessage": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read,
    reply=reply,
    done=lambda event: Reply(_GOES_ON),
    failed=lambda event, why: Reply(code=1),
    stop=stop,
)
