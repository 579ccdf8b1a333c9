"""The files of one workspace, for the effects that read, write and delete them.

A path is relative to the workspace. Every step goes through an open directory handle and follows no symbolic link. So
nobody can lead an effect out of the workspace by swapping a directory for a link while the effect runs.

A write or delete names the state of the file that was shown before: `FileBase`, the SHA-256 of its bytes, or none where
there was no file. If the file has another state by now, nothing happens. A new text takes the place of the old one by
a rename, so a reader sees the old bytes or the new ones.

    files = WorkspaceFiles("/work")
    before = files.look("src/app.py")             # FileBase, and the bytes
    files.write("src/app.py", b"...", before.base)
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from aver.errors import Refused, Unavailable
from aver.files.regular import NotRegularFile, open_descriptor

RELPATH_MAX = 1024
"""Longest relative path, in characters."""

DEPTH_MAX = 64
"""Most directories in a relative path: each of them takes an open handle for a moment."""

CONTENT_MAX = 8 * 1024 * 1024
"""Most bytes of a file that an effect reads or writes. Larger files are no matter for an agent's message."""

NEW_MODE = 0o644
"""Mode of a new file, before the process's own mask."""

KEPT_MODE = 0o777
"""Bits of a file's mode that outlive a write. The new file belongs to the user of the executor. With the set-user-ID
bit of the old one, an agent of another user could write a program and run it as the executor."""


_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class FileBase(NamedTuple):
    """The state of a file: the SHA-256 of its bytes, or None where there is no file."""

    sha256: str | None


class FileLook(NamedTuple):
    """A file as it was read: its state, and its bytes (empty where there is no file)."""

    base: FileBase
    data: bytes


NO_FILE = FileLook(FileBase(None), b"")


def split_relpath(relpath: str) -> tuple[str, ...]:
    """Return the names on a path below the workspace. Raises `Refused` with `WORKSPACE_PATH_BLOCKED`."""
    names = tuple(relpath.split("/"))
    if not relpath or len(relpath) > RELPATH_MAX or len(names) > DEPTH_MAX or not relpath.isprintable():
        raise _blocked_error(relpath, "it is no path of printable characters, or too long")
    if any(name in ("", ".", "..") for name in names) or "\\" in relpath:
        raise _blocked_error(relpath, "it must be relative, without `.`, `..`, empty names and backslashes")
    try:
        relpath.encode()
    except UnicodeEncodeError as error:
        raise _blocked_error(relpath, "it has half a character") from error
    return names


class WorkspaceFiles:
    """Reads and changes files of one workspace. Making it opens nothing."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace

    def look(self, relpath: str) -> FileLook:
        """Read a file. Raises `Refused`: blocked path, no regular file, or too large."""
        names = split_relpath(relpath)
        with _system_errors(relpath):
            try:
                with self._open_parent(names) as parent:
                    return _read(names[-1], parent, relpath)
            except FileNotFoundError:
                return NO_FILE

    def write(self, relpath: str, data: bytes, base: FileBase) -> None:
        """Put `data` into the file if it is still in the state `base`. Makes missing directories above it."""
        names = split_relpath(relpath)
        if len(data) > CONTENT_MAX:
            raise Refused("EFFECT_FAILED", f"{relpath}: {len(data)} bytes are more than {CONTENT_MAX}")
        with _system_errors(relpath), self._open_parent(names, make=True) as parent:
            _require_base(names[-1], parent, relpath, base)
            mode = NEW_MODE
            if base.sha256 is not None:
                mode = os.stat(names[-1], dir_fd=parent, follow_symlinks=False).st_mode & KEPT_MODE
            temporary = f".{secrets.token_hex(8)}.aver-new"
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    if base.sha256 is not None:
                        os.fchmod(file.fileno(), mode)  # The mask does not apply to a file that had its mode.
                    os.fsync(file.fileno())
                # Once more, because writing took time. A link at this name is replaced by the rename, not followed.
                _require_base(names[-1], parent, relpath, base)
                if base.sha256 is not None or not _link_new(temporary, names[-1], parent, relpath):
                    os.rename(temporary, names[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=parent)
                raise
            os.fsync(parent)

    def delete(self, relpath: str, base: FileBase) -> None:
        """Remove the file if it is still in the state `base`. Raises `Refused` where there is none."""
        names = split_relpath(relpath)
        with _system_errors(relpath), self._open_parent(names) as parent:
            _require_base(names[-1], parent, relpath, base)
            os.unlink(names[-1], dir_fd=parent)
            os.fsync(parent)

    @contextmanager
    def open_directory(self, relpath: str) -> Iterator[int]:
        """Open a directory; `.` is the workspace itself. Raises `Refused` where there is none."""
        names = () if relpath == "." else split_relpath(relpath)
        with _system_errors(relpath), self._open_parent((*names, "")) as directory:
            yield directory

    @contextmanager
    def _open_parent(self, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Open the directory that holds the last name, step by step, without following a link."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        # The workspace is a real path. A link in its place was put there later.
        at = os.open(self.workspace, flags | os.O_NOFOLLOW)
        try:
            for name in names[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=at)
                        os.fsync(at)  # Else a power failure could take the directory, and the file with it.
                outer = at
                at = os.open(name, flags | os.O_NOFOLLOW, dir_fd=outer)
                os.close(outer)
            yield at
        finally:
            os.close(at)


def digest_file(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, as `FileBase` has it."""
    return hashlib.sha256(data).hexdigest()


def _read(name: str, parent: int, relpath: str) -> FileLook:
    try:
        handle = open_descriptor(name, follow=False, below=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _blocked_error(relpath, "it is a link") from error
        raise
    with os.fdopen(handle, "rb") as file:
        data = file.read(CONTENT_MAX + 1)
    if len(data) > CONTENT_MAX:
        raise Refused("EFFECT_FAILED", f"{relpath} has more than {CONTENT_MAX} bytes")
    return FileLook(FileBase(digest_file(data)), data)


def _link_new(temporary: str, name: str, parent: int, relpath: str) -> bool:
    """Give a new file its name, if no file has taken the name meanwhile. False where the file system has no links."""
    try:
        # A rename would replace a file that has appeared since the last look.
        os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError as error:
        raise _changed_error(relpath) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    os.unlink(temporary, dir_fd=parent)
    return True


def _require_base(name: str, parent: int, relpath: str, base: FileBase) -> None:
    """Raise `Refused` with `WORKSPACE_CHANGED` unless the file is in the state that was shown."""
    try:
        now = _read(name, parent, relpath).base
    except FileNotFoundError:
        now = NO_FILE.base
    if now != base:
        raise _changed_error(relpath)


def _changed_error(relpath: str) -> Refused:
    return Refused(
        "WORKSPACE_CHANGED",
        f"{relpath} is not as it was when the change was shown",
        advice="ask for a new PREVIEW",
    )


def _blocked_error(relpath: str, why: str) -> Refused:
    return Refused("WORKSPACE_PATH_BLOCKED", f"{ascii(relpath)[:80]} cannot be used: {why}")


@contextmanager
def _system_errors(relpath: str) -> Iterator[None]:
    """Turn the system's errors into refusals with a code. A full disk is `Unavailable`."""
    try:
        yield
    except NotRegularFile as error:
        raise _blocked_error(relpath, "it is no regular file") from error
    except OSError as error:
        # ELOOP and ENOTDIR: a link, or a file in the place of a directory.
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG):
            raise _blocked_error(relpath, "a link or a file stands in the place of a directory") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
            raise Unavailable(f"cannot use {relpath}: {error.strerror}") from error
        raise Refused("EFFECT_FAILED", f"cannot use {relpath}: {error.strerror}") from error
