"""Seeds encrypted under a passphrase: Argon2id, then XSalsa20-Poly1305 (NaCl's secret box).

The file is JSON: `{version, kdf, opslimit, memlimit, salt, nonce, box}`, bytes as lower-case hex. The box
holds the Ed25519 seed and, for a hybrid key, the ML-DSA-65 seed after it. The cost parameters of the key derivation
have limits, so that a planted file cannot exhaust the machine.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass

from aver.capsule.json_document import check_object, check_version, dump_document, int_field, parse_document, text_field
from aver.errors import BadInput, Refused, Unavailable
from aver.keys.algorithms import SEED_BYTES, hex_pattern
from aver.log import debug

__all__ = ["ENCRYPTED_SEEDS_MAX", "Seeds", "decrypt_seeds", "encrypt_seeds"]

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
_BOX = re.compile(f"{hex_pattern(TAG_BYTES + SEED_BYTES).pattern}|{hex_pattern(TAG_BYTES + 2 * SEED_BYTES).pattern}")
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
    key = _derive_key(_check_passphrase(passphrase), salt, opslimit, memlimit)
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


def _check_passphrase(passphrase: str) -> bytes:
    if not PASSPHRASE_MIN <= len(passphrase) <= PASSPHRASE_MAX:
        raise BadInput(f"a passphrase has {PASSPHRASE_MIN} to {PASSPHRASE_MAX} characters")
    return _encode_passphrase(passphrase)


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
