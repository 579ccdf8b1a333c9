"""The shape of a script: what the reader makes of a command's text, before anything is made of its meaning.

A word is a row of parts, because how it was quoted decides what it becomes: `*` is a pattern, `'*'` is a star.

Nodes are made by the hundred and thrown away, and never compared or shown: so they are plain, without the methods that
would take longer to generate than most commands take to read.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from aver.fast_dataclass import dataclass

__all__ = [
    "AndOr",
    "Assignment",
    "Branches",
    "CommandNode",
    "FunctionDefinition",
    "Group",
    "Loop",
    "Pipeline",
    "RawWord",
    "Redirect",
    "Script",
    "SimpleCommand",
    "TestCommand",
    "WordPart",
]

PartKind = Literal["text", "bare", "variable", "command", "process", "unknown"]


@dataclass(slots=True, eq=False, repr=False)
class WordPart:
    """A piece of a word.

    `text`      quoted: it stands for itself
    `bare`      unquoted: a leading tilde, braces and patterns in it have their meaning
    `variable`  `text` is the name whose value comes here, unchanged
    `command`   what `script` prints comes here
    `process`   a name by which what `script` prints, or reads, can be opened
    `unknown`   anything: arithmetic, `${name%.py}`, positional parameters
    """

    kind: PartKind
    text: str = ""
    quoted: bool = False
    script: Script | None = None
    scripts: tuple[Script, ...] = ()
    """Commands that run while this part is worked out: `${x:-$(id)}`."""


@dataclass(slots=True, eq=False, repr=False)
class RawWord:
    """A word as it was written, and its parts."""

    source: str
    parts: tuple[WordPart, ...]


@dataclass(slots=True, eq=False, repr=False)
class Assignment:
    """`name=value` before a command or alone. Of an array, `value` holds all its elements' parts.

    `is_whole` says that the variable holds the value and nothing else: not so for arrays, elements and `+=`.
    """

    name: str
    value: RawWord
    is_whole: bool


@dataclass(slots=True, eq=False, repr=False)
class Redirect:
    """`operator` as written, without the descriptor. The text of a here-document, `body`, comes after its line."""

    operator: str
    target: RawWord
    descriptor: str = ""
    body: RawWord | None = None


@dataclass(slots=True, eq=False, repr=False)
class SimpleCommand:
    """A program and its words, with what is assigned and redirected for it."""

    words: tuple[RawWord, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class TestCommand:
    """`[[ … ]]` and `(( … ))`: they ask, and run only what stands in substitutions.

    A shell that does not know them takes them apart at `&&`, `||`, `(`, `<` and `>`. `openings` are the names that
    would be programs then, `compared` the words that would be files.
    """

    words: tuple[RawWord, ...]
    redirects: tuple[Redirect, ...] = ()
    openings: tuple[str, ...] = ()
    compared: tuple[RawWord, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Pipeline:
    """`first | second`."""

    stages: tuple[CommandNode, ...]


@dataclass(slots=True, eq=False, repr=False)
class AndOr:
    """`first`, then each after `&&` or `||`."""

    first: CommandNode
    rest: tuple[tuple[Literal["&&", "||"], CommandNode], ...]


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """`( … )`, `{ …; }`."""

    kind: Literal["subshell", "braces"]
    body: Script
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Branches:
    """`if` and `case`: `conditions` run in order, then one of the bodies, or none."""

    conditions: tuple[Script, ...]
    bodies: tuple[Script, ...]
    words: tuple[RawWord, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Loop:
    """`for`, `select`, `while`, `until`. `words` is None where a `for` runs over the positional parameters."""

    condition: Script | None
    body: Script
    variable: str = ""
    words: tuple[RawWord, ...] | None = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class FunctionDefinition:
    """`name() …`."""

    name: str
    body: CommandNode


CommandNode = SimpleCommand | TestCommand | Pipeline | AndOr | Group | Branches | Loop | FunctionDefinition


@dataclass(slots=True, eq=False, repr=False)
class Script:
    """Commands one after the other. `background` holds the places of those that end in `&`."""

    items: tuple[CommandNode, ...]
    background: frozenset[int] = field(default=frozenset())
