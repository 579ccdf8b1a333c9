"""Compare a bundle with checkpoints: does it contain everything that existed when they were made?

The comparison uses the hashes of the bundle's records; the verdict on the bundle has checked them against the content.
A chain that a checkpoint has and the bundle lacks is `CHAIN_MISSING`. If the index calls the bundle a part, missing
chains are not checked; but the index is unsigned, so the verdict is then qualified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.files.regular import open_inside
from aver.keys import Ring
from aver.ledger.bundle.layout import META, BundleIndex, bundle_directory, read_chain_file, read_index
from aver.ledger.bundle.verify import find_owner
from aver.ledger.checkpoint import CHECK, Checkpoint, check_against_checkpoints, extend_verdict, select_checkpoints
from aver.ledger.checkpoint_files import read_checkpoints
from aver.ledger.head import Head
from aver.ledger.seen_heads import META_CHAIN, HeadChecker
from aver.verdict import Tally, Verdict

__all__ = ["check_bundle_checkpoints"]

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
