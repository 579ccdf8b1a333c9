"""Holding a bundle to checkpoints: is everything in it that was there when they were made?

What counts are the hashes of the records that are here, which the bundle's own verdict has held to their content. A
chain that a checkpoint knows and the bundle lacks is `CHAIN_MISSING`. Where the index calls the bundle a part, nobody
signed that: what is lacking is not checked, and the verdict is qualified.
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

UNKNOWN_OWNER = "of nobody who is named"


def check_bundle_checkpoints(path: Path, sources: Sequence[Path], ring: Ring, verdict: Verdict) -> Verdict:
    """The verdict on a bundle, with what checkpoints in files or repositories add to it."""
    directory = bundle_directory(path)
    try:
        index = read_index(directory)
        owner = find_owner(directory, index)
    except NotFound:
        raise
    except BadInput:
        return verdict  # Failed already, for what is wrong with its index.
    of = owner.ledger or UNKNOWN_OWNER, owner.tenant or UNKNOWN_OWNER
    found = [one for source in sources for one in read_checkpoints(source, of[0])]
    checkpoints = select_checkpoints(found, *of)
    heads, hashes = _read_heads(directory, index, checkpoints, of)
    tally = Tally(records=verdict.records)
    if index.part:
        checkpoints = list(_limit_to_part(checkpoints, heads, tally))
    held = HeadChecker(heads, lambda chain, place: hashes.get((chain, place)), tally, check=CHECK)
    check_against_checkpoints(held, checkpoints, ring, tally, of=of, own_keys=None)
    return extend_verdict(verdict, tally)


def _read_heads(
    directory: Path, index: BundleIndex, checkpoints: Sequence[Checkpoint], of: tuple[str, str]
) -> tuple[dict[str, Head], dict[tuple[str, int], str]]:
    """The head of every chain that is here, and the hashes at the places that checkpoints know."""
    wanted: dict[str, set[int]] = {}
    for one in checkpoints:
        for head in one.heads:
            wanted.setdefault(head.chain, set()).add(head.count - 1)
    heads: dict[str, Head] = {}
    hashes: dict[tuple[str, int], str] = {}
    for chain, file_name in _chain_files(index):
        if chain not in wanted:
            continue
        count, last = 0, None
        try:
            with open_inside(directory, file_name) as file:
                for item in read_chain_file(file):
                    if isinstance(item, Sealed):
                        last = item.hash
                        if count in wanted[chain]:
                            hashes[chain, count] = item.hash
                    count += isinstance(item, Sealed | BadInput)
        except BadInput:
            continue  # Reported where the chain itself is judged; not being here is what it comes to.
        heads[chain] = Head(*of, chain, count, last)
    return heads, hashes


def _chain_files(index: BundleIndex) -> Iterator[tuple[str, str]]:
    if index.meta is not None:
        yield META_CHAIN, META
    for claim in index.chains:
        yield claim.id, claim.file


def _limit_to_part(checkpoints: Sequence[Checkpoint], here: Mapping[str, Head], tally: Tally) -> Iterator[Checkpoint]:
    """The same checkpoints without the chains that a part of a ledger does not have."""
    missing = {head.chain for one in checkpoints for head in one.heads} - here.keys()
    if missing:
        words = f"{len(missing)} chains that checkpoints know are not in this part"
        tally.skip(CHECK, words, matters=True)
    for one in checkpoints:
        yield replace(one, heads=tuple(head for head in one.heads if head.chain in here))
