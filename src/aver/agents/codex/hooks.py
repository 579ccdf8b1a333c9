"""Codex's hooks: https://developers.openai.com/codex/hooks, as of version 0.166; and `notify` of versions without them.

Payloads are made like Claude Code's, with these differences:

* `PreToolUse` understands only a denial. A pass is an empty answer. Where a person must approve, the call is denied,
  and the reason says how to approve it. After the approval, the very same call goes through.
* Commands are reported as `Bash` with a `command`, whatever the tool's own name. `PostToolUse` does not say how they
  ended; the rollout does. Codex writes the call and its end there before it starts the hook, and the output afterwards.
  So Aver builds the event from those lines and the payload's output, with the adapter that reads rollouts. A watcher
  builds the same event. Without those lines Aver uses the payload alone, and does not know whether the call worked.
* A shell may feed a patch to `apply_patch`. Where the command does nothing else, the gate sees the patch.
* The model chooses the directory of a command (`workdir`). `cwd` in the payload is that directory. In earlier versions
  it is the session's own, and only the rollout names another. So the workspace is where Codex starts its hooks: that is
  the session's directory, and the model cannot change it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from aver.gate.action import Action

TOOL = "codex"

TAIL_MAX = 4 * 1024 * 1024
"""Bytes at the end of a rollout in which Aver looks for the lines of a call that has just ended."""

_PROVENANCE = ("cwd", "permission_mode", "turn_id", "agent_type")
_OMITTED_FIELDS = frozenset(
    {"session_id", "transcript_path", "agent_transcript_path", "hook_event_name", "agent_id", "model", *_PROVENANCE}
)
"""Members of a payload that a record has elsewhere, or that lead to a file of the machine."""


def identify(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the session and the call of a payload; empty where it names none. `notify` has a `thread-id`."""
    session = get_text(payload, "session_id") or get_text(payload, "thread-id")
    return session, get_text(payload, "tool_use_id")


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    """Return what an event of Codex asks or reports."""
    session, agent = get_text(payload, "session_id"), get_text(payload, "agent_id")
    environment = pick_present(payload, _PROVENANCE)
    if event == "notify":  # Versions without hooks report the end of a turn by this alone.
        words, turn = f"turn ended: {get_text(payload, 'type')}", get_text(payload, "turn-id")
        environment = pick_present(payload, ("cwd",))
        ended = event_from_payload(
            event, words, payload, key=turn, omitted=("thread-id", "cwd"), environment=environment
        )
        return ParsedPayload(get_text(payload, "thread-id"), events=(ended,))
    if event == "PreToolUse":
        return ParsedPayload(session, asks=_build_action(payload, session))
    identifier = get_text(payload, "tool_use_id")
    if event == "PostToolUse" and identifier:
        call = _call_from_rollout(payload, session, identifier) or _call_from_payload(payload, identifier)
        call = replace(call, agent=agent, environment={**environment, **call.environment}, places=())
        return ParsedPayload(session, events=(call,))

    words = {
        "SessionStart": f"session started: {get_text(payload, 'source')}",
        "SessionEnd": f"session ended: {get_text(payload, 'reason')}",
        "SubagentStop": f"subagent ended: {get_text(payload, 'agent_type')}",
        "UserPromptSubmit": f"prompt submitted: {first_line(get_text(payload, 'prompt'))}",
        "PreCompact": f"context compacted: {get_text(payload, 'trigger')}",
        "Stop": "turn ended",
    }.get(event, f"hook event: {event}")
    reported = event_from_payload(
        event,
        words,
        {"event": event, **payload},
        what="session" if event in ("SessionStart", "SessionEnd", "SubagentStop") else "note",
        omitted=_OMITTED_FIELDS,
        environment=environment,
        model=get_text(payload, "model") or None,
        agent=agent if event == "SubagentStop" else "",
        ends_session=event == "SessionEnd",
    )
    prompt = get_text(payload, "prompt") if event == "UserPromptSubmit" and not agent else ""
    closes = ("",) if event == "SessionEnd" else ()
    return ParsedPayload(session, events=(reported,), closes=closes, prompt=prompt)


# --- events that ask


def _build_action(payload: Mapping[str, Any], session: str) -> Action:
    from aver.hooks.action import build_action

    tool, arguments = get_text(payload, "tool_name"), dict[str, Any](get_object(payload, "tool_input"))
    try:
        workspace = os.getcwd()
    except OSError:  # The session's directory is gone. No path is inside of it then.
        workspace = ""
    cwd, diff = _call_directory(payload, workspace), None
    command = arguments.get("command")
    # Elsewhere than in the workspace, the paths of a patch mean other files than its diff would show.
    if cwd == workspace and len(arguments) == 1 and isinstance(command, str):
        fed = _HEREDOC_PATCH(command) if tool == "Bash" else None
        if tool == "apply_patch" or fed is not None:
            from aver.ingest.patches import read_patch

            patch = command if fed is None else fed[2]
            found = read_patch(patch)
            diff = None if found is None else found.diff
            # Under `command` the gate would take the patch for a shell's command.
            tool, arguments = "apply_patch", {"patch": patch}
    return build_action(
        tool,
        arguments,
        agent=TOOL,
        session=session,
        workspace=workspace,
        cwd=cwd,
        diff=diff,
        tool_use_id=get_text(payload, "tool_use_id"),
    )


def _call_directory(payload: Mapping[str, Any], workspace: str) -> str:
    """Return the directory in which a call is carried out."""
    cwd = get_text(payload, "cwd") or workspace
    if "\0" in cwd or os.path.realpath(cwd) != os.path.realpath(workspace):
        return cwd
    # An earlier version says `cwd` of the session here. The rollout has the arguments of the call.
    identifier = get_text(payload, "tool_use_id")
    for line in _find_lines(Path(get_text(payload, "transcript_path")), identifier):
        record = parse_json(line)
        call = get_object(record, "payload") if isinstance(record, dict) else {}
        given = parse_embedded_json(call.get("arguments")) if call.get("call_id") == identifier else None
        if isinstance(given, dict) and get_text(given, "workdir"):
            return os.path.join(workspace, given["workdir"])
    return workspace


_HEREDOC_PATCH = re.compile(
    r"\s*apply_patch <<\s*'(\w{1,40})'\n(\*\*\* Begin Patch\n.*\n\*\*\* End Patch)\n\1\s*", re.DOTALL
).fullmatch
"""A patch between quoted marks: the shell expands nothing inside of it."""


# --- events that report a call


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
    """Build the event from the rollout's lines and the payload's output; None where the lines make no call."""
    import json

    from aver.agents.codex.rollouts import ADAPTER
    from aver.ingest.contract import TranscriptSource, record_from_bytes

    path, response = Path(get_text(payload, "transcript_path")), payload.get("tool_response")
    lines = list(_find_lines(path, identifier))
    if not lines:
        return None
    turn_context = {"type": "turn_context", "payload": {"cwd": get_text(payload, "cwd")}}
    lines.insert(0, json.dumps(turn_context).encode())
    is_patch = get_text(payload, "tool_name") == "apply_patch"
    if is_patch:  # The payload has the output of a patch as the rollout will have it: let the adapter read it.
        output = {"type": "custom_tool_call_output", "call_id": identifier, "output": response}
        lines.append(json.dumps({"type": "response_item", "payload": output}).encode())
    turn = ADAPTER.parser(TranscriptSource(tool=TOOL, session=session, path=path))
    events = [event for number, line in enumerate(lines) for event in turn.feed(record_from_bytes(str(number), line))]
    for event in (*events, *turn.finish()):
        if event.key == identifier and event.call is not None:
            result = event.call.result
            if not is_patch:  # The payload has the output of a command, the rollout its exit code.
                code = result.get("exit_code") if isinstance(result, Mapping) else None
                result = response if code is None else {"exit_code": code, "output": response}
            return replace(event, call=replace(event.call, result=result))
    return None


def _find_lines(path: Path, identifier: str) -> Iterator[bytes]:
    """Yield the lines at the end of a rollout that name a call."""
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


# --- answers


def write_reply(event: str, decision: HookDecision) -> HookReply:
    """Write the answer to `PreToolUse`. Codex does not understand `ask`: that is a denial with the reason."""
    if decision.word in ("allow", "leave"):
        return HookReply()
    answer = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": decision.reason}
    return HookReply(encode_answer({"hookSpecificOutput": answer}))


def write_stop(event: str, why: str) -> HookReply:
    """Write the answer that ends the turn. Codex reads no answer to `notify`."""
    return HookReply(code=1) if event == "notify" else HookReply(encode_answer({"continue": False, "stopReason": why}))


def write_failed(event: str, why: str) -> HookReply:
    """Write the answer where Aver failed and the agent goes on. An exit code other than 0 would block a call."""
    return HookReply(encode_answer({"systemMessage": why})) if event == "PreToolUse" else HookReply(code=1)


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"PreToolUse"}),
    identify=identify,
    read=read_event,
    reply=write_reply,
    done=lambda event: HookReply(),
    failed=write_failed,
    stop=write_stop,
    can_allow=False,
)
