"""What was changed in other programs' files, so that it can be undone to the byte: `AVER_HOME/installed.json`.

    {"v": 1, "changes": [{path, key, keep, before, after, at, removed, inserted, made, new}]}

Of a file only the change itself is kept: at which byte, what stood there, what stands there now, and the SHA-256 of the
whole before and after. So a file that nobody touched since gets back its old bytes, and no copy of its secrets is made.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home, home_dir
from aver.errors import BadInput
from aver.files.atomic import replace_file
from aver.install.file_edit import FileEdit, read_settings_file
from aver.ledger.stores.sqlite.write_lock import WriteLock

__all__ = ["OldContent", "RecordedChange", "UndoLog"]

UNDO_FILE_NAME = "installed.json"

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another `aver install`."""

EntryPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OldContent:
    """The bytes that a file had; None where there was none."""

    old: bytes | None


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change to one file."""

    keep: int
    """How many of the tables on the way to the entry were there before."""
    before: str | None
    """SHA-256; None where there was no file."""
    after: str
    at: int
    removed: bytes
    inserted: bytes
    made: tuple[str, ...]
    """Directories that were made for the file, the innermost first."""
    new: bool
    """Whether there was no file when the entry was put in first, maybe by another Aver."""

    def old_content(self, now: bytes) -> OldContent | None:
        """The file before the change, if it is what the change made of it; None where somebody changed it since."""
        if _digest(now) != self.after:
            return None
        if self.before is None:
            return OldContent(None)
        old = now[: self.at] + self.removed + now[self.at + len(self.inserted) :]
        return OldContent(old) if _digest(old) == self.before else None


class UndoLog:
    """The file. Whoever changes something holds its lock."""

    def __init__(self, home: Path | None = None) -> None:
        self._path = (home or home_dir()) / UNDO_FILE_NAME
        self._lock = WriteLock(self._path.with_suffix(".lock"), timeout=LOCK_TIMEOUT)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, no other `aver install` does anything."""
        ensure_home(self._path.parent)
        try:
            with self._lock.hold():
                yield
        finally:
            self._lock.close()

    def find_change(self, path: Path, key: EntryPath) -> RecordedChange | None:
        """What was changed in a file for an entry, if it is remembered."""
        found = (_parse_change(one) for one in self._read_changes() if _matches_entry(one, path, key))
        return next((one for one in found if one is not None), None)

    def keep(self, changed: FileEdit, key: EntryPath, keep: int) -> None:
        """Remember a change. Of several for one entry the first counts, if the file was what we made of it."""
        if changed.after is None:
            return
        before, made = changed.before, tuple(map(str, changed.made))
        known = self.find_change(changed.path, key)
        new = before is None or (known is not None and known.new)
        if known is not None and before is not None:
            keep, made = known.keep, known.made
            if (undone := known.old_content(before)) is not None:
                before = undone.old
        at, removed, inserted = _find_difference(before or b"", changed.after)
        change = {
            "path": str(changed.path),
            "key": list(key),
            "keep": keep,
            "before": None if before is None else _digest(before),
            "after": _digest(changed.after),
            "at": at,
            "removed": base64.b64encode(removed).decode("ascii"),
            "inserted": base64.b64encode(inserted).decode("ascii"),
            "made": list(made),
            "new": new,
        }
        self._write_changes([*self._other_changes(changed.path, key), change])

    def forget(self, path: Path, key: EntryPath) -> None:
        self._write_changes(self._other_changes(path, key))

    def _other_changes(self, path: Path, key: EntryPath) -> list[Any]:
        return [one for one in self._read_changes() if not _matches_entry(one, path, key)]

    def _write_changes(self, changes: list[Any]) -> None:
        ensure_home(self._path.parent)
        replace_file(self._path, dump_document({"v": 1, "changes": changes}))

    def _read_changes(self) -> list[Any]:
        """What is remembered. A file that cannot be read is as good as none: then undoing goes by what stands there."""
        try:
            raw = read_settings_file(self._path)
            data = None if raw is None else read_json(raw)
        except BadInput:
            return []
        changes = data.get("changes") if isinstance(data, dict) and data.get("v") == 1 else None
        return changes if isinstance(changes, list) else []


def _matches_entry(change: Any, path: Path, key: EntryPath) -> bool:
    return isinstance(change, dict) and (change.get("path"), change.get("key")) == (str(path), list(key))


def _parse_change(data: Any) -> RecordedChange | None:
    try:
        return RecordedChange(
            keep=int(data["keep"]),
            before=data["before"],
            after=data["after"],
            at=int(data["at"]),
            removed=base64.b64decode(data["removed"], validate=True),
            inserted=base64.b64decode(data["inserted"], validate=True),
            made=tuple(map(str, data["made"])),
            new=bool(data.get("new", data["before"] is None)),
        )
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None


def _find_difference(before: bytes, after: bytes) -> tuple[int, bytes, bytes]:
    """The one stretch in which two texts differ: where it begins, and what stands there in each."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, before[start : len(before) - end], after[start : len(after) - end]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
