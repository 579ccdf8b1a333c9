"""Private keys in a store's directory: which files a ring entry has there, and the signer they make."""

from __future__ import annotations

import os
from pathlib import Path

from aver.errors import BadInput, IntegrityError, Refused, Unavailable
from aver.keys import files
from aver.keys.algorithms import SEED_BYTES
from aver.keys.ring import RingEntry
from aver.keys.sealed import SEALED_MAX, Seeds, open_seeds, seal_seeds
from aver.keys.signer import SeedSigner

__all__ = ["fresh_seeds", "is_sealed", "needs_passphrase", "read_sealed", "read_seeds", "signer_of", "write_seeds"]


def fresh_seeds(*, post_quantum: bool) -> Seeds:
    return Seeds(os.urandom(SEED_BYTES), os.urandom(SEED_BYTES) if post_quantum else None)


def signer_of(entry: RingEntry, seeds: Seeds) -> SeedSigner:
    """The signer of these seeds, if they are those of the ring's entry."""
    signer = SeedSigner(seeds.ed25519, seeds.ml_dsa_65)
    if signer.public != entry.key:
        raise IntegrityError(
            "KEY_MISMATCH",
            f"the private key of {entry.identity} belongs to {signer.fingerprint}, the ring says {entry.fingerprint}",
            evidence={"ring": entry.fingerprint, "private_key": signer.fingerprint},
            advice="restore keys/ and keyring.json from the same backup",
        )
    return signer


def is_sealed(directory: Path, entry: RingEntry) -> bool:
    """Whether the private key is kept under a passphrase."""
    return os.path.lexists(_path(directory, entry, files.SEALED_SUFFIX))


def read_sealed(directory: Path, entry: RingEntry) -> bytes | None:
    """The file that keeps the key under a passphrase, or None if the key is not kept so."""
    files.check_directory(directory)
    return files.read_private(_path(directory, entry, files.SEALED_SUFFIX), limit=SEALED_MAX)


def read_seeds(directory: Path, entry: RingEntry, passphrase: str | None) -> Seeds:
    sealed = read_sealed(directory, entry)
    if sealed is not None:
        if passphrase is None:
            raise needs_passphrase(entry.identity)
        return open_seeds(sealed, passphrase, f"the key of {entry.identity}")
    ed25519 = _read_seed(directory, entry, files.CLASSIC_SUFFIX)
    return Seeds(ed25519, _read_seed(directory, entry, files.PQ_SUFFIX) if entry.key.ml_dsa_65 else None)


def write_seeds(directory: Path, entry: RingEntry, seeds: Seeds, passphrase: str | None) -> None:
    """Write the private files of an entry: sealed where there is a passphrase, raw otherwise."""
    if passphrase is not None:
        files.write_private(_path(directory, entry, files.SEALED_SUFFIX), seal_seeds(seeds, passphrase))
        return
    files.write_private(_path(directory, entry, files.CLASSIC_SUFFIX), seeds.ed25519)
    if seeds.ml_dsa_65 is not None:
        files.write_private(_path(directory, entry, files.PQ_SUFFIX), seeds.ml_dsa_65)


def needs_passphrase(identity: str) -> Refused:
    return Refused(
        "PASSPHRASE_NEEDED",
        f"the key of {identity} is kept under a passphrase",
        advice="give the passphrase: unlock(identity, passphrase)",
    )


def _path(directory: Path, entry: RingEntry, suffix: str) -> Path:
    return directory / files.private_name(entry.identity, entry.epoch, suffix)


def _read_seed(directory: Path, entry: RingEntry, suffix: str) -> bytes:
    path = _path(directory, entry, suffix)
    seed = files.read_private(path, limit=SEED_BYTES)
    if seed is None:
        raise Unavailable(
            f"the private key of {entry.identity}, {path}, is missing",
            advice=f"restore it from a backup, or retire {entry.identity} and create a new key",
        )
    if len(seed) != SEED_BYTES:
        raise BadInput(f"{path} is not a key: it has {len(seed)} bytes, not {SEED_BYTES}")
    return seed
