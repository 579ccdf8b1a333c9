"""Passkeys: keys that an authenticator holds. They sign statements, and nothing else. No I/O.

A passkey signs through a browser (WebAuthn, `navigator.credentials.get`). The browser gives it the SHA-256 of the
statement's bytes as `challenge`. The authenticator signs `authenticator_data` followed by SHA-256 of `client_data`:

    key        {"alg": "ES256", "public_key": "04…", "rp_id": "localhost", "credential": "AbC…"}
    signature  {"authenticator_data": "SZYN…", "client_data": "eyJ0…", "signature": "MEUC…"}

`public_key` is lower-case hex: for `ES256` the uncompressed point of P-256 (65 bytes), for `EdDSA` the 32 bytes of
Ed25519. All other parts are base64url without padding. The fingerprint is the first 16 hex digits of SHA-256 of the
public key's bytes.

`passkey_problem` says why a signature does not hold. It holds if all of this is true:

1. `client_data` is a JSON object without repeated keys. Its `type` is `webauthn.get`.
2. Its `challenge` is that of this statement.
3. Its `origin` is `http://localhost` at any port where `rp_id` is `localhost`. For any other `rp_id` it is `https://`
   and the `rp_id`, or a name under it, at any port. `crossOrigin` is absent or false.
4. `authenticator_data` begins with SHA-256 of `rp_id`. The person was present and was verified (UP and UV are set).
5. The signature holds. Ed25519 follows the one strict rule of `aver.keys.algorithms`. ES256 is in DER, and S is in the
   lower half of its range.

Each signature can be written in one way only: base64url has no stray bits, DER is exact, and S is low. An authenticator
may give a high S. The page then writes n − S, which the same key verifies.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from aver.capsule.json_document import check_object, text_field
from aver.capsule.json_reader import read_json
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys import algorithms
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

ES256 = "ES256"
EDDSA = "EdDSA"
ALGORITHMS = (ES256, EDDSA)

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

PASSKEY_SIGNATURE_MAX = 4096
"""Most characters of the three parts of a signature together. A browser makes some 400."""

CREDENTIAL_MAX = 1364
"""Most characters of a credential's id: 1,023 bytes, the limit of WebAuthn, in base64url."""

RP_ID_MAX = 253
"""Most characters of a domain name."""

AUTHENTICATOR_DATA_MIN = 37
"""Bytes of the shortest `authenticator_data`: the hash of `rp_id`, the flags, and a counter."""

LOCALHOST = "localhost"

_USER_PRESENT, _USER_VERIFIED = 0x01, 0x04
_FLAGS_AT = 32

_KEY_FIELDS = frozenset({"alg", "public_key", "rp_id", "credential"})
_SIGNATURE_FIELDS = frozenset({"authenticator_data", "client_data", "signature"})
_BASE64URL = lazy_pattern(r"[A-Za-z0-9_-]+")
_P256_PUBLIC = lazy_pattern(r"04[0-9a-f]{128}")
"""An uncompressed point: the byte 4, then both coordinates."""
_ED25519_PUBLIC = algorithms.hex_pattern(algorithms.ED25519_PUBLIC_BYTES)
# A name that ends with a number is an address, and WebAuthn takes no addresses. So the last label begins with a letter.
_RP_ID = lazy_pattern(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ORIGIN = lazy_pattern(r"(https?)://([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?")
_PORT_MAX = 65_535


def decode_base64url(text: str) -> bytes:
    """Decode base64url without padding. `BadInput` for any other text, also for one with stray bits at its end."""
    if _BASE64URL.fullmatch(text) is None or len(text) % 4 == 1:
        raise BadInput("it is not base64url without padding")
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode_base64url(raw) != text:
        raise BadInput("its base64url has stray bits at the end")
    return raw


def encode_base64url(raw: bytes) -> str:
    """Encode bytes as base64url without padding."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


@dataclass(frozen=True, slots=True)
class Passkey:
    """The public half of a passkey, the name of the site that it belongs to, and the id of its credential."""

    alg: str
    public_key: str
    rp_id: str
    credential: str

    def __post_init__(self) -> None:
        # The values come from documents and may be of any type.
        if self.alg not in ALGORITHMS:
            raise BadInput(f"passkey.alg must be one of {', '.join(ALGORITHMS)}")
        text_field(self.public_key, "passkey.public_key", _P256_PUBLIC if self.alg == ES256 else _ED25519_PUBLIC)
        if len(text_field(self.rp_id, "passkey.rp_id", _RP_ID)) > RP_ID_MAX:
            raise BadInput(f"passkey.rp_id has more than {RP_ID_MAX} characters")
        if len(text_field(self.credential, "passkey.credential", _BASE64URL)) > CREDENTIAL_MAX:
            raise BadInput(f"passkey.credential has more than {CREDENTIAL_MAX} characters")
        decode_base64url(self.credential)

    @classmethod
    def read(cls, data: Any, where: str) -> Passkey:
        """Read a passkey from a document. `BadInput` names the place `where`."""
        data = check_object(data, f"{where}.passkey", _KEY_FIELDS)
        try:
            return cls(**data)
        except BadInput as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error

    def to_dict(self) -> dict[str, str]:
        return {
            "alg": self.alg,
            "public_key": self.public_key,
            "rp_id": self.rp_id,
            "credential": self.credential,
        }

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of SHA-256 of the public key's bytes."""
        return hashlib.sha256(bytes.fromhex(self.public_key)).hexdigest()[: algorithms.FINGERPRINT_DIGITS]

    def check_usable(self) -> Passkey:
        """Return the passkey; `BadInput` if no key pair can have it."""
        raw = bytes.fromhex(self.public_key)
        is_usable = _is_p256_point(raw) if self.alg == ES256 else algorithms.is_prime_order_point(raw)
        if not is_usable:
            raise BadInput(
                f"{self.fingerprint} is not a usable {self.alg} public key", advice="enrol the passkey again"
            )
        return self


@dataclass(frozen=True, slots=True)
class PasskeySignature:
    """The signature of an authenticator and its browser on one statement. Each part is base64url without padding."""

    authenticator_data: str
    client_data: str
    signature: str

    def to_dict(self) -> dict[str, str]:
        return {
            "authenticator_data": self.authenticator_data,
            "client_data": self.client_data,
            "signature": self.signature,
        }

    @classmethod
    def from_dict(cls, data: Any, where: str) -> PasskeySignature:
        """Read the form of a signature. `BadInput` names the place; `passkey_problem` checks what it says."""
        data = check_object(data, where, _SIGNATURE_FIELDS)
        parts = {name: text_field(data[name], f"{where}.{name}", _BASE64URL) for name in sorted(_SIGNATURE_FIELDS)}
        # Before anything is decoded, so that a hostile record costs little.
        if sum(map(len, parts.values())) > PASSKEY_SIGNATURE_MAX:
            raise BadInput(f"{where} has more than {PASSKEY_SIGNATURE_MAX} characters")
        return cls(**parts)


def statement_challenge(message: bytes) -> str:
    """The challenge that a browser gets for the bytes of a statement: base64url of their SHA-256."""
    return encode_base64url(hashlib.sha256(message).digest())


def passkey_problem(passkey: Passkey, message: bytes, signed: PasskeySignature) -> str | None:
    """Return why a signature of the bytes of a statement does not hold; None if it holds. Raises nothing."""
    try:
        authenticator_data = decode_base64url(signed.authenticator_data)
        client_data = decode_base64url(signed.client_data)
        signature = decode_base64url(signed.signature)
        problem = _client_data_problem(client_data, passkey.rp_id, statement_challenge(message))
        problem = problem or _authenticator_data_problem(authenticator_data, passkey.rp_id)
    except BadInput as error:
        problem = error.message
    if problem is None:
        # 5. Last, because it costs the most.
        covered = authenticator_data + hashlib.sha256(client_data).digest()
        public = bytes.fromhex(passkey.public_key)
        if passkey.alg == EDDSA:
            holds = algorithms.verify_ed25519(public, covered, signature.hex())
            problem = None if holds else "its signature is not that of the key"
        else:
            problem = _es256_problem(public, covered, signature)
    if problem is not None:
        debug("keys", "the signature of the passkey %s does not hold: %s", passkey.fingerprint, problem)
    return problem


def _client_data_problem(client_data: bytes, rp_id: str, challenge: str) -> str | None:
    # 1. The reader refuses repeated keys: two readers could see two origins.
    found = read_json(client_data)
    if not isinstance(found, dict):
        return "client_data is not an object"
    if found.get("type") != "webauthn.get":
        return "client_data is not of the type webauthn.get"
    # 2.
    if found.get("challenge") != challenge:
        return "it was signed for another statement"
    # 3. The value must be false itself: 0 and "" are none of WebAuthn.
    if found.get("crossOrigin", False) is not False:
        return "it was signed inside a page of another origin"
    if not is_origin_of(found.get("origin"), rp_id):
        return f"it was signed on a page that does not belong to {rp_id}"
    return None


def is_origin_of(origin: Any, rp_id: str) -> bool:
    """Whether a page of this origin may use the passkeys of `rp_id`."""
    match = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if match is None:
        return False
    scheme, host, port = match.groups()
    if port is not None and int(port) > _PORT_MAX:
        return False
    if rp_id == LOCALHOST:
        return (scheme, host) == ("http", LOCALHOST)
    return scheme == "https" and (host == rp_id or (host.endswith(f".{rp_id}") and _RP_ID.fullmatch(host) is not None))


def _authenticator_data_problem(data: bytes, rp_id: str) -> str | None:
    # 4.
    if len(data) < AUTHENTICATOR_DATA_MIN or data[:_FLAGS_AT] != hashlib.sha256(rp_id.encode("ascii")).digest():
        return f"authenticator_data is not that of {rp_id}"
    if not data[_FLAGS_AT] & _USER_PRESENT:
        return "nobody was present at the authenticator"
    if not data[_FLAGS_AT] & _USER_VERIFIED:
        return "the authenticator did not verify the person"
    return None


def _is_p256_point(public: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    try:
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), public)
    except ValueError:
        return False
    return True


def _es256_problem(public: bytes, message: bytes, signature: bytes) -> str | None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        r, s = decode_dss_signature(signature)
        if not (1 <= r < P256_ORDER and 1 <= s < P256_ORDER) or encode_dss_signature(r, s) != signature:
            return "its signature is not in DER"
        # (r, n - s) verifies as well. Of the two forms one is refused, so that nobody can rewrite a sealed signature.
        if s > P256_ORDER // 2:
            return "its signature has a high S: write n - S instead"
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), public)
        key.verify(signature, message, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return "its signature is not that of the key"
    return None
