"""The syntax tree of a script, as the reader builds it from the text of a command.

A word is a row of parts, because its quoting decides what it becomes: `*` is a pattern, `'*'` is a star.

Nodes have no `__eq__` and no `__repr__`. Nothing compares or prints them, and generating these methods would take
longer than reading most commands.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from aver.fast_dataclass import dataclass

PartKind = Literal["text", "bare", "variable", "command", "process", "unknown"]


@dataclass(slots=True, eq=False, repr=False)
class WordPart:
    """A piece of a word.

    `text`      literal text
    `bare`      unquoted text with a pattern or a brace in it
    `variable`  the value of the variable that `text` names
    `command`   the output of `script`
    `process`   the name of a pipe from or to `script`
    `unknown`   anything else: arithmetic, `${name%.py}`, positional parameters
    """

    kind: PartKind
    text: str = ""
    quoted: bool = False
    script: Script | None = None
    scripts: tuple[Script, ...] = ()
    """Scripts that run while an unknown part is expanded: `${x:-$(id)}`."""
    computed: str = ""
    """The arithmetic in an unknown part, without the scripts in it: `x + 1` for `$((x + $(id -u) 1))`."""


@dataclass(slots=True, eq=False, repr=False)
class RawWord:
    """A word as written, and its parts."""

    source: str
    parts: tuple[WordPart, ...]


@dataclass(slots=True, eq=False, repr=False)
class Assignment:
    """`name=value`, before a command or alone. For an array, `value` holds the parts of all elements.

    `is_whole` is false for arrays, elements and `+=`: then the variable holds more than the value.
    """

    name: str
    value: RawWord
    is_whole: bool
    computed: str = ""
    """The subscript of an element, with its brackets: `[i]` for `a[i]=1`."""


@dataclass(slots=True, eq=False, repr=False)
class Redirect:
    """A redirection: `2>file` has the operator `>` and the descriptor `2`.

    `body` is the text of a here-document. The reader sets it later, when it comes to the end of the line.
    """

    operator: str
    target: RawWord
    descriptor: str = ""
    body: RawWord | None = None


@dataclass(slots=True, eq=False, repr=False)
class SimpleCommand:
    """A program with its arguments, assignments and redirections."""

    words: tuple[RawWord, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class TestCommand:
    """`[[ … ]]` and `(( … ))`. They run only the substitutions in them.

    A shell that does not know them splits them at `&&`, `||`, `(`, `<` and `>`. It would run the names in `openings` as
    programs, and open the words in `compared` as files.
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
    """`first && second || third`: the first command, then each operator with its command."""

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
    """`if` and `case`. The conditions run in order, then one body or none. `words` are the subject and patterns of a
    `case`."""

    conditions: tuple[Script, ...]
    bodies: tuple[Script, ...]
    words: tuple[RawWord, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Loop:
    """`for`, `select`, `while`, `until`. `words` is None if a `for` runs over the positional parameters."""

    condition: Script | None
    body: Script
    variable: str = ""
    words: tuple[RawWord, ...] | None = ()
    redirects: tuple[Redirect, ...] = ()
    computed: str = ""
    """The header of a counting loop: `i = 0; i < 5; i++`."""


@dataclass(slots=True, eq=False, repr=False)
class FunctionDefinition:
    """`name() …`."""

    name: str
    body: CommandNode


CommandNode = SimpleCommand | TestCommand | Pipeline | AndOr | Group | Branches | Loop | FunctionDefinition


@dataclass(slots=True, eq=False, repr=False)
class Script:
    """A list of commands. `background` holds the indexes of those that end in `&`."""

    items: tuple[CommandNode, ...]
    background: frozenset[int] = field(default=frozenset())
