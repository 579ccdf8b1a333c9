"""Aver's block, the kinds of records, and the names of chains.

Every capsule that a ledger writes carries, inside the hash, `context.environment.aver`:

    v      1
    kind   the kind of record: one of `KINDS`, or `protocol.<event>`
    at     when it was sealed; `signed_at` is a copy
    by     the signer's fingerprint; `signed_by` is a copy
    key    the idempotency key, where one was given
    refs   ids of related records, by name
    origin the id that a chain name could not carry, where it was replaced by its digest
    chain  at sequence 0: {ledger, tenant, name}, so that a chain cannot be passed off as another

A draft may set `kind`, `refs` and `origin`; the ledger sets the rest. Records of other programs have no block, and
that is not an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.capsule.model import Capsule
from aver.errors import BadInput, InvalidCapsule
from aver.lazy_pattern import lazy_pattern

BLOCK_KEY = "aver"
BLOCK_VERSION = 1

KINDS = frozenset(
    (
        *("record", "call", "turn", "audit.intent", "audit.reasoning", "audit.outcome", "dropped"),
        *("gate.decision", "gate.outcome", "gate.change", "approval.request", "approval.decision", "approval.use"),
        *("policy.allow", "policy.forget", "action", "run.open", "run.seal"),
        *("act.ingress", "act.preview", "act.commit", "act.outcome", "act.declassify", "act.confinement"),
        *("delegation.issue", "delegation.revoke", "key.create", "key.rotate", "key.retire"),
        *("chain.close", "chain.import", "chain.drop", "checkpoint"),
    )
)
"""The kinds of records. `record` is the kind of a draft that named none; `protocol.<event>` is allowed, too."""

_PROTOCOL_KIND = lazy_pattern(r"protocol\.[a-z][a-z0-9_]{0,63}")
_KIND_BY_TYPE = {"tool": "call", "chat": "turn"}
_DRAFT_BLOCK_KEYS = frozenset({"kind", "refs", "origin"})

RESERVED_CHAINS = frozenset({"meta", "keys"})

TRACE_PREFIX = "protocol."
"""How the names of the chains of protocol traces begin."""

IMPORT_DOMAIN = "import"
"""The domain of imported chains. No other chain may be in it."""

_DOMAIN = lazy_pattern(r"[a-z0-9-]{1,32}")
_CHAIN_ID = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_TENANT = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")

IDEMPOTENCY_KEY_MAX = 512
"""Longest idempotency key, in characters."""


def build_draft_block(kind: str, refs: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Aver's entry in the environment of a draft: its kind, and the ids of the records that it refers to."""
    return {BLOCK_KEY: {"kind": kind, **({"refs": dict(refs)} if refs else {})}}


def of_kind(draft: Capsule, kind: str, refs: Mapping[str, str] | None = None) -> Capsule:
    """A copy of the draft with its kind, and the ids of the records that it refers to."""
    environment = {**draft.context.environment, **build_draft_block(kind, refs)}
    return replace(draft, context=replace(draft.context, environment=environment))


def read_block(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Aver's block in a capsule's content; None where there is none."""
    context = content.get("context")
    environment = context.get("environment") if isinstance(context, dict) else None
    block = environment.get(BLOCK_KEY) if isinstance(environment, dict) else None
    return block if isinstance(block, dict) else None


def read_kind(content: Mapping[str, Any]) -> str:
    """The kind of a record. Without a block it follows from the type: `call`, `turn` or `record`."""
    block = read_block(content)
    kind = block.get("kind") if block else None
    if isinstance(kind, str):
        return kind
    kind_by_type = content.get("type")
    return _KIND_BY_TYPE.get(kind_by_type, "record") if isinstance(kind_by_type, str) else "record"


def check_draft_block(content: Mapping[str, Any]) -> dict[str, Any]:
    """Check the block of a draft and return it with its kind filled in. Raises `InvalidCapsule`."""
    given = content["context"]["environment"].get(BLOCK_KEY, {})
    field = f"context.environment.{BLOCK_KEY}"
    if not isinstance(given, dict):
        raise InvalidCapsule("wrong_type", field, "must be an object")
    foreign = given.keys() - _DRAFT_BLOCK_KEYS
    if foreign:
        name = min(map(str, foreign))
        raise InvalidCapsule("invalid_value", f"{field}.{name}", "is set by the ledger, not by a draft")
    kind = given.get("kind", _KIND_BY_TYPE.get(content["type"], "record"))
    if not isinstance(kind, str) or (kind not in KINDS and not _PROTOCOL_KIND.fullmatch(kind)):
        raise InvalidCapsule("invalid_value", f"{field}.kind", f"unknown kind {kind!r}")
    refs = given.get("refs", {})
    if not isinstance(refs, dict) or not all(isinstance(ref, str) for ref in refs.values()):
        raise InvalidCapsule("wrong_type", f"{field}.refs", "must map names to record ids")
    if not isinstance(given.get("origin", ""), str):
        raise InvalidCapsule("wrong_type", f"{field}.origin", "must be a string")
    return {**given, "kind": kind}


def check_idempotency_key(key: str) -> str:
    """Return the idempotency key; `BadInput` unless it is printable and not too long."""
    if not isinstance(key, str) or not 0 < len(key) <= IDEMPOTENCY_KEY_MAX or not key.isprintable():
        raise BadInput(f"an idempotency key must be 1 to {IDEMPOTENCY_KEY_MAX} printable characters")
    return key


def check_chain_name(name: str) -> str:
    """Return the name; `BadInput` unless it is `<domain>.<id>` or a reserved word.

    Such a name needs no quoting as a file name or as the chain id of a URI.
    """
    if name in RESERVED_CHAINS:
        return name
    domain, dot, identifier = name.partition(".") if isinstance(name, str) else ("", "", "")
    if not dot or not _DOMAIN.fullmatch(domain) or not _CHAIN_ID.fullmatch(identifier):
        raise BadInput(
            f"{name!r} is not a chain name",
            advice="a name is <domain>.<id>, such as claude-code.5d2e; aver.chain_name(domain, id) makes one of any id",
        )
    return name


def is_tenant_name(name: str) -> bool:
    """Whether it is up to 64 letters, digits, `.`, `_` and `-`, not beginning with a dot."""
    return isinstance(name, str) and _TENANT.fullmatch(name) is not None


def check_tenant(tenant: str) -> str:
    """Return the tenant's name; `BadInput` unless it is one."""
    if not isinstance(tenant, str) or _TENANT.fullmatch(tenant) is None:
        raise BadInput(f"{tenant!r} is not a tenant name", advice="use up to 64 letters, digits, '.', '_' and '-'")
    return tenant


def chain_name(domain: str, identifier: str) -> str:
    """A chain name for any identifier: the identifier itself where a chain name can hold it, otherwise its digest."""
    if not _CHAIN_ID.fullmatch(identifier):
        identifier = "x-" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return check_chain_name(f"{domain}.{identifier}")


def split_chain_name(name: str) -> tuple[str, str]:
    """Domain and id; a reserved chain is its own domain and id."""
    domain, _, identifier = name.partition(".")
    return domain, identifier or domain
