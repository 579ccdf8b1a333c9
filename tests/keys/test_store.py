"""The key store: what it creates and when, what it refuses to read, and keys under a passphrase."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.capsule.sealed import hold_signer
from aver.errors import AverError, BadInput, IntegrityError, NotFound, Refused, Unavailable
from aver.keys import KeyStore, PublicKey, Ring, SeedSigner, read_keys, verify_ed25519, verify_ml_dsa_65
from aver.keys import private_files as key_files
from aver.keys import store as store_module
from aver.keys.ring import RING_MAX
from support.quick_derivation import full_derivation

DIGEST = hashlib.sha3_256(b"capsule").hexdigest()
PASSPHRASE = "correct horse battery"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def private_files(home: Path) -> list[str]:
    return sorted(name for name in os.listdir(home / "keys") if not name.startswith("."))


# First use


def test_looking_leaves_no_traces(home: Path, store: KeyStore) -> None:
    assert store.ring() == Ring()
    store.signer()
    with pytest.raises(NotFound):
        store.signer("agent:x", create=False)
    with pytest.raises(NotFound):
        store.unlock("person:ann", PASSPHRASE)
    with pytest.raises(NotFound):
        store.rotate("ledger")
    with pytest.raises(NotFound):
        store.retire("ledger")
    with pytest.raises(NotFound):
        store.forget("0" * 16)
    with pytest.raises(NotFound):
        store.export("ledger")
    with pytest.raises(Refused):
        store.signer("person:ann").sign(DIGEST)
    assert not home.exists()


def test_the_first_use_makes_the_key(home: Path, store: KeyStore) -> None:
    signer = store.signer()
    signature = signer.sign(DIGEST)
    active = store.ring().active("ledger")
    assert active is not None
    assert (active.epoch, active.purpose, active.fingerprint) == (0, "seal", signer.fingerprint)
    assert signer.public == active.key
    assert verify_ed25519(active.key.ed25519_bytes, DIGEST.encode(), signature.ed25519)
    assert private_files(home) == ["ledger.0.key"]
    assert len((home / "keys/ledger.0.key").read_bytes()) == 32
    assert SeedSigner((home / "keys/ledger.0.key").read_bytes()).public == active.key
    assert [mode(home), mode(home / "keys")] == [0o700, 0o700]
    assert {mode(path) for path in home.rglob("*") if path.is_file()} == {0o600}


def test_modes_do_not_depend_on_the_umask(home: Path, store: KeyStore) -> None:
    before = os.umask(0)
    try:
        store.create("ledger", post_quantum=True)
        store.trust(SeedSigner(b"o" * 32, b"o" * 32).public)
    finally:
        os.umask(before)
    assert [mode(home), mode(home / "keys")] == [0o700, 0o700]
    assert {mode(path) for path in home.rglob("*") if path.is_file()} == {0o600}


def test_a_store_signer_is_a_signer_that_can_be_held(store: KeyStore) -> None:
    signer = store.signer("agent:builder")
    with hold_signer(signer) as held:
        assert held.fingerprint == signer.fingerprint
        assert held.sign(DIGEST) == signer.sign(DIGEST)
    with pytest.raises(BadInput, match="digest"):
        signer.sign("not a digest")
    for take_out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            take_out(signer)
    assert (store.home / "keys/agent-builder.0.key").read_bytes().hex() not in repr(signer)


def test_post_quantum_keys(home: Path, store: KeyStore) -> None:
    signer = store.signer(post_quantum=True)
    signature = signer.sign(DIGEST)
    (entry,) = store.ring().entries
    assert entry.algorithm == "ed25519+ml-dsa-65"
    assert private_files(home) == ["ledger.0.key", "ledger.0.pq"]
    assert verify_ml_dsa_65(entry.key.ml_dsa_65_bytes, DIGEST.encode(), signature.ml_dsa_65)
    assert KeyStore(home).signer().public == entry.key


def test_verifying_never_makes_keys_where_only_the_ring_is(home: Path, store: KeyStore, tmp_path: Path) -> None:
    """A machine that has the ring but no private key can look keys up, and gets no key by doing so."""
    fingerprint = store.signer().fingerprint
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    shutil.copy(home / "keyring.json", elsewhere)
    other = KeyStore(elsewhere)
    assert len(other.ring().lookup(fingerprint)) == 1
    assert os.listdir(elsewhere) == ["keyring.json"]
    with pytest.raises(Unavailable):
        other.signer().sign(DIGEST)
    assert sorted(os.listdir(elsewhere)) == ["keyring.json"]


@pytest.mark.more
def test_first_use_by_many_processes_yields_one_key(
    home: Path, tmp_path: Path, start: Callable[[Callable[[], None]], int], finish: Callable[[int], int]
) -> None:
    for round_number in range(5):
        here = tmp_path / f"round{round_number}"
        ready_read, ready_write = os.pipe()

        def use(where: Path = here, gun: int = ready_read, hold: int = ready_write) -> None:
            os.close(hold)
            os.read(gun, 1)
            signer = KeyStore(where).signer()
            with signer.hold() as held:
                signature = held.sign(DIGEST)
                (where / f"told.{os.getpid()}").write_text(f"{held.fingerprint} {signature.ed25519}")

        children = [start(use) for _ in range(6)]
        os.close(ready_read)
        os.close(ready_write)
        assert [finish(child) for child in children] == [0] * 6
        told = {path.read_text() for path in here.glob("told.*")}
        assert len(told) == 1
        ring = KeyStore(here).ring()
        assert [entry.fingerprint for entry in ring.entries] == [told.pop().split()[0]]
        assert private_files(here) == ["ledger.0.key"]


def test_first_use_by_many_threads_yields_one_key(home: Path) -> None:
    told: list[str] = []
    threads = [threading.Thread(target=lambda: told.append(KeyStore(home).signer().fingerprint)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 8
    assert len(set(told)) == 1


def test_create_says_what_it_made(store: KeyStore) -> None:
    made = store.create("policy:1", purpose="checkpoint")
    assert (made.identity, made.purpose, made.epoch, made.status) == ("policy:1", "checkpoint", 0, "active")
    assert store.ring().active("policy:1") == made
    with pytest.raises(Refused) as caught:
        store.create("policy:1")
    assert caught.value.code == "KEY_EXISTS"
    with pytest.raises(BadInput):
        store.create("policy:1/../x")
    with pytest.raises(BadInput):
        store.create("policy:2", purpose="anything")


def test_a_retired_identity_gets_no_new_key_by_itself(home: Path, store: KeyStore) -> None:
    signer = store.signer()
    signer.sign(DIGEST)
    retired = store.retire("ledger")
    assert retired.status == "retired"
    assert private_files(home) == []
    with pytest.raises(NotFound, match="no active key"):
        signer.sign(DIGEST)
    with pytest.raises(NotFound, match="no active key"):
        store.signer().sign(DIGEST)
    assert store.create("ledger").epoch == 1
    assert signer.sign(DIGEST) == store.signer().sign(DIGEST)


# The ring on disk


def test_the_ring_is_read_again_only_when_it_changed(
    home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("ledger")
    store.trust(SeedSigner.generate().public)
    monkeypatch.setattr(store_module, "UNSETTLED_NS", -(10**12))
    first = store.ring()
    assert store.ring() is first
    KeyStore(home).trust(SeedSigner.generate().public)
    second = store.ring()
    assert len(second.known) == 2
    assert store.ring() is second
    KeyStore(home).rotate("ledger")
    assert len(store.ring().entries) == 2


def test_a_change_within_one_clock_tick_is_seen(home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting one key and trusting another may give a file of the same size, inode and coarse times."""
    just_now = time.time_ns() + 10**10
    monkeypatch.setattr(key_files, "read_stamp", lambda path: (1, 100, just_now, just_now))
    for key in (SeedSigner.generate().public for _ in range(3)):
        KeyStore(home).trust(key)
        assert list(store.ring().known.values()) == [key]
        KeyStore(home).forget(key.fingerprint)
        assert not store.ring().known


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"version":1,"entries":[],"entries":[]}', b'{"version":2,"entries":[]}', b"\xff" * 10]
)
def test_a_spoilt_ring_is_refused_by_name(home: Path, store: KeyStore, raw: bytes) -> None:
    signer = store.signer()
    signer.sign(DIGEST)
    (home / "keyring.json").write_bytes(raw)
    for use in (
        store.ring,
        lambda: signer.sign(DIGEST),
        lambda: store.rotate("ledger"),
        lambda: store.create("agent:x"),
    ):
        with pytest.raises(BadInput, match=r"keyring\.json"):
            use()
    assert (home / "keyring.json").read_bytes() == raw
    assert private_files(home) == ["ledger.0.key"]


def test_a_lost_ring_is_not_papered_over(home: Path, store: KeyStore) -> None:
    """Without its ring the private key's history is unknown: nothing is created, nothing destroyed."""
    signer = store.signer()
    signer.sign(DIGEST)
    (home / "keyring.json").unlink()
    with pytest.raises(Refused) as caught:
        KeyStore(home).signer().sign(DIGEST)
    assert caught.value.code == "RING_LOST"
    assert "ledger.0.key" in str(caught.value)
    with pytest.raises(NotFound):
        signer.sign(DIGEST)
    store.trust(SeedSigner.generate().public)
    assert private_files(home) == ["ledger.0.key"]


def test_an_old_copy_of_the_ring_does_not_cost_the_key(home: Path, store: KeyStore) -> None:
    store.create("ledger")
    old_ring = (home / "keyring.json").read_bytes()
    new = store.rotate("ledger").new
    new_ring = (home / "keyring.json").read_bytes()
    (home / "keyring.json").write_bytes(old_ring)
    with pytest.raises(Unavailable, match=r"ledger\.0\.key"):
        store.signer().sign(DIGEST)
    store.create("agent:x")
    with pytest.raises(Unavailable):
        store.rotate("ledger")
    assert "ledger.1.key" in private_files(home)
    (home / "keyring.json").write_bytes(new_ring)
    assert store.signer().fingerprint == new.fingerprint


def test_a_private_key_that_is_not_the_rings_is_not_used(home: Path, store: KeyStore) -> None:
    store.create("ledger")
    (home / "keys/ledger.0.key").write_bytes(os.urandom(32))
    with pytest.raises(IntegrityError) as caught:
        store.signer().sign(DIGEST)
    assert caught.value.code == "KEY_MISMATCH"
    with pytest.raises(IntegrityError):
        store.rotate("ledger")


@pytest.mark.parametrize("size", [0, 31, 33, 100_000])
def test_a_private_key_of_another_size_is_refused(home: Path, store: KeyStore, size: int) -> None:
    store.create("ledger")
    (home / "keys/ledger.0.key").write_bytes(bytes(size))
    with pytest.raises(BadInput, match=r"ledger\.0\.key"):
        store.signer().sign(DIGEST)


def test_a_full_ring_refuses_before_it_breaks(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("ledger")
    size = (store.home / "keyring.json").stat().st_size
    monkeypatch.setattr(store_module, "RING_MAX", size + 100)
    with pytest.raises(Refused) as caught:
        store.rotate("ledger")
    assert caught.value.code == "RING_FULL"
    monkeypatch.setattr(store_module, "RING_MAX", RING_MAX)
    assert store.rotate("ledger").new.epoch == 1


# Unsafe files


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o644])
def test_a_private_key_open_to_others_is_refused(home: Path, store: KeyStore, bits: int) -> None:
    store.create("ledger", post_quantum=True)
    for name in ("ledger.0.key", "ledger.0.pq"):
        path = home / "keys" / name
        path.chmod(bits)
        with pytest.raises(Refused) as caught:
            store.signer().sign(DIGEST)
        assert caught.value.code == "UNSAFE_FILE"
        assert caught.value.advice == f"run: chmod 600 {path}"
        with pytest.raises(Refused):
            store.rotate("ledger")
        path.chmod(0o600)
    store.signer().sign(DIGEST)


@pytest.mark.parametrize("name", ["keyring.json", "known_keys.json", "known_keys_pq.json"])
def test_a_ring_that_others_can_write_is_refused(home: Path, store: KeyStore, name: str) -> None:
    store.create("ledger")
    store.trust(SeedSigner(b"o" * 32, b"o" * 32).public)
    (home / name).chmod(0o644)
    assert len(KeyStore(home).ring().known) == 1
    for bits in (0o620, 0o602, 0o666):
        (home / name).chmod(bits)
        with pytest.raises(Refused, match="written by others") as caught:
            KeyStore(home).ring()
        assert caught.value.advice == f"run: chmod go-w {home / name}"


@pytest.mark.parametrize("inner", ["", "keys"])
def test_a_directory_that_others_can_write_is_refused(home: Path, store: KeyStore, inner: str) -> None:
    store.create("ledger")
    (home / inner).chmod(0o770)
    with pytest.raises(Refused) as caught:
        store.signer().sign(DIGEST)
    assert caught.value.code == "UNSAFE_FILE"
    assert "chmod 700" in caught.value.advice
    with pytest.raises(Refused):
        store.rotate("ledger")


@pytest.mark.parametrize("name", ["keys/ledger.0.key", "keyring.json"])
def test_links_are_not_followed(home: Path, store: KeyStore, tmp_path: Path, name: str) -> None:
    store.create("ledger")
    (home / name).rename(tmp_path / "target")
    (home / name).symlink_to(tmp_path / "target")
    with pytest.raises(Refused, match="symbolic link") as caught:
        store.signer().sign(DIGEST)
    assert caught.value.code == "UNSAFE_FILE"


def test_a_pipe_in_the_place_of_a_key_does_not_hang_us(home: Path, store: KeyStore) -> None:
    store.create("ledger")
    (home / "keys/ledger.0.key").unlink()
    os.mkfifo(home / "keys/ledger.0.key", 0o600)
    with pytest.raises(Refused, match="regular file"):
        store.signer().sign(DIGEST)


def test_files_of_another_user_are_refused(home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here we become the other user, which needs no privileges and is the same to the check."""
    store.create("ledger")
    other = (home / "keyring.json").stat().st_uid + 4711
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(Refused, match="another user") as caught:
        store.signer().sign(DIGEST)
    assert caught.value.code == "UNSAFE_FILE"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
@pytest.mark.parametrize("name", ["keys/ledger.0.key", "keyring.json", "keys", ""])
def test_files_given_to_another_user_are_refused(home: Path, store: KeyStore, name: str) -> None:
    store.create("ledger")
    os.chown(home / name, 4711, 4711)
    with pytest.raises(Refused, match="another user"):
        store.signer().sign(DIGEST)


def test_a_file_in_the_way_is_not_overwritten(home: Path, store: KeyStore) -> None:
    store.create("agent:x")
    (home / "keys/ledger.0.key").mkdir()
    with pytest.raises(Refused) as caught:
        store.create("ledger")
    assert caught.value.code == "FILE_EXISTS"
    assert store.ring().active("ledger") is None


def test_foreign_files_in_the_directory_are_left_alone(home: Path, store: KeyStore) -> None:
    store.create("ledger")
    for name in ("notes.txt", "ledger.key", "ledger.00.key", "ledger.0.pub", "agent-UPPER.0.key", "robot-x.0.key"):
        (home / "keys" / name).write_bytes(b"mine")
    store.rotate("ledger")
    assert len(private_files(home)) == 7
    assert (home / "keys/notes.txt").read_bytes() == b"mine"


# Under a passphrase


@pytest.fixture(scope="module")
def person_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a person's hybrid key; made once, because deriving keys is slow on purpose."""
    home = tmp_path_factory.mktemp("person") / "home"
    with full_derivation():
        KeyStore(home).create("person:Ann", passphrase=PASSPHRASE, post_quantum=True)
    return home


@pytest.mark.more
def test_a_persons_key_is_encrypted_at_rest(person_home: Path) -> None:
    store = KeyStore(person_home)
    assert private_files(person_home) == ["person-=ann.0.sealed.json"]
    document = json.loads((person_home / "keys/person-=ann.0.sealed.json").read_bytes())
    assert document["kdf"] == "argon2id"
    assert (document["memlimit"], document["opslimit"]) == (256 * 1024 * 1024, 3)
    signer = store.unlock("person:Ann", PASSPHRASE)
    (entry,) = store.ring().entries
    assert entry.purpose == "approve"
    assert signer.public == entry.key
    assert entry.key.ml_dsa_65
    with pytest.raises(Refused) as caught:
        store.unlock("person:Ann", PASSPHRASE + "!")
    assert caught.value.code == "BAD_PASSPHRASE"


def test_a_key_under_a_passphrase_is_not_used_without_it(person_home: Path) -> None:
    store = KeyStore(person_home)
    for use in (
        lambda: store.signer("person:Ann"),
        lambda: store.rotate("person:Ann"),
        lambda: store.create("person:bob"),
        lambda: store.signer("person:bob").sign(DIGEST),
    ):
        with pytest.raises(Refused) as caught:
            use()
        assert caught.value.code == "PASSPHRASE_NEEDED"
        assert "unlock" in caught.value.advice


@pytest.mark.more
def test_rotation_keeps_the_passphrase(person_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "copy"
    shutil.copytree(person_home, home)
    store = KeyStore(home)
    rotation = store.rotate("person:Ann", passphrase=PASSPHRASE)
    assert private_files(home) == ["person-=ann.1.sealed.json"]
    assert store.unlock("person:Ann", PASSPHRASE).public == rotation.new.key


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memlimit", 100 * 2**30),
        ("memlimit", 2**31),
        ("memlimit", 0),
        ("memlimit", 8192),
        ("memlimit", True),
        ("memlimit", "268435456"),
        ("opslimit", 10**6),
        ("opslimit", 0),
        ("opslimit", 3.0),
        ("version", 2),
        ("version", True),
        ("kdf", "scrypt"),
        ("salt", ""),
        ("salt", "00" * 1000),
        ("nonce", "0" * 47),
        ("box", "00"),
        ("box", None),
        ("extra", 1),
    ],
)
def test_a_planted_file_demands_nothing_unreasonable(
    person_home: Path, tmp_path: Path, name: str, value: object
) -> None:
    home = tmp_path / "copy"
    shutil.copytree(person_home, home)
    path = home / "keys/person-=ann.0.sealed.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), name: value}))
    with pytest.raises(BadInput):
        KeyStore(home).unlock("person:Ann", PASSPHRASE)


def test_sealed_files_are_held_to_the_same_modes(person_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "copy"
    shutil.copytree(person_home, home)
    path = home / "keys/person-=ann.0.sealed.json"
    path.chmod(0o640)
    with pytest.raises(Refused) as caught:
        KeyStore(home).unlock("person:Ann", PASSPHRASE)
    assert caught.value.code == "UNSAFE_FILE"
    path.chmod(0o600)
    path.write_bytes(b" " * 10_000)
    with pytest.raises(BadInput, match="larger"):
        KeyStore(home).unlock("person:Ann", PASSPHRASE)


@pytest.mark.parametrize("passphrase", ["", "short", "x" * 2000])
def test_passphrases_have_a_sensible_length(store: KeyStore, passphrase: str) -> None:
    with pytest.raises(BadInput, match="passphrase"):
        store.create("person:ann", passphrase=passphrase)
    assert not store.ring().entries


def test_unlocking_what_is_not_locked(store: KeyStore) -> None:
    store.create("ledger")
    with pytest.raises(Refused) as caught:
        store.unlock("ledger", PASSPHRASE)
    assert caught.value.code == "NOT_SEALED"


# Known keys


def test_trust_and_forget(home: Path, store: KeyStore) -> None:
    key, hybrid = SeedSigner(b"k" * 32).public, SeedSigner(b"h" * 32, b"h" * 32).public
    store.trust(key)
    store.trust(hybrid)
    store.trust(key)
    told = json.loads((home / "known_keys.json").read_bytes())
    assert told == {key.fingerprint: key.ed25519, hybrid.fingerprint: hybrid.ed25519}
    assert (home / "known_keys.json").read_text() == json.dumps(told, indent=2, sort_keys=True) + "\n"
    assert store.ring().lookup(hybrid.fingerprint) == (hybrid,)
    store.forget(hybrid.fingerprint)
    assert store.ring().lookup(hybrid.fingerprint) == ()
    assert store.ring().lookup(key.fingerprint) == (key,)
    with pytest.raises(NotFound):
        store.forget(hybrid.fingerprint)


def test_a_key_that_imitates_ours_is_not_trusted(home: Path, store: KeyStore) -> None:
    own, known = store.create("ledger").key, SeedSigner(b"k" * 32).public
    store.trust(known)
    before = (home / "known_keys.json").read_bytes()
    with pytest.raises(Refused) as caught:
        store.trust(point_with_prefix(own.fingerprint))
    assert caught.value.code == "FINGERPRINT_TAKEN"
    assert (home / "known_keys.json").read_bytes() == before
    store.trust(own)
    assert (home / "known_keys.json").read_bytes() == before


def test_an_imitation_does_not_keep_out_the_genuine_key(home: Path, store: KeyStore) -> None:
    """Another good key with the same 16 digits takes fifteen tries. Both are found, and each can be forgotten."""
    genuine = SeedSigner(b"k" * 32, b"k" * 32).public
    imitation = point_with_prefix(genuine.fingerprint)
    store.trust(imitation)
    store.trust(genuine)
    again = KeyStore(home).ring()
    assert set(again.lookup(genuine.fingerprint)) == {genuine, imitation}
    with pytest.raises(BadInput, match="2 known keys"):
        store.forget(genuine.fingerprint)
    with pytest.raises(BadInput, match="2 known keys"):
        store.export(genuine.fingerprint)
    assert store.export(genuine.ed25519)["keys"][0]["public_key_pq"] == genuine.ml_dsa_65
    store.forget(imitation.ed25519)
    assert KeyStore(home).ring().lookup(genuine.fingerprint) == (genuine,)
    assert json.loads((home / "known_keys.json").read_bytes()) == {genuine.fingerprint: genuine.ed25519}


def test_what_an_owner_exports_about_a_key_is_kept(home: Path, store: KeyStore, tmp_path: Path) -> None:
    other = KeyStore(tmp_path / "other")
    other.create("ledger")
    rotation = other.rotate("ledger")
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(other.export("ledger")))
    for key in read_keys(path):
        store.trust(key)
    ring = KeyStore(home).ring()
    assert ring.entry_of(rotation.old.key) == rotation.old
    assert ring.entry_of(rotation.new.key) == rotation.new
    assert ring.retirement_times() == {rotation.old.key.ed25519: rotation.old.retired_at}
    assert store.export(rotation.old.fingerprint)["keys"] == [rotation.old.to_dict()]
    # A home of before has no such file; one that an interrupted change left behind says nothing about other keys.
    store.forget(rotation.old.fingerprint)
    assert KeyStore(home).ring().retirement_times() == {rotation.old.key.ed25519: rotation.old.retired_at}
    store.forget(rotation.new.fingerprint)
    assert KeyStore(home).ring() == Ring()


def test_known_keys_of_before_are_read(home: Path, store: KeyStore) -> None:
    key = SeedSigner(b"k" * 32).public
    store.trust(SeedSigner(b"x" * 32).public)
    (home / "known_keys.json").write_text(json.dumps({key.fingerprint: key.ed25519}))
    assert KeyStore(home).ring() == Ring(known={key.fingerprint: key})
    assert not (home / "known_entries.json").exists()


def point_with_prefix(prefix: str) -> PublicKey:
    """Another good public key of the same fingerprint: one in sixteen strings of bytes is one."""
    number = 0
    while True:
        number += 1
        key = PublicKey(prefix + number.to_bytes(24, "little").hex())
        try:
            return key.check_usable()
        except BadInput:
            continue


@pytest.mark.parametrize("public", ["00" * 32, "01" + "00" * 31, "ff" * 32, "02" + "00" * 31])
def test_what_is_no_public_key_is_not_trusted(home: Path, store: KeyStore, public: str) -> None:
    with pytest.raises(BadInput, match="usable"):
        store.trust(PublicKey(public))
    assert not (home / "known_keys.json").exists()


def test_import_registers_only_what_is_trusted_by_name(store: KeyStore) -> None:
    own = store.create("ledger").key
    first, second, third = (SeedSigner(letter * 32).public for letter in (b"1", b"2", b"3"))
    store.trust(third)
    with pytest.raises(BadInput, match="is a fingerprint"):
        store.import_keys((first,), trust={first.fingerprint})
    done = store.import_keys((own, first, second, third), trust={first.ed25519, "0" * 64})
    assert done.registered == (first,)
    assert done.already_known == (own, third)
    assert done.left_out == (second,)
    assert set(store.ring().known.values()) == {first, third}
    assert store.import_keys((first, second), trust=()).registered == ()


@pytest.mark.parametrize(
    "raw",
    [b"[]", b"{", b'{"x": "y"}', b'{"%s": "%s"}' % (b"0" * 16, b"ab" * 32), b'{"%s": 5}' % (b"0" * 16), b'"text"'],
)
def test_spoilt_known_keys_are_refused_by_name_and_signing_goes_on(home: Path, store: KeyStore, raw: bytes) -> None:
    signer = store.signer()
    signer.sign(DIGEST)
    (home / "known_keys.json").write_bytes(raw)
    (home / "known_keys.json").chmod(0o600)
    with pytest.raises(BadInput, match=r"known_keys\.json"):
        store.ring()
    signer.sign(DIGEST)


def test_errors_have_advice(home: Path, store: KeyStore) -> None:
    with pytest.raises(AverError) as caught:
        store.signer("agent:x", create=False)
    assert caught.value.advice
