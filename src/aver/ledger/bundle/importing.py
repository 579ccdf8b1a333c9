"""Taking a bundle's chains into a ledger: verbatim, frozen, and only if nothing in them fails.

The bundle is verified first; what fails is refused with the verdict. Signers whose keys are not known here are no
obstacle, but they are named; no key is registered. Each chain is stored in one transaction, in which it is judged
once more while it is read, so that a bundle that changes meanwhile is not stored either. An import that was
interrupted is simply repeated: chains that are here already, with the same records, stay as they are.

Imported records have no idempotency keys here: somebody else's record must not stand in for one of ours.

Names: an Aver chain keeps its name, `<tool>-<session>` of the public tool becomes `<tool>.<session>`, and what has no
such name becomes `import.<id>`. A foreign `meta` or `keys` chain becomes `import.<first 16 digits of its first
record's hash>-meta` or `-keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from aver.capsule.blobs import BLOB_MAX, Blob, blob_objects
from aver.capsule.block import RESERVED_CHAINS, block_of, chain_name, check_chain_name
from aver.capsule.canonical import has_surrogate
from aver.capsule.prepared import prepare
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound, Refused
from aver.keys import Ring
from aver.ledger.bundle.judging import Bundle
from aver.ledger.bundle.layout import BLOBS, INDEX, META, Claim, bundle_directory, capsules_in, read_index
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger
from aver.ledger.memory import META_CHAIN
from aver.ledger.meta import import_draft
from aver.ledger.outside import code_of, open_inside
from aver.ledger.rows import ChainRow
from aver.ledger.store import Transaction
from aver.values import dataclass
from aver.verdict import CHECKS, ChainJudge, Rules, Terms, Verdict, conclude
from aver.verdict.record import COLUMNS, imported_by

__all__ = ["Imported", "ImportedChain", "import_bundle"]


ID_MAX = 512
"""Characters of a foreign record's id: far more than any has, and as much as every store can keep unique."""


@dataclass(frozen=True, slots=True)
class ImportedChain:
    """One chain: its name here, and there. `existed`: it was here already, with the same records."""

    name: str
    origin: str
    count: int
    existed: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `verdict` is what was found before anything was stored."""

    chains: tuple[ImportedChain, ...]
    verdict: Verdict
    unknown_signers: tuple[str, ...]
    """Who signed records here without a key that is known; their signatures were not checked."""


@dataclass(frozen=True, slots=True)
class _Planned:
    claim: Claim
    file: str
    head: Head
    name: str
    existed: bool


def import_bundle(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> Imported:
    """Store the chains of a bundle, or `only` those with these ids."""
    directory = bundle_directory(Path(path))
    chosen = None if only is None else frozenset(only)
    ring = ledger.keys.ring()
    bundle, verdict = _judged(directory, Terms(ring, ledger.config.home), chosen)
    if verdict.first_bad is not None:
        raise IntegrityError(
            verdict.first_bad.code,
            f"nothing was imported, because the bundle does not hold: {verdict.first_bad}",
            evidence=verdict,
            advice=f"see: aver verify {directory}",
        )
    planned = [_plan(ledger, bundle, claim, file) for claim, file in _chosen(bundle, chosen)]
    _refuse_two_of_a_name(planned)
    for plan in planned:
        if not plan.existed:
            _store(ledger, directory, plan)
    return Imported(
        tuple(ImportedChain(plan.name, plan.claim.id, plan.head.count, plan.existed) for plan in planned),
        verdict,
        tuple(sorted(name for name in bundle.signers if not ring.lookup(name))),
    )


def _judged(directory: Path, terms: Terms, only: Collection[str] | None) -> tuple[Bundle, Verdict]:
    try:
        index = read_index(directory)
    except BadInput as error:
        raise IntegrityError(
            code_of(error), f"nothing was imported: {INDEX} cannot be read: {error.message}", evidence=str(error)
        ) from error
    listed = {claim.id for claim in index.chains}
    for name in only or ():
        if name not in listed:
            raise NotFound(f"there is no chain {name} in the bundle", advice="aver verify lists what is in it")
    bundle = Bundle(directory, index, terms)
    tally = bundle.judge(only)
    return bundle, conclude(f"bundle {directory.absolute().name}", tally, expected=(*CHECKS, "index"))


def _chosen(bundle: Bundle, only: Collection[str] | None) -> Iterator[tuple[Claim, str]]:
    for claim in bundle.index.chains:
        if (only is None or claim.id in only) and bundle.heads[claim.id].count:
            yield claim, claim.file
    if only is None and bundle.index.meta is not None and bundle.heads[META_CHAIN].count:
        yield bundle.index.meta, META


def _plan(ledger: Ledger, bundle: Bundle, claim: Claim, file: str) -> _Planned:
    head = bundle.heads[claim.id]
    name = _local_name(claim, bundle)
    row = ledger.store.chain(ledger.tenant, name)
    if row is not None and (row.count, row.head) != (head.count, head.hash):
        raise Refused(
            "NAME_TAKEN",
            f"nothing was imported: the chain {name} is here already, with other records",
            advice="import the other chains by name, or into another ledger or tenant",
        )
    return _Planned(claim, file, head, name, existed=row is not None)


def _local_name(claim: Claim, bundle: Bundle) -> str:
    if claim.id in RESERVED_CHAINS:
        return chain_name("import", f"{str(bundle.first_hashes[claim.id])[:16]}-{claim.id}")
    try:
        return check_chain_name(bundle.names[claim.id])
    except BadInput:
        return chain_name("import", claim.id)


def _refuse_two_of_a_name(planned: Collection[_Planned]) -> None:
    names: set[str] = set()
    for plan in planned:
        if plan.name in names:
            raise Refused("NAME_TAKEN", f"nothing was imported: two chains would be called {plan.name} here")
        names.add(plan.name)


def _store(ledger: Ledger, directory: Path, plan: _Planned) -> None:
    """One chain, in one transaction: a crash leaves all of it or nothing."""
    with ledger.together(plan.name, META_CHAIN) as (transaction, append):
        if transaction.chain(ledger.tenant, plan.name) is not None:
            raise Refused("NAME_TAKEN", f"the chain {plan.name} came into being meanwhile")
        row = transaction.add_chain(ledger.tenant, plan.name)
        judge = ChainJudge(Rules(Ring(), "content"), chain=plan.claim.id)
        with open_inside(directory, plan.file) as file:
            for item in capsules_in(file):
                if isinstance(item, BadInput):
                    raise _changed(plan)
                if isinstance(item, Sealed):
                    content = judge.judge(item)
                    if content is None:
                        raise _changed(plan)
                    _store_record(transaction, row, item, content, lambda digest: _blob(directory, digest))
        failed = any(finding.status == "failed" for finding in judge.tally.findings)
        if failed or (row.count, row.head) != (plan.head.count, plan.head.hash):
            raise _changed(plan)
        transaction.advance(row)
        origin = plan.claim.origin or plan.claim.id
        transaction.freeze(row, origin)
        draft = import_draft(plan.name, origin, plan.head.count, str(plan.head.hash))
        append(META_CHAIN, prepare(draft, key=f"import:{plan.name}"))


def _store_record(
    transaction: Transaction, row: ChainRow, record: Sealed, content: dict[str, Any], blob: Callable[[str], bytes]
) -> None:
    columns = imported_by(content, block_of(content))
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
        for reference in blob_objects(content):
            digest, media = reference["digest"], reference.get("media")
            if not transaction.has_blob(row.tenant, digest):
                kept = Blob(blob(digest), media if isinstance(media, str) and not has_surrogate(media) else "")
                transaction.add_blobs(row.tenant, [(digest, kept)])
    transaction.add_records(row, [(record, columns)])


def _blob(directory: Path, digest: str) -> bytes:
    try:
        with open_inside(directory, BLOBS, digest) as file:
            data = file.read(BLOB_MAX + 1)
    except NotFound:
        raise Refused(
            "ARTIFACT_MISSING",
            f"the blob {digest} is not in the bundle",
            advice="ask for a bundle with its blobs",
        ) from None
    if len(data) > BLOB_MAX:
        raise Refused("BLOB_TOO_LARGE", f"the blob {digest} is larger than {BLOB_MAX} bytes")
    if Blob(data).digest != digest:
        raise IntegrityError("ARTIFACT_HASH_MISMATCH", f"the blob stored as {digest} has other bytes")
    return data


def _changed(plan: _Planned) -> IntegrityError:
    words = f"the chain {plan.claim.id} changed while it was imported; it was not stored"
    return IntegrityError("ROLLBACK", words, evidence=plan.head)
