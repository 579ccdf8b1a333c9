"""A public key: Ed25519, and for a hybrid key also ML-DSA-65."""

from __future__ import annotations

import re
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys import algorithms

__all__ = ["FINGERPRINT_PATTERN", "HYBRID", "PublicKey"]

CLASSIC = "ed25519"
HYBRID = "ed25519+ml-dsa-65"

FINGERPRINT_PATTERN = algorithms.hex_pattern(algorithms.FINGERPRINT_DIGITS // 2)
_ED25519 = algorithms.hex_pattern(algorithms.ED25519_PUBLIC_BYTES)
_ML_DSA_65 = algorithms.hex_pattern(algorithms.ML_DSA_65_PUBLIC_BYTES)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Both halves in lower-case hex. `ml_dsa_65` is empty if the key has no post-quantum half."""

    ed25519: str
    ml_dsa_65: str = ""

    def __post_init__(self) -> None:
        _check_hex(_ED25519, self.ed25519, "an Ed25519 public key", algorithms.ED25519_PUBLIC_BYTES)
        if self.ml_dsa_65 != "":
            _check_hex(_ML_DSA_65, self.ml_dsa_65, "an ML-DSA-65 public key", algorithms.ML_DSA_65_PUBLIC_BYTES)

    @classmethod
    def read(cls, ed25519: Any, ml_dsa_65: Any, where: str) -> PublicKey:
        """Read a key from a document. `BadInput` names the place `where`."""
        try:
            return cls(ed25519, ml_dsa_65)
        except BadInput as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error

    @property
    def fingerprint(self) -> str:
        return algorithms.fingerprint(self.ed25519)

    @property
    def algorithm(self) -> str:
        return HYBRID if self.ml_dsa_65 else CLASSIC

    @property
    def ed25519_bytes(self) -> bytes:
        return bytes.fromhex(self.ed25519)

    @property
    def ml_dsa_65_bytes(self) -> bytes:
        return bytes.fromhex(self.ml_dsa_65)

    def check_usable(self) -> PublicKey:
        """Return the key; `BadInput` if no key pair can have it, so that a typing error is found early."""
        if not algorithms.is_prime_order_point(self.ed25519_bytes):
            raise BadInput(f"{self.fingerprint} is not a usable Ed25519 public key", advice="copy the key again")
        return self


def _check_hex(pattern: re.Pattern[str], value: Any, what: str, size: int) -> None:
    if not isinstance(value, str):
        raise BadInput(f"{what} is lower-case hex, not {type(value).__name__}")
    if pattern.fullmatch(value) is None:
        raise BadInput(
            f"{what} is {2 * size} lower-case hex digits; this has {len(value)} characters",
            advice="copy the key again, in lower case",
        )
