"""A settings file's text as one document, whatever its format: an entry is put in, brought up to date or taken out.

An entry stands under a name; in JSON there are also lists, to which an item is added and from which items are taken.

After every change the new text is read again: it must say exactly what the old one said, and the change. Where that is
not so, the file is written in a way that this editor does not understand, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from aver.errors import BadInput, Refused
from aver.install.json_spans import JsonText
from aver.install.toml_edit import add_table, read_toml, remove_entry_text, set_value

__all__ = ["SettingsFormat", "get_entry", "with_entry", "with_item", "with_value", "without_entry", "without_items"]

SettingsFormat = Literal["json", "jsonc", "toml"]
EntryTable = Mapping[str, Any]

_ABSENT = object()


def get_entry(text: str, form: SettingsFormat, path: Sequence[str]) -> Any:
    """What stands at a path; None where nothing does. `BadInput` where the text cannot be understood."""
    found = _value_at(_read_document(text, form), path)
    return None if found is _ABSENT else found


def with_entry(text: str, form: SettingsFormat, path: Sequence[str], entry: EntryTable) -> str:
    """The text with an entry at a path. Of one that is there, only what differs is changed; other keys in it stay."""
    before = _read_document(text, form)
    found = _value_at(before, path)
    if found is _ABSENT:
        changed = _add_entry(text, form, path, entry)
        return _require_value(changed, form, _set_value_at(before, path, dict(entry)))
    if not isinstance(found, dict):
        raise BadInput(f"{'.'.join(path)} is not a table", advice="correct it first")
    changed = text
    for name, value in entry.items():
        if found.get(name, _ABSENT) != value:
            changed = _change_setting(changed, form, path, name, value)
    return _require_value(changed, form, _set_value_at(before, path, {**found, **entry}))


def with_value(text: str, form: SettingsFormat, path: Sequence[str], value: Any) -> str:
    """The text with a value that is no table at a path."""
    before = _read_document(text, form)
    if _value_at(before, path) == value:
        return text
    begun = text if form == "toml" else _text_or_object(text)
    return _require_value(
        _change_setting(begun, form, path[:-1], path[-1], value), form, _set_value_at(before, path, value)
    )


def without_entry(text: str, form: SettingsFormat, path: Sequence[str], *, keep: int) -> str:
    """The text without the entry at a path, and without the tables on the way to it that are empty then. The first
    `keep` of those stay: they were there before."""
    before = _read_document(text, form)
    found = _value_at(before, path)
    if found is _ABSENT:
        return text
    wanted = _delete_value_at(before, path)
    if form == "toml":
        changed = remove_entry_text(text, path)
        return _require_value(changed, form, _drop_empty_tables(wanted, path[:-1], _read_document(changed, form)))
    changed = _parse_json_text(text, form, path).without_member()
    return _prune_empty(_require_value(changed, form, wanted), form, path[:-1], keep)


def with_item(text: str, form: SettingsFormat, path: Sequence[str], item: Any) -> str:
    """The text with an item at the end of the list at a path, which is made where it is missing. Only in JSON."""
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
    """The text without those items of the list at a path, and without what is empty then, as with `without_entry`."""
    _refuse_toml_lists(form)
    found = _value_at(_read_document(text, form), path)
    if not isinstance(found, list):
        return text
    gone = [index for index, item in enumerate(found) if is_wanted(item)]
    changed = text
    for index in reversed(gone):
        changed = _parse_json_text(changed, form, path).without_item(index)
    left = [item for index, item in enumerate(found) if index not in gone]
    held = _require_value(changed, form, _set_value_at(_read_document(text, form), path, left))
    return _prune_empty(held, form, path, keep) if gone else held


def _prune_empty(text: str, form: SettingsFormat, path: Sequence[str], keep: int) -> str:
    """The text without the empty object or list at a path, and so on upwards; the first `keep` names stay."""
    for length in range(len(path), keep, -1):
        said = _read_document(text, form)
        if _value_at(said, path[:length]) not in ({}, []):
            break
        text = _require_value(
            _parse_json_text(text, form, path[:length]).without_member(), form, _delete_value_at(said, path[:length])
        )
    return text


def _refuse_toml_lists(form: SettingsFormat) -> None:
    if form == "toml":
        raise BadInput("lists of TOML are not edited")


def _parse_json_text(text: str, form: SettingsFormat, path: Sequence[str] = ()) -> JsonText:
    return JsonText(text, path, with_comments=form == "jsonc")


def _read_document(text: str, form: SettingsFormat) -> dict[str, Any]:
    """What a text says. One that is empty says nothing."""
    if form == "toml":
        return read_toml(text)
    if not text.removeprefix("\ufeff").strip():
        return {}
    value = _parse_json_text(text, form).value
    if not isinstance(value, dict):
        raise BadInput("the document is not an object")
    return value


def _add_entry(text: str, form: SettingsFormat, path: Sequence[str], entry: EntryTable) -> str:
    if form == "toml":
        return add_table(text, path, entry)
    return _parse_json_text(_text_or_object(text), form, path).with_member(dict(entry))


def _text_or_object(text: str) -> str:
    """The text, or an empty object where there is none."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return text if text.removeprefix(mark).strip() else f"{mark}{{}}\n"


def _change_setting(text: str, form: SettingsFormat, path: Sequence[str], name: str, value: Any) -> str:
    if form == "toml":
        return set_value(text, path, name, value)
    return _parse_json_text(text, form, (*path, name)).with_member(value)


def _require_value(text: str, form: SettingsFormat, wanted: Any) -> str:
    """The text, if it says what is wanted."""
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
        raise BadInput("what should be a table is none", advice="correct it first")
    return {**value, path[0]: _set_value_at(value.get(path[0], {}), path[1:], entry)}


def _delete_value_at(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: one for name, one in value.items() if name != path[0]}
    return {**value, path[0]: _delete_value_at(value[path[0]], path[1:])}


def _drop_empty_tables(wanted: dict[str, Any], path: Sequence[str], said: dict[str, Any]) -> dict[str, Any]:
    """In TOML a table is there by its sub-tables; without them, only if it has a header of its own."""
    for length in range(len(path), 0, -1):
        if _value_at(wanted, path[:length]) == {} and _value_at(said, path[:length]) is _ABSENT:
            wanted = _delete_value_at(wanted, path[:length])
    return wanted
