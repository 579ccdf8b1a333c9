"""Which variables of a script can be relied on: those that it sets in one place only, to something plain.

Whatever else could set a variable makes all of them unreliable: `read`, `eval`, arithmetic, `${x:=…}`. That is looked
for in the script as it was read, so that quoting such a word hides nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from aver.gate.commands.expand import scripts_in
from aver.gate.commands.syntax import (
    AndOr,
    Branches,
    Function,
    Group,
    Loop,
    Node,
    Pipeline,
    RawWord,
    Redirect,
    Script,
    SimpleCommand,
    TestCommand,
)

__all__ = ["set_once"]

_SETTERS = frozenset(
    (
        *("read", "mapfile", "readarray", "getopts", "let", "unset", "eval", "source", ".", "trap", "wait", "declare"),
        *("typeset", "local", "readonly", "export", "coproc", "vared", "zparseopts", "setopt"),
    )
)
_EXPORTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?==)")
_SETS_WITHIN = re.compile(r"\(\(|\$\{[^}]*=|\$\[")
"""Arithmetic, and expansions that assign. These are marks, which cannot be quoted."""


def set_once(script: Script, text: str) -> frozenset[str]:
    """The variables that can be relied on in a script whose text this is."""
    if _SETS_WITHIN.search(text):
        return frozenset()
    counts: Counter[str] = Counter()
    for node in _nodes(script):
        if isinstance(node, Loop) and node.variable:
            counts[node.variable] += 1
        elif isinstance(node, SimpleCommand):
            words = [_plain(word) for word in node.words]
            if words[:1] == ["export"]:
                counts.update(_EXPORTED.findall("\n".join(words)))
            elif not _SETTERS.isdisjoint(words) or ("printf" in words and any(word[:2] == "-v" for word in words)):
                return frozenset()
            counts.update(assignment.name for assignment in node.assignments)
            counts.update(assignment.name for assignment in node.assignments if not assignment.is_whole)
    return frozenset(name for name, count in counts.items() if count == 1)


def _plain(word: RawWord) -> str:
    return "".join(part.text for part in word.parts if part.kind in ("text", "bare"))


def _nodes(script: Script) -> Iterator[Node]:
    """Every command of a script, those in its words too."""
    waiting: list[Node] = list(script.items)
    while waiting:
        node = waiting.pop()
        yield node
        for word in _words(node):
            for inner, _ in scripts_in(word):
                waiting += inner.items
        waiting += _children(node)


def _children(node: Node) -> list[Node]:
    match node:
        case Pipeline():
            return list(node.stages)
        case AndOr():
            return [node.first, *(item for _, item in node.rest)]
        case Group():
            return list(node.body.items)
        case Branches():
            return [item for inner in (*node.conditions, *node.bodies) for item in inner.items]
        case Loop():
            return [*(node.condition.items if node.condition else ()), *node.body.items]
        case Function():
            return [node.body]
    return []


def _words(node: Node) -> Iterator[RawWord]:
    match node:
        case SimpleCommand():
            yield from node.words
            yield from (assignment.value for assignment in node.assignments)
        case TestCommand() | Branches():
            yield from node.words
        case Loop():
            yield from node.words or ()
        case _:
            pass
    redirects: tuple[Redirect, ...] = getattr(node, "redirects", ())
    for redirect in redirects:
        yield redirect.target
        if redirect.body is not None:
            yield redirect.body
