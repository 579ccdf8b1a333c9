"""The key ring: our own public keys, by identity and epoch, and the known keys of others. No I/O.

A ring is a value: every change returns a new one. These rules always hold:

1. An identity of ours has at most one active epoch, and no epoch twice.
2. A fingerprint names one key of ours. A second one with the same fingerprint is refused (`FINGERPRINT_TAKEN`).
3. A document is read only if the ring would write exactly the same document.

Of a key of another party, the ring may also have the entry that its owner exported (`published`): the owner's identity
and purpose for it, when it was retired, and the rotation statement. It counts for this one key only.

`lookup` takes the name by which a record calls its signer: a fingerprint of 16 hex digits, or `qp_key_XXXX` with the
first four. Both are only the beginning of a key, and anyone can make another key with the same beginning. So `lookup`
returns every key that matches, and the known keys are told apart by the whole key.

`sign_rotation` makes the statement by which a key names its successor. It contains the identity, both public keys with
their epochs, and the time. The old key signs it, so that no one else can name a successor. The new key signs it, too,
so that no one can name a key that he does not hold. The new ring entry contains the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from aver.capsule.json_document import check_object, check_version, int_field, parse_document, text_field, time_field
from aver.capsule.json_reader import ELEMENT_MAX
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.fast_dataclass import NamedTuple, dataclass
from aver.keys.public_key import PURPOSES, KeyRole, PublicKey, check_identity
from aver.keys.statement import SignatureOutcome, Statement, StatementSigner, check_statement, sign_statement
from aver.lazy_pattern import lazy_pattern

RING_MAX = ELEMENT_MAX
"""Largest ring file, in bytes: some 600 post-quantum rotations, or 10,000 others."""

EPOCH_MAX = 1_000_000
"""Highest epoch. A key that is rotated every minute reaches it after two years."""

QP_PREFIX = "qp_key_"

_KEY_NAME = lazy_pattern(r"[0-9a-f]{16}(?:[0-9a-f]{48})?")
_ENTRY_FIELDS = frozenset({"identity", "purpose", "epoch", "created_at", "retired_at", "statement"})
_PUBLIC_KEY_FIELDS = frozenset({"public_key", "public_key_pq"})
_DERIVED_FIELDS = frozenset({"algorithm", "fingerprint", "status"})


@dataclass(frozen=True, slots=True)
class RingEntry:
    """One epoch of an identity's key. `statement` is the rotation statement that introduced it, if there is one."""

    identity: str
    purpose: str
    epoch: int
    key: PublicKey
    created_at: str
    retired_at: str | None = None
    statement: Statement | None = None

    def __post_init__(self) -> None:
        check_identity(self.identity)
        if self.purpose not in PURPOSES:
            raise BadInput(f"{ascii(self.purpose)[:80]} is not a purpose", advice=f"use one of {', '.join(PURPOSES)}")
        int_field(self.epoch, f"{self.identity}: epoch", low=0, high=EPOCH_MAX)
        time_field(self.created_at, f"{self.identity}: created_at")
        if self.retired_at is not None:
            time_field(self.retired_at, f"{self.identity}: retired_at")

    @property
    def fingerprint(self) -> str:
        return self.key.fingerprint

    @property
    def algorithm(self) -> str:
        return self.key.algorithm

    @property
    def status(self) -> str:
        return "active" if self.retired_at is None else "retired"

    @property
    def role(self) -> KeyRole:
        return KeyRole(self.identity, self.purpose, self.key.algorithm)

    def to_dict(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "purpose": self.purpose,
            "epoch": self.epoch,
            "algorithm": self.algorithm,
            "fingerprint": self.fingerprint,
            "public_key": self.key.ed25519,
            "public_key_pq": self.key.ml_dsa_65,
            "created_at": self.created_at,
            "retired_at": self.retired_at,
            "status": self.status,
            "statement": None if self.statement is None else self.statement.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Any, where: str = "entry") -> RingEntry:
        data = check_object(data, where, _ENTRY_FIELDS | _PUBLIC_KEY_FIELDS | _DERIVED_FIELDS)
        statement = data["statement"]
        entry = cls(
            identity=data["identity"],
            purpose=data["purpose"],
            epoch=data["epoch"],
            key=PublicKey.read(data["public_key"], data["public_key_pq"], where),
            created_at=data["created_at"],
            retired_at=data["retired_at"],
            statement=None if statement is None else Statement.from_dict(statement, f"{where}.statement"),
        )
        status = "active" if entry.retired_at is None else "retired"
        derived = {"algorithm": entry.key.algorithm, "fingerprint": entry.key.fingerprint, "status": status}
        for name, value in derived.items():  # Rule 3.
            if data[name] != value:
                raise BadInput(f"{where}.{name} contradicts the rest of the entry: it should be {value!r}")
        return entry


KeyLike = PublicKey | RingEntry | str
"""A key that a caller gives: a key, the entry of an export, or 64 hex digits."""


@dataclass(frozen=True, slots=True)
class Ring:
    """Our keys and the known keys. A signer who is not listed is unknown, never invalid.

    A `closed` ring has the keys that a caller gave for one call. Then the verifier's home plays no part.
    `known` names a key by its fingerprint; where another known key has the same fingerprint, by its 64 digits.
    """

    entries: tuple[RingEntry, ...] = ()
    known: Mapping[str, PublicKey] = field(default_factory=dict)
    closed: bool = False
    published: tuple[RingEntry, ...] = ()
    """What the owners of known keys have exported about them. At most one entry for each key."""
    _active: dict[str, RingEntry] = field(init=False, repr=False, compare=False)
    _by_fingerprint: dict[str, RingEntry] = field(init=False, repr=False, compare=False)
    _by_key: dict[str, RingEntry] = field(init=False, repr=False, compare=False)
    _by_signer: dict[str, tuple[PublicKey, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_once = object.__setattr__
        set_once(self, "known", MappingProxyType(_name_keys(self.known)))
        # Rules 1 and 2 for our own entries.
        by_fingerprint: dict[str, RingEntry] = {}
        active: dict[str, RingEntry] = {}
        epochs: set[tuple[str, int]] = set()
        for entry in self.entries:
            identity, epoch = entry.identity, entry.epoch
            if (identity, epoch) in epochs:
                raise BadInput(f"{identity} has the epoch {epoch} twice")
            if entry.fingerprint in by_fingerprint:
                raise _fingerprint_taken_error(entry.fingerprint)
            if entry.retired_at is None:
                if identity in active:
                    raise BadInput(
                        f"{identity} has two active epochs: {active[identity].epoch} and {epoch}",
                        advice="rotate or retire the first",
                    )
                active[identity] = entry
            epochs.add((identity, epoch))
            by_fingerprint[entry.fingerprint] = entry
        set_once(self, "_by_fingerprint", by_fingerprint)
        set_once(self, "_active", active)
        # By the whole key: others may know a key with the fingerprint of one of ours.
        keys = {entry.key.ed25519: entry.key for entry in self.entries}
        for key in self.known.values():
            keys[key.ed25519] = _merge_keys(keys.get(key.ed25519), key)
        for entry in self.published:
            if entry.key.ed25519 not in keys:
                raise BadInput(f"the published entry of {entry.fingerprint} is about a key that is not known")
        # Our entries come last, so that they replace what others say about a key of ours.
        by_key = {entry.key.ed25519: entry for entry in (*self.published, *self.entries)}
        set_once(self, "_by_key", by_key)
        # A record names its signer by the fingerprint, or by the four digits that qp-capsule writes.
        index: dict[str, tuple[PublicKey, ...]] = {}
        for key in keys.values():
            for name in (key.fingerprint, QP_PREFIX + key.ed25519[:4]):
                index[name] = (*index.get(name, ()), key)
        set_once(self, "_by_signer", index)

    def __reduce__(self) -> tuple[Any, ...]:
        return Ring, (self.entries, dict(self.known), self.closed, self.published)

    @classmethod
    def pin(cls, keys: Iterable[KeyLike]) -> Ring:
        """A closed ring of these keys and no others. Entries among them also say when their keys were retired."""
        known: dict[str, PublicKey] = {}
        published: dict[str, RingEntry] = {}
        for given in keys:
            key = PublicKey(given) if isinstance(given, str) else given
            if isinstance(key, RingEntry):
                published[key.key.ed25519] = _merge_entries(published.get(key.key.ed25519), key)
                key = key.key
            known[key.ed25519] = _merge_keys(known.get(key.ed25519), key)
        return cls(known=known, closed=True, published=tuple(published.values()))

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        return (*(entry.key for entry in self.entries), *self.known.values())

    def active(self, identity: str) -> RingEntry | None:
        """The entry with which `identity` signs now, or None."""
        return self._active.get(identity)

    def entry(self, fingerprint: str) -> RingEntry | None:
        """Our own entry with that fingerprint, active or retired, or None."""
        return self._by_fingerprint.get(fingerprint)

    def entry_of(self, key: PublicKey) -> RingEntry | None:
        """The knowledge about a key: our own entry, or the one that its owner published. None for a bare key."""
        return self._by_key.get(key.ed25519)

    def retirement_times(self) -> dict[str, str]:
        """When each retired key was retired, by the whole key: ours, and those that their owners call retired.

        A rotation statement retires the old key, too, if both keys signed it. So it is enough to know the new entry.
        """
        found = [(entry.key.ed25519, entry.retired_at) for entry in (*self.entries, *self.published)]
        for entry in self.published:  # The old entries of our own rotations are here.
            if entry.statement is not None and (rotation := read_rotation(entry.statement)) is not None:
                found.append((rotation.old.ed25519, rotation.at))
        times: dict[str, str] = {}
        for key, at in found:
            if at is not None:
                times[key] = min(at, times.get(key, at))
        return times

    def entries_of(self, identity: str) -> tuple[RingEntry, ...]:
        return tuple(entry for entry in self.entries if entry.identity == identity)

    def lookup(self, signed_by: str) -> tuple[PublicKey, ...]:
        """Every key that a record may mean by `signed_by`; none if it is unknown. Constant time."""
        return self._by_signer.get(signed_by, ())

    def with_entry(self, entry: RingEntry) -> Ring:
        return replace(self, entries=(*self.entries, entry))

    def retire(self, identity: str, at: str) -> Ring:
        """The ring with the active epoch of `identity` retired at `at`. `NotFound` if there is none."""
        active = self.active(identity)
        if active is None:
            raise NotFound(f"{identity} has no active key to retire")
        retired = replace(active, retired_at=at)
        return replace(self, entries=tuple(retired if entry is active else entry for entry in self.entries))

    def find_known(self, name: str) -> PublicKey:
        """The known key with this fingerprint or these 64 digits. `NotFound` if there is none, `BadInput` if several.

        Several keys may have one fingerprint; then the caller must name one by its 64 digits.
        """
        found = [key for key in self.known.values() if name in (key.fingerprint, key.ed25519)]
        if not found:
            raise NotFound(f"no known key has the fingerprint {name[:80]!r}")
        if len(found) > 1:
            listed = ", ".join(key.ed25519 for key in found)
            raise BadInput(f"{len(found)} known keys have the fingerprint {name}", advice=f"name one whole: {listed}")
        return found[0]

    def with_known(self, new: PublicKey | RingEntry) -> Ring:
        """The ring that also knows a key, and what its owner published about it.

        A known key may get a post-quantum half, and may become retired. Neither is ever taken back. A key that imitates
        the fingerprint of another known key is taken beside it; one that imitates ours is refused.
        """
        key = new.key if isinstance(new, RingEntry) else new
        ours = self.entry(key.fingerprint)
        if ours is not None:
            if ours.key.ed25519 != key.ed25519:  # Nobody but an imitator of ours has such a key.
                raise _fingerprint_taken_error(key.fingerprint)
            _merge_keys(ours.key, key)
            return self
        known = {each.ed25519: each for each in self.known.values()}
        known[key.ed25519] = _merge_keys(known.get(key.ed25519), key)
        published = {entry.key.ed25519: entry for entry in self.published}
        if isinstance(new, RingEntry):
            published[key.ed25519] = _merge_entries(published.get(key.ed25519), new)
        return replace(self, known=known, published=tuple(published.values()))

    def without_known(self, name: str) -> Ring:
        """The ring without the known key that has this fingerprint or these 64 digits."""
        forgotten = self.find_known(name).ed25519
        known = {each: key for each, key in self.known.items() if key.ed25519 != forgotten}
        return replace(
            self,
            known=known,
            published=tuple(entry for entry in self.published if entry.key.ed25519 != forgotten),
        )

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "version": 1,
            "entries": [entry.to_dict() for entry in self.entries],
        }
        if self.published:
            document["published"] = [entry.to_dict() for entry in self.published]
        if self.known:
            document["known"] = {
                name: {"public_key": key.ed25519, "public_key_pq": key.ml_dsa_65} for name, key in self.known.items()
            }
        if self.closed:
            document["closed"] = True
        return document

    @classmethod
    def from_dict(cls, data: Any, where: str = "key ring") -> Ring:
        optional = frozenset({"known", "closed", "published"})
        data = check_object(data, where, frozenset({"version", "entries"}), optional)
        check_version(data["version"], where)
        if not isinstance(data["entries"], list):
            raise BadInput(f"{where}.entries must be a list")
        if data.get("closed", True) is not True:
            raise BadInput(f"{where}.closed is either true or left out")
        known = _known_from_dict(data["known"], f"{where}.known") if "known" in data else {}
        entries = tuple(RingEntry.from_dict(item, f"{where}.entries[{at}]") for at, item in enumerate(data["entries"]))
        published = entries_from_list(data["published"], f"{where}.published") if "published" in data else ()
        try:
            ring = cls(entries, known, "closed" in data, published)
        except Refused as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error
        if ring.known.keys() != known.keys():  # Rule 3.
            raise BadInput(f"{where}.known does not name its keys by their fingerprints")
        return ring

    @classmethod
    def from_bytes(cls, raw: bytes, where: str = "key ring") -> Ring:
        """Read the ring in a JSON file of at most `RING_MAX` bytes. Raises `BadInput`."""
        return cls.from_dict(parse_document(raw, where, limit=RING_MAX), where)


def _known_from_dict(data: Any, where: str) -> dict[str, PublicKey]:
    if not isinstance(data, dict) or not data:
        raise BadInput(f"{where} is an object with at least one key, or left out")
    known = {}
    for name, item in data.items():
        item = check_object(item, f"{where}.{name[:80]}", _PUBLIC_KEY_FIELDS)
        known[name] = PublicKey.read(item["public_key"], item["public_key_pq"], f"{where}.{name[:80]}")
        check_key_name(name, known[name], where)
    return known


def entries_from_list(data: Any, where: str) -> tuple[RingEntry, ...]:
    """Read the entries that other parties published, at least one and each key once."""
    if not isinstance(data, list) or not data:
        raise BadInput(f"{where} is a list with at least one entry, or left out")
    entries = tuple(RingEntry.from_dict(item, f"{where}[{at}]") for at, item in enumerate(data))
    if len({entry.key.ed25519 for entry in entries}) != len(entries):
        raise BadInput(f"{where} has two entries of one key")
    return entries


def check_key_name(name: Any, key: PublicKey, where: str) -> None:
    """Raise `BadInput` unless `name` is the fingerprint of a key, or the whole key."""
    text_field(name, f"{where}: a fingerprint", _KEY_NAME)
    if name not in (key.fingerprint, key.ed25519):
        raise BadInput(f"{where}: the key {key.fingerprint} is listed as {name}")


def _name_keys(known: Mapping[str, PublicKey]) -> dict[str, PublicKey]:
    """Name known keys by their fingerprints, and a second key with the same fingerprint by its 64 digits."""
    named: dict[str, PublicKey] = {}
    for name, key in known.items():
        if name not in (key.fingerprint, key.ed25519):
            raise BadInput(f"the known key {key.fingerprint} is listed as {name[:80]!r}")
        other = named.get(key.fingerprint, key)
        named[key.fingerprint if other.ed25519 == key.ed25519 else key.ed25519] = key
    return named


def _merge_keys(known: PublicKey | None, new: PublicKey) -> PublicKey:
    """The key that both describe. `Refused` with `FINGERPRINT_TAKEN` if their post-quantum halves differ."""
    if known is None:
        return new
    if known.ml_dsa_65 and new.ml_dsa_65 and known.ml_dsa_65 != new.ml_dsa_65:
        raise _fingerprint_taken_error(new.fingerprint)
    return known if known.ml_dsa_65 else new


def _merge_entries(known: RingEntry | None, new: RingEntry) -> RingEntry:
    """Join two entries of one key: the new one, but an earlier retirement stays.

    A rotation to this key that was proved stays, too: it retires the key before. A file has only one such statement, so
    another one in a later file would take that back.
    """
    if known is None:
        return new
    times = [entry.retired_at for entry in (known, new) if entry.retired_at is not None]
    proved = None if known.statement is None else read_rotation(known.statement)
    stays = proved is not None and proved.new.ed25519 == known.key.ed25519
    return replace(
        new,
        key=_merge_keys(known.key, new.key),
        retired_at=min(times, default=None),
        statement=known.statement if stays else new.statement or known.statement,
    )


def _fingerprint_taken_error(fingerprint: str) -> Refused:
    return Refused(
        "FINGERPRINT_TAKEN",
        f"the fingerprint {fingerprint} already belongs to another key",
        advice="find out which of the two is genuine before trusting either",
    )


ROTATION_PURPOSE = "rotation"


class KeyRotation(NamedTuple):
    """A rotation that both keys signed."""

    identity: str
    old: PublicKey
    new: PublicKey
    at: str


def read_rotation(statement: Statement) -> KeyRotation | None:
    """Read a rotation statement, and check it with the keys that it names. None unless both of them signed it.

    The caller must trust one of the two keys: then it trusts what that key said about the other.
    """
    content = statement.content
    try:
        old, new = (PublicKey(content[side]["public_key"], content[side]["public_key_pq"]) for side in ("old", "new"))
        identity, at = content["identity"], time_field(content["at"], "at")
    except (AverError, KeyError, TypeError):
        return None
    if statement.purpose != ROTATION_PURPOSE or not isinstance(identity, str) or old.ed25519 == new.ed25519:
        return None
    results = check_statement(statement, Ring.pin((old, new)))
    signed = {result.key for result in results if result.outcome == "valid"}
    return KeyRotation(identity, old, new, at) if signed >= {old, new} else None


def sign_rotation(
    old: RingEntry, new: RingEntry, old_signer: StatementSigner, new_signer: StatementSigner
) -> Statement:
    """Build the rotation statement, signed by both keys."""
    return sign_statement(ROTATION_PURPOSE, _rotation_content(old, new), (old_signer, new_signer))


def check_rotation(old: RingEntry, new: RingEntry) -> SignatureOutcome:
    """Check the statement in `new` that makes it the successor of `old`."""
    statement = new.statement
    if statement is None:
        return "missing"
    if statement.purpose != ROTATION_PURPOSE or statement.content != _rotation_content(old, new):
        return "invalid"
    pair = (old.fingerprint, new.fingerprint)
    results = check_statement(statement, Ring.pin((old.key, new.key)), signers_required=pair)
    return "valid" if all(result.outcome == "valid" for result in results) else "invalid"


def _rotation_content(old: RingEntry, new: RingEntry) -> dict[str, Any]:
    return {"identity": new.identity, "at": new.created_at, "old": _describe_key(old), "new": _describe_key(new)}


def _describe_key(entry: RingEntry) -> dict[str, Any]:
    return {
        "epoch": entry.epoch,
        "purpose": entry.purpose,
        "fingerprint": entry.fingerprint,
        "public_key": entry.key.ed25519,
        "public_key_pq": entry.key.ml_dsa_65,
    }
