"""The private key files in a store's directory: their names, and reading, writing and destroying them.

Seeds are stored raw, or encrypted under a passphrase: Argon2id, then XSalsa20-Poly1305 (NaCl's secret box). The
encrypted file is JSON: `{version, kdf, opslimit, memlimit, salt, nonce, box}`, bytes as lower-case hex. The box
holds the Ed25519 seed and, for a hybrid key, the ML-DSA-65 seed after it. The cost parameters of the key derivation
have limits, so that a planted file cannot exhaust the machine.

A private key must be a regular file that only its owner can read and write, in a directory that no other user can
write. Otherwise Aver refuses it (`UNSAFE_FILE`) and names the command that repairs it. A public file may be read by all
users, but written only by its owner. Symbolic links are not followed.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aver.capsule.json_document import check_object, check_version, dump_document, int_field, parse_document, text_field
from aver.errors import BadInput, IntegrityError, Refused, Unavailable
from aver.files.atomic import sync_directory
from aver.files.regular import read_private_file, require_safe_directory
from aver.keys.algorithms import SEED_BYTES, hex_pattern
from aver.keys.public_key import identity_from_slug, slug
from aver.keys.ring import EPOCH_MAX, Ring, RingEntry
from aver.keys.signers import SeedSigner
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

ENCRYPTED_SEEDS_MAX = 4096
"""Largest encrypted key file, in bytes. A real one has about 500."""

PASSPHRASE_MIN = 8
"""Fewest characters. Shorter ones are guessed, however slow the key derivation is."""
PASSPHRASE_MAX = 1024

MEMLIMIT_MIN, MEMLIMIT_MAX = 64 * 1024 * 1024, 1024 * 1024 * 1024
OPSLIMIT_MIN, OPSLIMIT_MAX = 2, 8
"""From libsodium's "interactive" to a little above "sensitive". Aver writes "moderate": 256 MiB and 3 passes."""

SALT_BYTES = 16
NONCE_BYTES = 24
TAG_BYTES = 16

_SALT = hex_pattern(SALT_BYTES)
_NONCE = hex_pattern(NONCE_BYTES)
_BOX = lazy_pattern(f"{hex_pattern(TAG_BYTES + SEED_BYTES).pattern}|{hex_pattern(TAG_BYTES + 2 * SEED_BYTES).pattern}")
_FILE_FIELDS = frozenset({"version", "kdf", "opslimit", "memlimit", "salt", "nonce", "box"})


@dataclass(frozen=True, slots=True, repr=False)
class Seeds:
    """A private key. Its repr shows nothing of it."""

    ed25519: bytes
    ml_dsa_65: bytes | None = None


def encrypt_seeds(seeds: Seeds, passphrase: str) -> bytes:
    """Encrypt seeds under a passphrase; returns the bytes of the file. `BadInput` for a bad passphrase."""
    from nacl.pwhash import argon2id
    from nacl.secret import SecretBox

    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    opslimit, memlimit = argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE
    if not PASSPHRASE_MIN <= len(passphrase) <= PASSPHRASE_MAX:
        raise BadInput(f"a passphrase has {PASSPHRASE_MIN} to {PASSPHRASE_MAX} characters")
    key = _derive_key(_encode_passphrase(passphrase), salt, opslimit, memlimit)
    box = SecretBox(key).encrypt(seeds.ed25519 + (seeds.ml_dsa_65 or b""), nonce).ciphertext
    return dump_document(
        {
            "version": 1,
            "kdf": "argon2id",
            "opslimit": opslimit,
            "memlimit": memlimit,
            "salt": salt.hex(),
            "nonce": nonce.hex(),
            "box": box.hex(),
        }
    )


def decrypt_seeds(raw: bytes, passphrase: str, where: str) -> Seeds:
    """Decrypt the seeds in such a file. `Refused` with `BAD_PASSPHRASE` if this is not its passphrase."""
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    data = check_object(parse_document(raw, where, limit=ENCRYPTED_SEEDS_MAX), where, _FILE_FIELDS)
    check_version(data["version"], where)
    if data["kdf"] != "argon2id":
        raise BadInput(f"{where} names a key derivation other than argon2id")
    opslimit = int_field(data["opslimit"], f"{where}: opslimit", low=OPSLIMIT_MIN, high=OPSLIMIT_MAX)
    memlimit = int_field(data["memlimit"], f"{where}: memlimit", low=MEMLIMIT_MIN, high=MEMLIMIT_MAX)
    salt = bytes.fromhex(text_field(data["salt"], f"{where}: salt", _SALT))
    nonce = bytes.fromhex(text_field(data["nonce"], f"{where}: nonce", _NONCE))
    box = bytes.fromhex(text_field(data["box"], f"{where}: box", _BOX))
    key = _derive_key(_encode_passphrase(passphrase), salt, opslimit, memlimit)
    try:
        plain = SecretBox(key).decrypt(box, nonce)
    except CryptoError as error:
        debug("keys", "wrong passphrase, or a damaged file: %s", where)
        raise Refused("BAD_PASSPHRASE", f"this is not the passphrase of {where}", advice="try again") from error
    return Seeds(plain[:SEED_BYTES], plain[SEED_BYTES:] or None)


def _encode_passphrase(passphrase: str) -> bytes:
    """Encode in NFC, because keyboards produce the same letter in different forms."""
    try:
        return unicodedata.normalize("NFC", passphrase).encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput("the passphrase is not valid text") from error


def _derive_key(passphrase: bytes, salt: bytes, opslimit: int, memlimit: int) -> bytes:
    from nacl.exceptions import RuntimeError as SodiumError
    from nacl.pwhash import argon2id
    from nacl.secret import SecretBox

    try:
        return argon2id.kdf(SecretBox.KEY_SIZE, passphrase, salt, opslimit, memlimit)
    except SodiumError as error:
        raise Unavailable(
            f"not enough memory to open a passphrase: it takes {memlimit // 2**20} MiB", advice="free some memory"
        ) from error


def generate_seeds(*, post_quantum: bool) -> Seeds:
    """New random seeds."""
    return Seeds(os.urandom(SEED_BYTES), os.urandom(SEED_BYTES) if post_quantum else None)


def signer_from_seeds(entry: RingEntry, seeds: Seeds) -> SeedSigner:
    """The signer of these seeds. `IntegrityError` if their public key is not that of the ring's entry."""
    signer = SeedSigner(seeds.ed25519, seeds.ml_dsa_65)
    if signer.public != entry.key:
        raise IntegrityError(
            "KEY_MISMATCH",
            f"the private key of {entry.identity} belongs to {signer.fingerprint}, the ring says {entry.fingerprint}",
            evidence={"ring": entry.fingerprint, "private_key": signer.fingerprint},
            advice="restore keys/ and keyring.json from the same backup",
        )
    return signer


def read_encrypted_seeds(directory: Path, entry: RingEntry) -> bytes | None:
    """The content of the encrypted key file, or None if the key is not encrypted."""
    require_safe_directory(directory)
    return read_private_file(private_path(directory, entry, SEALED_SUFFIX), limit=ENCRYPTED_SEEDS_MAX)


def read_seeds(directory: Path, entry: RingEntry, passphrase: str | None) -> Seeds:
    """Read the private key of an entry. `Refused` if it needs a passphrase, or another one."""
    sealed = read_encrypted_seeds(directory, entry)
    if sealed is not None:
        if passphrase is None:
            raise passphrase_needed_error(entry.identity)
        return decrypt_seeds(sealed, passphrase, f"the key of {entry.identity}")
    seeds = []
    for suffix in (CLASSIC_SUFFIX, PQ_SUFFIX) if entry.key.ml_dsa_65 else (CLASSIC_SUFFIX,):
        path = private_path(directory, entry, suffix)
        seed = read_private_file(path, limit=SEED_BYTES)
        if seed is None:
            raise Unavailable(
                f"the private key of {entry.identity}, {path}, is missing",
                advice=f"restore it from a backup, or retire {entry.identity} and create a new key",
            )
        if len(seed) != SEED_BYTES:
            raise BadInput(f"{path} is not a key: it has {len(seed)} bytes, not {SEED_BYTES}")
        seeds.append(seed)
    return Seeds(*seeds)


def write_seeds(directory: Path, entry: RingEntry, seeds: Seeds, passphrase: str | None) -> None:
    """Write the private files of an entry: encrypted if there is a passphrase, otherwise raw."""
    if passphrase is not None:
        write_private_file(private_path(directory, entry, SEALED_SUFFIX), encrypt_seeds(seeds, passphrase))
        return
    write_private_file(private_path(directory, entry, CLASSIC_SUFFIX), seeds.ed25519)
    if seeds.ml_dsa_65 is not None:
        write_private_file(private_path(directory, entry, PQ_SUFFIX), seeds.ml_dsa_65)


def passphrase_needed_error(identity: str) -> Refused:
    return Refused(
        "PASSPHRASE_NEEDED",
        f"the key of {identity} is encrypted under a passphrase",
        advice="give the passphrase: unlock(identity, passphrase)",
    )


def private_path(directory: Path, entry: RingEntry, suffix: str) -> Path:
    return directory / f"{slug(entry.identity)}.{entry.epoch}.{suffix}"


# --- names


CLASSIC_SUFFIX = "key"
PQ_SUFFIX = "pq"
SEALED_SUFFIX = "sealed.json"

_PRIVATE_FILE_NAME = lazy_pattern(r"(.+)\.(0|[1-9][0-9]{0,6})\.(key|pq|sealed\.json)")

Stamp = tuple[int, int, int, int]
"""Inode, size, modification and change time. It differs after a file was replaced or edited."""


def is_private_file_name(name: str) -> bool:
    return _PRIVATE_FILE_NAME.fullmatch(name) is not None


def find_leftovers(ring: Ring, names: Iterable[str]) -> Iterator[str]:
    """The private files that an interrupted change left behind: those that belong to no active epoch.

    A file of an epoch that the ring does not list is a leftover only if the active epoch's own file is there, or there
    was never an epoch. Otherwise the ring is probably an old copy, and the file is the only key that works.
    """
    present = set(names)
    for name in sorted(present):
        match = _PRIVATE_FILE_NAME.fullmatch(name)
        identity = identity_from_slug(match[1]) if match else None
        if match is None or identity is None or int(match[2]) > EPOCH_MAX:
            continue
        entries = {entry.epoch: entry for entry in ring.entries_of(identity)}
        entry = entries.get(int(match[2]))
        active = ring.active(identity)
        if entry is not None:
            if entry is not active:
                yield name
            continue
        own = [f"{match[1]}.{active.epoch}.{end}" for end in (CLASSIC_SUFFIX, SEALED_SUFFIX)] if active else []
        if not entries or not present.isdisjoint(own):
            yield name


# --- reading and writing


def read_stamp(path: str) -> Stamp | None:
    """The stamp of a file, or None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def write_private_file(path: Path, data: bytes) -> None:
    """Create a private key file durably. `Refused` if it exists."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)  # The mode above is reduced by the umask.
            _write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(path.parent)
    except FileExistsError as error:
        raise Refused(
            "FILE_EXISTS", f"{path} is in the way and is not overwritten", advice="look at it and move it away"
        ) from error
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def destroy_file(path: Path) -> None:
    """Overwrite a private key file durably, and remove it. A symbolic link is removed, not followed."""
    try:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            # A symbolic link: what it leads to is not ours to overwrite.
        else:
            try:
                _write_all(handle, bytes(os.fstat(handle).st_size))
                os.fsync(handle)  # Before the removal: otherwise the zeros might never reach the disk.
            finally:
                os.close(handle)
        os.unlink(path)
        sync_directory(path.parent)
    except OSError as error:
        raise Unavailable(
            f"cannot destroy the retired key {path}: {error.strerror}", advice="remove the file by hand"
        ) from error


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
