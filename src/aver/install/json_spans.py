"""JSON text taken apart: every value with the place at which it stands, comments and commas included.

This reader takes exactly the texts that Python's own reader takes, but for comments and for a comma after the last part
of an object or list, where those are allowed. A text that is anything else is refused with line and column.

JSON text, with or without comments, and how to put something in or take it out.

A member of an object or an item of a list: only its text changes, and the comma between it and its neighbour.
Indentation, line ends and layout of what stands around are followed. Put in and taken out again, the text is the same,
unless the object or list was empty: the white space inside is then not restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aver.errors import BadInput

DEPTH_MAX = 200
"""Levels of nesting in a settings file; deeper ones are no settings."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(slots=True, eq=False)
class JsonNode:
    """A value and where it stands: from `start` up to `end`."""

    start: int
    end: int
    value: Any
    parts: list[JsonPart] = field(default_factory=list)
    """Of an object its members, of a list its items, in the order in which they stand there; see `parsed`."""

    def find_member(self, name: str) -> JsonPart | None:
        found = [one for one in self.parts if one.name == name]
        if len(found) > 1:
            raise BadInput(f"the name {name!r} occurs twice, and programs differ on which one counts")
        return found[0] if found else None


@dataclass(slots=True, eq=False)
class JsonPart:
    """A member of an object, with its name, or an item of a list, without one."""

    name: str | None
    start: int
    before: int
    """Where the last token or comment before it ends."""
    node: JsonNode
    comma: int | None = None
    """Where the comma after it ends, if there is one."""


def parse_json_nodes(text: str, along: Sequence[str], *, with_comments: bool) -> JsonNode:
    """The whole document; `BadInput` where it is not one. The parts of objects and lists are told `along` a path of
    names and at its end; elsewhere only where they are found anyway."""
    reader = _JsonParser(text, with_comments)
    start, _ = reader.skip_comments(1 if text.startswith("\ufeff") else 0)
    root = reader.value(start, 0, along)
    end, _ = reader.skip_comments(root.end)
    if end != len(text):
        raise reader.error_at(end, "something follows the document")
    return root


def find_comments_end(text: str, at: int, stop: int) -> int:
    """Where the last comment ends between two places without tokens; the first place if there is none."""
    end = at
    while (found := _COMMENT.match(text, _skip_space(text, end))) is not None and found.end() <= stop:
        end = found.end()
    return end


class _JsonParser:
    def __init__(self, text: str, with_comments: bool) -> None:
        self._text = text
        self._with_comments = with_comments

    def value(self, at: int, depth: int, along: Sequence[str] | None) -> JsonNode:
        """The value at a place. `along` is the rest of the path; None beside it."""
        if depth > DEPTH_MAX:
            raise self.error_at(at, f"it is nested deeper than {DEPTH_MAX} levels")
        if along is None and not self._with_comments:
            # A value of plain JSON, read at once: some settings files hold years of history beside the settings.
            try:
                value, end = _DECODER.raw_decode(self._text, at)
            except json.JSONDecodeError as error:
                raise self.error_at(error.pos, error.msg) from None
            except (ValueError, RecursionError) as error:
                raise self.error_at(at, f"it cannot be read: {error}") from None
            return JsonNode(at, end, value)
        first = self._text[at : at + 1]
        if first == "{":
            return self._parse_container(at, "}", {}, depth, along)
        if first == "[":
            return self._parse_container(at, "]", [], depth, along)
        if first == '"':
            return self._parse_string(at)
        found = _SCALAR.match(self._text, at)
        if found is None:
            raise self.error_at(at, "a value is missing" if at < len(self._text) else "it ends too early")
        try:
            return JsonNode(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.error_at(at, "a number has too many digits") from None

    def _parse_string(self, at: int) -> JsonNode:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.error_at(at, "a text in double quotes is missing, or not whole")
        return JsonNode(at, found.end(), json.loads(found[0]))

    def _parse_container(
        self, start: int, closing: str, value: Any, depth: int, along: Sequence[str] | None
    ) -> JsonNode:
        text, node = self._text, JsonNode(start, start, value)
        at, before = self.skip_comments(start + 1)
        while not text.startswith(closing, at):
            part = (
                self._parse_member(at, before, depth, along)
                if closing == "}"
                else JsonPart(None, at, before, self.value(at, depth + 1, None))
            )
            node.parts.append(part)
            if part.name is None:
                value.append(part.node.value)
            else:
                value[part.name] = part.node.value
            at, before = self.skip_comments(part.node.end)
            if text.startswith(",", at):
                part.comma = at + 1
                at, before = self.skip_comments(at + 1)
                if text.startswith(closing, at) and not self._with_comments:
                    raise self.error_at(at, "a comma before the end")
            elif not text.startswith(closing, at):
                raise self.error_at(at, f"a comma or {closing!r} is missing")
        node.end = at + 1
        return node

    def _parse_member(self, at: int, before: int, depth: int, along: Sequence[str] | None) -> JsonPart:
        name = self._parse_string(at)
        colon, _ = self.skip_comments(name.end)
        if not self._text.startswith(":", colon):
            raise self.error_at(colon, "':' is missing")
        begun, _ = self.skip_comments(colon + 1)
        rest = along[1:] if along and along[0] == name.value else None
        return JsonPart(name.value, at, before, self.value(begun, depth + 1, rest))

    def skip_comments(self, at: int) -> tuple[int, int]:
        """The place of the next token, and where the last token or comment before it ends."""
        end = at
        while True:
            at = _skip_space(self._text, at)
            if not self._text.startswith("/", at):
                return at, end
            found = _COMMENT.match(self._text, at)
            if found is None:
                raise self.error_at(at, "a comment is not whole")
            if not self._with_comments:
                raise self.error_at(at, "a comment, which this program's settings do not allow")
            at = end = found.end()

    def error_at(self, at: int, words: str) -> BadInput:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return BadInput(f"line {line}, column {column}: {words}")


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


_INDENT = re.compile(r"[ \t]*")


class JsonText:
    """A JSON document's text, to be changed at one path of names. `with_comments` allows comments, and commas after
    the last part."""

    def __init__(self, text: str, path: Sequence[str] = (), *, with_comments: bool) -> None:
        self.text = text
        self.root = parse_json_nodes(text, path, with_comments=with_comments)
        self._path = tuple(path)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    @property
    def value(self) -> Any:
        """The value of the whole document."""
        return self.root.value

    def with_member(self, value: Any) -> str:
        """The text with a value at the path; objects on the way are made where they are missing."""
        path, node, depth = self._path, self.root, 0
        while True:
            if not isinstance(node.value, dict):
                where = ".".join(path[:depth]) or "the document"
                raise BadInput(f"{where} is not an object", advice="correct it first")
            found = node.find_member(path[depth])
            if found is None:
                for name in reversed(path[depth + 1 :]):
                    value = {name: value}
                return self._insert(node, path[depth], value)
            node, depth = found.node, depth + 1
            if depth == len(path):
                return self._replace(node, value)

    def without_member(self) -> str:
        """The text without the member at the path, which must be there."""
        parent = self._find_node(self._path[:-1])
        gone = parent.find_member(self._path[-1])
        if gone is None:
            raise BadInput(f"there is no {'.'.join(self._path)}")
        return self._remove(parent, gone)

    def with_item(self, value: Any) -> str:
        """The text with one more item at the end of the list at the path, which must be there."""
        return self._insert(self._find_node(self._path), None, value)

    def without_item(self, index: int) -> str:
        """The text without one item of the list at the path."""
        node = self._find_node(self._path)
        return self._remove(node, node.parts[index])

    def _find_node(self, path: Sequence[str]) -> JsonNode:
        node = self.root
        for name in path:
            found = node.find_member(name)
            if found is None:
                raise BadInput(f"there is no {'.'.join(path)}")
            node = found.node
        return node

    def _replace(self, node: JsonNode, value: Any) -> str:
        is_inline = node.parts and "\n" not in self.text[node.start : node.end]
        written = self._format_part(None, value, None if is_inline else self._indent_at(node.start))
        return self.text[: node.start] + written + self.text[node.end :]

    def _insert(self, node: JsonNode, name: str | None, value: Any) -> str:
        if not node.parts:
            text, outer = self.text, self._indent_at(node.start)
            at = find_comments_end(text, node.start + 1, node.end - 1)
            if node is not self.root and "\n" not in text:
                return f"{text[:at]}{self._format_part(name, value, None)}{text[at:]}"
            inner = outer + self._indent_unit()
            part = self._format_part(name, value, inner)
            tail = "" if "\n" in text[at : node.end - 1] else self._newline + outer
            return f"{text[:at]}{self._newline}{inner}{part}{tail}{text[at:].lstrip(' ') if tail else text[at:]}"
        text, first, last = self.text, node.parts[0], node.parts[-1]
        is_inline = "\n" not in text[node.start : first.start]
        indent = None if is_inline else self._indent_at(first.start)
        part = self._format_part(name, value, indent)
        begun = last.node.end if last.comma is None else last.comma
        at = find_comments_end(text, begun, node.end - 1)
        # A comment that goes to the end of its line would swallow what follows on it.
        is_swallowing = at > begun and not text.endswith("*/", begun, at)
        lead = self._newline + (indent or "") if is_swallowing or indent is not None else " "
        if last.comma is not None:
            return f"{text[:at]}{lead}{part},{text[at:]}"
        return f"{text[:begun]},{text[begun:at]}{lead}{part}{text[at:]}"

    def _remove(self, node: JsonNode, gone: JsonPart) -> str:
        text, at = self.text, node.parts.index(gone)
        end = gone.node.end if gone.comma is None else gone.comma
        cut = text[: gone.before] + text[end:]
        if len(node.parts) == 1:
            opening, closing = node.start + 1, node.end - 1 - (end - gone.before)
            return cut[:opening] + cut[closing:] if not cut[opening:closing].strip() else cut
        before = node.parts[at - 1].comma
        if at == len(node.parts) - 1 and gone.comma is None and before is not None:
            cut = cut[: before - 1] + cut[before:]
        return cut

    def _format_part(self, name: str | None, value: Any, indent: str | None) -> str:
        """A part as text; over several lines, each but the first begun with `indent`, unless that is None."""
        text = json.dumps(value, ensure_ascii=False, indent=None if indent is None else self._indent_unit())
        text = text if indent is None else text.replace("\n", self._newline + indent)
        return text if name is None else f"{json.dumps(name, ensure_ascii=False)}: {text}"

    def _indent_at(self, position: int) -> str:
        """The white space that the line of a position begins with."""
        found = _INDENT.match(self.text, self.text.rfind("\n", 0, position) + 1)
        return found[0] if found else ""

    def _indent_unit(self) -> str:
        """The indentation of one level: that of the document's first part, or two spaces."""
        first = self.root.parts[0].start if self.root.parts else 0
        indent = self._indent_at(first) if "\n" in self.text[:first] else ""
        return indent or "  "
