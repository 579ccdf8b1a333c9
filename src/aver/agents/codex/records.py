"""The records of a Codex rollout: what sorts there are, and the facts that they set.

A record's sort is its type and that of what it carries: `response_item.function_call`, `event_msg.token_count`,
`item_completed.FileChange`. Rollouts of early versions hold what is now a payload as the record itself.
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
"""Events that tell of a call what its output does not."""

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
"""Records that are notes, and what they are called."""

TURN_ENDS = ("event_msg.task_complete", "event_msg.turn_complete", "event_msg.turn_aborted")
_STATUSES: Mapping[str, Literal["partial", "failure"]] = {
    "event_msg.turn_aborted": "partial",
    "event_msg.error": "failure",
    "event_msg.stream_error": "failure",
}

LINE_MAX = 160
"""Characters of a text that stand in a summary."""

SKIPPED_KINDS = frozenset(
    (
        "world_state",  # What the model is told about its surroundings: it stands in messages to it.
        "dynamic_tools_updated",  # Which tools a client offers; what is called is in the calls.
        "inter_agent_communication_metadata",  # Of a message that has its own record.
        "early.state",  # Marks between turns, without content.
        "response_item.compaction_trigger",  # The compaction has its own record.
        "response_item.additional_tools",  # Which tools are offered.
        "event_msg.agent_reasoning",  # The summary that is in the reasoning itself.
        "event_msg.agent_reasoning_section_break",
        "event_msg.context_compacted",  # The compaction has its own record.
        "item_completed.ContextCompaction",
        "event_msg.item_started",  # Begun; what is done is told when it is completed.
        "event_msg.exec_command_begin",
        "event_msg.patch_apply_begin",
        "event_msg.mcp_tool_call_begin",
        "event_msg.web_search_begin",
        "event_msg.dynamic_tool_call_request",
    )
)
"""Known, and nothing in them that is not told elsewhere. They stay covered by the digest over all records."""

_INJECTED = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "<skill>", "<turn_aborted>"),
    *("<subagent_notification>", "<user_shell_command>", "<ENVIRONMENT_CONTEXT>", "# AGENTS.md instructions"),
    *("<collaboration_mode>", "<personality_spec>", "<INSTRUCTIONS>", "<hook_prompt", "<goal_context>"),
)
"""How texts begin that Codex puts among the messages of the user."""

_UUID7 = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
"""Such an id begins with the milliseconds of its making."""
_EARLY_ITEMS = (
    *("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"),
    *("custom_tool_call_output", "web_search_call"),
)


class CodexLine(NamedTuple):
    """One record."""

    sort: str
    body: Mapping[str, Any]
    at: str | None
    place: str
    outer: Mapping[str, Any]
    """The payload, where `body` is an item inside it."""
    key: str = ""
    """What tells it from all others, where it has no id."""


class CodexNote(NamedTuple):
    """What a record says that is neither a message nor a call."""

    summary: str
    words: str
    status: Literal["partial", "failure"] | None
    title: str | None
    took_ms: int | None
    facts: dict[str, Any]
    ends_turn: str
    """The key of the end of a turn; empty where it is none, or its turn has no id."""


class Thought(NamedTuple):
    """A reasoning. What is encrypted stays known by its digest."""

    content: str
    summary: str
    signature: str


def parse_line(raw: RawRecord) -> CodexLine | None:
    """A record; None where it cannot be read as one."""
    line = _parse_record(raw)
    return None if line is None else line._replace(key=line_key(raw))


def _parse_record(raw: RawRecord) -> CodexLine | None:
    record = parse_json(raw)
    if record is UNREADABLE or not isinstance(record, dict):
        return None
    payload, kind, at = record.get("payload"), record.get("type"), to_utc(record.get("timestamp"))
    if not isinstance(payload, dict):
        return _parse_early_record(record, kind, at, raw.place)
    if not isinstance(kind, str):
        return None
    inner = payload.get("type")
    if kind == "event_msg" and inner == "item_completed" and isinstance(item := payload.get("item"), dict):
        return CodexLine(f"item_completed.{item.get('type')}", item, at, raw.place, payload)
    sort = f"{kind}.{inner}" if kind in ("response_item", "event_msg") else kind
    return CodexLine(sort, payload, at, raw.place, payload)


def _parse_early_record(record: dict[str, Any], kind: Any, at: str | None, place: str) -> CodexLine | None:
    """A record of an early version, such as 0.29: no envelope around what it says."""
    if kind in _EARLY_ITEMS:
        return CodexLine(f"response_item.{kind}", record, at, place, record)
    if "record_type" in record:
        return CodexLine("early.state", record, at, place, record)
    if kind is None and isinstance(record.get("id"), str) and at is not None:
        return CodexLine("session_meta", record, at, place, record)
    return CodexLine(str(kind), record, at, place, record) if isinstance(kind, str) else None


def is_from_user(body: Mapping[str, Any]) -> bool | None:
    """Whether a message in the user's name is the user's, or put there by Codex; None where it does not say."""
    about = body.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, Mapping) else None
    if not isinstance(kinds, list) or "unknown" in kinds or not all(isinstance(kind, str) for kind in kinds):
        return None
    return any(kind.startswith("user.") for kind in kinds) if kinds else None


def looks_injected(text: str) -> bool:
    return text.lstrip().startswith(_INJECTED)


def is_older_turn(turn: Any, thread: str) -> bool:
    """Whether a turn surely began before a thread did, and so is of another."""
    begun, made = _UUID7(turn) if isinstance(turn, str) else None, _UUID7(thread)
    return begun is not None and made is not None and begun[1] < made[1]


def names_thread(line: CodexLine, thread: str) -> bool:
    return line.sort != "session_meta" and line.outer.get("thread_id") == thread


def read_session_facts(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What a session's first record says of where it takes place."""
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
    """What holds from here on, as a turn's context or beginning, changed settings or a count of tokens say it."""
    inner = "info" if line.sort == "event_msg.token_count" else "thread_settings"
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
    body, sort = line.body, line.sort
    words = next((body[name] for name in ("message", "reason", "text") if isinstance(body.get(name), str)), "")
    name, took, turn, snapshot = (body.get(key) for key in ("thread_name", "duration_ms", "turn_id", "ghost_commit"))
    return CodexNote(
        summary=f"{NOTE_LABELS[sort]}: {first_line(words)}".removesuffix(": "),
        words=words,
        status=_STATUSES.get(sort),
        title=name if isinstance(name, str) and name else None,
        took_ms=took if isinstance(took, int) and not isinstance(took, bool) and 0 <= took < 2**53 else None,
        facts={"checkpoint": snapshot.get("id")} if isinstance(snapshot, Mapping) else {},
        ends_turn=f"{turn}:{sort.partition('.')[2]}" if sort in TURN_ENDS and isinstance(turn, str) and turn else "",
    )


def first_line(text: str) -> str:
    """What stands of a text in a summary."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"


def read_thought(line: CodexLine) -> Thought:
    body = line.body
    if line.sort != "response_item.reasoning":
        return Thought(
            content_text(body.get("raw_content") or body.get("text")), content_text(body.get("summary_text")), ""
        )
    hidden = body.get("encrypted_content")
    signature = f"sha256:{digest_reference(hidden)['sha256']}" if isinstance(hidden, str) and hidden else ""
    return Thought(content_text(body.get("content")), content_text(body.get("summary")), signature)


def read_tokens(usage: Any) -> Tokens | None:
    """What one answer of the API cost; None where that is not said."""
    if not isinstance(usage, Mapping):
        return None
    counts = {name: count for name, count in usage.items() if isinstance(count, int) and not isinstance(count, bool)}
    return Tokens(input=counts.get("input_tokens"), output=counts.get("output_tokens"), native=counts)


def permission_from_policy(settings: Mapping[str, Any]) -> Permission:
    """Under which of Codex's policies a call is made. Whether a person was asked under it is not said by it."""
    policy = settings.get("approval_policy")
    if isinstance(policy, Mapping):
        policy = next((name for name in policy if isinstance(name, str)), "") or "granular"
    if not isinstance(policy, str) or not policy:
        return Permission()
    return Permission(by="autonomous" if policy == "never" else "policy", reference=f"approval_policy={policy}")


def replace_heavy_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """A record's content, what is heavy or a copy in it by digest and size."""
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
