"""Codex's hooks: https://developers.openai.com/codex/hooks, as of version 0.166; and `notify` of versions without them.

Payloads are made like Claude Code's. What differs:

* `PreToolUse` understands only a denial. A pass says nothing, and where a person must approve the call is denied with
  the words that say how: asked again after the approval, the very same call goes through.
* Commands are told as `Bash` with a `command`, whatever the tool's own name, and `PostToolUse` does not tell how they
  ended. The rollout does: Codex has written the call and its end there before it starts the hook, and writes the output
  after it. So the deed is made from those lines and the payload's output, by the adapter that reads rollouts, and is
  the one that a watcher makes. Where they are not there, the payload alone is told, and whether the call worked is not
  known.
* A patch may be fed to `apply_patch` by a shell. Where the command is that and nothing else, the gate sees the patch.
* The model chooses the directory of a command (`workdir`). `cwd` in the payload is that directory; in earlier versions
  the session's own, and then only the rollout tells of another. So the workspace is where Codex starts its hooks: that
  is the session's directory, whatever the model says.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.clock import now
from aver.ingest.deed import Call, Deed
from aver.ingest.hooks.contract import (
    Hook,
    Reading,
    Reply,
    Ruling,
    first_line,
    happened,
    objects,
    provenance,
    text,
    written,
)
from aver.ingest.records import as_json, parsed

__all__ = ["HOOK"]

TOOL = "codex"

TAIL = 4 * 1024 * 1024
"""Bytes at the end of a rollout in which the lines of a call that has just ended are looked for."""

_PROVENANCE = ("cwd", "permission_mode", "turn_id", "agent_type")
_SAID_ELSEWHERE = frozenset(
    {"session_id", "transcript_path", "agent_transcript_path", "hook_event_name", "agent_id", "model", *_PROVENANCE}
)


def read(event: str, payload: Mapping[str, Any]) -> Reading:
    """What an event of Codex asks and tells."""
    if event == "notify":
        return _notified(payload)
    session, agent = text(payload, "session_id"), text(payload, "agent_id")
    if event == "PreToolUse":
        return Reading(session, asks=_asked(payload, session))
    if event == "PostToolUse" and text(payload, "tool_use_id"):
        return Reading(session, deeds=(_called(payload, session, agent),))
    if event == "SessionEnd":
        words = f"session ended: {text(payload, 'reason')}"
        return Reading(session, deeds=(_told(event, words, payload, what="session", ends_session=True),), closes=("",))
    if event == "SubagentStop":
        words = f"subagent ended: {text(payload, 'agent_type')}"
        return Reading(session, deeds=(_told(event, words, payload, what="session", agent=agent),))
    words = {
        "SessionStart": f"session started: {text(payload, 'source')}",
        "UserPromptSubmit": f"prompt submitted: {first_line(text(payload, 'prompt'))}",
        "PreCompact": f"context compacted: {text(payload, 'trigger')}",
        "Stop": "turn ended",
    }.get(event, f"hook event: {event}")
    return Reading(
        session, deeds=(_told(event, words, payload, what="session" if event == "SessionStart" else "note"),)
    )


def _told(event: str, words: str, payload: Mapping[str, Any], **more: Any) -> Deed:
    said = {name: value for name, value in payload.items() if name not in _SAID_ELSEWHERE}
    model = text(payload, "model") or None
    return happened(
        event, words, {"event": event, **said}, environment=provenance(payload, _PROVENANCE), model=model, **more
    )


def _notified(payload: Mapping[str, Any]) -> Reading:
    """The end of a turn, as versions without hooks tell it."""
    sort, turn = text(payload, "type"), text(payload, "turn-id")
    said = {name: value for name, value in payload.items() if name not in ("thread-id", "cwd")}
    environment = {"cwd": payload["cwd"]} if payload.get("cwd") else {}
    deed = happened("notify", f"turn ended: {sort}", said, key=turn, environment=environment)
    return Reading(text(payload, "thread-id"), deeds=(deed,))


# --- asking


def _asked(payload: Mapping[str, Any], session: str) -> Any:
    from aver.ingest.hooks.asking import action_of

    tool, arguments = text(payload, "tool_name"), objects(payload, "tool_input")
    workspace = _workspace()
    cwd = _directory(payload, workspace)
    patch = _patch_in(tool, arguments) if cwd == workspace else None  # Elsewhere its paths are other files.
    if patch is None:
        return action_of(tool, arguments, caller=TOOL, session=session, workspace=workspace, cwd=cwd)
    from aver.ingest.patches import read_patch

    found = read_patch(patch)
    return action_of(
        "apply_patch",
        {"patch": patch},  # Under `command` it would be one of a shell.
        caller=TOOL,
        session=session,
        workspace=workspace,
        diff=None if found is None else found.diff,
    )


def _workspace() -> str:
    """The session's directory; empty where it is gone, and then nothing is inside of it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _directory(payload: Mapping[str, Any], workspace: str) -> str:
    """Where a call is carried out."""
    cwd = text(payload, "cwd") or workspace
    if "\0" in cwd or os.path.realpath(cwd) != os.path.realpath(workspace):
        return cwd
    identifier = text(payload, "tool_use_id")
    for line in _lines_of(Path(text(payload, "transcript_path")), identifier):
        record = parsed(line)
        call = objects(record, "payload") if isinstance(record, dict) else {}
        given = as_json(call.get("arguments")) if call.get("call_id") == identifier else None
        if isinstance(given, dict) and text(given, "workdir"):
            return os.path.join(workspace, given["workdir"])
    return workspace


def _patch_in(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The patch that a call applies, if that is all that it does."""
    command = arguments.get("command")
    if len(arguments) != 1 or not isinstance(command, str):
        return None
    if tool == "apply_patch":
        return command
    fed = _FED(command) if tool == "Bash" else None
    return None if fed is None else fed[2]


_FED = re.compile(
    r"\s*apply_patch <<\s*'(\w{1,40})'\n(\*\*\* Begin Patch\n.*\n\*\*\* End Patch)\n\1\s*", re.DOTALL
).fullmatch
"""A patch in quotes, in which a shell reads nothing of its own."""


# --- telling


def _called(payload: Mapping[str, Any], session: str, agent: str) -> Deed:
    identifier = text(payload, "tool_use_id")
    deed = _from_rollout(payload, session, identifier) or _from_payload(payload, identifier)
    return replace(deed, agent=agent, environment={**provenance(payload, _PROVENANCE), **deed.environment}, places=())


def _from_payload(payload: Mapping[str, Any], identifier: str) -> Deed:
    tool, arguments = text(payload, "tool_name"), objects(payload, "tool_input")
    subject = first_line(str(arguments.get("command") or ""))
    return Deed(
        what="call",
        key=identifier,
        summary=f"{tool}: {subject}" if subject else tool,
        at=now(),
        model=text(payload, "model") or None,
        call=Call(tool=tool, id=identifier, arguments=arguments, result=payload.get("tool_response")),
    )


def _from_rollout(payload: Mapping[str, Any], session: str, identifier: str) -> Deed | None:
    """The deed that the rollout's lines make of the call, with the output of the payload; None where they make none."""
    from aver.ingest.codex import ADAPTER
    from aver.ingest.contract import Source, raw

    path, response = Path(text(payload, "transcript_path")), payload.get("tool_response")
    lines = list(_lines_of(path, identifier))
    if not lines:
        return None
    lines.insert(0, _line("turn_context", {"cwd": text(payload, "cwd")}))
    is_patch = text(payload, "tool_name") == "apply_patch"
    if is_patch:  # Its output comes as the rollout will have it; that of a command is what the command said.
        output = {"type": "custom_tool_call_output", "call_id": identifier, "output": response}
        lines.append(_line("response_item", output))
    turn = ADAPTER.turn(Source(tool=TOOL, session=session, path=path))
    deeds = [deed for number, line in enumerate(lines) for deed in turn.take(raw(str(number), line))]
    for deed in (*deeds, *turn.end()):
        if deed.key == identifier and deed.call is not None:
            result = deed.call.result if is_patch else _result(deed.call.result, response)
            return replace(deed, call=replace(deed.call, result=result))
    return None


def _line(sort: str, body: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps({"type": sort, "payload": body}).encode()


def _result(told: Any, response: Any) -> Any:
    """The output of the payload, and the exit code that the rollout tells, as the adapter joins them."""
    code = told.get("exit_code") if isinstance(told, Mapping) else None
    return response if code is None else {"exit_code": code, "output": response}


def _lines_of(path: Path, identifier: str) -> Iterator[bytes]:
    """The lines at the end of a rollout that name a call."""
    if not identifier or not path.is_absolute():
        return
    try:
        # Without O_NONBLOCK a pipe put in the file's place would hang us.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return
    with os.fdopen(handle, "rb") as file:
        file.seek(max(0, status.st_size - TAIL))
        tail = file.read(TAIL)
    name = identifier.encode("utf-8", "surrogatepass")
    yield from (line for line in tail.split(b"\n") if name in line)


# --- answering


def reply(event: str, ruling: Ruling) -> Reply:
    """The answer to `PreToolUse`."""
    if ruling.word in ("allow", "leave"):
        return Reply()
    said = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": ruling.reason}
    return Reply(written({"hookSpecificOutput": said}))


def stop(event: str, why: str) -> Reply:
    return Reply(code=1) if event == "notify" else Reply(written({"continue": False, "stopReason": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read,
    reply=reply,
    done=lambda event: Reply(),
    failed=lambda event, why: Reply(code=1),
    stop=stop,
)
