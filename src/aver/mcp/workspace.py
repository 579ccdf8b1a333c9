"""The files of the server in a workspace: the directory `.capseal/`.

    events.jsonl            live events
    runs/<run>/             the runs, each with its actions and, once sealed, its other files
    runs/<run>.cap          the sealed runs, packed
    sessions/<name>.json    the current run of a session
    sessions/<name>.lease   locked by the server that owns the session

If the directory is lost, no record is lost: the ledger has them all. Aver refuses a directory that is a symbolic link,
so that a repository cannot make Aver write elsewhere.

A session is a name with a current run. Several servers may share a name that the user chose. A name that Aver chose
belongs to one server at a time; the next server takes the name with `-2`. If the run is sealed, or unused for
`RESUME_WITHIN`, the next action of the session starts a new run.
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

DIRECTORY_NAME = ".capseal"

RESUME_WITHIN = timedelta(hours=24)
"""A session does not continue a run that was unused for longer. The records of that run stay in the ledger."""

SLOTS_MAX = 256
"""The maximum number of servers for the same client in one workspace.

More mean that a program starts them in a loop.
"""

POINTER_MAX = 4096
"""The maximum size, in bytes, of a file that names one run."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}").fullmatch
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}-mcp-[0-9a-f]{8}").fullmatch


class Workspace:
    """The directory in which an agent works. Raises `BadInput` if it does not exist."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.abspath(root))
        if not self.root.is_dir():
            raise BadInput(f"the workspace {self.root} is not a directory", advice="name one with --workspace")

    @property
    def place(self) -> Path:
        """The path of `.capseal`. The directory may not exist yet."""
        return self.root / DIRECTORY_NAME

    @property
    def runs(self) -> Path:
        return self.place / "runs"

    def make_directory(self, name: str = "") -> Path:
        """Create a directory in `.capseal` if needed, and return it; without a name, `.capseal` itself.

        Raises `Refused` if it is a symbolic link, and `Unavailable` if it cannot be created.
        """
        path = self.place / name if name else self.place
        for directory in dict.fromkeys((self.place, path)):
            if directory.is_symlink():
                raise Refused(
                    "LINK", f"{directory} is a symbolic link", advice="remove it: Aver keeps its files in place"
                )
        try:
            make_directory(path)
        except OSError as error:
            raise Unavailable(f"cannot make {path}: {error.strerror}") from error
        return path

    def shared_session(self, name: str) -> SessionSlot:
        """Return the session with this name. Other servers may use it at the same time."""
        return SessionSlot(self.make_directory("sessions"), _file_name(name), lease=-1)

    def own(self, name: str) -> SessionSlot:
        """Return the first session that no other server owns: `name`, `name-2` and so on."""
        directory = self.make_directory("sessions")
        for number in range(1, SLOTS_MAX + 1):
            file = _file_name(name if number == 1 else f"{name}-{number}")
            path = directory / f"{file}.lease"
            try:
                handle = open_lock_file(path)
            except OSError as error:
                raise Unavailable(f"cannot use {path}: {error.strerror}") from error
            if try_lock(handle):
                return SessionSlot(directory, file, handle)
            os.close(handle)  # Another server holds the lock: it has this session.
        raise Refused("BUSY", f"{SLOTS_MAX} servers of {name} run in this workspace", advice="stop some of them")


class SessionSlot:
    """The name of one session, and its current run."""

    def __init__(self, directory: Path, name: str, lease: int) -> None:
        self.name = name
        self._path = directory / f"{name}.json"
        self._lease = lease

    def run(self, is_open: Callable[[str], bool]) -> str:
        """Return the current run of the session, or a new one if `is_open` is false for it.

        A file lock makes sure that all servers of a shared session get the same run.
        """
        with self._lock_file() as handle:
            found = _read_pointer(os.pread(handle, POINTER_MAX, 0))
            if found is not None and is_open(found):
                return found
            fresh = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-mcp-{clock.new_id()[:8]}"
            data = dump_document({"v": 1, "run_id": fresh})
            # In place, because the lock is on this file. A torn write reads as no run, and the next call starts one.
            os.ftruncate(handle, 0)
            os.pwrite(handle, data, 0)
            return fresh

    def last_run(self) -> str | None:
        """Return the last run of the session; None if it had none. This creates no files."""
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
        """Release the name for other servers."""
        if self._lease >= 0:
            # Closing the file releases its lock.
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
    """Return the run that the file names; None if the content is empty, incomplete or not written by Aver."""
    try:
        data = read_json(raw)
    except AverError:
        return None
    run_id = data.get("run_id") if isinstance(data, dict) else None
    return run_id if isinstance(run_id, str) and _RUN_ID(run_id) else None


def _file_name(name: str) -> str:
    """Return a safe file name: the name itself if it has only safe characters, otherwise its digest."""
    return name if _NAME(name) else "x-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
