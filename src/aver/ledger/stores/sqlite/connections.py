"""The connections to a ledger's SQLite file, and the lock around every write to it.

A commit is durable: with a write-ahead log and `synchronous=FULL`, a write transaction ends after the log was synced.
There is one connection that writes, and any number that read. Every write transaction and every checkpoint of the log
runs under the one lock beside the file, and then under `BEGIN IMMEDIATE`. Only the writing connection checkpoints the
log: when it commits, and when it is closed, which also happens under the lock. Readers never wait for writers. Each
read is a short transaction on its own read-only connection.

`WriteLock` gives one writer at a time, over all threads and processes. SQLite's own locking is not enough. Versions
3.7.0 to 3.51.2 can lose acknowledged commits when two connections reset the write-ahead log at the same moment. Its
busy handler also backs off so far that one writer can starve. Under one `flock` neither can happen.

The lock has two files: the lock itself, and a gate in front of it. A writer takes the gate first and keeps it until it
has the lock. So writers queue one behind the other, and none is overtaken for long. For the length of a turn, the
writer that had the lock last may take it again without queueing. Its pages are still in memory, and so several writers
together are almost as fast as one alone.

The kernel drops a lock when its holder dies, so a file that was left behind means nothing. `flock` cannot wait for a
limited time, so a waiter polls, less often when the wait is long.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aver.capsule.blobs import BLOB_MAX
from aver.capsule.json_reader import ELEMENT_MAX
from aver.errors import IntegrityError, OutcomeUnknown, Unavailable
from aver.files.locks import Pace, find_lock_holder, is_same_file, open_lock_file, try_lock, unlock, wait_until
from aver.files.open_databases import FilePlace, note_closed, note_opened
from aver.ledger.foreign.seal_checks import check_companions
from aver.ledger.stores.forks import register_for_forks
from aver.ledger.stores.sqlite.schema import find_foreign_objects, refuse_journal, refuse_newer_version, to_unavailable
from aver.ledger.stores.sqlite.transaction import SqliteTransaction
from aver.log import debug

TURN = 0.002
"""Seconds in which a writer may take the lock again without queueing: enough for a handful of commits."""

PACE = Pace(pause=0.00005, longest=0.005, steady=0.1)
"""A commit takes some ten times as long as the first pause. After 0.1 seconds something unusual has the lock, and the
pauses grow, up to 5 ms."""


class WriteLock:
    """A lock file and the gate beside it. Only one thread of a process may use it at a time."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._files: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._turn_ends = 0.0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Take the lock for the length of the context. Raises `Unavailable` after the timeout."""
        # A signal may raise an exception at any line. Unlocking is harmless where nothing was locked.
        try:
            self._acquire()
            yield
        finally:
            if self._files is not None:
                unlock(self._files[1])

    def _acquire(self) -> None:
        while True:
            # A lock taken through a descriptor that was inherited over fork would be shared with the parent.
            if self._files is None or self._pid != os.getpid():
                self.close()
                path = self._path.with_suffix(".gate")
                try:
                    opened = open_lock_file(path)
                    path = self._path
                    self._files = opened, open_lock_file(path)
                except OSError as error:
                    raise Unavailable(
                        f"cannot open the ledger's lock {path}: {error.strerror}",
                        advice="check that you may write to its directory",
                    ) from error
                self._pid = os.getpid()
            gate, lock = self._files
            started = time.monotonic()
            if started > self._turn_ends or not try_lock(lock):
                # Not our turn, or another writer has the lock: queue at the gate, and keep it until we have the lock.
                try:
                    self._wait_for_lock(gate, started)
                    self._wait_for_lock(lock, started)
                finally:
                    unlock(gate)
                locked_at = time.monotonic()
                self._turn_ends = locked_at + TURN
                if locked_at - started > PACE.steady:
                    debug("ledger", "waited %.3f s for the lock %s", locked_at - started, self._path)
            if is_same_file(self._path, lock):
                return
            # The file was removed or replaced meanwhile: the next writer would lock another file.
            self.close()

    def close(self) -> None:
        """Close the files. In a child, this leaves the parent's lock alone: the parent still has them open."""
        if self._files is not None:
            for file in self._files:
                os.close(file)
        self._files = None

    def _wait_for_lock(self, file: int, started: float) -> None:
        # The gate and the lock together may take `timeout` seconds.
        left = started + self._timeout - time.monotonic()
        if not try_lock(file) and not wait_until(lambda: try_lock(file), left, PACE):
            debug("ledger", "gave up waiting for the lock %s", self._path)
            holder = find_lock_holder(file)
            who = "another process" if holder is None else f"process {holder}"
            raise Unavailable(
                f"{who} has held the ledger's lock {self._path} for {self._timeout:g} seconds",
                advice=f"see who has it open with: fuser {self._path}",
            )


LOG_PAGES = 1000
"""When the write-ahead log is this long, a commit also moves it into the main file."""

WRITER_CACHE_KIB = 16 * 1024
"""Page cache of the writing connection. It is large because inserts hit the indexes by hash and id at random."""

VALUE_MAX = BLOB_MAX + 1024 * 1024
"""Largest value that is written, in bytes: the largest blob and the rest of its row."""

ROW_MAX = 2 * ELEMENT_MAX
"""Largest value that is read, except blobs: the largest capsule and the rest of its row. A tampered file must not fill
the memory."""

LOCK_SUFFIX = ".lock"

_NUMBERS = itertools.count(1)

_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""The errors of `sqlite3`. It raises the second if its message about a damaged schema quotes bytes that are not text,
and the third for `SQLITE_NOMEM`."""

_FILE_ERRORS = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN))
"""Errors that may come from how SQLite has opened the file, and may go away with a new connection."""


class Connections:
    """One file, shared by any number of threads and processes."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        self._path = path
        # Resolve links: a process that opens the same file by another name must use the same lock file.
        self.file = path.resolve()
        self.is_closed = False
        self.lock = WriteLock(self.file.with_name(self.file.name + LOCK_SUFFIX), timeout=timeout)
        """The lock beside the file. Nothing may be written to the file without it."""
        self._timeout = timeout
        self._places: dict[str, FilePlace] = {}
        """Device and inode of the file and of its log, by suffix."""
        self._reset()
        register_for_forks(self)

    def _reset(self) -> None:
        self._mutex = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        # Entered by itself, not through the condition: a signal inside a method in Python would leave it locked.
        self._guard = threading.RLock()
        self._readers = threading.Condition(self._guard)
        self._idle: list[sqlite3.Connection] = []
        self._watching: tuple[int, sqlite3.Connection] | None = None
        """The connection of `data_version`, and its number: answers of two connections cannot be compared."""
        self._reading = 0

    def _connect(self, uri: str) -> sqlite3.Connection:
        if self.is_closed:
            raise Unavailable("the ledger was closed")
        try:
            connection = sqlite3.connect(
                uri, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_MAX)
            connection.execute("PRAGMA trusted_schema = OFF")
            # SQLite opens the file only at the first statement: raise its errors here, not in a caller.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except _SQLITE_ERRORS as error:
            raise to_unavailable(self._path, error) from error
        return connection

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees one state of the ledger until the context ends."""
        with self.read_once() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def read_once(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for one statement, which sees one state of the ledger by itself.

        The caller must let go of its cursor before the context ends: a cursor that waits keeps the old state.
        """
        with self._guard:
            # Counted first: a fork waits until this is 0.
            self._reading += 1
            connection = self._idle.pop() if self._idle else None
        reusable, finished = connection is not None, False
        try:
            self._check_place()
            if connection is None:
                base = self.file.as_uri()
                try:
                    connection, reusable = self._connect(f"{base}?mode=ro"), True
                except Unavailable:
                    # In a read-only directory SQLite cannot create the index of its log. If there is no log, the file
                    # can be read as immutable. Such a connection never sees later writes, so it is used once only.
                    if self.is_closed or check_companions(self.file) & {"-wal", "-journal"}:
                        raise
                    connection = self._connect(f"{base}?mode=ro&immutable=1")
            yield connection
            finished = True
        except _SQLITE_ERRORS as error:
            raise to_unavailable(self._path, error) from error
        finally:
            with self._guard:
                self._reading -= 1
                self._readers.notify_all()
                # After an error the connection may still be in its transaction: close it instead.
                if finished and reusable and not self.is_closed and connection is not None:
                    self._idle.append(connection)
                elif connection is not None:
                    connection.close()

    def data_version(self) -> str:
        """A value that changes with every commit of another connection, in this process or in any other."""
        with self._guard:
            self._reading += 1  # A fork waits until this is 0.
            watching, self._watching = self._watching, None
        finished = False
        try:
            self._check_place()
            if watching is None:
                try:
                    watching = next(_NUMBERS), self._connect(f"{self.file.as_uri()}?mode=ro")
                except Unavailable:
                    # As in `read_once`. Without a log, every change is one of the file itself.
                    if self.is_closed or check_companions(self.file) & {"-wal", "-journal"}:
                        raise
                    found = os.stat(self.file)
                    return f"file.{found.st_mtime_ns}.{found.st_size}"
            number, connection = watching
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            finished = True
            return f"{number}.{version}"
        except (*_SQLITE_ERRORS, OSError) as error:
            raise to_unavailable(self._path, error) from error
        finally:
            with self._guard:
                self._reading -= 1
                self._readers.notify_all()
                if finished and not self.is_closed and self._watching is None:
                    self._watching = watching
                elif watching is not None:
                    watching[1].close()

    @contextmanager
    def write_transaction(self) -> Iterator[SqliteTransaction]:
        """Open one durable transaction. If the context ends without an error, it is on disk."""
        # The mutex orders the threads of this process, the lock file all processes; SQLite's own lock comes last.
        committing = False
        with self._mutex, self.lock.hold():
            self._check_place()
            try:
                connection = self._writer or self._open_writer()
                if connection.in_transaction:  # A signal has ended the last one before it was rolled back.
                    connection.execute("ROLLBACK")
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    # Another process may have migrated the file since it was opened.
                    refuse_newer_version(self._path, connection.execute("PRAGMA user_version").fetchone()[0])
                    yield SqliteTransaction(connection)
                    # SQLite goes on writing to a file that was deleted or replaced; its records would be lost.
                    self._check_place(log=True)
                    committing = True
                    connection.execute("COMMIT")
                except BaseException:
                    # SQLite may have rolled back by itself: after a full disk, or INSERT OR ROLLBACK.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except _SQLITE_ERRORS as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _FILE_ERRORS:
                    # If SQLite once fails to open a file for writing, it opens it read-only, and keeps it so for this
                    # connection. Make the next transaction open a new one.
                    writer, self._writer = self._writer, None
                    if writer is not None:
                        with suppress(sqlite3.Error):
                            writer.close()
                if committing:
                    # The log may hold the whole commit though writing or syncing it failed. Nobody reads it now, but a
                    # recovery after a crash would.
                    raise OutcomeUnknown(f"the ledger {self._path} failed in a commit ({error})") from error
                raise to_unavailable(self._path, error) from error

    def _check_place(self, *, log: bool = False) -> None:
        """Refuse to go on if the ledger's file is no longer the one that was opened; with `log`, its log neither.

        The first call remembers both. A writer keeps the log open, so that SQLite does not remove it meanwhile.
        """
        for suffix in ("", "-wal") if log else ("",):
            try:
                found = os.stat(f"{self.file}{suffix}")
                place = found.st_dev, found.st_ino
            except FileNotFoundError:
                place = None
            except OSError as error:
                raise to_unavailable(self._path, error) from error
            if place is not None and suffix not in self._places:
                self._places[suffix] = place
                if not suffix:
                    note_opened(place)
            if place != self._places.get(suffix):
                change = "deleted or moved away" if place is None else "replaced by another file"
                raise Unavailable(
                    f"the ledger {self.file}{suffix} was {change} while this process had it open",
                    advice="nothing was recorded. Put the file back, or stop this process and start it again",
                )

    def _open_writer(self) -> sqlite3.Connection:
        """Open the writing connection; the caller has the lock. Raises `IntegrityError` for a tampered file."""
        if not os.access(self._path, os.W_OK):
            raise Unavailable(f"the ledger {self._path} may only be read", advice="check its owner and mode")
        refuse_journal(self.file)
        connection = self._connect(f"{self.file.as_uri()}?mode=rw")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX)
        # A trigger that Aver did not make could undo a record silently; an index, default or CHECK could run for ever.
        foreign = find_foreign_objects(connection)
        if foreign:
            connection.close()
            raise IntegrityError(
                "SCHEMA_INVALID",
                f"{self._path} was tampered with: the {foreign[0]} would run at every append",
                evidence=foreign,
                advice="nothing was recorded; restore the file from a copy",
            )
        connection.execute("PRAGMA journal_mode = WAL")  # A copy made by another program may not be in this mode.
        connection.execute("PRAGMA synchronous = FULL")  # Sync the log at every commit.
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        connection.execute(f"PRAGMA cache_size = {-WRITER_CACHE_KIB}")
        self._writer = connection
        # SQLite removes the log with the last connection, and has made a new one now.
        self._places.pop("-wal", None)
        return connection

    def close(self) -> None:
        """Close every connection. SQLite then moves the log into the main file; the lock keeps other writers out."""
        if self.is_closed:
            return
        # First of all, so that readers that are still busy close their connection instead of keeping it.
        self.is_closed = True
        with self._mutex:
            try:
                with self._guard:
                    self._close_readers()
                self._close_writer()
            finally:
                self.lock.close()
                if "" in self._places:
                    note_closed(self._places.pop(""))

    def _close_readers(self) -> None:
        """Close the connections that nobody uses now. The caller has the guard."""
        while self._idle:
            self._idle.pop().close()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching[1].close()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            # Closing the last connection resets the log: under the lock, like every write.
            with self.lock.hold():
                writer.close()

    def before_fork(self) -> None:
        """Wait for running transactions, then close every connection; see `forks`."""
        # Both locks stay taken until after the fork, so that no thread opens a connection meanwhile.
        self._mutex.acquire()
        self._guard.acquire()
        self._readers.wait_for(lambda: self._reading == 0, self._timeout)
        self._close_readers()
        if self._writer is not None and not self._writer.in_transaction:
            try:
                self._close_writer()
            except Unavailable:
                return  # Another process keeps the lock for longer than the timeout. Fork anyway.

    def after_fork_in_parent(self) -> None:
        self._guard.release()
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        self._reset()
        # The child would keep the parent's lock for as long as it lives, even after the parent has died.
        self.lock.close()
