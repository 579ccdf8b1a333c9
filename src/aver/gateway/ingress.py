"""Federated calls: a principal on another machine signs its call of `POST /act`, and the gateway knows who it is.

    Aver-Principal: ext:acme
    Aver-Session: s1
    Aver-Delegation: eyJjb250ZW50Ijp7...        only with a delegation token
    Aver-Time: 1700000000                       Unix time in whole seconds
    Aver-Nonce: 7Qm2Zr9TqT0f4C1x                16 to 64 of A-Z a-z 0-9 _ -, new for each call
    Aver-Audience: 0d9f1c...                    optional: the id of the ledger whose gateway the call is for
    Aver-Signature: 3f0c9a1b2d4e5f60:9b1d...    fingerprint and Ed25519 signature, in lower-case hex

The signature is that of a statement of the purpose `ingress` with the content

    {"method": "POST", "path": "/act", "principal", "session", "delegation_sha256": hex | null, "time": 1700000000,
     "nonce", "body_sha256"}

where `delegation_sha256` is SHA-256 of the token's text, and `body_sha256` that of the exact bytes of the body. With
`Aver-Audience` the content has `"audience"`, too. The principal's key is under `[gateway.principals]`. Without an
audience, another gateway that knows the same key would take the same call.

Names of headers are compared without regard to case, and none may occur twice. `Aver-Session` alone does not make a
call federated: local clients name their session by it. The rules, in order:

    INGRESS_SIGNATURE_REQUIRED   one of the headers that a signature needs is missing
    INGRESS_SIGNATURE_INVALID    a header is malformed or occurs twice, or the signature does not hold
    INGRESS_EXPIRED              the time is more than 60 seconds from now, in either direction
    INGRESS_CONFLICT             the call is for another gateway
    INGRESS_CONFLICT             the body names another principal or another token than the headers

`check_ingress` does the first four, `bind_constraints` the last. That a nonce is used once (`INGRESS_REPLAY`) is a
record with the key `nonce_key`, which the gateway appends before anything else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.proof.evidence import TS_MAX
from aver.gateway.request import CALLER_MAX, TOKEN_MAX, Constraints
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import Statement, StatementSignature, StatementSigner, check_statement
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

INGRESS_PURPOSE = "ingress"

INGRESS_WINDOW = 60
"""Seconds that the time of a call may differ from the gateway's clock. A nonce is kept for good, so this only bounds
how long a call that was held back on its way stays good."""


PRINCIPAL, SESSION, DELEGATION = "aver-principal", "aver-session", "aver-delegation"
TIME, NONCE, SIGNATURE = "aver-time", "aver-nonce", "aver-signature"
AUDIENCE = "aver-audience"
_NEEDED = (PRINCIPAL, SESSION, TIME, NONCE, SIGNATURE)
_SIGNED = frozenset(_NEEDED) | {DELEGATION, AUDIENCE}

_TIME = lazy_pattern(r"0|[1-9][0-9]{0,15}")
_NONCE = lazy_pattern(r"[A-Za-z0-9_-]{16,64}")
_SIGNATURE = lazy_pattern(r"([0-9a-f]{16}):([0-9a-f]{128})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingress:
    """A federated call, as its headers and its body describe it."""

    method: str
    path: str
    principal: str
    session: str
    delegation: str | None
    """The delegation token."""
    time: int
    nonce: str
    body_sha256: str
    audience: str | None = None
    """The id of the ledger whose gateway the call is for; None for a call that names none."""
    signature: StatementSignature | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The content that the principal signs."""
        token = self.delegation
        return {
            "method": self.method,
            "path": self.path,
            "principal": self.principal,
            "session": self.session,
            "delegation_sha256": None if token is None else hashlib.sha256(token.encode("utf-8")).hexdigest(),
            "time": self.time,
            "nonce": self.nonce,
            "body_sha256": self.body_sha256,
            **({} if self.audience is None else {"audience": self.audience}),
        }

    @property
    def statement(self) -> Statement:
        """The signed statement, for the record."""
        return Statement(INGRESS_PURPOSE, self.content, () if self.signature is None else (self.signature,))

    @property
    def nonce_key(self) -> str:
        """The idempotency key of the record that uses the nonce up."""
        return f"ingress:{self.principal}:{self.nonce}"


def sign_ingress(
    signer: StatementSigner,
    *,
    method: str,
    path: str,
    principal: str,
    session: str,
    time: int,
    nonce: str,
    body: bytes,
    delegation: str | None = None,
    audience: str | None = None,
) -> dict[str, str]:
    """Return the headers of a signed call, read back as the gateway reads them. Raises `BadInput`.

    `audience` is the id of the ledger whose gateway the call is for: no other gateway takes it then.
    """
    call = Ingress(
        method=method,
        path=path,
        principal=principal,
        session=session,
        delegation=delegation,
        time=time,
        nonce=nonce,
        body_sha256=hashlib.sha256(body).hexdigest(),
        audience=audience,
    )
    signature = signer.sign_statement(INGRESS_PURPOSE, call.content)
    headers = {
        "Aver-Principal": principal,
        "Aver-Session": session,
        "Aver-Time": str(time),
        "Aver-Nonce": nonce,
        "Aver-Signature": f"{signature.by}:{signature.ed25519}",
        **({} if delegation is None else {"Aver-Delegation": delegation}),
        **({} if audience is None else {"Aver-Audience": audience}),
    }
    try:
        read = read_ingress(headers.items(), method=method, path=path, body=body)
    except Refused as refusal:
        raise BadInput(refusal.message) from refusal
    if read is None or read.content != call.content:
        raise BadInput("these values cannot be sent as headers")
    return headers


def read_ingress(headers: Iterable[tuple[str, str]], *, method: str, path: str, body: bytes) -> Ingress | None:
    """Read a call from its headers. Returns None if it is not federated. Raises `Refused`; checks no signature."""
    found: dict[str, str] = {}
    twice: list[str] = []
    for name, value in headers:
        lowered = name.lower()
        if lowered in _SIGNED:
            if lowered in found:
                twice.append(lowered)
            found[lowered] = value
    if not found.keys() - {SESSION}:
        return None
    if missing := [name for name in _NEEDED if name not in found]:
        _refuse("INGRESS_SIGNATURE_REQUIRED", f"the header {missing[0]} is missing")
    if twice:
        _refuse("INGRESS_SIGNATURE_INVALID", f"the header {twice[0]} occurs twice")
    limits = {PRINCIPAL: CALLER_MAX, SESSION: CALLER_MAX, DELEGATION: TOKEN_MAX, AUDIENCE: CALLER_MAX}
    for name, limit in limits.items():
        value = found.get(name, "-")
        if not 1 <= len(value) <= limit or not value.isprintable():
            _refuse("INGRESS_SIGNATURE_INVALID", f"the header {name} must have 1 to {limit} printable characters")
    for name, pattern in ((TIME, _TIME), (NONCE, _NONCE), (SIGNATURE, _SIGNATURE)):
        if pattern.fullmatch(found[name]) is None:
            _refuse("INGRESS_SIGNATURE_INVALID", f"the header {name} is malformed")
    by, _, ed25519 = found[SIGNATURE].partition(":")
    return Ingress(
        method=method,
        path=path,
        principal=found[PRINCIPAL],
        session=found[SESSION],
        delegation=found.get(DELEGATION),
        time=min(int(found[TIME]), TS_MAX),
        nonce=found[NONCE],
        body_sha256=hashlib.sha256(body).hexdigest(),
        audience=found.get(AUDIENCE),
        signature=StatementSignature(by, ed25519),
    )


def check_ingress(
    headers: Iterable[tuple[str, str]],
    *,
    method: str,
    path: str,
    body: bytes,
    keys: Mapping[str, PublicKey],
    now: float,
    audience: str,
) -> Ingress | None:
    """Read and check a call. Returns None if it is not federated. Raises `Refused` with the first code that applies.

    `keys` are the keys of the principals by name, `now` Unix time, `audience` the id of this gateway's ledger. A key
    with a post-quantum half signs no call: the header has room for an Ed25519 signature alone.
    """
    call = read_ingress(headers, method=method, path=path, body=body)
    if call is None:
        return None
    key = keys.get(call.principal)
    if key is None:
        _refuse("INGRESS_SIGNATURE_INVALID", f"no key of {call.principal[:80]!r} is known")
    (result,) = check_statement(call.statement, Ring.pin([key]))
    if result.outcome != "valid":
        _refuse("INGRESS_SIGNATURE_INVALID", f"the call is not signed by the key of {call.principal[:80]!r}")
    if not abs(now - call.time) <= INGRESS_WINDOW:
        _refuse("INGRESS_EXPIRED", f"the call was signed more than {INGRESS_WINDOW} seconds from now")
    if call.audience not in (None, audience):
        _refuse("INGRESS_CONFLICT", f"the call is for the gateway of another ledger; this one is {audience}")
    return call


def bind_constraints(call: Ingress, constraints: Constraints) -> Constraints:
    """Return the constraints with the principal and the token of the headers. `Refused` if the body has others.

    A body may leave both out. A token that only the body has is a conflict, too: the headers say that there is none.
    """
    if constraints.external_principal not in (None, call.principal):
        _refuse("INGRESS_CONFLICT", "constraints.external_principal is not the principal that signed the call")
    if constraints.delegation_token not in (None, call.delegation):
        _refuse("INGRESS_CONFLICT", "constraints.delegation_token is not the token in the headers")
    return replace(constraints, external_principal=call.principal, delegation_token=call.delegation)


def _refuse(code: str, message: str) -> NoReturn:
    debug("gateway", "refused as %s: %s", code, message)
    raise Refused(code, message)
