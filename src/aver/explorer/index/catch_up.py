"""Reads the new records of a ledger into the index, slice by slice, from where it stands.

1. Each chain that the index knows is held to the ledger: it must be there, as long or longer, and the stored hash at
   the place where the index stopped must be the same. If one does not fit, everything about this ledger is made anew.
2. Sessions come first, the latest of them first, so that a large ledger soon answers about today. A session whose
   records changed is counted again by `aver.sessions`, which reads it once for its figures and for its texts.
3. Then come all other chains.

Each slice is one transaction, which stores the texts of some hundred records and how far the chain was read. So a
process that is stopped or killed loses at most one slice, and the next one goes on there.

Counting reads a session from its beginning. So a long session that grows all the time is counted only now and then:
after `RECOUNT_PAUSE` times as long as the last count took. Its texts are always read at once.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field
from datetime import datetime

from aver.errors import AverError, is_outage
from aver.explorer.index.database import Scope, find_scope, make_scope
from aver.explorer.index.texts import read_texts
from aver.fast_dataclass import dataclass
from aver.ingest.foreign_json import to_utc
from aver.ledger import Ledger
from aver.ledger.stores.protocol import ChainRow, RecordRow
from aver.log import debug, log_time
from aver.sessions.sessions import (
    HOUR_LENGTH,
    ChainEdges,
    SessionChains,
    SessionCount,
    count_session,
    find_sessions,
)
from aver.sessions.step import Step, read_step

SLICE = 500
"""Records in one transaction. A reader of the index never sees half of one, and a stop waits for one at most."""

SLICE_BYTES = 4 * 1024 * 1024
"""Bytes of records after which a slice ends: all of it is in memory at once."""

RECOUNT_PAUSE = 50
"""A session is counted again after this many times the duration of its last count: counting takes 2 % of a core."""

QUICK_COUNT = 0.02
"""Seconds. A session that is counted in less is counted whenever it changed."""

NUMBER_BITS = 24
"""Bits of a row number for the running number; the seconds stand above. Of two records of the same second whose
running numbers are a multiple of 2^24 apart, only the first is found."""


class CatchUpStopped(Exception):
    """The caller asked to stop. Never leaves this package."""


@dataclass(slots=True)
class IndexedChain:
    """How far a chain was read."""

    number: int
    count: int = 0
    hash: str | None = None
    cut: int = 0
    last_asked: str = ""


@dataclass(slots=True)
class CatchUp:
    """One run over one ledger. `recounts` keeps between runs when each session was counted, and how long it took."""

    connection: sqlite3.Connection
    ledger: Ledger
    key: tuple[str, str, str]
    edges: ChainEdges
    recounts: dict[str, tuple[float, float]]
    should_stop: Callable[[], bool]
    report: Callable[[int, int], None]
    is_patient: bool
    """Whether long sessions may wait for their count; False counts every session now."""
    scope: Scope = field(init=False)
    chains: dict[str, IndexedChain] = field(default_factory=dict)
    rows: dict[str, ChainRow] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    number: int = 0
    postponed: int = 0

    def run(self) -> str:
        """Catch up. Returns why it ended early; empty if everything was read."""
        rows = self.ledger.store.chains(self.ledger.tenant)
        self.rows = {row.name: row for row in rows}
        state = json.dumps([(row.name, row.count, row.head) for row in rows])
        digest = hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
        if self._fit_scope() == digest:
            return ""
        try:
            with log_time("explorer", "caught up"):
                for session in self._find_sessions():
                    self._update_session(session)
                for row in rows:
                    self._read_rest(row)
        except CatchUpStopped:
            return "stopped before the end; the next run goes on"
        if not self.unreadable and not self.postponed:
            with self._transaction():
                self._execute("UPDATE scopes SET settled = ? WHERE scope = ?", digest, self.scope.number)
        return ""

    # --- 1. does it fit?

    def _fit_scope(self) -> str:
        """Find what is indexed, or begin anew where it does not fit. Returns the state that was read completely."""
        scope = find_scope(self.connection, self.key)
        if scope is not None:
            self.scope = scope
            stored = self._execute("SELECT name, chain, count, hash, cut FROM {chains}").fetchall()
            self.chains = {name: IndexedChain(*values) for name, *values in stored}
            misfit = next((name for name, known in self.chains.items() if not self._fits(name, known)), None)
            if misfit is None:
                [self.number, settled] = self._execute(
                    "SELECT number, settled FROM scopes WHERE scope = ?", scope.number
                ).fetchone()
                return str(settled)
            debug("explorer", "chain %s does not fit the index, which is made anew", misfit)
        with self._transaction():
            self.scope = make_scope(self.connection, self.key)
        self.chains = {}
        self.edges.forget()
        return ""

    def _fits(self, name: str, known: IndexedChain) -> bool:
        row = self.rows.get(name)
        if row is None or row.count < known.count:
            return False
        if known.count == 0 or (row.count == known.count and row.head == known.hash):
            return True
        return self.ledger.store.hash_at(row, known.count - 1) == known.hash

    # --- 2. sessions

    def _find_sessions(self) -> list[SessionChains]:
        try:
            found = find_sessions(self.ledger, edges=self.edges)
        except AverError as error:
            if is_outage(error):
                raise
            debug("explorer", "the sessions cannot be listed: %s", error)
            return []
        names = {session_name(session) for session in found}
        gone = [name for (name,) in self._execute("SELECT name FROM {sessions}") if name not in names]
        if gone:
            with self._transaction():
                for name in gone:
                    self._execute(
                        "DELETE FROM {hours} WHERE session = (SELECT session FROM {sessions} WHERE name = ?)", name
                    )
                    self._execute("DELETE FROM {sessions} WHERE name = ?", name)
        return found

    def _update_session(self, session: SessionChains) -> None:
        """Read the new records of a session, and count it if it changed."""
        name = session_name(session)
        counts = {chain: self.rows[chain].count for chain in session.names if chain in self.rows}
        stored = self._execute("SELECT chains FROM {sessions} WHERE name = ?", name).fetchone()
        if stored is not None and json.loads(stored[0]) == counts:
            return
        at, took = self.recounts.get(name, (0.0, 0.0))
        if self.is_patient and took > QUICK_COUNT and time.monotonic() < at + RECOUNT_PAUSE * took:
            self.postponed += 1
            for chain in counts:
                self._read_rest(self.rows[chain])
            return
        started = time.monotonic()
        try:
            count = count_session(self.ledger, session, self._read_steps)
        except AverError as error:
            if is_outage(error):
                raise
            debug("explorer", "session %s cannot be counted: %s", name, error)
            self.unreadable.append(name)
            return
        if session.decisions in self.rows:
            self._read_rest(self.rows[session.decisions])
        self._store_session(session, count, counts)
        self.recounts[name] = time.monotonic(), time.monotonic() - started

    def _store_session(self, session: SessionChains, count: SessionCount, counts: dict[str, int]) -> None:
        totals = count.totals
        figures = {**asdict(totals), "highest_risk": count.highest_risk, "workspace": count.workspace}
        tokens = None if totals.tokens_in is None and totals.tokens_out is None else 0
        if tokens is not None:
            tokens = (totals.tokens_in or 0) + (totals.tokens_out or 0)
        with self._transaction():
            name = session_name(session)
            self._execute("DELETE FROM {hours} WHERE session = (SELECT session FROM {sessions} WHERE name = ?)", name)
            self._execute("DELETE FROM {sessions} WHERE name = ?", name)
            number = self._execute(
                "INSERT INTO {sessions} (name, tool, title, started, latest, actions, edits, tokens, cost, denials,"
                " risk, workspace, chains, figures) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(name, _to_text(totals.tool), _to_text(totals.title), totals.started or "", session.latest),
                *(totals.actions, totals.edits, UNKNOWN if tokens is None else min(tokens, 2**62)),
                *(UNKNOWN if totals.cost_usd is None else totals.cost_usd, totals.denials),
                *(UNKNOWN if count.highest_risk is None else count.highest_risk, _to_text(count.workspace)),
                *(json.dumps(counts), json.dumps(figures)),
            ).lastrowid
            for hour, found in count.hours.items():
                values = (min(value, 2**62) if isinstance(value, int) else value for value in found)
                self._execute("INSERT INTO {hours} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", number, hour, *values)
            for chain in counts:
                self._execute("UPDATE {chains} SET session = ? WHERE name = ?", number, chain)

    def _read_steps(self, chain: str) -> Iterator[Step]:
        """All steps of a chain, for its figures. Those that are new become part of the index on the way."""
        row = self.rows[chain]
        for end, batch in self._read_slices(row, 0):
            steps = [read_step(stored.sealed) for stored in batch]
            known = self.chains.get(chain)
            if known is None or end > known.count:
                new = [
                    (stored, step)
                    for stored, step in zip(batch, steps, strict=True)
                    if known is None or stored.sequence >= known.count
                ]
                self._store_slice(row, end, new)
            yield from steps

    # --- 3. records

    def _read_rest(self, row: ChainRow) -> None:
        """Read the records of a chain that the index does not have yet."""
        known = self.chains.get(row.name)
        if row.name in self.unreadable or (known is not None and known.count >= row.count):
            return
        try:
            for end, batch in self._read_slices(row, 0 if known is None else known.count):
                self._store_slice(row, end, [(stored, read_step(stored.sealed)) for stored in batch])
        except AverError as error:
            if is_outage(error):
                raise
            debug("explorer", "chain %s cannot be read: %s", row.name, error)
            self.unreadable.append(row.name)

    def _read_slices(self, row: ChainRow, start: int) -> Iterator[tuple[int, list[RecordRow]]]:
        """Some records of a chain at a time, each time with the place where the next ones begin."""
        while start < row.count:
            if self.should_stop():
                raise CatchUpStopped
            end = min(start + SLICE, row.count)
            batch, size = [], 0
            with self.ledger.store.read_rows(row, start, end) as rows:
                for stored in rows:
                    if type(stored.sequence) is not int:
                        continue  # A tampered file may have anything here; the verifier reports it.
                    stored.sealed.chain = row.name
                    batch.append(stored)
                    size += len(stored.sealed.canonical)
                    if size > SLICE_BYTES:
                        end = stored.sequence + 1
                        break
            # A forged head row may claim any number of records: skip a gap in one query, not slice by slice.
            found = end if batch else self.ledger.store.next_sequence(row, end)
            start = row.count if found is None else min(found, row.count)
            yield start, batch

    def _store_slice(self, row: ChainRow, end: int, batch: list[tuple[RecordRow, Step]]) -> None:
        """Store the texts of some records, and how far the chain was read, in one transaction."""
        with self._transaction():
            known = self.chains.get(row.name)
            if known is None:
                number = self._execute("INSERT INTO {chains} (name, count, cut) VALUES (?, 0, 0)", row.name).lastrowid
                known = self.chains[row.name] = IndexedChain(number or 0)
            records, texts, activity = [], [], Counter[tuple[str, str, str]]()
            for stored, step in batch:
                found = read_texts(step, step.kind, self.ledger.blob, repeats_prompt=step.asked == known.last_asked)
                known.last_asked = step.asked or known.last_asked
                known.cut += found.is_cut
                at = step.at or to_utc(step.signed_at)
                seconds = 0 if at is None else max(int(datetime.fromisoformat(at).timestamp()), 0)
                record = seconds << NUMBER_BITS | self.number % (1 << NUMBER_BITS)
                self.number += 1
                kind = _to_text(step.kind or step.what)
                outcome = _to_text(step.status or (step.addition.status if step.addition else ""))
                place = (record, known.number, stored.sequence)
                records.append((*place, _to_text(step.tool_name), _to_text(step.call), kind, outcome))
                texts.append((record, found.text, found.paths))
                activity[(at or "")[:HOUR_LENGTH], kind, outcome] += 1
            # FTS5 begins a new segment whenever a row number is below the one before.
            records.sort()
            texts.sort()
            self._execute_many("INSERT OR IGNORE INTO {records} VALUES (?, ?, ?, ?, ?, ?, ?)", records)
            self._execute_many("INSERT INTO {texts} (rowid, text, paths) VALUES (?, ?, ?)", texts)
            self._execute_many(
                "INSERT INTO {activity} VALUES (?, ?, ?, ?)"
                " ON CONFLICT (hour, kind, outcome) DO UPDATE SET records = records + excluded.records",
                [(*place, count) for place, count in activity.items()],
            )
            known.count = end
            is_last = bool(batch) and batch[-1][0].sequence == end - 1
            known.hash = batch[-1][0].sealed.hash if is_last else self.ledger.store.hash_at(row, end - 1)
            self._execute(
                "UPDATE {chains} SET count = ?, hash = ?, cut = ? WHERE chain = ?",
                *(known.count, known.hash, known.cut, known.number),
            )
            self._execute("UPDATE scopes SET number = ? WHERE scope = ?", self.number, self.scope.number)
        done = sum(min(chain.count, self.rows[name].count) for name, chain in self.chains.items())
        self.report(done, sum(each.count for each in self.rows.values()))

    # --- SQL

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite may have rolled back by itself, after a full disk.
                self.connection.execute("ROLLBACK")
            raise

    def _execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        return self.connection.execute(in_scope(sql, self.scope), values)

    def _execute_many(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.connection.executemany(in_scope(sql, self.scope), rows)


UNKNOWN = -1
"""Stands for an unknown number in the columns by which sessions are sorted: below every known one."""


def session_name(session: SessionChains) -> str:
    """The name of a session in the index: its own chain, or the first that it has."""
    return session.names[0]


def in_scope(sql: str, scope: Scope) -> str:
    """The statement with `{records}` and so on replaced by the tables of a scope."""
    tables = ("chains", "records", "texts", "sessions", "hours", "activity")
    return sql.format(**{name: scope.table(name) for name in tables})


def _to_text(text: str) -> str:
    """A text that SQLite takes: without half characters and NUL."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
