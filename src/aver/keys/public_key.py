"""A public key, the identity that owns it, and its purpose.

A public key is an Ed25519 key, and for a hybrid key also an ML-DSA-65 key.

An identity is `ledger`, `agent:<name>`, `person:<name>` or `policy:<name>`; a name is 1 to 64 of
`A-Z a-z 0-9 . _ -` and does not begin with a dot. `slug` maps identities to file names one to one, also
on file systems that ignore case: `agent:Bob` becomes `agent-=bob`.
"""

from __future__ import annotations

from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys import algorithms
from aver.lazy_pattern import lazy_pattern

LEDGER = "ledger"
PURPOSES = ("seal", "approve", "policy", "checkpoint")
SEAL = "seal"
CHECKPOINT = "checkpoint"
POLICY = "policy"

_IDENTITY = lazy_pattern(r"ledger|(agent|person|policy):[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_DEFAULT_PURPOSE = {LEDGER: "seal", "agent": "seal", "person": "approve", "policy": "policy"}
_UPPER = lazy_pattern(r"[A-Z]")
_ESCAPED = lazy_pattern(r"=([a-z])")


def check_identity(identity: Any) -> str:
    """Return the identity; `BadInput` unless it is one."""
    if not isinstance(identity, str) or _IDENTITY.fullmatch(identity) is None:
        raise BadInput(
            f"{ascii(identity)[:80]} is not an identity",
            advice="use ledger, agent:NAME, person:NAME or policy:NAME; NAME has 1 to 64 of A-Z a-z 0-9 . _ -",
        )
    return identity


def default_purpose(identity: str) -> str:
    """The purpose of an identity's key where the caller names none."""
    return _DEFAULT_PURPOSE[check_identity(identity).partition(":")[0]]


def slug(identity: str) -> str:
    """The identity in a form that can begin a file name."""
    return _UPPER.sub(lambda match: "=" + match[0].lower(), check_identity(identity).replace(":", "-", 1))


def identity_from_slug(text: str) -> str | None:
    """The identity with this slug, or None."""
    identity = _ESCAPED.sub(lambda match: match[1].upper(), text)
    if identity != LEDGER:
        identity = identity.replace("-", ":", 1)
    return identity if _IDENTITY.fullmatch(identity) and slug(identity) == text else None


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
        halves = [(_ED25519, self.ed25519, "an Ed25519 public key", algorithms.ED25519_PUBLIC_BYTES)]
        if self.ml_dsa_65 != "":
            halves.append((_ML_DSA_65, self.ml_dsa_65, "an ML-DSA-65 public key", algorithms.ML_DSA_65_PUBLIC_BYTES))
        # The values come from documents and may be of any type.
        for pattern, value, what, size in halves:
            if not isinstance(value, str):
                raise BadInput(f"{what} is lower-case hex, not {type(value).__name__}")
            if pattern.fullmatch(value) is None:
                raise BadInput(
                    f"{what} is {2 * size} lower-case hex digits; this has {len(value)} characters",
                    advice="copy the key again, in lower case",
                )

    @classmethod
    def read(cls, ed25519: Any, ml_dsa_65: Any, where: str) -> PublicKey:
        """Read a key from a document. `BadInput` names the place `where`."""
        try:
            return cls(ed25519, ml_dsa_65)
        except BadInput as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error

    @property
    def fingerprint(self) -> str:
        return self.ed25519[: algorithms.FINGERPRINT_DIGITS]  # Not by the function: this is read all the time.

    @property
    def confirmation(self) -> str:
        """The text by which two people compare the whole key: the 64 digits of its Ed25519 half.

        With a post-quantum half, a colon and the SHA-256 of that half follow: its own 3,904 digits are too many.
        """
        if not self.ml_dsa_65:
            return self.ed25519
        import hashlib

        return f"{self.ed25519}:{hashlib.sha256(self.ml_dsa_65_bytes).hexdigest()}"

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


@dataclass(frozen=True, slots=True)
class KeyRole:
    """Whose key it is and what for, as a ring, an export or a `keys` chain says."""

    identity: str
    purpose: str
    algorithm: str = CLASSIC

    def __str__(self) -> str:
        return f"{self.identity}, purpose {self.purpose}"

    @property
    def may_seal(self) -> bool:
        """Whether the key may seal the records of ordinary chains."""
        return self.purpose == SEAL

    @property
    def may_attest(self) -> bool:
        """Whether the key may speak for the ledger: seal `meta` and `keys`, and sign checkpoints."""
        return self.purpose == CHECKPOINT or (self.identity == LEDGER and self.purpose == SEAL)

    def may_attest_policy(self, server: int) -> bool:
        """Whether the key may sign the attestations (purpose `policy`) of policy server 0 or 1."""
        return self.identity == f"policy:{server}" and self.purpose == POLICY
