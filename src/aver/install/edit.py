"""TOML settings, edited with `tomlkit`, which keeps comments, order and layout.

A new table goes to the end of the file, under a header of its own. A table is taken out with its sub-tables. Comments
that stand before the next table stay: in a TOML file they follow the table before them, but people write them for the
next one.

Where a file has an array of tables, or one table, in several parts, `tomlkit` may bring the parts together: no line is
lost, but their order changes. It may write a rare form wrongly: `install.edit` reads
every result with `tomllib`, and refuses one that does not say what it should.

The text of a settings file, whatever its format: put an entry in, bring it up to date, take it out.

An entry has a path of names. JSON also has lists: an item can be added to one, and items can be taken out.

After every change Aver reads the new text again. It must say exactly what the old text said, and the change. If it does
not, the file has a form that this editor does not understand: Aver raises `Refused`, and changes nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, InlineTable, Null, Table, Whitespace

from aver.errors import BadInput, Refused
from aver.install.json_spans import JsonText

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
            # Keep the comments after the last setting of the table, with the white space between them.
            rest: list[Any] = []
            for _, item in reversed(table.value.body):
                if not isinstance(item, Comment | Whitespace):
                    break
                rest.insert(0, item)
            while rest and isinstance(rest[0], Whitespace):
                rest.pop(0)
            comments = "".join(item.as_string() for item in rest)
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


SettingsFormat = Literal["json", "jsonc", "toml"]
EntryTable = Mapping[str, Any]

_ABSENT = object()


def get_entry(text: str, form: SettingsFormat, path: Sequence[str]) -> Any:
    """Return the value at a path; None where there is none. Raises `BadInput` for a text that cannot be parsed."""
    found = _value_at(_read_document(text, form), path)
    return None if found is _ABSENT else found


def with_entry(text: str, form: SettingsFormat, path: Sequence[str], entry: EntryTable) -> str:
    """Return the text with an entry at a path. In an existing entry only settings that differ change; others stay."""
    before = _read_document(text, form)
    found = _value_at(before, path)
    if found is _ABSENT:
        if form == "toml":
            changed = add_table(text, path, entry)
        else:
            changed = _parse_json_text(_text_or_object(text), form, path).with_member(dict(entry))
        return _require_value(changed, form, _set_value_at(before, path, dict(entry)))
    if not isinstance(found, dict):
        raise BadInput(f"{'.'.join(path)} is not a table", advice="correct it first")
    changed = text
    for name, value in entry.items():
        if found.get(name, _ABSENT) != value:
            changed = _change_setting(changed, form, path, name, value)
    return _require_value(changed, form, _set_value_at(before, path, {**found, **entry}))


def with_value(text: str, form: SettingsFormat, path: Sequence[str], value: Any) -> str:
    """Return the text with a value at a path that is no table."""
    before = _read_document(text, form)
    if _value_at(before, path) == value:
        return text
    start = text if form == "toml" else _text_or_object(text)
    changed = _change_setting(start, form, path[:-1], path[-1], value)
    return _require_value(changed, form, _set_value_at(before, path, value))


def without_entry(text: str, form: SettingsFormat, path: Sequence[str], *, keep: int) -> str:
    """Return the text without the entry at a path, and without the tables on the way that are empty then.

    The first `keep` of those tables stay: they were there before Aver.
    """
    before = _read_document(text, form)
    found = _value_at(before, path)
    if found is _ABSENT:
        return text
    wanted = _delete_value_at(before, path)
    if form == "toml":
        changed = remove_entry_text(text, path)
        # Drop tables that TOML has only through their sub-tables: without these a table needs a header of its own.
        left = _read_document(changed, form)
        for length in range(len(path) - 1, 0, -1):
            if _value_at(wanted, path[:length]) == {} and _value_at(left, path[:length]) is _ABSENT:
                wanted = _delete_value_at(wanted, path[:length])
        return _require_value(changed, form, wanted)
    changed = _parse_json_text(text, form, path).without_member()
    return _prune_empty(_require_value(changed, form, wanted), form, path[:-1], keep)


def with_item(text: str, form: SettingsFormat, path: Sequence[str], item: Any) -> str:
    """Return the text with an item at the end of the list at a path; a missing list is made. JSON only."""
    _refuse_toml_lists(form)
    before = _read_document(text, form)
    found = _value_at(before, path)
    if found is _ABSENT:
        return _require_value(
            _parse_json_text(_text_or_object(text), form, path).with_member([item]),
            form,
            _set_value_at(before, path, [item]),
        )
    if not isinstance(found, list):
        raise BadInput(f"{'.'.join(path)} is not a list", advice="correct it first")
    changed = _parse_json_text(text, form, path).with_item(item)
    return _require_value(changed, form, _set_value_at(before, path, [*found, item]))


def without_items(
    text: str, form: SettingsFormat, path: Sequence[str], is_wanted: Callable[[Any], bool], *, keep: int
) -> str:
    """Return the text without the wanted items of a list, and without what is empty then, as `without_entry` does."""
    _refuse_toml_lists(form)
    found = _value_at(_read_document(text, form), path)
    if not isinstance(found, list):
        return text
    gone = [index for index, item in enumerate(found) if is_wanted(item)]
    changed = text
    for index in reversed(gone):
        changed = _parse_json_text(changed, form, path).without_item(index)
    left = [item for index, item in enumerate(found) if index not in gone]
    checked = _require_value(changed, form, _set_value_at(_read_document(text, form), path, left))
    return _prune_empty(checked, form, path, keep) if gone else checked


def _prune_empty(text: str, form: SettingsFormat, path: Sequence[str], keep: int) -> str:
    """Remove the empty object or list at a path, and so on upwards; the first `keep` names stay."""
    for length in range(len(path), keep, -1):
        value = _read_document(text, form)
        if _value_at(value, path[:length]) not in ({}, []):
            break
        text = _require_value(
            _parse_json_text(text, form, path[:length]).without_member(), form, _delete_value_at(value, path[:length])
        )
    return text


def _refuse_toml_lists(form: SettingsFormat) -> None:
    if form == "toml":
        raise BadInput("lists of TOML are not edited")


def _parse_json_text(text: str, form: SettingsFormat, path: Sequence[str] = ()) -> JsonText:
    return JsonText(text, path, with_comments=form == "jsonc")


def _read_document(text: str, form: SettingsFormat) -> dict[str, Any]:
    """The value of a text. An empty text has no entries."""
    if form == "toml":
        return read_toml(text)
    if not text.removeprefix("\ufeff").strip():
        return {}
    value = _parse_json_text(text, form).value
    if not isinstance(value, dict):
        raise BadInput("the document is not an object")
    return value


def _text_or_object(text: str) -> str:
    """The text, or for an empty text an empty object."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return text if text.removeprefix(mark).strip() else f"{mark}{{}}\n"


def _change_setting(text: str, form: SettingsFormat, path: Sequence[str], name: str, value: Any) -> str:
    if form == "toml":
        return set_value(text, path, name, value)
    return _parse_json_text(text, form, (*path, name)).with_member(value)


def _require_value(text: str, form: SettingsFormat, wanted: Any) -> str:
    """The text, if its value is the wanted one. Raises `Refused` if not."""
    try:
        is_same = _read_document(text, form) == wanted
    except (BadInput, RecursionError):
        is_same = False
    if not is_same:
        raise Refused(
            "NOT_UNDERSTOOD", "the file is written in a way that cannot be edited safely; nothing was changed"
        )
    return text


# --- values by their path


def _value_at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _set_value_at(value: Any, path: Sequence[str], entry: Any) -> Any:
    if not path:
        return entry
    if not isinstance(value, dict):
        raise BadInput("a setting on the way to the entry is no table", advice="correct it first")
    return {**value, path[0]: _set_value_at(value.get(path[0], {}), path[1:], entry)}


def _delete_value_at(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: inner for name, inner in value.items() if name != path[0]}
    return {**value, path[0]: _delete_value_at(value[path[0]], path[1:])}
