"""What the record needs of a signer, and nothing more.

A signer is anything with a `fingerprint` and a `sign`. It may hold a key in memory, ask an agent over
a socket or drive a hardware token; the record does not know.
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
    """A signer whose key may be rotated by someone else, and that can hold rotation off for a while."""

    def hold(self) -> AbstractContextManager[Signer]:
        """Within the context, the yielded signer's key is the active one and stays so."""


def hold_signer(signer: Signer | HoldableSigner) -> AbstractContextManager[Signer]:
    """Hold the signer's key still if it can move; otherwise the signer as it is."""
    hold = getattr(signer, "hold", None)  # isinstance against a protocol would cost as much as hashing the record
    return nullcontext(cast(Signer, signer)) if hold is None else hold()
