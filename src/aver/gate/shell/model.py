"""What is understood of a command: its simple commands, what they do to what, and what could not be understood."""

from __future__ import annotations

from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import PathZone

__all__ = [
    "COMMAND_MAX",
    "EFFECTS",
    "UNCLEAR",
    "CommandAnalysis",
    "Effect",
    "ResolvedCommand",
    "UnclearPart",
    "Word",
]

COMMAND_MAX = 1024 * 1024
"""Characters of a command. A longer one is data in disguise, and is not looked at."""

NESTING_MAX = 24
"""Substitutions, subshells, loops and scripts in scripts inside each other. People stop at four."""

WORDS_MAX = 4096
"""Words of a command and of the scripts in it, and parts of quoted words. What is longer is a program."""

COMMANDS_MAX = 400
"""Simple commands in one command, those in scripts given to `sh -c` and its like included."""

CHOICES_MAX = 64
"""Words that braces, and values that a variable in a loop, may stand for."""

FINDINGS_MAX = 1000
"""Effects listed of one command. One that has more is unclear."""

SHORT_TEXT_MAX = 120
"""Characters of a word that a finding repeats."""

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
"""Why something is unclear, by code."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command after the shell is done with it, as far as that can be told.

    `values` are the texts that it may be: one for a literal word, several for a variable of a loop, none where it is
    not known. Then `prefix` is what it surely begins with.
    """

    text: str
    values: tuple[str, ...] = ()
    prefix: str = ""
    is_pattern: bool = False
    """The value is a pattern for file names: `src/*.py`."""
    from_input: bool = False
    """It comes from what another program prints, as with `xargs`."""

    @property
    def value(self) -> str | None:
        """The text, where it is known for certain."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def is_known(self) -> bool:
        return bool(self.values)

    @property
    def shown(self) -> str:
        return self.text if len(self.text) <= SHORT_TEXT_MAX else self.text[: SHORT_TEXT_MAX - 1] + "…"

    def after(self, count: int) -> Word:
        """The word without its first characters, such as those of an option that its value follows."""
        return Word(
            self.text, tuple(v[count:] for v in self.values), self.prefix[count:], self.is_pattern, self.from_input
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a command does: which of `EFFECTS`, to what, and the words that say so."""

    name: str
    target: str = ""
    """A path or a host. Empty where there is none or it is not known."""
    where: PathZone | Literal[""] = ""
    """Where a path lies; empty for what is no path."""
    classes: frozenset[str] = frozenset()
    """Of guarded things, those that count for this effect."""
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
    """Something that could not be understood: which of `UNCLEAR`, why in words, and the words it was found in."""

    code: str
    why: str
    words: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "why": self.why, "words": list(self.words)}


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A simple command: the program that runs in the end, its arguments, and how it came to run."""

    program: str | None
    """Without its directory; None where it is not known."""
    arguments: tuple[Word, ...]
    via: tuple[str, ...] = ()
    """What started it: `sudo`, `xargs`, `sh -c`."""
    inside: tuple[str, ...] = ()
    """Where it stands: `pipeline`, `substitution`, `subshell`, `loop`, `branch`, `function`, `background`, `sh -c`."""
    assignments: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    """Both as written, of the whole command that it stands in."""


@dataclass(frozen=True, slots=True)
class CommandAnalysis:
    """All that is understood of a command. Where `unclear` is not empty, what it does may be more than is listed."""

    commands: tuple[ResolvedCommand, ...]
    effects: tuple[Effect, ...]
    unclear: tuple[UnclearPart, ...]

    @property
    def is_clear(self) -> bool:
        return not self.unclear

    @property
    def classes(self) -> frozenset[str]:
        """The names of all effects."""
        return frozenset(effect.name for effect in self.effects)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(effect.target for effect in self.effects if effect.is_host and effect.target))

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(simple.program for simple in self.commands if simple.program))

    def to_dict(self) -> dict[str, Any]:
        return {
            "programs": list(self.programs),
            "effects": [effect.to_dict() for effect in self.effects],
            "unclear": [unclear.to_dict() for unclear in self.unclear],
        }
