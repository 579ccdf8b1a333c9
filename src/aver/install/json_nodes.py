"""JSON text taken apart: every value with the place at which it stands, comments and commas included.

What Python's own reader takes is taken here, and nothing more, but for comments and for a comma after the last part of
an object or list, where those are allowed. A text that is anything else is refused with line and column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aver.errors import BadInput

__all__ = ["Node", "Part", "end_of_comments", "parsed"]

DEPTH_MAX = 200
"""Levels of nesting in a settings file; deeper ones are no settings."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_PLAIN = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(slots=True, eq=False)
class Node:
    """A value and where it stands: from `start` up to `end`."""

    start: int
    end: int
    value: Any
    parts: list[Part] = field(default_factory=list)
    """Of an object its members, of a list its items, in the order in which they stand there; see `parsed`."""

    def member(self, name: str) -> Part | None:
        found = [one for one in self.parts if one.name == name]
        if len(found) > 1:
            raise BadInput(f"the name {name!r} stands there twice, and programs disagree on which one counts")
        return found[0] if found else None


@dataclass(slots=True, eq=False)
class Part:
    """A member of an object, with its name, or an item of a list, without one."""

    name: str | None
    start: int
    before: int
    """Where the last token or comment before it ends."""
    node: Node
    comma: int | None = None
    """Where the comma after it ends, if there is one."""


def parsed(text: str, along: Sequence[str], *, with_comments: bool) -> Node:
    """The whole document; `BadInput` where it is not one. The parts of objects and lists are told `along` a path of
    names and at its end; elsewhere only where they are found anyway."""
    reader = _Reader(text, with_comments)
    start, _ = reader.passed(1 if text.startswith("\ufeff") else 0)
    root = reader.value(start, 0, along)
    end, _ = reader.passed(root.end)
    if end != len(text):
        raise reader.wrong(end, "something follows the document")
    return root


def end_of_comments(text: str, at: int, stop: int) -> int:
    """Where the last comment ends between two places without tokens; the first place if there is none."""
    end = at
    while (found := _COMMENT.match(text, _skip(text, end))) is not None and found.end() <= stop:
        end = found.end()
    return end


class _Reader:
    def __init__(self, text: str, with_comments: bool) -> None:
        self._text = text
        self._with_comments = with_comments

    def value(self, at: int, depth: int, along: Sequence[str] | None) -> Node:
        """The value at a place. `along` is the rest of the path; None beside it."""
        if depth > DEPTH_MAX:
            raise self.wrong(at, f"it is nested deeper than {DEPTH_MAX} levels")
        if along is None and not self._with_comments:
            return self._whole(at)
        first = self._text[at : at + 1]
        if first == "{":
            return self._container(at, "}", {}, depth, along)
        if first == "[":
            return self._container(at, "]", [], depth, along)
        if first == '"':
            return self._string(at)
        found = _SCALAR.match(self._text, at)
        if found is None:
            raise self.wrong(at, "a value is missing" if at < len(self._text) else "it ends too early")
        try:
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.wrong(at, "a number has too many digits") from None

    def _whole(self, at: int) -> Node:
        """A value of plain JSON, read at once: some settings files hold years of history beside the settings."""
        try:
            value, end = _PLAIN.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            raise self.wrong(error.pos, error.msg) from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(at, f"it cannot be read: {error}") from None
        return Node(at, end, value)

    def _string(self, at: int) -> Node:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.wrong(at, "a text in double quotes is missing, or not whole")
        return Node(at, found.end(), json.loads(found[0]))

    def _container(self, start: int, closing: str, value: Any, depth: int, along: Sequence[str] | None) -> Node:
        text, node = self._text, Node(start, start, value)
        at, before = self.passed(start + 1)
        while not text.startswith(closing, at):
            part = self._part(at, before, depth, along) if closing == "}" else self._item(at, before, depth)
            node.parts.append(part)
            if part.name is None:
                value.append(part.node.value)
            else:
                value[part.name] = part.node.value
            at, before = self.passed(part.node.end)
            if text.startswith(",", at):
                part.comma = at + 1
                at, before = self.passed(at + 1)
                if text.startswith(closing, at) and not self._with_comments:
                    raise self.wrong(at, "a comma before the end")
            elif not text.startswith(closing, at):
                raise self.wrong(at, f"a comma or {closing!r} is missing")
        node.end = at + 1
        return node

    def _item(self, at: int, before: int, depth: int) -> Part:
        return Part(None, at, before, self.value(at, depth + 1, None))

    def _part(self, at: int, before: int, depth: int, along: Sequence[str] | None) -> Part:
        name = self._string(at)
        colon, _ = self.passed(name.end)
        if not self._text.startswith(":", colon):
            raise self.wrong(colon, "':' is missing")
        begun, _ = self.passed(colon + 1)
        rest = along[1:] if along and along[0] == name.value else None
        return Part(name.value, at, before, self.value(begun, depth + 1, rest))

    def passed(self, at: int) -> tuple[int, int]:
        """The place of the next token, and where the last token or comment before it ends."""
        end = at
        while True:
            at = _skip(self._text, at)
            if not self._text.startswith("/", at):
                return at, end
            found = _COMMENT.match(self._text, at)
            if found is None:
                raise self.wrong(at, "a comment is not whole")
            if not self._with_comments:
                raise self.wrong(at, "a comment, which this program's settings do not allow")
            at = end = found.end()

    def wrong(self, at: int, words: str) -> BadInput:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return BadInput(f"line {line}, column {column}: {words}")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
