"""Change a file that belongs to another program: all at once, as its owner, and never over someone else's change.

Aver follows a link and changes the file behind it, so that settings kept elsewhere stay there; in a project, only if
that file is inside the project. Mode and owner stay. Aver refuses a file that is not plain, that has several names, or
that it may not write. Just before the new bytes replace the old ones, Aver reads the file again: if another program
wrote it in the meantime, Aver makes the change anew on the new content.

Aver notes its changes of others' files, so that `aver uninstall` takes away just these: `AVER_HOME/installed.json`.

    {"v": 1, "changes": [{"path": "/home/me/.cursor/mcp.json", "key": ["mcpServers", "aver"],
                          "keep": 0, "made": ["/home/me/.cursor"], "new": true}]}

Aver replaces only entries of its own, so there are no old entries to put back. It remembers for each entry what it had
to make for it: the tables on the way (all but the first `keep`), the directories (`made`), and the file (`new`). On
uninstall they go too, if nothing else is in them by then. No content of a file is kept here: it may hold secrets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home, home_dir
from aver.errors import BadInput, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import open_replacement, replace_file, sync_directory
from aver.files.regular import open_regular, read_limited
from aver.ledger.stores.sqlite.connections import WriteLock

FILE_MAX = 32 * 1024 * 1024
"""Bytes of a settings file. Some clients keep a history in it."""

ATTEMPTS = 5
"""How often Aver tries, where other programs write to the file at the same time."""

NEW_MODE = 0o600
"""The mode of a new file. Settings may come to hold secrets."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change to a file: its bytes before and after (None: no file), and the directories made for it."""

    path: Path
    before: bytes | None
    after: bytes | None
    made: tuple[Path, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def resolve_target(path: Path, inside: Path | None) -> Path:
    """Return the file behind links. Raises `Refused` where it is not inside the directory `inside`."""
    real = Path(os.path.realpath(path))
    if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
        raise Refused("LINK", f"{path} leads out of the project, to {real}", advice="see whether that is wanted")
    return real


def read_settings_file(path: Path) -> bytes | None:
    """Return the bytes of a settings file; None where there is none. Raises `BadInput` or `Refused` otherwise."""
    found = _read_file(path)
    return None if found is None else found[0]


def change_file(
    path: Path, change: Callable[[bytes | None], bytes | None], *, mode: int = NEW_MODE, dry_run: bool = False
) -> FileEdit:
    """Replace a file's bytes by what `change` makes of them (None: no file). `dry_run` changes nothing."""
    for _ in range(ATTEMPTS):
        found = _read_file(path)
        before = None if found is None else found[0]
        after = change(before)
        if dry_run or after == before:
            return FileEdit(path, before, after)
        status = None if found is None else found[1]
        if status is not None and not os.access(path, os.W_OK):
            raise Refused("READ_ONLY", f"{path} may not be written", advice="its owner marked it so; ask them")
        made = _make_directories(path.parent) if after is not None else ()
        if _replace_file(path, before, after, status, mode):
            return FileEdit(path, before, after, made)
    raise Unavailable(f"another program keeps writing to {path}", advice="close it and try again")


def _read_file(path: Path) -> tuple[bytes, os.stat_result] | None:
    try:
        file = open_regular(path, follow=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    with file:
        status = os.fstat(file.fileno())
        if status.st_nlink > 1:
            raise Refused(
                "LINK",
                f"{path} has other hard links, which would keep the old content",
                advice="replace it with a file without other links",
            )
        return read_limited(file, FILE_MAX, path), status


def _replace_file(
    path: Path, before: bytes | None, after: bytes | None, status: os.stat_result | None, mode: int
) -> bool:
    """Replace the file. Returns False if its bytes are no longer those of `before`."""
    try:
        if after is None:
            if read_settings_file(path) != before:
                return False
            path.unlink()
            sync_directory(path.parent)
            return True
        with open_replacement(path, mode=mode if status is None else stat.S_IMODE(status.st_mode)) as file:
            if status is not None and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            file.write(after)
            if read_settings_file(path) != before:
                raise _FileChangedError
    except _FileChangedError:
        return False
    except PermissionError as error:
        raise Refused("NOT_OURS", f"{path} belongs to another user: {error.strerror}") from error
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error
    return True


class _FileChangedError(Exception):
    pass


def _make_directories(directory: Path) -> tuple[Path, ...]:
    missing = [one for one in (directory, *directory.parents) if not one.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot make {directory}: {error.strerror}") from error
    return tuple(missing)


def remove_empty_directories(directories: tuple[Path, ...]) -> None:
    """Delete directories that Aver made, as far as they are empty. The caller gives the innermost first."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


UNDO_FILE_NAME = "installed.json"

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another `aver install`."""

EntryPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """The parts that Aver made for one entry in one file."""

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
        """Return the parts that Aver made for an entry, if the log has them."""
        for change in self._read_changes():
            if _matches_entry(change, path, key):
                try:
                    return RecordedChange(int(change["keep"]), tuple(map(str, change["made"])), bool(change["new"]))
                except (KeyError, TypeError, ValueError):
                    continue
        return None

    def keep(self, changed: FileEdit, key: EntryPath, keep: int) -> None:
        """Remember a change that put an entry in. A note on the same entry stays."""
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
        """Read the log. A file that cannot be read counts as empty: then only Aver's entries are taken out."""
        try:
            raw = read_settings_file(self._path)
            data = None if raw is None else read_json(raw)
        except BadInput:
            return []
        changes = data.get("changes") if isinstance(data, dict) and data.get("v") == 1 else None
        return changes if isinstance(changes, list) else []


def _matches_entry(change: Any, path: Path, key: EntryPath) -> bool:
    return isinstance(change, dict) and (change.get("path"), change.get("key")) == (str(path), list(key))
