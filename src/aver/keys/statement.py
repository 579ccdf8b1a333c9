"""Signed statements: everything a key signs that is not a capsule.

The signed message is

    aver/<purpose>/v1 LF <canonical JSON of the content>

for example

    aver/rotation/v1
    {"at":"2026-11-16T23:25:01+00:00","identity":"ledger", ...}

A capsule's message is 64 hex digits without a line feed, so a statement's signature is never a capsule's. A purpose has
no slash and no line feed, so a signature for one purpose is never valid for another. The signer builds the message
itself from the content: no caller can give it bytes or a digest to sign.

A key with an ML-DSA-65 half signs with both halves, and both must be valid: a signature without one is `invalid`.

People can also sign with a passkey (`aver.keys.passkey`), but only statements of `PASSKEY_PURPOSES`. Such a signature
is `{"by", "passkey"}`. `check_statement` never calls it valid, because a ring has no passkeys: the room that knows the
passkey verifies it by `passkey_problem`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from aver.capsule.blobs import CAPSULE_MAX
from aver.capsule.canonical import canonical_json
from aver.capsule.json_document import check_object, check_version, dump_document, read_exactly, text_field
from aver.errors import BadInput, NotExact
from aver.fast_dataclass import dataclass
from aver.keys import algorithms
from aver.keys.public_key import FINGERPRINT_PATTERN, PublicKey
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.keys.passkey import PasskeySignature

SIGNATURES_MAX = 64
"""Most signatures on one statement. A quorum has a few; a post-quantum one takes 0.2 ms to verify."""

STATEMENT_MAX = CAPSULE_MAX
"""Largest content of a statement, in canonical bytes: a statement is stored inside a capsule."""

STATEMENT_MAX_BY_PURPOSE = {"checkpoint": 12 * 1024 * 1024, "report": 12 * 1024 * 1024}
"""The same for purposes whose statements are not stored in a capsule. The limit allows a checkpoint of 100,000 chains,
and fits into the largest JSON element that Aver reads."""

PASSKEY_PURPOSES = frozenset({"approval", "enrolment", "withdrawal"})
"""The purposes of statements that a passkey may sign: those by which people approve, and say who may."""

PURPOSE_PATTERN = lazy_pattern(r"[a-z][a-z0-9-]{0,31}")
_ED25519 = algorithms.hex_pattern(algorithms.ED25519_SIGNATURE_BYTES)
_ML_DSA_65 = algorithms.hex_pattern(algorithms.ML_DSA_65_SIGNATURE_BYTES)

SignatureOutcome = Literal["valid", "invalid", "unknown", "missing"]
"""`unknown`: the ring has no key of that name. `missing`: a required signer did not sign."""


@dataclass(frozen=True, slots=True)
class StatementSignature:
    """The signer's fingerprint, and its signatures in lower-case hex; or the signature of a passkey alone."""

    by: str
    ed25519: str = ""
    ml_dsa_65: str = ""
    passkey: PasskeySignature | None = None

    def to_dict(self) -> dict[str, Any]:
        if self.passkey is not None:
            return {"by": self.by, "passkey": self.passkey.to_dict()}
        return {"by": self.by, "ed25519": self.ed25519, "ml_dsa_65": self.ml_dsa_65}

    @classmethod
    def from_dict(cls, data: Any, where: str = "signature", purpose: str = "") -> StatementSignature:
        """Read a signature. `purpose` is that of its statement: few may be signed by a passkey."""
        if purpose in PASSKEY_PURPOSES and isinstance(data, dict) and "passkey" in data:
            from aver.keys.passkey import PasskeySignature  # Here, because hooks read statements, and few have one.

            data = check_object(data, where, frozenset({"by", "passkey"}))
            by = text_field(data["by"], f"{where}.by", FINGERPRINT_PATTERN)
            return cls(by, passkey=PasskeySignature.from_dict(data["passkey"], f"{where}.passkey"))
        data = check_object(data, where, frozenset({"by", "ed25519", "ml_dsa_65"}))
        ml_dsa_65 = data["ml_dsa_65"]
        return cls(
            by=text_field(data["by"], f"{where}.by", FINGERPRINT_PATTERN),
            ed25519=text_field(data["ed25519"], f"{where}.ed25519", _ED25519),
            ml_dsa_65="" if ml_dsa_65 == "" else text_field(ml_dsa_65, f"{where}.ml_dsa_65", _ML_DSA_65),
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """A content, its purpose and its signatures. Without signatures it states nothing."""

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
                StatementSignature.from_dict(item, f"{where}.signatures[{index}]", purpose)
                for index, item in enumerate(signatures)
            ),
        )


def dump_statement(statement: Statement) -> bytes:
    """A statement as a file of its own."""
    return dump_document(statement.to_dict())


def read_statement_file(raw: bytes, where: str) -> Statement:
    """Read a file that `dump_statement` wrote. Raises `BadInput`, and `NotExact` if it is written otherwise."""
    return read_exactly(raw, where, lambda data: Statement.from_dict(data, where), dump_statement)


def encode_statement(statement: Statement) -> str:
    """A statement as one text that a person or a header can carry: base64url of its canonical JSON, without padding."""
    return base64.urlsafe_b64encode(_dump_compact(statement)).decode("ascii").rstrip("=")


def decode_statement(text: str, where: str) -> Statement:
    """Read the text of `encode_statement`. A statement has one such text. `BadInput` for any other."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise BadInput(f"{where} is not base64url") from None
    found = read_exactly(raw, where, lambda data: Statement.from_dict(data, where), _dump_compact)
    if encode_statement(found) != text:  # It has stray bits at its end, padding or other characters.
        raise NotExact(f"{where} is not base64url without padding")
    return found


def _dump_compact(statement: Statement) -> bytes:
    return canonical_json(statement.to_dict())


@dataclass(frozen=True, slots=True)
class SignatureResult:
    """The outcome of checking one signer's signature."""

    by: str
    outcome: SignatureOutcome
    key: PublicKey | None = None
    """The key that made a valid signature. `by` is only its fingerprint, which other keys may have, too."""


class StatementSigner(Protocol):
    """Signs statements of which it gets the whole content."""

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        """Build the message from `content` and sign it."""


class KeySource(Protocol):
    """The part of a ring that checking a statement needs."""

    @property
    def known(self) -> Mapping[str, PublicKey]:
        """The keys of others."""

    def lookup(self, signed_by: str) -> tuple[PublicKey, ...]:
        """Every key of that name."""


def statement_bytes(purpose: str, content: Any) -> bytes:
    """The message to sign. `NotCanonical` if the content has no canonical form, `BadInput` if it is too large."""
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
    """Build a statement that each of `signers` signs in turn."""
    signatures = tuple(signer.sign_statement(purpose, content) for signer in signers)
    if len(signatures) > SIGNATURES_MAX:
        raise BadInput(f"a statement carries at most {SIGNATURES_MAX} signatures")
    return Statement(purpose, content, signatures)


def check_statement(
    statement: Statement, ring: KeySource, *, signers_required: Collection[str] | None = None
) -> tuple[SignatureResult, ...]:
    """Check every signature. Returns one result for each, in order, then one `missing` for each absent signer.

    The caller decides whether a valid signer was entitled to state this.
    """
    message = statement_bytes(statement.purpose, statement.content)
    results = [_check_signature(each, message, ring) for each in statement.signatures]
    signed = {each.by for each in statement.signatures}
    absent = [required for required in dict.fromkeys(signers_required or ()) if required not in signed]
    return (*results, *(SignatureResult(by, "missing") for by in absent))


def _check_signature(signature: StatementSignature, message: bytes, ring: KeySource) -> SignatureResult:
    candidates = ring.lookup(signature.by)
    if not candidates:
        # Nobody signs the name of the signer. A known key under a name of nobody's was renamed.
        is_renamed = any(_is_valid_signature(key, message, signature) for key in ring.known.values())
        return SignatureResult(signature.by, "invalid" if is_renamed else "unknown")
    for key in candidates:
        if _is_valid_signature(key, message, signature):
            return SignatureResult(signature.by, "valid", key)
    return SignatureResult(signature.by, "invalid")


def _is_valid_signature(key: PublicKey, message: bytes, signature: StatementSignature) -> bool:
    if not algorithms.verify_ed25519(key.ed25519_bytes, message, signature.ed25519):
        return False
    return not key.ml_dsa_65 or algorithms.verify_ml_dsa_65(key.ml_dsa_65_bytes, message, signature.ml_dsa_65)
