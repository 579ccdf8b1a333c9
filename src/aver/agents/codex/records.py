"""The records of a Codex rollout: the kinds that Aver knows, and the facts in them.

A rollout is JSON Lines. A prompt, a call and its output (shortened):

    {"timestamp": "2026-05-31T09:01:02.000Z", "type": "event_msg", "payload": {"type": "user_message", "message": "…"}}
    {"timestamp": "2026-05-31T09:01:05.000Z", "type": "response_item", "payload": {"type": "function_call",
      "call_id": "call_2", "name": "exec_command", "arguments": "{\\"cmd\\": \\"pytest -q\\"}"}}
    {"timestamp": "2026-05-31T09:01:06.000Z", "type": "response_item", "payload": {"type": "function_call_output",
      "call_id": "call_2", "output": "Wall time: 0.4 seconds\\nProcess exited with code 0\\nOutput:\\n3 passed"}}

The kind of a record is its `type` and the `type` of its payload: `event_msg.user_message`,
`response_item.function_call`. For an `item_completed` event it is the type of the item: `item_completed.FileChange`.
`arguments` is JSON in a string. Early versions write the payload without the object around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from aver.ingest.attachments import digest_reference, replace_images
from aver.ingest.contract import Permission, RawRecord, Tokens, line_key
from aver.ingest.foreign_json import UNREADABLE, content_text, parse_json, to_utc

REPORT_KINDS = frozenset(
    f"event_msg.{name}"
    for name in (
        *("exec_command_end", "patch_apply_end", "mcp_tool_call_end", "web_search_end", "image_generation_end"),
        *("dynamic_tool_call_response", "view_image_tool_call", "collab_agent_spawn_end", "collab_waiting_end"),
        *("collab_agent_interaction_end", "collab_close_end", "collab_resume_end"),
    )
) | frozenset(
    f"item_completed.{name}"
    for name in (
        *("CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "CollabAgentToolCall", "WebSearch"),
        *("ImageView", "ImageGeneration"),
    )
)
"""Events with facts about a call that its output does not have."""

PROMPT_REPEATS = ("event_msg.user_message", "item_completed.UserMessage")
ANSWER_REPEATS = ("event_msg.agent_message", "item_completed.AgentMessage")
THOUGHT_KINDS = ("response_item.reasoning", "event_msg.agent_reasoning_raw_content", "item_completed.Reasoning")

NOTE_LABELS = {
    "compacted": "history compacted",
    "response_item.compaction": "history compacted",
    "response_item.context_compaction": "history compacted",
    "response_item.agent_message": "message between agents",
    "response_item.ghost_snapshot": "snapshot of the working tree",
    "inter_agent_communication": "message between agents",
    "security_risk_score": "risk score",
    "event_msg.turn_aborted": "turn aborted",
    "event_msg.task_complete": "turn complete",
    "event_msg.turn_complete": "turn complete",
    "event_msg.thread_rolled_back": "turns rolled back",
    "event_msg.error": "error",
    "event_msg.stream_error": "error in the stream",
    "event_msg.warning": "warning",
    "event_msg.guardian_warning": "warning",
    "event_msg.guardian_assessment": "automatic review",
    "event_msg.entered_review_mode": "review begun",
    "event_msg.exited_review_mode": "review ended",
    "event_msg.undo_completed": "undone",
    "event_msg.thread_name_updated": "named",
    "event_msg.thread_goal_updated": "goal set",
    "event_msg.model_reroute": "another model",
    "event_msg.hook_completed": "hook",
    "event_msg.plan_update": "plan",
    "event_msg.sub_agent_activity": "subagent",
    "event_msg.shutdown_complete": "session ended",
    "event_msg.request_user_input": "question to the user",
    "event_msg.elicitation_request": "question to the user",
    "item_completed.Plan": "plan",
    "item_completed.HookPrompt": "hook",
    "item_completed.Sleep": "wait",
    "item_completed.SubAgentActivity": "subagent",
    "item_completed.EnteredReviewMode": "review begun",
    "item_completed.ExitedReviewMode": "review ended",
}
"""Records that become notes, and the beginning of the note's summary."""

TURN_ENDS = ("event_msg.task_complete", "event_msg.turn_complete", "event_msg.turn_aborted")
_STATUSES: Mapping[str, Literal["partial", "failure"]] = {
    "event_msg.turn_aborted": "partial",
    "event_msg.error": "failure",
    "event_msg.stream_error": "failure",
}

LINE_MAX = 160
"""The most characters of a text in a summary."""

SKIPPED_KINDS = frozenset(
    (
        "world_state",  # The model's surroundings. Messages to the model have them too.
        "dynamic_tools_updated",  # The tools that a client offers. Calls have their own records.
        "inter_agent_communication_metadata",  # The message has its own record.
        "early.state",  # Marks between turns, without content.
        "response_item.compaction_trigger",  # The compaction has its own record.
        "response_item.additional_tools",  # The tools that a client offers.
        "event_msg.agent_reasoning",  # The reasoning record has this summary too.
        "event_msg.agent_reasoning_section_break",
        "event_msg.context_compacted",  # The compaction has its own record.
        "item_completed.ContextCompaction",
        "event_msg.item_started",  # From here on: starts. The completion has its own record.
        "event_msg.exec_command_begin",
        "event_msg.patch_apply_begin",
        "event_msg.mcp_tool_call_begin",
        "event_msg.web_search_begin",
        "event_msg.dynamic_tool_call_request",
    )
)
"""Kinds that repeat other records. They become no event, but the digest over all records still covers them."""

_INJECTED = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "<skill>", "<turn_aborted>"),
    *("<subagent_notification>", "<user_shell_command>", "<ENVIRONMENT_CONTEXT>", "# AGENTS.md instructions"),
    *("<collaboration_mode>", "<personality_spec>", "<INSTRUCTIONS>", "<hook_prompt", "<goal_context>"),
)
"""Beginnings of texts that Codex writes as messages of the user."""

_UUID7 = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
"""A UUID of version 7 begins with the time at which it was made, in milliseconds."""
_EARLY_ITEMS = (
    *("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"),
    *("custom_tool_call_output", "web_search_call"),
)


class CodexLine(NamedTuple):
    """One record."""

    kind: str
    body: Mapping[str, Any]
    at: str | None
    place: str
    outer: Mapping[str, Any]
    """The payload, where `body` is an item inside it."""
    key: str = ""
    """The key of a record without an id: its line."""


class CodexNote(NamedTuple):
    """A record that is neither a message nor a call."""

    summary: str
    words: str
    status: Literal["partial", "failure"] | None
    title: str | None
    took_ms: int | None
    facts: dict[str, Any]
    ends_turn: str
    """The key for the end of a turn; empty for other notes, and if the turn has no id."""


class Thought(NamedTuple):
    """Reasoning of the model. `signature` is the digest of its encrypted form."""

    content: str
    summary: str
    signature: str


def parse_line(raw: RawRecord) -> CodexLine | None:
    """Parse one line of a rollout; None if it is no record of Codex."""
    record = parse_json(raw)
    if record is UNREADABLE or not isinstance(record, dict):
        return None
    payload, record_type, at = record.get("payload"), record.get("type"), to_utc(record.get("timestamp"))
    body, outer = record, record
    if isinstance(payload, dict):
        if not isinstance(record_type, str):
            return None
        inner, item = payload.get("type"), payload.get("item")
        body = outer = payload
        kind = f"{record_type}.{inner}" if record_type in ("response_item", "event_msg") else record_type
        if kind == "event_msg.item_completed" and isinstance(item, dict):
            kind, body = f"item_completed.{item.get('type')}", item
    # Early versions, such as 0.29, write the payload itself, without `type` and `payload` around it.
    elif record_type in _EARLY_ITEMS:
        kind = f"response_item.{record_type}"
    elif "record_type" in record:
        kind = "early.state"
    elif record_type is None and isinstance(record.get("id"), str) and at is not None:
        kind = "session_meta"
    elif isinstance(record_type, str):
        kind = record_type
    else:
        return None
    return CodexLine(kind, body, at, raw.place, outer, line_key(raw))


def is_from_user(body: Mapping[str, Any]) -> bool | None:
    """Return whether the user wrote a message with the role `user`; None if the message does not say."""
    # Newer versions name the kind of each part. Kinds that begin with `user.` are the user's.
    about = body.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, Mapping) else None
    if not isinstance(kinds, list) or "unknown" in kinds or not all(isinstance(kind, str) for kind in kinds):
        return None
    return any(kind.startswith("user.") for kind in kinds) if kinds else None


def looks_injected(text: str) -> bool:
    return text.lstrip().startswith(_INJECTED)


def is_older_turn(turn: Any, thread: str) -> bool:
    """Return whether a turn surely began before a thread, and so belongs to another thread."""
    begun, made = _UUID7(turn) if isinstance(turn, str) else None, _UUID7(thread)
    return begun is not None and made is not None and begun[1] < made[1]


def names_thread(line: CodexLine, thread: str) -> bool:
    return line.kind != "session_meta" and line.outer.get("thread_id") == thread


def read_session_facts(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts in a session's first record: directory, version, commit, parent thread."""
    git = meta.get("git")
    git = git if isinstance(git, Mapping) else {}
    facts = {
        "cwd": meta.get("cwd"),
        "version": meta.get("cli_version"),
        "originator": meta.get("originator"),
        "model_provider": meta.get("model_provider"),
        "git_commit": git.get("commit_hash"),
        "git_branch": git.get("branch"),
        "repository_url": git.get("repository_url"),
        "forked_from": meta.get("forked_from_id"),
        "parent_thread": meta.get("parent_thread_id"),
        "agent_nickname": meta.get("agent_nickname"),
        "agent_role": meta.get("agent_role"),
    }
    return {name: value for name, value in facts.items() if isinstance(value, str) and value}


def read_settings(line: CodexLine) -> dict[str, Any]:
    """Return the settings that apply from this record on. Turn contexts, turn starts and token counts have them."""
    inner = "info" if line.kind == "event_msg.token_count" else "thread_settings"
    body = line.body.get(inner, line.body)
    body = body if isinstance(body, Mapping) else {}
    facts = {
        "turn_id": body.get("turn_id"),
        "cwd": body.get("cwd"),
        "model": body.get("model"),
        "approval_policy": body.get("approval_policy"),
        "approvals_reviewer": body.get("approvals_reviewer"),
        "sandbox_policy": body.get("sandbox_policy"),
        "effort": body.get("effort") or body.get("reasoning_effort"),
        "timezone": body.get("timezone"),
        "context_window": body.get("model_context_window"),
    }
    return {name: value for name, value in facts.items() if isinstance(value, str | int | dict) and value != ""}


def read_base_instructions(meta: Mapping[str, Any]) -> str:
    given = meta.get("base_instructions") or meta.get("instructions")
    text = given.get("text") if isinstance(given, Mapping) else given
    return text if isinstance(text, str) else ""


def read_note(line: CodexLine) -> CodexNote:
    body, kind = line.body, line.kind
    words = next((body[name] for name in ("message", "reason", "text") if isinstance(body.get(name), str)), "")
    name, took, turn, snapshot = (body.get(key) for key in ("thread_name", "duration_ms", "turn_id", "ghost_commit"))
    return CodexNote(
        summary=f"{NOTE_LABELS[kind]}: {first_line(words)}".removesuffix(": "),
        words=words,
        status=_STATUSES.get(kind),
        title=name if isinstance(name, str) and name else None,
        took_ms=took if isinstance(took, int) and not isinstance(took, bool) and 0 <= took < 2**53 else None,
        facts={"checkpoint": snapshot.get("id")} if isinstance(snapshot, Mapping) else {},
        ends_turn=f"{turn}:{kind.partition('.')[2]}" if kind in TURN_ENDS and isinstance(turn, str) and turn else "",
    )


def first_line(text: str) -> str:
    """Return the first line of a text, shortened for a summary."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"


def read_thought(line: CodexLine) -> Thought:
    body = line.body
    if line.kind != "response_item.reasoning":
        return Thought(
            content_text(body.get("raw_content") or body.get("text")), content_text(body.get("summary_text")), ""
        )
    hidden = body.get("encrypted_content")
    signature = f"sha256:{digest_reference(hidden)['sha256']}" if isinstance(hidden, str) and hidden else ""
    return Thought(content_text(body.get("content")), content_text(body.get("summary")), signature)


def read_tokens(usage: Any) -> Tokens | None:
    """Return the tokens of one answer of the API; None if there is no count."""
    if not isinstance(usage, Mapping):
        return None
    counts = {name: count for name, count in usage.items() if isinstance(count, int) and not isinstance(count, bool)}
    return Tokens(input=counts.get("input_tokens"), output=counts.get("output_tokens"), native=counts)


def permission_from_policy(settings: Mapping[str, Any]) -> Permission:
    """Return the approval policy under which Codex makes a call. It does not say whether a person was asked."""
    policy = settings.get("approval_policy")
    # Newer versions may write `{"granular": {…}}` instead of a word.
    if isinstance(policy, Mapping):
        policy = next((name for name in policy if isinstance(name, str)), "") or "granular"
    if not isinstance(policy, str) or not policy:
        return Permission()
    return Permission(by="autonomous" if policy == "never" else "policy", reference=f"approval_policy={policy}")


def replace_heavy_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's content with digest and size instead of large fields and copies."""
    heavy = {name: body[name] for name in _HEAVY_FIELDS if isinstance(body.get(name), list | dict | str) and body[name]}
    rest = {name: value for name, value in body.items() if name not in heavy and name not in _DROPPED_FIELDS}
    kept = {
        name: digest_reference(json.dumps(value, ensure_ascii=False), "application/json")
        for name, value in heavy.items()
    }
    return {**replace_images(rest), **kept}


_HEAVY_FIELDS = (
    *("replacement_history", "replacement_history_metadata", "base_instructions", "instructions", "ghost_commit"),
    *("encrypted_content", "dynamic_tools"),
)
_DROPPED_FIELDS = ("internal_chat_message_metadata_passthrough",)
