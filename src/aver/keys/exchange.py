"""Public keys of other parties: the files that hold the known ones, and the formats of other programs.

The known keys are in three files of the home:

    known_keys.json      {fingerprint: Ed25519 public key}
    known_keys_pq.json   {fingerprint: ML-DSA-65 public key}
    known_entries.json   {"version": 1, "entries": [...]}: what the owners exported about these keys

A second key with the same fingerprint is named by its 64 digits instead. Aver uses the other files only for keys in the
first. It writes the others first, so that a change takes effect at the one moment when the first file is replaced.

`build_key_export` writes keys for other programs, and `read_keys` reads theirs. Reading registers nothing:
`KeyStore.import_keys` does. `read_keys` takes 64 hex digits, or a path to

* a file of 64 hex digits;
* an Aver export (`build_key_export`), `keyring.json` or `known_keys.json`;
* a `keyring.json` of the Capsule Protocol's reference implementation (`epochs` with `qp_key_XXXX` fingerprints);
* a raw 32-byte seed, as that implementation and agent-capsule keep it in `key`: Aver derives its public half, and
  adds an ML-DSA-65 public key from `key.ml.pub` beside it;
* the `index.json` of an exported bundle (`public_key`, `keys`, `pq_keys`);
* a directory that holds any of these under their usual names.

The first two forms of Aver say more than the keys: whose each key is, its purpose, when it was retired, and the
rotation statement. `read_keys` then returns whole entries, so that a verifier honours a retirement.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.capsule.json_document import check_object, check_version, dump_document, parse_document, text_field
from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.files.atomic import replace_file
from aver.files.regular import open_without_blocking, read_private_file, read_public_file, require_safe_directory
from aver.keys import algorithms
from aver.keys.public_key import PublicKey
from aver.keys.ring import RING_MAX, Ring, RingEntry, check_key_name, entries_from_list
from aver.keys.signers import SeedSigner
from aver.lazy_pattern import lazy_pattern

KNOWN_KEYS_MAX = 4 * 1024 * 1024
"""Largest file, in bytes: 45,000 keys, or 1,000 post-quantum halves."""


def known_key_paths(home: Path) -> tuple[Path, Path, Path]:
    """The paths of the three files."""
    return home / "known_keys.json", home / "known_keys_pq.json", home / "known_entries.json"


def read_known_keys(home: Path) -> Ring:
    """Read the known keys. `Refused` if another user could have written the files."""
    paths = known_key_paths(home)
    documents: list[Any] = []
    for path, limit in zip(paths, (KNOWN_KEYS_MAX, KNOWN_KEYS_MAX, RING_MAX), strict=True):
        raw = read_public_file(path, limit=limit)
        documents.append({} if raw is None else parse_document(raw, str(path), limit=limit))
    classic, pq, published = documents
    if classic:
        require_safe_directory(home)
    known = known_keys_from_document(classic, pq, str(paths[0]))
    return Ring(known=known, published=_published_from_document(published, known, str(paths[2])))


def known_keys_from_document(classic: Any, pq: Any, where: str) -> dict[str, PublicKey]:
    """The keys of an object `{fingerprint: key}`, with their post-quantum halves from a second one."""
    known = {}
    for document in (classic, pq):
        if not isinstance(document, dict):
            raise BadInput(f"{where}: the keys must be an object of fingerprints and public keys")
    for name, public in classic.items():
        key = PublicKey.read(public, pq.get(name, ""), f"{where}: {name[:80]}")
        check_key_name(name, key, where)
        known[name] = key
    return known


def _published_from_document(document: Any, known: Mapping[str, PublicKey], where: str) -> tuple[RingEntry, ...]:
    """The entries in the file about known keys. Those of other keys are left over from an interrupted change."""
    if not document:
        return ()
    check_object(document, where, frozenset({"version", "entries"}))
    check_version(document["version"], where)
    entries = entries_from_list(document["entries"], f"{where}: entries")
    keys = {key.ed25519 for key in known.values()}
    return tuple(entry for entry in entries if entry.key.ed25519 in keys)


def save_known_keys(home: Path, ring: Ring) -> None:
    """Replace the files. The caller holds the store's lock."""
    classic_path, pq_path, entries_path = known_key_paths(home)
    # The others first: after a crash in between, a half without its key is ignored, but a key must not lose its half.
    halves = {name: key.ml_dsa_65 for name, key in ring.known.items() if key.ml_dsa_65}
    if halves or pq_path.exists():
        _write_key_file(pq_path, halves, KNOWN_KEYS_MAX)
    if ring.published or entries_path.exists():
        entries = [entry.to_dict() for entry in ring.published]
        _write_key_file(entries_path, {"version": 1, "entries": entries} if entries else {}, RING_MAX)
    _write_key_file(classic_path, {name: key.ed25519 for name, key in ring.known.items()}, KNOWN_KEYS_MAX)


def _write_key_file(path: Path, document: dict[str, Any], limit: int) -> None:
    data = dump_document(document)
    if len(data) > limit:
        raise Refused("RING_FULL", f"{path} would grow beyond {limit} bytes", advice="forget some keys")
    replace_file(path, data)


EXPORT_FORMAT = "aver-public-keys"

KEY_FILE_NAMES = ("key", "keyring.json", "known_keys.json", "index.json")
PQ_PUBLIC_SUFFIX = ".ml.pub"

_PUBLIC_HEX = algorithms.hex_pattern(algorithms.ED25519_PUBLIC_BYTES)
_ANY_HEX = lazy_pattern(r"[0-9A-Fa-f]{64}")
_FINGERPRINT_HEX = lazy_pattern(r"[0-9A-Fa-f]{16}")


def build_key_export(keys: Iterable[RingEntry | PublicKey]) -> dict[str, Any]:
    """A document of public keys for others. Entries of our ring also say whose they are and since when."""
    return {"format": EXPORT_FORMAT, "version": 1, "keys": [_export_key(key) for key in keys]}


def dump_key_export(keys: Iterable[RingEntry | PublicKey]) -> bytes:
    """The file of that document."""
    return json.dumps(build_key_export(keys), indent=2).encode("ascii") + b"\n"


def _export_key(key: RingEntry | PublicKey) -> dict[str, Any]:
    if isinstance(key, RingEntry):
        return key.to_dict()
    return {
        "algorithm": key.algorithm,
        "fingerprint": key.fingerprint,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
    }


def read_keys(
    source: str | Path, *, examine: Callable[[Path, bytes], None] | None = None
) -> tuple[PublicKey | RingEntry, ...]:
    """Read the public keys in `source`, each once, in the order found: as an entry where the source has one.

    `examine` gets each file with its bytes before they are used, and may raise. A pipe can be read only once, so nobody
    else can look at it. Raises `BadInput` if there are no keys, and for a fingerprint, the beginning of a key.
    """
    if isinstance(source, str) and _ANY_HEX.fullmatch(source):
        found: Iterable[PublicKey | RingEntry] = (PublicKey(source),)
    elif isinstance(source, str) and _FINGERPRINT_HEX.fullmatch(source) and not os.path.lexists(source):
        raise fingerprint_error(source)
    else:
        found = [key for file in list_key_files(Path(source)) for key in _read_file(file, examine)]
    pinned = Ring.pin(found)
    for key in pinned.known.values():
        key.check_usable()
    if not pinned.known:
        raise BadInput(f"no public key in {source}")
    # An entry's key may have got its post-quantum half from another place of the source.
    return tuple(
        key if (entry := pinned.entry_of(key)) is None else replace(entry, key=key) for key in pinned.known.values()
    )


def read_public_keys(source: str | Path) -> tuple[PublicKey, ...]:
    """The keys that `read_keys` returns, without what their owner says about them."""
    return tuple(key.key if isinstance(key, RingEntry) else key for key in read_keys(source))


def list_key_files(path: Path) -> list[Path]:
    """The files that `read_keys` reads for a path: the file itself, or the files of keys in a directory."""
    if not os.path.isdir(path):
        return [path]
    return [path / name for name in KEY_FILE_NAMES if os.path.lexists(path / name)]


def fingerprint_error(fingerprint: str) -> BadInput:
    return BadInput(
        f"{fingerprint} is a fingerprint: 16 digits, the beginning of a key. Other keys may begin the same",
        advice="give all 64 digits, or the file that the owner of the key makes with: aver keys export --out keys.json",
    )


def half_error(key: PublicKey) -> BadInput:
    return BadInput(
        f"{key.ed25519} is half of a key: the source has an ML-DSA-65 half beside it, which must be confirmed, too",
        advice=f"compare all of this with its owner, then give it: {key.confirmation}",
    )


def load_seed_signer(path: Path) -> SeedSigner:
    """The signer of a raw 32-byte Ed25519 seed in a file, or in the file `key` of a directory."""
    path = path / "key" if os.path.isdir(path) else path
    seed = read_private_file(path, limit=algorithms.SEED_BYTES)
    if seed is None:
        raise NotFound(f"there is no key file {path}")
    if len(seed) != algorithms.SEED_BYTES:
        raise BadInput(f"{path} is not a raw key: it has {len(seed)} bytes, not {algorithms.SEED_BYTES}")
    return SeedSigner(seed)


def is_bundle_index(raw: bytes) -> bool:
    """Whether a document has the form of a bundle's index, however it is called and whatever else is in it."""
    try:
        data = parse_document(raw, "", limit=RING_MAX)
    except BadInput:
        return False
    return isinstance(data, dict) and ("chains" in data or "public_key" in data)


def _read_file(path: Path, examine: Callable[[Path, bytes], None] | None) -> Iterable[PublicKey | RingEntry]:
    """Read the public keys in a file. Its content says which format it has: the most exact format is tried first."""
    raw = _read_bounded(path, limit=RING_MAX)
    if examine is not None:
        examine(path, raw)
    if len(raw) == algorithms.SEED_BYTES:
        key = load_seed_signer(path).public
        pq_path = path.with_name(path.name + PQ_PUBLIC_SUFFIX)
        if pq_path.exists():
            pq = _read_bounded(pq_path, limit=algorithms.ML_DSA_65_PUBLIC_BYTES)
            if len(pq) != algorithms.ML_DSA_65_PUBLIC_BYTES:
                raise BadInput(f"{pq_path} is not an ML-DSA-65 public key: it has {len(pq)} bytes")
            key = PublicKey(key.ed25519, pq.hex())
        return (key,)
    text = raw[:128].strip()
    if _ANY_HEX.fullmatch(text.decode("latin-1")) and len(raw) <= 128:
        return (PublicKey.read(text.decode("ascii"), "", str(path)),)
    data = parse_document(raw, str(path), limit=RING_MAX)
    if not isinstance(data, dict):
        raise BadInput(f"{path} is in no format of keys that Aver reads", advice="export the keys again")
    where = str(path)
    if data.get("format") == EXPORT_FORMAT:
        return _read_export(data, where)
    if "epochs" in data:
        return _read_epochs(data, where)
    if "entries" in data:
        ring = Ring.from_dict(data, where)
        return (*ring.entries, *ring.known.values(), *ring.published)
    if "public_key" in data or "chains" in data:
        return _read_index(data, where)
    # The known keys of a home. Their post-quantum halves and their entries are in files beside them.
    classic_path, *others = known_key_paths(path.parent)
    documents: list[Any] = [{}, {}]
    for at, other in enumerate(others if path == classic_path else ()):
        if other.exists():
            documents[at] = parse_document(_read_bounded(other, limit=RING_MAX), str(other), limit=RING_MAX)
    known = known_keys_from_document(data, documents[0], where)
    return (*known.values(), *_published_from_document(documents[1], known, str(others[1])))


def _read_export(data: dict[str, Any], where: str) -> Iterator[PublicKey | RingEntry]:
    check_object(data, where, frozenset({"format", "version", "keys"}))
    check_version(data["version"], where)
    for index, item in enumerate(_check_list(data["keys"], f"{where}: keys")):
        place = f"{where}: keys[{index}]"
        if isinstance(item, dict) and "identity" in item:
            yield RingEntry.from_dict(item, place)
            continue
        item = check_object(item, place, frozenset({"algorithm", "fingerprint", "public_key", "public_key_pq"}))
        key = PublicKey.read(item["public_key"], item["public_key_pq"], place)
        if item != _export_key(key):
            raise BadInput(f"{place}: algorithm or fingerprint contradicts the key")
        yield key


def _read_epochs(data: dict[str, Any], where: str) -> Iterator[PublicKey]:
    """Read the keys in another program's ring. The rest of that file is not checked."""
    check_version(data.get("version"), where)
    for index, epoch in enumerate(_check_list(data["epochs"], f"{where}: epochs")):
        place = f"{where}: epochs[{index}]"
        if not isinstance(epoch, dict):
            raise BadInput(f"{place} must be an object")
        key = PublicKey(text_field(epoch.get("public_key_hex"), f"{place}.public_key_hex", _PUBLIC_HEX))
        if epoch.get("fingerprint") not in (f"qp_key_{key.ed25519[:4]}", key.fingerprint):
            raise BadInput(f"{place}.fingerprint is not that of its key")
        yield key


def _read_index(data: dict[str, Any], where: str) -> Iterator[PublicKey]:
    """Read the keys that come with a bundle. They prove nothing about it until the user trusts them."""
    known = known_keys_from_document(data.get("keys", {}), data.get("pq_keys", {}), where)
    yield from known.values()
    if public := data.get("public_key"):
        key = PublicKey.read(public, "", f"{where}: public_key")
        if known.get(key.fingerprint, key).ed25519 != key.ed25519 and key.ed25519 not in known:
            raise BadInput(f"{where}: public_key is another key than the one with its fingerprint in keys")
        yield key


def _check_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(f"{where} must be a list")
    return value


def _read_bounded(path: Path, *, limit: int) -> bytes:
    """Read a file that anyone may have written. It may be a pipe or a device, such as /dev/stdin."""
    try:
        handle = open_without_blocking(path, follow=True)
        with os.fdopen(handle, "rb") as file:
            raw = file.read(limit + 1) or b""  # None from a pipe that holds nothing yet.
    except FileNotFoundError as error:
        words = f"{str(path)!a} is neither a key of 64 hex digits nor an existing file"
        raise NotFound(words, advice="give the whole key, or a file or directory of keys") from error
    except ValueError as error:
        raise BadInput(f"{ascii(str(path))[:80]} is not a path: {error}") from error
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > limit:
        raise BadInput(f"{path} is larger than {limit} bytes")
    return raw
