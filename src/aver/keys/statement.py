"""Signed statements: everything a key signs that is not a capsule.

What is signed is

    aver/<purpose>/v1 LF <canonical JSON of the content>

so a statement's signature is never a capsule's (a capsule's message is 64 hex digits and holds no line
feed) and one purpose never passes for another (a purpose holds neither slash nor line feed). The signer
builds these bytes itself from the content shown to it; nobody hands it bytes or a digest to sign.

A key that has an ML-DSA-65 half signs with both, and both must hold: taking one away is `invalid`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, Protocol

from aver.capsule.blobs import CAPSULE_MAX
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object, check_version, text_field
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys import algorithms
from aver.keys.public_key import FINGERPRINT_PATTERN, PublicKey

__all__ = [
    "KeySource",
    "SignatureOutcome",
    "SignatureResult",
    "Statement",
    "StatementSignature",
    "StatementSigner",
    "check_statement",
    "sign_statement",
    "statement_bytes",
]

SIGNATURES_MAX = 64
"""Signatures on one statement. A quorum has a few; checking a post-quantum one takes a fifth of a millisecond."""

STATEMENT_MAX = CAPSULE_MAX
"""Canonical bytes of a statement's content: as large as a capsule, in which a statement rides."""

STATEMENT_MAX_BY_PURPOSE = {"checkpoint": 12 * 1024 * 1024}
"""The same for purposes whose statements ride in no capsule. A checkpoint of 100,000 chains is what fits into the
largest JSON element that is read."""

PURPOSE_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,31}")
_ED25519 = algorithms.hex_pattern(algorithms.ED25519_SIGNATURE_BYTES)
_ML_DSA_65 = algorithms.hex_pattern(algorithms.ML_DSA_65_SIGNATURE_BYTES)

SignatureOutcome = Literal["valid", "invalid", "unknown", "missing"]
"""`unknown`: no key of that name at hand. `missing`: a required signer who did not sign."""


@dataclass(frozen=True, slots=True)
class StatementSignature:
    """Who signed (a fingerprint) and the signatures in lower-case hex."""

    by: str
    ed25519: str
    ml_dsa_65: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"by": self.by, "ed25519": self.ed25519, "ml_dsa_65": self.ml_dsa_65}

    @classmethod
    def from_dict(cls, data: Any, where: str = "signature") -> StatementSignature:
        data = check_object(data, where, frozenset({"by", "ed25519", "ml_dsa_65"}))
        ml_dsa_65 = data["ml_dsa_65"]
        return cls(
            by=text_field(data["by"], f"{where}.by", FINGERPRINT_PATTERN),
            ed25519=text_field(data["ed25519"], f"{where}.ed25519", _ED25519),
            ml_dsa_65="" if ml_dsa_65 == "" else text_field(ml_dsa_65, f"{where}.ml_dsa_65", _ML_DSA_65),
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """A content, what it is for, and who signed it. Signatures may be none: then it states nothing."""

    purpose: str
    content: dict[str, Any]
    signatures: tuple[StatementSignature, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "v": 1,
            "purpose": self.purpose,
            "content": dict(self.content),
            "signatures": [signature.to_dict() for signature in self.signatures],
        }

    @classmethod
    def from_dict(cls, data: Any, where: str = "statement") -> Statement:
        data = check_object(data, where, frozenset({"v", "purpose", "content", "signatures"}))
        check_version(data["v"], where)
        purpose = text_field(data["purpose"], f"{where}.purpose", PURPOSE_PATTERN)
        signatures = data["signatures"]
        if not isinstance(signatures, list) or len(signatures) > SIGNATURES_MAX:
            raise BadInput(f"{where}.signatures must be a list of at most {SIGNATURES_MAX}")
        statement_bytes(purpose, data["content"])
        return cls(
            purpose=purpose,
            content=data["content"],
            signatures=tuple(
                StatementSignature.from_dict(item, f"{where}.signatures[{index}]")
                for index, item in enumerate(signatures)
            ),
        )


@dataclass(frozen=True, slots=True)
class SignatureResult:
    by: str
    outcome: SignatureOutcome


class StatementSigner(Protocol):
    """Signs contents that it can see whole."""

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        """Build the statement's bytes from `content` and sign those."""


class KeySource(Protocol):
    """What checking needs of a ring."""

    @property
    def closed(self) -> bool:
        """Whether a signer who is not listed counts as invalid rather than unknown."""

    def lookup(self, signed_by: str) -> tuple[PublicKey, ...]:
        """Every key of that name."""


def statement_bytes(purpose: str, content: Any) -> bytes:
    """The exact bytes that are signed. `NotCanonical` where the content has none."""
    if PURPOSE_PATTERN.fullmatch(purpose) is None:
        raise BadInput(f"{purpose[:40]!r} is not a purpose: lower-case letters, digits and hyphens")
    if not isinstance(content, dict):
        raise BadInput(f"a statement's content is an object, not {type(content).__name__}")
    canonical = canonical_json(content)
    limit = STATEMENT_MAX_BY_PURPOSE.get(purpose, STATEMENT_MAX)
    if len(canonical) > limit:
        raise BadInput(f"a {purpose} statement's content is at most {limit} bytes; this is {len(canonical)}")
    return f"aver/{purpose}/v1\n".encode("ascii") + canonical


def sign_statement(purpose: str, content: dict[str, Any], signers: Iterable[StatementSigner]) -> Statement:
    """The statement, signed by each of `signers` in turn."""
    signatures = tuple(signer.sign_statement(purpose, content) for signer in signers)
    if len(signatures) > SIGNATURES_MAX:
        raise BadInput(f"a statement carries at most {SIGNATURES_MAX} signatures")
    return Statement(purpose, content, signatures)


def check_statement(
    statement: Statement, ring: KeySource, *, signers_required: Collection[str] | None = None
) -> tuple[SignatureResult, ...]:
    """One result per signature, in order; then one `missing` per required fingerprint that did not sign.

    Whether a valid signer was entitled to say this, and still is, is for the caller to judge.
    """
    message = statement_bytes(statement.purpose, statement.content)
    results = [SignatureResult(one.by, _check_signature(one, message, ring)) for one in statement.signatures]
    signed = {one.by for one in statement.signatures}
    absent = [required for required in dict.fromkeys(signers_required or ()) if required not in signed]
    return (*results, *(SignatureResult(by, "missing") for by in absent))


def _check_signature(signature: StatementSignature, message: bytes, ring: KeySource) -> SignatureOutcome:
    candidates = ring.lookup(signature.by)
    if not candidates:
        return "invalid" if ring.closed else "unknown"
    return "valid" if any(_is_valid_signature(key, message, signature) for key in candidates) else "invalid"


def _is_valid_signature(key: PublicKey, message: bytes, signature: StatementSignature) -> bool:
    if not algorithms.verify_ed25519(key.ed25519_bytes, message, signature.ed25519):
        return False
    return not key.ml_dsa_65 or algorithms.verify_ml_dsa_65(key.ml_dsa_65_bytes, message, signature.ml_dsa_65)
