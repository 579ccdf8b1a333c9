"""What a ledger needs of a store, and of a write transaction in it.

Two stores have it: the embedded one in a file (`sqlite`) and the shared one on a server (`postgres`). The rest of the
room knows only this. A store keeps rows and gives them back as they are; what they mean, and whether they hold, is
the business of others.

All of a store's methods raise `Unavailable` when it cannot be read or written. Any number of threads may use one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar

from aver.capsule.blobs import Blob
from aver.capsule.draft import PreparedDraft
from aver.capsule.sealed import Sealed
from aver.fast_dataclass import dataclass
from aver.ledger.stores.conditions import Search
from aver.ledger.stores.rows import ChainRow, RecordRow

__all__ = ["ExpectedWrites", "FoundRecord", "LookupColumn", "Store", "Transaction"]

LookupColumn = Literal["hash", "id", "key"]
"""What one record can be looked up by."""

FoundRecord = tuple[str, RecordRow]
"""A record that was looked up, with its chain's name."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ExpectedWrites:
    """What a transaction is going to touch, told before it begins.

    A store that locks chain by chain locks these in one order that is the same for all, so that writers cannot block
    each other for ever; and one across a network looks up ids and keys at once. Nothing else hangs on it.
    """

    tenant: str
    chains: frozenset[str]
    drafts: Sequence[PreparedDraft] = ()
    keys: Sequence[str] = ()
    """Idempotency keys besides those of the drafts."""


class Transaction(Protocol):
    """One durable transaction: all of it is written, or nothing. It sees what it has written itself."""

    def chain(self, tenant: str, name: str) -> ChainRow | None:
        """The head row of a chain, which no one else moves until the transaction ends."""

    def chains(self, tenant: str) -> list[ChainRow]: ...

    def add_chain(self, tenant: str, name: str) -> ChainRow: ...

    def find_by_keys(self, tenant: str, keys: Sequence[str]) -> dict[str, FoundRecord]:
        """The records that these idempotency keys stand for, by key; without those that are free."""

    def taken_ids(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Those of these record ids that the tenant has already."""

    def has_blob(self, tenant: str, digest: str) -> bool: ...

    def add_blobs(self, tenant: str, blobs: Iterable[tuple[str, Blob]]) -> None:
        """Add blobs by digest; one that is there already stays as it is."""

    def add_records(self, chain: ChainRow, records: Iterable[tuple[Sealed, tuple[Any, ...]]]) -> None:
        """Add records, with their columns, at the chain's end. The head row follows with `advance`."""

    def update_head(self, chain: ChainRow) -> None:
        """Let the head row say what `chain` says: how many records there are, and the hash of the last."""

    def freeze(self, chain: ChainRow, origin: str) -> None:
        """Close an imported chain for good."""


class Store(Protocol):
    """One ledger's rows, of all its tenants."""

    @property
    def name(self) -> str:
        """What messages and verdicts call it. Holds no password."""

    @property
    def url(self) -> str:
        """What opens it again, in another process. May hold a password: tell it to nobody."""

    @property
    def ledger_id(self) -> str: ...

    def facts(self) -> dict[str, str]:
        """What the ledger says of itself: its `id`, and when it was made."""

    @property
    def essential_indexes(self) -> frozenset[str]:
        """The indexes that a verification reads by, as `altered` names them."""

    def close(self) -> None: ...

    # --- writing

    def write(self, work: Callable[[Transaction], Result], expected: ExpectedWrites) -> Result:
        """Do work in one durable transaction; when this returns, what it wrote is on disk.

        Work may be done again from its beginning, in a new transaction, where another writer came first.
        """

    def transaction(self, expected: ExpectedWrites | None = None) -> AbstractContextManager[Transaction]:
        """The same for work that can be done only once. Where another writer came first, it fails."""

    # --- reading

    def chain(self, tenant: str, name: str) -> ChainRow | None: ...

    def chains(self, tenant: str) -> list[ChainRow]:
        """The tenant's chains, by name."""

    def tenants(self) -> list[str]: ...

    def read_rows(self, chain: ChainRow, start: int, stop: int) -> AbstractContextManager[Iterator[RecordRow]]:
        """The records of a chain from `start` up to `stop`, as they are stored."""

    def next_sequence(self, chain: ChainRow, start: int) -> int | None:
        """Where the first record from `start` on lies; None if there is none."""

    def hash_at(self, chain: ChainRow, sequence: int) -> str | None:
        """The stored hash of one record; None if there is no such record."""

    def row_number_at(self, chain: ChainRow, sequence: int) -> int | None:
        """The row number of one record; None if there is no such record."""

    def find_first(self, tenant: str, column: LookupColumn, value: str) -> FoundRecord | None:
        """The oldest record of a tenant whose column has a value."""

    def read_page(
        self, tenant: str, search: Search, *, newer_than: int, limit: int
    ) -> list[tuple[int, str, RecordRow]]:
        """The oldest records that match beyond a row number: row number (to go on from), chain and record."""

    def blob(self, tenant: str, digest: str) -> Blob | None: ...

    # --- for verification

    def has_record_beyond(self, chain: ChainRow) -> bool:
        """Whether there are records that the chain's head row does not count."""

    def count_orphans(self, tenant: str) -> int:
        """How many records belong to no chain."""

    def find_repeated(self, tenant: str) -> list[tuple[str, str, int]]:
        """Ids and idempotency keys that occur more than once: column, chain and sequence of each later one."""

    def schema_differences(self) -> list[str]:
        """Tables, indexes and whatever else is not as Aver makes it, each as `<kind> <name>`."""

    def find_damage(self) -> list[str]:
        """What the store itself finds wrong with how its rows are kept."""

    def limitations(self) -> list[str]:
        """What a verdict on the whole ledger must say besides: what could not be checked here, and why."""
