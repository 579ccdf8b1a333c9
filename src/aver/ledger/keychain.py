"""The `keys` chain: when each of our keys came, and how far the one before it was good.

A key's first record in a ledger is preceded by `key.create` or `key.rotate` in the chain `keys`, sealed in the
same transaction. A rotation carries the statement signed by the old and the new key, and the heads of all chains
at that moment: a record that the old key signed beyond them is `KEY_RETIRED`, whatever time it claims.

`outcome.result` of both:

    identity, purpose, epoch, algorithm, fingerprint, public_key, public_key_pq   the key
    replaces    fingerprint of the key before it (key.rotate)
    heads       {chain: {count, hash}} at that moment (key.rotate), as a blob where there are many
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from aver.capsule.blobs import Blob, blob_references
from aver.capsule.block import of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.keys import Ring, RingEntry
from aver.ledger.head import Head
from aver.verdict import Retirement

__all__ = ["KEYS_CHAIN", "key_draft", "key_of", "retirements"]

KEYS_CHAIN = "keys"

HEADS_INLINE = 100
"""More heads than this go into a blob."""


def key_of(entry: RingEntry) -> str:
    """The idempotency key under which a key's arrival is recorded."""
    return f"key:{entry.fingerprint}"


def key_draft(entry: RingEntry, heads: Sequence[Head]) -> tuple[Capsule, list[Blob]]:
    """The record of a key's arrival, and the blobs that go with it."""
    statement = entry.statement
    result: dict[str, Any] = {
        "identity": entry.identity,
        "purpose": entry.purpose,
        "epoch": entry.epoch,
        "algorithm": entry.algorithm,
        "fingerprint": entry.fingerprint,
        "public_key": entry.key.ed25519,
        "public_key_pq": entry.key.ml_dsa_65,
    }
    blobs: list[Blob] = []
    did = f"key {entry.fingerprint} of {entry.identity} came into use"
    if statement is not None:
        result["replaces"] = statement.content["old"]["fingerprint"]
        listed: Any = {head.chain: {"count": head.count, "hash": head.hash} for head in heads}
        if len(heads) > HEADS_INLINE:
            blobs.append(Blob(canonical_bytes(listed), "application/json"))
            listed = blobs[0].reference
        result["heads"] = listed
        did = f"{did}, replacing {result['replaces']}"
    draft = Capsule(
        type="system",
        domain=KEYS_CHAIN,
        trigger=Trigger(type="system", source="aver", request="record the key that seals"),
        context=Context(agent_id="aver"),
        authority=Authority(chain=() if statement is None else [statement.to_dict()]),
        outcome=Outcome(status="success", summary=did, result=result),
    )
    return of_kind(draft, "key.create" if statement is None else "key.rotate"), blobs


def retirements(ring: Ring, records: Iterable[Sealed], blob: Callable[[str], bytes]) -> dict[str, Retirement]:
    """Which keys were retired, and until where they were good: by our ring, and by the `keys` chain's records.

    The records must have been verified: only a rotation sealed by a key that the ring knows may limit another.
    """
    found = {entry.fingerprint: Retirement(entry.retired_at) for entry in ring.entries if entry.retired_at is not None}
    for sealed in records:
        try:
            content = sealed.to_dict()
            result = content["outcome"]["result"]
            if sealed.kind != "key.rotate" or not ring.lookup(sealed.signed_by):
                continue
            heads = result["heads"]
            for digest, _ in blob_references(heads):
                heads = orjson.loads(blob(digest))
            limits = {str(chain): int(head["count"]) for chain, head in heads.items()}
            retired = str(result["replaces"])
        except (AverError, AttributeError, KeyError, TypeError, ValueError):
            continue
        at = found[retired].retired_at if retired in found else None
        found[retired] = Retirement(at, {KEYS_CHAIN: sealed.sequence, **limits})
    return found
