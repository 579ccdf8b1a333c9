"""A bundle or a `.cap` file, opened as a ledger to read: `aver.open_ledger("bundle")`, `aver log --ledger run.cap`.

    with aver.open_ledger("bundle") as ledger:
        print(ledger.verdict.status, ledger.chains())

It is verified when it is opened, and `verdict` is the result. A record whose own content or signature does not hold is
left out: reading shows no such record, and `left_out` counts them. Everything else that is wrong (a chain that was
cut, a wrong index) is in the verdict, which a caller must show beside the records. Nothing is imported, and nothing can
be appended.

The records are copied into a temporary file with the tables of a ledger (see `stores.sqlite.temporary`), so that every
reader of a ledger works as usual. Blobs are read from the bundle itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from aver.capsule.aver_block import read_block
from aver.capsule.canonical import has_surrogate
from aver.capsule.draft import PreparedDraft
from aver.capsule.model import Capsule
from aver.capsule.sealed import Sealed
from aver.config import Config
from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.keys import KeyLike, KeyStore, Ring
from aver.ledger.append import AnySigner, Entry
from aver.ledger.head import Head
from aver.ledger.ledger import ROWS_MAX, Ledger
from aver.ledger.stores.protocol import Transaction
from aver.ledger.stores.sqlite.temporary import TemporaryStoreWriter
from aver.verdict import VerifyOptions
from aver.verdict.record import column_values, imported_column_values

if TYPE_CHECKING:
    from aver.verdict import Examiner, Level, Verdict

COLUMN_MAX = 512
"""Longest value of a search column, in characters. A record with a longer one is found by its chain only."""


@dataclass(frozen=True, slots=True)
class ReadChain:
    """A chain that can be read. With an `origin` it is the chain of another ledger or tool, which had that name."""

    origin: str | None = None
    head: Head | None = None
    """Where it ends, if all of it is here."""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A bundle or `.cap` file that was verified, and the functions to read on in it."""

    name: str
    """What it is, for messages, such as `the bundle BUNDLE`."""
    ledger: str
    tenant: str
    records: Iterable[tuple[str, Sealed]]
    """Each record that holds, with the name of its chain. The records of one chain come in order."""
    chains: Mapping[str, ReadChain]
    """What is known of chains by their names. A chain that is not listed has no origin and no head."""
    count: int
    """How many records it has, whether they hold or not."""
    verdict: Verdict
    verify: Callable[[str | None, VerifyOptions], Verdict]
    """Verifies one chain, or everything."""
    read_blob: Callable[[str], bytes]
    are_blobs_left_out: bool = False
    """Whether it says that it was made without its blobs."""


class ReadOnlyLedger(Ledger):
    """The records of a bundle or `.cap` file. Reading works as in a ledger; appending is refused."""

    def __init__(self, source: ReadSource, config: Config, examiners: Sequence[Examiner] = ()) -> None:
        self._source = source
        self.verdict = source.verdict
        self._writer = TemporaryStoreWriter(source.ledger, source.tenant)
        try:
            self._copy_records(source, KeyStore(config.home).ring())
            store, kept = self._writer.finish(config.lock_timeout, source.read_blob)
        except BaseException:
            self._writer.close()
            raise
        super().__init__(
            store, KeyStore(config.home), tenant=source.tenant, signer=None, config=config, examiners=examiners
        )
        self.are_blobs_left_out = source.are_blobs_left_out
        self.held: dict[str, int] = kept
        """How many records of each chain are here."""
        self.left_out = max(source.count - sum(kept.values()), 0)
        """How many records do not hold, or claim the place of another one, and are not shown."""

    def _copy_records(self, source: ReadSource, ring: Ring) -> None:
        numbers: dict[str, int] = {}
        ends: dict[str, int] = {}
        for name, record in source.records:
            chain = source.chains.get(name, ReadChain())
            try:
                content = record.to_dict()
                block, sequence = read_block(content), content["sequence"]
                values = (column_values if chain.origin is None else imported_column_values)(content, block)
            except (AverError, AttributeError, KeyError, TypeError):
                continue  # It is no capsule, and is counted as left out.
            required, optional = values[:2], values[2:]
            if type(sequence) is not int or not 0 <= sequence < ROWS_MAX or not all(map(_is_column, required)):
                continue
            columns = (*required, *(value if _is_column(value) else None for value in optional))
            number = numbers.setdefault(name, len(numbers) + 1)
            is_known = bool(ring.lookup(record.signed_by))
            self._writer.add_record(number, sequence, record, columns, is_known=is_known)
            ends[name] = max(ends.get(name, 0), sequence + 1)
        for name, number in numbers.items():
            chain = source.chains.get(name, ReadChain())
            self._writer.add_chain(
                number, name, ends[name], None if chain.head is None else chain.head.hash, chain.origin
            )

    def close(self) -> None:
        super().close()
        self._writer.close()

    def blob(self, digest: str) -> bytes:
        return self._source.read_blob(digest)

    def verify(
        self,
        chain: str | None = None,
        *,
        level: Level = "signature",
        since: Head | Literal["last"] | None = None,
        keys: Iterable[KeyLike] = (),
        require_pq: bool = False,
        examiners: Sequence[Examiner] | None = None,
    ) -> Verdict:
        """Verify the bundle or file again, or one chain of it."""
        if since is not None:
            raise BadInput(f"{self._source.name} is verified as a whole: it has no `since`")
        chosen = self.examiners if examiners is None else tuple(examiners)
        options = VerifyOptions(self.ring(keys), self.config.home, level, require_pq, examiners=chosen)
        return self._source.verify(chain, options)

    # --- writing

    def append(self, chain: str, draft: Capsule | Mapping[str, Any], **options: Any) -> Sealed:
        self._refuse()

    def append_many(self, chain: str, drafts: Iterable[Capsule | Mapping[str, Any]], **options: Any) -> list[Sealed]:
        self._refuse()

    def append_together(self, entries: Sequence[Entry], **options: Any) -> list[Sealed]:
        self._refuse()

    def append_reserved(self, chain: str, draft: Capsule, **options: Any) -> Sealed:
        self._refuse()

    def close_chain(self, chain: str) -> Sealed:
        self._refuse()

    def sweep(self) -> list[Sealed]:
        self._refuse()

    def transaction(
        self, *chains: str
    ) -> AbstractContextManager[tuple[Transaction, Callable[[str, PreparedDraft], Sealed]]]:
        self._refuse()

    def signer(self) -> AnySigner:
        self._refuse()

    def _refuse(self) -> NoReturn:
        words = f"{self._source.name} can only be read"
        raise BadInput(words, advice="append to a ledger; aver import PATH stores the chains of a bundle in one")


def _is_column(value: object) -> bool:
    return isinstance(value, str) and len(value) <= COLUMN_MAX and not has_surrogate(value)
