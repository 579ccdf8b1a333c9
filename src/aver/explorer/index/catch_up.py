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
from functools import lru_cache

from aver.errors import AverError, is_outage
from aver.explorer.index.database import SCOPE_TABLES, Scope, find_scope, make_scope
from aver.explorer.index.texts import read_texts, to_stored
from aver.fast_dataclass import dataclass
from aver.gate.decision_record import DECISION_KIND, OBSERVE
from aver.ingest.foreign_json import to_utc
from aver.ledger import Ledger
from aver.ledger.stores.protocol import ChainRow, RecordRow
from aver.log import debug, log_time
from aver.sessions.figures import HOUR_LENGTH, SessionCount, count_session
from aver.sessions.sessions import ChainEdges, SessionChains, find_sessions
from aver.sessions.step import Step, read_step

SLICE = 500
"""Records in one transaction. A reader of the index never sees half of one, and a stop waits for one at most."""

SLICE_BYTES = 4 * 1024 * 1024
"""Bytes of records after which a slice ends: all of it is in memory at once."""

RECOUNT_PAUSE = 50
"""A session is counted again after this many times the duration of its last count: counting takes 2 % of a core."""

QUICK_COUNT = 0.05
"""Seconds. A session that is counted in less is counted whenever it changed."""

NUMBER_BITS = 24
"""Bits of a row number for the running number; the seconds stand above. Of two records of the same second whose
running numbers are a multiple of 2^24 apart, only the first is found."""

NAME_MAX = 200
"""Longest name of a tool, a kind or an outcome, in characters. A hostile record may have one of any length."""


OBSERVED = "observed"
"""Counts instead of the outcome of a decision that held nothing back: it is no denial."""


DENIED, ASKED, DONE = 1, 2, 4
"""What a record says of a deed: it was refused; an approval was asked for; it was let through, or took place."""

HELD = f"(state & {DENIED} OR state & {ASKED | DONE} = {ASKED})"
"""SQL: the deed was held back. A refusal stays one; a question is one until the deed was let through."""

_ASKING_KINDS = frozenset({"gate.decision", "approval.request", "act.preview"})
_DOING_KINDS = frozenset({"call", "action", "gate.decision", "gate.outcome", "approval.use", "act.outcome"})


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
    done: int = 0
    total: int = 0

    def run(self) -> str:
        """Catch up. Returns why it ended early; empty if everything was read."""
        rows = self.ledger.store.chains(self.ledger.tenant)
        self.rows = {row.name: row for row in rows}
        state = json.dumps([(row.name, row.count, row.head) for row in rows])
        digest = hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
        if self._fit_scope() == digest:
            return ""
        self.done = sum(chain.count for chain in self.chains.values())
        self.total = sum(row.count for row in rows)
        try:
            with log_time("explorer", "caught up"):
                for session in self._find_sessions():
                    self._update_session(session)
                for row in rows:
                    self._read_rest(row)
        except CatchUpStopped:
            return "stopped before the end; the next run goes on"
        if not self.unreadable and not self.postponed:
            with self.transaction():
                self.execute("UPDATE scopes SET settled = ? WHERE scope = ?", digest, self.scope.number)
        return ""

    # --- 1. does it fit?

    def _fit_scope(self) -> str:
        """Find what is indexed, or begin anew where it does not fit. Returns the state that was read completely."""
        scope = find_scope(self.connection, self.key)
        if scope is not None:
            self.scope = scope
            stored = self.execute("SELECT name, chain, count, hash, cut FROM {chains}").fetchall()
            self.chains = {name: IndexedChain(*values) for name, *values in stored}
            misfit = next((name for name, known in self.chains.items() if not self._fits(name, known)), None)
            if misfit is None:
                [self.number, settled] = self.execute(
                    "SELECT number, settled FROM scopes WHERE scope = ?", scope.number
                ).fetchone()
                return str(settled)
            debug("explorer", "chain %s does not fit the index, which is made anew", misfit)
        with self.transaction():
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
        gone = [name for (name,) in self.execute("SELECT name FROM {sessions}") if name not in names]
        if gone:
            with self.transaction():
                for name in gone:
                    self.execute(
                        "DELETE FROM {hours} WHERE session = (SELECT session FROM {sessions} WHERE name = ?)", name
                    )
                    self.execute("DELETE FROM {sessions} WHERE name = ?", name)
        return found

    def _update_session(self, session: SessionChains) -> None:
        """Read the new records of a session, and count it if it changed."""
        name = session_name(session)
        counts = {chain: self.rows[chain].count for chain in session.names if chain in self.rows}
        stored = self.execute("SELECT chains FROM {sessions} WHERE name = ?", name).fetchone()
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
        with self.transaction():
            name = session_name(session)
            self.execute("DELETE FROM {hours} WHERE session = (SELECT session FROM {sessions} WHERE name = ?)", name)
            self.execute("DELETE FROM {sessions} WHERE name = ?", name)
            number = self.execute(
                "INSERT INTO {sessions} (name, tool, title, started, latest, actions, edits, tokens, cost, denials,"
                " risk, workspace, chains, figures) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(name, to_stored(totals.tool), to_stored(totals.title), totals.started or "", session.latest),
                *(totals.actions, totals.edits, UNKNOWN if tokens is None else min(tokens, 2**62)),
                *(UNKNOWN if totals.cost_usd is None else totals.cost_usd, totals.denials),
                *(UNKNOWN if count.highest_risk is None else count.highest_risk, to_stored(count.workspace)),
                *(json.dumps(counts), json.dumps(figures)),
            ).lastrowid
            for hour, found in count.hours.items():
                values = (min(value, 2**62) if isinstance(value, int) else value for value in found)
                self.execute("INSERT INTO {hours} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", number, hour, *values)
            for chain in counts:
                self.execute("UPDATE {chains} SET session = ? WHERE name = ?", number, chain)

    def _read_steps(self, chain: str) -> Iterator[Step]:
        """All steps of a chain, for its figures. Those that are new become part of the index on the way."""
        row = self.rows[chain]
        known = self.chains.get(chain)
        read_before = 0 if known is None else known.count
        for end, batch in self._read_slices(row, 0):
            entries = SliceEntries(self, row)
            for stored in batch:
                # One step at a time: hundreds of parsed records at once would keep the garbage collector busy.
                step = read_step(stored.sealed)
                if stored.sequence >= read_before:
                    entries.add(stored, step)
                yield step
            if end > read_before:
                entries.store(end)

    # --- 3. records

    def _read_rest(self, row: ChainRow) -> None:
        """Read the records of a chain that the index does not have yet."""
        known = self.chains.get(row.name)
        if row.name in self.unreadable or (known is not None and known.count >= row.count):
            return
        try:
            for end, batch in self._read_slices(row, 0 if known is None else known.count):
                entries = SliceEntries(self, row)
                for stored in batch:
                    entries.add(stored, read_step(stored.sealed))
                entries.store(end)
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

    # --- SQL

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite may have rolled back by itself, after a full disk.
                self.connection.execute("ROLLBACK")
            raise

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        return self.connection.execute(in_scope(sql, self.scope), values)

    def execute_many(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.connection.executemany(in_scope(sql, self.scope), rows)


class SliceEntries:
    """The entries of one slice of a chain, before they are stored in one transaction."""

    def __init__(self, run: CatchUp, row: ChainRow) -> None:
        self._run = run
        self._row = row
        self._known = run.chains.get(row.name)
        self._last_asked = "" if self._known is None else self._known.last_asked
        self._records: list[tuple[int, int, str, str, str, str, str]] = []
        self._texts: list[tuple[int, str, str]] = []
        self._activity: Counter[tuple[str, str, str]] = Counter()
        self._deeds: list[tuple[str, str, int, int]] = []
        self._cut = 0
        self._last: RecordRow | None = None

    def add(self, stored: RecordRow, step: Step) -> None:
        """Take a record and its step."""
        run = self._run
        # Records of other tools repeat the prompt that they follow. A prompt that Aver sealed was given once more.
        repeats = not step.own and bool(step.asked) and step.asked == self._last_asked
        found = read_texts(step, run.ledger.blob, repeats_prompt=repeats)
        self._last_asked = step.asked or self._last_asked
        self._cut += found.is_cut
        self._last = stored
        at = step.at or to_utc(step.signed_at)
        seconds = 0 if at is None else max(int(datetime.fromisoformat(at).timestamp()), 0)
        record = seconds << NUMBER_BITS | run.number % (1 << NUMBER_BITS)
        run.number += 1
        kind = _to_stored_name((step.kind or step.what)[:NAME_MAX])
        outcome = _to_stored_name((step.status or (step.addition.status if step.addition else ""))[:NAME_MAX])
        tool = _to_stored_name(step.tool_name[:NAME_MAX])
        calls = [_to_stored_name(name[:NAME_MAX]) for call in step.calls if type(name := call.get("tool")) is str]
        # A condition such as `tool:Bash` has no line break, so a name with one is never asked for.
        others = "".join(f"\n{name}\n" for name in calls[1:] if "\n" not in name)
        self._records.append((record, stored.sequence, tool, calls[0] if calls else "", others, kind, outcome))
        self._texts.append((record, found.text, found.paths))
        counted = OBSERVED if _is_observed(step) else outcome
        hour = at[:HOUR_LENGTH] if at else ""
        self._activity[hour, kind, counted] += 1
        deed, state = to_stored(step.deed[:NAME_MAX]), _read_state(kind, counted)
        if state == DONE and deed:  # A deed counts at the hour in which it was last held back, so this has none.
            self._deeds.append((deed, "", 0, state))
        elif state and state != DONE:
            self._deeds.append((deed or f"{self._row.name}/{stored.sequence}", hour, record, state))

    def store(self, end: int) -> None:
        """Store the entries, and that the chain was read up to `end`, in one transaction."""
        run, row = self._run, self._row
        with run.transaction():
            known = self._known
            if known is None:
                number = run.execute("INSERT INTO {chains} (name, count, cut) VALUES (?, 0, 0)", row.name).lastrowid
                known = run.chains[row.name] = IndexedChain(number or 0)
            # FTS5 begins a new segment whenever a row number is below the one before.
            self._records.sort()
            self._texts.sort()
            run.execute_many(
                f"INSERT OR IGNORE INTO {{records}} (record, chain, sequence, tool, call, calls, kind, outcome)"
                f" VALUES (?, {known.number:d}, ?, ?, ?, ?, ?, ?)",
                self._records,
            )
            run.execute_many("INSERT INTO {texts} (rowid, text, paths) VALUES (?, ?, ?)", self._texts)
            run.execute_many(
                "INSERT INTO {activity} VALUES (?, ?, ?, ?)"
                " ON CONFLICT (hour, kind, outcome) DO UPDATE SET records = records + excluded.records",
                [(*place, count) for place, count in self._activity.items()],
            )
            run.execute_many(
                "INSERT INTO {deeds} VALUES (?, ?, ?, ?) ON CONFLICT (deed) DO UPDATE SET"
                " hour = max(hour, excluded.hour), record = max(record, excluded.record),"
                " state = state | excluded.state",
                self._deeds,
            )
            is_last = self._last is not None and self._last.sequence == end - 1
            last = self._last.sealed.hash if is_last and self._last else run.ledger.store.hash_at(row, end - 1)
            run.execute(
                "UPDATE {chains} SET count = ?, hash = ?, cut = ? WHERE chain = ?",
                *(end, last, known.cut + self._cut, known.number),
            )
            run.execute("UPDATE scopes SET number = ? WHERE scope = ?", run.number, run.scope.number)
        run.done += end - known.count
        known.count, known.hash, known.cut, known.last_asked = end, last, known.cut + self._cut, self._last_asked
        run.report(run.done, run.total)


def _is_observed(step: Step) -> bool:
    return step.kind == DECISION_KIND and isinstance(step.more, dict) and step.more.get("mode") == OBSERVE


def _read_state(kind: str, outcome: str) -> int:
    """What a record says of its deed; 0 for nothing. The twin of `stateOf` in the page's `activity.ts`."""
    if outcome == "blocked":  # That an operator ended a trace refused nothing.
        return 0 if kind == "protocol.session_aborted" else DENIED
    if outcome == "pending":
        return ASKED if kind in _ASKING_KINDS else 0
    return DONE if outcome in ("success", "failure") and kind in _DOING_KINDS else 0


_to_stored_name = lru_cache(maxsize=1024)(to_stored)
"""The same for names of tools, kinds and outcomes, of which a ledger has few."""

UNKNOWN = -1
"""Stands for an unknown number in the columns by which sessions are sorted: below every known one."""


def session_name(session: SessionChains) -> str:
    """The name of a session in the index: its own chain, or the first that it has."""
    return session.names[0]


def in_scope(sql: str, scope: Scope) -> str:
    """The statement with `{records}` and so on replaced by the tables of a scope."""
    return sql.format(**{name: scope.table(name) for name in SCOPE_TABLES})
