"""A sealed record: the exact bytes that were hashed, and the seal over them.

    hash          SHA3-256 of the canonical bytes, lower-case hex
    signature     Ed25519 over the 64 ASCII characters of that hex
    signature_pq  ML-DSA-65 over the same, or empty
    signed_at     when it was sealed
    signed_by     the fingerprint of the signer

`seal` makes one. Nothing here verifies: an attacker may have written any part of a `Sealed`. `aver.verdict` verifies.

A signer is any object with a `fingerprint` and a `sign`. It may hold a key in memory, ask an agent over a socket, or
use a hardware token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, cast

import orjson

from aver.capsule.aver_block import read_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_reader import TOKENS_MAX, canonical_forms_from_dict, read_json, split_off_keys
from aver.capsule.model import Capsule
from aver.capsule.validate import normalise_values, validate
from aver.clock import now
from aver.errors import BadInput, InvalidCapsule
from aver.fast_dataclass import NamedTuple


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


_DIGITS_AS_ZEROS = bytes.maketrans(b"0123456789", b"0000000000")
_LONG_INTEGER = b"0" * 19
"""A run of so many digits, once all are zeros, may be an integer beyond 64 bits. A pattern takes ten times as long."""

SEAL_KEYS = ("hash", "signature", "signature_pq", "signed_at", "signed_by")


def content_hash(canonical: bytes) -> str:
    """The hash of a capsule: SHA3-256 of its canonical bytes, in lower-case hex."""
    return hashlib.sha3_256(canonical).hexdigest()


class Sealed:
    """A record as it is stored. Two are equal when their bytes and seals are equal."""

    __slots__ = (
        "_content",
        "canonical",
        "chain",
        "existed",
        "hash",
        "signature",
        "signature_pq",
        "signed_at",
        "signed_by",
    )

    def __init__(
        self,
        canonical: bytes,
        hash: str,  # noqa: A002 - the specification's name
        signature: str,
        signature_pq: str = "",
        signed_at: str = "",
        signed_by: str = "",
        *,
        chain: str | None = None,
        existed: bool = False,
    ) -> None:
        self.canonical = canonical
        self.hash = hash
        self.signature = signature
        self.signature_pq = signature_pq
        self.signed_at = signed_at
        self.signed_by = signed_by
        self.chain = chain
        """The name of the chain that it was read from or appended to; None for a single record."""
        self.existed = existed
        """True if `append_many` found its idempotency key in use, and returns the earlier record."""
        self._content: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Parse the signed content. `BadInput` if the bytes are not a JSON object."""
        try:
            # orjson has no limits, and reads integers beyond 64 bits as floats. The strict reader is right, but slow.
            strictly = len(self.canonical) > TOKENS_MAX or _LONG_INTEGER in self.canonical.translate(_DIGITS_AS_ZEROS)
            content = None if strictly else orjson.loads(self.canonical)
        except orjson.JSONDecodeError:
            content = None
        if content is None:
            content = read_json(self.canonical)
        if not isinstance(content, dict):
            raise BadInput("the sealed bytes are not a JSON object")
        return content

    def to_sealed_dict(self) -> dict[str, Any]:
        return {
            **self.to_dict(),
            "hash": self.hash,
            "signature": self.signature,
            "signature_pq": self.signature_pq,
            "signed_at": self.signed_at,
            "signed_by": self.signed_by,
        }

    @classmethod
    def from_sealed_dict(cls, data: Mapping[str, Any]) -> Sealed:
        """Read a capsule with its seal from one object. Takes the form that has the stored hash."""
        if not isinstance(data, Mapping):
            raise InvalidCapsule("wrong_type", "", "a sealed capsule must be a JSON object")
        content = {key: value for key, value in data.items() if key not in SEAL_KEYS}
        return cls._pick_form_by_hash(canonical_forms_from_dict(content), data)

    @classmethod
    def from_sealed_json(cls, text: bytes | str) -> Sealed:
        """The same from JSON text. A number may then keep the form in which it is written."""
        seal_values, forms = split_off_keys(text, SEAL_KEYS)
        return cls._pick_form_by_hash(forms, seal_values)

    @classmethod
    def _pick_form_by_hash(cls, forms: Iterator[bytes], data: Mapping[str, Any]) -> Sealed:
        """Return the record in the form that has the stored hash, or in the first form if none has."""
        canonical = next(forms)
        seal_values = []
        for key in SEAL_KEYS:
            value = data.get(key)
            if value is not None and not isinstance(value, str):
                raise InvalidCapsule("wrong_type", key, "must be a string")
            seal_values.append(value or "")
        first = sealed = cls(canonical, *seal_values)
        while content_hash(sealed.canonical) != sealed.hash:
            form = next(forms, None)
            if form is None:
                return first
            sealed = cls(form, *seal_values)
        return sealed

    @property
    def capsule(self) -> Capsule:
        """The record as a model, for reading. `to_dict()` has the details that a model cannot hold."""
        return Capsule.from_dict(self.to_dict())

    @property
    def uri(self) -> str:
        return f"capsule://sha3_{self.hash}"

    @property
    def content(self) -> Mapping[str, Any]:
        """The signed content, parsed once, for reading. Only `to_dict` returns an object that a caller may change."""
        return self._parse_once()

    @property
    def id(self) -> str:
        return str(self._parse_once().get("id"))

    @property
    def type(self) -> str:
        return str(self._parse_once().get("type"))

    @property
    def kind(self) -> str:
        return read_kind(self._parse_once())

    @property
    def sequence(self) -> int:
        value = self._parse_once().get("sequence")
        if type(value) is not int:
            raise InvalidCapsule("wrong_type", "sequence", "must be an integer")
        return value

    @property
    def previous_hash(self) -> str | None:
        value = self._parse_once().get("previous_hash")
        return None if value is None else str(value)

    def keep_content(self, content: dict[str, Any]) -> None:
        """Keep content that the caller has parsed from these very bytes. `content` then does not parse them again."""
        self._content = content

    def _parse_once(self) -> dict[str, Any]:
        if self._content is None:
            self._content = self.to_dict()
        return self._content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sealed):
            return NotImplemented
        return self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash(self._comparison_key())

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.canonical, self.hash, self.signature, self.signature_pq, self.signed_at, self.signed_by

    def __repr__(self) -> str:
        return f"<Sealed {self.hash[:16]} signed by {self.signed_by or 'nobody'}>"


def seal(capsule: Capsule | Mapping[str, Any], signer: Signer | HoldableSigner, *, unchecked: bool = False) -> Sealed:
    """Seal one capsule, without a ledger: hash its canonical bytes and sign the hash.

    Raises `InvalidCapsule` as the ledger does. With `unchecked` it seals any object that has canonical bytes.
    """
    content = capsule.to_dict() if isinstance(capsule, Capsule) else dict(capsule)
    if not unchecked:
        content = normalise_values(content)
        validate(content)
    with hold_signer(signer) as held:
        return seal_content(content, held, at=now())


def seal_content(content: Mapping[str, Any], signer: Signer, *, at: str) -> Sealed:
    """Seal content with a signer whose key does not change meanwhile."""
    canonical = canonical_bytes(content)
    digest = content_hash(canonical)
    signature = signer.sign(digest)
    return Sealed(canonical, digest, signature.ed25519, signature.ml_dsa_65, at, signer.fingerprint)
