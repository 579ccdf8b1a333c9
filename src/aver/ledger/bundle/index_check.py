"""Compare the claims of a bundle's index with its chains (check `index`).

The index is not signed. The public Explorer and other readers show its titles, times and signers, so a wrong claim
would mislead a person about records that are intact. The verifier computes every claim again from the records, by the
exporter's own code (`summary`), and reports each one that differs.

These claims cannot be computed from the records, and are not compared:

* `generated_at`;
* a public key in `keys`, `pq_keys` or `public_key` that neither this machine knows nor the bundle's valid `keys` chain
  records; it must still begin with its fingerprint;
* `fingerprint` and `public_key`, where there is no `head.json` that names the ledger's key.

Bundles of the public tool have no `head.json`, list further keys, and keep local paths in `db_path`; these are not
compared. Their titles are made by other code, so a title that differs is a warning.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from aver.capsule.aver_block import split_chain_name
from aver.errors import Unavailable
from aver.fast_dataclass import dataclass
from aver.keys import Ring
from aver.ledger.bundle.head_file import RecordedKey
from aver.ledger.bundle.layout import BLOBS, HEAD, INDEX, META, BundleIndex, ChainClaim
from aver.ledger.bundle.site import SITE_NAMES, is_site
from aver.ledger.bundle.summary import SIGNERS_MAX, TITLE_MAX, ChainFacts
from aver.ledger.checkpoint import Checkpoint
from aver.verdict import Finding, Place, Tally

CHECK = "index"

FINGERPRINT_LENGTH = 16

_NAME_SHOWN = 80
"""Characters of a claim or a file's name that a verdict repeats."""


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """Who claims something about a chain: the index, or the summary in the chain's own file."""

    name: str
    is_avers: bool
    """Whether the bundle is of an Aver ledger. Only there are all claims made by Aver's code."""


def check_chain_claim(
    claim: ChainClaim,
    facts: ChainFacts,
    source: ClaimSource,
    tally: Tally,
    chain: str | None,
) -> None:
    """Compare a chain's length and ends with the claims about it. If they differ, either may be wrong."""
    count, who = facts.count, source.name
    if claim.length is not None and claim.length != count:
        code = "TRUNCATED" if claim.length > count else "ROLLBACK"
        words = f"{who} claims {claim.length} records; {count} are here"
        tally.add(Finding(CHECK, "failed", code, words, Place(chain, min(claim.length, count))))
    elif count and claim.head_hash is not None and claim.head_hash != facts.head_hash:
        words = f"{who} claims another last record"
        tally.add(Finding(CHECK, "failed", "ROLLBACK", words, Place(chain, count - 1)))
    if count and claim.genesis_hash is not None and claim.genesis_hash != facts.genesis_hash:
        words = f"{who} claims another first record"
        tally.add(Finding(CHECK, "failed", "CHAIN_IDENTITY", words, Place(chain, 0)))


def check_shown_claims(
    claim: ChainClaim,
    facts: ChainFacts,
    source: ClaimSource,
    tally: Tally,
    place: Place,
    all_hashes_ok: bool | None,
    name: str,
) -> None:
    """Compare the claims that a reader of the index is shown. `all_hashes_ok` is None if no hash was computed.

    `name` is the chain's, or empty if nothing tells it.
    """
    if source.is_avers:
        warn_of_keys(claim.unknown, source.name, tally, place)
    if facts.count == 0:
        return
    compared: list[tuple[str, object, object]] = [
        ("an all_hashes_ok", claim.all_hashes_ok, claim.all_hashes_ok if all_hashes_ok is None else all_hashes_ok),
        ("a time of its first record", claim.started_at, facts.started_at),
        ("a time of its last record", claim.ended_at, facts.ended_at),
    ]
    if len(facts.signers) <= SIGNERS_MAX:
        compared.append(("signers", claim.signed_by, tuple(sorted(facts.signers))))
    else:
        tally.skip(CHECK, f"a chain has more than {SIGNERS_MAX} signers, which were not compared", matters=True)
    if source.is_avers and name:
        compared.append(("a tool", claim.tool or None, split_chain_name(name)[0]))
        compared.append(("a title", claim.title, facts.title or name))
        compared.append(("a path", claim.db_path, ""))
    for what, claimed, actual in compared:
        if claimed is not None and claimed != actual:
            shown = ascii(claimed)[:_NAME_SHOWN]
            words = f"{source.name} claims {what} that the records do not have: {shown}"
            tally.add(Finding(CHECK, "failed", "INDEX_MISMATCH", words, place))
    if not source.is_avers and claim.title not in (None, facts.title, facts.raw_title[:TITLE_MAX], name):
        words = f"{source.name} claims a title that the first request does not have: {ascii(claim.title)[:_NAME_SHOWN]}"
        tally.add(Finding(CHECK, "warning", "INDEX_MISMATCH", words, place))


def check_origin_claim(claim: ChainClaim, origin: object, source: ClaimSource, tally: Tally, place: Place) -> None:
    """Compare where a chain is said to come from with its first record. `origin` is None where it was made here."""
    if claim.origin not in (None, origin):
        shown = ascii(claim.origin)[:_NAME_SHOWN]
        words = f"{source.name} claims an origin that the records do not have: {shown}"
        tally.add(Finding(CHECK, "failed", "INDEX_MISMATCH", words, place))


def warn_of_keys(unknown: Collection[str], who: str, tally: Tally, place: Place) -> None:
    """Warn of keys that Aver does not write: a reader may show their values, and nothing was compared."""
    if unknown:
        listed = ", ".join(ascii(key)[1:-1][:_NAME_SHOWN] for key in unknown)
        words = f"{who} has keys that Aver does not know, and which were not compared: {listed}"
        tally.add(Finding(CHECK, "warning", "INDEX_MISMATCH", words, place))


def warn_of_members(unknown: Mapping[str, int], tally: Tally, chain: str | None, source: str | None = None) -> None:
    """Warn of members of records that Aver does not write. No signature covers them, and a reader may show them."""
    if unknown:
        listed = ", ".join(ascii(key)[1:-1][:_NAME_SHOWN] for key in unknown)
        words = f"records have members beside `canonical` that Aver does not know, and that nobody signed: {listed}"
        place = Place(chain, min(unknown.values()), source)
        tally.add(Finding(CHECK, "warning", "INDEX_MISMATCH", words, place))


def check_key_claims(
    index: BundleIndex,
    head: Checkpoint | None,
    signers: Collection[str],
    ring: Ring,
    recorded: Mapping[str, RecordedKey],
    tally: Tally,
) -> None:
    """Compare the keys in an Aver ledger's index with each other and with keys that are known or recorded."""
    warn_of_keys(index.unknown, "the index", tally, Place(source=INDEX))
    claimed = dict(index.keys or {})
    if index.public_key and index.fingerprint is not None:
        claimed.setdefault(index.fingerprint, index.public_key)
        if claimed[index.fingerprint] != index.public_key:
            _fail(tally, "public_key and keys have two keys of one fingerprint")
    if bool(index.public_key) != bool(index.fingerprint):
        _fail(tally, "public_key and fingerprint are not those of one key")
    for fingerprint, key in claimed.items():
        known = {one.ed25519 for one in ring.lookup(fingerprint)}
        known |= {recorded[fingerprint].public_key} if fingerprint in recorded else set()
        if key[:FINGERPRINT_LENGTH] != fingerprint or (known and key not in known):
            _fail(tally, f"its key of {ascii(fingerprint)[1:17]} is another than that signer's")
        elif fingerprint not in signers and fingerprint != index.fingerprint:
            _fail(tally, f"it lists the key {ascii(fingerprint)[1:17]}, which signed nothing here")
    for fingerprint, key in (index.pq_keys or {}).items():
        known = {one.ml_dsa_65 for one in ring.lookup(fingerprint) if one.ml_dsa_65}
        known |= {recorded[fingerprint].public_key_pq} if fingerprint in recorded else set()
        if fingerprint not in claimed or (known and key not in known):
            _fail(tally, f"its ML-DSA-65 key of {ascii(fingerprint)[1:17]} is another than that signer's")
    signers_of_head = set() if head is None else {signature.by for signature in head.statement.signatures}
    if head is not None and index.fingerprint not in (None, *signers_of_head):
        _fail(tally, f"it claims that the ledger's key is {ascii(index.fingerprint)[1:17]}; another signed {HEAD}")
    if head is not None and index.part is not head.part:
        _fail(tally, f"it claims {'a part' if index.part else 'all'} of the ledger, and {HEAD} states otherwise")


def check_unlisted_files(directory: Path, index: BundleIndex, blobs: Collection[str], tally: Tally) -> None:
    """Warn of files in the directory that the index does not list, and of blobs that no record refers to."""
    listed = {INDEX, HEAD, *(claim.file for claim in index.chains)}
    if index.meta is not None:
        listed.add(META)
    if is_site(directory):
        listed |= SITE_NAMES  # Compared by the check `page`.
    for name in _list_names(directory):
        if name == BLOBS and (directory / BLOBS).is_dir() and not (directory / BLOBS).is_symlink():
            for blob in _list_names(directory / BLOBS):
                if blob not in blobs:
                    _warn_of_file(f"{BLOBS}/{blob}", "no record refers to it", tally)
        elif name not in listed:
            _warn_of_file(name, "the index does not list it, and it was not verified", tally)


def _list_names(directory: Path) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                yield entry.name
    except OSError as error:
        raise Unavailable(f"cannot list {directory}: {error.strerror}") from error


def _warn_of_file(name: str, why: str, tally: Tally) -> None:
    shown = name if name.isprintable() and len(name) <= _NAME_SHOWN else ascii(name)[1:_NAME_SHOWN]
    tally.add(Finding(CHECK, "warning", "UNLISTED_FILE", f"{shown}: {why}", Place(source=shown)))


def _fail(tally: Tally, words: str) -> None:
    tally.add(Finding(CHECK, "failed", "INDEX_MISMATCH", words, Place(source=INDEX)))
