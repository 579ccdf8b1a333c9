"""The key ring: our own public keys, by identity and epoch, and the known keys of others. No I/O.

A ring is a value: every change returns a new one. These rules always hold:

1. An identity has at most one active epoch, and no epoch twice.
2. A fingerprint names one key. A second key with the same fingerprint is refused (`FINGERPRINT_TAKEN`).
3. A document is read only if the ring would write exactly the same document.

`lookup` takes the name by which a record calls its signer: a fingerprint of 16 hex digits, or `qp_key_XXXX` with the
first four. Four digits are ambiguous, so it returns every key that matches.

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
from aver.errors import BadInput, NotFound, Refused
from aver.fast_dataclass import dataclass
from aver.keys.public_key import FINGERPRINT_PATTERN, PURPOSES, PublicKey, check_identity
from aver.keys.statement import SignatureOutcome, Statement, StatementSigner, check_statement, sign_statement

RING_MAX = ELEMENT_MAX
"""Largest ring file, in bytes: some 600 post-quantum rotations, or 10,000 others."""

EPOCH_MAX = 1_000_000
"""Highest epoch. A key that is rotated every minute reaches it after two years."""

QP_PREFIX = "qp_key_"

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


@dataclass(frozen=True, slots=True)
class Ring:
    """Our keys and the known keys. If `closed`, a signer who is not listed is invalid, not just unknown."""

    entries: tuple[RingEntry, ...] = ()
    known: Mapping[str, PublicKey] = field(default_factory=dict)
    closed: bool = False
    _active: dict[str, RingEntry] = field(init=False, repr=False, compare=False)
    _by_fingerprint: dict[str, RingEntry] = field(init=False, repr=False, compare=False)
    _by_signer: dict[str, tuple[PublicKey, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_once = object.__setattr__
        set_once(self, "known", MappingProxyType(dict(self.known)))
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
        keys = {name: entry.key for name, entry in by_fingerprint.items()}
        for name, key in self.known.items():
            if name != key.fingerprint:
                raise BadInput(f"the known key {key.fingerprint} is listed as {name[:80]!r}")
            keys[name] = _merge_keys(keys.get(name), key)
        # A record names its signer by the fingerprint, or by the four digits that qp-capsule writes.
        index: dict[str, tuple[PublicKey, ...]] = {}
        for key in keys.values():
            index[key.fingerprint] = (key,)
            short = QP_PREFIX + key.ed25519[:4]
            index[short] = (*index.get(short, ()), key)
        set_once(self, "_by_signer", index)

    def __reduce__(self) -> tuple[Any, ...]:
        return Ring, (self.entries, dict(self.known), self.closed)

    @classmethod
    def pin(cls, keys: Iterable[PublicKey]) -> Ring:
        """A closed ring of these keys and no others."""
        known: dict[str, PublicKey] = {}
        for key in keys:
            known[key.fingerprint] = _merge_keys(known.get(key.fingerprint), key)
        return cls(known=known, closed=True)

    def active(self, identity: str) -> RingEntry | None:
        """The entry with which `identity` signs now, or None."""
        return self._active.get(identity)

    def entry(self, fingerprint: str) -> RingEntry | None:
        """Our own entry with that fingerprint, active or retired, or None."""
        return self._by_fingerprint.get(fingerprint)

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

    def with_known(self, key: PublicKey) -> Ring:
        """The ring that also knows `key`. A known key may get a post-quantum half; an existing half never changes."""
        name = key.fingerprint
        ours = self.entry(name)
        if ours is not None:
            _merge_keys(ours.key, key)
            return self
        return replace(self, known={**self.known, name: _merge_keys(self.known.get(name), key)})

    def without_known(self, fingerprint: str) -> Ring:
        if fingerprint not in self.known:
            raise NotFound(f"no known key has the fingerprint {fingerprint[:80]!r}")
        return replace(self, known={name: key for name, key in self.known.items() if name != fingerprint})

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "version": 1,
            "entries": [entry.to_dict() for entry in self.entries],
        }
        if self.known:
            document["known"] = {
                name: {"public_key": key.ed25519, "public_key_pq": key.ml_dsa_65} for name, key in self.known.items()
            }
        if self.closed:
            document["closed"] = True
        return document

    @classmethod
    def from_dict(cls, data: Any, where: str = "key ring") -> Ring:
        data = check_object(data, where, frozenset({"version", "entries"}), frozenset({"known", "closed"}))
        check_version(data["version"], where)
        if not isinstance(data["entries"], list):
            raise BadInput(f"{where}.entries must be a list")
        if data.get("closed", True) is not True:
            raise BadInput(f"{where}.closed is either true or left out")
        known = _known_from_dict(data["known"], f"{where}.known") if "known" in data else {}
        entries = (RingEntry.from_dict(item, f"{where}.entries[{at}]") for at, item in enumerate(data["entries"]))
        try:
            return cls(tuple(entries), known, "closed" in data)
        except Refused as error:
            raise BadInput(f"{where}: {error.message}", advice=error.advice) from error

    @classmethod
    def from_bytes(cls, raw: bytes, where: str = "key ring") -> Ring:
        """Read the ring in a JSON file of at most `RING_MAX` bytes. Raises `BadInput`."""
        return cls.from_dict(parse_document(raw, where, limit=RING_MAX), where)


def _known_from_dict(data: Any, where: str) -> dict[str, PublicKey]:
    if not isinstance(data, dict) or not data:
        raise BadInput(f"{where} is an object with at least one key, or left out")
    known = {}
    for name, item in data.items():
        text_field(name, f"{where}: a fingerprint", FINGERPRINT_PATTERN)
        item = check_object(item, f"{where}.{name}", _PUBLIC_KEY_FIELDS)
        known[name] = PublicKey.read(item["public_key"], item["public_key_pq"], f"{where}.{name}")
    return known


def _merge_keys(known: PublicKey | None, new: PublicKey) -> PublicKey:
    """Rule 2: the key that both describe. `Refused` with `FINGERPRINT_TAKEN` if they differ."""
    if known is None:
        return new
    if known.ed25519 != new.ed25519:
        raise _fingerprint_taken_error(new.fingerprint)
    if known.ml_dsa_65 and new.ml_dsa_65 and known.ml_dsa_65 != new.ml_dsa_65:
        raise _fingerprint_taken_error(new.fingerprint)
    return known if known.ml_dsa_65 else new


def _fingerprint_taken_error(fingerprint: str) -> Refused:
    return Refused(
        "FINGERPRINT_TAKEN",
        f"the fingerprint {fingerprint} already belongs to another key",
        advice="find out which of the two is genuine before trusting either",
    )


ROTATION_PURPOSE = "rotation"


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
