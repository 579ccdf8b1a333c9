"""Delegation tokens: a principal lets a caller act for it, in one session, for some intents, until a time.

A token is base64url without padding of the canonical JSON of a signed statement. Its purpose is `delegation`, and its
content is

    {"v": 1, "iss": "ext:acme", "sub": "alice", "session": "s1", "scope": ["intent:SendMessage", "intent:Fetch*"],
     "expires": "2026-11-17T12:00:00+00:00", "jti": "dlg_7Qm2", "parent": null}

* `iss` signs with its key under `[gateway.principals]`. `sub` is the caller, exactly.
* A scope entry is `*`, `intent:NAME` or `intent:PREFIX*`, with the name of an intent, never that of its PREVIEW.
* `parent` is null, or the whole token from which this one was derived. So a chain carries all its parts, and a stranger
  who has the issuers' public keys checks it offline, without a record of the parent.

A child only narrows: its `iss` is its parent's `sub`, its session is the same, and its scope and expiry are inside the
parent's. The external principal of a request is the `iss` of the first token: the one for whom everybody in the chain
acts. The `jti` in the request's context is that of the last token, which contains all others.

`check_delegation` checks in this order:

    DELEGATION_REQUIRED             a principal is named, and there is no token
    DELEGATION_TOKEN_MALFORMED      not a token, or a child that does not narrow
    DELEGATION_TOKEN_BAD_SIGNATURE  a token of the chain is not signed by the key of its issuer
    DELEGATION_SESSION_MISMATCH     for another session
    DELEGATION_SUBJECT_MISMATCH     for another caller
    DELEGATION_SCOPE_DENY           not for this intent
    DELEGATION_TOKEN_EXPIRED        it, or a parent, is past its time
    DELEGATION_REVOKED              it, or a parent, was revoked
    EXTERNAL_PRINCIPAL_MISMATCH     the request names another principal
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, NoReturn

from aver.capsule.canonical import has_surrogate
from aver.capsule.json_document import check_object, check_version, text_field, time_field
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.request import CALLER_MAX, TOKEN_MAX
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import (
    Statement,
    StatementSigner,
    check_statement,
    decode_statement,
    encode_statement,
    sign_statement,
)
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

DELEGATION_PURPOSE = "delegation"

CHAIN_MAX = 4
"""Most tokens in a chain. Each encloses its parent in base64, which adds a third: four with post-quantum signatures fit
into `TOKEN_MAX`."""

SCOPE_MAX = 64
"""Most entries of a scope. There are a dozen intents."""


JTI_PATTERN = lazy_pattern(r"[A-Za-z0-9_-]{1,64}")
_SCOPE_ENTRY = lazy_pattern(r"\*|intent:(?:[A-Za-z][A-Za-z0-9]{0,63}\*?|\*)")
_FIELDS = frozenset({"v", "iss", "sub", "session", "scope", "expires", "jti", "parent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """One token of a chain. `text` is its only written form."""

    iss: str
    sub: str
    session: str
    scope: tuple[str, ...]
    expires: str
    jti: str
    parent: str | None
    """The text of the token from which this one was derived."""
    statement: Statement
    text: str

    @property
    def expires_at(self) -> float:
        """`expires` as Unix time."""
        return datetime.fromisoformat(self.expires).timestamp()


@dataclass(frozen=True, slots=True)
class Delegation:
    """A chain of tokens that was checked. The first is signed by the principal, the last was issued to the caller."""

    chain: tuple[DelegationToken, ...]

    @property
    def principal(self) -> str:
        """The external principal of the request."""
        return self.chain[0].iss

    @property
    def jti(self) -> str:
        """The `delegation_jti` of the request's context."""
        return self.chain[-1].jti

    @property
    def statement(self) -> Statement:
        """The statement for the record. It encloses those of all parents."""
        return self.chain[-1].statement


# --- scopes


def is_in_scope(scope: tuple[str, ...], intent_id: str) -> bool:
    """Whether a scope contains an intent, by its own name."""
    return any(_covers(entry, f"intent:{intent_id}") for entry in scope)


def _covers(outer: str, inner: str) -> bool:
    """Whether all that one scope entry allows is allowed by another."""
    if outer == "*" or inner == "*":
        return outer in ("*", "intent:*")
    return inner.startswith(outer[:-1]) if outer.endswith("*") else inner == outer


# --- making tokens


def sign_delegation(
    signer: StatementSigner,
    *,
    iss: str,
    sub: str,
    session: str,
    scope: tuple[str, ...],
    expires: str,
    jti: str,
    parent: str | None = None,
) -> str:
    """Issue a token, signed by the key of `iss`. `BadInput` if no gateway would read it.

    `parent` is the text of the token that gives `iss` the right to delegate. `jti` must be new.
    """
    content = {
        "v": 1,
        "iss": iss,
        "sub": sub,
        "session": session,
        "scope": list(scope),
        "expires": expires,
        "jti": jti,
        "parent": parent,
    }
    text = encode_statement(sign_statement(DELEGATION_PURPOSE, content, [signer]))
    try:
        read_delegation(text)  # An issuer hands out nothing that would be refused.
    except Refused as refusal:
        raise BadInput(refusal.message) from refusal
    return text


# --- reading and checking tokens


def read_delegation(text: Any) -> tuple[DelegationToken, ...]:
    """Read a token and its parents, the first issuer's token first. Checks form and narrowing, and no signature.

    Raises `Refused` with `DELEGATION_TOKEN_MALFORMED`.
    """
    chain: list[DelegationToken] = []
    try:
        following: Any = text
        while following is not None:
            if len(chain) == CHAIN_MAX:
                raise BadInput(f"a chain has at most {CHAIN_MAX} tokens")
            chain.insert(0, _read_token(following))
            following = chain[0].parent
        for parent, child in pairwise(chain):
            _check_narrowing(parent, child)
        if len({token.jti for token in chain}) != len(chain):
            raise BadInput("two tokens of the chain have one jti")
    except BadInput as error:
        _refuse("DELEGATION_TOKEN_MALFORMED", f"the delegation token cannot be used: {error.message}")
    return tuple(chain)


def read_token_text(text: Any, purpose: str) -> Statement:
    """Read a token of a purpose: base64url of a statement with one signature. Checks no signature; `BadInput`."""
    if type(text) is not str or len(text) > TOKEN_MAX:
        raise BadInput(f"it must be base64url of at most {TOKEN_MAX} characters, without padding")
    statement = decode_statement(text, "token")
    if statement.purpose != purpose:
        raise BadInput(f"its purpose is {statement.purpose!r}")
    if len(statement.signatures) != 1:
        raise BadInput("it must have one signature")
    return statement


def _read_token(text: Any) -> DelegationToken:
    statement = read_token_text(text, DELEGATION_PURPOSE)
    content = check_object(statement.content, "token.content", _FIELDS)
    check_version(content["v"], "token.content")
    scope = content["scope"]
    if type(scope) is not list or not 1 <= len(scope) <= SCOPE_MAX:
        raise BadInput(f"token.content.scope must be a list of 1 to {SCOPE_MAX} entries")
    return DelegationToken(
        iss=_read_name(content["iss"], "token.content.iss"),
        sub=_read_name(content["sub"], "token.content.sub"),
        session=_read_name(content["session"], "token.content.session"),
        scope=tuple(text_field(entry, "token.content.scope", _SCOPE_ENTRY) for entry in scope),
        expires=time_field(content["expires"], "token.content.expires"),
        jti=text_field(content["jti"], "token.content.jti", JTI_PATTERN),
        parent=content["parent"],
        statement=statement,
        text=text,
    )


def _read_name(value: Any, where: str) -> str:
    if type(value) is not str or not 1 <= len(value) <= CALLER_MAX or not value.isprintable() or has_surrogate(value):
        raise BadInput(f"{where} must be a string of 1 to {CALLER_MAX} printable characters")
    return value


def _check_narrowing(parent: DelegationToken, child: DelegationToken) -> None:
    if child.iss != parent.sub:
        raise BadInput(f"{child.jti} is not issued by the subject of its parent")
    if child.session != parent.session:
        raise BadInput(f"{child.jti} is for another session than its parent")
    if child.expires_at > parent.expires_at:
        raise BadInput(f"{child.jti} expires later than its parent")
    for entry in child.scope:
        if not any(_covers(outer, entry) for outer in parent.scope):
            raise BadInput(f"{child.jti} has {entry} in its scope, and its parent has not")


def check_delegation(
    token: str | None,
    *,
    intent_id: str,
    caller: str,
    session: str,
    external_principal: str | None,
    keys: Mapping[str, PublicKey],
    now: float,
    is_revoked: Callable[[str], bool],
) -> Delegation | None:
    """Check that a request may be made for its principal. Returns None if it has neither principal nor token.

    `intent_id` is the intent's own name, `keys` the keys of the principals by name, `now` Unix time. `is_revoked` says
    whether a record revokes a `jti`. Raises `Refused` with the first code of the module's list that applies.
    """
    if token is None:
        if external_principal is not None:
            _refuse("DELEGATION_REQUIRED", f"{external_principal[:80]!r} is named, and there is no delegation token")
        return None
    chain = read_delegation(token)
    for each in chain:
        key = keys.get(each.iss)
        if key is None or not _is_signed_by(each.statement, key):
            _refuse("DELEGATION_TOKEN_BAD_SIGNATURE", f"the token {each.jti} is not signed by the key of {each.iss!r}")
    last = chain[-1]
    if last.session != session:
        _refuse("DELEGATION_SESSION_MISMATCH", f"the token {last.jti} is for another session")
    if last.sub != caller:
        _refuse("DELEGATION_SUBJECT_MISMATCH", f"the token {last.jti} is for another caller")
    if not is_in_scope(last.scope, intent_id):
        _refuse("DELEGATION_SCOPE_DENY", f"the token {last.jti} is not for {intent_id}")
    for each in chain:
        if not now < each.expires_at:
            _refuse("DELEGATION_TOKEN_EXPIRED", f"the token {each.jti} expired at {each.expires}")
    for each in chain:
        if is_revoked(each.jti):
            _refuse("DELEGATION_REVOKED", f"the token {each.jti} was revoked")
    if external_principal is not None and external_principal != chain[0].iss:
        _refuse("EXTERNAL_PRINCIPAL_MISMATCH", f"the request is for {external_principal[:80]!r}, the token is not")
    return Delegation(chain)


def _is_signed_by(statement: Statement, key: PublicKey) -> bool:
    (result,) = check_statement(statement, Ring.pin([key]))
    # A post-quantum part that the key cannot have made would be checked by nobody.
    return result.outcome == "valid" and bool(statement.signatures[0].ml_dsa_65) == bool(key.ml_dsa_65)


def _refuse(code: str, message: str) -> NoReturn:
    debug("gateway", "refused as %s: %s", code, message)
    raise Refused(code, message)
