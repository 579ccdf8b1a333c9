"""The `keys` chain: when each of our keys came into use, and up to which records the key before it was valid.

Before a key seals its first record in a ledger, the same transaction seals `key.create` or `key.rotate` in the chain
`keys`. It also seals earlier rotations that this ledger has not recorded, and `key.retire` for keys that ended without
a successor. A rotation carries a statement signed by the old and the new key, and the heads of all chains at that
moment. A later record that the old key signed is `KEY_RETIRED`, even if it claims an earlier time.

`key_history` reads the chain.

The `outcome.result` of a record:

    identity, purpose, epoch, algorithm, fingerprint, public_key, public_key_pq   the key
    replaces    fingerprint of the key before it (key.rotate)
    heads       {chain: {count, hash}} at that moment (key.rotate, key.retire), as a blob if there are many
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.fast_dataclass import NamedTuple
from aver.keys import LEDGER, Ring, RingEntry
from aver.lazy_pattern import lazy_pattern
from aver.ledger.head import Head

KEYS_CHAIN = "keys"

HEADS_INLINE = 100
"""Most heads inside a record; more heads go into a blob."""


_EVENT_KEY = lazy_pattern(r"(?:key|retire):[0-9a-f]{16}")


def is_event_key(key: str) -> bool:
    """Whether only this chain may use an idempotency key. In another chain it would keep an event out of this one."""
    # Appending asks this for every record, so the pattern is compiled only if it may match.
    return key.startswith(("key:", "retire:")) and _EVENT_KEY.fullmatch(key) is not None


class KeyEvent(NamedTuple):
    """An event to record about a key of our ring: it came into use, or it ended."""

    entry: RingEntry
    kind: str
    key: str
    """The idempotency key of its record."""


def key_events(ring: Ring) -> list[KeyEvent]:
    """All events that could be recorded about the keys of a ring: identity by identity, each in order."""
    events = []
    for identity in dict.fromkeys(entry.identity for entry in ring.entries):
        entries = ring.entries_of(identity)
        for entry in entries:
            came = "key.create" if entry.statement is None else "key.rotate"
            events.append(KeyEvent(entry, came, f"key:{entry.fingerprint}"))
            # A rotation also ends the old key, so that end needs no event.
            replaced = any(later.statement is not None and later.epoch == entry.epoch + 1 for later in entries)
            if entry.retired_at is not None and not replaced:
                events.append(KeyEvent(entry, "key.retire", f"retire:{entry.fingerprint}"))
    return events


def unrecorded_events(events: Sequence[KeyEvent], own: RingEntry | None, recorded: Container[str]) -> list[KeyEvent]:
    """Those of a ring's `events` that a ledger must record before the key `own` seals in it, in order.

    They are about identities that seal here only: the signer's own, and those that the ledger has recorded before. All
    tenants share one ring, and their `keys` chains must not show them each other's agents.

    Only the ledger's key speaks for other identities: it records that their keys ended. Another signer records nothing
    but its own keys. That a key came into use, the key records itself: this proves that someone holds it.
    """
    if own is None:
        return []
    seals_here = {own.identity}
    if own.identity == LEDGER:
        seals_here.update(event.entry.identity for event in events if event.key in recorded)
    return [
        event
        for event in events
        if event.key not in recorded
        and event.entry.identity in seals_here
        and (event.kind != "key.create" or event.entry.identity == own.identity)
    ]


def build_key_draft(event: KeyEvent, heads: Sequence[Head]) -> tuple[Capsule, list[Blob]]:
    """Draft the record of a key event. Returns it with its blobs."""
    entry = event.entry
    # A retired key may have come by a rotation; only the event of that rotation carries the statement.
    statement = entry.statement if event.kind == "key.rotate" else None
    result: dict[str, Any] = {
        "identity": entry.identity,
        "purpose": entry.purpose,
        "epoch": entry.epoch,
        "algorithm": entry.algorithm,
        "fingerprint": entry.fingerprint,
        "public_key": entry.key.ed25519,
        "public_key_pq": entry.key.ml_dsa_65,
    }
    did = f"key {entry.fingerprint} of {entry.identity} {'ended' if event.kind == 'key.retire' else 'came into use'}"
    if statement is not None:
        result["replaces"] = statement.content["old"]["fingerprint"]
        did = f"{did}, replacing {result['replaces']}"
    blobs: list[Blob] = []
    if event.kind != "key.create":
        listed: Any = {head.chain: {"count": head.count, "hash": head.hash} for head in heads}
        if len(heads) > HEADS_INLINE:
            blobs.append(Blob(canonical_bytes(listed), "application/json"))
            listed = blobs[0].reference
        result["heads"] = listed
    draft = Capsule(
        type="system",
        domain=KEYS_CHAIN,
        trigger=Trigger(type="system", source="aver", request="record the keys that seal"),
        context=Context(agent_id="aver"),
        authority=Authority(chain=() if statement is None else [statement.to_dict()]),
        outcome=Outcome(status="success", summary=did, result=result),
    )
    return of_kind(draft, event.kind), blobs
