"""Public keys from outside, in every format they come in, and the export."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aver.errors import AverError, BadInput, NotFound, Refused
from aver.keys import (
    KeyStore,
    PublicKey,
    SeedSigner,
    build_key_export,
    load_seed_signer,
    read_public_keys,
    verify_ed25519,
)

ONE, TWO = SeedSigner(b"1" * 32).public, SeedSigner(b"2" * 32).public
HYBRID = SeedSigner(b"h" * 32, b"h" * 32).public
DIGEST = "ab" * 32
EXPORTED = build_key_export((ONE,))["keys"][0]


def write(path: Path, content: Any) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(0o600)
    return path


def qp_ring(*keys: PublicKey) -> dict[str, Any]:
    epochs = [
        {
            "epoch": number,
            "algorithm": "ed25519",
            "public_key_hex": key.ed25519,
            "fingerprint": f"qp_key_{key.ed25519[:4]}",
            "created_at": "2026-03-07T00:00:00+00:00",
            "rotated_at": None,
            "status": "active",
        }
        for number, key in enumerate(keys)
    ]
    return {"version": 1, "active_epoch": len(keys) - 1, "epochs": epochs}


def test_bare_hex(tmp_path: Path) -> None:
    assert read_public_keys(ONE.ed25519) == (ONE,)
    assert read_public_keys(write(tmp_path / "a.pub", ONE.ed25519.encode())) == (ONE,)
    assert read_public_keys(str(write(tmp_path / "b.pub", b"  " + ONE.ed25519.encode() + b"\r\n"))) == (ONE,)
    with pytest.raises(BadInput, match="lower case"):
        read_public_keys(ONE.ed25519.upper())
    with pytest.raises(BadInput, match="lower case"):
        read_public_keys(write(tmp_path / "c.pub", ONE.ed25519.upper().encode()))
    with pytest.raises(NotFound):
        read_public_keys(ONE.ed25519[:-1])


def test_export_and_back(home: Path, store: KeyStore, tmp_path: Path) -> None:
    store.create("ledger", post_quantum=True)
    rotation = store.rotate("ledger")
    store.trust(HYBRID)
    document = store.export("ledger")
    assert (document["format"], document["version"]) == ("aver-public-keys", 1)
    assert read_public_keys(write(tmp_path / "x.json", document)) == (rotation.old.key, rotation.new.key)
    assert [item["status"] for item in document["keys"]] == ["retired", "active"]
    one = store.export(rotation.new.fingerprint)
    assert read_public_keys(write(tmp_path / "y.json", one)) == (rotation.new.key,)
    assert read_public_keys(write(tmp_path / "z.json", store.export(HYBRID.fingerprint))) == (HYBRID,)
    for name in ("agent:x", "0" * 16, "", "\ud800"):
        with pytest.raises(NotFound):
            store.export(name)
    private = {path.read_bytes().hex() for path in (home / "keys").glob("ledger.*")}
    assert not any(secret in json.dumps(document) for secret in private)


def test_our_own_files(home: Path, store: KeyStore) -> None:
    own = store.create("ledger").key
    store.trust(TWO)
    store.trust(HYBRID)
    assert read_public_keys(home / "keyring.json") == (own,)
    assert set(read_public_keys(home / "known_keys.json")) == {TWO, HYBRID}
    assert set(read_public_keys(home)) == {own, TWO, HYBRID}


def test_known_keys(tmp_path: Path) -> None:
    path = write(tmp_path / "known_keys.json", {ONE.fingerprint: ONE.ed25519, TWO.fingerprint: TWO.ed25519})
    assert read_public_keys(path) == (ONE, TWO)


def test_a_ring_of_the_reference_implementation(tmp_path: Path) -> None:
    assert read_public_keys(write(tmp_path / "keyring.json", qp_ring(ONE, TWO))) == (ONE, TWO)
    assert read_public_keys(tmp_path) == (ONE, TWO)


def test_a_raw_seed_and_the_post_quantum_key_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "key", b"h" * 32)
    assert read_public_keys(tmp_path / "key") == (PublicKey(HYBRID.ed25519),)
    write(tmp_path / "key.ml.pub", HYBRID.ml_dsa_65_bytes)
    assert read_public_keys(tmp_path / "key") == (HYBRID,)
    write(tmp_path / "keyring.json", qp_ring(PublicKey(HYBRID.ed25519), ONE))
    assert set(read_public_keys(tmp_path)) == {HYBRID, ONE}
    write(tmp_path / "key.ml.pub", b"short")
    with pytest.raises(BadInput, match=r"key\.ml\.pub"):
        read_public_keys(tmp_path)


def test_a_home_of_agent_capsule(tmp_path: Path) -> None:
    write(tmp_path / "key", b"1" * 32)
    write(tmp_path / "known_keys.json", {TWO.fingerprint: TWO.ed25519})
    assert read_public_keys(tmp_path) == (ONE, TWO)


def test_the_index_of_a_bundle(tmp_path: Path) -> None:
    index = {
        "generated_at": "2026-06-01T00:00:00+02:00",
        "public_key": ONE.ed25519,
        "fingerprint": ONE.fingerprint,
        "keys": {ONE.fingerprint: ONE.ed25519, HYBRID.fingerprint: HYBRID.ed25519},
        "pq_keys": {HYBRID.fingerprint: HYBRID.ml_dsa_65},
        "chains": [],
    }
    write(tmp_path / "index.json", index)
    assert read_public_keys(tmp_path / "index.json") == (ONE, HYBRID)
    assert read_public_keys(tmp_path) == (ONE, HYBRID)
    write(tmp_path / "index.json", {"public_key": TWO.ed25519, "chains": []})
    assert read_public_keys(tmp_path) == (TWO,)


def test_reading_registers_nothing(home: Path, store: KeyStore, tmp_path: Path) -> None:
    keys = read_public_keys(write(tmp_path / "known_keys.json", {ONE.fingerprint: ONE.ed25519}))
    assert not home.exists()
    assert store.import_keys(keys, trust=()).left_out == keys
    assert store.ring().lookup(ONE.fingerprint) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"text",
        b"\xff" * 64,
        b"0" * 63,
        b"[" * 100_000,
        b'{"epochs": [], "epochs": []}',
        {"chains": []},
        {"x": "y"},
        {"0" * 16: ONE.ed25519},
        {ONE.fingerprint: ONE.ed25519.upper()},
        {ONE.fingerprint: None},
        {"public_key": 5, "chains": []},
        {"public_key": ONE.ed25519, "keys": [ONE.ed25519]},
        {"public_key": ONE.ed25519, "keys": {TWO.fingerprint: ONE.ed25519}},
        {"public_key": ONE.ed25519, "keys": {ONE.fingerprint: ONE.ed25519}, "pq_keys": {ONE.fingerprint: "00"}},
        {"public_key": ONE.ed25519[:16] + "0" * 48, "keys": {ONE.fingerprint: ONE.ed25519}},
        {"public_key": "00" * 32},
        {"version": 2, "epochs": []},
        {"version": 1, "epochs": {}},
        {"version": 1, "epochs": []},
        {"version": 1, "epochs": [7]},
        {"version": 1, "epochs": [{"public_key_hex": ONE.ed25519, "fingerprint": "qp_key_0000"}]},
        {"version": 1, "epochs": [{"public_key_hex": ONE.ed25519[:-1], "fingerprint": "qp_key_0000"}]},
        {"version": 1, "entries": []},
        {"format": "aver-public-keys", "version": 2, "keys": []},
        {"format": "aver-public-keys", "version": 1, "keys": {}},
        {"format": "aver-public-keys", "version": 1, "keys": [5]},
        {"format": "aver-public-keys", "version": 1, "keys": [], "more": 1},
        {"format": "aver-public-keys", "version": 1, "keys": [{**EXPORTED, "fingerprint": "0" * 16}]},
        {"format": "aver-public-keys", "version": 1, "keys": [{**EXPORTED, "algorithm": "rsa"}]},
    ],
)  # fmt: skip
def test_what_holds_no_good_key_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises((BadInput, Refused)):
        read_public_keys(write(tmp_path / "keys.json", content))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_gives_a_clear_error_or_keys(tmp_path: Path, data: st.DataObject) -> None:
    whole = data.draw(
        st.sampled_from(
            [
                build_key_export((ONE, HYBRID)),
                qp_ring(ONE, TWO),
                {ONE.fingerprint: ONE.ed25519},
                {"public_key": ONE.ed25519, "keys": {ONE.fingerprint: ONE.ed25519}, "pq_keys": {}},
            ]
        )
    )
    raw = bytearray(json.dumps(whole).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        keys = read_public_keys(write(tmp_path / "keys.json", bytes(raw)))
    except AverError:
        return
    assert all(key.check_usable() for key in keys)


def test_places_without_keys(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no public key"):
        read_public_keys(tmp_path)
    with pytest.raises(NotFound):
        read_public_keys(tmp_path / "missing")
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(AverError):
            read_public_keys(name)
    os.mkfifo(tmp_path / "key")
    with pytest.raises(AverError):
        read_public_keys(tmp_path)
    with pytest.raises(BadInput, match="larger"):
        read_public_keys(Path("/dev/zero"))


def test_load_seed_signer_checks_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "key", b"1" * 32)
    assert load_seed_signer(path).public == ONE
    assert load_seed_signer(tmp_path).public == ONE
    path.chmod(0o644)
    with pytest.raises(Refused) as caught:
        load_seed_signer(path)
    assert caught.value.advice == f"run: chmod 600 {path}"
    with pytest.raises(Refused):
        read_public_keys(path)
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(Refused, match="symbolic link"):
        load_seed_signer(tmp_path / "link")
    with pytest.raises(BadInput, match="31 bytes"):
        load_seed_signer(write(tmp_path / "short", b"1" * 31))
    with pytest.raises(BadInput):
        load_seed_signer(write(tmp_path / "long", b"1" * 33))
    with pytest.raises(NotFound):
        load_seed_signer(tmp_path / "missing")


def test_files_made_by_the_reference_implementation(tmp_path: Path) -> None:
    keyring = pytest.importorskip("qp_capsule.keyring")
    seal = pytest.importorskip("qp_capsule.seal")
    made = seal.Seal(key_path=tmp_path / "key", enable_pq=False)
    first = made.get_public_key()
    ring = keyring.Keyring(tmp_path / "keyring.json", tmp_path / "key")
    ring.load()
    ring.rotate()
    keys = read_public_keys(tmp_path)
    assert {key.ed25519 for key in keys} == {epoch.public_key_hex for epoch in ring.epochs}
    assert first in {key.ed25519 for key in keys}
    signer = load_seed_signer(tmp_path / "key")
    assert signer.public.ed25519 == ring.get_active().public_key_hex
    assert verify_ed25519(signer.public.ed25519_bytes, DIGEST.encode(), signer.sign(DIGEST).ed25519)
