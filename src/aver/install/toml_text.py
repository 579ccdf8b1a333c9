"""TOML text: where its tables and settings stand, and how to put a table in or take it out.

A table is put at the end of the file, under a header of its own, and taken out with its sub-tables. What is written in
another way (an inline table, a dotted name) is not touched: the caller sees that it did not change as wanted, and
refuses.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aver.errors import BadInput

__all__ = ["TomlText"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL_STRING = re.compile(r"'[^'\n]*'")
_MULTILINE_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})', re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class TomlHeader:
    """A `[table]` or `[[table]]`: its names, and where its line begins and ends."""

    names: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TomlSetting:
    """`name = value`: where it begins, where its value stands, and where its line ends."""

    names: tuple[str, ...]
    start: int
    value: tuple[int, int]
    end: int


class TomlText:
    """A TOML document and its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.value: dict[str, Any] = tomllib.loads(text.removeprefix("\ufeff"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise BadInput(str(error)) from None
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._statements = list(self._scan())

    def with_table(self, path: Sequence[str], table: Mapping[str, Any]) -> str:
        """The text with a new table at the end."""
        before = self.text
        if before and not before.endswith("\n"):
            before += self._newline
        lines = ["", _format_header(path)] if before else [_format_header(path)]
        lines += [f"{_format_name(name)} = {_format_value(value)}" for name, value in table.items()]
        return before + self._newline.join(lines) + self._newline

    def with_setting(self, path: Sequence[str], name: str, value: Any) -> str:
        """The text with one setting of a table changed, or added at the table's beginning. Without a path it is one of
        the document itself, and is added after the others of those."""
        inside = not path
        after = 1 if self.text.startswith("\ufeff") else 0
        for one in self._statements:
            if isinstance(one, TomlHeader):
                if inside:
                    break
                inside = one.names == tuple(path)
                after = one.end
            elif inside and one.names == (name,):
                return self.text[: one.value[0]] + _format_value(value) + self.text[one.value[1] :]
            elif not path:
                after = one.end
        if not inside:
            raise BadInput(f"[{'.'.join(path)}] has no header of its own", advice="write it as a table of its own")
        before = self.text[:after]
        if before and not before.endswith(("\n", "\ufeff")):
            before += self._newline
        return before + f"{_format_name(name)} = {_format_value(value)}{self._newline}" + self.text[after:]

    def without_setting(self, path: Sequence[str], name: str) -> str:
        """The text without one setting of a table; without a path, of the document itself."""
        table: tuple[str, ...] = ()
        for one in self._statements:
            if isinstance(one, TomlHeader):
                table = one.names
            elif table == tuple(path) and one.names == (name,):
                return self.text[: one.start] + self.text[one.end :]
        return self.text

    def without_table(self, path: Sequence[str]) -> str:
        """The text without a table and its sub-tables, and without the empty line before each."""
        text = self.text
        for start, end in reversed(list(self._find_extents(tuple(path)))):
            blank = re.compile(r"(?:\A|(?<=\n))[ \t]*\r?\n\Z").search(text, 0, start)
            text = text[: blank.start() if blank else start] + text[end:]
        return text

    def _find_extents(self, path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """From where to where a table and its sub-tables stand. Comments before the next table belong to that."""
        start = end = -1
        for one in self._statements:
            if isinstance(one, TomlHeader):
                if start >= 0:
                    yield start, end
                start = one.start if one.names[: len(path)] == path else -1
            end = one.end
        if start >= 0:
            yield start, end

    # --- reading; that it is valid TOML is known

    def _scan(self) -> Iterator[TomlHeader | TomlSetting]:
        text, at = self.text, 1 if self.text.startswith("\ufeff") else 0
        while at < len(text):
            start = at
            at = _skip_space(text, at)
            if (found := _REST_OF_LINE.match(text, at)) is not None and found.end() > at:
                at = found.end()
            elif text.startswith("[", at):
                names, at = self._parse_names(at + (2 if text.startswith("[[", at) else 1), "]")
                at = self._line_end(at + (1 if text.startswith("]", at) else 0))
                yield TomlHeader(names, start, at)
            elif at < len(text):
                names, at = self._parse_names(at, "=")
                begun = _skip_space(text, at)
                ended = self._value_end(begun)
                at = self._line_end(ended)
                yield TomlSetting(names, start, (begun, ended), at)

    def _parse_names(self, at: int, closing: str) -> tuple[tuple[str, ...], int]:
        """A dotted name, and the place after the sign that ends it."""
        names = []
        while True:
            at = _skip_space(self.text, at)
            for pattern in (_BASIC_STRING, _LITERAL_STRING, _BARE_KEY):
                if found := pattern.match(self.text, at):
                    break
            else:
                raise self._error_at(at)
            plain = found[0]
            names.append(plain if pattern is _BARE_KEY else tomllib.loads(f"name = {plain}")["name"])
            at = _skip_space(self.text, found.end())
            if self.text.startswith(closing, at):
                return tuple(names), at + 1
            if not self.text.startswith(".", at):
                raise self._error_at(at)
            at += 1

    def _value_end(self, at: int) -> int:
        """Where the value ends that begins here: white space and comments after it are not part of it."""
        text, depth, end = self.text, 0, at
        while at < len(text):
            sign = text[at]
            if (
                found := _MULTILINE_STRING.match(text, at)
                or _BASIC_STRING.match(text, at)
                or _LITERAL_STRING.match(text, at)
            ):
                at = end = found.end()
                continue
            if sign in "[{":
                depth += 1
            elif sign in "]}":
                depth -= 1
            elif sign == "#":
                if depth == 0:
                    return end
                at = text.find("\n", at)
                if at < 0:
                    raise self._error_at(end)
            elif sign == "\n" and depth == 0:
                return end
            at += 1
            if sign not in " \t\r\n":
                end = at
        return end

    def _line_end(self, at: int) -> int:
        found = _REST_OF_LINE.match(self.text, at)
        if found is None:
            raise self._error_at(at)
        return found.end()

    def _error_at(self, at: int) -> BadInput:
        return BadInput(f"line {self.text.count(chr(10), 0, at) + 1}: this form of TOML is not understood here")


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _format_header(path: Sequence[str]) -> str:
    return f"[{'.'.join(map(_format_name, path))}]"


def _format_name(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quote_text(name)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote_text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        return (
            f"{{ {', '.join(f'{_format_name(name)} = {_format_value(one)}' for name, one in value.items())} }}"
            if value
            else "{}"
        )
    raise BadInput(f"a {type(value).__name__} cannot be written to these settings")


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped) + '"'
