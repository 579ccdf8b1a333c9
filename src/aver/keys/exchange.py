"""Public keys of other parties: the files that hold the known ones, and the formats of other programs.

The known keys are in two files of the home:

    known_keys.json      {fingerprint: Ed25519 public key}
    known_keys_pq.json   {fingerprint: ML-DSA-65 public key}

Aver uses the second file only for keys in the first. It writes the second file first, so that a change takes effect at
the one moment when the first file is replaced.

`build_key_export` writes keys for other programs, and `read_public_keys` reads theirs. Reading registers nothing:
`KeyStore.import_keys` does. `read_public_keys` takes 64 hex digits, or a path to

* a file of 64 hex digits;
* an Aver export (`build_key_export`), `keyring.json` or `known_keys.json`;
* a `keyring.json` of the Capsule Protocol's reference implementation (`epochs` with `qp_key_XXXX` fingerprints);
* a raw 32-byte seed, as that implementation and agent-capsule keep it in `key`: Aver derives its public half, and
  adds an ML-DSA-65 public key from `key.ml.pub` beside it;
* the `index.json` of an exported bundle (`public_key`, `keys`, `pq_keys`);
* a directory that holds any of these under their usual names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.capsule.json_document import check_object, check_version, dump_document, parse_document, text_field
from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.files.atomic import replace_file
from aver.files.regular import open_without_blocking, read_private_file, read_public_file, require_safe_directory
from aver.keys import algorithms
from aver.keys.public_key import FINGERPRINT_PATTERN, PublicKey
from aver.keys.ring import RING_MAX, Ring, RingEntry
from aver.keys.signers import SeedSigner
from aver.lazy_pattern import lazy_pattern

KNOWN_KEYS_MAX = 4 * 1024 * 1024
"""Largest file, in bytes: 45,000 keys, or 1,000 post-quantum halves."""


def known_key_paths(home: Path) -> tuple[Path, Path]:
    """The paths of both files."""
    return home / "known_keys.json", home / "known_keys_pq.json"


def read_known_keys(home: Path) -> dict[str, PublicKey]:
    """Read the known keys, by fingerprint. `Refused` if another user could have written the files."""
    paths = known_key_paths(home)
    documents: list[Any] = []
    for path in paths:
        raw = read_public_file(path, limit=KNOWN_KEYS_MAX)
        documents.append({} if raw is None else parse_document(raw, str(path), limit=KNOWN_KEYS_MAX))
    classic, pq = documents
    if classic:
        require_safe_directory(home)
    return known_keys_from_document(classic, pq, str(paths[0]))


def known_keys_from_document(classic: Any, pq: Any, where: str) -> dict[str, PublicKey]:
    """The keys of an object `{fingerprint: key}`, with their post-quantum halves from a second one."""
    known = {}
    for document in (classic, pq):
        if not isinstance(document, dict):
            raise BadInput(f"{where}: the keys must be an object of fingerprints and public keys")
    for name, public in classic.items():
        text_field(name, f"{where}: a fingerprint", FINGERPRINT_PATTERN)
        key = PublicKey.read(public, pq.get(name, ""), f"{where}: {name}")
        if key.fingerprint != name:
            raise BadInput(f"{where}: the key {key.fingerprint} is listed as {name}")
        known[name] = key
    return known


def save_known_keys(home: Path, known: Mapping[str, PublicKey]) -> None:
    """Replace both files. The caller holds the store's lock."""
    classic_path, pq_path = known_key_paths(home)
    # The halves first: after a crash in between, a half without its key is ignored, but a key must not lose its half.
    halves = {name: key.ml_dsa_65 for name, key in known.items() if key.ml_dsa_65}
    if halves or pq_path.exists():
        _write_key_file(pq_path, halves)
    _write_key_file(classic_path, {name: key.ed25519 for name, key in known.items()})


def _write_key_file(path: Path, keys: Mapping[str, str]) -> None:
    data = dump_document(dict(keys))
    if len(data) > KNOWN_KEYS_MAX:
        raise Refused("RING_FULL", f"{path} would grow beyond {KNOWN_KEYS_MAX} bytes", advice="forget some keys")
    replace_file(path, data)


EXPORT_FORMAT = "aver-public-keys"

KEY_FILE_NAMES = ("key", "keyring.json", "known_keys.json", "index.json")
PQ_PUBLIC_SUFFIX = ".ml.pub"

_PUBLIC_HEX = algorithms.hex_pattern(algorithms.ED25519_PUBLIC_BYTES)
_ANY_HEX = lazy_pattern(r"[0-9A-Fa-f]{64}")


def build_key_export(keys: Iterable[RingEntry | PublicKey]) -> dict[str, Any]:
    """A document of public keys for others. Entries of our ring also say whose they are and since when."""
    return {"format": EXPORT_FORMAT, "version": 1, "keys": [_export_key(key) for key in keys]}


def _export_key(key: RingEntry | PublicKey) -> dict[str, Any]:
    if isinstance(key, RingEntry):
        return key.to_dict()
    return {
        "algorithm": key.algorithm,
        "fingerprint": key.fingerprint,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
    }


def read_public_keys(source: str | Path) -> tuple[PublicKey, ...]:
    """Read the public keys in `source`, each once, in the order found. `BadInput` if there are none."""
    if isinstance(source, str) and _ANY_HEX.fullmatch(source):
        found: Iterable[PublicKey] = (PublicKey(source),)
    else:
        path = Path(source)
        files = [path]
        if os.path.isdir(path):
            files = [path / name for name in KEY_FILE_NAMES if os.path.lexists(path / name)]
        found = [key for file in files for key in _read_file(file)]
    keys = tuple(Ring.pin(key.check_usable() for key in found).known.values())
    if not keys:
        raise BadInput(f"no public key in {source}")
    return keys


def load_seed_signer(path: Path) -> SeedSigner:
    """The signer of a raw 32-byte Ed25519 seed in a file, or in the file `key` of a directory."""
    path = path / "key" if os.path.isdir(path) else path
    seed = read_private_file(path, limit=algorithms.SEED_BYTES)
    if seed is None:
        raise NotFound(f"there is no key file {path}")
    if len(seed) != algorithms.SEED_BYTES:
        raise BadInput(f"{path} is not a raw key: it has {len(seed)} bytes, not {algorithms.SEED_BYTES}")
    return SeedSigner(seed)


def _read_file(path: Path) -> Iterable[PublicKey]:
    """Read the public keys in a file. Its content says which format it has: the most exact format is tried first."""
    raw = _read_bounded(path, limit=RING_MAX)
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
        return (*(entry.key for entry in ring.entries), *ring.known.values())
    if "public_key" in data or "chains" in data:
        return _read_index(data, where)
    # The known keys of a home. Their post-quantum halves are in a second file beside them.
    classic_path, pq_path = known_key_paths(path.parent)
    pq_known: Any = {}
    if path == classic_path and pq_path.exists():
        pq_known = parse_document(_read_bounded(pq_path, limit=RING_MAX), str(pq_path), limit=RING_MAX)
    return known_keys_from_document(data, pq_known, where).values()


def _read_export(data: dict[str, Any], where: str) -> Iterator[PublicKey]:
    check_object(data, where, frozenset({"format", "version", "keys"}))
    check_version(data["version"], where)
    for index, item in enumerate(_check_list(data["keys"], f"{where}: keys")):
        place = f"{where}: keys[{index}]"
        if isinstance(item, dict) and "identity" in item:
            yield RingEntry.from_dict(item, place).key
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
    yield from known_keys_from_document(data.get("keys", {}), data.get("pq_keys", {}), where).values()
    if public := data.get("public_key"):
        yield PublicKey.read(public, "", f"{where}: public_key")


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
