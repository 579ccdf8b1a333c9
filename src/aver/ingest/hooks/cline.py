"""Cline's hooks: https://docs.cline.bot/customization/hooks, as of version 3.82.

A payload says what it is about under the event's own name (`preToolUse`). The answer is `cancel`, with an
`errorMessage`: a person cannot be asked through it, so what a person must approve is cancelled with the words that say
how.

A call has no id in a payload. So what `PostToolUse` tells is kept as a note: the call itself is sealed from Cline's own
history, by its id there, and not twice. A hook that fails is shown by Cline, and blocks nothing.
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
from aver.ingest.times import from_ms

__all__ = ["HOOK"]

TOOL = "cline"

_ENDS = ("TaskComplete", "TaskCancel")
_GOES_ON = '{"cancel": false}'


def read(event: str, payload: Mapping[str, Any]) -> Reading:
    """What an event of Cline asks and tells."""
    session, about = text(payload, "taskId"), objects(payload, event[:1].lower() + event[1:])
    if event == "PreToolUse":
        return Reading(session, asks=_asked(payload, about, session))
    if event == "PostToolUse":
        return Reading(session, deeds=(_called(event, payload, about),))
    words = {
        "TaskStart": "task started",
        "TaskResume": "task resumed",
        "TaskComplete": "task completed",
        "TaskCancel": "task cancelled",
        "UserPromptSubmit": f"prompt submitted: {first_line(text(about, 'prompt'))}",
        "PreCompact": "context compacted",
    }.get(event, f"hook event: {event}")
    what: What = "session" if event.startswith("Task") else "note"
    deed = _told(event, words, payload, about, what=what, ends_session=event in _ENDS)
    return Reading(session, deeds=(deed,), closes=("",) if event in _ENDS else ())


def _told(event: str, words: str, payload: Mapping[str, Any], about: Mapping[str, Any], **more: Any) -> Deed:
    environment = {"cline_version": text(payload, "clineVersion"), "workspace_roots": payload.get("workspaceRoots")}
    return happened(
        event,
        words,
        {"event": event, **about},
        at=_time(payload.get("timestamp")),
        model=text(objects(payload, "model"), "slug") or None,
        environment={name: value for name, value in environment.items() if value},
        **more,
    )


def _time(stamp: Any) -> str | None:
    """Milliseconds since 1970, which Cline writes as text."""
    return from_ms(int(stamp)) if isinstance(stamp, str) and stamp.isdecimal() and len(stamp) < 17 else from_ms(stamp)


def _asked(payload: Mapping[str, Any], about: Mapping[str, Any], session: str) -> Any:
    from aver.ingest.hooks.asking import action_of

    tool, arguments = _tool(about), objects(about, "parameters")
    roots = payload.get("workspaceRoots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    workspace = first if isinstance(first, str) else ""
    diff = _diff(tool, arguments, workspace)
    return action_of(tool, arguments, caller=TOOL, session=session, workspace=workspace, diff=diff)


def _diff(tool: str, arguments: Mapping[str, Any], workspace: str) -> str | None:
    """The change that a call would make, as far as it says."""
    from aver.ingest.hooks.asking import edits_diff

    change, path = arguments.get("diff"), arguments.get("path")
    if tool == "replace_in_file" and isinstance(change, str) and isinstance(path, str):
        from aver.ingest.search_replace import as_diff

        return as_diff(path, change) or None
    patch = arguments.get("input")
    if tool == "apply_patch" and isinstance(patch, str):
        from aver.ingest.patches import read_patch

        found = read_patch(patch)
        return None if found is None else found.diff
    return edits_diff(tool, arguments, workspace)


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
