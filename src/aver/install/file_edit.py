"""Changing a file that belongs to another program: all at once, as its owner, and never over somebody else's change.

A link is followed, and what it leads to is changed, so that settings kept elsewhere stay there; in a project, only if
that is inside the project. Mode and owner stay. A file that is not plain, that has several names, or that we may not
write, is refused. Just before the new bytes take the place of the old, the file is read again: if another program wrote
it in the meantime, the change is made anew on what is there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aver.errors import BadInput, Refused, Unavailable
from aver.files.atomic import open_replacement, sync_directory
from aver.files.regular import open_regular, read_limited

__all__ = ["NEW_MODE", "FileEdit", "change_file", "read_settings_file", "remove_empty_directories", "resolve_target"]

FILE_MAX = 32 * 1024 * 1024
"""Bytes of a settings file. Some clients keep a history in theirs."""

ATTEMPTS = 5
"""How often a change is made anew where others write to the file at the same time."""

NEW_MODE = 0o600
"""Of a file that was not there. Settings may come to hold secrets."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What became of a file: its bytes before and after (None: there is none), and the directories made for it."""

    path: Path
    before: bytes | None
    after: bytes | None
    made: tuple[Path, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def resolve_target(path: Path, inside: Path | None) -> Path:
    """The file itself, behind links. With `inside`, one that leads out of that directory is refused."""
    real = Path(os.path.realpath(path))
    if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
        raise Refused("LINK", f"{path} leads out of the project, to {real}", advice="see whether that is wanted")
    return real


def read_settings_file(path: Path) -> bytes | None:
    """The bytes of a settings file; None if there is none."""
    found = _read_file(path)
    return None if found is None else found[0]


def change_file(
    path: Path, change: Callable[[bytes | None], bytes | None], *, mode: int = NEW_MODE, dry_run: bool = False
) -> FileEdit:
    """Make of a file what `change` makes of its bytes. `dry_run` only says what would become of it."""
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
            raise Refused("LINK", f"{path} has other names, which would not follow", advice="make it a file of its own")
        return read_limited(file, FILE_MAX, path), status


def _replace_file(
    path: Path, before: bytes | None, after: bytes | None, status: os.stat_result | None, mode: int
) -> bool:
    """Replace the file; False if it is no longer what it was."""
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
        raise Refused("NOT_OURS", f"{path} belongs to somebody else: {error.strerror}") from error
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
    """Take away directories that were made, as far as they are empty: the innermost first."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()
