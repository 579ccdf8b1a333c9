"""JSON text, with or without comments, and how to put something in or take it out.

A member of an object or an item of a list: only its text changes, and the comma between it and its neighbour.
Indentation, line ends and layout of what stands around are followed. Put in and taken out again, the text is the same,
unless the object or list was empty: the white space inside is then not restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from aver.errors import BadInput
from aver.install.json_nodes import Node, Part, end_of_comments, parsed

__all__ = ["JsonText"]

_INDENT = re.compile(r"[ \t]*")


class JsonText:
    """A JSON document's text, to be changed at one path of names. `with_comments` allows comments, and commas after
    the last part."""

    def __init__(self, text: str, path: Sequence[str] = (), *, with_comments: bool) -> None:
        self.text = text
        self.root = parsed(text, path, with_comments=with_comments)
        self._path = tuple(path)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    @property
    def value(self) -> Any:
        """What the whole document says."""
        return self.root.value

    def with_member(self, value: Any) -> str:
        """The text with a value at the path; objects on the way are made where they are missing."""
        path, node, depth = self._path, self.root, 0
        while True:
            if not isinstance(node.value, dict):
                where = ".".join(path[:depth]) or "the document"
                raise BadInput(f"{where} is not an object", advice="correct it first")
            found = node.member(path[depth])
            if found is None:
                for name in reversed(path[depth + 1 :]):
                    value = {name: value}
                return self._inserted(node, path[depth], value)
            node, depth = found.node, depth + 1
            if depth == len(path):
                return self._replaced(node, value)

    def without_member(self) -> str:
        """The text without the member at the path, which must be there."""
        parent = self._at(self._path[:-1])
        gone = parent.member(self._path[-1])
        if gone is None:
            raise BadInput(f"there is no {'.'.join(self._path)}")
        return self._removed(parent, gone)

    def with_item(self, value: Any) -> str:
        """The text with one more item at the end of the list at the path, which must be there."""
        return self._inserted(self._at(self._path), None, value)

    def without_item(self, index: int) -> str:
        """The text without one item of the list at the path."""
        node = self._at(self._path)
        return self._removed(node, node.parts[index])

    def _at(self, path: Sequence[str]) -> Node:
        node = self.root
        for name in path:
            found = node.member(name)
            if found is None:
                raise BadInput(f"there is no {'.'.join(path)}")
            node = found.node
        return node

    def _replaced(self, node: Node, value: Any) -> str:
        is_inline = node.parts and "\n" not in self.text[node.start : node.end]
        written = self._written(None, value, None if is_inline else self._indent_at(node.start))
        return self.text[: node.start] + written + self.text[node.end :]

    def _inserted(self, node: Node, name: str | None, value: Any) -> str:
        if not node.parts:
            return self._inserted_alone(node, name, value)
        text, first, last = self.text, node.parts[0], node.parts[-1]
        is_inline = "\n" not in text[node.start : first.start]
        indent = None if is_inline else self._indent_at(first.start)
        part = self._written(name, value, indent)
        begun = last.node.end if last.comma is None else last.comma
        at = end_of_comments(text, begun, node.end - 1)
        # A comment that goes to the end of its line would swallow what follows on it.
        is_swallowing = at > begun and not text.endswith("*/", begun, at)
        lead = self._newline + (indent or "") if is_swallowing or indent is not None else " "
        if last.comma is not None:
            return f"{text[:at]}{lead}{part},{text[at:]}"
        return f"{text[:begun]},{text[begun:at]}{lead}{part}{text[at:]}"

    def _inserted_alone(self, node: Node, name: str | None, value: Any) -> str:
        text, outer = self.text, self._indent_at(node.start)
        at = end_of_comments(text, node.start + 1, node.end - 1)
        if node is not self.root and "\n" not in text:
            return f"{text[:at]}{self._written(name, value, None)}{text[at:]}"
        indent = outer + self._unit()
        part = self._written(name, value, indent)
        tail = "" if "\n" in text[at : node.end - 1] else self._newline + outer
        return f"{text[:at]}{self._newline}{indent}{part}{tail}{text[at:].lstrip(' ') if tail else text[at:]}"

    def _removed(self, node: Node, gone: Part) -> str:
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

    def _written(self, name: str | None, value: Any, indent: str | None) -> str:
        """A part as text; over several lines, each but the first begun with `indent`, unless that is None."""
        text = json.dumps(value, ensure_ascii=False, indent=None if indent is None else self._unit())
        text = text if indent is None else text.replace("\n", self._newline + indent)
        return text if name is None else f"{json.dumps(name, ensure_ascii=False)}: {text}"

    def _indent_at(self, position: int) -> str:
        """The white space that the line of a position begins with."""
        found = _INDENT.match(self.text, self.text.rfind("\n", 0, position) + 1)
        return found[0] if found else ""

    def _unit(self) -> str:
        """What one level is indented by: as the document's first part is, or two spaces."""
        first = self.root.parts[0].start if self.root.parts else 0
        indent = self._indent_at(first) if "\n" in self.text[:first] else ""
        return indent or "  "
