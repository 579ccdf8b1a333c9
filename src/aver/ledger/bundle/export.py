"""Export chains as a bundle.

An export does these steps, in this order:

1. write an `index.json` that says `unfinished`;
2. write the chains and their blobs;
3. sign the heads of these chains, if the ledger's key is at hand, and write `head.json`;
4. remove the files of an interrupted export that are no longer needed;
5. replace the index by the complete one;
6. for a site, put the Explorer's page beside it (see `site`).

A crash at any moment leaves a directory that does not pass as a bundle, and the next export replaces it. A complete
bundle is never changed. With `force`, a new bundle is written beside it and then takes its place, so an export that
fails leaves the old bundle as it was.

Records are copied as they are, intact or not: a bundle of a damaged ledger shows the damage. The index has only the
public keys that signed its records, and the ledger's own. Summaries contain no local path and no e-mail address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aver.capsule.aver_block import check_chain_name
from aver.capsule.blobs import blob_references
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import Sealed, content_hash
from aver.errors import AverError, BadInput, IntegrityError, NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import (
    open_replacement,
    replace_file,
    replacement_directory,
    restore_directory,
    sync_directory,
    temporary_prefix,
)
from aver.files.new_file import path_exists_error
from aver.keys import LEDGER, PublicKey, SeedSigner, Statement
from aver.ledger.bundle.head_file import dump_head, read_recorded_keys
from aver.ledger.bundle.layout import BLOBS, HEAD, INDEX, META, SUFFIX, BundleIndex, dump_capsule, read_index
from aver.ledger.bundle.site import SITE_NAMES, list_site_files, page_directory, write_site
from aver.ledger.bundle.summary import ChainFacts, build_summary
from aver.ledger.checkpoint import make_bundle_head
from aver.ledger.head import Head
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.ledger.ledger import Ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.ledger.stores.protocol import ChainRow
from aver.log import debug
from aver.text import to_one_line

_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch
_BLOB_REFERENCE = b'"blob":{'


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export. The numbers are those that a verdict on the bundle has."""

    path: Path
    chains: int
    capsules: int
    """Records that were written."""
    blobs: int
    fingerprint: str
    """Of the key that seals this ledger now; empty if there is none."""
    head_signed: bool
    """Whether the bundle has a `head.json`. Without one, a verdict on it is at most `qualified`."""
    missing: int = 0
    """Records that the heads of the chains count, and that the ledger no longer has. A verdict on the bundle fails."""


@dataclass(slots=True)
class _ExportedChain:
    """Facts about a chain, collected while it is written."""

    facts: ChainFacts = field(default_factory=ChainFacts)
    all_hashes_ok: bool = True
    blobs: set[str] = field(default_factory=set)

    def add_record(self, record: Sealed) -> None:
        self.facts.add_record(record)
        self.all_hashes_ok = self.all_hashes_ok and content_hash(record.canonical) == record.hash
        # A search in the bytes first: parsing every record would make the export much slower.
        if _BLOB_REFERENCE in record.canonical:
            with suppress(AverError):  # The verifier reports a record that cannot be parsed.
                self.blobs.update(digest for digest, _ in blob_references(record.to_dict()))


def export_bundle(
    ledger: Ledger,
    out: Path,
    *,
    chains: Iterable[str] | None = None,
    with_meta: bool = False,
    blobs: bool = True,
    html: bool = False,
    force: bool = False,
) -> ExportResult:
    """Write chains as a bundle into the directory `out`, which must be new or empty.

    Without `chains` this exports the whole ledger with its meta chain. With `chains`, the chain `keys` is added, and
    the meta chain only if `with_meta`. Without `blobs` the large values are left out. With `html` the bundle is also a
    site. With `force`, the bundle replaces an earlier one of this ledger in `out`. Raises `NotFound` if the ledger has
    no such chain, and `BadInput` if `out` contains anything else.
    """
    rows = _select_chains(ledger, chains, with_meta)
    for row in rows:
        check_chain_name(row.name)  # It becomes a file name, and a tampered ledger could contain any name.
    if html:
        page_directory()  # Before anything is written: without the page there is no site.
    out, part = Path(out), chains is not None
    place = Path(os.path.realpath(out))  # The directory itself: a link to it is not replaced.
    restore_directory(place)
    before = _prepare_directory(out, ledger, force=force)
    if before is None or before.unfinished:
        done = _write_bundle(ledger, out, rows, before, part=part, blobs=blobs)
        if html:
            _add_page(out)
        return done
    with replacement_directory(place) as beside:
        done = _write_bundle(ledger, beside, rows, None, part=part, blobs=blobs)
        if html:
            _add_page(beside)
    return replace(done, path=out)


def _add_page(out: Path) -> None:
    """Step 6: the page, and the twins of the files that are there."""
    blobs = os.listdir(out / BLOBS) if (out / BLOBS).is_dir() else []
    files = list_site_files(read_index(out), blobs)
    write_site(out, [name for name in files if (out / name).is_file()])


def _write_bundle(
    ledger: Ledger, out: Path, rows: list[ChainRow], before: BundleIndex | None, *, part: bool, blobs: bool
) -> ExportResult:
    """Write a bundle into a directory that is empty, or has an unfinished one. The numbers are the module's."""
    files = {META if row.name == META_CHAIN else f"{row.name}{SUFFIX}": row for row in rows}
    old = set() if before is None else {*(claim.file for claim in before.chains), META, HEAD, *before.files}
    # 1. It names the files, so that the next export knows what an interrupted one may have left.
    unfinished = {
        "unfinished": True,
        "generated_at": _current_time(),
        "ledger": ledger.id,
        "tenant": ledger.tenant,
        "files": sorted({*files, HEAD, *old}),
        "chains": [],
    }
    _write_index(out, unfinished)
    # 2.
    summaries, meta, signers, digests = [], None, set(), set()
    capsules = missing = 0
    for name, row in files.items():
        exported = _write_chain(ledger, row, out / name)
        capsules += exported.facts.count
        # The head row alone does not tell: somebody may have deleted records and left it.
        missing += max(row.count - exported.facts.count, 0)
        signers |= exported.facts.signers
        digests |= exported.blobs
        if row.name == META_CHAIN:
            meta = {"length": row.count, "head_hash": row.head, "all_hashes_ok": exported.all_hashes_ok}
        else:
            summaries.append(_build_summary(row, exported))
    written = _write_blobs(ledger, out, digests) if blobs else set()
    # 3.
    head = _sign_head(ledger, rows, part=part)
    if head is not None:
        replace_file(out / HEAD, dump_head(head))
    # 4.
    kept = {*files, HEAD} if head is not None else {*files}
    _remove_stale(out, old - kept, {*files, HEAD, *old}, written)
    # 5.
    summaries.sort(key=lambda summary: (summary["ended_at"] or "", summary["length"]), reverse=True)
    key = _sealing_key(ledger)
    _write_index(
        out,
        {
            "generated_at": _current_time(),
            "public_key": "" if key is None else key.ed25519,
            "fingerprint": "" if key is None else key.fingerprint,
            **_public_keys(ledger, key, signers),
            "chain_count": len(summaries),
            "capsule_count": sum(summary["length"] for summary in summaries),
            "meta": meta,
            "chains": summaries,
            "ledger": ledger.id,
            "tenant": ledger.tenant,
            "part": part,
            "blobs": len(written) if blobs else None,
        },
    )
    fingerprint = "" if key is None else key.fingerprint
    return ExportResult(out, len(rows), capsules, len(written), fingerprint, head is not None, missing)


def _select_chains(ledger: Ledger, chains: Iterable[str] | None, with_meta: bool) -> list[ChainRow]:
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant) if row.count}
    if chains is None:
        return list(rows.values())
    names = dict.fromkeys(chains)
    # Without the chain `keys`, nothing in the bundle says which keys seal in this ledger, and until when.
    names |= {name: None for name in (KEYS_CHAIN, *((META_CHAIN,) if with_meta else ())) if name in rows}
    for name in names:
        if name not in rows:
            raise NotFound(f"there is no chain {name} in this ledger", advice="aver log lists the chains")
    return [rows[name] for name in names]


def _prepare_directory(out: Path, ledger: Ledger, *, force: bool) -> BundleIndex | None:
    """Create the directory, or check that it may be replaced. Returns the index of an earlier bundle in it."""
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An export that died before step 1 was complete leaves at most a temporary index.
        empty = all(name.startswith(temporary_prefix(INDEX)) for name in os.listdir(out))
    except FileExistsError:
        raise BadInput(f"{out} is not a directory") from None
    except OSError as error:
        raise Unavailable(f"cannot write to {out}: {error.strerror}") from error
    if empty:
        return None
    try:
        index = read_index(out)
    except (NotFound, Unreadable):
        raise BadInput(f"{out} is not empty and is not a bundle", advice="name a new or empty directory") from None
    if (index.ledger, index.tenant) != (ledger.id, ledger.tenant):
        raise BadInput(f"{out} contains a bundle of another ledger", advice="name a new or empty directory")
    # Blobs are written and removed in this directory: a link could lead them anywhere.
    if (out / BLOBS).is_symlink():
        raise BadInput(f"{out / BLOBS} is a link", advice="remove it")
    if index.unfinished:
        return index
    if not force:
        raise path_exists_error(out)
    # The whole directory is replaced. A file that is not the bundle's own would be lost with it.
    own = {INDEX, HEAD, META, BLOBS, *SITE_NAMES, *(claim.file for claim in index.chains)}
    other = sorted(name for name in os.listdir(out) if name not in own)
    if other:
        words = f"{out} also contains {to_one_line(other[0])}, which is not part of the bundle"
        raise BadInput(words, advice="move it elsewhere, or name a new directory")
    return index


def _write_chain(ledger: Ledger, row: ChainRow, path: Path) -> _ExportedChain:
    """Write a chain's file, one line of JSON: the capsules, then the summary."""
    exported = _ExportedChain()
    with open_replacement(path) as file:
        file.write(b'{"capsules":[')
        for number, record in enumerate(ledger.read(row.name, 0, row.count)):
            exported.add_record(record)
            file.write(b"," if number else b"")
            try:
                file.write(dump_capsule(record))
            except UnicodeDecodeError:
                raise IntegrityError(
                    "SCHEMA_INVALID",
                    f"chain {row.name}: the record with the hash {record.hash[:16]} is not text and cannot be exported",
                    evidence=record,
                    advice="run: aver verify",
                ) from None
        if row.name == META_CHAIN:
            rest = {
                "length": row.count,
                "head_hash": row.head,
                "genesis_hash": exported.facts.genesis_hash,
                "all_hashes_ok": exported.all_hashes_ok,
            }
        else:
            rest = {**_build_summary(row, exported), "db_path": ""}
        # Join the array and the rest to one object: leave out the rest's opening brace.
        file.write(b"]," + orjson.dumps(rest)[1:] + b"\n")
    return exported


def _build_summary(row: ChainRow, exported: _ExportedChain) -> dict[str, Any]:
    """The summary of a chain. Count and head come from the head row, so that lost records show as a difference."""
    summary = build_summary(
        row.name, exported.facts, length=row.count, head_hash=row.head, all_hashes_ok=exported.all_hashes_ok
    )
    return {**summary, "origin": row.origin or row.name} if row.frozen else summary


def _write_blobs(ledger: Ledger, out: Path, digests: set[str]) -> set[str]:
    """Write the blobs that the ledger has; the verifier reports missing ones. Returns their digests."""
    written = set()
    for digest in sorted(digests):
        blob = ledger.store.blob(ledger.tenant, digest)
        if blob is None:
            continue
        (out / BLOBS).mkdir(mode=0o700, exist_ok=True)
        replace_file(out / BLOBS / digest, blob.data)
        written.add(digest)
    return written


def _remove_stale(out: Path, stale: set[str], files: set[str], blobs: set[str]) -> None:
    """Remove the chains and blobs of an earlier export that are not in this one, and its temporary files.

    Only files that Aver's own index names, or whose names Aver makes, are removed.
    """
    beginnings = tuple(temporary_prefix(name) for name in {INDEX, *files})
    try:
        for name in os.listdir(out):
            if (name in stale and name.endswith(SUFFIX)) or name.startswith(beginnings):
                (out / name).unlink()
        for name in os.listdir(out / BLOBS) if (out / BLOBS).is_dir() else ():
            # Temporary files begin with a dot and the digest.
            if _DIGEST(name.lstrip(".")[:64]) and name not in blobs:
                (out / BLOBS / name).unlink()
        sync_directory(out)
    except OSError as error:
        raise Unavailable(f"cannot remove the files of an earlier export in {out}: {error.strerror}") from error


def _write_index(out: Path, index: dict[str, Any]) -> None:
    replace_file(out / INDEX, orjson.dumps(index, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _sign_head(ledger: Ledger, rows: Iterable[ChainRow], *, part: bool) -> Statement | None:
    """Sign the heads of the exported chains; None if no key is at hand that seals this ledger."""
    if _sealing_key(ledger) is None or not _has_own_key(ledger):
        return None
    heads = [Head(ledger.id, ledger.tenant, row.name, row.count, row.head) for row in rows]
    try:
        return make_bundle_head(ledger, heads, part=part)
    except (BadInput, NotFound, Refused, Unavailable) as error:
        # The key is under a passphrase, cannot be read, or its signer signs capsules only.
        debug("ledger", "the heads of the bundle are not signed: %s", error)
        return None


def _has_own_key(ledger: Ledger) -> bool:
    """Whether the key at hand is the ledger's own. On a copy, the key of this machine may never have sealed in it."""
    signer = ledger.signer()
    own = {entry.fingerprint for entry in ledger.keys.ring().entries_of(LEDGER)}
    if isinstance(signer, SeedSigner):
        own = {signer.fingerprint}
    try:
        recorded = read_recorded_keys(ledger.read(KEYS_CHAIN))
    except NotFound:
        return True  # A ledger that records no keys: its verdict says so.
    return not own.isdisjoint(recorded)


def _sealing_key(ledger: Ledger) -> PublicKey | None:
    """The public key with which the ledger seals now; None if it has none yet."""
    signer = ledger.signer()
    if isinstance(signer, SeedSigner):
        return signer.public
    active = ledger.keys.ring().active(LEDGER)
    return None if active is None else active.key


def _public_keys(ledger: Ledger, own: PublicKey | None, signers: set[str]) -> dict[str, dict[str, str]]:
    """The public keys with which these records can be verified, by fingerprint."""
    ring = ledger.keys.ring()
    # Where several keys have one fingerprint, nothing here tells which of them signed: leave them out.
    named = [ring.lookup(name) for name in sorted(signers)]
    found = {key.fingerprint: key for keys in named if len(keys) == 1 for key in keys}
    if own is not None:
        found.setdefault(own.fingerprint, own)
    return {
        "keys": {name: key.ed25519 for name, key in found.items()},
        "pq_keys": {name: key.ml_dsa_65 for name, key in found.items() if key.ml_dsa_65},
    }


def _current_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
