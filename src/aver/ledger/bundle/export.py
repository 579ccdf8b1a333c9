"""Export chains as a bundle.

An export does these steps, in this order:

1. write an `index.json` that says `unfinished`;
2. write the chains and their blobs;
3. remove the files of an earlier export that are no longer needed;
4. replace the index by the complete one.

A crash at any moment leaves a directory that does not pass as a bundle, and the next export replaces it.

Records are copied as they are, intact or not: a bundle of a damaged ledger shows the damage. The index has only the
public keys that signed its records, and the ledger's own. Summaries contain no local path and no e-mail address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aver.capsule.aver_block import check_chain_name, split_chain_name
from aver.capsule.blobs import blob_references
from aver.capsule.json_reader import Unreadable
from aver.capsule.sealed import SEAL_KEYS, Sealed, content_hash
from aver.errors import AverError, BadInput, IntegrityError, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import open_replacement, replace_file, sync_directory, temporary_prefix
from aver.keys import LEDGER, PublicKey, SeedSigner
from aver.ledger.bundle.layout import BLOBS, INDEX, META, SUFFIX, BundleIndex, read_index
from aver.ledger.ledger import Ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.ledger.stores.protocol import ChainRow

TITLE_MAX = 90
"""Longest title of a chain, in characters."""

TITLE_SCAN_MAX = 4096
"""Characters of a request in which the title is searched."""

_E_MAIL = re.compile(r"[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s]+")
_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch
_BLOB_REFERENCE = b'"blob":{'


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export. `fingerprint` is of the key that seals this ledger now; empty if there is none."""

    path: Path
    chains: int
    capsules: int
    blobs: int
    fingerprint: str


@dataclass(slots=True)
class _ExportedChain:
    """Facts about a chain, collected while it is written."""

    genesis_hash: str | None = None
    head_hash: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    title: str = ""
    all_hashes_ok: bool = True
    signers: set[str] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)

    def add_record(self, record: Sealed) -> None:
        if self.genesis_hash is None:
            self.genesis_hash, self.started_at = record.hash, record.signed_at
        self.head_hash, self.ended_at = record.hash, record.signed_at
        if record.signed_by:
            self.signers.add(record.signed_by)
        self.all_hashes_ok = self.all_hashes_ok and content_hash(record.canonical) == record.hash
        if not self.title:
            self.title = _read_title(record)
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
) -> ExportResult:
    """Write chains as a bundle into the directory `out`, which must be new, empty, or an earlier bundle of this ledger.

    Without `chains` this exports the whole ledger with its meta chain. With `chains`, the meta chain is added only if
    `with_meta`. Without `blobs` the large values are left out. Raises `NotFound` if the ledger has no such chain, and
    `BadInput` if `out` contains anything else.
    """
    rows = _select_chains(ledger, chains, with_meta)
    for row in rows:
        check_chain_name(row.name)  # It becomes a file name, and a tampered ledger could contain any name.
    out = Path(out)
    before = _prepare_directory(out, ledger)
    files = {META if row.name == META_CHAIN else f"{row.name}{SUFFIX}": row for row in rows}
    old = set() if before is None else {*(claim.file for claim in before.chains), META, *before.files}
    # 1. It names the files, so that the next export knows what an interrupted one may have left.
    unfinished = {
        "unfinished": True,
        "generated_at": _current_time(),
        "ledger": ledger.id,
        "tenant": ledger.tenant,
        "files": sorted({*files, *old}),
        "chains": [],
    }
    _write_index(out, unfinished)
    # 2.
    summaries, meta, signers, digests = [], None, set(), set()
    for name, row in files.items():
        exported = _write_chain(ledger, row, out / name)
        signers |= exported.signers
        digests |= exported.blobs
        if row.name == META_CHAIN:
            meta = {"length": row.count, "head_hash": row.head, "all_hashes_ok": exported.all_hashes_ok}
        else:
            summaries.append(_build_summary(row, exported))
    written = _write_blobs(ledger, out, digests) if blobs else set()
    # 3.
    _remove_stale(out, old - files.keys(), {*files, *old}, written)
    # 4.
    summaries.sort(key=lambda summary: (summary["ended_at"] or "", summary["length"]), reverse=True)
    key = _sealing_key(ledger)
    capsules = sum(summary["length"] for summary in summaries)
    _write_index(
        out,
        {
            "generated_at": _current_time(),
            "public_key": "" if key is None else key.ed25519,
            "fingerprint": "" if key is None else key.fingerprint,
            **_public_keys(ledger, key, signers),
            "chain_count": len(summaries),
            "capsule_count": capsules,
            "meta": meta,
            "chains": summaries,
            "ledger": ledger.id,
            "tenant": ledger.tenant,
            "part": chains is not None,
            "blobs": len(written) if blobs else None,
        },
    )
    return ExportResult(out, len(summaries), capsules, len(written), "" if key is None else key.fingerprint)


def _select_chains(ledger: Ledger, chains: Iterable[str] | None, with_meta: bool) -> list[ChainRow]:
    rows = {row.name: row for row in ledger.store.chains(ledger.tenant) if row.count}
    if chains is None:
        return list(rows.values())
    names = dict.fromkeys(chains)
    if with_meta and META_CHAIN in rows:
        names[META_CHAIN] = None
    for name in names:
        if name not in rows:
            raise NotFound(f"there is no chain {name} in this ledger", advice="aver log lists the chains")
    return [rows[name] for name in names]


def _prepare_directory(out: Path, ledger: Ledger) -> BundleIndex | None:
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
                canonical = record.canonical.decode("utf-8")
            except UnicodeDecodeError:
                raise IntegrityError(
                    "SCHEMA_INVALID",
                    f"chain {row.name}: the record with the hash {record.hash[:16]} is not text and cannot be exported",
                    evidence=record,
                    advice="run: aver verify",
                ) from None
            file.write(orjson.dumps({**{key: getattr(record, key) for key in SEAL_KEYS}, "canonical": canonical}))
        if row.name == META_CHAIN:
            rest = {
                "length": row.count,
                "head_hash": row.head,
                "genesis_hash": exported.genesis_hash,
                "all_hashes_ok": exported.all_hashes_ok,
            }
        else:
            rest = {**_build_summary(row, exported), "db_path": ""}
        # Join the array and the rest to one object: leave out the rest's opening brace.
        file.write(b"]," + orjson.dumps(rest)[1:] + b"\n")
    return exported


def _build_summary(row: ChainRow, exported: _ExportedChain) -> dict[str, Any]:
    """The summary of a chain. Count and head come from the head row, so that lost records show as a difference."""
    summary = {
        "id": row.name,
        "tool": split_chain_name(row.name)[0],
        "title": exported.title or row.name,
        "length": row.count,
        "head_hash": row.head,
        "genesis_hash": exported.genesis_hash,
        "all_hashes_ok": exported.all_hashes_ok,
        "signed_by": sorted(exported.signers),
        "started_at": exported.started_at,
        "ended_at": exported.ended_at,
    }
    return {**summary, "origin": row.origin or row.name} if row.frozen else summary


def _read_title(record: Sealed) -> str:
    """The first line of the request, without e-mail addresses and home directories."""
    try:
        request = record.to_dict()["trigger"]["request"]
        text = request[:TITLE_SCAN_MAX].strip()
    except (AverError, AttributeError, KeyError, TypeError):
        return ""
    line = text.splitlines()[0] if text else ""
    return _HOME.sub("~", _E_MAIL.sub("[e-mail]", line)).encode("utf-8", "replace").decode()[:TITLE_MAX]


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
    found = {key.fingerprint: key for name in sorted(signers) for key in ring.lookup(name)}
    if own is not None:
        found.setdefault(own.fingerprint, own)
    return {
        "keys": {name: key.ed25519 for name, key in found.items()},
        "pq_keys": {name: key.ml_dsa_65 for name, key in found.items() if key.ml_dsa_65},
    }


def _current_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
