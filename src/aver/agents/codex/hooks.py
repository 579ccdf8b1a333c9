"""Codex's hooks: https://developers.openai.com/codex/hooks, as of version 0.166; and `notify` of versions without them.

Payloads are made like Claude Code's. What differs:

* `PreToolUse` understands only a denial. A pass says nothing, and where a person must approve the call is denied with
  the words that say how: asked again after the approval, the very same call goes through.
* Commands are told as `Bash` with a `command`, whatever the tool's own name, and `PostToolUse` does not tell how they
  ended. The rollout does: Codex has written the call and its end there before it starts the hook, and writes the output
  after it. So the event is made from those lines and the payload's output, by the adapter that reads rollouts, and is
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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.clock import now
from aver.files.regular import open_regular
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
    pick_present,
)
from aver.ingest.contract import AgentCall, AgentEvent
from aver.ingest.foreign_json import parse_embedded_json, parse_json

TOOL = "codex"

TAIL_MAX = 4 * 1024 * 1024
"""Bytes at the end of a rollout in which the lines of a call that has just ended are looked for."""

_PROVENANCE = ("cwd", "permission_mode", "turn_id", "agent_type")
_OMITTED_FIELDS = frozenset(
    {"session_id", "transcript_path", "agent_transcript_path", "hook_event_name", "agent_id", "model", *_PROVENANCE}
)


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """What an event of Codex asks and tells."""
    if event == "notify":
        return _read_notify(payload)
    session, agent = get_text(payload, "session_id"), get_text(payload, "agent_id")
    if event == "PreToolUse":
        return ParsedPayload(session, asks=_build_action(payload, session))
    if event == "PostToolUse" and get_text(payload, "tool_use_id"):
        return ParsedPayload(session, events=(_build_call_event(payload, session, agent),))
    if event == "SessionEnd":
        words = f"session ended: {get_text(payload, 'reason')}"
        return ParsedPayload(
            session, events=(_build_hook_event(event, words, payload, what="session", ends_session=True),), closes=("",)
        )
    if event == "SubagentStop":
        words = f"subagent ended: {get_text(payload, 'agent_type')}"
        return ParsedPayload(session, events=(_build_hook_event(event, words, payload, what="session", agent=agent),))
    words = {
        "SessionStart": f"session started: {get_text(payload, 'source')}",
        "UserPromptSubmit": f"prompt submitted: {first_line(get_text(payload, 'prompt'))}",
        "PreCompact": f"context compacted: {get_text(payload, 'trigger')}",
        "Stop": "turn ended",
    }.get(event, f"hook event: {event}")
    return ParsedPayload(
        session,
        events=(_build_hook_event(event, words, payload, what="session" if event == "SessionStart" else "note"),),
    )


def _build_hook_event(event: str, words: str, payload: Mapping[str, Any], **more: Any) -> AgentEvent:
    said = {name: value for name, value in payload.items() if name not in _OMITTED_FIELDS}
    model = get_text(payload, "model") or None
    return event_from_payload(
        event, words, {"event": event, **said}, environment=pick_present(payload, _PROVENANCE), model=model, **more
    )


def _read_notify(payload: Mapping[str, Any]) -> ParsedPayload:
    """The end of a turn, as versions without hooks tell it."""
    sort, turn = get_text(payload, "type"), get_text(payload, "turn-id")
    said = {name: value for name, value in payload.items() if name not in ("thread-id", "cwd")}
    environment = {"cwd": payload["cwd"]} if payload.get("cwd") else {}
    reported = event_from_payload("notify", f"turn ended: {sort}", said, key=turn, environment=environment)
    return ParsedPayload(get_text(payload, "thread-id"), events=(reported,))


# --- asking


def _build_action(payload: Mapping[str, Any], session: str) -> Any:
    from aver.hooks.action import build_action, call_id_for

    tool, arguments = get_text(payload, "tool_name"), get_object(payload, "tool_input")
    call_id = call_id_for(TOOL, session, get_text(payload, "tool_use_id"))
    workspace = _session_directory()
    cwd = _call_directory(payload, workspace)
    patch = _find_patch(tool, arguments) if cwd == workspace else None  # Elsewhere its paths are other files.
    if patch is None:
        return build_action(
            tool, arguments, caller=TOOL, session=session, workspace=workspace, cwd=cwd, call_id=call_id
        )
    from aver.ingest.patches import read_patch

    found = read_patch(patch)
    return build_action(
        "apply_patch",
        {"patch": patch},  # Under `command` it would be one of a shell.
        caller=TOOL,
        session=session,
        workspace=workspace,
        diff=None if found is None else found.diff,
        call_id=call_id,
    )


def _session_directory() -> str:
    """The session's directory; empty where it is gone, and then nothing is inside of it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _call_directory(payload: Mapping[str, Any], workspace: str) -> str:
    """Where a call is carried out."""
    cwd = get_text(payload, "cwd") or workspace
    if "\0" in cwd or os.path.realpath(cwd) != os.path.realpath(workspace):
        return cwd
    identifier = get_text(payload, "tool_use_id")
    for line in _find_lines(Path(get_text(payload, "transcript_path")), identifier):
        record = parse_json(line)
        call = get_object(record, "payload") if isinstance(record, dict) else {}
        given = parse_embedded_json(call.get("arguments")) if call.get("call_id") == identifier else None
        if isinstance(given, dict) and get_text(given, "workdir"):
            return os.path.join(workspace, given["workdir"])
    return workspace


def _find_patch(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The patch that a call applies, if that is all that it does."""
    command = arguments.get("command")
    if len(arguments) != 1 or not isinstance(command, str):
        return None
    if tool == "apply_patch":
        return command
    fed = _HEREDOC_PATCH(command) if tool == "Bash" else None
    return None if fed is None else fed[2]


_HEREDOC_PATCH = re.compile(
    r"\s*apply_patch <<\s*'(\w{1,40})'\n(\*\*\* Begin Patch\n.*\n\*\*\* End Patch)\n\1\s*", re.DOTALL
).fullmatch
"""A patch in quotes, in which a shell reads nothing of its own."""


# --- telling


def _build_call_event(payload: Mapping[str, Any], session: str, agent: str) -> AgentEvent:
    identifier = get_text(payload, "tool_use_id")
    reported = _call_from_rollout(payload, session, identifier) or _call_from_payload(payload, identifier)
    return replace(
        reported, agent=agent, environment={**pick_present(payload, _PROVENANCE), **reported.environment}, places=()
    )


def _call_from_payload(payload: Mapping[str, Any], identifier: str) -> AgentEvent:
    tool, arguments = get_text(payload, "tool_name"), get_object(payload, "tool_input")
    subject = first_line(str(arguments.get("command") or ""))
    return AgentEvent(
        what="call",
        key=identifier,
        summary=f"{tool}: {subject}" if subject else tool,
        at=now(),
        model=get_text(payload, "model") or None,
        call=AgentCall(tool=tool, id=identifier, arguments=arguments, result=payload.get("tool_response")),
    )


def _call_from_rollout(payload: Mapping[str, Any], session: str, identifier: str) -> AgentEvent | None:
    """Return the event that the rollout has of the call, with the output of the payload; None if it has none."""
    from aver.agents.codex.rollouts import ADAPTER
    from aver.ingest.contract import TranscriptSource, record_from_bytes

    path, response = Path(get_text(payload, "transcript_path")), payload.get("tool_response")
    lines = list(_find_lines(path, identifier))
    if not lines:
        return None
    lines.insert(0, _build_line("turn_context", {"cwd": get_text(payload, "cwd")}))
    is_patch = get_text(payload, "tool_name") == "apply_patch"
    if is_patch:  # Its output comes as the rollout will have it; that of a command is what the command said.
        output = {"type": "custom_tool_call_output", "call_id": identifier, "output": response}
        lines.append(_build_line("response_item", output))
    turn = ADAPTER.parser(TranscriptSource(tool=TOOL, session=session, path=path))
    events = [event for number, line in enumerate(lines) for event in turn.feed(record_from_bytes(str(number), line))]
    for event in (*events, *turn.finish()):
        if event.key == identifier and event.call is not None:
            result = event.call.result if is_patch else _merge_result(event.call.result, response)
            return replace(event, call=replace(event.call, result=result))
    return None


def _build_line(sort: str, body: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps({"type": sort, "payload": body}).encode()


def _merge_result(told: Any, response: Any) -> Any:
    """The output of the payload, and the exit code that the rollout tells, as the adapter joins them."""
    code = told.get("exit_code") if isinstance(told, Mapping) else None
    return response if code is None else {"exit_code": code, "output": response}


def _find_lines(path: Path, identifier: str) -> Iterator[bytes]:
    """The lines at the end of a rollout that name a call."""
    if not identifier or not path.is_absolute():
        return
    try:
        file = open_regular(path, follow=True)
    except (OSError, ValueError):
        return
    with file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_MAX))
        tail = file.read(TAIL_MAX)
    name = identifier.encode("utf-8", "surrogatepass")
    yield from (line for line in tail.split(b"\n") if name in line)


# --- answering


def reply_ruling(event: str, ruling: HookDecision) -> HookReply:
    """The answer to `PreToolUse`."""
    if ruling.word in ("allow", "leave"):
        return HookReply()
    said = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": ruling.reason}
    return HookReply(encode_answer({"hookSpecificOutput": said}))


def reply_stop(event: str, why: str) -> HookReply:
    return HookReply(code=1) if event == "notify" else HookReply(encode_answer({"continue": False, "stopReason": why}))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    read=read_event,
    reply=reply_ruling,
    done=lambda event: HookReply(),
    failed=lambda event, why: HookReply(code=1),
    stop=reply_stop,
)
