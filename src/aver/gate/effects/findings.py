"""Findings about an action: its effects, the parts that Aver could not understand, and the report that collects both.

An *effect* is one thing that an action does: it reads a path, talks to a host, ends a process. An *unclear part* is a
place where Aver could not tell. An action with an unclear part may do more than its effects say, so policy treats it
with care. Both the shell reader (`gate.shell`) and the reader of tool arguments (`gate.effects.effects`) fill the same
report. This module therefore imports neither.
"""

from __future__ import annotations

from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import PathLocation, PathRoots, PathZone, has_root_inside

FINDINGS_MAX = 1000
"""Effects that one report lists. An action with more is unclear."""

EFFECTS = {
    "read": "reads a file",
    "write": "creates or changes a file",
    "delete": "removes a file, or changes that were not committed",
    "execute": "runs code that is not a known program with known options",
    "network": "talks to another machine",
    "privilege": "acts as another user, or with more rights",
    "install": "fetches and installs software",
    "git-history": "changes or drops what git has recorded, here or elsewhere",
    "process": "signals or ends processes",
    "secret": "sees what should stay secret",
    "system": "changes the operating system",
    "persist": "leaves behind something that will run later by itself",
    "egress": "sends data to another machine",
    "agent-config": "changes what steers or stops an agent",
    "unknown": "may be anything: a tool of which nothing is known",
}

"""The names of effects, with their meaning."""

UNCLEAR = {
    "no-parser": "the parser is not installed",
    "too-much": "longer, deeper or more than the limits",
    "characters": "has characters that look like others, like nothing, or that shells read differently",
    "syntax": "cannot be read as a shell reads it",
    "readers-differ": "two parsers see different commands in it",
    "dynamic-program": "which program runs depends on what cannot be seen",
    "unknown-program": "a program that is not in the tables",
    "unknown-option": "an option that is not in the tables, of a program whose options matter",
    "unknown-target": "what it acts on depends on what cannot be seen",
    "code": "code in another language, which is not looked into",
    "script": "runs a file whose contents are not looked into",
    "piped-code": "runs what another program prints",
    "encoded": "runs what was encoded",
    "dynamic-code": "runs text that depends on what cannot be seen",
    "environment": "a variable that changes what programs do",
    "remote": "runs on another machine",
    "container": "runs inside a container",
    "shell": "changes how the shell reads what follows",
}
"""The codes of unclear parts, with their meaning."""

# A guarded class of a path (see `guarded_names`) adds effects to what is done to the path.
_SECRET_WHEN_READ = frozenset({"secret", "aver"})
_RUN_LATER = frozenset({"hooks", "startup"})
_STEER_AGENTS = frozenset({"agent-config", "aver"})
_BELONG_TO_SYSTEM = frozenset({"system", "device"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that an action does: its name in `EFFECTS`, its target, and the words that show it."""

    name: str
    target: str = ""
    """A path or a host. Empty if there is none, or if it is not known."""
    where: PathZone | Literal[""] = ""
    """The zone of the path; empty if the target is not a path."""
    classes: frozenset[str] = frozenset()
    """The guarded classes of the path that count for this effect."""
    words: tuple[str, ...] = ()
    is_host: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "effect": self.name,
            "target": self.target,
            "where": self.where,
            "classes": sorted(self.classes),
            "words": list(self.words),
        }


@dataclass(frozen=True, slots=True)
class UnclearPart:
    """A part that Aver could not understand: a code of `UNCLEAR`, the reason, and the words it was found in."""

    code: str
    why: str
    words: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "why": self.why, "words": list(self.words)}


class EffectReport:
    """Collects findings in the order in which they are made. It lists each finding once."""

    __slots__ = ("_effects", "_path_roots", "_unclear")

    def __init__(self, path_roots: PathRoots) -> None:
        self._path_roots = path_roots
        # Dictionaries serve as ordered sets.
        self._effects: dict[Effect, None] = {}
        self._unclear: dict[UnclearPart, None] = {}

    @property
    def effects(self) -> tuple[Effect, ...]:
        return tuple(self._effects)

    @property
    def unclear(self) -> tuple[UnclearPart, ...]:
        return tuple(self._unclear)

    def add_effect(self, name: str, words: tuple[str, ...], target: str = "") -> None:
        self._add(Effect(name, target, words=words))

    def add_host(self, name: str, host: str, words: tuple[str, ...]) -> None:
        self._add(Effect(name, host, words=words, is_host=True))

    def add_unclear(self, code: str, why: str, words: tuple[str, ...] = ()) -> None:
        if len(self._unclear) < FINDINGS_MAX:
            self._unclear.setdefault(UnclearPart(code, why, words))

    def add_path(self, name: str, place: PathLocation, words: tuple[str, ...]) -> None:
        """Add an effect on a path, and the further effects that follow from the path's guarded classes."""
        if not place.matters:
            return
        classes = place.classes_for(name)
        # Deleting a parent of the workspace or of the home deletes these, too.
        if name == "delete" and place.where != "unknown" and has_root_inside(place, self._path_roots):
            classes |= {"root"}
        effects = [name]
        if name in ("read", "execute"):
            effects += ["secret"] if classes & _SECRET_WHEN_READ else []
        else:
            effects += ["persist"] if classes & _RUN_LATER else []
            effects += ["agent-config"] if classes & _STEER_AGENTS else []
            effects += ["system"] if classes & _BELONG_TO_SYSTEM else []
            effects += ["git-history"] if name == "delete" and "git" in classes else []
        for effect in effects:
            self._add(Effect(effect, place.path, place.where, classes, words))

    def _add(self, effect: Effect) -> None:
        if len(self._effects) < FINDINGS_MAX:
            self._effects.setdefault(effect)
        elif effect not in self._effects:
            # The list is full: from here on the action may do more than the report says.
            self.add_unclear("too-much", f"more than {FINDINGS_MAX} effects")
