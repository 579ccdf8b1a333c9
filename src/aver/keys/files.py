"""Key files: their names, and reading, writing and destroying them with care.

A private key is a regular file of our own that nobody else can read or write, in a directory that nobody
else can write; otherwise it is refused (`UNSAFE_FILE`) with the command that cures it. A public file may be
read by all and written by us alone. Symbolic links are not followed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from aver.errors import BadInput, Refused, Unavailable
from aver.home import sync_directory
from aver.keys.identity import identity_of_slug, slug
from aver.keys.ring import EPOCH_MAX, Ring, RingEntry

__all__ = [
    "CLASSIC_SUFFIX",
    "PQ_SUFFIX",
    "SEALED_SUFFIX",
    "Stamp",
    "check_directory",
    "destroy",
    "is_private_name",
    "leftovers",
    "private_name",
    "read_private",
    "read_public",
    "stamp",
    "write_private",
]

CLASSIC_SUFFIX = "key"
PQ_SUFFIX = "pq"
SEALED_SUFFIX = "sealed.json"

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,6})\.(key|pq|sealed\.json)")

Stamp = tuple[int, int, int, int]
"""Inode, size, modification and change time: differs whenever a file was replaced or edited."""

_OTHERS_ANY = 0o077
_OTHERS_WRITE = 0o022


def private_name(identity: str, epoch: int, suffix: str) -> str:
    return f"{slug(identity)}.{epoch}.{suffix}"


def is_private_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def leftovers(ring: Ring, names: Iterable[str]) -> Iterator[str]:
    """The private files that an interrupted change left behind: those of no active epoch.

    A file of an epoch the ring never heard of is one only while the active epoch's own file is there (or
    there was never an epoch): otherwise the ring is likely an old copy, and the file the one key that works.
    """
    present = set(names)
    for name in sorted(present):
        match = _NAME.fullmatch(name)
        identity = identity_of_slug(match[1]) if match else None
        if match is None or identity is None or int(match[2]) > EPOCH_MAX:
            continue
        entries = {entry.epoch: entry for entry in ring.entries_of(identity)}
        entry = entries.get(int(match[2]))
        active = ring.active(identity)
        if entry is not None:
            if entry is not active:
                yield name
        elif not entries or (active is not None and _has_private(active, present)):
            yield name


def _has_private(entry: RingEntry, present: set[str]) -> bool:
    return any(
        private_name(entry.identity, entry.epoch, suffix) in present for suffix in (CLASSIC_SUFFIX, SEALED_SUFFIX)
    )


def stamp(path: str) -> Stamp | None:
    """What tells one state of a file from another; None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_directory(path: Path) -> None:
    """Refuse a directory in which somebody else could put files."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
    if status.st_uid not in (os.geteuid(), 0):
        raise _unsafe(f"the directory {path} belongs to another user", "use a directory of your own")
    if status.st_mode & _OTHERS_WRITE:
        raise _unsafe(f"the directory {path} can be written by others", f"run: chmod 700 {path}")


def read_private(path: Path, *, limit: int) -> bytes | None:
    """The bytes of a private key file, or None if there is none."""
    return _read(path, limit=limit, forbidden=_OTHERS_ANY, owners=(os.geteuid(),), cure="600")


def read_public(path: Path, *, limit: int) -> bytes | None:
    """The bytes of a file of public keys that we rely on, or None if there is none."""
    return _read(path, limit=limit, forbidden=_OTHERS_WRITE, owners=(os.geteuid(), 0), cure="go-w")


def _read(path: Path, *, limit: int, forbidden: int, owners: tuple[int, ...], cure: str) -> bytes | None:
    try:
        # Without O_NONBLOCK a pipe put in the file's place would hang us.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _unsafe(f"{path} is a symbolic link", "put the file itself there") from error
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)  # A directory cannot even be opened as a file.
        raise _unsafe(f"{path} is not a regular file", "move it away")
    with os.fdopen(handle, "rb") as file:
        if status.st_uid not in owners:
            raise _unsafe(f"{path} belongs to another user", "run as its owner, or use a store of your own")
        if status.st_mode & forbidden:
            others = "read or written" if forbidden == _OTHERS_ANY else "written"
            raise _unsafe(f"{path} can be {others} by others", f"run: chmod {cure} {path}")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise BadInput(f"{path} is larger than {limit} bytes")
    return data


def write_private(path: Path, data: bytes) -> None:
    """Create a private key file, durably. It must not exist."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
            _write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(path.parent)
    except FileExistsError as error:
        raise Refused(
            "FILE_EXISTS", f"{path} is in the way and is not overwritten", advice="see what it is and move it away"
        ) from error
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def destroy(path: Path) -> None:
    """Overwrite a private key file, make that durable, and remove it. A link is removed, not followed."""
    try:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        else:
            try:
                _write_all(handle, bytes(os.fstat(handle).st_size))
                os.fsync(handle)
            finally:
                os.close(handle)
        os.unlink(path)
        sync_directory(path.parent)
    except OSError as error:
        raise Unavailable(
            f"cannot destroy the retired key {path}: {error.strerror}", advice="remove the file by hand"
        ) from error


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _unsafe(message: str, advice: str) -> Refused:
    return Refused("UNSAFE_FILE", message, advice=advice)
