"""One thing that an agent did, as its transcript or its hook tells it, whatever the tool.

Adapters make deeds and know nothing of capsules; `drafting` makes capsules of deeds and knows nothing of tools. What is
not known is left out, never guessed: no time, no duration, no tokens, `Authority` unknown.
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
"""What a deed is: what a person asked; a tool call; what the model said; a session's beginning, end or settings;
something else that the tool recorded (a compaction, an attachment, a rollback); a record of a sort not known."""


INFERRED_OUTCOME = MappingProxyType({"outcome_from": "words"})
"""In the environment of a call: its result and diff were made of its arguments and of the words that the model got.
Whoever saw the call itself knows more."""


SESSION_COST = "session_cost_usd"
"""In the environment of a record: what the whole session has cost until then, subagents and all, by the tool's own
account. Such totals are never added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a person asked for, which everything until the next prompt follows from."""

    key: str
    """Of the deed that is the prompt itself."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """A tool call and what came of it."""

    tool: str
    """The tool's own name for it."""
    id: str
    """The tool's own id of the call."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """What it gave back, in full: text, or an object such as {stdout, stderr, exit_code}. For an edit, the unified diff
    stands in `diff` and this is what the tool said."""
    ok: bool | None = None
    """Whether it worked; None where that was never learned."""
    error: str | None = None
    """Why it did not, in the tool's words."""
    diff: str | None = None
    """For an edit: the unified diff, `--- a/...`, `+++ b/...`, `@@`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What an API message cost. Counted once per message: on the first deed of it that is told."""

    input: int | None = None
    """All that went in, cached or not."""
    output: int | None = None
    cost_usd: float | None = None
    native: Mapping[str, Any] = field(default_factory=dict)
    """The tool's own counts, by its own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Who or what allowed it, as far as the transcript tells."""

    by: Literal["human_approved", "policy", "autonomous", "unknown"] = "unknown"
    reference: str | None = None
    """Under which rule or mode: `permission_mode=acceptEdits`."""
    denied: bool = False
    """It was asked for and refused: by a person, a rule or a hook. It did not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One thing that was done or said."""

    what: EventKind
    key: str
    """Stable within the session: a call's id, a record's own id. The same from a hook and from the transcript."""
    summary: str
    """One line for a person: `Edit: src/app.py (+3/-1)`."""
    at: str | None = None
    """When, as the transcript says it (any ISO 8601), or milliseconds since 1970 written as ISO by `times.from_ms`."""
    duration_ms: int | None = None
    prompt: Prompt | None = None
    """What it follows from."""
    text: str = ""
    """What was visibly said: of an answer, all of it; of a call, what the model wrote before it."""
    thinking: str = ""
    """The model's reasoning, where it is kept."""
    signatures: tuple[str, ...] = ()
    """Of reasoning: the signatures, whole."""
    redacted: bool = False
    """Reasoning took place and its text is not kept."""
    model: str | None = None
    tokens: Tokens | None = None
    allowed: Permission = Permission()
    call: AgentCall | None = None
    status: Literal["success", "failure", "partial", "blocked", "pending"] | None = None
    """None: as the call ended."""
    side_effects: tuple[str, ...] = ()
    """Of which kinds `edited PATH`, `wrote PATH`, `deleted PATH`, `ran COMMAND`, `delegated to NAME`."""
    result: Any = None
    """Of what is not a call: what there is to keep besides the text."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Provenance: cwd, git_branch, version, request_id, context_window, checkpoint, ... Only what is known."""
    cause: str = ""
    """Key of the deed that caused it (in the parent's session: the call that launched this subagent)."""
    agent: str = ""
    """Of a subagent whose records stand in its parent's transcript: which. Its deeds go to a chain of its own."""
    launched: str = ""
    """The id of the subagent that this call launched."""
    title: str | None = None
    """A name for the session, where this record gives it one."""
    places: tuple[str, ...] = ()
    """`Raw.place` of every record that it rests on."""
    ends_session: bool = False


def build_unknown_event(place: str, sort: str, record: Any, *, key: str, at: str | None = None) -> AgentEvent:
    """A record of a sort that the adapter does not know, or cannot read: kept as it is."""
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
"""Characters of the name of a sort of record."""
