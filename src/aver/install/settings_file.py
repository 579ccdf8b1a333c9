"""One entry in one settings file, or one item of a list in it: put in, brought up to date, taken out.

    file = SettingsFile(Path("~/.cursor/mcp.json").expanduser(), "jsonc")
    put_entry(file, ("mcpServers", "aver"), {"command": "aver", "args": ["mcp"]}, is_ours, memory)

Aver never changes an entry of anyone else. An entry of Aver gets what it lacks, and settings that the user added to it
stay. `remove_entry` takes out the entry, and the tables, the file and the directories that Aver made for it, if they
are empty then. All else in the file stays; only blank space around the entry may differ from before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from aver.errors import BadInput, Refused
from aver.install.edit import SettingsFormat, get_entry, with_entry, with_item, with_value, without_entry, without_items
from aver.install.undo import (
    NEW_MODE,
    UndoLog,
    change_file,
    read_settings_file,
    remove_empty_directories,
    resolve_target,
)

EntryPath = tuple[str, ...]
IsOurs = Callable[[Any], bool]
EditResult = Literal["installed", "updated", "unchanged", "removed", "absent", "kept", "skipped"]
"""The result of an edit; `kept`: something of the user stays as it is; `skipped`: it could not run on this machine."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that belongs to another program. A file of a project must not lead out of the project, `inside`."""

    path: Path
    form: SettingsFormat
    inside: Path | None = None

    @property
    def target(self) -> Path:
        return resolve_target(self.path, self.inside)

    @property
    def new_mode(self) -> int:
        """The mode of a new file: a user's own is for the user alone, a project's is shared."""
        return NEW_MODE if self.inside is None else 0o644


def read_entry(file: SettingsFile, key: EntryPath) -> Any:
    """Return the entry in the file; None where there is none. Raises `BadInput` for a file that cannot be read."""
    path = file.target
    with _name_file_in_errors(path):
        return get_entry(_decode_text(read_settings_file(path)), file.form, key)


def put_entry(
    file: SettingsFile, key: EntryPath, entry: Any, is_ours: IsOurs, memory: UndoLog, *, dry_run: bool = False
) -> EditResult:
    """Put the entry, a table or a plain value, into the file. `dry_run` changes nothing.

    Raises `Refused` with the code `FOREIGN` where the file has an entry of someone else there.
    """
    path = file.target
    found: Any = None
    depth = 0

    def change(raw: bytes | None) -> bytes:
        nonlocal found, depth
        with _name_file_in_errors(path):
            text = _decode_text(raw)
            found, depth = get_entry(text, file.form, key), _existing_depth(text, file.form, key)
            _refuse_foreign(found, is_ours, path, key)
            add = with_entry if isinstance(entry, Mapping) else with_value
            changed = add(text, file.form, key, entry)
        return changed.encode("utf-8")

    changed = change_file(path, change, mode=file.new_mode, dry_run=dry_run)
    if not changed.is_change:
        return "unchanged"
    if not dry_run:
        memory.keep(changed, key, depth)
    return "installed" if found is None else "updated"


def remove_entry(
    file: SettingsFile, key: EntryPath, is_ours: IsOurs, memory: UndoLog, *, dry_run: bool = False
) -> EditResult:
    """Take the entry out of the file. Raises `Refused` with the code `FOREIGN` where it is someone else's."""

    def is_there(text: str) -> bool:
        found = get_entry(text, file.form, key)
        _refuse_foreign(found, is_ours, file.target, key)
        return found is not None

    return _remove_ours(
        file, key, memory, is_there, lambda text, keep: without_entry(text, file.form, key, keep=keep), dry_run
    )


def put_item(
    file: SettingsFile,
    key: EntryPath,
    item: Any,
    is_ours: IsOurs,
    memory: UndoLog,
    *,
    blank: str = "",
    dry_run: bool = False,
) -> EditResult:
    """Put one item of Aver into the list at a key, after those of others; JSON only. It replaces other items of Aver.

    `blank` is the text that a new file begins with.
    """
    path = file.target
    had_ours = False
    depth = 0

    def change(raw: bytes | None) -> bytes:
        nonlocal had_ours, depth
        with _name_file_in_errors(path):
            text = _decode_text(raw) or blank
            depth = _existing_depth(text, file.form, (*key, ""))
            ours = [found for found in _list_items(text, file.form, key) if is_ours(found)]
            had_ours = bool(ours)
            if ours == [item]:
                return text.encode("utf-8") if raw is None else raw
            if ours:
                text = without_items(text, file.form, key, is_ours, keep=len(key))
            changed = with_item(text, file.form, key, item)
        return changed.encode("utf-8")

    changed = change_file(path, change, mode=file.new_mode, dry_run=dry_run)
    if not changed.is_change:
        return "unchanged"
    if not dry_run:
        memory.keep(changed, key, depth)
    return "updated" if had_ours else "installed"


def remove_items(
    file: SettingsFile, key: EntryPath, is_ours: IsOurs, memory: UndoLog, *, blank: str = "", dry_run: bool = False
) -> EditResult:
    """Take all items of Aver out of the list at a key. `blank` is the text that a new file began with."""

    def is_there(text: str) -> bool:
        return any(is_ours(one) for one in _list_items(text, file.form, key))

    def without(text: str, keep: int) -> str:
        return without_items(text, file.form, key, is_ours, keep=keep)

    return _remove_ours(file, key, memory, is_there, without, dry_run, blank)


def _remove_ours(
    file: SettingsFile,
    key: EntryPath,
    memory: UndoLog,
    is_there: Callable[[str], bool],
    without: Callable[[str, int], str],
    dry_run: bool,
    blank: str = "",
) -> EditResult:
    """Take out what is Aver's, and the tables, file and directories that Aver made for it, if they are empty."""
    path = file.target
    known = memory.find_change(path, key)

    def change(raw: bytes | None) -> bytes | None:
        if raw is None:
            return None
        with _name_file_in_errors(path):
            text = _decode_text(raw)
            if not is_there(text):
                return raw
            changed = without(text, len(key) if known is None else known.keep)
        if known is not None and known.new and changed.strip() in ("", "{}", blank.strip()):
            return None
        return changed.encode("utf-8")

    changed = change_file(path, change, dry_run=dry_run)
    if known is not None and not dry_run:
        memory.forget(path, key)
        if changed.after is None:
            remove_empty_directories(tuple(map(Path, known.made)))
    return "removed" if changed.is_change else "absent"


def _list_items(text: str, form: SettingsFormat, key: EntryPath) -> list[Any]:
    found = get_entry(text, form, key)
    return found if isinstance(found, list) else []


def _refuse_foreign(found: Any, is_ours: IsOurs, path: Path, key: EntryPath) -> None:
    if found is not None and not is_ours(found):
        words = f"{path} has a {'.'.join(key)} that is not Aver's"
        raise Refused("FOREIGN", words, advice="rename or remove it first")


def _existing_depth(text: str, form: SettingsFormat, key: EntryPath) -> int:
    """How many of the tables on the way to an entry the file has already."""
    for length in range(len(key) - 1, 0, -1):
        if get_entry(text, form, key[:length]) is not None:
            return length
    return 0


def _decode_text(raw: bytes | None) -> str:
    try:
        return "" if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("it is not UTF-8") from None


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Put the file's name before the message of an error."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}; nothing was changed", advice=error.advice) from error
