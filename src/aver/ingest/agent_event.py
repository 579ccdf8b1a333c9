"""One thing that a coding agent did, in a form that is the same for all agents.

Adapters and hooks make events and know nothing of capsules. `draft` makes capsules from events and knows nothing of
agents. An unknown value is left out and never guessed: time, duration, tokens, permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from aver.fast_dataclass import dataclass

__all__ = [
    "INFERRED_OUTCOME",
    "SESSION_COST",
    "AgentCall",
    "AgentEvent",
    "EventKind",
    "Permission",
    "Prompt",
    "Tokens",
    "build_unknown_event",
]

EventKind = Literal["prompt", "call", "answer", "session", "note", "unknown"]
"""The sorts of events: a person's prompt; a tool call; an answer of the model; a session's beginning, end or settings;
a note about anything else that the agent recorded (a compaction, an attachment, a rollback); a record of an unknown
sort."""


INFERRED_OUTCOME = MappingProxyType({"outcome_from": "words"})
"""In the environment of a call: the adapter made its result and diff from the arguments and from the text that the
model got. A hook that saw the call itself knows more."""


SESSION_COST = "session_cost_usd"
"""In the environment of a record: the cost of the whole session so far, subagents included, as the agent states it.
Such totals are never added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A person's prompt. Every event until the next prompt follows from it."""

    key: str
    """The key of the prompt's own event."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """A tool call and its outcome."""

    tool: str
    """The tool's name, as the agent writes it."""
    id: str
    """The agent's own id of the call."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """The whole result: text, or an object such as {stdout, stderr, exit_code}. For an edit this is the tool's message;
    the change itself is in `diff`."""
    ok: bool | None = None
    """Whether the call succeeded; None if that is unknown."""
    error: str | None = None
    """Why it failed, in the tool's words."""
    diff: str | None = None
    """For an edit: the unified diff, `--- a/...`, `+++ b/...`, `@@`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The cost of one API message. It is counted once: at the first event of the message."""

    input: int | None = None
    """All input tokens, cached or not."""
    output: int | None = None
    cost_usd: float | None = None
    native: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own counts, under its own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Who or what allowed the event, as far as it is known."""

    by: Literal["human_approved", "policy", "autonomous", "unknown"] = "unknown"
    reference: str | None = None
    """Under which rule or mode: `permission_mode=acceptEdits`."""
    denied: bool = False
    """A person, a rule or a hook refused it, so it did not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One thing that an agent or a person did or said."""

    what: EventKind
    key: str
    """Stable within the session: a call's id, a record's own id. The same from a hook and from the transcript."""
    summary: str
    """One line for a person: `Edit: src/app.py (+3/-1)`."""
    at: str | None = None
    """The time as the transcript has it, in any form of ISO 8601."""
    duration_ms: int | None = None
    prompt: Prompt | None = None
    """The prompt that it follows from."""
    text: str = ""
    """The visible text: the whole answer, or what the model wrote before a call."""
    thinking: str = ""
    """The model's reasoning, if the agent keeps it."""
    signatures: tuple[str, ...] = ()
    """The signatures of the reasoning, whole."""
    redacted: bool = False
    """Whether there was reasoning whose text the agent does not keep."""
    model: str | None = None
    tokens: Tokens | None = None
    allowed: Permission = Permission()
    call: AgentCall | None = None
    status: Literal["success", "failure", "partial", "blocked", "pending"] | None = None
    """The status; None means that it follows from the call."""
    side_effects: tuple[str, ...] = ()
    """Lines of the form `edited PATH`, `wrote PATH`, `deleted PATH`, `ran COMMAND`, `delegated to NAME`."""
    result: Any = None
    """For events that are no call: more to keep beside the text."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Provenance: cwd, git_branch, version, request_id, context_window, checkpoint and so on, if known."""
    cause: str = ""
    """The key of the event that caused it. For a subagent: the call in the parent's session that launched it."""
    agent: str = ""
    """The subagent's id, if its records are in the parent's transcript. Its events go to a chain of its own."""
    launched: str = ""
    """The id of the subagent that this call launched."""
    title: str | None = None
    """The session's title, if this record sets it."""
    places: tuple[str, ...] = ()
    """The `place` of every raw record from which the event was made."""
    ends_session: bool = False


def build_unknown_event(place: str, sort: str, record: Any, *, key: str, at: str | None = None) -> AgentEvent:
    """Make an event that keeps a record raw, because the adapter does not know its sort or cannot read it."""
    named = sort[:RECORD_KIND_MAX] or "unreadable"
    return AgentEvent(
        what="unknown",
        key=key,
        summary=f"unknown record: {named}",
        at=at,
        result=record,
        environment={"unknown_record": named},
        places=(place,),
    )


RECORD_KIND_MAX = 80
"""Longest name of a sort of record, in characters."""
