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

from aver import Blob, Capsule, Ledger, clock
from aver.capsule.aver_block import of_kind
from aver.capsule.model import Authority, Outcome
from aver.gate.approvals import ApprovalRequest, Person
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import Statement, StatementSignature, sign_statement, statement_bytes
from aver.keys.algorithms import ed25519_from_seed, sign_ed25519
from aver.keys.passkey import P256_ORDER, Passkey, PasskeySignature, encode_base64url, statement_challenge
from support.approvals import SHOWN

UP, UV = 0x01, 0x04

MISTAKES: dict[str, dict[str, Any]] = {
    "another type": {"type": "webauthn.create"},
    "no type": {"type": ...},
    "another challenge": {"challenge": statement_challenge(b"another")},
    "the challenge with padding": {"challenge": lambda honest: honest + "="},
    "no challenge": {"challenge": ...},
    "another origin": {"origin": "https://evil.example"},
    "another scheme": {"origin": "https://localhost:4840"},
    "a host that begins the same": {"origin": "http://localhost.evil.example"},
    "the address of this machine": {"origin": "http://127.0.0.1:4840"},
    "a port that is none": {"origin": "http://localhost:65536"},
    "a line feed after the origin": {"origin": "http://localhost:4840\n"},
    "a file": {"origin": "null"},
    "no origin": {"origin": ...},
    "inside another page": {"crossOrigin": True},
    "crossOrigin that is no boolean": {"crossOrigin": 0},
    "crossOrigin null": {"crossOrigin": None},
    "nobody present": {"flags": UV},
    "nobody verified": {"flags": UP},
    "no flags": {"flags": 0},
    "data of another site": {"rp_id": "evil.example"},
    "a repeated key": {"text": lambda honest: honest[:-1] + ',"origin":"http://localhost:4840"}'},
    "a repeated key, escaped": {"text": lambda honest: honest[:-1] + ',"\\u006frigin":"http://localhost:4840"}'},
    "a repeated key further in": {"text": lambda honest: honest[:-1] + ',"more":{"a":1,"a":1}}'},
    "an array": {"text": lambda honest: f"[{honest}]"},
    "a mark before it": {"text": lambda honest: "\ufeff" + honest},
    "text after it": {"text": lambda honest: honest + "{}"},
    "no UTF-8": {"text": lambda honest: honest.encode()[:-1] + b',"more":"\xff"}'},
    "no JSON": {"text": "{"},
    "a number that is none": {"text": lambda honest: honest[:-1] + ',"more":NaN}'},
    "a number that is too large": {"text": lambda honest: honest[:-1] + ',"more":1e999}'},
    "too deep": {"text": lambda honest: honest[:-1] + ',"more":' + "[" * 300 + "]" * 300 + "}"},
}
"""What can be wrong with a signature, as the keyword arguments of `SoftPasskey.sign_bytes`."""


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
        text: Any = None,
        more: bytes = b"",
        **client_data: Any,
    ) -> PasskeySignature:
        """Sign the bytes of a statement. `client_data` replaces single members, `text` all of them.

        Where one of them is a function, it gets the honest value.
        """
        honest = {
            "type": "webauthn.get",
            "challenge": statement_challenge(message),
            "origin": self.origin,
            "crossOrigin": False,
        }
        given = {name: value(honest[name]) if callable(value) else value for name, value in client_data.items()}
        said = {name: value for name, value in {**honest, **given}.items() if value is not ...}
        whole = json.dumps(said, separators=(",", ":"))
        text = whole if text is None else text(whole) if callable(text) else text
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

    def enrolment(self, in_ledger: Ledger, *endorsers: Any, **changed: Any) -> Statement:
        """The statement by which the page enrols this passkey. `changed` replaces what it says."""
        content = enrolment_content(self.approver, ledger=in_ledger.id, tenant=in_ledger.tenant, at=clock.now())
        signers = [self, *(one.signer if isinstance(one, Person) else one for one in endorsers)]
        return sign_statement(ENROLMENT, {**content, **changed}, signers)

    def vote(self, about: ApprovalRequest, word: str = "approve", text: str = SHOWN, **changed: Any) -> Statement:
        """A vote on a request, over a text. `changed` replaces what it says."""
        content = self.vote_content(about, word, text, **changed)
        return sign_statement(APPROVAL_PURPOSE, content, [self])

    def vote_content(
        self, about: ApprovalRequest, word: str = "approve", text: str = SHOWN, **changed: Any
    ) -> dict[str, Any]:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {**vote_content(about, word, self.identity, digest), **changed}

    def wrong_vote(self, request: ApprovalRequest, word: str = "approve", **mistakes: Any) -> Statement:
        """A vote that says the right thing, and is signed in a wrong way."""
        content = self.vote_content(request, word)
        return Statement(APPROVAL_PURPOSE, content, (self.sign_statement(APPROVAL_PURPOSE, content, **mistakes),))


def with_signature(statement: Statement, **parts: str) -> Statement:
    """A statement whose only signature has other parts."""
    (signature,) = statement.signatures
    assert signature.passkey is not None
    return replace(statement, signatures=(replace(signature, passkey=replace(signature.passkey, **parts)),))


def write_vote(ledger: Ledger, about: ApprovalRequest, statement: Statement) -> None:
    """Append a vote with the ledger's key, whether or not it counts."""
    blob = Blob(SHOWN.encode(), "text/plain")
    approver = statement.content["approver"]
    result = {
        "v": 1,
        "request": about.id,
        "digest": about.digest,
        "decision": statement.content["decision"],
        "approver": approver,
        "custody": "passkey",
        "level": 1,
        "comment": "",
        "shown": blob.reference,
    }
    authority = Authority(approver=approver, chain=[statement.to_dict()])
    draft = Capsule(type="auth", authority=authority, outcome=Outcome(status="success", result=result))
    ledger.append(about.chain, of_kind(draft, "approval.decision"), blobs=[blob])
