"""Read files of Aver's own that other users must not be able to change.

A private file must be a regular file that only its owner can read and write. A public file may be read by all users,
but written only by its owner. Symbolic links are not followed. A file that breaks a rule is refused (`UNSAFE_FILE`),
and the error names the command that repairs it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from aver.errors import Refused, Unavailable
from aver.files.regular import NotRegularFile, open_regular, read_limited
from aver.log import debug

_OTHERS_ANY = 0o077
_OTHERS_WRITE = 0o022


def require_safe_directory(path: Path) -> None:
    """Raise `Refused` for a directory in which another user could put files."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
    if status.st_uid not in (os.geteuid(), 0):
        raise _unsafe_file_error(f"the directory {path} belongs to another user", "use a directory of your own")
    if status.st_mode & _OTHERS_WRITE:
        raise _unsafe_file_error(f"the directory {path} can be written by others", f"run: chmod 700 {path}")


def read_private_file(path: Path, *, limit: int) -> bytes | None:
    """Read a private file, or return None if there is none. `Refused` if it is not safe."""
    return _read_guarded(path, limit=limit, forbidden=_OTHERS_ANY, owners=(os.geteuid(),), cure="600")


def read_public_file(path: Path, *, limit: int) -> bytes | None:
    """Read a public file that Aver trusts, or return None if there is none. `Refused` if it is not safe."""
    return _read_guarded(path, limit=limit, forbidden=_OTHERS_WRITE, owners=(os.geteuid(), 0), cure="go-w")


def _read_guarded(path: Path, *, limit: int, forbidden: int, owners: tuple[int, ...], cure: str) -> bytes | None:
    try:
        file = open_regular(path, follow=False)
    except FileNotFoundError:
        return None
    except NotRegularFile as error:
        raise _unsafe_file_error(f"{path} is not a regular file", "move it away") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _unsafe_file_error(f"{path} is a symbolic link", "put the file itself there") from error
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error
    with file:
        status = os.fstat(file.fileno())
        if status.st_uid not in owners:
            raise _unsafe_file_error(f"{path} belongs to another user", "run as its owner, or use a store of your own")
        if status.st_mode & forbidden:
            others = "read or written" if forbidden == _OTHERS_ANY else "written"
            raise _unsafe_file_error(f"{path} can be {others} by others", f"run: chmod {cure} {path}")
        return read_limited(file, limit, path)


def _unsafe_file_error(message: str, advice: str) -> Refused:
    debug("files", "unsafe file: %s", message)
    return Refused("UNSAFE_FILE", message, advice=advice)
