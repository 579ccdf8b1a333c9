"""What Aver made in other programs' files, so that `aver uninstall` takes away that: `AVER_HOME/installed.json`.

    {"v": 1, "changes": [{"path": "/home/me/.cursor/mcp.json", "key": ["mcpServers", "aver"],
                          "keep": 0, "made": ["/home/me/.cursor"], "new": true}]}

Aver replaces only entries of its own, so there are no old entries to put back. It remembers for each entry what it had
to make for it: the tables on the way (all but the first `keep`), the directories (`made`), and the file (`new`). On
uninstall they go too, if nothing else is in them by then. No content of a file is kept here: it may hold secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home, home_dir
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.files.atomic import replace_file
from aver.install.file_edit import FileEdit, read_settings_file
from aver.ledger.stores.sqlite.write_lock import WriteLock

__all__ = ["RecordedChange", "UndoLog"]

UNDO_FILE_NAME = "installed.json"

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another `aver install`."""

EntryPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """What Aver made for one entry in one file."""

    keep: int
    """How many of the tables on the way to the entry were there before."""
    made: tuple[str, ...]
    """Directories, the innermost first."""
    new: bool
    """Whether there was no file when Aver first put the entry in."""


class UndoLog:
    """The file. A caller that changes settings holds its lock meanwhile."""

    def __init__(self, home: Path | None = None) -> None:
        self._path = (home or home_dir()) / UNDO_FILE_NAME
        self._lock = WriteLock(self._path.with_suffix(".lock"), timeout=LOCK_TIMEOUT)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock: no other `aver install` changes anything meanwhile."""
        ensure_home(self._path.parent)
        try:
            with self._lock.hold():
                yield
        finally:
            self._lock.close()

    def find_change(self, path: Path, key: EntryPath) -> RecordedChange | None:
        """What Aver made for an entry, if the log has it."""
        for change in self._read_changes():
            if _matches_entry(change, path, key):
                try:
                    return RecordedChange(int(change["keep"]), tuple(map(str, change["made"])), bool(change["new"]))
                except (KeyError, TypeError, ValueError):
                    continue
        return None

    def keep(self, changed: FileEdit, key: EntryPath, keep: int) -> None:
        """Remember a change that put an entry in. What the log has for the entry already was made first, and stays."""
        known = self.find_change(changed.path, key) if changed.before is not None else None
        if known is None:
            known = RecordedChange(keep, tuple(map(str, changed.made)), changed.before is None)
        entry = {"keep": known.keep, "made": list(known.made), "new": known.new}
        change = {"path": str(changed.path), "key": list(key), **entry}
        self._write_changes([*self._other_changes(changed.path, key), change])

    def forget(self, path: Path, key: EntryPath) -> None:
        """Forget what Aver made for an entry."""
        self._write_changes(self._other_changes(path, key))

    def _other_changes(self, path: Path, key: EntryPath) -> list[Any]:
        return [change for change in self._read_changes() if not _matches_entry(change, path, key)]

    def _write_changes(self, changes: list[Any]) -> None:
        ensure_home(self._path.parent)
        replace_file(self._path, dump_document({"v": 1, "changes": changes}))

    def _read_changes(self) -> list[Any]:
        """What is remembered. A file that cannot be read counts as empty: then only Aver's entries are taken out."""
        try:
            raw = read_settings_file(self._path)
            data = None if raw is None else read_json(raw)
        except BadInput:
            return []
        changes = data.get("changes") if isinstance(data, dict) and data.get("v") == 1 else None
        return changes if isinstance(changes, list) else []


def _matches_entry(change: Any, path: Path, key: EntryPath) -> bool:
    return isinstance(change, dict) and (change.get("path"), change.get("key")) == (str(path), list(key))
