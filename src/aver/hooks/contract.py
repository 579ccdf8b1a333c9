"""What a hook's payload says, and the answer to it: the contract over all tools.

    payload ──read──▶ Reading(asks, deeds, closes) ──gate and ledger──▶ Ruling ──reply──▶ what the tool understands

A tool's module knows its payloads and its answers, and nothing of ledgers. It reads what it can: what a payload lacks
is left out, and an event that it does not know is told as it is. Whether something may happen, only the gate says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aver.clock import new_id, now
from aver.ingest.agent_event import AgentEvent, EventKind

if TYPE_CHECKING:
    from aver.gate.action import Action

__all__ = [
    "Hook",
    "HookChoice",
    "HookDecision",
    "HookReply",
    "ParsedPayload",
    "encode_answer",
    "event_from_payload",
    "first_line",
    "get_object",
    "get_text",
    "parse_duration_ms",
    "pick_present",
]

HookChoice = Literal["allow", "ask", "deny", "leave"]
"""It may happen; a person is to be asked; it must not happen; Aver says nothing, and the tool's own rules hold."""


class ParsedPayload(NamedTuple):
    """What a payload asks and tells."""

    session: str
    asks: Action | None = None
    deeds: tuple[AgentEvent, ...] = ()
    closes: tuple[str, ...] = ()
    """Subagents whose chains end with this; an empty name is the session itself."""


class HookDecision(NamedTuple):
    """What is said to something that was asked."""

    word: HookChoice
    reason: str = ""


class HookReply(NamedTuple):
    """What the program answers: standard output, exit code, and what the person is to know on standard error."""

    out: str = ""
    code: int = 0
    err: str = ""
    forbids: bool = False
    """Whether it keeps the tool from going on by itself: then it must not get lost."""


class Hook(NamedTuple):
    """One tool's hooks."""

    tool: str
    """The domain of its chains, such as `claude-code`."""
    gating: frozenset[str]
    """Events that ask whether something may happen."""
    read: Callable[[str, Mapping[str, Any]], ParsedPayload]
    reply: Callable[[str, HookDecision], HookReply]
    """The answer to an event that asks."""
    done: Callable[[str], HookReply]
    """The answer to an event that only tells."""
    failed: Callable[[str, str], HookReply]
    """The answer where Aver failed and the tool goes on: as loudly as the tool allows. Gets the event and why."""
    stop: Callable[[str, str], HookReply]
    """The answer that ends the agent's work, where the tool has one. Gets the event and why."""


def event_from_payload(
    event: str,
    summary: str,
    payload: Mapping[str, Any],
    *,
    what: EventKind = "note",
    key: str = "",
    at: str | None = None,
    **more: Any,
) -> AgentEvent:
    """An event that is no tool call, as a deed. Where it has no id and no time of its own, it is told once, and now."""
    name = f"hook-{event}-{key or new_id()}"
    return AgentEvent(what=what, key=name, summary=summary, at=at or now(), result=dict(payload), **more)


def get_text(payload: Mapping[str, Any], name: str) -> str:
    """A text in a payload; empty where there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def get_object(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in a payload; empty where there is none."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def parse_duration_ms(value: Any) -> int | None:
    """How long something took, as a payload says; None where it says nothing that can be."""
    return round(value) if isinstance(value, int | float) and value >= 0 else None


def pick_present(payload: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What a payload tells of where an event took place: those of its members that say anything."""
    return {name: payload[name] for name in names if payload.get(name)}


def first_line(words: str) -> str:
    return next((line.strip() for line in words.splitlines() if line.strip()), "")


def encode_answer(answer: Mapping[str, Any]) -> str:
    """An answer as tools read it, which must be possible whatever else is not. Halves of surrogate pairs, which some of
    them do not read, are replaced."""
    import json  # Not orjson: the installation may be damaged. That one imports this, so it costs nothing.

    plain = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return plain.encode("utf-8", "replace").decode()
