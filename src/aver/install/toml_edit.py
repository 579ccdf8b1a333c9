"""TOML settings, edited with `tomlkit`, which keeps comments, order and layout.

A new table goes to the end of the file, under a header of its own. A table is taken out with its sub-tables. Comments
that stand before the next table stay: in a TOML file they follow the table before them, but people write them for the
next one.

Where a file has an array of tables, or one table, in several parts, `tomlkit` may bring the parts together: no line is
lost, but their order changes. What it makes of a rare form may be wrong: `install.edit` reads
every result with `tomllib`, and refuses one that does not say what it should.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, InlineTable, Null, Table, Whitespace

from aver.errors import BadInput

__all__ = ["add_table", "read_toml", "remove_entry_text", "set_value"]

_BOM = "\ufeff"


def read_toml(text: str) -> dict[str, Any]:
    """Return what a text says. Raises `BadInput` where it is not TOML."""
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(str(error)) from None


def add_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """Return the text with a new table at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    addition = tomlkit.document()
    parent: Any = addition
    for name in path[:-1]:
        parent = parent.setdefault(name, tomlkit.table(is_super_table=True))
    parent[path[-1]] = tomlkit.table()
    for name, value in table.items():
        parent[path[-1]][name] = _to_item(value)
    before = text if not text or text.endswith(("\n", _BOM)) else text + newline
    separator = newline if before.strip(_BOM) else ""
    return before + separator + tomlkit.dumps(addition).replace("\n", newline)


def set_value(text: str, path: Sequence[str], name: str, value: Any) -> str:
    """Return the text with one setting of a table changed or added; without a path, of the document itself."""
    document, restore = _parse(text)
    table: Any = document
    for step in path:
        table = table[step]
    try:
        table[name] = _to_item(value)
    except (TOMLKitError, TypeError, ValueError) as error:
        raise BadInput(f"{'.'.join((*path, name))} cannot be set: {error}") from None
    return restore(tomlkit.dumps(document))


def remove_entry_text(text: str, path: Sequence[str]) -> str:
    """Return the text without the setting or table at a path, and its sub-tables. Comments for the next table stay."""
    document, restore = _parse(text)
    tables = list(_walk_tables(document, ()))
    is_inside = [names[: len(path)] == tuple(path) for names, _ in tables]
    last_comments = ""
    for index, (_, table) in enumerate(tables):
        if is_inside[index]:
            comments = _trailing_comments(table)
            following = next((at for at in range(index + 1, len(tables)) if not is_inside[at]), None)
            if following is None:
                last_comments += comments
            else:
                trivia = tables[following][1].trivia
                trivia.indent = comments + trivia.indent
    _delete(document, path)
    left = tomlkit.dumps(document)
    if any(is_inside[-1:]) and left.endswith("\n\n"):
        left = left[:-1]  # The blank line that stood before the table.
    if not any(is_inside) and left.startswith("\n") and not text.startswith(("\n", "\r\n")):
        left = left[1:]  # The blank line that `tomlkit` put after a setting at the beginning.
    return restore(left + last_comments)


def _delete(container: Any, path: Sequence[str]) -> None:
    """Delete what stands at a path, in every part of a table that the file has in several parts.

    `del` of `tomlkit` joins such parts, and then loses headers of empty tables. So this works on the parts themselves.
    """
    for index, (key, item) in enumerate(container.body):
        if key is None or key.key != path[0]:
            continue
        if len(path) == 1:
            container.body[index] = (None, Null())
        elif isinstance(item, InlineTable):
            inner: Any = item
            for step in path[1:-1]:
                inner = inner.get(step, {})
            inner.pop(path[-1], None)
        elif isinstance(item, Table):
            _delete(item.value, path[1:])


def _walk_tables(container: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Table]]:
    """Yield all tables with a header of their own, in the order of the file."""
    for key, item in container.body:
        if isinstance(item, Table):
            names = (*path, key.key)
            if not item.is_super_table():
                yield names, item
            yield from _walk_tables(item.value, names)
        elif isinstance(item, AoT):
            for table in item.body:
                yield (*path, key.key), table
                yield from _walk_tables(table.value, (*path, key.key))


def _trailing_comments(table: Table) -> str:
    """The comments after the last setting of a table, with the white space between them; empty where there are none."""
    rest: list[Any] = []
    for _, item in reversed(table.value.body):
        if not isinstance(item, Comment | Whitespace):
            break
        rest.insert(0, item)
    while rest and isinstance(rest[0], Whitespace):
        rest.pop(0)
    return "".join(item.as_string() for item in rest)


def _parse(text: str) -> tuple[tomlkit.TOMLDocument, Callable[[str], str]]:
    """Parse a text. Also returns the function that gives a changed text the byte order mark and line ends of this."""
    mark = _BOM if text.startswith(_BOM) else ""
    plain = text.removeprefix(_BOM)
    # `tomlkit` ends the lines that it adds with "\n". Where all lines end otherwise, edit without, and put back.
    is_crlf = "\r\n" in plain and "\n" not in plain.replace("\r\n", "")
    try:
        document = tomlkit.parse(plain.replace("\r\n", "\n") if is_crlf else plain)
    except (TOMLKitError, RecursionError, ValueError) as error:
        raise BadInput(str(error)) from None
    return document, lambda changed: mark + (changed.replace("\n", "\r\n") if is_crlf else changed)


def _to_item(value: Any) -> Any:
    """A value as TOML. A table inside an entry is an inline one, so that the entry is one table."""
    if not isinstance(value, Mapping):
        return value
    inline = tomlkit.inline_table()
    inline.update({name: _to_item(inner) for name, inner in value.items()})
    return inline
