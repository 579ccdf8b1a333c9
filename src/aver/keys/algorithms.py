"""The two signature algorithms, as pure functions over bytes.

Ed25519 follows one strict rule: S < L, neither A nor R of small order, A canonically encoded, and
R = encode([S]B - [k]A) byte for byte. ML-DSA-65 is pure FIPS 204 with an empty context. A signature is lower-case hex
of the exact length, or it is refused, so each signature is written in one way only.

Verification returns a bool, and raises nothing for any input from a hostile record. The libraries are loaded at their
first use, so importing this module costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from aver.errors import BadInput
from aver.lazy_pattern import lazy_pattern
from aver.submodule import load_submodule

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey, MLDSA65PublicKey

SEED_BYTES = 32
ED25519_PUBLIC_BYTES = 32
ED25519_SIGNATURE_BYTES = 64
ML_DSA_65_PUBLIC_BYTES = 1952
ML_DSA_65_SIGNATURE_BYTES = 3309
FINGERPRINT_DIGITS = 16

PARSED_KEYS_KEPT = 64
"""How many parsed ML-DSA public keys are kept for the next record. A chain has a handful of signers."""


def hex_pattern(size: int) -> re.Pattern[str]:
    """The pattern of `size` bytes in lower-case hex."""
    return lazy_pattern(rf"[0-9a-f]{{{2 * size}}}")


_ED25519_SIGNATURE = hex_pattern(ED25519_SIGNATURE_BYTES)
_ML_DSA_65_SIGNATURE = hex_pattern(ML_DSA_65_SIGNATURE_BYTES)


def is_ed25519_signature_hex(signature: str) -> bool:
    """Whether it has the form of an Ed25519 signature. Checks no key."""
    return _ED25519_SIGNATURE.fullmatch(signature) is not None


def is_ml_dsa_65_signature_hex(signature: str) -> bool:
    """The same for ML-DSA-65."""
    return _ML_DSA_65_SIGNATURE.fullmatch(signature) is not None


def fingerprint(public_hex: str) -> str:
    """The name of a key: the first 16 hex digits of its Ed25519 public key."""
    return public_hex[:FINGERPRINT_DIGITS]


@cache
def _load_binding(name: str) -> Any:
    """Load one module of `nacl.bindings`, and initialise libsodium. A hook would wait 3 ms for the other 14 modules."""
    load_submodule("nacl.bindings", "sodium_core").sodium_init()
    return load_submodule("nacl.bindings", name)


@cache
def _load_sign_open() -> tuple[Callable[..., int], Any]:
    """libsodium's `crypto_sign_open`, and the pointer to nothing that tells it not to copy the message.

    PyNaCl's own function allocates memory for this copy, which takes 3 % of the time of a verification.
    """
    _load_binding("crypto_sign")  # It initialises the library.
    try:
        from nacl._sodium import ffi, lib  # type: ignore[import-not-found]

        return lib.crypto_sign_open, ffi.NULL
    except (ImportError, AttributeError):  # The name is private, so another version may not have it.
        return _sign_open_by_pynacl, None


def _sign_open_by_pynacl(_message: None, _size: None, signed: bytes, _signed_size: int, public: bytes) -> int:
    """The same by PyNaCl's own function."""
    from nacl.exceptions import BadSignatureError

    try:
        _load_binding("crypto_sign").crypto_sign_open(signed, public)
    except BadSignatureError:
        return -1
    return 0


def ed25519_from_seed(seed: bytes) -> tuple[bytes, bytes]:
    """`(public, secret)` of a 32-byte seed. Pass `secret` to `sign_ed25519`."""
    if len(seed) != SEED_BYTES:
        raise BadInput(f"an Ed25519 seed has {SEED_BYTES} bytes, not {len(seed)}")
    public, secret = _load_binding("crypto_sign").crypto_sign_seed_keypair(seed)
    return public, secret


def sign_ed25519(secret: bytes, message: bytes) -> str:
    """The signature of a message in lower-case hex."""
    signed: bytes = _load_binding("crypto_sign").crypto_sign(message, secret)
    return signed[:ED25519_SIGNATURE_BYTES].hex()


def verify_ed25519(public: bytes, message: bytes, signature_hex: str) -> bool:
    """Whether the signature is valid under the strict rule. Called once for every record."""
    # libsodium reads 32 bytes of the key without checking its length.
    if len(public) != ED25519_PUBLIC_BYTES or type(signature_hex) is not str:
        return False
    if _ED25519_SIGNATURE.fullmatch(signature_hex) is None:
        return False
    sign_open, nothing = _load_sign_open()
    signed = bytes.fromhex(signature_hex) + message
    return sign_open(nothing, nothing, signed, len(signed), public) == 0


def is_prime_order_point(public: bytes) -> bool:
    """Whether these bytes can be the public half of an Ed25519 key pair."""
    if len(public) != ED25519_PUBLIC_BYTES:
        return False
    return bool(_load_binding("crypto_core").crypto_core_ed25519_is_valid_point(public))


def ml_dsa_65_from_seed(seed: bytes) -> tuple[bytes, MLDSA65PrivateKey]:
    """`(public, private key)` of a 32-byte seed."""
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey

    if len(seed) != SEED_BYTES:
        raise BadInput(f"an ML-DSA-65 seed has {SEED_BYTES} bytes, not {len(seed)}")
    private = MLDSA65PrivateKey.from_seed_bytes(seed)
    return private.public_key().public_bytes_raw(), private


@lru_cache(maxsize=PARSED_KEYS_KEPT)
def _parse_ml_dsa_65_key(public: bytes) -> MLDSA65PublicKey:
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey

    return MLDSA65PublicKey.from_public_bytes(public)


def verify_ml_dsa_65(public: bytes, message: bytes, signature_hex: str) -> bool:
    """Whether the signature is valid: pure FIPS 204, empty context."""
    if len(public) != ML_DSA_65_PUBLIC_BYTES or type(signature_hex) is not str:
        return False
    if _ML_DSA_65_SIGNATURE.fullmatch(signature_hex) is None:
        return False
    from cryptography.exceptions import InvalidSignature

    try:
        _parse_ml_dsa_65_key(public).verify(bytes.fromhex(signature_hex), message)
    except (InvalidSignature, ValueError):
        return False
    return True
