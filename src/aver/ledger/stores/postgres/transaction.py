"""Rows of the ledger's tables in PostgreSQL, and one write transaction.

**Rows.** The server enforces the types of columns. Results come in binary form, so `canonical` arrives as its exact
bytes, without a detour through hexadecimal digits.

**Text in a column.** PostgreSQL's `text` accepts every character except U+0000. The search columns are copies; in them
U+0000 is written as U+0001 U+0001, and U+0001 as U+0001 U+0002. So every text has one stored form and every form one
text, and forms sort as their texts do: a search finds the same records as in SQLite. The signed bytes in `canonical`
are stored unchanged.

**Locks.** Under READ COMMITTED every statement sees what was committed before it began. So a lookup after a chain was
locked is up to date. A transaction takes its locks in one fixed order, so that two writers never wait for each other:

1. chains that exist: their head rows, ordered by name;
2. chains that do not exist yet: one advisory lock each, ordered by number;
3. if one of these was created meanwhile: release everything and begin again with 1.

**Sending.** New rows are sent when the transaction commits: blobs ordered by digest, then records, then head rows. This
takes two round trips for few records and three for many, and adds no other order of waiting between writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

import psycopg
from psycopg import Cursor
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import TupleRow

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed
from aver.errors import IntegrityError, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.ledger.stores.postgres.pool import PoolConnection
from aver.ledger.stores.protocol import SEAL_COLUMNS, SEARCH_COLUMNS, ChainRow, ExpectedWrites, RecordRow
from aver.log import debug

CHAIN_COLUMNS = "chain, tenant, name, count, head, frozen, origin"
RECORD_COLUMNS = f"sequence, {SEARCH_COLUMNS}, {SEAL_COLUMNS}, records.tenant"
INSERT_COLUMNS = f"chain, sequence, tenant, {SEARCH_COLUMNS}, {SEAL_COLUMNS}"


def parse_chain_row(row: Sequence[Any]) -> ChainRow:
    """Read a row of `CHAIN_COLUMNS`. A negative count becomes 0, and the verifier finds the records beyond it."""
    number, tenant, name, count, head, frozen, origin = row
    return ChainRow(number, tenant, name, max(count, 0), head, frozen, None if origin is None else from_column(origin))


def parse_record_row(row: Sequence[Any]) -> RecordRow:
    """Read a row of `RECORD_COLUMNS`."""
    columns = tuple(None if value is None else from_column(value) for value in row[1:7])
    return RecordRow(row[0], Sealed(row[7], *map(from_column, row[8:13])), columns, row[13])


def record_values(chain: ChainRow, sealed: Sealed, columns: Sequence[str | None]) -> tuple[Any, ...]:
    """A record as the values of `INSERT_COLUMNS`."""
    seal = (sealed.hash, sealed.signature, sealed.signature_pq, sealed.signed_at, sealed.signed_by)
    stored = (None if value is None else to_column(value) for value in columns)
    return (chain.number, chain.count, chain.tenant, *stored, sealed.canonical, *map(to_column, seal))


_ESCAPES = {"\0": "\1\1", "\1": "\1\2"}
_UNESCAPES = {form: text for text, form in _ESCAPES.items()}
_TO_ESCAPE = re.compile("[\0\1]")
_ESCAPED = re.compile("\1[\1\2]")

INVALID_MARK = "\udcff"
"""Marks a stored text that Aver would not have written: a lone surrogate, which no signed text can contain."""


def to_column(text: str) -> str:
    """A text in the form in which it is stored."""
    if "\0" not in text and "\1" not in text:
        return text
    return _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], text)


def from_column(stored: str) -> str:
    """The text of a stored form. An invalid form gets `INVALID_MARK`, so that it equals no signed text."""
    if "\1" not in stored:
        return stored
    text = _ESCAPED.sub(lambda found: _UNESCAPES[found[0]], stored)
    return text if to_column(text) == stored else INVALID_MARK + stored


BUFFER_MAX = 16 * 1024 * 1024
"""Bytes of rows that are buffered before they are sent early, so that a large import does not fill the memory."""

FEW_RECORDS = 8
"""Most records that are sent one by one, together with COMMIT. COPY takes a round trip more, and less work for many."""

READ_AT_ONCE = 200
"""Records that are read at once to look for digests: 200 of the largest size, 256 KiB, take 50 MiB of memory."""

DURABLE = ("on", "remote_apply")
"""Values of `synchronous_commit` under which an acknowledged commit survives a crash of the server."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_PREPARE = f"""
SELECT pg_backend_pid(), now(), current_setting('synchronous_standby_names') <> '',
       CASE WHEN current_setting('synchronous_commit') IN {DURABLE} THEN current_setting('synchronous_commit')
            ELSE set_config('synchronous_commit', 'on', true) END,
       set_config('lock_timeout', %s, true),
       set_config('statement_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true)
"""
_LOCK = f"SELECT {CHAIN_COLUMNS} FROM aver.chains WHERE tenant = %s AND name = ANY (%s) ORDER BY name FOR UPDATE"
_VERSION = "SELECT coalesce(max(version), 0) FROM aver.schema_version"
_FIND_EXISTING = "SELECT name FROM aver.chains WHERE tenant = %s AND name = ANY (%s)"
_LOCK_NEW = "SELECT pg_advisory_xact_lock(place) FROM unnest(%s::bigint[]) AS place"
_BY_KEYS = f"SELECT chains.name, {RECORD_COLUMNS} FROM aver.records JOIN aver.chains USING (chain)"
_BY_KEYS += " WHERE records.tenant = %s AND key = ANY (%s)"
_TAKEN_IDS = "SELECT id FROM aver.records WHERE tenant = %s AND id = ANY (%s)"
_COMPARE_BLOBS = """
SELECT digest, encode(sha256(data), 'hex') = digest FROM aver.blobs WHERE tenant = %s AND digest = ANY (%s)
"""
"""The server computes the digests, so that no bytes travel."""
_COPY = f"COPY aver.records ({INSERT_COLUMNS}) FROM STDIN (FORMAT binary)"
_INSERT_TYPES = ("int8", "int8", *("text",) * 7, "bytea", *("text",) * 5)
_INSERT_VALUES = ", ".join("%b" if each == "bytea" else "%s" for each in _INSERT_TYPES)
_INSERT = f"INSERT INTO aver.records ({INSERT_COLUMNS}) VALUES ({_INSERT_VALUES})"
_INSERT_BLOB = "INSERT INTO aver.blobs (tenant, digest, media, data) VALUES (%s, %s, %s, %b) ON CONFLICT DO NOTHING"
_DELETE_GUARDS = """
SELECT relname, tgname, tgenabled FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = to_regnamespace('aver') AND tgname IN ('records_stay', 'chains_stay', 'blobs_stay')
AND tgenabled IN ('O', 'A')
"""
_ADVANCE = "UPDATE aver.chains SET count = %s, head = %s WHERE chain = %s"
IdCheck = Literal["looked up", "assumed new"]
"""How a transaction checks that the ids of its drafts are free. Nearly all ids are random and new. Assuming this saves
a statement while chains are locked; if it is wrong, the unique index refuses the whole transaction."""

_KEY_COLUMN = 3
"""The index of the idempotency key in `SEARCH_COLUMNS`."""


@dataclass(frozen=True, slots=True)
class CommitProof:
    """The traces by which the server can be asked whether a transaction was committed: first record and backend."""

    tenant: str
    chain: str
    sequence: int
    hash: str
    backend: int
    began: datetime


class PostgresTransaction:
    """A write transaction. `PostgresStore.transaction` makes it and ends it. It raises psycopg's errors.

    `Transaction` documents the methods.
    """

    def __init__(self, connection: PoolConnection, *, timeout: float, ids: IdCheck = "looked up") -> None:
        self._connection = connection
        self._timeout = timeout
        self._assumes_new_ids = ids == "assumed new"
        self._backend: tuple[int, datetime] | None = None
        self._has_standby = False
        self._first: tuple[ChainRow, int, str] | None = None
        self._chains: dict[tuple[str, str], ChainRow | None] = {}
        self._moved: dict[int, ChainRow] = {}
        self._clear_buffers()
        self.version = 0
        """The version of the tables when the transaction had its locks."""
        self.is_committing = False
        """Whether COMMIT may have been sent. From then on, only the server knows whether it happened."""

    def _clear_buffers(self) -> None:
        self._records: list[tuple[Any, ...]] = []
        self._blobs: dict[tuple[str, str], Blob] = {}
        self._gathered = 0
        self._keys: dict[tuple[str, str], tuple[str, RecordRow] | None] = {}
        self._ids: dict[tuple[str, str], bool] = {}
        self._compared: dict[tuple[str, str], bool | None] = {}

    # --- beginning and ending

    def begin(self, expected: ExpectedWrites | None) -> None:
        """Begin, lock the expected chains, look up the expected keys and ids, and compare the expected blobs."""
        while not self._try_begin(expected):
            # 3. Release everything.
            debug("ledger", "another process has just created a chain; the transaction starts again")
            self._connection.execute("ROLLBACK")

    def _try_begin(self, expected: ExpectedWrites | None) -> bool:
        """Begin once, in one round trip. Returns False if a chain was created while we waited for its lock."""
        # Milliseconds; 0 would mean no limit. A lock gives up first, so that its own error is the one that is seen.
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
                # 1. Lock head rows. The lookups come after it in the pipeline, so they are up to date.
                locked = run(_LOCK, (tenant, names), prepare=True, binary=True)
                known = run(_BY_KEYS, (tenant, keys), prepare=True, binary=True) if keys else None
                digests = list(dict.fromkeys(blob.digest for draft in expected.drafts for blob in draft.blobs))
                compared = run(_COMPARE_BLOBS, (tenant, digests), prepare=True) if digests else None
                look_up_ids = bool(ids) and not self._assumes_new_ids
                taken = run(_TAKEN_IDS, (tenant, ids), prepare=True, binary=True) if look_up_ids else None
            # After the lock: a migration that we waited for may have ended just now.
            version = run(_VERSION, prepare=True)
        backend, began, self._has_standby, durable, *_ = prepared.fetchone() or (0, None, False, None)
        if durable not in DURABLE:
            raise Unavailable(f"the server keeps synchronous_commit at {durable}, so that nothing would be durable")
        self._backend = backend, began
        self.version = int((version.fetchone() or (0,))[0])
        self._chains = {}
        if expected is None:
            return True
        self._note_chains(tenant, names, locked.fetchall())
        self._note_keys(tenant, keys, [] if known is None else known.fetchall())
        self._note_ids(tenant, ids, [] if taken is None else taken.fetchall())
        self._note_compared(tenant, digests, [] if compared is None else compared.fetchall())
        new = [name for name in names if self._chains[tenant, name] is None]
        return not new or self._lock_new_chains(tenant, new)

    def _lock_new_chains(self, tenant: str, names: Sequence[str]) -> bool:
        """2. Lock chains that do not exist yet. Returns False if one exists by now."""
        self._connection.execute(_LOCK_NEW, (sorted(_advisory_lock_id(tenant, name) for name in names),))
        # Ask only now: another writer may have created a chain and released its lock while we waited.
        return self._connection.execute(_FIND_EXISTING, (tenant, list(names))).fetchone() is None

    def commit(self) -> None:
        """Send the buffered rows and the new heads, and commit."""
        few = len(self._records) <= FEW_RECORDS and not self._blobs
        if not few:
            self._send_buffers()
        sent_rows: list[tuple[int, Cursor[TupleRow]]] = []
        with self._connection.pipeline():
            # Few records travel with the heads and COMMIT in one round trip.
            for record in self._records:
                sent_rows.append((1, self._connection.execute(_INSERT, record, prepare=True)))
            for row in self._moved.values():
                moved = row.count, row.head, row.number
                sent_rows.append((1, self._connection.execute(_ADVANCE, moved, prepare=True)))
            if self._has_standby:
                # If the timeout struck while the server waits for its standby, it would report the commit as done.
                self._connection.execute("SET LOCAL statement_timeout = 0")
            self.is_committing = True
            committed = self._connection.execute("COMMIT")
        if committed.statusmessage != "COMMIT":
            raise psycopg.InternalError(f"the server answered COMMIT with {committed.statusmessage}")
        # After COMMIT: the pipeline has no results before. A foreign trigger that dropped rows is found here.
        for sent, cursor in sent_rows:
            _check_row_count(sent, cursor)

    def roll_back(self) -> None:
        """Roll back; if that fails, close the connection, and the server rolls back."""
        try:
            if self._connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    @property
    def commit_proof(self) -> CommitProof | None:
        """The traces by which to find out later whether this was committed; None if it added no record."""
        if self._first is None or self._backend is None:
            return None
        chain, sequence, digest = self._first
        return CommitProof(chain.tenant, chain.name, sequence, digest, *self._backend)

    def has_committed(self, proof: CommitProof) -> bool:
        """Return whether the record of a proof exists. This transaction has its chain locked: the other has ended."""
        row = self._connection.execute(
            "SELECT 1 FROM aver.records JOIN aver.chains USING (chain)"
            " WHERE chains.tenant = %s AND chains.name = %s AND sequence = %s AND hash = %s",
            (proof.tenant, proof.chain, proof.sequence, proof.hash),
        )
        return row.fetchone() is not None

    # --- looking up

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        if (tenant, name) not in self._chains:
            # A chain that was not expected. Its lock comes out of order; the server resolves a deadlock by an error.
            found = self._connection.execute(_LOCK, (tenant, [name]), binary=True).fetchall()
            if not found:
                self._lock_new_chains(tenant, [name])
                found = self._connection.execute(_LOCK, (tenant, [name]), binary=True).fetchall()
            self._note_chains(tenant, [name], found)
        row = self._chains[tenant, name]
        return None if row is None else replace(row)  # A copy: the caller changes count and head.

    def chains(self, tenant: str) -> list[ChainRow]:
        query = f"SELECT {CHAIN_COLUMNS} FROM aver.chains WHERE tenant = %s ORDER BY name"
        return [parse_chain_row(row) for row in self._connection.execute(query, (tenant,), binary=True)]

    def find_by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, tuple[str, RecordRow]]:
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
                self._connection.execute(_TAKEN_IDS, (tenant, stored), prepare=True, binary=True).fetchall(),
            )
        return {each for each in ids if self._ids[tenant, each]}

    def has_blob(self, tenant: str, digest: str) -> bool:
        if (tenant, digest) in self._blobs:
            return True
        query = "SELECT 1 FROM aver.blobs WHERE tenant = %s AND digest = %s"
        return self._connection.execute(query, (tenant, digest)).fetchone() is not None

    def compare_blobs(self, tenant: str, blobs: Mapping[str, Blob]) -> dict[str, bool]:
        wanted = [digest for digest in blobs if (tenant, digest) not in self._blobs]
        unknown = [digest for digest in wanted if (tenant, digest) not in self._compared]
        if unknown:
            found = self._connection.execute(_COMPARE_BLOBS, (tenant, unknown), prepare=True).fetchall()
            self._note_compared(tenant, unknown, found)
        answers = {digest: self._compared[tenant, digest] for digest in wanted}
        return {digest: is_intact for digest, is_intact in answers.items() if is_intact is not None}

    def _note_chains(self, tenant: str, names: Sequence[str], rows: Sequence[Any]) -> None:
        self._chains.update(dict.fromkeys(((tenant, name) for name in names), None))
        for row in map(parse_chain_row, rows):
            self._chains[tenant, row.name] = row

    def _note_keys(self, tenant: str, keys: Sequence[str], rows: Sequence[Any]) -> None:
        self._keys.update(dict.fromkeys(((tenant, key) for key in keys), None))
        for chain, *row in rows:
            stored = parse_record_row(row)
            self._keys[tenant, str(stored.columns[_KEY_COLUMN])] = chain, stored

    def _note_compared(self, tenant: str, digests: Sequence[str], rows: Sequence[Any]) -> None:
        """Note for each of these blobs whether its stored bytes are intact; None if it is not stored."""
        answers = dict(rows)
        self._compared.update({(tenant, digest): answers.get(digest) for digest in digests})

    def _note_ids(self, tenant: str, ids: Sequence[str], rows: Sequence[Any]) -> None:
        taken = {row[0] for row in rows}
        self._ids.update({(tenant, each): to_column(each) in taken for each in ids})

    # --- adding

    def add_chain(self, tenant: str, name: str) -> ChainRow:
        added = self._connection.execute(
            f"INSERT INTO aver.chains (tenant, name) VALUES (%s, %s) RETURNING {CHAIN_COLUMNS}",
            (tenant, name),
            binary=True,
        )
        row = parse_chain_row(added.fetchone() or ())
        self._chains[tenant, name] = row
        return replace(row)

    def restore_blob(self, tenant: str, blob: Blob) -> bool:
        # To turn the guard off takes a lock that keeps all other writers out, and the owner of the tables.
        return False

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        for digest, blob in blobs:
            self._blobs.setdefault((tenant, digest), blob)
            self._count_buffered(len(blob.data))

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        for sealed, columns in records:
            # Remember the first record as proof of the commit, and ids and keys for lookups before they are sent.
            self._first = self._first or (chain, chain.count, sealed.hash)
            self._records.append(record_values(chain, sealed, columns))
            self._ids[chain.tenant, columns[0]] = True
            if columns[_KEY_COLUMN] is not None:
                self._keys[chain.tenant, columns[_KEY_COLUMN]] = chain.name, RecordRow(chain.count, sealed, columns)
            chain.count += 1
            chain.head = sealed.hash
            self._count_buffered(len(sealed.canonical))

    def update_head(self, chain: ChainRow) -> None:
        # Copies: the caller goes on changing its own row.
        self._moved[chain.number] = self._chains[chain.tenant, chain.name] = replace(chain)

    def freeze(self, chain: ChainRow, origin: str) -> None:
        # The guards refuse records and head updates of a frozen chain: everything else goes first.
        self._send_buffers()
        moved = self._moved.pop(chain.number, chain)
        self._connection.execute(
            "UPDATE aver.chains SET count = %s, head = %s, frozen = true, origin = %s WHERE chain = %s",
            (moved.count, moved.head, to_column(origin), chain.number),
        )

    def remove_chains(self, tenant: str, chains: Sequence[ChainRow]) -> int:
        # Imported here: hooks load this module, and never remove anything.
        from aver.ledger.stores.mentions import find_references, leave_unmentioned

        # The owner of the tables turns the guards off and on again in this transaction. Until it ends, no other writer
        # can change these tables, and nobody sees them without guards.
        numbers = [chain.number for chain in chains]
        guards = self._turn_guards_off()
        mentioned = find_references(self._read_canonical("chain = ANY (%s)", numbers))
        self._connection.execute("DELETE FROM aver.records WHERE chain = ANY (%s)", (numbers,))
        self._connection.execute("DELETE FROM aver.chains WHERE chain = ANY (%s)", (numbers,))
        found = self._connection.execute(
            "SELECT digest FROM aver.blobs WHERE tenant = %s AND digest = ANY (%s)", (tenant, list(mentioned))
        )
        stored = {str(row[0]) for row in found}
        unneeded = sorted(leave_unmentioned(stored, self._read_canonical("tenant = %s", tenant)))
        self._connection.execute("DELETE FROM aver.blobs WHERE tenant = %s AND digest = ANY (%s)", (tenant, unneeded))
        for table, name, how in guards:
            self._connection.execute(f"ALTER TABLE aver.{table} ENABLE {how}TRIGGER {name}")
        for chain in chains:
            self._chains[tenant, chain.name] = None
        return len(unneeded)

    def _turn_guards_off(self) -> list[tuple[str, str, str]]:
        """Turn the guards against deletion off. Returns the table, the name and the former mode of each."""
        active = self._connection.execute(_DELETE_GUARDS).fetchall()
        guards = [(table, name, "ALWAYS " if mode == b"A" else "") for table, name, mode in active]
        try:
            for table, name, _ in guards:
                self._connection.execute(f"ALTER TABLE aver.{table} DISABLE TRIGGER {name}")
        except InsufficientPrivilege:
            raise Refused(
                "NOT_PERMITTED",
                "this role may add records, and may not remove any; nothing was dropped",
                advice="run it as the owner of the ledger's tables",
            ) from None
        return guards

    def _read_canonical(self, condition: str, value: Any) -> Iterator[bytes]:
        """The bytes of all records that match, some at a time."""
        last = 0
        query = f"SELECT record, canonical FROM aver.records WHERE {condition} AND record > %s ORDER BY record"
        query = f"{query} LIMIT {READ_AT_ONCE}"
        while rows := self._connection.execute(query, (value, last), binary=True).fetchall():
            yield from (row[1] for row in rows)
            last = rows[-1][0]

    def _count_buffered(self, size: int) -> None:
        self._gathered += size
        if self._gathered > BUFFER_MAX:
            self._send_buffers()

    def _send_buffers(self) -> None:
        """Send blobs and records, and forget the cached ids and keys: the server now has them."""
        if self._blobs:
            # Sorted: two writers that add the same blobs wait for each other in one order.
            blobs = sorted(self._blobs.items(), key=lambda item: item[0])
            rows = [(*place, to_column(blob.media), blob.data) for place, blob in blobs]
            with self._connection.cursor() as cursor:
                cursor.executemany(_INSERT_BLOB, rows)
        if self._records:
            with self._connection.cursor() as cursor:
                with cursor.copy(_COPY) as copy:
                    copy.set_types(_INSERT_TYPES)
                    for record in self._records:
                        copy.write_row(record)
                _check_row_count(len(self._records), cursor)
        self._clear_buffers()


def _check_row_count(sent: int, cursor: Cursor[TupleRow]) -> None:
    """Raise `IntegrityError` if the server stored fewer rows than were sent: a foreign trigger must have run."""
    if cursor.rowcount != sent:
        raise IntegrityError(
            "SCHEMA_INVALID",
            f"the server stored {cursor.rowcount} of {sent} rows that were sent to it, and reported no error",
            evidence=cursor.statusmessage,
            advice="look for foreign triggers and rules: aver verify",
        )


def _advisory_lock_id(tenant: str, name: str) -> int:
    """The number of the advisory lock for a chain that does not exist yet."""
    return int.from_bytes(sha256(f"aver\n{tenant}\n{name}".encode()).digest()[:8], "big", signed=True)
