"""Store a foreign chain in a ledger: verbatim, frozen, in one transaction. Imports of bundles and databases use it.

The importer has verified the chain before. It is judged again while it is stored, because its file may have changed
meanwhile. The stored records have no idempotency keys: another party's record must never answer for one of ours.

A chain that is already here is left as it is. If it has grown since, its new records are not stored, because an
imported chain is frozen; the result counts them. If both have different records at one place, everything is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

from aver.capsule.aver_block import read_block
from aver.capsule.blobs import Blob, blob_reference_dicts
from aver.capsule.canonical import has_surrogate
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, Refused
from aver.fast_dataclass import dataclass
from aver.keys import Ring
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger
from aver.ledger.meta_chain import build_import_entry
from aver.ledger.seen_heads import META_CHAIN
from aver.ledger.stores.protocol import Transaction
from aver.ledger.stores.rows import ChainRow
from aver.log import debug
from aver.verdict import ChainJudge, Rules, Verdict
from aver.verdict.record import COLUMNS, imported_column_values

__all__ = ["ImportResult", "ImportedChain", "PlannedImport", "mark_existing", "store_chains"]

ID_MAX = 512
"""Longest id of a foreign record: far longer than any real id, and short enough for the unique index of every store."""


@dataclass(frozen=True, slots=True)
class ImportedChain:
    """One chain: its name here, its original name and its length there. `existed`: it was here already."""

    name: str
    origin: str
    count: int
    existed: bool
    beyond: int = 0
    """Records by which it has grown since it was imported; they are not here."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import. `verdict` is from the verification before anything was stored."""

    chains: tuple[ImportedChain, ...]
    verdict: Verdict
    unknown_signers: tuple[str, ...]
    """Signers whose keys are not known here. Their signatures were not checked."""


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """A chain to be stored."""

    id: str
    """Its name where it came from."""
    origin: str
    name: str
    head: Head
    read: Callable[[], Iterable[object]]
    """Reads its items again, in order: records, and errors for unreadable ones."""
    read_blob: Callable[[str], bytes]
    existed: bool = False
    beyond: int = 0

    @property
    def imported_chain(self) -> ImportedChain:
        return ImportedChain(self.name, self.id, self.head.count, self.existed, self.beyond)


def mark_existing(ledger: Ledger, planned: PlannedImport) -> PlannedImport:
    """Note in a plan whether the chain is here already. Raises `Refused` if another chain has its name."""
    row = ledger.store.chain(ledger.tenant, planned.name)
    if row is None:
        return planned
    beyond = max(0, planned.head.count - row.count)
    if not _has_same_records(ledger, row, planned):
        words = f"the chain {planned.name} is here already, with other records"
    elif beyond and not row.frozen:
        words = f"the chain {planned.name} was made here, and lacks {beyond} records that the other one has"
    else:
        return replace(planned, existed=True, beyond=beyond)
    raise Refused(
        "NAME_TAKEN",
        f"nothing was imported: {words}",
        advice="import the other chains by name, or into another ledger or tenant",
    )


def _has_same_records(ledger: Ledger, row: ChainRow, planned: PlannedImport) -> bool:
    """Return whether both chains agree as far as both go. Both were verified, so one common hash proves it."""
    if row.count == planned.head.count:
        return row.head == planned.head.hash
    last = min(row.count, planned.head.count) - 1
    if last < 0:
        return True
    records = (item for item in planned.read() if isinstance(item, Sealed))
    record = next(islice(records, last, None), None)
    return record is not None and record.hash == ledger.store.hash_at(row, last)


def store_chains(ledger: Ledger, planned: Collection[PlannedImport]) -> tuple[ImportedChain, ...]:
    """Store the chains that are not here yet, each in one transaction. Raises `Refused` or `IntegrityError`."""
    names: set[str] = set()
    for chain in planned:
        if chain.name in names:
            raise Refused("NAME_TAKEN", f"nothing was imported: two chains would be called {chain.name} here")
        names.add(chain.name)
    for chain in planned:
        if chain.existed:
            debug("ledger", "the chain %s is here already; %d newer records are not imported", chain.name, chain.beyond)
        else:
            _store_chain(ledger, chain)
    return tuple(chain.imported_chain for chain in planned)


def _store_chain(ledger: Ledger, planned: PlannedImport) -> None:
    """Store one chain in one transaction: a crash leaves all of it or nothing."""
    with ledger.transaction(planned.name, META_CHAIN) as (transaction, append):
        if transaction.chain(ledger.tenant, planned.name) is not None:
            raise Refused("NAME_TAKEN", f"another process created the chain {planned.name} meanwhile")
        row = transaction.add_chain(ledger.tenant, planned.name)
        # Signatures were verified before. Here only content and links are judged, to notice a changed file.
        judge = ChainJudge(Rules(Ring(), "content"), chain=planned.id)
        for item in planned.read():
            if isinstance(item, BadInput):
                raise _changed_error(planned)
            if isinstance(item, Sealed):
                content = judge.judge(item)
                if content is None:
                    raise _changed_error(planned)
                _store_record(transaction, row, item, content, planned.read_blob)
        failed = any(finding.status == "failed" for finding in judge.tally.findings)
        if failed or (row.count, row.head) != (planned.head.count, planned.head.hash):
            raise _changed_error(planned)
        transaction.update_head(row)
        transaction.freeze(row, planned.origin)
        # In the same transaction: a frozen chain without its entry in `meta` would not count as imported.
        draft = build_import_entry(planned.name, planned.origin, planned.head.count, str(planned.head.hash))
        append(META_CHAIN, prepare_draft(draft, key=f"import:{planned.name}"))


def _store_record(
    transaction: Transaction, row: ChainRow, record: Sealed, content: dict[str, Any], read_blob: Callable[[str], bytes]
) -> None:
    """Check what the stores need of a foreign record, and add it with its blobs."""
    columns = imported_column_values(content, read_block(content))
    for name, value in zip(COLUMNS, columns, strict=True):
        if value is not None and not (isinstance(value, str) and not has_surrogate(value)):
            words = f"{row.name}, sequence {row.count}: its {name} is not a text that can be stored"
            raise Refused("SCHEMA_INVALID", words)
    if len(columns[0]) > ID_MAX:
        words = f"{row.name}, sequence {row.count}: its id has more than {ID_MAX} characters"
        raise Refused("SCHEMA_INVALID", words)
    if transaction.taken_ids(row.tenant, [columns[0]]):
        raise Refused(
            "DUPLICATE_RECORD",
            f"{row.name}, sequence {row.count}: a record with the id {columns[0]} is here already",
            advice="import into another ledger or tenant",
        )
    if b'"blob":{' in record.canonical:
        for reference in blob_reference_dicts(content):
            digest, media = reference["digest"], reference.get("media")
            if not transaction.has_blob(row.tenant, digest):
                blob = Blob(read_blob(digest), media if isinstance(media, str) and not has_surrogate(media) else "")
                transaction.add_blobs(row.tenant, [(digest, blob)])
    transaction.add_records(row, [(record, columns)])


def _changed_error(planned: PlannedImport) -> IntegrityError:
    words = f"the chain {planned.id} changed while it was imported; it was not stored"
    return IntegrityError("ROLLBACK", words, evidence=planned.head)
