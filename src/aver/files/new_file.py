"""Write a file that a person named, and never replace one by mistake.

A checkpoint, a proof, a list of keys or a page may be the only copy of some evidence. So an existing file stays as it
is, unless the caller passes `force`. The file appears complete or not at all: the bytes are written beside the target
under a temporary name and made durable. Then the file gets its name by a hard link, which fails if the name is taken;
with `force` by a rename, which replaces the old file in one step. A call that fails leaves no new file, so that it can
be repeated.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.atomic import sync_directory, sync_new_name, temporary_prefix

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})
"""Errors of `link` on file systems that have no hard links."""

PRIVATE = 0o600
"""The mode of a file that only its owner can read."""


def check_new_path(path: Path, *, force: bool = False) -> None:
    """Raise the error that `open_new_file` would raise, before any other work is done."""
    if os.path.lexists(path):
        if not force:
            raise path_exists_error(path)
        if path.is_dir():
            raise BadInput(f"{path} is a directory and is not replaced", advice="choose another name")
    if not path.parent.is_dir():
        raise NotFound(f"there is no directory {path.parent}", advice="create it first")


def write_new_file(path: Path, data: bytes, *, force: bool = False) -> None:
    """Write a file completely and durably. Raises `BadInput` if one is there already, unless `force`."""
    with open_new_file(path, force=force) as file:
        file.write(data)


@contextmanager
def open_new_file(path: Path, *, force: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file that gets its name when the context ends well. Raises `BadInput`, `NotFound` or `Unavailable`.

    The umask takes from `mode`, as for any other file that this person writes. `PRIVATE` is for copies of records.
    """
    check_new_path(path, force=force)
    temporary = path.with_name(f"{temporary_prefix(path.name)}{secrets.token_hex(8)}.part")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # Before it gets its name: otherwise the name could lead to an empty file.
                written = os.fstat(file.fileno())
            if force:
                os.replace(temporary, path)
                sync_directory(path.parent)
            else:
                _rename_to_new(temporary, path)
                sync_new_name(path, lambda: _remove(path, written))
        finally:
            # The file has its name, or an error is on its way: a temporary name that stays is no reason to fail.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}", advice="choose another file") from error


def path_exists_error(path: Path) -> BadInput:
    """The error for a target that exists."""
    words = f"{path} exists already and is not overwritten"
    return BadInput(words, advice="choose another name, or replace it with --force")


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Give a file its name. Raises `BadInput` if another file has got that name meanwhile."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        raise path_exists_error(path) from None
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # Without hard links, a file that appears between these two lines is replaced.
        if os.path.lexists(path):
            raise path_exists_error(path) from None
        os.replace(temporary, path)


def _remove(path: Path, written: os.stat_result) -> None:
    """Remove a file, unless another one has taken its place: somebody else may have used `--force` meanwhile."""
    if os.path.samestat(os.lstat(path), written):
        path.unlink()
