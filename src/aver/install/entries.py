"""One entry in one settings file, or one item of a list in it: put in, brought up to date, taken out, all remembered.

    file = SettingsFile(Path("~/.cursor/mcp.json").expanduser(), "jsonc")
    put(file, ("mcpServers", "aver"), {"command": "aver", "args": ["mcp"]}, is_ours, memory)

An entry that is not ours is never changed. One that is gets what it lacks, and what its owner added stays. Taken out of
a file that nobody touched since, the file becomes what it was, to the byte; otherwise only the entry goes, and the
tables that were made for it, if they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from aver.errors import BadInput, Refused
from aver.install.document import Format, entry_in, with_entry, with_item, with_value, without_entry, without_items
from aver.install.files import NEW_MODE, change_file, read_settings_file, remove_empty, target_of
from aver.install.memory import Memory

__all__ = ["Key", "Result", "SettingsFile", "put", "put_item", "standing_in", "take", "take_items"]

Key = tuple[str, ...]
IsOurs = Callable[[Any], bool]
Result = Literal["installed", "updated", "unchanged", "removed", "absent", "kept"]
"""What was done; `kept` is what belongs to somebody else and was left as it is."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that belongs to another program. `inside` is the project that it must not lead out of, if it is of one."""

    path: Path
    form: Format
    inside: Path | None = None

    @property
    def target(self) -> Path:
        return target_of(self.path, self.inside)

    @property
    def new_mode(self) -> int:
        """Of a file that is made: a user's own is for nobody else, a project's is shared."""
        return NEW_MODE if self.inside is None else 0o644


def standing_in(file: SettingsFile, key: Key) -> Any:
    """The entry as it stands there; None where there is none."""
    path = file.target
    with _naming(path):
        return entry_in(_text(read_settings_file(path)), file.form, key)


def put(file: SettingsFile, key: Key, entry: Any, is_ours: IsOurs, memory: Memory, *, dry_run: bool = False) -> Result:
    """Have the entry, a table or a plain value, stand in the file. `dry_run` only tells what would be done."""
    path = file.target
    found: Any = None
    depth = 0

    def change(raw: bytes | None) -> bytes:
        nonlocal found, depth
        with _naming(path):
            text = _text(raw)
            found, depth = entry_in(text, file.form, key), _depth(text, file.form, key)
            _check(found, is_ours, path, key)
            add = with_entry if isinstance(entry, Mapping) else with_value
            changed = add(text, file.form, key, entry)
        return changed.encode("utf-8")

    changed = change_file(path, change, mode=file.new_mode, dry_run=dry_run)
    if not changed.is_change:
        return "unchanged"
    if not dry_run:
        memory.keep(changed, key, depth)
    return "installed" if found is None else "updated"


def take(file: SettingsFile, key: Key, is_ours: IsOurs, memory: Memory, *, dry_run: bool = False) -> Result:
    """Have the entry not stand in the file."""

    def is_there(text: str) -> bool:
        found = entry_in(text, file.form, key)
        _check(found, is_ours, file.target, key)
        return found is not None

    return _take(
        file, key, memory, is_there, lambda text, keep: without_entry(text, file.form, key, keep=keep), dry_run
    )


def put_item(
    file: SettingsFile, key: Key, item: Any, is_ours: IsOurs, memory: Memory, *, blank: str = "", dry_run: bool = False
) -> Result:
    """Have one item of ours stand in the list at a key, beside those of others; JSON only. Another item of ours gives
    way. `blank` is what a new file begins with."""
    path = file.target
    had_ours = False
    depth = 0

    def change(raw: bytes | None) -> bytes:
        nonlocal had_ours, depth
        with _naming(path):
            text = _text(raw) or blank
            depth = _depth(text, file.form, (*key, ""))
            ours = [one for one in _items(text, file.form, key) if is_ours(one)]
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


def take_items(
    file: SettingsFile, key: Key, is_ours: IsOurs, memory: Memory, *, blank: str = "", dry_run: bool = False
) -> Result:
    """Have no item of ours stand in the list at a key. `blank` is what a new file began with."""

    def is_there(text: str) -> bool:
        return any(is_ours(one) for one in _items(text, file.form, key))

    def without(text: str, keep: int) -> str:
        return without_items(text, file.form, key, is_ours, keep=keep)

    return _take(file, key, memory, is_there, without, dry_run, blank)


def _take(
    file: SettingsFile,
    key: Key,
    memory: Memory,
    is_there: Callable[[str], bool],
    without: Callable[[str, int], str],
    dry_run: bool,
    blank: str = "",
) -> Result:
    """Take out what is ours: by putting back the old bytes, if nobody changed the file since, else by editing it."""
    path = file.target
    known = memory.recall(path, key)

    def change(raw: bytes | None) -> bytes | None:
        if raw is None:
            return None
        with _naming(path):
            text = _text(raw)
            if not is_there(text):
                return raw
            undone = None if known is None else known.undone(raw)
            # What stood there before may have been ours as well: that of an Aver that was installed earlier.
            if undone is not None and not (undone.old is not None and is_there(_text(undone.old))):
                return undone.old
            changed = without(text, len(key) if known is None else known.keep)
        if known is not None and known.new and changed.strip() in ("", "{}", blank.strip()):
            return None
        return changed.encode("utf-8")

    changed = change_file(path, change, dry_run=dry_run)
    if known is not None and not dry_run:
        memory.forget(path, key)
        if changed.after is None:
            remove_empty(tuple(map(Path, known.made)))
    return "removed" if changed.is_change else "absent"


def _items(text: str, form: Format, key: Key) -> list[Any]:
    found = entry_in(text, form, key)
    return found if isinstance(found, list) else []


def _check(found: Any, is_ours: IsOurs, path: Path, key: Key) -> None:
    if found is not None and not is_ours(found):
        words = f"{path} has a {'.'.join(key)} that is not Aver's"
        raise Refused("FOREIGN", words, advice="rename or remove it first")


def _depth(text: str, form: Format, key: Key) -> int:
    """How many of the tables on the way to an entry are there already."""
    for length in range(len(key) - 1, 0, -1):
        if entry_in(text, form, key[:length]) is not None:
            return length
    return 0


def _text(raw: bytes | None) -> str:
    try:
        return "" if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("it is not UTF-8") from None


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}; nothing was changed", advice=error.advice) from error
