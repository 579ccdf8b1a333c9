"""The names in a script that Aver can rely on: variables with one value, and functions that are surely defined.

A variable is reliable if the script sets it in exactly one place. Some commands can set any variable: `read`, `eval`,
arithmetic, `${x:=…}`. If the script has one of them, no variable is reliable. A function is sure if the script defines
it on its own level, and no command may take it back. Aver looks for these commands in the parsed script, so quoting
their names does not hide them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from aver.gate.shell.expand import list_word_scripts
from aver.gate.shell.parser.syntax import (
    AndOr,
    Branches,
    CommandNode,
    FunctionDefinition,
    Group,
    Loop,
    Pipeline,
    RawWord,
    Redirect,
    Script,
    SimpleCommand,
    TestCommand,
    WordPart,
)
from aver.lazy_pattern import lazy_pattern

_ASSIGNING_COMMANDS = frozenset(
    (
        *("read", "mapfile", "readarray", "getopts", "let", "unset", "eval", "source", ".", "trap", "wait", "declare"),
        *("typeset", "local", "readonly", "export", "coproc", "vared", "zparseopts", "setopt"),
    )
)
_EXPORTED_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*(?==)")
_ASSIGNING_EXPANSION = lazy_pattern(r"\(\(|\$\{[^}]*=|\$\[")
"""Arithmetic and assigning expansions. A search in the text finds them all: quoting them takes their meaning away."""


def find_reliable_variables(script: Script, text: str) -> frozenset[str]:
    """Return the variables of a script that are set in exactly one place. `text` is the text of the script."""
    # Arithmetic may set any variable, so nothing can be relied on.
    if _ASSIGNING_EXPANSION.search(text):
        return frozenset()
    counts: Counter[str] = Counter()
    texts = _find_assigned_texts(script)
    for node in iterate_nodes(script):
        if isinstance(node, Loop) and node.variable:
            counts[node.variable] += 1
        elif isinstance(node, SimpleCommand):
            words = _list_command_words(node, texts)
            # `export` sets only the variables that it names.
            if words[:1] == ["export"]:
                counts.update(_EXPORTED_NAME.findall("\n".join(words)))
            elif not {*_ASSIGNING_COMMANDS, _ANY_NAME}.isdisjoint(_list_command_names(words)) or (
                "printf" in words and any(word[:2] == "-v" for word in words)
            ):
                return frozenset()
            counts.update(assignment.name for assignment in node.assignments)
            # Count `x+=…` and arrays twice: then they are never set exactly once.
            counts.update(assignment.name for assignment in node.assignments if not assignment.is_whole)
    return frozenset(name for name, count in counts.items() if count == 1)


_RUN_IN_SHELL = frozenset(("command", "builtin", "exec", "time", "noglob", "nocorrect", "-", "!"))
"""Words before the name of a command of the shell itself. Any other program gets the name as an argument."""


_ANY_NAME = "\0"
"""Stands for a word that depends on what cannot be seen. It may be the name of any command."""


def _find_assigned_texts(script: Script) -> Mapping[str, str]:
    """Return the texts of variables that the script sets in one place, to a plain text."""
    found: dict[str, list[str | None]] = {}
    for node in iterate_nodes(script):
        if isinstance(node, Loop) and node.variable:
            found.setdefault(node.variable, []).append(None)
        elif isinstance(node, SimpleCommand):
            for given in node.assignments:
                is_text = given.is_whole and all(part.kind in ("text", "bare") for part in given.value.parts)
                text = "".join(part.text for part in given.value.parts) if is_text else None
                found.setdefault(given.name, []).append(text)
    return {name: texts[0] for name, texts in found.items() if len(texts) == 1 and texts[0] is not None}


def _list_command_words(command: SimpleCommand, texts: Mapping[str, str]) -> list[str]:
    """Return the words of a command. Quotes do not hide a name, `"ev"al`, and neither do variables, `$a$b`."""

    def read_part(part: WordPart) -> str:
        if part.kind in ("text", "bare"):
            return part.text
        return texts.get(part.text, _ANY_NAME) if part.kind == "variable" else _ANY_NAME

    words = ("".join(map(read_part, word.parts)) for word in command.words)
    return [_ANY_NAME if _ANY_NAME in word else word for word in words]


def _list_command_names(words: list[str]) -> list[str]:
    """Return the words that may be the name of the command: the first, and all after a word that only leads to it."""
    return words if words and words[0] in _RUN_IN_SHELL else words[:1]


_FORGETTING_COMMANDS = frozenset(
    ("unset", "eval", "source", ".", "trap", "unfunction", "unhash", "disable", "enable", "autoload", "setopt", "alias")
)
"""Commands that may take a function back, or have it taken back."""


def find_sure_functions(script: Script) -> frozenset[str]:
    """Return the functions that a script surely defines: on its own level, and nothing may take them back.

    A definition in a branch, a subshell, a pipeline or another function may never be carried out here.
    """
    found: set[str] = set()
    waiting = [script]
    while waiting:
        inner = waiting.pop()
        for index, node in enumerate(inner.items):
            if index in inner.background:
                continue
            if isinstance(node, FunctionDefinition):
                found.add(node.name)
            elif isinstance(node, Group) and node.kind == "braces":
                waiting.append(node.body)
    texts = _find_assigned_texts(script) if found else {}
    for command in iterate_nodes(script) if found else ():
        if isinstance(command, SimpleCommand):
            names = _list_command_names(_list_command_words(command, texts))
            if not {*_FORGETTING_COMMANDS, _ANY_NAME}.isdisjoint(names):
                return frozenset()
    return frozenset(found)


def iterate_nodes(script: Script) -> Iterator[CommandNode]:
    """Yield every command of a script, including those in the substitutions of its words."""
    waiting: list[CommandNode] = list(script.items)  # a stack: the text decides how deep the tree is
    while waiting:
        node = waiting.pop()
        yield node
        words: list[RawWord] = []
        match node:
            case SimpleCommand():
                words += (*node.words, *(assignment.value for assignment in node.assignments))
            case TestCommand():
                words += node.words
            case Pipeline():
                waiting += node.stages
            case AndOr():
                waiting += (node.first, *(item for _, item in node.rest))
            case Group():
                waiting += node.body.items
            case Branches():
                words += node.words
                waiting += [item for inner in (*node.conditions, *node.bodies) for item in inner.items]
            case Loop():
                words += node.words or ()
                waiting += (*(node.condition.items if node.condition else ()), *node.body.items)
            case FunctionDefinition():
                waiting.append(node.body)
        redirects: tuple[Redirect, ...] = getattr(node, "redirects", ())
        for redirect in redirects:
            words += [raw for raw in (redirect.target, redirect.body) if raw is not None]
        for word in words:
            for inner, _ in list_word_scripts(word):
                waiting += inner.items
