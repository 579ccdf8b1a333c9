"""The index's own SQLite file: its tables, its version, and its faults.

The file holds, for each ledger, tenant and store (a *scope*), tables with the scope's number in their names:

    chains_1     how far each chain was read: its name, the count, and the stored hash of the last record read
    records_1    the place of each record, and what `tool:`, `kind:` and `outcome:` compare
    texts_1      the full text, an FTS5 table without content: it finds rows and keeps no text to show
    sessions_1   the figures of each session
    hours_1      the figures of each session by hour
    activity_1   the number of records by hour, kind and outcome
    deeds_1      what the records about one call say of it, where they say that it was held back or done: bits of `DEED`

Separate tables keep scopes apart: no query reads two of them. A row number is made from the time of a record and a
running number, `seconds << 24 | number`. So the newest hits come first without sorting.

Only one process writes at a time, under a lock beside the file. Readers do not wait for it. Every fault of the file is
an `IndexUnavailable`: the ledger, and everything that does not search, work without it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aver.clock import new_id
from aver.config import ensure_home
from aver.errors import AverError, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.locks import is_same_file, open_lock_file, try_lock
from aver.files.regular import NotRegularFile, open_descriptor
from aver.log import debug

INDEX_NAME = "index.db"
"""The file in `AVER_HOME`."""

APPLICATION_ID = 0x61766572
"""Marks the file as Aver's index, for SQLite and for `file`."""

VERSION = 4
"""The version of the tables and of their texts. A file with an older one is made anew; a newer one is left alone."""

BUSY_SECONDS = 2.0
"""How long a statement waits for another program that has locked the file. The reader of a page waits no longer."""

CACHE_KIB = 16 * 1024
"""Page cache of the connection that writes: FTS5 merges its segments in memory as far as it can."""

FTS_COLUMNS = "text, paths, content='', columnsize=0"
"""The full-text table. Without content and sizes it takes half the space; hits are read from the ledger anyway."""

FTS_SEGMENTS = 12
"""Segments of one level that FTS5 lets stand before it merges them. With its own 4, merging is a third of all work."""

CHECKPOINT_PAGES = 4_000
"""Pages of the write-ahead log before SQLite copies them into the file. Merging writes one page several times."""

SCOPE_TABLES = ("chains", "records", "texts", "sessions", "hours", "activity", "deeds")

ADVICE = "the ledger is not concerned; aver search --rebuild makes the index anew"


class IndexUnavailable(Unavailable):
    """The index cannot be read or written. The ledger is not concerned."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One ledger, tenant and store in the file. `generation` changes whenever the scope is made anew."""

    number: int
    generation: str

    def table(self, name: str) -> str:
        return f"{name}_{self.number}"


class IndexFile:
    """A file with an index. It keeps nothing open between two calls, so the file may be deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection that sees one state of the file; None if there is no file yet."""
        with self._turn_errors():
            if not self._is_there():
                yield None
                return
            connection = self._connect("ro")
            try:
                if not self._has_version(connection):
                    yield None
                    return
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection | None]:
        """Give the one connection that writes, with the file made if need be; None while another process writes."""
        with self._turn_errors():
            ensure_home(self.path.parent)
            self._is_there()  # Refuse a link or a directory before the lock is made beside it.
            lock = self._open_lock()
            try:
                if not try_lock(lock) or not is_same_file(self._lock_path, lock):
                    debug("explorer", "another process writes the index %s", self.path)
                    yield None
                    return
                connection = self._open_writer()
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        with suppress(sqlite3.Error):
                            connection.execute("ROLLBACK")
                    connection.close()
            finally:
                os.close(lock)

    def remove(self) -> None:
        """Delete the file, if it is a regular one. `IndexUnavailable` if another process writes it now."""
        with self._turn_errors():
            if not self._is_there():
                return
            lock = self._open_lock()
            try:
                if not try_lock(lock):
                    raise IndexUnavailable(f"another process writes the index {self.path}", advice="try again later")
                for suffix in ("", "-wal", "-shm", "-journal"):
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            finally:
                os.close(lock)

    @property
    def _lock_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.lock")

    def _open_lock(self) -> int:
        return open_lock_file(self._lock_path)

    def _is_there(self) -> bool:
        """Whether there is a file. Raises `IndexUnavailable` for a link, a directory, or the file of another user."""
        try:
            handle = open_descriptor(self.path, follow=False)
        except FileNotFoundError:
            return False
        try:
            status = os.fstat(handle)
            if status.st_uid != os.geteuid():
                raise IndexUnavailable(f"the index {self.path} belongs to another user", advice="move it away")
            if status.st_mode & 0o077:
                # It has copies of what records say, and nobody else may read it.
                os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        return True

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _has_version(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are ours. False for a file that is empty or older, which the next writer makes anew."""
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if application not in (0, APPLICATION_ID):
            raise IndexUnavailable(f"{self.path} is another program's database", advice="move it away")
        if version > VERSION:
            raise IndexUnavailable(
                f"the index {self.path} has version {version}, and this Aver reads version {VERSION}",
                advice="use the newer Aver, or make it anew with: aver search --rebuild",
            )
        return bool(version == VERSION and application == APPLICATION_ID)

    def _open_writer(self) -> sqlite3.Connection:
        if not self._is_there():
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        connection = self._connect("rw")
        try:
            if not self._has_version(connection):
                [objects] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                if objects:
                    debug("explorer", "the index %s is of an older version and is made anew", self.path)
                    connection.close()
                    for suffix in ("", "-wal", "-shm", "-journal"):
                        Path(f"{self.path}{suffix}").unlink(missing_ok=True)
                    return self._open_writer()
                _create_tables(connection)
            connection.execute("PRAGMA synchronous = NORMAL")  # After a power cut the index may be made anew.
            connection.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _turn_errors(self) -> Iterator[None]:
        """Raise every fault of the file as `IndexUnavailable`; leave Aver's other errors as they are."""
        try:
            yield
        except AverError:
            raise
        except NotRegularFile as error:
            raise IndexUnavailable(f"the index {self.path} is not a regular file", advice="move it away") from error
        except sqlite3.Error as error:
            raise index_error(self.path, error) from error
        except OSError as error:
            words = f"the index {self.path} cannot be used: {error.strerror}"
            raise IndexUnavailable(words, advice="check the path and that you may write there") from error
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, MemoryError) as error:
            # SQLite takes a value of any type in any column, so a damaged file may hold a text in place of a number.
            debug("explorer", "the index %s holds what Aver did not write: %r", self.path, error)
            raise IndexUnavailable(f"the index {self.path} is damaged", advice=ADVICE) from error


def index_error(path: Path, error: sqlite3.Error) -> IndexUnavailable:
    """A fault that SQLite reports, with the next step."""
    text = str(error)
    advice = {
        "full": "free some space; the ledger is not concerned",
        "locked": "another program has locked the file; close it, or delete the index",
        "interrupted": "narrow the search: more words, or since:7d",
        "readonly": "check the owner and mode of the file and its directory",
        "unable to open": "check the path and that you may write there",
    }
    debug("explorer", "the index %s failed: %s", path, text)
    if "interrupted" in text:
        return IndexUnavailable("the search took too long and was stopped", advice=advice["interrupted"])
    next_step = next((words for mark, words in advice.items() if mark in text), ADVICE)
    return IndexUnavailable(f"the index {path} cannot be used: {text}", advice=next_step)


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(
        "CREATE TABLE scopes (scope INTEGER PRIMARY KEY, ledger TEXT NOT NULL, tenant TEXT NOT NULL,"
        " store TEXT NOT NULL, generation TEXT NOT NULL, number INTEGER NOT NULL, settled TEXT NOT NULL,"
        " UNIQUE (ledger, tenant, store))"
    )
    connection.execute("COMMIT")


def find_scope(connection: sqlite3.Connection, key: tuple[str, str, str]) -> Scope | None:
    """The scope of a ledger, tenant and store; None if nothing of it was indexed."""
    row = connection.execute(
        "SELECT scope, generation FROM scopes WHERE ledger = ? AND tenant = ? AND store = ?", key
    ).fetchone()
    return None if row is None else Scope(int(row[0]), str(row[1]))


def make_scope(connection: sqlite3.Connection, key: tuple[str, str, str]) -> Scope:
    """Make an empty scope, in place of the one that is there. The caller has begun a transaction."""
    old = find_scope(connection, key)
    if old is not None:
        for name in SCOPE_TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {old.table(name)}")
        connection.execute("DELETE FROM scopes WHERE scope = ?", (old.number,))
    [number] = connection.execute("SELECT coalesce(max(scope), 0) + 1 FROM scopes").fetchone()
    scope = Scope(number, new_id())
    connection.execute("INSERT INTO scopes VALUES (?, ?, ?, ?, ?, 0, '')", (number, *key, scope.generation))
    columns = {
        "chains": "chain INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, count INTEGER NOT NULL, hash TEXT,"
        " cut INTEGER NOT NULL, session INTEGER",
        "records": "record INTEGER PRIMARY KEY, chain INTEGER NOT NULL, sequence INTEGER NOT NULL,"
        " tool TEXT NOT NULL, call TEXT NOT NULL, calls TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL",
        "sessions": "session INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tool TEXT NOT NULL,"
        " title TEXT NOT NULL, started TEXT NOT NULL, latest TEXT NOT NULL, actions INTEGER NOT NULL,"
        " edits INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL, denials INTEGER NOT NULL,"
        " risk REAL NOT NULL, workspace TEXT NOT NULL, chains TEXT NOT NULL, figures TEXT NOT NULL",
        "hours": "session INTEGER NOT NULL, hour TEXT NOT NULL, prompts INTEGER NOT NULL, actions INTEGER NOT NULL,"
        " edits INTEGER NOT NULL, failures INTEGER NOT NULL, denials INTEGER NOT NULL, tokens_in INTEGER NOT NULL,"
        " tokens_out INTEGER NOT NULL, cost_usd REAL NOT NULL, PRIMARY KEY (session, hour)",
        "activity": "hour TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL, records INTEGER NOT NULL,"
        " PRIMARY KEY (hour, kind, outcome)",
        "deeds": "deed TEXT PRIMARY KEY, hour TEXT NOT NULL, record INTEGER NOT NULL, state INTEGER NOT NULL",
    }
    for name, text in columns.items():
        connection.execute(f"CREATE TABLE {scope.table(name)} ({text})")
    texts = scope.table("texts")
    connection.execute(f"CREATE VIRTUAL TABLE {texts} USING fts5({FTS_COLUMNS})")
    connection.execute(f"INSERT INTO {texts} ({texts}, rank) VALUES ('automerge', {FTS_SEGMENTS})")
    return scope
