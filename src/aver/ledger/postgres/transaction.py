"""One write transaction in PostgreSQL: chains locked in one order, rows gathered and sent together.

Under READ COMMITTED every statement sees what was committed before it began; so what is looked up after a chain was
locked is up to date. Chains that exist are locked by their head rows, by name. Those that do not exist are locked
after them, by an advisory lock each; should one have come into being meanwhile, all is let go and locked anew, because
to wait for its row now, out of order, could make two writers wait for each other.

What is added is sent when the transaction commits: blobs by digest, then records, then head rows, in two round trips
for a lone record and three for many. So no other order of waiting arises between writers either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

import psycopg
from psycopg import Cursor
from psycopg.rows import TupleRow

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.errors import IntegrityError, Unavailable
from aver.ledger.postgres.pool import Connection
from aver.ledger.postgres.rows import CHAIN, COPIED, RECORD, chain_row, record_row, record_values
from aver.ledger.postgres.text import to_column
from aver.ledger.rows import ChainRow, Row
from aver.ledger.store import Expected
from aver.values import dataclass

__all__ = ["Ids", "PostgresTransaction", "Proof"]

GATHERED_MAX = 16 * 1024 * 1024
"""Bytes of rows that are gathered before they are sent, so that a large import does not fill the memory."""

DURABLE = ("on", "remote_apply")
"""Values of `synchronous_commit` under which a commit that was acknowledged survives a crash of the server."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_PREPARE = f"""
SELECT pg_backend_pid(), now(), current_setting('synchronous_standby_names') <> '',
       CASE WHEN current_setting('synchronous_commit') IN {DURABLE} THEN current_setting('synchronous_commit')
            ELSE set_config('synchronous_commit', 'on', true) END,
       set_config('lock_timeout', %s, true),
       set_config('statement_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true)
"""
_LOCK = f"SELECT {CHAIN} FROM aver.chains WHERE tenant = %s AND name = ANY (%s) ORDER BY name FOR UPDATE"
_THERE = "SELECT name FROM aver.chains WHERE tenant = %s AND name = ANY (%s)"
_LOCK_NEW = "SELECT pg_advisory_xact_lock(place) FROM unnest(%s::bigint[]) AS place"
_BY_KEYS = f"SELECT chains.name, {RECORD} FROM aver.records JOIN aver.chains USING (chain)"
_BY_KEYS += " WHERE records.tenant = %s AND key = ANY (%s)"
_TAKEN = "SELECT id FROM aver.records WHERE tenant = %s AND id = ANY (%s)"
_COPY = f"COPY aver.records ({COPIED}) FROM STDIN (FORMAT binary)"
_TYPES = ("int8", "int8", *("text",) * 7, "bytea", *("text",) * 5)
_INSERT = (
    f"INSERT INTO aver.records ({COPIED}) VALUES ({', '.join('%b' if each == 'bytea' else '%s' for each in _TYPES)})"
)
_BLOB = "INSERT INTO aver.blobs (tenant, digest, media, data) VALUES (%s, %s, %s, %b) ON CONFLICT DO NOTHING"
_ADVANCE = "UPDATE aver.chains SET count = %s, head = %s WHERE chain = %s"
Ids = Literal["looked up", "assumed new"]
"""How a transaction learns whether the ids of its drafts are free. Nearly all are made at random a moment before: to
assume so saves a statement while chains are locked, and the server refuses the whole transaction where it is not so."""

_KEY = 3
"""Where among a record's columns its idempotency key is."""


@dataclass(frozen=True, slots=True)
class Proof:
    """By what a transaction can be told to have been committed, when the answer to its commit was lost."""

    tenant: str
    chain: str
    sequence: int
    hash: str
    backend: int
    began: datetime


class PostgresTransaction:
    """Get one from `PostgresStore.writing`; it ends with that context. It raises PostgreSQL's own errors."""

    def __init__(self, connection: Connection, *, timeout: float, ids: Ids = "looked up") -> None:
        self._connection = connection
        self._timeout = timeout
        self._assumes_new_ids = ids == "assumed new"
        self._backend: tuple[int, datetime] | None = None
        self._has_standby = False
        self._first: tuple[ChainRow, int, str] | None = None
        self._chains: dict[tuple[str, str], ChainRow | None] = {}
        self._moved: dict[int, ChainRow] = {}
        self._forget_gathered()
        self.is_committing = False
        """Whether the commit may have been sent. From then on, only the server knows."""

    def _forget_gathered(self) -> None:
        self._records: list[tuple[Any, ...]] = []
        self._blobs: dict[tuple[str, str], Blob] = {}
        self._gathered = 0
        self._keys: dict[tuple[str, str], tuple[str, Row] | None] = {}
        self._ids: dict[tuple[str, str], bool] = {}

    # --- beginning and ending

    def begin(self, expected: Expected | None) -> None:
        """Begin, with the chains that are expected locked and their keys and ids looked up."""
        while not self._begun(expected):
            self._connection.execute("ROLLBACK")

    def _begun(self, expected: Expected | None) -> bool:
        limit = max(int(self._timeout * 1000), 1)
        limits = str(limit), str(2 * limit), str(2 * limit)
        run = self._connection.execute
        with self._connection.pipeline():
            run(_BEGIN)
            prepared = run(_PREPARE, limits, prepare=True)
            if expected is not None:
                tenant, names = expected.tenant, sorted(expected.chains)
                ids = [draft.id for draft in expected.drafts]
                keys = [*expected.keys, *(draft.key for draft in expected.drafts if draft.key is not None)]
                locked = run(_LOCK, (tenant, names), prepare=True, binary=True)
                known = run(_BY_KEYS, (tenant, keys), prepare=True, binary=True) if keys else None
                asks = bool(ids) and not self._assumes_new_ids
                taken = run(_TAKEN, (tenant, ids), prepare=True, binary=True) if asks else None
        backend, began, self._has_standby, durable, *_ = prepared.fetchone() or (0, None, False, None)
        if durable not in DURABLE:
            raise Unavailable(f"the server keeps synchronous_commit at {durable}, so that nothing would be durable")
        self._backend = backend, began
        self._chains = {}
        if expected is None:
            return True
        self._note_chains(tenant, names, locked.fetchall())
        self._note_keys(tenant, keys, [] if known is None else known.fetchall())
        self._note_ids(tenant, ids, [] if taken is None else taken.fetchall())
        new = [name for name in names if self._chains[tenant, name] is None]
        return not new or self._lock_new(tenant, new)

    def _lock_new(self, tenant: str, names: Sequence[str]) -> bool:
        """Lock chains that do not exist yet. False if one exists by now."""
        self._connection.execute(_LOCK_NEW, (sorted(_place(tenant, name) for name in names),))
        return self._connection.execute(_THERE, (tenant, list(names))).fetchone() is None

    def commit(self) -> None:
        """Send what was gathered, and commit."""
        alone = len(self._records) == 1 and not self._blobs
        if not alone:
            self._send()
        kept: list[tuple[int, Cursor[TupleRow]]] = []
        with self._connection.pipeline():
            if alone:
                kept.append((1, self._connection.execute(_INSERT, self._records[0], prepare=True)))
            for row in self._moved.values():
                moved = row.count, row.head, row.number
                kept.append((1, self._connection.execute(_ADVANCE, moved, prepare=True)))
            if self._has_standby:
                # A server that gives up waiting for its standby would call that done.
                self._connection.execute("SET LOCAL statement_timeout = 0")
            self.is_committing = True
            committed = self._connection.execute("COMMIT")
        if committed.statusmessage != "COMMIT":
            raise psycopg.InternalError(f"the server answered COMMIT with {committed.statusmessage}")
        for sent, cursor in kept:
            _see_that_all_was_kept(sent, cursor)

    def undo(self) -> None:
        """Roll back, or at least let the connection go."""
        try:
            if self._connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    @property
    def proof(self) -> Proof | None:
        """How to tell later whether this was committed; None if it added no record."""
        if self._first is None or self._backend is None:
            return None
        chain, sequence, digest = self._first
        return Proof(chain.tenant, chain.name, sequence, digest, *self._backend)

    def has(self, proof: Proof) -> bool:
        """Whether the record of a proof is there. Its chain must have been locked: then the other one has ended."""
        row = self._connection.execute(
            "SELECT 1 FROM aver.records JOIN aver.chains USING (chain)"
            " WHERE chains.tenant = %s AND chains.name = %s AND sequence = %s AND hash = %s",
            (proof.tenant, proof.chain, proof.sequence, proof.hash),
        )
        return row.fetchone() is not None

    # --- looking up

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        if (tenant, name) not in self._chains:
            found = self._connection.execute(_LOCK, (tenant, [name]), binary=True).fetchall()
            if not found:
                self._lock_new(tenant, [name])
                found = self._connection.execute(_LOCK, (tenant, [name]), binary=True).fetchall()
            self._note_chains(tenant, [name], found)
        row = self._chains[tenant, name]
        return None if row is None else replace(row)

    def chains(self, tenant: str) -> list[ChainRow]:
        query = f"SELECT {CHAIN} FROM aver.chains WHERE tenant = %s ORDER BY name"
        return [chain_row(row) for row in self._connection.execute(query, (tenant,), binary=True)]

    def by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, tuple[str, Row]]:
        unknown = [key for key in keys if (tenant, key) not in self._keys]
        if unknown:
            stored = [to_column(key) for key in unknown]
            found = self._connection.execute(_BY_KEYS, (tenant, stored), prepare=True, binary=True).fetchall()
            self._note_keys(tenant, unknown, found)
        known = {key: self._keys[tenant, key] for key in keys}
        return {key: found for key, found in known.items() if found is not None}

    def taken_ids(self, tenant: str, ids: Sequence[str]) -> set[str]:
        unknown = [each for each in ids if (tenant, each) not in self._ids]
        if unknown:
            stored = [to_column(each) for each in unknown]
            self._note_ids(
                tenant,
                unknown,
                self._connection.execute(_TAKEN, (tenant, stored), prepare=True, binary=True).fetchall(),
            )
        return {each for each in ids if self._ids[tenant, each]}

    def has_blob(self, tenant: str, digest: str) -> bool:
        if (tenant, digest) in self._blobs:
            return True
        query = "SELECT 1 FROM aver.blobs WHERE tenant = %s AND digest = %s"
        return self._connection.execute(query, (tenant, digest)).fetchone() is not None

    def _note_chains(self, tenant: str, names: Sequence[str], rows: Sequence[Any]) -> None:
        self._chains.update(dict.fromkeys(((tenant, name) for name in names), None))
        for row in map(chain_row, rows):
            self._chains[tenant, row.name] = row

    def _note_keys(self, tenant: str, keys: Sequence[str], rows: Sequence[Any]) -> None:
        self._keys.update(dict.fromkeys(((tenant, key) for key in keys), None))
        for chain, *row in rows:
            stored = record_row(row)
            self._keys[tenant, str(stored.columns[_KEY])] = chain, stored

    def _note_ids(self, tenant: str, ids: Sequence[str], rows: Sequence[Any]) -> None:
        taken = {row[0] for row in rows}
        self._ids.update({(tenant, each): to_column(each) in taken for each in ids})

    # --- adding

    def add_chain(self, tenant: str, name: str) -> ChainRow:
        added = self._connection.execute(
            f"INSERT INTO aver.chains (tenant, name) VALUES (%s, %s) RETURNING {CHAIN}", (tenant, name), binary=True
        )
        row = chain_row(added.fetchone() or ())
        self._chains[tenant, name] = row
        return replace(row)

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        for digest, blob in blobs:
            self._blobs.setdefault((tenant, digest), blob)
            self._gather(len(blob.data))

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        for sealed, columns in records:
            self._first = self._first or (chain, chain.count, sealed.hash)
            self._records.append(record_values(chain, sealed, columns))
            self._ids[chain.tenant, columns[0]] = True
            if columns[_KEY] is not None:
                self._keys[chain.tenant, columns[_KEY]] = chain.name, Row(chain.count, sealed, columns)
            chain.count += 1
            chain.head = sealed.hash
            self._gather(len(sealed.canonical))

    def advance(self, chain: ChainRow) -> None:
        self._moved[chain.number] = self._chains[chain.tenant, chain.name] = replace(chain)

    def freeze(self, chain: ChainRow, origin: str) -> None:
        self._send()
        moved = self._moved.pop(chain.number, chain)
        self._connection.execute(
            "UPDATE aver.chains SET count = %s, head = %s, frozen = true, origin = %s WHERE chain = %s",
            (moved.count, moved.head, to_column(origin), chain.number),
        )

    def _gather(self, size: int) -> None:
        self._gathered += size
        if self._gathered > GATHERED_MAX:
            self._send()

    def _send(self) -> None:
        """Send blobs and records; what was known of ids and keys is then asked of the server again."""
        if self._blobs:
            rows = [
                (*place, to_column(blob.media), blob.data) for place, blob in sorted(self._blobs.items(), key=_first)
            ]
            with self._connection.cursor() as cursor:
                cursor.executemany(_BLOB, rows)
        if self._records:
            with self._connection.cursor() as cursor:
                with cursor.copy(_COPY) as copy:
                    copy.set_types(_TYPES)
                    for record in self._records:
                        copy.write_row(record)
                _see_that_all_was_kept(len(self._records), cursor)
        self._forget_gathered()


def _first(item: tuple[tuple[str, str], Blob]) -> tuple[str, str]:
    return item[0]


def _see_that_all_was_kept(sent: int, cursor: Cursor[TupleRow]) -> None:
    """A server that says it did what it was asked, and did less, has a program in it that is not ours."""
    if cursor.rowcount != sent:
        raise IntegrityError(
            "SCHEMA_INVALID",
            f"the server kept {cursor.rowcount} of {sent} rows that were sent to it, without a word",
            evidence=cursor.statusmessage,
            advice="look for foreign triggers and rules: aver verify",
        )


def _place(tenant: str, name: str) -> int:
    """The number of the advisory lock for a chain that is to come into being."""
    return int.from_bytes(sha256(f"aver\n{tenant}\n{name}".encode()).digest()[:8], "big", signed=True)
