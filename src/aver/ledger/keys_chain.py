"""The `keys` chain: when each of our keys came into use, and up to which records the key before it was valid.

Before a key seals its first record in a ledger, the same transaction seals `key.create` or `key.rotate` in the chain
`keys`. It also seals earlier rotations that this ledger has not recorded, and `key.retire` for keys that ended without
a successor. A rotation carries a statement signed by the old and the new key, and the heads of all chains at that
moment. A later record that the old key signed is `KEY_RETIRED`, even if it claims an earlier time.

The `outcome.result` of a record:

    identity, purpose, epoch, algorithm, fingerprint, public_key, public_key_pq   the key
    replaces    fingerprint of the key before it (key.rotate)
    heads       {chain: {count, hash}} at that moment (key.rotate, key.retire), as a blob if there are many
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.keys import Ring, RingEntry, Statement, check_statement
from aver.keys.ring import ROTATION_PURPOSE as ROTATION
from aver.ledger.head import Head
from aver.verdict import ChainJudge, Retirement, Rules

KEYS_CHAIN = "keys"

HEADS_INLINE = 100
"""Most heads inside a record; more heads go into a blob."""


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
    """
    seals_here = {event.entry.identity for event in events if event.key in recorded}
    if own is not None:
        seals_here.add(own.identity)
    return [event for event in events if event.key not in recorded and event.entry.identity in seals_here]


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


def recorded_keys(records: Iterable[Sealed]) -> set[str]:
    """The fingerprints of the keys that came into use according to the `keys` chain."""
    found = set()
    for sealed in records:
        try:
            if sealed.kind in ("key.create", "key.rotate"):
                found.add(str(sealed.to_dict()["outcome"]["result"]["fingerprint"]))
        except _UNREADABLE:
            continue
    return found


def only_valid(
    ring: Ring, records: Iterable[Sealed], chain: str | None = None, retired: Mapping[str, Retirement] | None = None
) -> Iterator[Sealed]:
    """Yield the records of the `keys` or `meta` chain whose own content and signature hold.

    Given the chain and the `retired` keys, records that a retired key signed after its time are left out, too.
    """
    rules = Rules(ring, retired=retired or {})
    for record in records:
        judge = ChainJudge(rules, chain=chain, start=None)
        judge.judge(record)
        signer = judge.signer
        if not judge.tally.findings and signer is not None and signer.fingerprint == record.signed_by:
            yield record


class KeyEnd(NamedTuple):
    """The end of a key, from the `keys` chain."""

    fingerprint: str
    sequence: int
    """The place of the record in the `keys` chain."""
    heads: Mapping[str, tuple[int, str]]
    """Count and hash of every chain at that moment."""


def key_ends(ring: Ring, records: Iterable[Sealed], blob: Callable[[str], bytes]) -> list[KeyEnd]:
    """Every end of a key that the `keys` chain records, in order. Records that do not hold are left out."""
    valid = list(only_valid(ring, records))
    successors = dict(filter(None, [_read_rotation(ring, sealed) for sealed in valid]))
    ends = []
    for sealed in valid:
        try:
            content = sealed.to_dict()
            retired = _retired_key(ring, sealed, successors)
            if retired is None:
                continue
            heads = content["outcome"]["result"]["heads"]
            for digest, _ in blob_references(heads):  # At most one: `heads` is then only a reference.
                heads = orjson.loads(blob(digest))
            where = {str(chain): (int(head["count"]), str(head["hash"])) for chain, head in heads.items()}
            ends.append(KeyEnd(retired, sealed.sequence, where))
        except _UNREADABLE:
            continue
    return ends


def replaced_keys(ring: Ring, records: Iterable[Sealed]) -> dict[str, str]:
    """The rotations that the `keys` chain records, as {new key: the key that it replaced}."""
    rotations = filter(None, [_read_rotation(ring, sealed) for sealed in only_valid(ring, records)])
    return {new: old for old, new in rotations}


def retirements(ring: Ring, ends: Iterable[KeyEnd]) -> dict[str, Retirement]:
    """The retired keys and up to which records each was valid, from our ring and the `keys` chain.

    Of several records about one key, the first counts: the holder of an old key may add a record, but not before it.
    """
    found = {entry.fingerprint: Retirement(entry.retired_at) for entry in ring.entries if entry.retired_at is not None}
    for retired, sequence, heads in ends:
        if retired in found and found[retired].limits is not None:
            continue
        at = found[retired].retired_at if retired in found else None
        limits = {chain: count for chain, (count, _) in heads.items()}
        # The heads were taken before this record, so the `keys` chain itself is limited by its place.
        found[retired] = Retirement(at, {**limits, KEYS_CHAIN: sequence})
    return found


def heads_at_ends(ends: Iterable[KeyEnd]) -> dict[str, tuple[int, str]]:
    """Count and hash of every chain when a key last ended. Records before them cannot be signed anew."""
    latest: dict[str, tuple[int, str]] = {}
    for end in ends:
        latest.update(end.heads)
    return latest


_UNREADABLE = (AverError, AttributeError, KeyError, IndexError, TypeError, ValueError)


def _retired_key(ring: Ring, sealed: Sealed, successors: Mapping[str, str]) -> str | None:
    """The fingerprint of the key that a record rightly retires; None if it retires none.

    Only a later key of the same identity may say up to where a key was valid: not the key itself, and not another
    party whose key we know.
    """
    if sealed.kind == "key.retire":
        entry = ring.entry(sealed.to_dict()["outcome"]["result"]["fingerprint"])
        ended = entry is not None and entry.retired_at is not None and ring.entry(sealed.signed_by) is not None
        return entry.fingerprint if entry is not None and ended and sealed.signed_by != entry.fingerprint else None
    rotation = _read_rotation(ring, sealed)
    if rotation is None:
        return None
    old, successor = rotation
    # A ledger may record several rotations at once, all sealed by the newest key: follow the successors to it.
    seen: set[str] = set()
    while successor != sealed.signed_by:
        seen.add(successor)
        successor = successors.get(successor, "")
        if not successor or successor in seen:  # Forged records may form a circle.
            return None
    return old


def _read_rotation(ring: Ring, sealed: Sealed) -> tuple[str, str] | None:
    """(old key, new key) of a rotation record, if both keys have signed its statement; otherwise None."""
    try:
        if sealed.kind != "key.rotate":
            return None
        content = sealed.to_dict()
        result = content["outcome"]["result"]
        old, new = str(result["replaces"]), str(result["fingerprint"])
        statement = Statement.from_dict(content["authority"]["chain"][0])
        sides = statement.content
        if statement.purpose != ROTATION or (sides["old"]["fingerprint"], sides["new"]["fingerprint"]) != (old, new):
            return None
        both = Ring.pin((*ring.lookup(old), *ring.lookup(new)))
        results = check_statement(statement, both, signers_required=(old, new))
    except _UNREADABLE:
        return None
    return (old, new) if all(result.outcome == "valid" for result in results) else None
