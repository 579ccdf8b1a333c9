"""The contract between the engine of hooks and one agent's hooks.

    payload ──read──▶ ParsedPayload ──gate and ledger──▶ HookDecision ──reply──▶ HookReply

`agents/<name>/hooks.py` knows the agent's payloads and answers, and nothing of ledgers. It reads what it can: it leaves
out what a payload lacks, and reports an event that it does not know as it is. Only the gate decides what may happen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from aver.clock import new_id, now
from aver.fast_dataclass import NamedTuple
from aver.ingest.contract import AgentEvent, EventKind

if TYPE_CHECKING:
    from aver.gate.action import Action

HookChoice = Literal["allow", "ask", "deny", "leave"]
"""It may happen; the agent asks a person; it must not happen; Aver says nothing, and the agent's own rules hold."""


class ParsedPayload(NamedTuple):
    """The question in a payload, and the events that it reports."""

    session: str
    asks: Action | None = None
    """The action that may happen next, if the event asks about one."""
    events: tuple[AgentEvent, ...] = ()
    """The events that have happened and are to be sealed."""
    closes: tuple[str, ...] = ()
    """Subagents whose chains end with this; an empty name is the session itself."""
    asked_person: bool = False
    """Whether the agent makes calls that Aver asked about only after its person has allowed them. Only the agent's own
    structure may say so, and not in modes in which it answers by itself."""
    prompt: str = ""
    """The user's words, where the event reports them. Calls through the proxy are judged by them."""


class HookDecision(NamedTuple):
    """The answer to a question, before it is written in the agent's own form."""

    word: HookChoice
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    """The arguments that the call is to have instead of its own; only for an agent whose `can_rewrite` is true."""


class HookReply(NamedTuple):
    """The answer of the program: standard output, exit code, and on standard error what the person must know."""

    out: str = ""
    code: int = 0
    err: str = ""
    forbids: bool = False
    """Whether this keeps the agent from going on. Then the answer must not get lost."""


class Hook(NamedTuple):
    """One agent's hooks."""

    tool: str
    """The agent's name and the domain of its chains, such as `claude-code`."""
    gating: frozenset[str]
    """Events that ask whether something may happen."""
    identify: Callable[[Mapping[str, Any]], tuple[str, str]]
    """Finds the session and the call in a payload; empty where it names none. For the note of a hook that failed."""
    read: Callable[[str, Mapping[str, Any]], ParsedPayload]
    reply: Callable[[str, HookDecision], HookReply]
    """Writes the answer to an event that asks."""
    done: Callable[[str], HookReply]
    """Writes the answer to an event that only reports."""
    failed: Callable[[str, str], HookReply]
    """Writes the answer where Aver failed and the agent goes on: as visible as it allows. Gets event and reason.

    On an event that asks, its exit code is 0: the guard around the hook blocks after any other."""
    stop: Callable[[str, str], HookReply]
    """Writes the answer that ends the agent's work, where the agent has one. Gets the event and the reason."""
    can_allow: bool = True
    """Whether the agent skips its own prompt where a hook allows a call."""
    can_rewrite: bool = False
    """Whether a hook can give a call other arguments, also where it leaves the decision to the agent."""
    asks_person: frozenset[str] = frozenset()
    """Events on which the agent can ask its person. On others, a call that a person must approve is denied."""
    find_refused: Callable[[Mapping[str, Any], Collection[str]], Collection[str]] | None = None
    """Finds those of some calls that the agent refused before they ran, by fields that the agent itself has written.
    Gets a payload and the calls' keys (`ingest.draft.event_key`). None where the agent has no such fields."""


def event_from_payload(
    event: str,
    summary: str,
    payload: Mapping[str, Any],
    *,
    what: EventKind = "note",
    key: str = "",
    at: str | None = None,
    omitted: Collection[str] = (),
    **more: Any,
) -> AgentEvent:
    """Build the event for a payload that is no tool call. Without an id and a time of its own it gets new ones.

    The record keeps the payload, without the members that are `omitted`: those that it has elsewhere.
    """
    name = f"hook-{event}-{key or new_id()}"
    kept = {member: value for member, value in payload.items() if member not in omitted}
    return AgentEvent(what=what, key=name, summary=summary, at=at or now(), result=kept, **more)


def get_text(payload: Mapping[str, Any], name: str) -> str:
    """Return a text of a payload; empty where there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def get_object(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a payload; empty where there is none."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def parse_duration_ms(value: Any) -> int | None:
    """Return a duration of a payload; None for a value that cannot be one."""
    return round(value) if isinstance(value, int | float) and value >= 0 else None


def pick_present(payload: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of the named members of a payload that have a value."""
    return {name: payload[name] for name in names if payload.get(name)}


def first_line(words: str) -> str:
    """Return the first line with text in it; empty where there is none."""
    return next((line.strip() for line in words.splitlines() if line.strip()), "")


def encode_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer as JSON. Halves of surrogate pairs, which some agents cannot read, are replaced."""
    # Not orjson: an answer must be possible also where the installation is damaged.
    import json

    plain = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return plain.encode("utf-8", "replace").decode()
