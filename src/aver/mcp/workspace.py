"""What the server keeps in a workspace: `.capseal/`.

    events.jsonl            live events
    runs/<run>/             the runs, each with its actions and, once sealed, its six files
    runs/<run>.cap          the sealed runs, packed
    sessions/<name>.json    which run a session is in
    sessions/<name>.lease   locked by the server that has this session

All of it can be lost without losing a record: the ledger has them. A directory that is really a link is refused, so
that a repository cannot have us write elsewhere.

A session is a name with a current run. A name that somebody chose may be shared by several servers; one that was found
by itself belongs to one server at a time, and the next one takes the name with `-2`. When the run is sealed, or nobody
has touched it for `RESUME_WITHIN`, the session's next action begins a new run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aver import clock
from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.errors import AverError, BadInput, Refused, Unavailable
from aver.files.atomic import make_directory
from aver.files.locks import lock, open_lock_file, try_lock
from aver.files.regular import open_descriptor

__all__ = ["RESUME_WITHIN", "SessionSlot", "Workspace"]

DIRECTORY_NAME = ".capseal"

RESUME_WITHIN = timedelta(hours=24)
"""An open run that nobody touched for longer belongs to work that is over; its records stay as they are."""

SLOTS_MAX = 256
"""Servers with one and the same client in one workspace. Beyond that something starts them in a loop."""

POINTER_MAX = 4096
"""Bytes of a file that names one run."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}").fullmatch
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}-mcp-[0-9a-f]{8}").fullmatch


class Workspace:
    """A directory that an agent works in."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.abspath(root))
        if not self.root.is_dir():
            raise BadInput(f"the workspace {self.root} is not a directory", advice="name one with --workspace")

    @property
    def place(self) -> Path:
        """`.capseal`, whether or not it is there."""
        return self.root / DIRECTORY_NAME

    @property
    def runs(self) -> Path:
        return self.place / "runs"

    def made(self, name: str = "") -> Path:
        """A directory in `.capseal`, made if it is not there; `.capseal` itself without a name."""
        path = self.place / name if name else self.place
        for one in dict.fromkeys((self.place, path)):
            if one.is_symlink():
                raise Refused("LINK", f"{one} is a symbolic link", advice="remove it: Aver keeps its files in place")
        try:
            make_directory(path)
        except OSError as error:
            raise Unavailable(f"cannot make {path}: {error.strerror}") from error
        return path

    def shared(self, name: str) -> SessionSlot:
        """The session of this name, whoever else is in it."""
        return SessionSlot(self.made("sessions"), _file_name(name), lease=-1)

    def own(self, name: str) -> SessionSlot:
        """The first session of this name that no other server has: `name`, `name-2` and so on."""
        directory = self.made("sessions")
        for number in range(1, SLOTS_MAX + 1):
            file = _file_name(name if number == 1 else f"{name}-{number}")
            lease = _try_lease(directory / f"{file}.lease")
            if lease is not None:
                return SessionSlot(directory, file, lease)
        raise Refused("BUSY", f"{SLOTS_MAX} servers of {name} run in this workspace", advice="stop some of them")


class SessionSlot:
    """One session's name, and the run that it is in."""

    def __init__(self, directory: Path, name: str, lease: int) -> None:
        self.name = name
        self._path = directory / f"{name}.json"
        self._lease = lease

    def run(self, is_open: Callable[[str], bool]) -> str:
        """The session's run: the one it is in, if that is open still, or a new one. All who share it agree on that."""
        with self._lock_file() as handle:
            found = _read_pointer(os.pread(handle, POINTER_MAX, 0))
            if found is not None and is_open(found):
                return found
            fresh = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-mcp-{clock.new_id()[:8]}"
            data = dump_document({"v": 1, "run_id": fresh})
            os.ftruncate(handle, 0)
            os.pwrite(handle, data, 0)
            return fresh

    def known(self) -> str | None:
        """The run that the session was in last, if it was in one. Looking leaves no traces."""
        try:
            handle = open_descriptor(self._path, follow=False)
        except OSError:
            return None
        try:
            return _read_pointer(os.pread(handle, POINTER_MAX, 0))
        except OSError:
            return None
        finally:
            os.close(handle)

    def close(self) -> None:
        """Let others have the name."""
        if self._lease >= 0:
            os.close(self._lease)
            self._lease = -1

    @contextmanager
    def _lock_file(self) -> Iterator[int]:
        try:
            handle = open_lock_file(self._path)
            try:
                lock(handle)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(f"cannot use {self._path}: {error.strerror}") from error


def _read_pointer(raw: bytes) -> str | None:
    """The run that a pointer names; None for one that is empty, torn or somebody else's."""
    try:
        data = read_json(raw)
    except AverError:
        return None
    run_id = data.get("run_id") if isinstance(data, dict) else None
    return run_id if isinstance(run_id, str) and _RUN_ID(run_id) else None


def _try_lease(path: Path) -> int | None:
    try:
        handle = open_lock_file(path)
    except OSError as error:
        raise Unavailable(f"cannot use {path}: {error.strerror}") from error
    if not try_lock(handle):
        os.close(handle)
        return None
    return handle


def _file_name(name: str) -> str:
    """A name for files: as it stands where it can, else by its digest."""
    return name if _NAME(name) else "x-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
