"""The records of delegations, in the chain `delegations.<tenant>`.

    delegation.issue    auth   a token was issued here: key `delegation:<jti>`
    delegation.revoke   auth   a token counts no more: key `delegation-revoked:<jti>`

`outcome.result` of a `delegation.issue` says in plain what the token says. The token itself is the statement in
`authority.chain[0]`, which encloses its parents:

    {"v": 1, "jti": "dlg_7Qm2", "iss": "ext:acme", "sub": "alice", "session": "s1", "scope": ["intent:SendMessage"],
     "expires": "2026-11-17T12:00:00+00:00", "parent": null | "<jti of the parent>"}

That of a `delegation.revoke`:

    {"v": 1, "jti": "dlg_7Qm2", "reason": "the laptop was lost"}

A token counts without a record of its issue: its issuer may live elsewhere. A revocation is a record of this ledger
alone, and its time of sealing is the time from which the token counts no more. The keys let each happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aver.capsule.aver_block import chain_name, of_kind, read_block
from aver.capsule.blobs import restore_large_texts
from aver.capsule.json_document import check_object, check_version, text_field
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.act_records import DETAIL_MAX, revocation_key
from aver.gateway.delegation import JTI_PATTERN, DelegationToken, read_delegation
from aver.keys.statement import Statement, encode_statement

DELEGATIONS_DOMAIN = "delegations"

ISSUE_KIND = "delegation.issue"
REVOKE_KIND = "delegation.revoke"

_ISSUE_FIELDS = frozenset({"v", "jti", "iss", "sub", "session", "scope", "expires", "parent"})
_REVOKE_FIELDS = frozenset({"v", "jti", "reason"})


@dataclass(frozen=True, slots=True)
class Revocation:
    """A `delegation.revoke`, read back. `at` is the time of its sealing."""

    jti: str
    reason: str
    at: str


def delegations_chain(tenant: str) -> str:
    """Return the chain of a tenant's delegations."""
    return chain_name(DELEGATIONS_DOMAIN, tenant)


def issue_key(jti: str) -> str:
    """Return the idempotency key of the record that issues a delegation."""
    return f"delegation:{jti}"


def build_issue_draft(token: str) -> Capsule:
    """Build the record of a token that was issued. Append it with `issue_key(jti)`. `BadInput` where it is no token."""
    try:
        issued = read_delegation(token)[-1]
    except Refused as refusal:
        raise BadInput(refusal.message) from refusal
    draft = Capsule(
        type="auth",
        domain=DELEGATIONS_DOMAIN,
        trigger=Trigger(source=issued.iss, request=f"let {issued.sub} act for {issued.iss}", correlation_id=issued.jti),
        context=Context(agent_id="aver", session_id=issued.session),
        authority=Authority(
            type="policy", policy_reference="aver gateway delegate", chain=[issued.statement.to_dict()]
        ),
        outcome=Outcome(
            status="success",
            summary=f"{issued.iss} lets {issued.sub} act in the session {issued.session}: {', '.join(issued.scope)}",
            result=_describe_token(issued),
        ),
    )
    return of_kind(draft, ISSUE_KIND)


def build_revocation_draft(jti: str, reason: str = "") -> Capsule:
    """Build the record that revokes a token. Append it with `revocation_key(jti)`. `BadInput` where it is no jti."""
    text_field(jti, "jti", JTI_PATTERN)
    draft = Capsule(
        type="auth",
        domain=DELEGATIONS_DOMAIN,
        trigger=Trigger(source="aver", request=f"revoke the delegation {jti}", correlation_id=jti),
        context=Context(agent_id="aver"),
        authority=Authority(type="policy", policy_reference="aver gateway revoke"),
        outcome=Outcome(
            status="success",
            summary=f"the delegation {jti} counts no more",
            result={"v": 1, "jti": jti, "reason": reason[:DETAIL_MAX]},
        ),
    )
    return of_kind(draft, REVOKE_KIND)


def read_issue(record: Sealed, fetch: Callable[[str], bytes]) -> tuple[DelegationToken, ...]:
    """Read the chain of tokens behind a `delegation.issue`, the first issuer's token first. No signature is checked.

    `fetch` returns the bytes of a blob: long parents are stored beside the record. Raises `BadInput` where the record
    is not whole, says something else than its token, or has the key of another one.
    """
    result, block, content = _open(record, ISSUE_KIND, _ISSUE_FIELDS)
    chain = content["authority"]["chain"]
    if type(chain) is not list or len(chain) != 1:
        raise BadInput("the record of an issue has exactly one token")
    tokens = read_token_statement(chain[0], fetch)
    if result != _describe_token(tokens[-1]):
        raise BadInput("the record says something else than its token")
    if block.get("key") != issue_key(tokens[-1].jti):
        raise BadInput("the record has the key of another token")
    return tokens


def read_revocation(record: Sealed) -> Revocation:
    """Read a `delegation.revoke` back. Raises `BadInput` where it is not whole, or has the key of another token."""
    result, block, _ = _open(record, REVOKE_KIND, _REVOKE_FIELDS)
    jti = text_field(result["jti"], "jti", JTI_PATTERN)
    if block.get("key") != revocation_key(jti):
        raise BadInput("the record has the key of another token")
    return Revocation(jti, str(result["reason"]), str(block.get("at") or ""))


def read_token_statement(document: Any, fetch: Callable[[str], bytes]) -> tuple[DelegationToken, ...]:
    """Read a token that rides in `authority.chain`, with its parents. Checks no signature. Raises `BadInput`."""
    statement = Statement.from_dict(restore_large_texts(document, fetch), "authority.chain")
    try:
        return read_delegation(encode_statement(statement))
    except Refused as refusal:
        raise BadInput(refusal.message) from refusal


def _describe_token(token: DelegationToken) -> dict[str, Any]:
    parents = [] if token.parent is None else read_delegation(token.parent)
    return {
        "v": 1,
        "jti": token.jti,
        "iss": token.iss,
        "sub": token.sub,
        "session": token.session,
        "scope": list(token.scope),
        "expires": token.expires,
        "parent": parents[-1].jti if parents else None,
    }


def _open(record: Sealed, kind: str, fields: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return result, block and content of a record of this kind."""
    content = record.to_dict()
    block = dict(read_block(content) or {})
    if block.get("kind") != kind:
        raise BadInput(f"the record {record.id} is no {kind}")
    result = check_object(content["outcome"].get("result"), kind, fields)
    check_version(result["v"], kind)
    return result, block, content
