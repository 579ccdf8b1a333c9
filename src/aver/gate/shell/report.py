"""What is found while a command is walked through: effects, what is unclear, and the simple commands.

The same finding is listed once. There are never more than `FINDINGS_MAX`: a command that does more is unclear.
"""

from __future__ import annotations

from aver.gate.effects.paths import PathLocation, PathRoots, has_root_inside
from aver.gate.shell.model import COMMANDS_MAX, FINDINGS_MAX, CommandAnalysis, Effect, ResolvedCommand, UnclearPart

__all__ = ["EffectReport"]

_SEEN_BY_READING = frozenset({"secret", "aver"})
_RUNS_LATER = frozenset({"hooks", "startup"})
_STEERS_AGENTS = frozenset({"agent-config", "aver"})
_BELONGS_TO_THE_SYSTEM = frozenset({"system", "device"})


class EffectReport:
    """Collects findings about one command."""

    __slots__ = ("_effects", "_ground", "_simples", "_unclear", "syntax_read", "words_read")

    def __init__(self, ground: PathRoots) -> None:
        self._ground = ground
        self._effects: dict[Effect, None] = {}
        self._unclear: dict[UnclearPart, None] = {}
        self._simples: list[ResolvedCommand] = []
        self.words_read = 0
        self.syntax_read = 0
        """In all scripts so far, so that scripts in scripts do not multiply."""

    def effect(self, name: str, words: tuple[str, ...], target: str = "") -> None:
        self._add_finding(Effect(name, target, words=words))

    def add_host(self, name: str, host: str, words: tuple[str, ...]) -> None:
        self._add_finding(Effect(name, host, words=words, is_host=True))

    def unclear(self, code: str, why: str, words: tuple[str, ...] = ()) -> None:
        if len(self._unclear) < FINDINGS_MAX:
            self._unclear.setdefault(UnclearPart(code, why, words))

    def path(self, name: str, place: PathLocation, words: tuple[str, ...]) -> None:
        """A path is read, written or deleted; and what follows from which path it is."""
        if not place.matters:
            return
        classes = place.classes_for(name)
        if name == "delete" and place.where != "unknown" and has_root_inside(place, self._ground):
            classes |= {"root"}
        self._add_finding(Effect(name, place.path, place.where, classes, words))
        for consequence in _list_consequences(name, classes):
            self._add_finding(Effect(consequence, place.path, place.where, classes, words))

    def simple(self, command: ResolvedCommand) -> bool:
        """Whether there is still room for it."""
        if len(self._simples) >= COMMANDS_MAX:
            self.unclear("too-much", f"more than {COMMANDS_MAX} commands")
            return False
        self._simples.append(command)
        return True

    def conclude(self) -> CommandAnalysis:
        return CommandAnalysis(tuple(self._simples), tuple(self._effects), tuple(self._unclear))

    def _add_finding(self, effect: Effect) -> None:
        if len(self._effects) < FINDINGS_MAX:
            self._effects.setdefault(effect)
        elif effect not in self._effects:
            self.unclear("too-much", f"more than {FINDINGS_MAX} effects")


def _list_consequences(name: str, classes: frozenset[str]) -> list[str]:
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
