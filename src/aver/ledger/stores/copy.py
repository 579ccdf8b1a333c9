"""Copy a ledger into another store, verbatim: from a file to a server, back, or between two of a kind.

The copy has the same id, chains, records, seals, blobs and columns; nothing is sealed anew. Records are copied in the
order in which they were written, some hundred in a transaction. An interrupted copy is therefore a shorter copy. The
next run continues there and writes nothing twice. An existing copy must be a beginning of the original: a copy with
records of its own, or of another ledger, is refused.

The end is fixed at the start. Records that are appended to the original meanwhile are left for the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from operator import itemgetter

from aver.capsule.aver_block import is_tenant_name
from aver.capsule.blobs import Blob, blob_reference_dicts
from aver.errors import AverError, BadInput, IntegrityError, Refused
from aver.fast_dataclass import dataclass
from aver.ledger.stores.protocol import ChainRow, ExpectedWrites, RecordRow, Search, Store, Transaction

BATCH_SIZE = 200
"""Records in one transaction: 200 of the largest size, 256 KiB, take 50 MiB of memory."""

_BLOB_REFERENCE = b'"blob":{'

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The size of the ledger, and how many of its records this run copied."""

    tenants: tuple[str, ...]
    chains: int
    records: int
    copied: int


@dataclass(slots=True)
class _CopyPlan:
    """The chains of one tenant in the original, and how many records of each the copy already has."""

    tenant: str
    wanted: dict[str, ChainRow]
    done: dict[str, int] = field(default_factory=dict)
    unfrozen: set[str] = field(default_factory=set)
    missing: int = 0
    """How many records are still to be copied."""


def copy_ledger(
    source: Store, target: Store, *, tenants: Iterable[str] | None = None, progress: Progress | None = None
) -> CopyResult:
    """Copy the chains of all tenants, or of some. The target must have been created with the source's facts.

    Raises `Refused` if the target is no beginning of the source, `IntegrityError` if the source is damaged.
    """
    if target.ledger_id != source.ledger_id:
        raise Refused(
            "OTHER_LEDGER",
            f"{target.name} is the ledger {target.ledger_id}, not {source.ledger_id}",
            advice="copy to a new database or file, or to an earlier copy of this ledger",
        )
    plans = [_plan_copy(source, target, tenant) for tenant in _select_tenants(source, tenants)]
    total = sum(plan.missing for plan in plans)
    copied = 0
    for plan in plans:
        for records in _read_batches(source, plan):
            target.write(
                _build_write(source, plan, records), ExpectedWrites(plan.tenant, frozenset(map(itemgetter(0), records)))
            )
            for name, _ in records:
                plan.done[name] = plan.done.get(name, 0) + 1
            plan.missing -= len(records)
            copied += len(records)
            if progress:
                progress(copied, total)
        _finish_chains(target, plan)
    chains = [row for plan in plans for row in plan.wanted.values()]
    return CopyResult(tuple(plan.tenant for plan in plans), len(chains), sum(row.count for row in chains), copied)


def _select_tenants(source: Store, tenants: Iterable[str] | None) -> list[str]:
    existing = source.tenants()
    for name in existing:
        if not is_tenant_name(name):
            raise _damage_error(source, f"rows belong to {ascii(name)[:80]}, which is no tenant name")
    if tenants is None:
        return existing
    chosen = list(dict.fromkeys(tenants))
    for name in chosen:
        if name not in existing:
            raise BadInput(f"{source.name} has no tenant {name}", advice="aver doctor lists the tenants")
    return chosen


def _plan_copy(source: Store, target: Store, tenant: str) -> _CopyPlan:
    """Compare the copy with the original. Raises `Refused` if it is not a beginning of it."""
    plan = _CopyPlan(tenant, {row.name: row for row in source.chains(tenant)})
    for copy in target.chains(tenant):
        row = plan.wanted.get(copy.name)
        if row is None and copy.frozen:
            raise Refused(
                "DIVERGED",
                f"{target.name} has the import {copy.name}, which the original does not have any more",
                advice="the import was dropped; copy to a new database or file",
            )
        if row is None or copy.count > row.count or (copy.frozen and (copy.count, row.frozen) != (row.count, True)):
            raise _diverged_error(target, copy)
        # Equal hashes at one place mean equal records before it, too: every record has the hash of the one before.
        if copy.count and source.hash_at(row, copy.count - 1) != copy.head:
            raise _diverged_error(target, copy)
        plan.done[copy.name] = copy.count
        if row.frozen and not copy.frozen:
            plan.unfrozen.add(copy.name)
    plan.unfrozen |= {name for name, row in plan.wanted.items() if row.frozen and name not in plan.done}
    plan.missing = sum(row.count - plan.done.get(name, 0) for name, row in plan.wanted.items())
    return plan


def _read_batches(source: Store, plan: _CopyPlan) -> Iterator[list[tuple[str, RecordRow]]]:
    """The missing records with their chains' names, in the order in which they were written."""
    # The row number before the oldest missing record; None if the copy is complete.
    numbers = []
    for name, row in plan.wanted.items():
        done = plan.done.get(name, 0)
        if done < row.count:
            number = source.row_number_at(row, done)
            if number is None:
                raise _gap_error(source, name, done)
            numbers.append(number - 1)
    newest = min(numbers, default=None)
    while newest is not None and plan.missing:
        page = source.read_page(plan.tenant, Search(), newer_than=newest, limit=BATCH_SIZE)
        if not page:
            break
        newest = page[-1][0]
        wanted = [
            (name, row)
            for _, name, row in page
            if name in plan.wanted and plan.done.get(name, 0) <= row.sequence < plan.wanted[name].count
        ]
        if wanted:
            yield wanted
    if plan.missing:
        short = next(name for name, row in plan.wanted.items() if plan.done.get(name, 0) < row.count)
        raise _gap_error(source, short, plan.done.get(short, 0))


def _build_write(
    source: Store, plan: _CopyPlan, records: Sequence[tuple[str, RecordRow]]
) -> Callable[[Transaction], None]:
    def work(transaction: Transaction) -> None:
        chains: dict[str, ChainRow] = {}
        for name, row in records:
            if name not in chains:
                chains[name] = transaction.chain(plan.tenant, name) or transaction.add_chain(plan.tenant, name)
                # The store may run `work` again; `plan.done` changes only after the commit.
                if chains[name].count != plan.done.get(name, 0):
                    raise Refused("DIVERGED", f"another process writes to the chain {name} of the copy")
            chain = chains[name]
            if row.sequence != chain.count:
                raise _gap_error(source, name, chain.count)
            # Copy one record, and the blobs that it refers to.
            # SQLite may contain any type; PostgreSQL takes only text.
            if not all(value is None or isinstance(value, str) for value in row.columns) or row.columns[0] is None:
                words = f"chain {chain.name}, sequence {row.sequence}: a column does not contain text"
                raise _damage_error(source, words)
            # A search in the bytes first: parsing every record would make the copy much slower.
            if _BLOB_REFERENCE not in row.sealed.canonical:
                blob_digests: set[str] = set()
            else:
                try:
                    blob_digests = {
                        str(reference["digest"]) for reference in blob_reference_dicts(row.sealed.to_dict())
                    }
                except AverError:
                    blob_digests = set()
            for digest in blob_digests:
                if not transaction.has_blob(chain.tenant, digest):
                    blob = source.blob(chain.tenant, digest)
                    if blob is not None:  # A blob that the original lacks, the copy lacks too; the verifier reports it.
                        transaction.add_blobs(chain.tenant, [(digest, Blob(blob.data, blob.media))])
            transaction.add_records(chain, [(row.sealed, row.columns)])
        for chain in chains.values():
            transaction.update_head(chain)

    return work


def _finish_chains(target: Store, plan: _CopyPlan) -> None:
    """Create chains without records, and freeze imported chains, which is possible only when they are complete."""
    empty = [name for name, row in plan.wanted.items() if not row.count and name not in plan.done]
    for name in sorted({*empty, *plan.unfrozen}):

        def work(transaction: Transaction, name: str = name) -> None:
            chain = transaction.chain(plan.tenant, name) or transaction.add_chain(plan.tenant, name)
            if name in plan.unfrozen and not chain.frozen:
                transaction.freeze(chain, plan.wanted[name].origin or name)

        target.write(work, ExpectedWrites(plan.tenant, frozenset({name})))


def _diverged_error(target: Store, chain: ChainRow) -> Refused:
    return Refused(
        "DIVERGED",
        f"the chain {chain.name} in {target.name} is not a beginning of the original chain",
        advice="another program has written to the copy: copy to a new database or file, and find out which is right",
    )


def _gap_error(source: Store, chain: str, sequence: int) -> IntegrityError:
    return IntegrityError(
        "SEQUENCE_GAP",
        f"chain {chain} of {source.name} has no record {sequence}; the records before it were copied",
        evidence=(chain, sequence),
        advice="see: aver verify",
    )


def _damage_error(source: Store, words: str) -> IntegrityError:
    return IntegrityError("STORE_DAMAGED", f"{source.name}: {words}", advice="see: aver verify")
