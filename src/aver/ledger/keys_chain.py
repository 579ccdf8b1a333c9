"""The `keys` chain: when each of our keys came, and how far the one before it was good.

A key's first record in a ledger is preceded by `key.create` or `key.rotate` in the chain `keys`, sealed in the
same transaction; so are the rotations before it that this ledger has not seen, and `key.retire` for keys that ended
without a successor. A rotation carries the statement signed by the old and the new key, and the heads of all
chains at that moment: a record that the old key signed beyond them is `KEY_RETIRED`, whatever time it claims.

`outcome.result`:

    identity, purpose, epoch, algorithm, fingerprint, public_key, public_key_pq   the key
    replaces    fingerprint of the key before it (key.rotate)
    heads       {chain: {count, hash}} at that moment (key.rotate, key.retire), as a blob where there are many
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from aver.capsule.aver_block import of_kind
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.keys import Ring, RingEntry, Statement, check_statement
from aver.keys.rotation import ROTATION_PURPOSE as ROTATION
from aver.ledger.head import Head
from aver.verdict import Retirement

__all__ = [
    "KEYS_CHAIN",
    "KeyEnd",
    "KeyEvent",
    "build_key_draft",
    "event_keys",
    "heads_at_ends",
    "key_ends",
    "recorded_keys",
    "retirements",
    "unrecorded_events",
]

KEYS_CHAIN = "keys"

HEADS_INLINE = 100
"""More heads than this go into a blob."""


class KeyEvent(NamedTuple):
    """Something to record about a key of our ring: that it came, or that it ended."""

    entry: RingEntry
    kind: str

    @property
    def key(self) -> str:
        """The idempotency key under which it is recorded."""
        return f"{'retire' if self.kind == 'key.retire' else 'key'}:{self.entry.fingerprint}"


def unrecorded_events(ring: Ring, signer: str, is_recorded: Callable[[str], bool]) -> list[KeyEvent]:
    """What a ledger has yet to record, in order, before `signer` seals in it.

    Only of identities that seal here: the signer's own, and those that the ledger has recorded before. A ring serves
    all tenants; their `keys` chains must not tell them of each other's agents.
    """
    own = ring.entry(signer)
    found = []
    for identity in dict.fromkeys(entry.identity for entry in ring.entries):
        events = list(_build_events(ring.entries_of(identity)))
        missing = [event for event in events if not is_recorded(event.key)]
        if (own is not None and identity == own.identity) or len(missing) < len(events):
            found.extend(missing)
    return found


def event_keys(ring: Ring) -> list[str]:
    """The idempotency keys of all that could be recorded about the keys of a ring."""
    identities = dict.fromkeys(entry.identity for entry in ring.entries)
    return [event.key for identity in identities for event in _build_events(ring.entries_of(identity))]


def _build_events(entries: Sequence[RingEntry]) -> Iterator[KeyEvent]:
    for entry in entries:
        yield KeyEvent(entry, "key.create" if entry.statement is None else "key.rotate")
        replaced = any(later.statement is not None and later.epoch == entry.epoch + 1 for later in entries)
        if entry.retired_at is not None and not replaced:
            yield KeyEvent(entry, "key.retire")


def build_key_draft(event: KeyEvent, heads: Sequence[Head]) -> tuple[Capsule, list[Blob]]:
    """The record of what happened to a key, and the blobs that go with it."""
    entry = event.entry
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
    """The fingerprints of the keys whose coming the `keys` chain records."""
    found = set()
    for sealed in records:
        try:
            if sealed.kind in ("key.create", "key.rotate"):
                found.add(str(sealed.to_dict()["outcome"]["result"]["fingerprint"]))
        except _UNREADABLE:
            continue
    return found


class KeyEnd(NamedTuple):
    """The end of a key as the `keys` chain records it."""

    fingerprint: str
    sequence: int
    """Its place in the `keys` chain."""
    heads: Mapping[str, tuple[int, str]]
    """Count and hash of every chain at that moment."""


def key_ends(ring: Ring, records: Iterable[Sealed], blob: Callable[[str], bytes]) -> list[KeyEnd]:
    """Every end of a key that the `keys` chain records, in order. The records must have been verified."""
    records = list(records)
    handed_over = dict(filter(None, (_read_rotation(ring, sealed) for sealed in records)))
    ends = []
    for sealed in records:
        try:
            content = sealed.to_dict()
            retired = _retired_key(ring, sealed, handed_over)
            if retired is None:
                continue
            heads = content["outcome"]["result"]["heads"]
            for digest, _ in blob_references(heads):
                heads = orjson.loads(blob(digest))
            where = {str(chain): (int(head["count"]), str(head["hash"])) for chain, head in heads.items()}
            ends.append(KeyEnd(retired, sealed.sequence, where))
        except _UNREADABLE:
            continue
    return ends


def retirements(ring: Ring, ends: Iterable[KeyEnd]) -> dict[str, Retirement]:
    """Which keys were retired, and until where they were good: by our ring, and by the `keys` chain.

    Of several records about one key the first counts: whoever holds an old key may add to the chain, but cannot come
    first.
    """
    found = {entry.fingerprint: Retirement(entry.retired_at) for entry in ring.entries if entry.retired_at is not None}
    for retired, sequence, heads in ends:
        if retired in found and found[retired].limits is not None:
            continue
        at = found[retired].retired_at if retired in found else None
        limits = {chain: count for chain, (count, _) in heads.items()}
        found[retired] = Retirement(at, {**limits, KEYS_CHAIN: sequence})
    return found


def heads_at_ends(ends: Iterable[KeyEnd]) -> dict[str, tuple[int, str]]:
    """Count and hash of every chain when a key last ended: what lies before can no longer be signed anew."""
    latest: dict[str, tuple[int, str]] = {}
    for end in ends:
        latest.update(end.heads)
    return latest


_UNREADABLE = (AverError, AttributeError, KeyError, IndexError, TypeError, ValueError)


def _retired_key(ring: Ring, sealed: Sealed, handed_over: Mapping[str, str]) -> str | None:
    """The fingerprint of the key that a record rightly retires: one that a later key of the same line has sealed.

    Nobody else tells until where a key was good: not the key itself, and not another party whose key we know.
    """
    if sealed.kind == "key.retire":
        entry = ring.entry(sealed.to_dict()["outcome"]["result"]["fingerprint"])
        ended = entry is not None and entry.retired_at is not None and ring.entry(sealed.signed_by) is not None
        return entry.fingerprint if entry is not None and ended and sealed.signed_by != entry.fingerprint else None
    handing = _read_rotation(ring, sealed)
    if handing is None:
        return None
    old, heir = handing
    seen: set[str] = set()
    while heir != sealed.signed_by:
        seen.add(heir)
        heir = handed_over.get(heir, "")
        if not heir or heir in seen:
            return None
    return old


def _read_rotation(ring: Ring, sealed: Sealed) -> tuple[str, str] | None:
    """Which key a rotation record retires in favour of which, if its statement holds under both."""
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
        both = Ring.pinned((*ring.lookup(old), *ring.lookup(new)))
        results = check_statement(statement, both, signers_required=(old, new))
    except _UNREADABLE:
        return None
    return (old, new) if all(result.outcome == "valid" for result in results) else None
