"""Which executors live: each holds the lock on a file of its own, `AVER_HOME/gateway/run/<instance>.lock`.

The kernel drops the lock when the process ends, however it ends. So a file whose lock is free belongs to an executor
that has died, and the next executor closes the acts that it left open.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aver import clock
from aver.capsule.json_document import check_object, parse_document
from aver.capsule.sealed import Sealed
from aver.config import ensure_home
from aver.errors import AverError, IntegrityError, Unavailable
from aver.files.atomic import make_directory
from aver.files.locks import is_same_file, lock, open_lock_file, try_lock
from aver.files.regular import read_private_file
from aver.gate.own_records import OwnRecords
from aver.gateway.act_records import COMMIT_KIND, outcome_key
from aver.ledger import Ledger
from aver.log import debug

LOCK_SUFFIX = ".lock"
SOCKET_LOCK_SUFFIX = ".sock.lock"
"""The lock of a part that listens in the same directory."""

LOCK_FILE_MAX = 4096
"""Largest file of an executor's lock, in bytes. It holds four short texts."""


BEGIN_SECONDS = 10.0
"""How long an executor waits for the lock on its own new file. Another one that starts just then looks at the file, and
holds the lock for a moment."""


class ExecutorLife:
    """The lock file of one executor, `AVER_HOME/gateway/run/<instance>.lock`. It is made at the first mark."""

    def __init__(self, ledger: Ledger) -> None:
        self._directory = ledger.config.home / "gateway" / "run"
        self._ledger = ledger
        self._instance = clock.new_id()
        self._handle: int | None = None
        self._beginning = threading.Lock()
        self._path = self._directory / f"{self._instance}{LOCK_SUFFIX}"

    def describe(self) -> dict[str, str]:
        return {"instance": self._instance, "host": socket.gethostname()}

    def begin(self) -> None:
        """Take the lock, unless it is held. Raises `Unavailable`: without it, a crash could not be told."""
        with self._beginning:  # The first marks may come from several threads.
            if self._handle is None:
                self._handle = self._take_lock()

    def _take_lock(self) -> int:
        content = {
            "instance": self._instance,
            "started": clock.now(),
            "ledger": self._ledger.id,
            "tenant": self._ledger.tenant,
        }
        ensure_home(self._ledger.config.home)
        handle = None
        try:
            make_directory(self._directory)
            handle = open_lock_file(self._path)
            # Without the lock, the next executor would take this one for dead and close its acts.
            lock(handle, timeout=BEGIN_SECONDS)
            os.write(handle, json.dumps(content).encode())
            os.fsync(handle)
        except OSError as error:
            if handle is not None:
                with suppress(OSError):
                    self._path.unlink()
                os.close(handle)
            raise Unavailable(f"cannot hold {self._path}: {error.strerror}") from error
        return handle

    def end(self, *, is_done: bool = True) -> None:
        """Let go of the lock. The file goes, too, unless an act is left open: then the next executor finds it."""
        if self._handle is not None:
            if is_done:
                self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    def find_dead(self) -> list[DeadExecutor]:
        """Return the executors of this ledger whose lock nobody holds any more."""
        found = []
        for path in sorted(self._directory.glob(f"*{LOCK_SUFFIX}")) if self._directory.is_dir() else ():
            if path.name.endswith(SOCKET_LOCK_SUFFIX):
                continue  # A part that starts just now would find its socket taken.
            try:
                handle = open_lock_file(path)
            except OSError:
                continue
            if not try_lock(handle) or not is_same_file(path, handle):
                os.close(handle)
                continue
            content = _read_lock_file(path)
            if content is None or (content["ledger"], content["tenant"]) != (self._ledger.id, self._ledger.tenant):
                os.close(handle)
                continue
            found.append(DeadExecutor(path, handle, content["instance"], content["started"]))
        return found


class DeadExecutor(NamedTuple):
    """An executor that died. Its lock is held while its acts are closed, so that only one other does this."""

    path: Path
    handle: int
    instance: str
    started: str

    def open_marks(self, ledger: Ledger) -> list[Sealed]:
        """Return its marks without an outcome."""
        found, own = [], OwnRecords(ledger)
        for record in ledger.find(kind=COMMIT_KIND, since=self.started):
            try:
                result = own.require(record).to_dict()["outcome"]["result"]
            except IntegrityError as error:
                # Imported, or not by our keys: it is no mark of an executor here. The verdict judges it.
                debug("gateway", "a COMMIT is no mark of ours: %s", error.message)
                continue
            if result["executor"]["instance"] != self.instance:
                continue
            if ledger.get(outcome_key(str(result["action_id"]))) is None:
                found.append(record)
        return found

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.handle)


def _read_lock_file(path: Path) -> dict[str, str] | None:
    """Read the file of an executor's lock; None where it is not whole: the executor died before its first mark."""
    try:
        raw = read_private_file(path, limit=LOCK_FILE_MAX)
        found = parse_document(raw or b"", str(path), limit=LOCK_FILE_MAX)
        return check_object(found, str(path), frozenset({"instance", "started", "ledger", "tenant"}))
    except AverError:
        return None
