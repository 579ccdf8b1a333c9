"""The history of keys: what an intact `keys` chain and the ring say about the keys that sealed a ledger.

A verifier needs three answers from it. `KeyHistory` has them, each by the whole key:

1. up to which records was a retired key valid? The limits are the heads in `key.rotate` and `key.retire`. Where the
   chain has none, the time of the retirement counts, which a ring or an export of keys may know;
2. whose key is it, and what for?
3. which keys does the chain record? A ledger records every key before it seals, so any other signer is remarkable:
   the chain was cut or dropped, perhaps to hide that a key was retired. So is a signer whose record came only after
   records that it had sealed: then the chain was cut and written anew.

The holder of an old key can write records, but must not rewrite the history with them:

* a key counts as recorded by a record that it sealed itself, or that a later key of the same identity sealed, as the
  rotation statements between them prove. So an old key cannot record its successor without retiring itself;
* a rotation counts only if both keys signed its statement, and the new key, or one after it, sealed the record. For
  another identity's rotation the ledger's key may seal it;
* a retirement without a successor counts if the ledger's key, or a later key of the same identity, sealed it;
* of several records about the end of one key, the first counts;
* a record that contradicts the ring about the identity or the purpose of a key does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import orjson

from aver.capsule.aver_block import IMPORT_DOMAIN, read_block
from aver.capsule.blobs import blob_references
from aver.capsule.sealed import Sealed
from aver.errors import AverError, is_outage
from aver.fast_dataclass import dataclass
from aver.keys import LEDGER, KeyRole, PublicKey, Ring, Statement
from aver.keys.ring import KeyRotation, read_rotation
from aver.ledger.keys_chain import KEYS_CHAIN
from aver.verdict import ChainJudge, Finding, Place, Retirement, Rules, Tally

_IMPORTED = f"{IMPORT_DOMAIN}."

_UNREADABLE = (AverError, AttributeError, KeyError, IndexError, TypeError, ValueError)


class KeyEnd(NamedTuple):
    """The end of a key, from the `keys` chain."""

    key: str
    sequence: int
    """The place of the record in the `keys` chain."""
    heads: Mapping[str, tuple[int, str]]
    """Count and hash of every chain at that moment."""
    at: str | None = None


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The known facts about the keys that sealed a ledger. Keys are named by their 64 digits."""

    retired: Mapping[str, Retirement] = field(default_factory=dict)
    roles: Mapping[str, KeyRole] = field(default_factory=dict)
    """The keys that the chain records."""
    ends: tuple[KeyEnd, ...] = ()
    began: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many records each chain had when a key replaced another one. Its own records come later."""

    def rules(self, rules: Rules) -> Rules:
        """These rules for a ledger with this history."""
        recorded = frozenset(self.roles)
        return Rules(rules.ring, rules.level, rules.require_pq, self.retired, self.roles, recorded, self.began)


def retirements_by_time(ring: Ring) -> dict[str, Retirement]:
    """The retired keys that a ring knows, each limited by the time of its retirement, where no chain has heads."""
    return {key: Retirement(at) for key, at in ring.retirement_times().items()}


def read_history(
    ring: Ring,
    records: Iterable[Sealed],
    blob: Callable[[str], bytes],
    identity: Mapping[str, str] | None = None,
) -> KeyHistory:
    """Read the history in the records of a `keys` chain, from its beginning.

    `identity` names the ledger and tenant that the chain must belong to. Records that do not hold are left out. If the
    chain is not intact, it records no key; its own verdict says what is wrong with it.
    """
    # Each record is judged by itself: a break in the chain must not hide the retirements after it.
    whole = ChainJudge(Rules(ring, "content"), identity={**(identity or {}), "name": KEYS_CHAIN})
    found: list[_KeyRecord] = []
    for record in records:
        whole.judge(record)
        judge = ChainJudge(Rules(ring), chain=KEYS_CHAIN, start=None)
        judge.judge(record)
        has_failed = any(finding.status == "failed" for finding in judge.tally.findings)
        if not has_failed and judge.signer is not None:
            read = _KeyRecord.read(record, judge.signer, ring)
            if read is not None:
                found.append(read)
    successors = {each.rotation.old.ed25519: each.rotation.new.ed25519 for each in found if each.rotation is not None}
    roles: dict[str, KeyRole] = {}
    # Twice: the ledger's key may record the rotation of another identity right before it records itself.
    for each in (*found, *found):
        if each.records_key(ring, roles, successors):
            roles.setdefault(each.key.ed25519, each.role)
    ends: list[KeyEnd] = []
    began: dict[str, Mapping[str, int]] = {}
    for each in found:
        ended = each.ended_key(ring, roles, successors)
        heads = None if ended is None else each.read_heads(blob)
        if ended is not None and heads is not None:
            ends.append(KeyEnd(ended, each.sequence, heads, each.at))
            if each.rotation is not None:
                # An import may have records that the same key sealed in another ledger.
                own = {chain: count for chain, (count, _) in heads.items() if not chain.startswith(_IMPORTED)}
                began.setdefault(each.key.ed25519, own)
    intact = not any(finding.status == "failed" for finding in whole.tally.findings)
    return KeyHistory(retirements(ring, ends), roles if intact else {}, tuple(ends), began)


class _KeyRecord(NamedTuple):
    """A valid record of the `keys` chain."""

    kind: str
    signer: PublicKey
    key: PublicKey
    role: KeyRole
    sequence: int
    at: str
    rotation: KeyRotation | None
    heads: Any

    @classmethod
    def read(cls, record: Sealed, signer: PublicKey, ring: Ring) -> _KeyRecord | None:
        """Read a record; None if it is no record about a key. Anyone whose key is known may have written it."""
        try:
            content = record.to_dict()
            kind, result = record.kind, content["outcome"]["result"]
            if kind not in ("key.create", "key.rotate", "key.retire"):
                return None
            key = PublicKey(result["public_key"], result["public_key_pq"])
            role = KeyRole(str(result["identity"]), str(result["purpose"]), key.algorithm)
            known = ring.entry_of(key)
            if known is not None and (known.identity, known.purpose) != (role.identity, role.purpose):
                return None
            rotation = None
            if kind == "key.rotate":
                rotation = read_rotation(Statement.from_dict(content["authority"]["chain"][0]))
                if rotation is None or rotation.new.ed25519 != key.ed25519 or rotation.identity != role.identity:
                    return None
            at = str((read_block(content) or {})["at"]) if rotation is None else rotation.at
            return cls(kind, signer, key, role, record.sequence, at, rotation, result.get("heads"))
        except _UNREADABLE:
            return None

    def records_key(self, ring: Ring, roles: Mapping[str, KeyRole], successors: Mapping[str, str]) -> bool:
        """Whether this record rightly says that its key came into use."""
        if self.kind == "key.retire":
            return False
        if follows(self.signer.ed25519, self.key.ed25519, successors):
            return True
        # The ledger's key recorded a key of another identity. That the other key exists must be certain: by its own
        # signature on the rotation, or by the ring. Else an old key of the ledger could call its successor an agent.
        is_certain = self.rotation is not None or ring.entry_of(self.key) is not None
        return is_certain and self._is_sealed_for_another(roles)

    def ended_key(self, ring: Ring, roles: Mapping[str, KeyRole], successors: Mapping[str, str]) -> str | None:
        """The key that this record rightly ends; None if it ends none."""
        signer = self.signer.ed25519
        if self.rotation is not None:
            is_right = follows(signer, self.rotation.new.ed25519, successors) or self._is_sealed_for_another(roles)
            return self.rotation.old.ed25519 if is_right else None
        if self.kind != "key.retire" or signer == self.key.ed25519:
            return None
        # Our own ring knows whether the key was retired, and which keys are ours.
        ours, sealer = ring.entry(self.key.fingerprint), ring.entry(self.signer.fingerprint)
        if ours is not None and sealer is not None and ours.key.ed25519 == self.key.ed25519:
            return self.key.ed25519 if ours.retired_at is not None else None
        # Elsewhere, the chain itself must have recorded both keys.
        recorded = roles.get(signer), roles.get(self.key.ed25519)
        if None in recorded or (roles[signer].identity not in (LEDGER, self.role.identity)):
            return None
        return self.key.ed25519

    def _is_sealed_for_another(self, roles: Mapping[str, KeyRole]) -> bool:
        """Whether the ledger's key sealed this record about a key of another identity."""
        sealer = roles.get(self.signer.ed25519)
        return sealer is not None and sealer.identity == LEDGER and self.role.identity != LEDGER

    def read_heads(self, blob: Callable[[str], bytes]) -> dict[str, tuple[int, str]] | None:
        """Count and hash of every chain; None if they cannot be read."""
        try:
            heads = self.heads
            for digest, _ in blob_references(heads):  # At most one: `heads` is then only a reference.
                heads = orjson.loads(blob(digest))
            return {str(chain): (int(head["count"]), str(head["hash"])) for chain, head in heads.items()}
        except _UNREADABLE as error:
            if isinstance(error, AverError) and is_outage(error):
                raise
            return None


def follows(signer: str, key: str, successors: Mapping[str, str]) -> bool:
    """Whether the signer is this key, or one that rotations lead to from it."""
    # A ledger may record several rotations at once, all sealed by the newest key.
    seen: set[str] = set()
    while key != signer:
        seen.add(key)
        key = successors.get(key, "")
        if not key or key in seen:  # Forged records may form a circle.
            return False
    return True


def retirements(ring: Ring, ends: Iterable[KeyEnd]) -> dict[str, Retirement]:
    """The retired keys and up to which records each was valid, from the ring and the `keys` chain.

    Of several records about one key, the first counts: the holder of an old key may add a record, but not before it.
    """
    found = retirements_by_time(ring)
    for end in ends:
        known = found.get(end.key, Retirement(end.at))
        if known.limits is not None:
            continue
        limits = {chain: count for chain, (count, _) in end.heads.items()}
        # The heads were taken before this record, so the `keys` chain itself is limited by its place.
        found[end.key] = Retirement(known.retired_at, {**limits, KEYS_CHAIN: end.sequence})
    return found


def heads_at_ends(ends: Iterable[KeyEnd]) -> dict[str, tuple[int, str]]:
    """Count and hash of every chain when a key last ended. Records before them cannot be signed anew."""
    latest: dict[str, tuple[int, str]] = {}
    for end in ends:
        latest.update(end.heads)
    return latest


def only_valid(
    ring: Ring,
    records: Iterable[Sealed],
    chain: str | None = None,
    retired: Mapping[str, Retirement] | None = None,
    *,
    also_unknown: bool = False,
) -> Iterator[Sealed]:
    """Yield the records of the `keys` or `meta` chain whose own content and signature hold.

    Given the chain and the `retired` keys, records that a retired key signed after its time are left out, too. With
    `also_unknown`, signatures by unknown keys do not matter: the verdict on the chain names them.
    """
    rules = Rules(ring, retired=retired or {})
    for record in records:
        judge = ChainJudge(rules, chain=chain, start=None)
        judge.judge(record)
        signer = judge.signer
        # Of a key with two halves, one may be unknown.
        if any(finding.code != "UNKNOWN_SIGNER" for finding in judge.tally.findings):
            continue
        if also_unknown if signer is None else signer.fingerprint == record.signed_by:
            yield record


def replaced_keys(records: Iterable[Sealed]) -> dict[str, str]:
    """The rotations that the `keys` chain records: {new key: the key that it replaced}, by their 64 digits.

    Both keys have signed each of them, so no key need be known for that, and no stranger can lead to another's key.
    """
    found = {}
    for record in records:
        try:
            statement = Statement.from_dict(record.to_dict()["authority"]["chain"][0])
            rotation = read_rotation(statement) if record.kind == "key.rotate" else None
        except _UNREADABLE:
            continue
        if rotation is not None:
            found[rotation.new.ed25519] = rotation.old.ed25519
    return found


def report_unrecorded(tally: Tally) -> None:
    """Turn the signers that the `keys` chain does not record, and no trace vouches for, into a warning each."""
    missing: dict[str, Place] = {}
    for signer, place in tally.unrecorded.items():
        if signer not in tally.vouched:
            missing.setdefault(signer.key, place)
    for key, place in missing.items():
        words = f"no intact keys chain records that the key {key[:16]} came into use before it sealed {place}"
        # Without a place of its own: the doubt concerns all that the key sealed, and what else may have been cut.
        tally.add(Finding("keys", "warning", "KEY_UNRECORDED", words))
    tally.unrecorded = {}
