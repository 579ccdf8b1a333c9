"""The interface between a record and its signer.

A signer is any object with a `fingerprint` and a `sign`. It may hold a key in memory, ask an agent over a socket, or
use a hardware token.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol, cast

__all__ = ["HoldableSigner", "Signature", "Signer", "hold_signer"]


class Signature(NamedTuple):
    """Lower-case hex. `ml_dsa_65` is empty where the signer has no post-quantum key."""

    ed25519: str
    ml_dsa_65: str = ""


class Signer(Protocol):
    """Signs capsule hashes."""

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the Ed25519 public key that `sign` will use."""

    def sign(self, digest: str) -> Signature:
        """Sign the 64 ASCII characters of a capsule's SHA3-256 hex digest."""


class HoldableSigner(Protocol):
    """A signer whose key another process may rotate, and which can delay that rotation."""

    def hold(self) -> AbstractContextManager[Signer]:
        """Give a signer whose key is the active one, and stays so within the context."""


def hold_signer(signer: Signer | HoldableSigner) -> AbstractContextManager[Signer]:
    """Give a signer whose key does not change within the context."""
    hold = getattr(signer, "hold", None)  # isinstance with a protocol takes as long as hashing the record.
    return nullcontext(cast(Signer, signer)) if hold is None else hold()
