"""Storing a foreign chain in a ledger: verbatim, frozen, in one transaction, whatever it was read from.

What is taken was judged before. It is judged once more while it is read, so that what changes meanwhile is not stored
either. Records have no idempotency keys here: somebody else's record must not stand in for one of ours.

A chain that is here already stays as it is. Where it has grown since, what came later is not taken, because an imported
chain is frozen; it is counted, so that whoever imports learns of it. Where both tell otherwise, all is refused.
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
from aver.verdict import ChainJudge, Rules, Verdict
from aver.verdict.record import COLUMNS, imported_column_values

__all__ = ["ImportResult", "ImportedChain", "PlannedImport", "mark_existing", "store_chains"]

ID_MAX = 512
"""Characters of a foreign record's id: far more than any has, and as much as every store can keep unique."""


@dataclass(frozen=True, slots=True)
class ImportedChain:
    """One chain: its name here, and there, and how many records it has there. `existed`: it was here already."""

    name: str
    origin: str
    count: int
    existed: bool
    beyond: int = 0
    """Records by which it has grown since it was imported; they are not here."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did. `verdict` is what was found before anything was stored."""

    chains: tuple[ImportedChain, ...]
    verdict: Verdict
    unknown_signers: tuple[str, ...]
    """Who signed records here without a key that is known; their signatures were not checked."""


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """A chain that is to be stored."""

    id: str
    """What it is called where it came from."""
    origin: str
    name: str
    head: Head
    read: Callable[[], Iterable[object]]
    """Its records in order, read afresh; among them may be what cannot be read, as an error."""
    blob: Callable[[str], bytes]
    existed: bool = False
    beyond: int = 0

    @property
    def imported(self) -> ImportedChain:
        return ImportedChain(self.name, self.id, self.head.count, self.existed, self.beyond)


def mark_existing(ledger: Ledger, planned: PlannedImport) -> PlannedImport:
    """The same, knowing whether it is here already, and how far; `Refused` where another chain is."""
    row = ledger.store.chain(ledger.tenant, planned.name)
    if row is None:
        return planned
    beyond = max(0, planned.head.count - row.count)
    if not _has_same_records(ledger, row, planned):
        words = f"the chain {planned.name} is here already, with other records"
    elif beyond and not row.frozen:
        words = f"the chain {planned.name} was made here, and lacks {beyond} records that were made after its last"
    else:
        return replace(planned, existed=True, beyond=beyond)
    raise Refused(
        "NAME_TAKEN",
        f"nothing was imported: {words}",
        advice="import the other chains by name, or into another ledger or tenant",
    )


def _has_same_records(ledger: Ledger, row: ChainRow, planned: PlannedImport) -> bool:
    """Whether the records that both have are the same. Their links were judged, so the last of them tells."""
    if row.count == planned.head.count:
        return row.head == planned.head.hash
    last = min(row.count, planned.head.count) - 1
    if last < 0:
        return True
    records = (item for item in planned.read() if isinstance(item, Sealed))
    there = next(islice(records, last, None), None)
    return there is not None and there.hash == ledger.store.hash_at(row, last)


def store_chains(ledger: Ledger, planned: Collection[PlannedImport]) -> tuple[ImportedChain, ...]:
    """Store the chains that are not here yet, each in one transaction."""
    _refuse_duplicate_names(planned)
    for one in planned:
        if not one.existed:
            _store_chain(ledger, one)
    return tuple(one.imported for one in planned)


def _refuse_duplicate_names(planned: Collection[PlannedImport]) -> None:
    names: set[str] = set()
    for plan in planned:
        if plan.name in names:
            raise Refused("NAME_TAKEN", f"nothing was imported: two chains would be called {plan.name} here")
        names.add(plan.name)


def _store_chain(ledger: Ledger, planned: PlannedImport) -> None:
    """One chain, in one transaction: a crash leaves all of it or nothing."""
    with ledger.transaction(planned.name, META_CHAIN) as (transaction, append):
        if transaction.chain(ledger.tenant, planned.name) is not None:
            raise Refused("NAME_TAKEN", f"the chain {planned.name} came into being meanwhile")
        row = transaction.add_chain(ledger.tenant, planned.name)
        judge = ChainJudge(Rules(Ring(), "content"), chain=planned.id)
        for item in planned.read():
            if isinstance(item, BadInput):
                raise _changed_error(planned)
            if isinstance(item, Sealed):
                content = judge.judge(item)
                if content is None:
                    raise _changed_error(planned)
                _store_record(transaction, row, item, content, planned.blob)
        failed = any(finding.status == "failed" for finding in judge.tally.findings)
        if failed or (row.count, row.head) != (planned.head.count, planned.head.hash):
            raise _changed_error(planned)
        transaction.update_head(row)
        transaction.freeze(row, planned.origin)
        draft = build_import_entry(planned.name, planned.origin, planned.head.count, str(planned.head.hash))
        append(META_CHAIN, prepare_draft(draft, key=f"import:{planned.name}"))


def _store_record(
    transaction: Transaction, row: ChainRow, record: Sealed, content: dict[str, Any], blob: Callable[[str], bytes]
) -> None:
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
                kept = Blob(blob(digest), media if isinstance(media, str) and not has_surrogate(media) else "")
                transaction.add_blobs(row.tenant, [(digest, kept)])
    transaction.add_records(row, [(record, columns)])


def _changed_error(planned: PlannedImport) -> IntegrityError:
    words = f"the chain {planned.id} changed while it was imported; it was not stored"
    return IntegrityError("ROLLBACK", words, evidence=planned.head)
