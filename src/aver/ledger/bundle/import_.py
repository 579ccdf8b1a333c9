"""Import the chains of a bundle into a ledger: verbatim, frozen, and only if the bundle verifies.

Aver verifies the bundle first, and refuses it if a check fails. Unknown signers do not prevent the import, but the
result names them; no key is registered. Each chain is stored in one transaction (see `store_chain`). After an
interrupted import, run it again: chains that are here already with the same records are left as they are.

Names: an Aver chain keeps its name. `<tool>-<session>` of the public tool becomes `<tool>.<session>`. A chain without
such a name becomes `import.<id>`. A foreign `meta` or `keys` chain becomes `import.<first 16 digits of its first
record's hash>-meta` or `-keys`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from aver.capsule.aver_block import RESERVED_CHAINS, chain_name, check_chain_name
from aver.capsule.blobs import BLOB_MAX, Blob
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound, Refused
from aver.files.regular import open_inside
from aver.ledger.bundle.layout import BLOBS, INDEX, META, ChainClaim, bundle_directory, read_chain_file, read_index
from aver.ledger.bundle.store_chain import ImportedChain, ImportResult, PlannedImport, mark_existing, store_chains
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.ledger import Ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.verdict import CHECKS, Verdict, VerifyOptions, conclude

__all__ = ["ImportResult", "ImportedChain", "import_bundle"]


def import_bundle(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> ImportResult:
    """Store the chains of a bundle, or `only` those with these ids.

    Raises `IntegrityError` with the verdict if the bundle fails, `Refused` if it cannot be stored here.
    """
    directory = bundle_directory(Path(path))
    chosen = None if only is None else frozenset(only)
    ring = ledger.keys.ring()
    bundle, verdict = _judge_directory(
        directory, VerifyOptions(ring, ledger.config.home, examiners=ledger.examiners), chosen
    )
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


def _judge_directory(
    directory: Path, options: VerifyOptions, only: Collection[str] | None
) -> tuple[BundleJudge, Verdict]:
    try:
        index = read_index(directory)
    except BadInput as error:
        raise IntegrityError(
            unreadable_code(error),
            f"nothing was imported: {INDEX} cannot be read: {error.message}",
            evidence=str(error),
        ) from error
    listed = {claim.id for claim in index.chains}
    for name in only or ():
        if name not in listed:
            raise NotFound(f"there is no chain {name} in the bundle", advice="aver verify lists its chains")
    bundle = BundleJudge(directory, index, options)
    tally = bundle.judge(only)
    return bundle, conclude(f"bundle {directory.absolute().name}", tally, expected=(*CHECKS, "index"))


def _select_chains(bundle: BundleJudge, only: Collection[str] | None) -> Iterator[tuple[ChainClaim, str]]:
    """The chains to import, each with the name of its file. Empty chains are left out."""
    for claim in bundle.index.chains:
        if (only is None or claim.id in only) and bundle.heads[claim.id].count:
            yield claim, claim.file
    if only is None and bundle.index.meta is not None and bundle.heads[META_CHAIN].count:
        yield bundle.index.meta, META


def _plan_import(directory: Path, bundle: BundleJudge, claim: ChainClaim, file: str) -> PlannedImport:
    return PlannedImport(
        id=claim.id,
        origin=claim.origin or claim.id,
        name=_local_name(claim, bundle),
        head=bundle.heads[claim.id],
        read=lambda: _read_items(directory, file),
        read_blob=lambda digest: _read_blob(directory, digest),
    )


def _read_items(directory: Path, file: str) -> Iterator[Sealed | BadInput | ChainClaim]:
    with open_inside(directory, file) as opened:
        yield from read_chain_file(opened)


def _local_name(claim: ChainClaim, bundle: BundleJudge) -> str:
    """The name of a chain here; see the module's docstring."""
    if claim.id in RESERVED_CHAINS:
        return chain_name("import", f"{str(bundle.first_hashes[claim.id])[:16]}-{claim.id}")
    try:
        return check_chain_name(bundle.names[claim.id])
    except BadInput:
        return chain_name("import", claim.id)


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
