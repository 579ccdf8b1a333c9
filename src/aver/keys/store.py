"""The key store: private keys, our ring and the known keys, as files under one home.

    keys/<slug>.<epoch>.key            Ed25519 seed, 32 raw bytes      } of the active epoch only,
    keys/<slug>.<epoch>.pq             ML-DSA-65 seed, 32 raw bytes    } mode 0600
    keys/<slug>.<epoch>.sealed.json    both, under a passphrase        }
    keys/.lock  keys/.gate             see `aver.keys.store_lock`
    keyring.json                       our public keys: `Ring.to_dict()` without the known ones
    known_keys.json                    keys of others: {fingerprint: Ed25519 public key}
    known_keys_pq.json                 their ML-DSA-65 halves: see `aver.keys.exchange`
    known_entries.json                 what the owners exported about them: identity, purpose, retirement, rotation

It promises:

1. Reading creates nothing.
2. A change excludes all other changes and all signing.
3. A change takes effect at one moment: when `keyring.json` is replaced. Private files are written before that and
   destroyed after it. The next change removes the leftovers of one that was interrupted.
4. At every moment, an active epoch has its private key, and an identity has at most one active epoch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver import clock
from aver.capsule.json_document import dump_document
from aver.config import ensure_home
from aver.errors import NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory, replace_file
from aver.files.regular import read_public_file, require_safe_directory
from aver.keys import private_files
from aver.keys.algorithms import FINGERPRINT_DIGITS
from aver.keys.exchange import (
    build_key_export,
    fingerprint_error,
    half_error,
    known_key_paths,
    read_known_keys,
    save_known_keys,
)
from aver.keys.private_files import (
    SEALED_SUFFIX,
    decrypt_seeds,
    generate_seeds,
    passphrase_needed_error,
    private_path,
    read_encrypted_seeds,
    read_seeds,
    signer_from_seeds,
    write_seeds,
)
from aver.keys.public_key import LEDGER, PublicKey, check_identity, default_purpose
from aver.keys.ring import RING_MAX, Ring, RingEntry, sign_rotation
from aver.keys.signers import SeedSigner, StoreSigner
from aver.keys.statement import Statement
from aver.keys.store_lock import get_store_lock
from aver.log import debug

LOCK_TIMEOUT = 30.0
"""Seconds to wait for a lock where the settings name no other time."""

UNSETTLED_NS = 50_000_000
"""A file that changed so recently may change again within one tick of its timestamps, so it is read again."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result of a rotation. `remains` are retired private files that Aver could not destroy yet."""

    old: RingEntry
    new: RingEntry
    statement: Statement
    remains: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedKeys:
    """The result of an import: keys registered now, known before, and left out because they were not in `trust`."""

    registered: tuple[PublicKey | RingEntry, ...]
    already_known: tuple[PublicKey | RingEntry, ...]
    left_out: tuple[PublicKey | RingEntry, ...]


class KeyStore:
    """The keys under one home. Creating this object opens no file."""

    def __init__(self, home: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.home = home
        self.lock_timeout = lock_timeout
        self._directory = home / "keys"
        self.lock = get_store_lock(self._directory)
        self._ring_path = home / "keyring.json"
        self._read_paths = [str(path) for path in (self._ring_path, *known_key_paths(home))]
        self._seen: tuple[tuple[private_files.Stamp | None, ...], Ring] | None = None

    # --- reading

    def ring(self) -> Ring:
        """The current ring with the known keys. Reads the files only if they have changed."""
        stamps = tuple([private_files.read_stamp(path) for path in self._read_paths])
        seen = self._seen
        if seen is not None and seen[0] == stamps:
            return seen[1]
        others = read_known_keys(self.home)
        ring = replace(self._read_own_ring(), known=others.known, published=others.published)
        if all(stamp is None or time.time_ns() - stamp[3] > UNSETTLED_NS for stamp in stamps):
            self._seen = stamps, ring
        return ring

    def ring_stamp(self) -> private_files.Stamp | None:
        """A value that changes with our ring. Every change makes the file longer, so none is missed."""
        return private_files.read_stamp(self._read_paths[0])

    def signer(self, identity: str = LEDGER, *, create: bool = True, post_quantum: bool = False) -> StoreSigner:
        """The signer of `identity`. With `create`, an identity that never had a key gets one at its first use.

        Raises `NotFound` without a key, `Refused` if the key needs a passphrase.
        """
        check_identity(identity)
        active = self._read_own_ring().active(identity)
        if active is None and not create:
            raise _no_key_error(identity)
        if active is not None and os.path.lexists(private_path(self._directory, active, SEALED_SUFFIX)):
            raise passphrase_needed_error(identity)
        return StoreSigner(self, identity, create=create, post_quantum=post_quantum)

    def unlock(self, identity: str, passphrase: str) -> SeedSigner:
        """The signer of an identity whose key is encrypted under a passphrase."""
        if not self._directory.is_dir():
            raise _no_key_error(identity)
        with self.lock.hold_shared(self.lock_timeout):
            active = _require_active(self._read_own_ring(), identity)
            sealed = read_encrypted_seeds(self._directory, active)
        if sealed is None:
            raise Refused("NOT_SEALED", f"the key of {identity} has no passphrase", advice="use it without unlocking")
        return signer_from_seeds(active, decrypt_seeds(sealed, passphrase, f"the key of {identity}"))

    def find_keys(self, *names: str) -> tuple[RingEntry | PublicKey, ...]:
        """Of each name every epoch of an identity, or the key with a fingerprint, each once."""
        found = {_public_key(key).ed25519: key for name in names for key in self._find_exported(name)}
        return tuple(found.values())

    def export(self, *names: str) -> dict[str, Any]:
        """A document of the public keys that `find_keys` finds.

        It says which keys are retired, and has the rotation statements, so that whoever reads it honours them.
        """
        return build_key_export(self.find_keys(*names))

    def _find_exported(self, name: str) -> Iterable[RingEntry | PublicKey]:
        ring = self.ring()
        if entries := ring.entries_of(name):
            return entries
        if entry := ring.entry(name):
            return (entry,)
        try:
            known = ring.find_known(name)
        except NotFound:
            words = f"no identity or fingerprint {ascii(name)[:80]} here"
            raise NotFound(words, advice="list the keys to see which are") from None
        return (ring.entry_of(known) or known,)

    # --- changing our keys

    def create(
        self, identity: str, *, purpose: str | None = None, post_quantum: bool = False, passphrase: str | None = None
    ) -> RingEntry:
        """Create a key for an identity that has no active one. A person's key needs a passphrase."""
        check_identity(identity)
        if passphrase is None and identity.startswith("person:"):
            raise passphrase_needed_error(identity)
        with self._begin_change() as ring:
            if ring.active(identity) is not None:
                raise Refused("KEY_EXISTS", f"{identity} has an active key already", advice="rotate it instead")
            return self._create_key(ring, identity, purpose, post_quantum=post_quantum, passphrase=passphrase)

    def register(self, identity: str, key: PublicKey, *, purpose: str | None = None) -> RingEntry:
        """Add a key whose private half is elsewhere, in ssh-agent."""
        check_identity(identity)
        with self._begin_change() as ring:
            if ring.active(identity) is not None:
                raise Refused("KEY_EXISTS", f"{identity} has an active key already", advice="rotate it instead")
            if not self._ring_path.exists():
                self._write_first_ring(ring)
            epoch = _next_epoch(ring, identity)
            entry = RingEntry(identity, purpose or default_purpose(identity), epoch, key.check_usable(), clock.now())
            self._save_ring(ring.with_entry(entry))
            return entry

    def create_if_absent(self, identity: str, *, post_quantum: bool) -> None:
        """Create an identity's first key, unless it has or had one. Several processes may try at once."""
        if self._read_own_ring().entries_of(identity):
            return
        if identity.startswith("person:"):
            raise passphrase_needed_error(identity)
        with self._begin_change() as ring:
            if not ring.entries_of(identity):
                self._create_key(ring, identity, None, post_quantum=post_quantum, passphrase=None)

    def rotate(self, identity: str, *, passphrase: str | None = None, post_quantum: bool | None = None) -> Rotation:
        """Give `identity` a new key, confirmed by the old one, and destroy the old private key.

        With `post_quantum` None, the new key has a post-quantum half if the old one had. `passphrase` decrypts the old
        key where it is encrypted, and encrypts the new one.
        """
        _require_active(self._read_own_ring(), identity)
        with self._begin_change() as ring:
            old = _require_active(ring, identity)
            old_signer = signer_from_seeds(old, read_seeds(self._directory, old, passphrase))
            hybrid = bool(old.key.ml_dsa_65) if post_quantum is None else post_quantum
            seeds = generate_seeds(post_quantum=hybrid)
            new_signer = SeedSigner(seeds.ed25519, seeds.ml_dsa_65)
            at = _retirement_time(old)
            new = RingEntry(identity, old.purpose, _next_epoch(ring, identity), new_signer.public, at)
            statement = sign_rotation(old, new, old_signer, new_signer)
            new = replace(new, statement=statement)
            changed = ring.retire(identity, at).with_entry(new)
            # The order of promise 3: the new private key, the ring, and then the old private key.
            write_seeds(self._directory, new, seeds, passphrase)
            self._save_ring(changed)
            retired = replace(old, retired_at=at)
            return Rotation(retired, new, statement, self._remove_leftovers(changed))

    def retire(self, identity: str) -> RingEntry:
        """Retire an identity's active key without a successor, and destroy the private key."""
        _require_active(self._read_own_ring(), identity)
        with self._begin_change() as ring:
            old = _require_active(ring, identity)
            at = _retirement_time(old)
            changed = ring.retire(identity, at)
            self._save_ring(changed)
            self._remove_leftovers(changed)
            return replace(old, retired_at=at)

    # --- changing the known keys

    def trust(self, key: PublicKey | RingEntry) -> None:
        """Register another party's public key as known, with what its owner published about it."""
        self.import_keys((key,), trust={_public_key(key).confirmation})

    def import_keys(self, keys: Iterable[PublicKey | RingEntry], *, trust: Collection[str]) -> ImportedKeys:
        """Register those `keys` whose `confirmation` is in `trust`. Returns the result for each key.

        A fingerprint in `trust` is refused with `BadInput`: a stranger can make another key that begins the same. So is
        the Ed25519 half of a key with a post-quantum half: a stranger can put his own half beside it.
        """
        if short := min((name for name in trust if len(name) == FINGERPRINT_DIGITS), default=""):
            raise fingerprint_error(short)
        registered: list[PublicKey | RingEntry] = []
        already_known: list[PublicKey | RingEntry] = []
        left_out: list[PublicKey | RingEntry] = []
        with self._begin_change() as ring:
            for key in keys:
                changed, public = ring, _public_key(key)
                if public.ml_dsa_65 and public.ed25519 in trust:
                    raise half_error(public)
                if public.confirmation in trust:
                    public.check_usable()
                    changed = ring.with_known(key)
                    (already_known if changed == ring else registered).append(key)
                elif public in ring.lookup(public.fingerprint):
                    already_known.append(key)
                else:
                    left_out.append(key)
                ring = changed
            if registered:
                save_known_keys(self.home, ring)
        return ImportedKeys(tuple(registered), tuple(already_known), tuple(left_out))

    def forget(self, name: str) -> None:
        """Remove another party's key from the known keys, by its fingerprint or its 64 digits.

        Raises `NotFound` if it is not there, `BadInput` if several keys have that fingerprint.
        """
        self.ring().without_known(name)
        with self._begin_change() as ring:
            save_known_keys(self.home, ring.without_known(name))

    # --- for StoreSigner

    def load_active(self, identity: str, loaded: SeedSigner | None) -> SeedSigner:
        """The signer of the active key: `loaded` if it is still that key. The caller holds the lock."""
        active = _require_active(self._read_own_ring(), identity)
        if loaded is not None and loaded.public == active.key:
            return loaded
        return signer_from_seeds(active, read_seeds(self._directory, active, None))

    # --- inside

    @contextmanager
    def _begin_change(self) -> Iterator[Ring]:
        """Hold the store's lock exclusively and give the current ring, after removing leftovers."""
        ensure_home(self.home)
        try:
            make_directory(self._directory)
        except OSError as error:
            raise Unavailable(f"cannot create {self._directory}: {error.strerror}") from error
        with self.lock.hold_exclusive(self.lock_timeout):
            require_safe_directory(self.home)
            require_safe_directory(self._directory)
            self._seen = None
            ring = self.ring()
            self._remove_leftovers(ring)
            yield ring

    def _create_key(
        self, ring: Ring, identity: str, purpose: str | None, *, post_quantum: bool, passphrase: str | None
    ) -> RingEntry:
        if not self._ring_path.exists():
            self._write_first_ring(ring)
        seeds = generate_seeds(post_quantum=post_quantum)
        public = SeedSigner(seeds.ed25519, seeds.ml_dsa_65).public
        epoch = _next_epoch(ring, identity)
        entry = RingEntry(identity, purpose or default_purpose(identity), epoch, public, clock.now())
        changed = ring.with_entry(entry)
        write_seeds(self._directory, entry, seeds, passphrase)
        self._save_ring(changed)
        return entry

    def _write_first_ring(self, ring: Ring) -> None:
        """Write the empty ring before the first key. So private keys without a ring mean that the ring was lost."""
        try:
            stray = sorted(filter(private_files.is_private_file_name, os.listdir(self._directory)))
        except OSError as error:
            raise Unavailable(f"cannot look at {self._directory}: {error.strerror}") from error
        if stray:
            debug("keys", "private keys without a ring in %s: %s", self._directory, stray)
            raise Refused(
                "RING_LOST",
                f"{self._ring_path} is missing, yet {self._directory} holds {stray[0]}",
                advice="restore keyring.json from a backup, or move the files in keys/ away to start again",
            )
        self._save_ring(ring)

    def _read_own_ring(self) -> Ring:
        raw = read_public_file(self._ring_path, limit=RING_MAX)
        if raw is None:
            return Ring()
        require_safe_directory(self.home)
        return Ring.from_bytes(raw, str(self._ring_path))

    def _save_ring(self, ring: Ring) -> None:
        data = dump_document(Ring(ring.entries).to_dict())
        if len(data) > RING_MAX:
            raise Refused(
                "RING_FULL",
                f"{self._ring_path} would grow beyond {RING_MAX} bytes",
                advice="start a new home and trust this one's exported keys there",
            )
        replace_file(self._ring_path, data)

    def _remove_leftovers(self, ring: Ring) -> tuple[Path, ...]:
        """Remove the files of retired keys and interrupted writes. Returns those that could not be destroyed."""
        if not self._ring_path.exists():
            return ()
        with suppress(OSError):
            for path in self._read_paths:
                for temporary in self.home.glob(f".{os.path.basename(path)}.*"):
                    temporary.unlink()
        try:
            names = os.listdir(self._directory)
        except OSError:
            return (self._directory,)
        remains = []
        for name in private_files.find_leftovers(ring, names):
            try:
                private_files.destroy_file(self._directory / name)
            except Unavailable as error:
                debug("keys", "a leftover private key stays: %s", error)
                remains.append(self._directory / name)
        return tuple(remains)


def _public_key(key: PublicKey | RingEntry) -> PublicKey:
    return key.key if isinstance(key, RingEntry) else key


def _retirement_time(entry: RingEntry) -> str:
    """The retirement time of a key that is retired now. The clock may have been set back since its creation."""
    return max(clock.now(), entry.created_at)


def _next_epoch(ring: Ring, identity: str) -> int:
    return 1 + max((entry.epoch for entry in ring.entries_of(identity)), default=-1)


def _require_active(ring: Ring, identity: str) -> RingEntry:
    active = ring.active(check_identity(identity))
    if active is None:
        raise _no_key_error(identity)
    return active


def _no_key_error(identity: str) -> NotFound:
    debug("keys", "%s has no active key", identity)
    return NotFound(f"{identity} has no active key", advice=f"create one for {identity}")
