"""The protocol of a store and of a write transaction in it, and the rows that they exchange.

Two stores implement it: a file (`sqlite`) and a server (`postgres`). The other modules of the ledger use only this
protocol. A store keeps rows and returns them as they are stored. It does not judge them; the verifier does.

All methods of a store raise `Unavailable` when it cannot be read or written. Any number of threads may share a store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar

from aver.capsule.blobs import Blob
from aver.capsule.draft import PreparedDraft
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import NamedTuple, dataclass

SEAL_COLUMNS = "canonical, hash, signature, signature_pq, signed_at, signed_by"
"""The columns with a record's seal, in the order of `Sealed`'s fields."""

SEARCH_COLUMNS = "id, type, kind, key, session, at"
"""Copies of signed content, to search by. The verifier compares them with the content."""

SMALL_BLOB = 64 * 1024
"""Blobs up to this size, in bytes, are read by one statement, several together. A file keeps them in memory twice."""


class NotALedger(BadInput):
    """The store that was named as a ledger cannot be one: its header, version or id is not that of a ledger."""


@dataclass(slots=True)
class ChainRow:
    """A chain's head row. `number` is its primary key; `count` and `head` change as records are added."""

    number: int
    tenant: str
    name: str
    count: int
    head: str | None
    frozen: bool = False
    """The chain was imported: no record can be added here."""
    origin: str | None = None
    """The name of a frozen chain where it came from, if it was renamed here."""


class RecordRow(NamedTuple):
    """A stored record with its place and its `SEARCH_COLUMNS`."""

    sequence: int
    sealed: Sealed
    columns: tuple[Any, ...]
    tenant: Any = None
    """The row's own tenant column. Lookups by key use it, so the verifier compares it with the chain's."""


@dataclass(frozen=True, slots=True)
class Search:
    """The conditions of a search; None matches everything. Times are compared with the time of sealing."""

    chain: str | None = None
    type: str | None = None
    kind: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    kind_group: str | None = None
    """Kinds that begin with this word and a dot, such as `audit`."""
    start: int | None = None
    """Records from this sequence number of their chain on, and before `stop`."""
    stop: int | None = None
    is_own: bool = False
    """Only records of chains that were made here, not of imports."""


# Records of other software name no kind; `capsule.aver_block` derives it from the type in the same way.
_KIND_BY_TYPE = "CASE records.type WHEN 'tool' THEN 'call' WHEN 'chat' THEN 'turn' ELSE 'record' END"


def sql_conditions(search: Search) -> list[tuple[str, str | int]]:
    """A search as SQL conditions over the tables `records` and `chains`, each with one `?` and its value."""
    possible = [
        ("chains.name = ?", search.chain),
        ("records.type = ?", search.type),
        (f"coalesce(records.kind, {_KIND_BY_TYPE}) = ?", search.kind),
        ("records.kind LIKE ?", None if search.kind_group is None else f"{search.kind_group}.%"),
        ("records.session = ?", search.session),
        ("coalesce(records.at, records.signed_at) >= ?", search.since),
        ("coalesce(records.at, records.signed_at) < ?", search.until),
        ("records.sequence >= ?", search.start),
        ("records.sequence < ?", search.stop),
        ("chains.frozen = ?", False if search.is_own else None),
    ]
    return [(condition, value) for condition, value in possible if value is not None]


LookupColumn = Literal["hash", "id", "key"]
"""The columns by which one record can be looked up."""

FoundRecord = tuple[str, RecordRow]
"""The chain's name and the record that a lookup found."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ExpectedWrites:
    """The chains, ids and keys that a transaction will touch, named before it begins.

    A store that locks single chains locks these in one fixed order, so that writers cannot deadlock. A store across a
    network looks up all ids and keys in one round trip. The result of the transaction does not depend on it.
    """

    tenant: str
    chains: frozenset[str]
    drafts: Sequence[PreparedDraft] = ()
    keys: Sequence[str] = ()
    """Idempotency keys in addition to those of the drafts."""


class Transaction(Protocol):
    """One durable transaction: all of it is written, or nothing. Its lookups see its own writes."""

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        """The head row of a chain. It is locked until the transaction ends."""

    def chains(self, tenant: str) -> list[ChainRow]: ...

    def add_chain(self, tenant: str, name: str) -> ChainRow: ...

    def find_by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, FoundRecord]:
        """The existing records with these idempotency keys, by key."""

    def taken_ids(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """The record ids among these that the tenant already has."""

    def has_blob(self, tenant: str, digest: str) -> bool: ...

    def compare_blobs(self, tenant: str, blobs: Mapping[str, Blob]) -> dict[str, bool]:
        """For each of these blobs that is stored already: whether the stored bytes are still those of its digest."""

    def restore_blob(self, tenant: str, blob: Blob) -> bool:
        """Put the bytes of a blob in place of others that are stored under its digest. False if this is not allowed."""

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        """Add blobs by digest. An existing blob is not changed."""

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        """Add records, with their columns, at the chain's end. Call `update_head` for the chain afterwards."""

    def update_head(self, chain: ChainRow) -> None:
        """Store the count and head of `chain` in its head row."""

    def freeze(self, chain: ChainRow, origin: str) -> None:
        """Mark a chain as imported. No record can be added to it any more."""

    def remove_chains(self, tenant: str, chains: Sequence[ChainRow]) -> int:
        """Remove imported chains with their records, and the blobs that no other record mentions.

        Returns the number of these blobs. Only an import can be removed, and only by the record that says so: append
        that record first. The guards against deletion are off until the transaction ends, and in no other one. Raises
        `Refused` if this store's user may not turn them off.
        """


class Store(Protocol):
    """The rows of one ledger, of all its tenants."""

    @property
    def name(self) -> str:
        """The store's name in messages and verdicts. It contains no password."""

    @property
    def url(self) -> str:
        """The URL to open it again in another process. It may contain a password: never print it."""

    @property
    def ledger_id(self) -> str: ...

    def facts(self) -> dict[str, str]:
        """The ledger's `id` and `created_at`."""

    @property
    def essential_indexes(self) -> frozenset[str]:
        """The indexes that a verification reads through, with the names that `schema_differences` uses."""

    def close(self) -> None: ...

    # --- writing

    def write(self, work: Callable[[Transaction], Result], expected: ExpectedWrites) -> Result:
        """Run `work` in one durable transaction. When this returns, everything that it wrote is on disk.

        If another writer came first, the store may run `work` again from its beginning in a new transaction.
        """

    def transaction(self, expected: ExpectedWrites | None = None) -> AbstractContextManager[Transaction]:
        """Open one durable transaction, for work that cannot be repeated. It fails if another writer came first."""

    # --- reading

    def chain(self, tenant: str, name: str) -> ChainRow | None: ...

    def chains(self, tenant: str) -> list[ChainRow]:
        """The tenant's chains, by name."""

    def tenants(self) -> list[str]: ...

    def read_rows(self, chain: ChainRow, start: int, stop: int) -> AbstractContextManager[Iterator[RecordRow]]:
        """The records of a chain from `start` up to `stop`, as stored."""

    def next_sequence(self, chain: ChainRow, start: int) -> int | None:
        """The sequence number of the first record at or after `start`; None if there is none."""

    def hash_at(self, chain: ChainRow, sequence: int) -> str | None:
        """The stored hash of one record; None if there is no such record."""

    def row_number_at(self, chain: ChainRow, sequence: int) -> int | None:
        """The row number of one record; None if there is no such record."""

    def find_first(self, tenant: str, column: LookupColumn, value: str) -> FoundRecord | None:
        """The oldest record of a tenant with this value in a column."""

    def read_page(
        self, tenant: str, search: Search, *, newer_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        """The oldest matching records after a row number, each as (row number, chain, record).

        A search in one chain gives them by sequence number, all others by row number, which is the order of writing.
        """

    def read_newest(
        self, tenant: str, search: Search, *, older_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        """The newest matching records before a row number, newest first. The store reads no further than it must."""

    def newest_row_before(self, tenant: str, time: str) -> int:
        """The row number of the newest record of the tenant's own chains that was sealed before a time; 0 if none."""

    def blob(self, tenant: str, digest: str) -> Blob | None: ...

    def small_blobs(self, tenant: str, digests: Collection[str]) -> list[tuple[str, bytes]]:
        """Those of these blobs that are here and have at most `SMALL_BLOB` bytes, each with its stored digest.

        One query for many blobs. A blob that the store keeps in another form than bytes is left out.
        """

    def change_mark(self) -> str:
        """A value that is another one after every commit to the ledger, whoever made it.

        For those who wait for new records. It is cheap to ask for. It may also change where nothing was written.
        """

    # --- for verification

    def has_record_beyond(self, chain: ChainRow) -> bool:
        """Whether there are records that the chain's head row does not count."""

    def count_orphans(self, tenant: str) -> int:
        """How many records belong to no chain."""

    def find_repeated(self, tenant: str) -> list[tuple[str, str, int]]:
        """Ids and idempotency keys that occur more than once: (column, chain, sequence) of each repetition."""

    def schema_differences(self) -> list[str]:
        """Tables, indexes and other objects that differ from those that Aver makes, each as `<kind> <name>`."""

    def find_damage(self) -> list[str]:
        """Damage that the database's own checks find."""

    def limitations(self) -> list[str]:
        """Checks that could not be carried out here, and why. The verdict on the whole ledger names them."""
