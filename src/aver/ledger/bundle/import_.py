"""Store a foreign chain in a ledger: verbatim, frozen, in one transaction. Imports of bundles and databases use it.

The importer has verified the chain before. It is judged again while it is stored, because its file may have changed
meanwhile. The stored records have no idempotency keys: another party's record must never answer for one of ours.

A chain that is already here is left as it is, under whatever name: its first record tells. So a bundle of this very
ledger adds nothing. If the chain has grown since, its new records are not stored, because an imported chain is frozen;
the result counts them. If both have different records at one place, everything is refused. A chain that says it is of
this ledger, and is not here, is refused, too: an import never adds to what the ledger made itself.

Import the chains of a bundle into a ledger: verbatim, frozen, and only if the bundle verifies.

Aver verifies the bundle first, and refuses it if a check fails. Unknown signers do not prevent the import, but the
result names them; no key is registered. Each chain is stored in one transaction (see `store_chain`). After an
interrupted import, run it again: chains that are here already with the same records are left as they are.

Names: every chain is stored as `import.<16 digits of its source>.<name>`: see `ledger.imports.source`. The name of a
chain `<tool>-<session>` of the public tool is `<tool>.<session>`.

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

from aver.capsule.aver_block import read_block
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
    SUFFIX,
    BundleIndex,
    ChainClaim,
    bundle_directory,
    read_chain_file,
    read_index,
)
from aver.ledger.bundle.owner import find_owner, read_histories
from aver.ledger.bundle.reader import RecordsDigest
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.checkpoint import CHECK, Checkpoint, check_against_checkpoints, extend_verdict, select_checkpoints
from aver.ledger.checkpoint_files import read_checkpoints
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.head import Head
from aver.ledger.imports.history import DROP_KIND, IMPORT_KIND, ImportHistory, read_import_history
from aver.ledger.imports.source import OLD_IMPORT, ImportSource, read_digits, source_from_ledger, source_from_records
from aver.ledger.key_history import only_valid, replaced_keys
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.ledger import Ledger
from aver.ledger.meta_chain import build_import_entry
from aver.ledger.seen_heads import META_CHAIN, HeadChecker
from aver.ledger.stores.protocol import ChainRow, Transaction
from aver.log import debug
from aver.verdict import CHECKS, ChainJudge, Rules, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import read_chain_identity
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

    source: ImportSource
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
    source: ImportSource
    head: Head
    first: Sealed
    read: Callable[[], Iterable[object]]
    """Reads its items again, in order: records, and errors for unreadable ones."""
    read_blob: Callable[[str], bytes]
    digest: bytes | None = None
    """The digest of the records that were verified, with their seals; None where nothing was computed."""
    existed: bool = False
    beyond: int = 0

    @property
    def imported_chain(self) -> ImportedChain:
        return ImportedChain(self.name, self.id, self.head.count, self.existed, self.beyond)


def mark_existing(ledger: Ledger, planned: PlannedImport) -> PlannedImport:
    """Note in a plan whether the chain is here already. Raises `Refused` if it cannot be stored here."""
    row = _find_existing(ledger, planned)
    named = read_chain_identity(planned.first)
    if row is None:
        if (named.get("ledger"), named.get("tenant")) == (ledger.id, ledger.tenant):
            raise Refused(
                "CHAIN_MISSING",
                f"nothing was imported: {planned.id} says that it was made in this ledger, and it is not here",
                advice="see: aver verify; a lost chain comes back with a copy of the ledger, not with an import",
            )
        return planned
    beyond = max(0, planned.head.count - row.count)
    if not _has_same_records(ledger, row, planned):
        words = f"the chain {row.name} is here already, with other records"
    elif beyond and not row.frozen:
        words = f"the chain {row.name} was made here, and lacks {beyond} records that the other one has"
    else:
        return replace(planned, name=row.name, existed=True, beyond=beyond)
    raise Refused(
        "NAME_TAKEN",
        f"nothing was imported: {words}",
        advice=f"to replace that import: aver import --drop {row.name}; or import into another tenant"
        if row.frozen
        else "see: aver verify",
    )


def _find_existing(ledger: Ledger, planned: PlannedImport) -> ChainRow | None:
    """The chain with the same first record, under whatever name it is here; or else the one with the planned name."""
    found = ledger.store.find_first(ledger.tenant, "hash", planned.first.hash)
    same = None if found is None or found[1].sequence != 0 else ledger.store.chain(ledger.tenant, found[0])
    return same or ledger.store.chain(ledger.tenant, planned.name)


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
    for source in {chain.source for chain in planned if not chain.existed}:
        _check_source(ledger, source)
    for chain in planned:
        if chain.existed:
            debug("ledger", "the chain %s is here already; %d newer records are not imported", chain.name, chain.beyond)
        else:
            _store_chain(ledger, chain)
    return tuple(chain.imported_chain for chain in planned)


def _check_source(ledger: Ledger, source: ImportSource) -> None:
    """Raise `Refused` if chains of another source have the digits of this one."""
    others = [row.name for row in ledger.store.chains(ledger.tenant) if read_digits(row.name) == source.digits]
    if not others:
        return
    imported = read_import_history(ledger, ledger.keys.ring()).imported
    for name in others:
        if name not in imported or imported[name].source != source.text:
            raise Refused(
                "NAME_TAKEN",
                f"nothing was imported: {source.digits} stands for another source here, that of {name}",
                advice=f"to remove that import: aver import --drop {source.digits}; or import into another tenant",
            )


def _store_chain(ledger: Ledger, planned: PlannedImport) -> None:
    """Store one chain in one transaction: a crash leaves all of it or nothing."""
    with ledger.transaction(planned.name, META_CHAIN) as (transaction, append):
        if transaction.chain(ledger.tenant, planned.name) is not None:
            raise Refused("NAME_TAKEN", f"another process has just created the chain {planned.name}")
        row = transaction.add_chain(ledger.tenant, planned.name)
        # Signatures were verified before. Here only content and links are judged, to notice a changed file. No hash
        # covers the seals, so a digest of all records shows whether they are those that were verified.
        judge = ChainJudge(Rules(Ring(), "content"), chain=planned.id)
        digest = RecordsDigest()
        for item in planned.read():
            if isinstance(item, BadInput):
                raise _changed_error(planned)
            if isinstance(item, Sealed):
                content = judge.judge(item)
                digest.add(item)
                if content is None:
                    raise _changed_error(planned)
                _store_record(transaction, row, item, content, planned.read_blob)
        failed = any(finding.status == "failed" for finding in judge.tally.findings)
        if failed or (row.count, row.head) != (planned.head.count, planned.head.hash):
            raise _changed_error(planned)
        if planned.digest not in (None, digest.finish()):
            raise _changed_error(planned)
        transaction.update_head(row)
        transaction.freeze(row, planned.origin)
        # In the same transaction: a frozen chain without its entry in `meta` would not count as imported.
        head = planned.head
        draft = build_import_entry(planned.name, planned.origin, planned.source.text, head.count, str(head.hash))
        append(META_CHAIN, prepare_draft(draft))


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
            advice=f"see whose it is: aver show {columns[0]}; aver import --drop removes an import that has it",
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
    source = source_from_ledger(bundle.owner.ledger, bundle.owner.tenant) or _find_source(directory, index)
    planned = [
        mark_existing(ledger, _plan_import(directory, bundle, source, claim, file))
        for claim, file in _select_chains(bundle, chosen)
    ]
    unknown = tuple(sorted(name for name in bundle.signers if not ring.lookup(name)))
    return ImportResult(source, store_chains(ledger, planned), verdict, unknown)


def _select_chains(bundle: BundleJudge, only: Collection[str] | None) -> Iterator[tuple[ChainClaim, str]]:
    """The chains to import, each with the name of its file. Empty chains are left out."""
    for claim in bundle.index.chains:
        if (only is None or claim.id in only) and bundle.heads[claim.id].count:
            yield claim, claim.file
    if only is None and bundle.index.meta is not None and bundle.heads[META_CHAIN].count:
        yield bundle.index.meta, META


def _find_source(directory: Path, index: BundleIndex) -> ImportSource:
    """The source of a bundle that names no ledger. All chains count, also where only some are imported."""
    meta = None if index.meta is None else next(_read_items(directory, META), None)
    firsts = (next(_read_items(directory, claim.file), None) for claim in index.chains)
    return source_from_records(
        (first for first in firsts if isinstance(first, Sealed)), meta if isinstance(meta, Sealed) else None
    )


def _plan_import(
    directory: Path, bundle: BundleJudge, source: ImportSource, claim: ChainClaim, file: str
) -> PlannedImport:
    first = next(_read_items(directory, file), None)
    if not isinstance(first, Sealed):
        raise IntegrityError("ROLLBACK", f"the chain {claim.id} changed while it was imported; it was not stored")
    return PlannedImport(
        id=claim.id,
        origin=claim.origin or claim.id,
        name=source.name_chain(bundle.names[claim.id]),
        source=source,
        head=bundle.heads[claim.id],
        first=first,
        read=lambda: _read_items(directory, file),
        read_blob=lambda digest: _read_blob(directory, digest),
        digest=bundle.digests[claim.id],
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
    excuse = _read_history(directory, index, ring).has_dropped
    checker = HeadChecker(heads, lambda chain, place: hashes.get((chain, place)), tally, check=CHECK, excuse=excuse)
    history = read_histories(directory, index, ring).get((OLD_IMPORT, *of))
    check_against_checkpoints(checker, checkpoints, ring, tally, of=of, own_keys=None, history=history)
    return extend_verdict(verdict, tally)


def _read_history(directory: Path, index: BundleIndex, ring: Ring) -> ImportHistory:
    """The imports and drops that the bundle's own meta chain records."""
    history = ImportHistory(ring)
    try:
        if any(claim.id == KEYS_CHAIN for claim in index.chains):
            keys = (item for item in _read_items(directory, KEYS_CHAIN + SUFFIX) if isinstance(item, Sealed))
            history = ImportHistory(ring, replaced_keys(keys))
        entries = _read_items(directory, META) if index.meta is not None else iter(())
        for record in only_valid(ring, (item for item in entries if isinstance(item, Sealed)), META_CHAIN):
            if record.kind in (IMPORT_KIND, DROP_KIND):
                history.add(record)
    except BadInput:
        return history  # Reported where these chains themselves are judged.
    return history


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
