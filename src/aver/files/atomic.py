"""Change files and directories so that a crash or a power cut leaves the old state or the new one.

A file is written beside its target under a temporary name, made durable, and renamed. The rename is atomic; the
directory is synced after it, because otherwise a power cut could undo it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aver.errors import Unavailable


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Put `data` at `path` all at once and durably: the old bytes or the new ones, never a mixture."""
    with open_replacement(path, mode=mode) as file:
        file.write(data)


@contextmanager
def open_replacement(path: Path, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the context ends well. Raises `Unavailable`."""
    import tempfile  # Here, because it takes long to load and most runs write no file.

    directory = path.parent
    try:
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=temporary_prefix(path.name))
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode)
                yield file
                file.flush()
                os.fsync(file.fileno())  # Before the rename: otherwise the new name could lead to an empty file.
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_directory(directory)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def replacement_directory(path: Path) -> Iterator[Path]:
    """Give an empty directory beside `path` that takes the place of the directory `path` when the context ends well.

    If the context fails, `path` stays as it is. A power cut between the two renames leaves the old directory under its
    temporary name (`.NAME.aver-old`); `restore_directory` puts it back. Raises `Unavailable`.
    """
    import shutil  # Both here, because most runs replace no directory.

    from aver.files.locks import lock_directory

    beside, old = _name_beside(path, "aver-new"), _name_beside(path, "aver-old")
    # Locked, because two writers would use the same name beside it.
    with lock_directory(path):
        try:
            for left in (beside, old):  # An interrupted call may have left them; `path` is in its place here.
                shutil.rmtree(left, ignore_errors=True)
            beside.mkdir(mode=0o700)
            yield beside
            os.rename(path, old)
            try:
                os.rename(beside, path)
            except OSError:
                os.rename(old, path)
                raise
            sync_directory(path.parent)
        except OSError as error:
            raise Unavailable(f"cannot replace {path}: {error.strerror}") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def restore_directory(path: Path) -> None:
    """Put back a directory that `replacement_directory` had moved away before a power cut. Raises `Unavailable`."""
    import shutil

    old = _name_beside(path, "aver-old")
    try:
        if os.path.lexists(path):
            shutil.rmtree(old, ignore_errors=True)  # The new directory is in its place.
        elif old.is_dir():
            os.rename(old, path)
    except OSError as error:
        raise Unavailable(f"cannot restore {path}: {error.strerror}") from error


def _name_beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{temporary_prefix(path.name)}{suffix}")


def temporary_prefix(name: str) -> str:
    """The beginning of the names of files that a killed process may leave beside `name`."""
    return f".{name[:64]}."


def make_directory(path: Path) -> None:
    """Make a directory that only its owner may enter, with missing parents, so that it survives a power cut."""
    if path.is_dir():
        return
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in missing:
        with suppress(PermissionError):  # A parent that Aver may not read cannot be synced.
            sync_directory(directory.parent)


def sync_new_name(path: Path, take_back: Callable[[], object]) -> None:
    """Make a name that was new survive a power cut. If that fails, take it back and raise the `OSError`.

    The caller reports a failure then, and its next attempt must not be refused because the name is taken.
    """
    try:
        sync_directory(path.parent)
    except OSError:
        with suppress(OSError):
            take_back()
        raise


def sync_directory(directory: Path) -> None:
    """Make a rename, creation or removal in `directory` survive a power cut. Raises `OSError`."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
