"""Open regular files, and nothing else, without surprises; and read Aver's own files, if they are safe.

Aver reads files that other programs and other people wrote. A path may lead to a pipe that blocks its reader for
ever, to a device that never ends, or through a symbolic link to a file elsewhere. Every opening here keeps four rules:

1. Opening never blocks: `O_NONBLOCK`, so that a pipe without a writer cannot hang Aver.
2. The open file itself is checked, not its name: a name may lead to another file a moment later.
3. The caller says whether a symbolic link is followed. Below a directory that someone else made, no link is.
4. The caller reads with a limit: `read_limited`.

There are three levels, so that each caller can answer in its own words:

    open_descriptor, open_regular       raise `OSError`; `NotRegularFile` for a pipe, a directory or a device
    open_file, open_inside              raise `NotFound`, `BadInput` or `Unavailable`
    open_if_regular, read_if_regular    return None where there is no regular file

Other users must not be able to change Aver's own files. A private file must be a regular file that only its owner can
read and write (`read_private_file`). A public file may be read by all users, but written only by its owner
(`read_public_file`). A file that breaks a rule is refused (`UNSAFE_FILE`), and the error names the command that repairs
it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

CHUNK = 256 * 1024
"""Bytes that `read_chunks` reads at a time."""

FILE_NAME_MAX = 240
"""Longest file name below a directory of others, in bytes: every file system takes it, with room for a suffix."""

NEW_FILE_MODE = 0o600
"""Mode of a file that `O_CREAT` makes: only its owner may read it."""

_OTHERS_ANY = 0o077
_OTHERS_WRITE = 0o022


class NotRegularFile(OSError):
    """The path leads to a pipe, a directory, a socket or a device."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", os.fspath(path))


# --- with the system's own errors


def open_without_blocking(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow: bool, below: int | None = None
) -> int:
    """Open anything at a path and return its descriptor. Use `open_descriptor`, unless pipes and devices are wanted.

    `flags` are those of `os.open`. With `below`, the path starts at that open directory.
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK
    return os.open(path, flags if follow else flags | os.O_NOFOLLOW, NEW_FILE_MODE, dir_fd=below)


def open_descriptor(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow: bool, below: int | None = None
) -> int:
    """Open a regular file and return its descriptor, which the caller closes. `NotRegularFile` for anything else."""
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags, NEW_FILE_MODE, dir_fd=below)
    # Look at the open file: its name may lead elsewhere by now.
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularFile(path)
    return handle


def open_regular(path: str | os.PathLike[str], *, follow: bool, below: int | None = None) -> BinaryIO:
    """Open a regular file for reading. Raises `OSError`, and `NotRegularFile` for anything else."""
    return os.fdopen(open_descriptor(path, follow=follow, below=below), "rb")


# --- with Aver's errors


def open_file(path: Path) -> BinaryIO:
    """Open a regular file that the caller named, behind links if need be.

    Raises `NotFound`, `BadInput` for something that is not a regular file, or `Unavailable`.
    """
    try:
        return open_regular(path, follow=True)
    except OSError as error:
        raise open_error(path, error) from error


def open_inside(directory: Path, *names: str) -> BinaryIO:
    """Open a regular file in a directory that someone else made; the names before the last are directories in it.

    Each name is one plain name and no link is followed, so nothing outside the directory is ever read.
    """
    for name in names:
        if not is_file_name(name):
            raise BadInput(f"{ascii(name)[:80]} is not a name that a file may have here")
    try:
        at = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        for name in names[:-1]:
            outer = at
            try:
                at = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
            finally:
                os.close(outer)
        try:
            return open_regular(names[-1], follow=False, below=at)
        finally:
            os.close(at)
    except OSError as error:
        raise open_error(directory.joinpath(*names), error) from error


def open_error(path: Path, error: OSError) -> BadInput | Unavailable:
    """Turn the system's error from opening a file into one of Aver's."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"there is no {path}")
    # ELOOP: a link where none is followed. ENXIO: a socket, or a pipe that is opened for writing.
    if isinstance(error, NotRegularFile) or error.errno in (errno.ELOOP, errno.ENXIO):
        return BadInput(f"{path} is not a regular file")
    return Unavailable(f"cannot read {path}: {error.strerror}")


def is_file_name(name: object) -> bool:
    """Whether it is one plain file name and nothing else: no separator, no `..`, not hidden, printable."""
    return (
        isinstance(name, str)
        and name.isprintable()
        and name[:1] not in ("", ".")
        and "/" not in name
        and "\\" not in name
        and len(name.encode("utf-8")) <= FILE_NAME_MAX
    )


# --- where there may be no file


def open_if_regular(path: Path) -> FileIO | None:
    """Open a file without a buffer, behind links. None where there is none, or it is not a regular file.

    Raises `Unavailable` where the file is there and cannot be opened.
    """
    try:
        return os.fdopen(open_descriptor(path, follow=True), "rb", buffering=0)
    except (FileNotFoundError, NotADirectoryError, NotRegularFile):
        return None
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error


def read_if_regular(path: Path, limit: int) -> bytes | None:
    """Read a whole file, behind links. None where there is no regular file, or it has more than `limit` bytes."""
    file = open_if_regular(path)
    if file is None:
        return None
    with file:
        return file.readall() if os.fstat(file.fileno()).st_size <= limit else None


# --- reading


def read_limited(file: BinaryIO, limit: int, name: object, *, advice: str = "") -> bytes:
    """Read the rest of a file. `BadInput`, which calls the file `name`, if that is more than `limit` bytes."""
    raw = file.read(limit + 1)
    if len(raw) > limit:
        raise BadInput(f"{name} is larger than {limit} bytes", advice=advice)
    return raw


def read_chunks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in pieces of at most `CHUNK` bytes."""
    while chunk := file.read(CHUNK):
        yield chunk


_BLANKS = lazy_pattern(rb"[ \t\r\n]*+")
"""White space, with one compiled step for a whole run of it."""


BLANKS_EXPECTED = 4096
"""Bytes that `skip_blanks` reads first: most runs of blanks are one line feed."""


def skip_blanks(file: BinaryIO) -> int:
    """Go to the first byte of a file that is not white space. Returns the number of line feeds that were skipped."""
    feeds, size = 0, BLANKS_EXPECTED
    while chunk := file.read(size):
        size = CHUNK
        end = _BLANKS.match(chunk).end()  # type: ignore[union-attr]
        feeds += chunk.count(b"\n", 0, end)
        if end < len(chunk):
            file.seek(end - len(chunk), os.SEEK_CUR)
            break
    return feeds


# --- Aver's own files


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
