"""Rotation: handed over by both keys, complete or not at all, and never behind a writer's back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aver import clock
from aver.errors import Refused, Unavailable
from aver.keys import (
    KeyStore,
    RingEntry,
    SeedSigner,
    check_rotation,
    check_statement,
    sign_statement,
    verify_ed25519,
    verify_ml_dsa_65,
)
from support.many_cases import first_now

DIGEST = hashlib.sha3_256(b"capsule").hexdigest()
KILLED = 77


def private_files(home: Path) -> list[str]:
    return sorted(name for name in os.listdir(home / "keys") if not name.startswith("."))


def test_rotation_hands_over(home: Path, store: KeyStore) -> None:
    store.create("ledger")
    old_signer = SeedSigner((home / "keys/ledger.0.key").read_bytes())
    rotation = store.rotate("ledger")
    ring = store.ring()
    assert ring.entries == (rotation.old, rotation.new)
    assert ring.active("ledger") == rotation.new
    assert (rotation.old.epoch, rotation.new.epoch) == (0, 1)
    assert rotation.old.retired_at == rotation.new.created_at
    assert rotation.old.key == old_signer.public
    assert rotation.new.statement == rotation.statement
    assert rotation.remains == ()
    assert private_files(home) == ["ledger.1.key"]
    outcomes = check_statement(rotation.statement, ring)
    assert [(one.by, one.outcome) for one in outcomes] == [
        (rotation.old.fingerprint, "valid"),
        (rotation.new.fingerprint, "valid"),
    ]
    assert check_rotation(rotation.old, rotation.new) == "valid"
    assert KeyStore(home).ring() == ring


def test_the_old_private_key_is_overwritten_before_it_is_removed(home: Path, store: KeyStore) -> None:
    store.create("ledger", post_quantum=True)
    seeds = {name: (home / "keys" / name).read_bytes() for name in private_files(home)}
    with (home / "keys/ledger.0.key").open("rb") as key, (home / "keys/ledger.0.pq").open("rb") as pq:
        store.rotate("ledger")
        assert key.read() == pq.read() == bytes(32)
    assert private_files(home) == ["ledger.1.key", "ledger.1.pq"]
    assert not set(seeds.values()) & {(home / "keys" / name).read_bytes() for name in private_files(home)}


def test_post_quantum_keys_rotate_too_and_may_come_and_go(store: KeyStore) -> None:
    first = store.create("ledger", post_quantum=True)
    second = store.rotate("ledger").new
    assert second.key.ml_dsa_65
    assert second.key.ml_dsa_65 != first.key.ml_dsa_65
    third = store.rotate("ledger", post_quantum=False).new
    assert third.algorithm == "ed25519"
    fourth = store.rotate("ledger", post_quantum=True).new
    signature = store.signer().sign(DIGEST)
    assert verify_ml_dsa_65(fourth.key.ml_dsa_65_bytes, DIGEST.encode(), signature.ml_dsa_65)
    entries = store.ring().entries
    assert [check_rotation(*pair) for pair in pairwise(entries)] == ["valid"] * 3


def test_what_old_keys_signed_stays_verifiable(store: KeyStore) -> None:
    signed = []
    signer = store.signer()
    for _ in range(4):
        with signer.hold() as held:
            signed.append((held.fingerprint, held.sign(DIGEST).ed25519))
        store.rotate("ledger")
    assert len({fingerprint for fingerprint, _ in signed}) == 4
    for fingerprint, signature in signed:
        (key,) = store.ring().lookup(fingerprint)
        assert verify_ed25519(key.ed25519_bytes, DIGEST.encode(), signature)


def test_a_signer_that_lives_across_a_rotation_stamps_the_key_that_signs(store: KeyStore) -> None:
    signer = store.signer()
    before = signer.fingerprint
    new = store.rotate("ledger").new
    with signer.hold() as held:
        assert held.fingerprint == new.fingerprint != before
        assert verify_ed25519(new.key.ed25519_bytes, DIGEST.encode(), held.sign(DIGEST).ed25519)


def test_a_rotation_of_one_identity_leaves_the_others(home: Path, store: KeyStore) -> None:
    other = store.signer("agent:x")
    before = other.fingerprint
    store.create("ledger")
    store.rotate("ledger")
    assert other.fingerprint == before
    assert private_files(home) == ["agent-x.0.key", "ledger.1.key"]


def forged(entry: RingEntry, **content: Any) -> RingEntry:
    assert entry.statement is not None
    return replace(entry, statement=replace(entry.statement, content={**entry.statement.content, **content}))


def test_a_successor_cannot_be_forged(store: KeyStore) -> None:
    store.create("ledger")
    rotation = store.rotate("ledger")
    old, new, statement = rotation.old, rotation.new, rotation.statement
    thief = SeedSigner.generate()
    assert check_rotation(old, replace(new, statement=None)) == "missing"
    assert check_rotation(old, replace(new, key=thief.public)) == "invalid"
    assert check_rotation(replace(old, key=thief.public), new) == "invalid"
    assert check_rotation(old, replace(new, epoch=7)) == "invalid"
    assert check_rotation(old, replace(new, identity="agent:x")) == "invalid"
    assert check_rotation(old, replace(new, created_at="2020-01-01T00:00:00+00:00")) == "invalid"
    assert check_rotation(old, forged(new, at="2020-01-01T00:00:00+00:00")) == "invalid"
    for kept in ((0,), (1,), ()):
        less = replace(statement, signatures=tuple(statement.signatures[index] for index in kept))
        assert check_rotation(old, replace(new, statement=less)) == "invalid"
    by_thief = sign_statement("rotation", statement.content, (thief, thief))
    assert check_rotation(old, replace(new, statement=by_thief)) == "invalid"
    more = replace(statement, signatures=(*statement.signatures, *by_thief.signatures))
    assert check_rotation(old, replace(new, statement=more)) == "invalid"
    assert check_rotation(old, replace(new, statement=replace(statement, purpose="approval"))) == "invalid"


# Killed at any point


class Killer:
    """Ends the process at its n-th call that touches a file, just before or just after it."""

    CALLS = ("open", "write", "fsync", "replace", "unlink", "fchmod", "mkdir", "close")

    def __init__(self, at: int, *, after: bool) -> None:
        self._left = at
        self._after = after
        for name in self.CALLS:
            setattr(os, name, self._deadly(getattr(os, name)))

    def _deadly(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                os._exit(KILLED)
            result = call(*args, **kwargs)
            if self._left == 0:
                os._exit(KILLED)
            return result

        return run


def sound(home: Path, identity: str) -> None:
    """Exactly one active epoch that signs, and nothing left over once somebody changed the store again."""
    store = KeyStore(home)
    ring = store.ring()
    active = [entry for entry in ring.entries_of(identity) if entry.status == "active"]
    assert len(active) == 1
    signature = store.signer(identity, create=False).sign(DIGEST)
    assert verify_ed25519(active[0].key.ed25519_bytes, DIGEST.encode(), signature.ed25519)
    store.trust(SeedSigner(b"x" * 32).public)
    assert store.ring().active(identity) == active[0]
    expected = {f"{identity.replace(':', '-')}.{active[0].epoch}.key"}
    expected |= {name.replace(".key", ".pq") for name in expected if active[0].key.ml_dsa_65}
    assert set(private_files(home)) == expected
    assert sorted(path.name for path in home.iterdir() if path.name.startswith(".")) == []


def kill_everywhere(
    tmp_path: Path, base: Path | None, change: Callable[[KeyStore], object], start: Any, finish: Any
) -> list[Path]:
    """A copy of the store for each point at which the change was killed, and one in which it was not."""
    homes = []
    for after in (False, True):
        for at in range(1, 400):
            home = tmp_path / f"killed-{after}-{at}"
            if base is not None:
                shutil.copytree(base, home)

            def work(home: Path = home, at: int = at, after: bool = after) -> None:
                Killer(at, after=after)
                change(KeyStore(home))

            status = finish(start(work))
            homes.append(home)
            if status == 0:
                break
            assert status == KILLED
        else:
            pytest.fail("the change never came to its end")
    return homes


@pytest.mark.more
@pytest.mark.parametrize("post_quantum", first_now([False, True]))
def test_a_rotation_killed_at_any_point(tmp_path: Path, start: Any, finish: Any, post_quantum: bool) -> None:
    base = tmp_path / "base"
    KeyStore(base).create("ledger", post_quantum=post_quantum)
    homes = kill_everywhere(tmp_path, base, lambda store: store.rotate("ledger"), start, finish)
    assert len(homes) > 30
    epochs = set()
    for home in homes:
        sound(home, "ledger")
        entries = KeyStore(home).ring().entries
        assert [check_rotation(*pair) for pair in pairwise(entries)] == ["valid"] * (len(entries) - 1)
        active = KeyStore(home).ring().active("ledger")
        assert active is not None
        epochs.add(active.epoch)
        assert KeyStore(home).rotate("ledger").new.epoch == active.epoch + 1
    assert epochs == {0, 1}


@pytest.mark.more
def test_a_first_use_killed_at_any_point(tmp_path: Path, start: Any, finish: Any) -> None:
    homes = kill_everywhere(tmp_path, None, lambda store: store.signer().sign(DIGEST), start, finish)
    assert len(homes) > 20
    for home in homes:
        KeyStore(home).signer().sign(DIGEST)
        sound(home, "ledger")


@pytest.mark.more
def test_a_retirement_killed_at_any_point(tmp_path: Path, start: Any, finish: Any) -> None:
    base = tmp_path / "base"
    KeyStore(base).create("ledger")
    for home in kill_everywhere(tmp_path, base, lambda store: store.retire("ledger"), start, finish):
        store = KeyStore(home)
        if store.ring().active("ledger") is None:
            assert store.create("ledger").epoch == 1
        sound(home, "ledger")


@pytest.mark.more
def test_an_import_killed_at_any_point(tmp_path: Path, start: Any, finish: Any) -> None:
    base = tmp_path / "base"
    store = KeyStore(base)
    store.create("ledger")
    first, second = SeedSigner(b"1" * 32).public, SeedSigner(b"2" * 32, b"2" * 32).public
    store.trust(first)
    for home in kill_everywhere(tmp_path, base, lambda store: store.trust(second), start, finish):
        known = KeyStore(home).ring().known
        assert set(known.values()) in ({first}, {first, second})
        sound(home, "ledger")


# Writers alive across rotations


def check_records(home: Path, records: list[list[str]]) -> set[str]:
    """Every signature holds under the key it was stamped with, and was made while that key was active."""
    ring = KeyStore(home).ring()
    for fingerprint, at, digest, signature in records:
        entry = ring.entry(fingerprint)
        assert entry is not None
        assert verify_ed25519(entry.key.ed25519_bytes, digest.encode(), signature)
        assert entry.created_at <= at
        assert entry.retired_at is None or at <= entry.retired_at
    return {record[0] for record in records}


def write_until(ended: Callable[[], bool], signer: Any, name: str, records: list[list[str]]) -> None:
    while not ended():
        digest = hashlib.sha3_256(f"{name} {len(records)}".encode()).hexdigest()
        with signer.hold() as held:
            signature = held.sign(digest).ed25519
            records.append([held.fingerprint, clock.now(), digest, signature])


@pytest.mark.more
def test_writing_processes_and_twenty_rotations(home: Path, tmp_path: Path, start: Any, finish: Any) -> None:
    store = KeyStore(home)
    store.create("ledger")
    end = tmp_path / "end"

    def write(name: str) -> None:
        records: list[list[str]] = []
        signer = KeyStore(home).signer()
        write_until(lambda: bool(records), signer, name, records)
        (tmp_path / f"{name}.begun").touch()
        write_until(end.exists, signer, name, records)
        (tmp_path / f"{name}.json").write_text(json.dumps(records))

    writers = [f"writer{number}" for number in range(3)]
    children = [start(lambda name=name: write(name)) for name in writers]
    while len(list(tmp_path.glob("*.begun"))) < len(writers):
        time.sleep(0.001)
    for _ in range(20):
        store.rotate("ledger")
        time.sleep(0.01)
    end.touch()
    assert [finish(child) for child in children] == [0] * 3
    for name in writers:
        used = check_records(home, json.loads((tmp_path / f"{name}.json").read_text()))
        assert len(used) > 1
    assert private_files(home) == ["ledger.20.key"]
    entries = store.ring().entries
    assert [check_rotation(*pair) for pair in pairwise(entries)] == ["valid"] * 20


def test_writing_threads_and_rotations_in_the_same_process(home: Path) -> None:
    store = KeyStore(home)
    store.create("ledger")
    signer = store.signer()
    end = threading.Event()
    written: list[list[list[str]]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=write_until, args=(end.is_set, signer, f"thread{number}", written[number]))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in range(10):
        new = store.rotate("ledger").new.fingerprint
        while not any(records and records[-1][0] == new for records in written):
            time.sleep(0.001)
    end.set()
    for thread in threads:
        thread.join()
    used = {fingerprint for records in written for fingerprint in check_records(home, records)}
    assert len(used) >= 10


@pytest.mark.more
def test_two_rotations_at_once_both_happen(home: Path, start: Any, finish: Any) -> None:
    KeyStore(home).create("ledger")

    def rotate() -> None:
        for _ in range(5):
            KeyStore(home).rotate("ledger")

    children = [start(rotate) for _ in range(3)]
    assert [finish(child) for child in children] == [0] * 3
    entries = KeyStore(home).ring().entries
    assert [entry.epoch for entry in entries] == list(range(16))
    assert [entry.status for entry in entries] == ["retired"] * 15 + ["active"]
    sound(home, "ledger")


def test_a_rotation_that_fails_leaves_the_old_key(home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, at the moment the ring is replaced."""
    signer = store.signer()
    before = signer.fingerprint

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(Unavailable, match="No space left"):
            store.rotate("ledger")
    assert signer.fingerprint == before
    sound(home, "ledger")
    assert store.rotate("ledger").new.epoch == 1


def test_a_key_that_cannot_be_destroyed_is_named_and_tried_again(
    home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("ledger")
    unlink = os.unlink

    def stuck(path: Any, *args: Any, **kwargs: Any) -> None:
        if str(path).endswith(".0.key"):
            raise OSError(1, "Operation not permitted")
        unlink(path, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", stuck)
        rotation = store.rotate("ledger")
    assert rotation.remains == (home / "keys/ledger.0.key",)
    assert rotation.remains[0].read_bytes() == bytes(32)
    store.create("agent:x")
    assert private_files(home) == ["agent-x.0.key", "ledger.1.key"]


def test_no_rotation_inside_a_hold(store: KeyStore) -> None:
    with store.signer().hold() as held:
        for change in (lambda: store.rotate("ledger"), lambda: KeyStore(store.home).rotate("ledger")):
            with pytest.raises(Refused) as caught:
                change()
            assert caught.value.code == "KEY_HELD"
        assert held.sign(DIGEST)
    assert store.rotate("ledger").new.epoch == 1
