"""The format of a bundle: a directory of JSON that anyone can verify with SHA3-256 and Ed25519 alone.

    index.json          keys, counts, one summary per chain, the head of the meta chain
    <chain id>.json     one line: the summary, `db_path` (always "") and `capsules`
    meta.json           the meta chain, if the whole ledger was exported
    head.json           the signed heads of these chains: see `head_file`
    blobs/<sha256>      large values that records refer to

Each capsule is `{hash, signature, signature_pq, signed_at, signed_by, canonical}`; `canonical` is the exact text that
was hashed. This is the format of the public agent-capsule tool. Aver's index adds these keys:

    pq_keys             ML-DSA-65 public keys, by the same fingerprints as `keys`
    ledger, tenant      the owner of the chains; each chain's first record says the same, signed
    part                true if only some chains were exported
    origin              in a chain's summary: its original name, if the exporting ledger had imported it
    blobs               the number of blobs, or null if they were left out
    unfinished          true during an export; `files` then names the files that it may have written

The index is not signed. The verifier compares its claims with the chains (see `index_check`), and trusts nothing in it:
neither its keys nor its statement that all hashes are in order.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_elements, read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_inside, read_chunks
from aver.ledger.foreign.seal_checks import check_file_name, check_seal_fields

INDEX = "index.json"
META = "meta.json"
HEAD = "head.json"
BLOBS = "blobs"
SUFFIX = ".json"

RESERVED_IDS = frozenset({"head", "index", "meta"})
"""Ids that no chain in an index may have: they are the names of the bundle's own files."""

INDEX_MAX = ELEMENT_MAX
"""Largest index that is read, in bytes: enough for some 40,000 chains."""

SHORTEST_CHAIN = 1200
"""Bytes that the file of a chain has at least, if a tool wrote it: one record with all the members that CPS demands
and its seal take 1,190, and the shortest summary takes some 300."""

ABSENT_MAX = 1000
"""Most chains that an index may list without their files. With more, the index is not read."""

INDEX_KEYS = frozenset(
    {
        *("generated_at", "public_key", "fingerprint", "keys", "pq_keys", "chain_count", "capsule_count"),
        *("meta", "chains", "ledger", "tenant", "part", "blobs", "unfinished", "files"),
    }
)
"""The keys of an index that Aver writes."""

SUMMARY_KEYS = frozenset(
    {
        *("id", "tool", "title", "length", "head_hash", "genesis_hash", "origin"),
        *("all_hashes_ok", "signed_by", "started_at", "ended_at", "db_path"),
    }
)
"""The keys of a chain's summary that Aver writes."""

UNKNOWN_KEPT = 10
"""How many unknown keys of an index or a summary are noted."""

RECORD_KEYS = frozenset({*SEAL_KEYS, "canonical"})
"""The members of a capsule in a bundle."""


CLAIM_TEXT_MAX = 256
"""Most characters of a name or hash in an index. Verdicts repeat some of these."""


@dataclass(frozen=True, slots=True)
class ChainClaim:
    """The unsigned claims of an index, or of a chain's file, about a chain. None means no claim."""

    id: str
    tool: str = ""
    length: int | None = None
    head_hash: str | None = None
    genesis_hash: str | None = None
    origin: str | None = None
    """The chain's original name, if the exporting ledger had imported it under another name."""
    title: str | None = None
    all_hashes_ok: bool | None = None
    signed_by: tuple[str, ...] | None = None
    started_at: str | None = None
    ended_at: str | None = None
    db_path: str | None = None
    unknown: tuple[str, ...] = ()
    """Keys of the summary that are none of `SUMMARY_KEYS`."""

    @property
    def name(self) -> str:
        """`<tool>.<session>`, Aver's form of a chain's name, also for the public tool's `<tool>-<session>`."""
        prefix = f"{self.tool}-"
        return f"{self.tool}.{self.id.removeprefix(prefix)}" if self.tool and self.id.startswith(prefix) else self.id

    @property
    def file(self) -> str:
        return self.id + SUFFIX


@dataclass(frozen=True, slots=True)
class BundleIndex:
    """The parts of an index that verification and import need."""

    chains: tuple[ChainClaim, ...]
    meta: ChainClaim | None = None
    chain_count: int | None = None
    capsule_count: int | None = None
    ledger: str | None = None
    tenant: str | None = None
    part: bool = False
    blobs_left_out: bool = False
    blobs: int | None = None
    public_key: str | None = None
    fingerprint: str | None = None
    keys: Mapping[str, str] | None = None
    pq_keys: Mapping[str, str] | None = None
    unfinished: bool = False
    files: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Keys of the index that are none of `INDEX_KEYS`."""


def bundle_directory(path: Path) -> Path:
    """The directory of a bundle, from its own path or that of its index. Raises `NotFound`."""
    directory = path.parent if path.name == INDEX else path
    if not (directory / INDEX).is_file():
        raise NotFound(f"there is no bundle at {path}: no {INDEX}", advice="aver export makes one")
    return directory


def read_index(directory: Path) -> BundleIndex:
    """Read and check an index. Raises `Unreadable` if it is not valid."""
    with open_inside(directory, INDEX) as file:
        data = read_json(file.read(INDEX_MAX + 1))
    if not isinstance(data, dict) or not isinstance(data.get("chains"), list):
        raise Unreadable("an index is an object that lists chains")
    # A short index can list very many chains. Counting the files costs far less than looking for each of them.
    listed = len(data["chains"])
    with os.scandir(directory) as entries:
        here = sum(1 for _ in islice(entries, listed))
    if listed - here > ABSENT_MAX:
        raise Unreadable(f"it lists {listed} chains, and {here} files are here: the rest was not read")
    chains: dict[str, ChainClaim] = {}
    names: set[str] = set()
    for at, summary in enumerate(data["chains"]):
        claim = _parse_claim(summary, f"chains[{at}]")
        # Each id is the name of a file, so these would be the bundle's own files. Some systems ignore case.
        if claim.id.lower() in RESERVED_IDS:
            raise Unreadable(f"a chain cannot have the id {claim.id!r}")
        # Of two chains with one id or name, a reader would show the one and a verifier judge the other.
        if claim.id in chains:
            raise Unreadable("two chains have the same id")
        if claim.name in names:
            raise Unreadable("two chains have the same name")
        chains[claim.id] = claim
        names.add(claim.name)
    _refuse_shared_files(directory, {INDEX, META, HEAD, *(claim.file for claim in chains.values())})
    meta, files = data.get("meta"), data.get("files", [])
    if meta is not None and not isinstance(meta, dict):
        raise Unreadable("meta must be an object")
    if not isinstance(files, list):
        raise Unreadable("files must be a list")
    return BundleIndex(
        chains=tuple(chains.values()),
        meta=None if meta is None else _parse_claim({**meta, "id": "meta", "origin": None}, "meta"),
        chain_count=_require_count(data, "chain_count"),
        capsule_count=_require_count(data, "capsule_count"),
        ledger=_require_text(data, "ledger"),
        tenant=_require_text(data, "tenant"),
        part=_require_flag(data, "part"),
        blobs_left_out="blobs" in data and data["blobs"] is None,
        blobs=_require_count(data, "blobs"),
        public_key=_require_text(data, "public_key"),
        fingerprint=_require_text(data, "fingerprint"),
        keys=_require_texts(data, "keys"),
        pq_keys=_require_texts(data, "pq_keys"),
        unfinished=_require_flag(data, "unfinished"),
        files=tuple(check_file_name(name) for name in files),
        unknown=tuple(sorted(data.keys() - INDEX_KEYS)[:UNKNOWN_KEPT]),
    )


def _refuse_shared_files(directory: Path, names: Collection[str]) -> None:
    """Raise `Unreadable` if two of these names are hard links to one file.

    No two files of a bundle have the same content. One large file under thousands of names would be read each time.
    """
    linked: dict[tuple[int, int], str] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name not in names:
                continue
            status = entry.stat(follow_symlinks=False)
            if status.st_nlink > 1:
                other = linked.setdefault((status.st_dev, status.st_ino), entry.name)
                if other != entry.name:
                    words = "are two names of one file; each part of a bundle has a file of its own"
                    raise Unreadable(f"{min(other, entry.name)} and {max(other, entry.name)} {words}")


def read_chain_file(file: BinaryIO, unknown: dict[str, int] | None = None) -> Iterator[Sealed | BadInput | ChainClaim]:
    """Stream the records of a chain's file, then the file's own claim about the chain.

    An unreadable record is yielded as an error in its place. If the file itself breaks off, the last item is the error,
    and there is no claim. `unknown` gets the members of records that are none of `RECORD_KEYS`, at most `UNKNOWN_KEPT`,
    each with the number of the first record that has it.
    """
    number = -1
    try:
        for text, value in read_elements(read_chunks(file), "capsules"):
            if text:  # An element of `capsules`. At the end comes the rest of the document, without a text.
                number += 1
                try:
                    sealed = _parse_sealed(value)
                except BadInput as error:
                    yield error
                    continue
                if unknown is not None and value.keys() != RECORD_KEYS:
                    for key in sorted(value.keys() - RECORD_KEYS)[: UNKNOWN_KEPT - len(unknown)]:
                        unknown.setdefault(key, number)
                yield sealed
            else:
                yield _parse_claim({"id": "", **value}, "the chain's summary", own=True)
    except BadInput as error:
        yield error


def _parse_sealed(entry: Any) -> Sealed:
    if not isinstance(entry, dict) or not isinstance(entry.get("canonical"), str):
        raise Unreadable("a capsule in a bundle is an object with its seal and `canonical`")
    seal = []
    for key in SEAL_KEYS:
        value = entry.get(key)
        if value is not None and not isinstance(value, str):
            raise Unreadable("the parts of a seal are strings")
        seal.append(value or "")
    try:
        canonical = entry["canonical"].encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("`canonical` contains a lone surrogate, which has no bytes") from None
    return check_seal_fields(Sealed(canonical, *seal))


def _parse_claim(summary: Any, where: str, *, own: bool = False) -> ChainClaim:
    """Read a chain's summary in an index, or a chain file's `own` one, which need not name its chain."""
    if not isinstance(summary, dict):
        raise Unreadable(f"{where} must be an object")
    chain_id: Any = summary.get("id")
    if not (own and chain_id == ""):
        check_file_name(chain_id)  # The id becomes the name of a file: it must not lead out of the directory.
        check_file_name(f"{chain_id}{SUFFIX}")
    return ChainClaim(
        id=chain_id,
        tool=_require_text(summary, "tool", f"{where}.") or "",
        length=_require_count(summary, "length", f"{where}."),
        head_hash=_require_text(summary, "head_hash", f"{where}."),
        genesis_hash=_require_text(summary, "genesis_hash", f"{where}."),
        origin=_require_text(summary, "origin", f"{where}."),
        unknown=tuple(sorted(summary.keys() - SUMMARY_KEYS)[:UNKNOWN_KEPT]),
        **_parse_shown_claims(summary, f"{where}."),
    )


def _parse_shown_claims(summary: dict[str, Any], where: str) -> dict[str, Any]:
    """The claims that serve a person who reads the index. A verdict never repeats them as they are."""
    found: dict[str, Any] = {}
    for key in ("title", "started_at", "ended_at", "db_path"):
        value = summary.get(key)
        if value is not None and not isinstance(value, str):
            raise Unreadable(f"{where}{key} must be a text")
        found[key] = value
    signers = summary.get("signed_by")
    if signers is not None and not (isinstance(signers, list) and all(isinstance(name, str) for name in signers)):
        raise Unreadable(f"{where}signed_by must be a list of texts")
    ok = summary.get("all_hashes_ok")
    if ok is not None and not isinstance(ok, bool):
        raise Unreadable(f"{where}all_hashes_ok must be true or false")
    return {**found, "signed_by": None if signers is None else tuple(signers), "all_hashes_ok": ok}


def _require_flag(data: Mapping[str, Any], key: str) -> bool:
    """Read a flag that may be left out. Another reader may take 1 or "no" for true."""
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise Unreadable(f"{key} must be true or false")
    return value


def _require_count(data: dict[str, Any], key: str, where: str = "") -> int | None:
    value = data.get(key)
    # `type`, because a Python bool is an int, too.
    if value is not None and (type(value) is not int or value < 0):
        raise Unreadable(f"{where}{key} must be a count")
    return value


def _require_texts(data: dict[str, Any], key: str) -> Mapping[str, str] | None:
    value = data.get(key)
    if value is not None and not (isinstance(value, dict) and all(isinstance(item, str) for item in value.values())):
        raise Unreadable(f"{key} must be an object of texts")
    return value


def _require_text(data: dict[str, Any], key: str, where: str = "") -> str | None:
    value = data.get(key)
    if value is not None and not (isinstance(value, str) and value.isprintable() and len(value) <= CLAIM_TEXT_MAX):
        raise Unreadable(f"{where}{key} must be a short text")
    return value


def dump_capsule(record: Sealed) -> bytes:
    """A record as the JSON of a capsule in a bundle. Raises `UnicodeDecodeError` if its bytes are not text."""
    return orjson.dumps(
        {
            "hash": record.hash,
            "signature": record.signature,
            "signature_pq": record.signature_pq,
            "signed_at": record.signed_at,
            "signed_by": record.signed_by,
            "canonical": record.canonical.decode("utf-8"),
        }
    )
