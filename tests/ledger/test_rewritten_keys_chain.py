"""Somebody with an old key cuts the `keys` chain, writes another past, and lets the ledger record the rotation anew."""

from __future__ import annotations

import pytest

from aver import BadInput, Capsule, IntegrityError, KeyStore, Ledger, SeedSigner, clock, open_ledger
from aver.ledger.seen_heads import SEEN_KEYS_FILE
from support.forged_records import cut, forge
from support.tamper import unguarded

CHAIN = "ci.a"


def steal(ledger: Ledger, identity: str = "ledger") -> SeedSigner:
    return SeedSigner((ledger.keys.home / "keys" / f"{identity.replace(':', '-')}.0.key").read_bytes())


@pytest.fixture
def old(ledger: Ledger) -> tuple[SeedSigner, str]:
    """The ledger's first key, which was stolen and then rotated, and a time at which it was good."""
    ledger.append(CHAIN, Capsule(type="tool"))
    stolen, early = steal(ledger), clock.now()
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    return stolen, early


def append_in_a_new_process(records: int = 1) -> None:
    for _ in range(records):
        with open_ledger() as again:
            again.append(CHAIN, Capsule(type="tool"))


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("later", [0, 1])
def test_this_machine_remembers_that_it_recorded_the_end_of_a_key(
    ledger: Ledger, old: tuple[SeedSigner, str], kept: int, later: int
) -> None:
    signer, early = old
    cut(ledger, "keys", kept)
    forge(ledger, "ci.forged", signer, at=early)
    append_in_a_new_process(later)
    found = {(one.code, one.place.chain) for one in ledger.verify().findings if one.status == "failed"}
    code = "ROLLBACK" if later else "TRUNCATED" if kept else "CHAIN_MISSING"
    assert found == {(code, "keys")}


def test_further_rotations_do_not_replace_the_memory_of_a_chain_that_was_cut(
    ledger: Ledger, old: tuple[SeedSigner, str]
) -> None:
    cut(ledger, "keys", 1)
    forge(ledger, "ci.forged", old[0], at=old[1])
    append_in_a_new_process()
    ledger.keys.rotate("ledger")
    append_in_a_new_process()
    assert ledger.head("keys").count == 3
    assert "ROLLBACK" in {one.code for one in ledger.verify().findings}


def test_the_memory_grows_with_honest_rotations(ledger: Ledger, old: tuple[SeedSigner, str]) -> None:
    for _ in range(3):
        ledger.keys.rotate("ledger")
        append_in_a_new_process()
    assert ledger.verify().status == "verified"
    cut(ledger, "keys", 4)
    assert "TRUNCATED" in {one.code for one in ledger.verify().findings}


@pytest.mark.parametrize("kept", [0, 1])
def test_an_auditor_sees_that_a_key_was_recorded_after_it_had_sealed(
    ledger: Ledger, old: tuple[SeedSigner, str], kept: int
) -> None:
    """Somebody else has no memory of the chain. But the new key sealed records before the chain says that it began."""
    cut(ledger, "keys", kept)
    forge(ledger, "ci.forged", old[0], at=old[1])
    append_in_a_new_process()
    keys = [entry.key for entry in ledger.keys.ring().entries]
    verdict = ledger.verify(keys=keys)
    assert verdict.status == "qualified"
    assert [one.code for one in verdict.findings] == ["KEY_UNRECORDED"]
    assert f"before it sealed chain {CHAIN}" in verdict.findings[0].words


def test_honest_rotations_of_several_identities_are_recorded_in_time(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.create("agent:bob")
    for identity in ("agent:bob", "ledger", "agent:bob", "ledger"):
        ledger.append("ci.b", Capsule(type="tool"), signer=ledger.keys.signer("agent:bob"))
        ledger.append(CHAIN, Capsule(type="tool"))
        ledger.keys.rotate(identity)
    append_in_a_new_process()
    assert ledger.verify().status == "verified"
    assert ledger.verify(keys=[entry.key for entry in ledger.keys.ring().entries]).status == "verified"


def test_a_memory_that_cannot_be_read_is_reported(ledger: Ledger, old: tuple[SeedSigner, str]) -> None:
    (ledger.keys.home / SEEN_KEYS_FILE).write_text("no heads")
    verdict = ledger.verify()
    assert verdict.status == "qualified"
    assert SEEN_KEYS_FILE in verdict.check("keys").reason


@pytest.mark.parametrize("word", ["key", "retire"])
def test_no_other_record_takes_the_place_of_the_end_of_a_key(ledger: Ledger, word: str) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.create("agent:bob")
    fingerprint = steal(ledger, "agent:bob").fingerprint
    with pytest.raises(BadInput, match="stands for a record of the chain 'keys'"):
        ledger.append(CHAIN, Capsule(type="tool"), key=f"{word}:{fingerprint}")
    ledger.append(CHAIN, Capsule(type="tool"), key=f"{word}:{fingerprint}0")  # Anybody may use other keys.


def test_a_record_that_was_put_in_that_place_stops_the_ledger(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.create("agent:bob")
    ledger.append("ci.b", Capsule(type="tool"), signer=ledger.keys.signer("agent:bob"))
    squatter = ledger.append(CHAIN, Capsule(type="tool"))
    attacker = unguarded(ledger)
    key = f"retire:{steal(ledger, 'agent:bob').fingerprint}"
    attacker.execute("UPDATE records SET key = ? WHERE id = ?", (key, squatter.id))
    attacker.close()
    KeyStore(ledger.keys.home).retire("agent:bob")
    with open_ledger() as again, pytest.raises(IntegrityError, match="stands for one of 'keys'"):
        again.append(CHAIN, Capsule(type="tool"))
