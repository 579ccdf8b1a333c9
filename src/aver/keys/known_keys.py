"""The files of other parties' public keys.

    known_keys.json      {fingerprint: Ed25519 public key}
    known_keys_pq.json   {fingerprint: ML-DSA-65 public key}

Aver uses the second file only for keys in the first. It writes the second file first, so that a change takes effect at
the one moment when the first file is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aver.capsule.json_document import dump_document, parse_document, text_field
from aver.errors import BadInput, Refused
from aver.files.atomic import replace_file
from aver.keys import private_files
from aver.keys.public_key import FINGERPRINT_PATTERN, PublicKey

__all__ = ["KNOWN_KEYS_MAX", "known_key_paths", "known_keys_from_document", "read_known_keys", "save_known_keys"]

KNOWN_KEYS_MAX = 4 * 1024 * 1024
"""Largest file, in bytes: 45,000 keys, or 1,000 post-quantum halves."""


def known_key_paths(home: Path) -> tuple[Path, Path]:
    """The paths of both files."""
    return home / "known_keys.json", home / "known_keys_pq.json"


def read_known_keys(home: Path) -> dict[str, PublicKey]:
    """Read the known keys, by fingerprint. `Refused` if another user could have written the files."""
    classic_path, pq_path = known_key_paths(home)
    classic, pq = _read_key_file(classic_path), _read_key_file(pq_path)
    if classic:
        private_files.require_safe_directory(home)
    return known_keys_from_document(classic, pq, str(classic_path))


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
    halves = {name: key.ml_dsa_65 for name, key in known.items() if key.ml_dsa_65}
    if halves or pq_path.exists():
        _write_key_file(pq_path, halves)
    _write_key_file(classic_path, {name: key.ed25519 for name, key in known.items()})


def _read_key_file(path: Path) -> Any:
    raw = private_files.read_public_file(path, limit=KNOWN_KEYS_MAX)
    return {} if raw is None else parse_document(raw, str(path), limit=KNOWN_KEYS_MAX)


def _write_key_file(path: Path, keys: Mapping[str, str]) -> None:
    data = dump_document(dict(keys))
    if len(data) > KNOWN_KEYS_MAX:
        raise Refused("RING_FULL", f"{path} would grow beyond {KNOWN_KEYS_MAX} bytes", advice="forget some keys")
    replace_file(path, data)
