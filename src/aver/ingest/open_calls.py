"""Calls of a transcript whose result has not come, and which of them the conversation has left behind.

A model gets the results of all calls of one message before it writes the next. So a call is *left behind* if a person's
prompt follows it, or the result of a call of a later message. Its parser then gives it out without an outcome. A result
may still come, because sessions are resumed. So the newest of these calls stay known.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Generic, TypeVar

LATE_MAX = 256
"""Calls left behind that are kept for a late result. Without a limit, a hostile transcript could fill the memory."""

Call = TypeVar("Call")


class OpenCalls(Generic[Call]):
    """The open calls of one transcript, by their ids."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self._waiting: dict[str, dict[str, dict[str, None]]] = {}
        """By agent and message, both in the order of the transcript: the calls without a result."""
        self._late: dict[str, None] = {}

    def add(self, identifier: str, call: Call, message: str, agent: str = "") -> None:
        """Add a call that begins. A message is named by any text that its calls share."""
        self.pop(identifier)
        self._calls[identifier], self._places[identifier] = call, (agent, message)
        self._waiting.setdefault(agent, {}).setdefault(message, {})[identifier] = None

    def get(self, identifier: object) -> Call | None:
        return self._calls.get(identifier) if isinstance(identifier, str) else None

    def pop(self, identifier: str) -> Call | None:
        """Remove a call that has its result, and return it; None if there is none."""
        if identifier not in self._calls:
            return None
        agent, message = self._places.pop(identifier)
        self._waiting.get(agent, {}).get(message, {}).pop(identifier, None)
        self._late.pop(identifier, None)
        return self._calls.pop(identifier)

    def leave_before(self, identifier: str) -> list[Call]:
        """Return the calls of the same agent's earlier messages. Call this when the result of a call comes."""
        agent, message = self._places.get(identifier, ("", ""))
        messages = self._waiting.get(agent, {})
        # Its message is missing if the call itself was left behind: its late result says nothing about others.
        earlier = takewhile(lambda each: each != message, messages) if message in messages else ()
        return self._leave(agent, list(earlier))

    def leave_all(self, agent: str | None = None) -> list[Call]:
        """Return all calls, or those of one agent. Call this at a prompt, and at the end."""
        agents = list(self._waiting) if agent is None else [agent]
        return [call for name in agents for call in self._leave(name, list(self._waiting.get(name, {})))]

    def _leave(self, agent: str, messages: list[str]) -> list[Call]:
        left = [name for message in messages for name in self._waiting[agent].pop(message)]
        found = [self._calls[name] for name in left]
        self._late |= dict.fromkeys(left)
        for name in list(self._late)[: max(len(self._late) - LATE_MAX, 0)]:
            self.pop(name)
        return found
