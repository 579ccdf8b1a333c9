"""What is found while a command is walked through: effects, what is unclear, and the simple commands.

The same finding is listed once. There are never more than `FINDINGS_MAX`: a command that does more is unclear.
"""

from __future__ import annotations

from aver.gate.commands.model import COMMANDS_MAX, FINDINGS_MAX, Effect, Simple, Unclear, Understood
from aver.gate.places import Ground, Place, holds

__all__ = ["Report"]

_SEEN_BY_READING = frozenset({"secret", "aver"})
_RUNS_LATER = frozenset({"hooks", "startup"})
_STEERS_AGENTS = frozenset({"agent-config", "aver"})
_BELONGS_TO_THE_SYSTEM = frozenset({"system", "device"})


class Report:
    """Collects findings about one command."""

    __slots__ = ("_effects", "_ground", "_simples", "_unclear", "syntax_read", "words_read")

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._effects: dict[Effect, None] = {}
        self._unclear: dict[Unclear, None] = {}
        self._simples: list[Simple] = []
        self.words_read = 0
        self.syntax_read = 0
        """In all scripts so far, so that scripts in scripts do not multiply."""

    def effect(self, name: str, words: tuple[str, ...], target: str = "") -> None:
        self._add(Effect(name, target, words=words))

    def host(self, name: str, host: str, words: tuple[str, ...]) -> None:
        self._add(Effect(name, host, words=words, is_host=True))

    def unclear(self, code: str, why: str, words: tuple[str, ...] = ()) -> None:
        if len(self._unclear) < FINDINGS_MAX:
            self._unclear.setdefault(Unclear(code, why, words))

    def path(self, name: str, place: Place, words: tuple[str, ...]) -> None:
        """A path is read, written or deleted; and what follows from which path it is."""
        if not place.matters:
            return
        classes = place.classes_for(name)
        if name == "delete" and place.where != "unknown" and holds(place, self._ground):
            classes |= {"root"}
        self._add(Effect(name, place.path, place.where, classes, words))
        for consequence in _consequences(name, classes):
            self._add(Effect(consequence, place.path, place.where, classes, words))

    def simple(self, command: Simple) -> bool:
        """Whether there is still room for it."""
        if len(self._simples) >= COMMANDS_MAX:
            self.unclear("too-much", f"more than {COMMANDS_MAX} commands")
            return False
        self._simples.append(command)
        return True

    def conclude(self) -> Understood:
        return Understood(tuple(self._simples), tuple(self._effects), tuple(self._unclear))

    def _add(self, effect: Effect) -> None:
        if len(self._effects) < FINDINGS_MAX:
            self._effects.setdefault(effect)
        elif effect not in self._effects:
            self.unclear("too-much", f"more than {FINDINGS_MAX} effects")


def _consequences(name: str, classes: frozenset[str]) -> list[str]:
    if not classes:
        return []
    if name in ("read", "execute"):
        return ["secret"] if classes & _SEEN_BY_READING else []
    found = []
    if classes & _RUNS_LATER:
        found.append("persist")
    if classes & _STEERS_AGENTS:
        found.append("agent-config")
    if classes & _BELONGS_TO_THE_SYSTEM:
        found.append("system")
    if name == "delete" and "git" in classes:
        found.append("git-history")
    return found
