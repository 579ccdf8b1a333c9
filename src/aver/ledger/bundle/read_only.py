"""Open a bundle to read it as a ledger (see `aver.ledger.read_only`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aver.capsule.aver_block import chain_name, check_chain_name
from aver.config import Config
from aver.errors import BadInput, IntegrityError, NotFound
from aver.ledger.bundle.layout import META, bundle_directory, read_index
from aver.ledger.bundle.reader import BundleReader, read_blob
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.read_only import ReadChain, ReadOnlyLedger, ReadSource
from aver.ledger.seen_heads import META_CHAIN
from aver.verdict import CHECKS, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.examiner import ValidRecords

UNKNOWN_LEDGER, UNKNOWN_TENANT = "unknown", "default"
"""Stand for the ledger and tenant of a bundle of the public tools, which names none."""


def open_bundle(path: Path, options: VerifyOptions, config: Config) -> ReadOnlyLedger:
    """Verify a bundle and open it.

    Raises `IntegrityError` if its index cannot be read or its files change meanwhile, and `NotFound` for another
    tenant.
    """
    directory = bundle_directory(path)
    try:
        index = read_index(directory)
    except BadInput as error:
        words = f"{path} cannot be read: {error.message}"
        raise IntegrityError(unreadable_code(error), words, advice=f"see: aver verify {path}") from error
    bundle = BundleJudge(directory, index, options)
    verdict = _conclude(directory, bundle.judge(), options)
    tenant = bundle.owner.tenant or UNKNOWN_TENANT
    if options.tenant not in (None, tenant):
        raise NotFound(f"{path} is of the tenant {tenant}, not {options.tenant}", advice="leave out --tenant")
    names = _choose_names(bundle)
    files = {claim.id: claim.file for claim in index.chains} | {META_CHAIN: META}
    reader = BundleReader(directory, bundle.heads, files, bundle.digests)
    valid = ValidRecords(reader, bundle.rules, {chain: chain for chain in files}, bundle.doubtful)
    source = ReadSource(
        name=f"the bundle {path}",
        ledger=bundle.owner.ledger or UNKNOWN_LEDGER,
        tenant=tenant,
        records=((name, record) for chain, name in names.items() for record in valid.read(chain)),
        chains=_describe_chains(bundle, names),
        count=verdict.records,
        verdict=verdict,
        verify=partial(_verify_again, directory, {name: chain for chain, name in names.items()}),
        read_blob=partial(read_blob, directory),
        are_blobs_left_out=index.blobs_left_out,
    )
    try:
        return ReadOnlyLedger(source, config, options.examiners)
    except BadInput as error:
        # Every file could be read a moment ago. The verdict must not stand beside other records.
        words = f"{path} changed while it was read: {error.message}"
        raise IntegrityError("ROLLBACK", words, evidence=verdict, advice="copy it, and read the copy") from error


def _choose_names(bundle: BundleJudge) -> dict[str, str]:
    """The name under which each judged chain is read, by its id. Chains of the public tools get Aver's form of it."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for chain in bundle.heads:
        try:
            name = check_chain_name(bundle.names[chain])
        except BadInput:
            name = chain_name("import", chain)
        if name not in taken:  # A second chain of one name has failed the verdict.
            names[chain] = name
            taken.add(name)
    return names


def _describe_chains(bundle: BundleJudge, names: dict[str, str]) -> dict[str, ReadChain]:
    claims = {claim.id: claim for claim in bundle.index.chains}
    is_avers = bundle.owner.ledger is not None
    described = {}
    for chain, name in names.items():
        claim = claims.get(chain)
        # All chains of the public tools are of another tool. In an Aver bundle, some were imported.
        origin = None if claim is None else claim.origin if is_avers else claim.id
        described[name] = ReadChain(origin, bundle.heads[chain])
    return described


def _verify_again(directory: Path, ids: dict[str, str], chain: str | None, options: VerifyOptions) -> Verdict:
    """The verdict on the whole bundle, or on one chain, by the name under which it is read."""
    only = None
    if chain is not None and chain != META_CHAIN:
        if chain not in ids:
            raise NotFound(f"there is no chain {chain} in the bundle", advice="aver log --ledger BUNDLE lists them")
        only = {ids[chain]}
        if chain.startswith("gate."):  # Its decisions rest on approvals: without these they cannot be judged.
            only |= {key for name, key in ids.items() if name.startswith(("approvals.", "approvers."))}
    return _conclude(directory, BundleJudge(directory, read_index(directory), options).judge(only), options)


def _conclude(directory: Path, tally: Tally, options: VerifyOptions) -> Verdict:
    return conclude(f"bundle {directory.absolute().name}", tally, level=options.level, expected=(*CHECKS, "index"))
