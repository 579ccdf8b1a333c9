"""Change a file that belongs to another program: all at once, as its owner, and never over someone else's change.

Aver follows a link and changes the file behind it, so that settings kept elsewhere stay there; in a project, only if
that file is inside the project. Mode and owner stay. Aver refuses a file that is not plain, that has several names, or
that it may not write. Just before the new bytes replace the old ones, Aver reads the file again: if another program
wrote it in the meantime, Aver makes the change anew on the new content.
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
            raise Refused("LINK", f"{path} has other names, which would not follow", advice="make it a file of its own")
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
    """Delete directories that Aver made, as far as they are empty. The caller gives the innermost first."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()
