"""A signer that holds its seeds in memory.

It signs two things only: the hex digest of a capsule, and statements whose bytes it builds itself. It
never shows its seeds and cannot be pickled or copied.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NoReturn

from aver.capsule.signing import Signature
from aver.errors import BadInput
from aver.keys import algorithms
from aver.keys.public_key import PublicKey
from aver.keys.statement import StatementSignature, statement_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey

__all__ = ["SeedSigner"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


class SeedSigner:
    """Signs with the key of a 32-byte seed, and with ML-DSA-65 too where a second seed is given."""

    __slots__ = ("_pq", "_secret", "fingerprint", "public")

    fingerprint: str
    public: PublicKey

    def __init__(self, seed: bytes, pq_seed: bytes | None = None) -> None:
        public, self._secret = algorithms.ed25519_from_seed(seed)
        pq_public = b""
        self._pq: MLDSA65PrivateKey | None = None
        if pq_seed is not None:
            pq_public, self._pq = algorithms.ml_dsa_65_from_seed(pq_seed)
        self.public = PublicKey(public.hex(), pq_public.hex())
        self.fingerprint = self.public.fingerprint

    @classmethod
    def generate(cls, *, pq: bool = False) -> SeedSigner:
        """A signer with fresh seeds that nobody else has; they end with it."""
        return cls(os.urandom(algorithms.SEED_BYTES), os.urandom(algorithms.SEED_BYTES) if pq else None)

    def sign(self, digest: str) -> Signature:
        """Sign the 64 ASCII characters of a capsule's digest; anything else is refused."""
        if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise BadInput(
                "a signer signs only capsule digests: 64 lower-case hex digits",
                advice="sign other things as statements",
            )
        return Signature(*self._sign(digest.encode("ascii")))

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        ed25519, ml_dsa_65 = self._sign(statement_bytes(purpose, content))
        return StatementSignature(self.fingerprint, ed25519, ml_dsa_65)

    def _sign(self, message: bytes) -> tuple[str, str]:
        ml_dsa_65 = "" if self._pq is None else self._pq.sign(message).hex()
        return algorithms.sign_ed25519(self._secret, message), ml_dsa_65

    def __repr__(self) -> str:
        return f"<SeedSigner {self.fingerprint} {self.public.algorithm}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a signer holds a private key and is not copied or pickled")
