"""An authenticator in software: it makes passkeys, and signs statements as a browser and a device would."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aver import Ledger, clock
from aver.gate.approvals import ApprovalRequest, Person
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import Statement, StatementSignature, sign_statement, statement_bytes
from aver.keys.algorithms import ed25519_from_seed, sign_ed25519
from aver.keys.passkey import P256_ORDER, Passkey, PasskeySignature, encode_base64url, statement_challenge
from support.approvals import SHOWN

UP, UV = 0x01, 0x04


class SoftPasskey:
    """A passkey without a device. The keyword arguments of `sign` make each mistake that a verifier must find."""

    def __init__(self, name: str, alg: str = "ES256", rp_id: str = "localhost", origin: str = "") -> None:
        self.identity = f"person:{name}"
        seed = hashlib.sha256(f"{name} {alg}".encode()).digest()
        if alg == "ES256":
            self._key = ec.derive_private_key(int.from_bytes(seed, "big") % (P256_ORDER - 1) + 1, ec.SECP256R1())
            raw = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        else:
            raw, self._secret = ed25519_from_seed(seed)
        self.passkey = Passkey(alg, raw.hex(), rp_id, encode_base64url(seed[:16]))
        self.origin = origin or ("http://localhost:4840" if rp_id == "localhost" else f"https://{rp_id}")

    @property
    def fingerprint(self) -> str:
        return self.passkey.fingerprint

    @property
    def approver(self) -> Approver:
        return Approver(self.identity, self.passkey, "passkey")

    def sign_bytes(
        self,
        message: bytes,
        *,
        flags: int = UP | UV,
        rp_id: str = "",
        text: str | bytes | None = None,
        more: bytes = b"",
        **client_data: Any,
    ) -> PasskeySignature:
        """Sign the bytes of a statement. `client_data` replaces single members, `text` all of them."""
        said = {
            "type": "webauthn.get",
            "challenge": statement_challenge(message),
            "origin": self.origin,
            "crossOrigin": False,
            **client_data,
        }
        if text is None:
            text = json.dumps({name: value for name, value in said.items() if value is not ...}, separators=(",", ":"))
        raw = text.encode() if isinstance(text, str) else text
        site = hashlib.sha256((rp_id or self.passkey.rp_id).encode()).digest()
        data = site + bytes([flags]) + bytes(4) + more
        signature = self._sign(data + hashlib.sha256(raw).digest())
        return PasskeySignature(encode_base64url(data), encode_base64url(raw), encode_base64url(signature))

    def _sign(self, covered: bytes) -> bytes:
        if self.passkey.alg == "EdDSA":
            return bytes.fromhex(sign_ed25519(self._secret, covered))
        # As the page does: of the two forms of a signature, the one with the low S.
        r, s = decode_dss_signature(self._key.sign(covered, ec.ECDSA(SHA256())))
        return encode_dss_signature(r, min(s, P256_ORDER - s))

    def sign_statement(self, purpose: str, content: dict[str, Any], **mistakes: Any) -> StatementSignature:
        signed = self.sign_bytes(statement_bytes(purpose, content), **mistakes)
        return StatementSignature(self.fingerprint, passkey=signed)

    def enrolment(self, ledger: Ledger, *endorsers: Any, **changed: Any) -> Statement:
        """The statement by which the page enrols this passkey."""
        content = enrolment_content(self.approver, ledger=ledger.id, tenant=ledger.tenant, at=clock.now())
        signers = [self, *(one.signer if isinstance(one, Person) else one for one in endorsers)]
        return sign_statement(ENROLMENT, {**content, **changed}, signers)

    def vote(self, request: ApprovalRequest, word: str = "approve", shown: str = SHOWN, **changed: Any) -> Statement:
        """A vote on a request. `changed` replaces what it says."""
        content = self.vote_content(request, word, shown, **changed)
        return sign_statement(APPROVAL_PURPOSE, content, [self])

    def vote_content(
        self, request: ApprovalRequest, word: str = "approve", shown: str = SHOWN, **changed: Any
    ) -> dict[str, Any]:
        digest = hashlib.sha256(shown.encode()).hexdigest()
        return {**vote_content(request, word, self.identity, digest), **changed}

    def wrong_vote(self, request: ApprovalRequest, word: str = "approve", **mistakes: Any) -> Statement:
        """A vote that says the right thing, and is signed in a wrong way."""
        content = self.vote_content(request, word)
        return Statement(APPROVAL_PURPOSE, content, (self.sign_statement(APPROVAL_PURPOSE, content, **mistakes),))


def with_signature(statement: Statement, **parts: str) -> Statement:
    """A statement whose only signature has other parts."""
    (signature,) = statement.signatures
    assert signature.passkey is not None
    return replace(statement, signatures=(replace(signature, passkey=replace(signature.passkey, **parts)),))
