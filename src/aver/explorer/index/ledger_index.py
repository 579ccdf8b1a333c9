"""The index as its callers use it: catch up with a ledger, and ask.

    index = LedgerIndex.in_home(home)
    index.catch_up(ledger, should_stop=stop.is_set)    # in a thread, again and again
    index.search(ledger, 'path:src/app.py outcome:failure').to_dict()

One object may be used by any number of threads. Each call opens the file anew, so a file that was deleted or replaced
meanwhile does no harm. `catch_up` of two threads or processes at once is carried out by one of them; the other returns
at once and says so.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from aver.errors import BadInput, Unavailable
from aver.explorer.index.answers import (
    LIMIT_MAX,
    CountsPage,
    Hit,
    SearchPage,
    SessionsPage,
    count_over_time,
    find_held,
    find_hits,
    list_sessions,
)
from aver.explorer.index.catch_up import CatchUp, in_scope
from aver.explorer.index.database import INDEX_NAME, IndexFile, Scope, find_scope
from aver.explorer.index.progress import IndexProgress
from aver.explorer.index.query import SearchQuery, parse_query
from aver.ledger import Ledger
from aver.sessions.sessions import ChainEdges

ANSWER_SECONDS = 5.0
"""After this time SQLite gives up a question, so that one hard search cannot keep a server busy."""

ANSWER_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock: well below a millisecond."""

OUTDATED = "the ledger is not the one that was indexed, or records of it are gone; the index is made anew"
BUSY = "another process is writing the index"


class LedgerIndex:
    """The index of one home, or of one thing that is only read."""

    def __init__(self, path: Path) -> None:
        self.file = IndexFile(path)
        self._edges: dict[tuple[str, str, str], ChainEdges] = {}
        self._recounts: dict[tuple[str, str, str], dict[str, tuple[float, float]]] = {}
        self._mutex = threading.Lock()
        self._directory: TemporaryDirectory[str] | None = None

    @classmethod
    def in_home(cls, home: Path) -> LedgerIndex:
        """The index of a home. Nothing is opened or made yet."""
        return cls(home / INDEX_NAME)

    @classmethod
    def temporary(cls) -> LedgerIndex:
        """An index for a bundle or `.cap` file, which must leave nothing in a home. `close` removes it."""
        try:
            directory = TemporaryDirectory(prefix="aver-index-")
        except OSError as error:
            raise Unavailable(f"cannot make a temporary directory: {error.strerror}", advice="set TMPDIR") from error
        index = cls(Path(directory.name) / INDEX_NAME)
        index._directory = directory
        return index

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file of a temporary index."""
        if self._directory is not None:
            self._directory.cleanup()

    def rebuild(self) -> None:
        """Delete the file; the next `catch_up` makes it anew. Of a file that is damaged, this is the cure."""
        self.file.remove()
        self._edges.clear()
        self._recounts.clear()

    def catch_up(
        self,
        ledger: Ledger,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        report: Callable[[int, int], None] = lambda done, total: None,
        is_patient: bool = True,
    ) -> IndexProgress:
        """Read what is new in a ledger, and say how far the index is. It is safe to stop or kill at any moment.

        `should_stop` is asked before each slice of some hundred records. `report` gets the records that are done and
        those of the ledger. With `is_patient`, figures of a long session that still grows are counted now and then.
        Raises `IndexUnavailable` for a fault of the index, and other errors for a ledger that cannot be reached.
        """
        key = scope_key(ledger)
        note = BUSY
        unreadable: tuple[str, ...] = ()
        if self._mutex.acquire(blocking=False):
            try:
                with self.file.write() as connection:
                    if connection is not None:
                        run = CatchUp(
                            connection,
                            ledger,
                            key,
                            self._edges.setdefault(key, ChainEdges()),
                            self._recounts.setdefault(key, {}),
                            should_stop,
                            report,
                            is_patient,
                        )
                        note = run.run()
                        unreadable = tuple(run.unreadable)
            finally:
                self._mutex.release()
        return self.progress(ledger, note=note, unreadable=unreadable)

    def progress(self, ledger: Ledger, *, note: str = "", unreadable: tuple[str, ...] = ()) -> IndexProgress:
        """How much of a ledger is indexed."""
        with self._ask(ledger) as (connection, scope):
            return _measure(ledger, connection, scope, note=note, unreadable=unreadable)

    def search(
        self, ledger: Ledger, query: str | SearchQuery, *, cursor: str | None = None, limit: int = 50
    ) -> SearchPage:
        """Places where a query may hold, the newest first. Raises `BadInput` for a wrong query, cursor or limit."""
        parsed = parse_query(query) if isinstance(query, str) else query
        with self._ask(ledger, limit) as (connection, scope):
            hits: tuple[Hit, ...] = ()
            following = None
            if connection is not None and scope is not None:
                hits, following = find_hits(connection, scope, parsed, cursor=cursor, limit=limit)
            indexed = _measure(ledger, connection, scope)
            return SearchPage(query=parsed, hits=hits, next=following, indexed=indexed)

    def sessions(
        self,
        ledger: Ledger,
        *,
        tool: str | None = None,
        workspace: str | None = None,
        since: str | None = None,
        until: str | None = None,
        query: str | None = None,
        sort: str = "latest",
        descending: bool = True,
        cursor: str | None = None,
        limit: int = 100,
    ) -> SessionsPage:
        """Sessions with their figures. `since` and `until` are compared with the latest step of a session.

        With `query`, only sessions in which a search for it has a hit.
        """
        parsed = parse_query(query) if query is not None else None
        with self._ask(ledger, limit) as (connection, scope):
            sessions: tuple[dict[str, Any], ...] = ()
            found, following = 0, None
            if connection is not None and scope is not None:
                sessions, found, following = list_sessions(
                    connection,
                    scope,
                    tool=tool,
                    workspace=workspace,
                    since=since,
                    until=until,
                    query=parsed,
                    sort=sort,
                    descending=descending,
                    cursor=cursor,
                    limit=limit,
                )
            indexed = _measure(ledger, connection, scope)
            return SessionsPage(sessions=sessions, found=found, next=following, indexed=indexed)

    def counts(
        self,
        ledger: Ledger,
        *,
        by: str = "day",
        since: str | None = None,
        until: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> CountsPage:
        """Activity, outcomes, denials, tokens and cost by hour, day or month of UTC, the newest first."""
        with self._ask(ledger, limit) as (connection, scope):
            counts: tuple[dict[str, Any], ...] = ()
            held: tuple[dict[str, Any], ...] = ()
            undated, following = None, None
            if connection is not None and scope is not None:
                held = find_held(connection, scope)
                counts, undated, following = count_over_time(
                    connection, scope, by=by, since=since, until=until, cursor=cursor, limit=limit
                )
            indexed = _measure(ledger, connection, scope)
            return CountsPage(by=by, counts=counts, undated=undated, held=held, next=following, indexed=indexed)

    @contextmanager
    def _ask(self, ledger: Ledger, limit: int = 1) -> Iterator[tuple[sqlite3.Connection | None, Scope | None]]:
        """Give a connection for one question, which may take `ANSWER_SECONDS`, and the scope of the ledger."""
        if not 1 <= limit <= LIMIT_MAX:
            raise BadInput(f"a page has 1 to {LIMIT_MAX} entries, not {limit}")
        with self.file.read() as connection:
            if connection is None:
                yield None, None
                return
            until = time.monotonic() + ANSWER_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > until, ANSWER_STEPS)
            yield connection, find_scope(connection, scope_key(ledger))


def scope_key(ledger: Ledger) -> tuple[str, str, str]:
    """Tells ledgers, tenants and copies of one ledger apart."""
    return ledger.id, ledger.tenant, ledger.store.name


def _measure(
    ledger: Ledger,
    connection: sqlite3.Connection | None,
    scope: Scope | None,
    *,
    note: str = "",
    unreadable: tuple[str, ...] = (),
) -> IndexProgress:
    """How much of a ledger is indexed."""
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant)}
    total = sum(row.count for row in rows.values())
    if connection is None or scope is None:
        return IndexProgress(records=0, of_records=total, note=note or ("" if total == 0 else "nothing is indexed yet"))
    known = connection.execute(in_scope("SELECT name, count, cut FROM {chains}", scope)).fetchall()
    if any(name not in rows or count > rows[name].count for name, count, _ in known):
        note = note or OUTDATED
    done = sum(min(count, rows[name].count) for name, count, _ in known if name in rows)
    counted = [json.loads(chains) for (chains,) in connection.execute(in_scope("SELECT chains FROM {sessions}", scope))]
    current = sum(all(name in rows and rows[name].count == n for name, n in chains.items()) for chains in counted)
    return IndexProgress(
        records=done,
        of_records=total,
        sessions=current,
        of_sessions=len(counted),
        cut=sum(cut for _, _, cut in known),
        unreadable=unreadable,
        note=note,
    )
