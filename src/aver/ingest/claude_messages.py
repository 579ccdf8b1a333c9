"""What is known of a conversation with Claude Code between two of its records.

A message of the model is written in several lines, one for each block, with the same id and the same usage, which may
grow from line to line; and the results of its calls may stand between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aver.ingest.claude_values import Json, whole_number, words
from aver.ingest.deed import Allowed, Call, Deed, Prompt, Tokens, What

__all__ = ["Begun", "Held", "Lane", "Origin", "Spending"]

_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class Origin(NamedTuple):
    """Where a deed comes from: what its record says before it says anything."""

    place: str
    key: str
    """What the record calls itself. A deed's own key follows from it."""
    at: str | None
    environment: Mapping[str, Any]
    prompt: Prompt | None
    agent: str
    cause: str
    model: str | None = None

    def deed(self, what: What, key: str, summary: str, **more: Any) -> Deed:
        facts: dict[str, Any] = {
            "at": self.at,
            "environment": self.environment,
            "prompt": self.prompt,
            "agent": self.agent,
            "cause": self.cause,
            "model": self.model,
            "places": (self.place,),
        }
        return Deed(what=what, key=key, summary=summary, **facts | more)

    def numbered(self, number: int) -> Origin:
        """Of a record that gives more than one deed: the one with this number."""
        return self._replace(key=f"{self.key}:{number}") if number else self


@dataclass(slots=True)
class Held:
    """What the model has written and thought in a message, and what was not told yet."""

    message: str
    origin: Origin
    failed: bool = False
    """The program speaks in the model's place: the message never came."""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    redacted: bool = False
    places: list[str] = field(default_factory=list)

    def add(self, block: Json, place: str) -> None:
        """A block `text`, `thinking` or `redacted_thinking`."""
        self.places.append(place)
        if block.get("type") == "text":
            if text := words(block.get("text")):
                self.texts.append(text)
            return
        if thought := words(block.get("thinking")):
            self.thoughts.append(thought)
        else:
            self.redacted = True
        if signature := words(block.get("signature")) or words(block.get("data")):
            self.signatures.append(signature)

    def said(self) -> dict[str, Any]:
        """What a deed tells of it."""
        return {
            "text": "\n".join(self.texts),
            "thinking": "\n".join(self.thoughts),
            "signatures": tuple(self.signatures),
            "redacted": self.redacted,
        }


@dataclass(slots=True)
class Lane:
    """One conversation: the session's own, or that of a subagent whose records stand among its."""

    agent: str = ""
    cause: str = ""
    """The call that launched the subagent."""
    prompt: Prompt | None = None
    held: Held | None = None


@dataclass(slots=True)
class Begun:
    """A call whose result has not come."""

    origin: Origin
    call: Call
    message: str
    summary: str
    allowed: Allowed
    said: dict[str, Any]
    """What the model said and thought before it."""
    places: list[str]
    launched: str = ""
    denied_by: str = ""
    """The hook that refused it."""
    given_up: bool = False
    """It was told as one without a result. One may still come: sessions are resumed."""


class Spending:
    """What messages used, each counted once.

    The first deed of a message that is told carries what the message used up to then, and a later one what has been
    added since, if anything. So nothing has to wait for a line that may never come, and over all deeds the sum is what
    the last line says.
    """

    def __init__(self) -> None:
        self._untold: dict[str, Json] = {}
        self._told: dict[str, tuple[int, ...]] = {}

    def note(self, message: str, usage: Json) -> None:
        self._untold[message] = usage

    def take(self, message: str) -> Tokens | None:
        """What the message used, less what was taken before."""
        usage = self._untold.pop(message, None)
        if usage is None:
            return None
        counts = tuple(whole_number(usage.get(name)) or 0 for name in _COUNTS)
        told = self._told.get(message)
        if told is None:
            self._told[message] = counts
        else:
            self._told[message] = tuple(map(max, counts, told))
            counts = tuple(max(0, now - then) for now, then in zip(counts, told, strict=True))
            usage = {name: count for name, count in zip(_COUNTS, counts, strict=True) if count}
        return Tokens(input=sum(counts[:3]), output=counts[3], native=usage) if any(counts) else None
