"""Store a foreign chain in a ledger: verbatim, frozen, in one transaction. Imports of bundles and databases use it.

The importer has verified the chain before. It is judged again while it is stored, because its file may have changed
meanwhile. The stored records have no idempotency keys: another party's record must never answer for one of ours.

A chain that is already here is left as it is. If it has grown since, its new records are not stored, because an
imported chain is frozen; the result counts them. If both have different records at one place, everything is refused.

Import the chains of a bundle into a ledger: verbatim, frozen, and only if the bundle verifies.

Aver verifies the bundle first, and refuses it if a check fails. Unknown signers do not prevent the import, but the
result names them; no key is registered. Each chain is stored in one transaction (see `store_chain`). After an
interrupted import, run it again: chains that are here already with the same records are left as they are.

Names: an Aver chain keeps its name. `<tool>-<session>` of the public tool becomes `<tool>.<session>`. A chain without
such a name becomes `import.<id>`. A foreign `meta` or `keys` chain becomes `import.<first 16 digits of its first
record's hash>-meta` or `-keys`.

Compare a bundle with checkpoints: does it contain everything that existed when they were made?

The comparison uses the hashes of the bundle's records; the verdict on the bundle has checked them against the content.
A chain that a checkpoint has and the bundle lacks is `CHAIN_MISSING`. If the index calls the bundle a part, missing
chains are not checked; but the index is unsigned, so the verdict is then qualified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from aver.capsule.aver_block import RESERVED_CHAINS, chain_name, check_chain_name, read_block
from aver.capsule.blobs import BLOB_MAX, Blob, blob_reference_dicts
from aver.capsule.canonical import has_surrogate
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound, Refused
from aver.fast_dataclass import dataclass
from aver.files.regular import open_inside
from aver.keys import Ring
from aver.ledger.bundle.layout import (
    BLOBS,
    INDEX,
    META,
    BundleIndex,
    ChainClaim,
    bundle_directory,
    read_chain_file,
    read_index,
)
from aver.ledger.bundle.verify import BundleJudge, find_owner
from aver.ledger.checkpoint import CHECK, Checkpoint, check_against_checkpoints, extend_verdict, select_checkpoints
from aver.ledger.checkpoint_files import read_checkpoints
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger
from aver.ledger.meta_chain import build_import_entry
from aver.ledger.seen_heads import META_CHAIN, HeadChecker
from aver.ledger.stores.protocol import ChainRow, Transaction
from aver.log import debug
from aver.verdict import CHECKS, ChainJudge, Rules, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.record import COLUMNS, imported_column_values

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
    # Each hash covers the one before it: equal hashes at one place mean equal records up to there.
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
    # Check all names before the first chain is stored, so that a refusal stores nothing.
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
            raise Refused("NAME_TAKEN", f"another process has just created the chain {planned.name}")
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
            f"{row.name}, sequence {row.count}: a record with the id {columns[0]} is already in this ledger",
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


def import_bundle(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> ImportResult:
    """Store the chains of a bundle, or `only` those with these ids.

    Raises `IntegrityError` with the verdict if the bundle fails, `Refused` if it cannot be stored here.
    """
    directory = bundle_directory(Path(path))
    chosen = None if only is None else frozenset(only)
    ring = ledger.keys.ring()
    options = VerifyOptions(ring, ledger.config.home, examiners=ledger.examiners)
    try:
        index = read_index(directory)
    except BadInput as error:
        raise IntegrityError(
            unreadable_code(error),
            f"nothing was imported: {INDEX} cannot be read: {error.message}",
            evidence=str(error),
        ) from error
    listed = {claim.id for claim in index.chains}
    for name in chosen or ():
        if name not in listed:
            raise NotFound(f"there is no chain {name} in the bundle", advice="aver verify lists its chains")
    bundle = BundleJudge(directory, index, options)
    tally = bundle.judge(chosen)
    verdict = conclude(f"bundle {directory.absolute().name}", tally, expected=(*CHECKS, "index"))
    if verdict.first_bad is not None:
        raise IntegrityError(
            verdict.first_bad.code,
            f"nothing was imported, because the bundle does not verify: {verdict.first_bad}",
            evidence=verdict,
            advice=f"see: aver verify {directory}",
        )
    planned = [
        mark_existing(ledger, _plan_import(directory, bundle, claim, file))
        for claim, file in _select_chains(bundle, chosen)
    ]
    unknown = tuple(sorted(name for name in bundle.signers if not ring.lookup(name)))
    return ImportResult(store_chains(ledger, planned), verdict, unknown)


def _select_chains(bundle: BundleJudge, only: Collection[str] | None) -> Iterator[tuple[ChainClaim, str]]:
    """The chains to import, each with the name of its file. Empty chains are left out."""
    for claim in bundle.index.chains:
        if (only is None or claim.id in only) and bundle.heads[claim.id].count:
            yield claim, claim.file
    if only is None and bundle.index.meta is not None and bundle.heads[META_CHAIN].count:
        yield bundle.index.meta, META


def _plan_import(directory: Path, bundle: BundleJudge, claim: ChainClaim, file: str) -> PlannedImport:
    if claim.id in RESERVED_CHAINS:
        # This ledger has a chain of that name itself.
        local_name = chain_name("import", f"{str(bundle.first_hashes[claim.id])[:16]}-{claim.id}")
    else:
        try:
            local_name = check_chain_name(bundle.names[claim.id])
        except BadInput:
            local_name = chain_name("import", claim.id)
    return PlannedImport(
        id=claim.id,
        origin=claim.origin or claim.id,
        name=local_name,
        head=bundle.heads[claim.id],
        read=lambda: _read_items(directory, file),
        read_blob=lambda digest: _read_blob(directory, digest),
    )


def _read_items(directory: Path, file: str) -> Iterator[Sealed | BadInput | ChainClaim]:
    with open_inside(directory, file) as opened:
        yield from read_chain_file(opened)


def _read_blob(directory: Path, digest: str) -> bytes:
    """Read a blob of a bundle, and check its digest and size."""
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


UNKNOWN_OWNER = "(unknown)"
"""Stands for the ledger or tenant of a bundle that names none. No ledger has this id."""


def check_bundle_checkpoints(path: Path, sources: Sequence[Path], ring: Ring, verdict: Verdict) -> Verdict:
    """The verdict on a bundle, extended by a comparison with the checkpoints in files or repositories."""
    directory = bundle_directory(path)
    try:
        index = read_index(directory)
        owner = find_owner(directory, index)
    except NotFound:
        raise
    except BadInput:
        return verdict  # It has failed already, because of the index.
    of = owner.ledger or UNKNOWN_OWNER, owner.tenant or UNKNOWN_OWNER
    found = [checkpoint for source in sources for checkpoint in read_checkpoints(source, of[0])]
    checkpoints = select_checkpoints(found, *of)
    heads, hashes = _read_heads(directory, index, checkpoints, of)
    tally = Tally(records=verdict.records)
    if index.part:
        checkpoints = list(_limit_to_part(checkpoints, heads, tally))
    checker = HeadChecker(heads, lambda chain, place: hashes.get((chain, place)), tally, check=CHECK)
    check_against_checkpoints(checker, checkpoints, ring, tally, of=of, own_keys=None)
    return extend_verdict(verdict, tally)


def _read_heads(
    directory: Path, index: BundleIndex, checkpoints: Sequence[Checkpoint], of: tuple[str, str]
) -> tuple[dict[str, Head], dict[tuple[str, int], str]]:
    """The heads of the bundle's chains, and the hashes at the places that the checkpoints name."""
    wanted: dict[str, set[int]] = {}
    for checkpoint in checkpoints:
        for head in checkpoint.heads:
            wanted.setdefault(head.chain, set()).add(head.count - 1)
    heads: dict[str, Head] = {}
    hashes: dict[tuple[str, int], str] = {}
    files = {} if index.meta is None else {META_CHAIN: META}
    files.update((claim.id, claim.file) for claim in index.chains)
    for chain, file_name in files.items():
        if chain not in wanted:
            continue  # No checkpoint names it: its file need not be read.
        count, last = 0, None
        try:
            with open_inside(directory, file_name) as file:
                for item in read_chain_file(file):
                    if isinstance(item, Sealed):
                        last = item.hash
                        if count in wanted[chain]:
                            hashes[chain, count] = item.hash
                    # An unreadable record still has its place; the file's claim at the end has none.
                    count += isinstance(item, Sealed | BadInput)
        except BadInput:
            continue  # Reported elsewhere; here the chain counts as missing.
        heads[chain] = Head(*of, chain, count, last)
    return heads, hashes


def _limit_to_part(checkpoints: Sequence[Checkpoint], here: Mapping[str, Head], tally: Tally) -> Iterator[Checkpoint]:
    """The checkpoints without the chains that this part of a ledger does not have."""
    missing = {head.chain for checkpoint in checkpoints for head in checkpoint.heads} - here.keys()
    if missing:
        words = f"{len(missing)} chains of the checkpoints are not in this part of the ledger"
        tally.skip(CHECK, words, matters=True)
    for checkpoint in checkpoints:
        yield replace(checkpoint, heads=tuple(head for head in checkpoint.heads if head.chain in here))
