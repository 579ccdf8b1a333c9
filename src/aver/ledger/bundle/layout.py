"""What a bundle is: a directory of JSON that anyone can verify with SHA3-256 and Ed25519 alone.

    index.json          what is here: keys, counts, one summary per chain, the meta chain's head
    <chain id>.json     one line: the summary, `db_path` (always "") and `capsules`
    meta.json           the meta chain, where the whole ledger was exported
    blobs/<sha256>      large values that records refer to

Each capsule is `{hash, signature, signature_pq, signed_at, signed_by, canonical}`, `canonical` being the exact text
that was hashed. This is the shape of the public agent-capsule tool. Aver's index adds what that tool has no need of:

    pq_keys             ML-DSA-65 public keys, by the same fingerprints as `keys`
    ledger, tenant      whose chains these are; each chain's first record says the same, signed
    part                true where only some chains were exported
    origin              in a chain's summary: the name under which it was made, where it had been imported
    blobs               how many there are, or null where they were left out
    unfinished          true while an export is under way; with the names of the `files` that it may have written

Nothing in an index is signed. What it claims is held to the chains, and nothing is trusted for being in it: neither
its keys nor its word that hashes are in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_elements, read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_inside, read_chunks
from aver.ledger.foreign.seal_checks import check_file_name, check_seal_fields

__all__ = [
    "BLOBS",
    "INDEX",
    "META",
    "SUFFIX",
    "BundleIndex",
    "ChainClaim",
    "bundle_directory",
    "read_chain_file",
    "read_index",
]

INDEX = "index.json"
META = "meta.json"
BLOBS = "blobs"
SUFFIX = ".json"

INDEX_MAX = ELEMENT_MAX
"""Bytes of an index: some 40,000 chains."""


@dataclass(frozen=True, slots=True)
class ChainClaim:
    """What an index, or a chain's file, says about a chain. None where it says nothing."""

    id: str
    tool: str = ""
    length: int | None = None
    head_hash: str | None = None
    genesis_hash: str | None = None
    origin: str | None = None
    """The name under which a chain was made, where the exporting ledger had imported it under another."""

    @property
    def name(self) -> str:
        """`<tool>.<session>`: Aver's way to name a chain, also for those of the public tool."""
        prefix = f"{self.tool}-"
        return f"{self.tool}.{self.id.removeprefix(prefix)}" if self.tool and self.id.startswith(prefix) else self.id

    @property
    def file(self) -> str:
        return self.id + SUFFIX


@dataclass(frozen=True, slots=True)
class BundleIndex:
    """An index as far as it matters for verification."""

    chains: tuple[ChainClaim, ...]
    meta: ChainClaim | None = None
    chain_count: int | None = None
    capsule_count: int | None = None
    ledger: str | None = None
    tenant: str | None = None
    part: bool = False
    blobs_left_out: bool = False
    unfinished: bool = False
    files: tuple[str, ...] = ()


def bundle_directory(path: Path) -> Path:
    """The directory of a bundle that was named by itself or by its index."""
    directory = path.parent if path.name == INDEX else path
    if not (directory / INDEX).is_file():
        raise NotFound(f"there is no bundle at {path}: no {INDEX}", advice="aver export makes one")
    return directory


def read_index(directory: Path) -> BundleIndex:
    """Read and check an index; `Unreadable` if it is none."""
    with open_inside(directory, INDEX) as file:
        data = read_json(file.read(INDEX_MAX + 1))
    if not isinstance(data, dict) or not isinstance(data.get("chains"), list):
        raise Unreadable("an index is an object that lists chains")
    chains = tuple(_parse_claim(summary, f"chains[{at}]") for at, summary in enumerate(data["chains"]))
    ids = [claim.id for claim in chains]
    for reserved in ("index", "meta"):
        if reserved in ids:
            raise Unreadable(f"a chain cannot have the id {reserved!r}")
    if len(set(ids)) != len(ids):
        raise Unreadable("two chains have the same id")
    if len({claim.name for claim in chains}) != len(chains):
        raise Unreadable("two chains have the same name")
    meta = data.get("meta")
    return BundleIndex(
        chains=chains,
        meta=None
        if meta is None
        else _parse_claim({**_require_object(meta, "meta"), "id": "meta", "origin": None}, "meta"),
        chain_count=_require_count(data.get("chain_count"), "chain_count"),
        capsule_count=_require_count(data.get("capsule_count"), "capsule_count"),
        ledger=_require_text(data.get("ledger"), "ledger"),
        tenant=_require_text(data.get("tenant"), "tenant"),
        part=data.get("part") is True,
        blobs_left_out="blobs" in data and data["blobs"] is None,
        unfinished=data.get("unfinished") is True,
        files=tuple(check_file_name(name) for name in _require_list(data.get("files", []), "files")),
    )


def read_chain_file(file: BinaryIO) -> Iterator[Sealed | BadInput | ChainClaim]:
    """The records of a chain's file, streamed, then what the file claims about itself.

    A record that cannot be read stands in its place as the reason. Where the file itself breaks off, the last thing
    given is the reason, and there is no claim.
    """
    try:
        for text, value in read_elements(read_chunks(file), "capsules"):
            if text:
                try:
                    yield _parse_sealed(value)
                except BadInput as error:
                    yield error
            else:
                yield _parse_claim({"id": "", **value}, "the chain's summary", own=True)
    except BadInput as error:
        yield error


def _parse_sealed(entry: Any) -> Sealed:
    if not isinstance(entry, dict) or not isinstance(entry.get("canonical"), str):
        raise Unreadable("a capsule in a bundle is an object with its seal and `canonical`")
    seal = [entry.get(key) for key in SEAL_KEYS]
    if not all(value is None or isinstance(value, str) for value in seal):
        raise Unreadable("the parts of a seal are strings")
    try:
        canonical = entry["canonical"].encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("`canonical` holds a lone surrogate, which no bytes stand for") from None
    return check_seal_fields(Sealed(canonical, *(value or "" for value in seal)))


def _parse_claim(summary: Any, where: str, *, own: bool = False) -> ChainClaim:
    summary = _require_object(summary, where)
    chain_id = summary.get("id")
    if not (own and chain_id == ""):
        check_file_name(chain_id)
        check_file_name(f"{chain_id}{SUFFIX}")
    return ChainClaim(
        id=chain_id,
        tool=_require_text(summary.get("tool"), f"{where}.tool") or "",
        length=_require_count(summary.get("length"), f"{where}.length"),
        head_hash=_require_text(summary.get("head_hash"), f"{where}.head_hash"),
        genesis_hash=_require_text(summary.get("genesis_hash"), f"{where}.genesis_hash"),
        origin=_require_text(summary.get("origin"), f"{where}.origin"),
    )


def _require_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{where} must be an object")
    return value


def _require_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Unreadable(f"{where} must be a list")
    return value


def _require_count(value: Any, where: str) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise Unreadable(f"{where} must be a number of things")
    return value


def _require_text(value: Any, where: str) -> str | None:
    if value is not None and not (isinstance(value, str) and value.isprintable() and len(value) <= 256):
        raise Unreadable(f"{where} must be a short text")
    return value
