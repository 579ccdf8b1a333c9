"""The values that the shell reader works with.

They are the limits, the expanded words, the resolved commands, the report that collects findings, and the state of a
shell at one point of a script: its possible directories and known variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gate.effects.file_writes import FileWrite
from aver.gate.effects.findings import Effect, EffectReport, UnclearPart, drop_listed_secrets
from aver.gate.effects.paths import PathRoots, locate_path

COMMAND_MAX = 1024 * 1024
"""Characters of a command. Longer commands are reported as unclear without parsing."""

NESTING_MAX = 24
"""Levels of substitutions, subshells, loops and inner scripts. Commands written by people have about four."""

WORDS_MAX = 4096
"""Words of a command and of its inner scripts, plus the parts of quoted words."""

COMMANDS_MAX = 400
"""Simple commands in one command, including those in scripts that `sh -c` and similar programs get."""

CHOICES_MAX = 64
"""Words that one brace expansion may produce, and values that one loop variable may have."""

SHORT_TEXT_MAX = 120
"""Characters of a word that a finding repeats."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command after expansion, as far as Aver can know it without running anything.

    `values` lists the texts that the word may have: one for a literal word, several for a loop variable, none if the
    word is unknown. An unknown word may still have a `prefix`: the text that it surely begins with.
    """

    text: str
    """The word as written."""
    values: tuple[str, ...] = ()
    prefix: str = ""
    is_pattern: bool = False
    """The values are patterns for file names: `src/*.py`."""
    from_input: bool = False
    """The word comes from the output of another program, as with `xargs`."""
    listing: tuple[str, ...] = ()
    """Patterns for an unknown word that names files which another program lists: `$(git ls-files)`."""
    numbered: str = ""
    """The text of an unknown word in which only the results of arithmetic are not known: each of them is a 0 here."""

    @property
    def value(self) -> str | None:
        """The text, if there is exactly one possible text."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def is_known(self) -> bool:
        return bool(self.values)

    @property
    def short_text(self) -> str:
        return self.text if len(self.text) <= SHORT_TEXT_MAX else self.text[: SHORT_TEXT_MAX - 1] + "…"

    def drop_first(self, count: int) -> Word:
        """Return the word without its first characters: the value in `-ofile` or `--output=file`."""
        return Word(
            self.text, tuple(v[count:] for v in self.values), self.prefix[count:], self.is_pattern, self.from_input
        )


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A simple command: the program that runs in the end, its arguments, and the way that led to it."""

    program: str | None
    """The name without its directory; None if it is not known."""
    arguments: tuple[Word, ...]
    via: tuple[str, ...] = ()
    """The programs that start it: `sudo`, `xargs`, `sh -c`."""
    inside: tuple[str, ...] = ()
    """The constructs around it: `pipeline`, `substitution`, `subshell`, `loop`, `branch`, `function`, `background`,
    `sh -c`."""
    assignments: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    """Both as written. They belong to the whole command that this one is part of."""


@dataclass(frozen=True, slots=True)
class CommandAnalysis:
    """All that Aver knows about a command. If `unclear` is not empty, the command may do more than is listed."""

    commands: tuple[ResolvedCommand, ...]
    effects: tuple[Effect, ...]
    unclear: tuple[UnclearPart, ...]
    writes: tuple[FileWrite, ...] = ()
    """The writes into files of the workspace whose text the command shows, in their order."""
    is_fully_listed: bool = False
    """Every part of the command matched a line or a handler that lists all options of its program."""

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
        return tuple(dict.fromkeys(command.program for command in self.commands if command.program))

    def to_dict(self) -> dict[str, Any]:
        return {
            "programs": list(self.programs),
            "effects": [effect.to_dict() for effect in self.effects],
            "unclear": [unclear.to_dict() for unclear in self.unclear],
        }


class CommandReport(EffectReport):
    """An effect report that also collects the simple commands, and counts what was read.

    One report serves a command and all scripts inside it. Its counters therefore hold for all of them together, so
    that scripts in scripts cannot multiply the limits.
    """

    __slots__ = ("_commands", "has_open_parts", "noted", "redirected", "syntax_read", "words_read", "writes")

    def __init__(self, path_roots: PathRoots) -> None:
        super().__init__(path_roots)
        self._commands: list[ResolvedCommand] = []
        self.words_read = 0
        """Words that the first parser has read."""
        self.syntax_read = 0
        """Characters that the second parser has read."""
        self.writes: list[FileWrite] = []
        self.redirected = self.noted = 0
        """Redirections into files, and those of them that `writes` covers."""
        self.has_open_parts = False
        """A program was judged by a line or handler that does not list all its options."""

    def add_command(self, command: ResolvedCommand) -> bool:
        """Add a simple command. Returns False, and reports the command as unclear, if there are too many."""
        # The caller stops judging at False. Otherwise scripts in scripts could multiply the work.
        if len(self._commands) >= COMMANDS_MAX:
            self.add_unclear("too-much", f"more than {COMMANDS_MAX} commands")
            return False
        self._commands.append(command)
        return True

    def conclude(self) -> CommandAnalysis:
        # The redirection of a group or a loop is not followed. It may write a file that `writes` has, too.
        writes = tuple(self.writes) if self.redirected == self.noted else ()
        commands, unclear = tuple(self._commands), tuple(self.unclear)
        is_fully_listed = bool(commands) and not unclear and not self.has_open_parts
        # A word that is not known may be a name that the command lists: `git add $(ls .env)`.
        is_known = all(word.is_known for command in commands for word in command.arguments)
        effects = drop_listed_secrets(self.effects) if is_known and not unclear else tuple(self.effects)
        return CommandAnalysis(commands, effects, unclear, writes, is_fully_listed)


CWDS_MAX = 8
"""Directories that a script may be in at one point. With more, the directory counts as unknown."""


@dataclass(frozen=True, slots=True)
class ShellState:
    """The directories that a script may be in, and the values of its variables."""

    cwds: tuple[str | None, ...]
    """None stands for an unknown directory."""
    variables: Mapping[str, Word] = field(default_factory=dict)
    exported: frozenset[str] = frozenset()
    """Variables that the script has exported, except those known to be harmless before a build."""


StatesAfter = tuple[ShellState | None, ShellState | None]
"""The state after success and the state after failure. None means that this end is never reached."""


def merge_states(left: ShellState | None, right: ShellState | None) -> ShellState | None:
    """Return what holds after either of two ways: all directories of both, only the variables they agree on."""
    if left is None or right is None or left is right:
        return left or right
    cwds = tuple(dict.fromkeys((*left.cwds, *right.cwds)))
    if left.variables is right.variables:
        variables = left.variables
    else:
        # A variable with two possible values could be either. Aver forgets it instead of trying both.
        variables = {name: word for name, word in left.variables.items() if right.variables.get(name) == word}
    exported = left.exported | right.exported
    return ShellState(cwds if len(cwds) <= CWDS_MAX else (None,), variables, exported)


def change_directory(state: ShellState, target: Word | None, path_roots: PathRoots) -> StatesAfter:
    """Return the states after `cd`: the new directory on success, the old one on failure."""
    if target is None:
        values: tuple[str, ...] = ("~",)  # `cd` alone goes home
    elif target.is_known and not target.is_pattern and "-" not in target.values:
        values = target.values
    else:  # `cd -`, a pattern or an unknown word
        return replace(state, cwds=(None,)), state
    cwds: list[str | None] = []
    for value in values:
        for cwd in state.cwds:
            place = locate_path(value, cwd, path_roots)
            cwds.append(place.path if place.where != "unknown" else None)
    unique = tuple(dict.fromkeys(cwds))
    return replace(state, cwds=unique if len(unique) <= CWDS_MAX else (None,)), state
