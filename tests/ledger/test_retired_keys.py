"""Rotation: what an old key signed stays good, what it signs afterwards does not, whatever time it claims."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, KeyStore, Ledger, Sealed, SeedSigner, canonical_bytes, open_ledger
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import seal_content
from aver.verdict.record import column_values
from support.tamper import codes_at, first_bad, unguarded

pytestmark = pytest.mark.both_stores

CHAIN = "demo.rotation"
LONG_AGO = "2020-01-01T00:00:00+00:00"


def stolen(home: Path, epoch: int = 0) -> SeedSigner:
    """The private key of an epoch, copied while it was still active."""
    return SeedSigner((home / "keys" / f"ledger.{epoch}.key").read_bytes())


def forge(
    ledger: Ledger, chain: str, signer: SeedSigner, *, at: str, draft: Any = None, by: str | None = None
) -> Sealed:
    """Append behind the ledger's back, as well as a thief can: the file is writable to him and the key is his."""
    attacker = unguarded(ledger)
    head = ledger.head(chain)
    name = by or signer.fingerprint
    identity = {"ledger": ledger.id, "tenant": ledger.tenant, "name": chain}
    sealed = prepare_draft(draft or Capsule(type="tool")).seal(
        signer, at=at, sequence=head.count, previous_hash=head.hash, chain=identity
    )
    if by:
        content = sealed.to_dict()
        content["context"]["environment"]["aver"]["by"] = by
        sealed = seal_content(content, signer, at=at)
        sealed.signed_by = by
    content = sealed.to_dict()
    block = content["context"]["environment"]["aver"]
    row = attacker.execute("SELECT chain FROM chains WHERE name = ? AND tenant = ?", (chain, ledger.tenant)).fetchone()
    if row is None:
        attacker.execute("INSERT INTO chains (tenant, name) VALUES (?, ?)", (ledger.tenant, chain))
        row = attacker.execute("SELECT chain FROM chains WHERE name = ?", (chain,)).fetchone()
    attacker.execute(
        "INSERT INTO records (chain, sequence, tenant, id, type, kind, key, session, at, canonical, hash, signature,"
        " signature_pq, signed_at, signed_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row[0],
            head.count,
            ledger.tenant,
            *column_values(content, block),
            sealed.canonical,
            sealed.hash,
            sealed.signature,
            sealed.signature_pq,
            at,
            name,
        ),
    )
    attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (head.count + 1, sealed.hash, row[0]))
    attacker.close()
    return sealed


def test_honest_records_stay_good_over_many_rotations(ledger: Ledger) -> None:
    fingerprints = []
    for _ in range(5):
        fingerprints.append(ledger.append(CHAIN, Capsule(type="tool")).signed_by)
        ledger.append("demo.second", Capsule(type="tool"))
        ledger.keys.rotate("ledger")
    fingerprints.append(ledger.append(CHAIN, Capsule(type="tool")).signed_by)
    assert len(set(fingerprints)) == 6
    verdict = ledger.verify()
    assert verdict.status == "verified"
    assert [record.kind for record in ledger.read("keys")] == ["key.create", *["key.rotate"] * 5]


def test_the_first_record_of_a_key_is_preceded_by_its_arrival(ledger: Ledger) -> None:
    first = ledger.append(CHAIN, Capsule(type="tool"))
    (arrival,) = ledger.read("keys")
    assert arrival.to_dict()["outcome"]["result"]["fingerprint"] == first.signed_by
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    rotation = list(ledger.read("keys"))[1].to_dict()
    assert rotation["outcome"]["result"]["replaces"] == first.signed_by
    assert rotation["outcome"]["result"]["heads"] == {CHAIN: {"count": 1, "hash": first.hash}}
    assert rotation["authority"]["chain"][0]["purpose"] == "rotation"


@pytest.mark.parametrize("at", [LONG_AGO, "2099-01-01T00:00:00+00:00"])
@pytest.mark.parametrize("chain", [CHAIN, "demo.new"])
def test_a_stolen_old_key_is_found_even_backdated(ledger: Ledger, aver_home: Path, at: str, chain: str) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    forge(ledger, chain, thief, at=at)
    assert first_bad(ledger.verify()) == ("KEY_RETIRED", chain, 2 if chain == CHAIN else 0)


def test_a_stolen_old_key_is_found_under_a_shorter_name(ledger: Ledger, aver_home: Path) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    forge(ledger, CHAIN, thief, at=LONG_AGO, by=f"qp_key_{thief.public.ed25519[:4]}")
    assert first_bad(ledger.verify()) == ("KEY_RETIRED", CHAIN, 2)


def test_a_key_retired_two_rotations_ago_is_as_retired(ledger: Ledger, aver_home: Path) -> None:
    """The key between was never used here; the ledger still knows how far the first one was good."""
    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    between = stolen(aver_home, 1)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    assert ledger.verify().status == "verified"
    forge(ledger, CHAIN, thief, at=LONG_AGO)
    assert first_bad(ledger.verify()) == ("KEY_RETIRED", CHAIN, 2)
    forge(ledger, CHAIN, between, at=LONG_AGO)
    assert ("KEY_RETIRED", CHAIN, 3) in codes_at(ledger.verify())


def test_a_key_retired_without_successor_is_as_retired_once_another_comes(ledger: Ledger, aver_home: Path) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.retire("ledger")
    ledger.keys.create("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    assert ledger.verify().status == "verified"
    forge(ledger, CHAIN, thief, at=LONG_AGO)
    assert first_bad(ledger.verify()) == ("KEY_RETIRED", CHAIN, 2)


def far(chain: str) -> dict[str, Any]:
    return {chain: {"count": 10**6, "hash": "0" * 64}, "keys": {"count": 10**6, "hash": "0" * 64}}


def test_a_retired_key_cannot_extend_its_own_time(ledger: Ledger, aver_home: Path) -> None:
    """A forged rotation in `keys`, sealed by the retired key, claims that it was good for a million records."""
    from aver.capsule.aver_block import of_kind

    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    for fingerprint in (thief.fingerprint, ledger.keys.ring().active("ledger").fingerprint):
        result = {"fingerprint": fingerprint, "replaces": thief.fingerprint, "heads": far(CHAIN)}
        draft = of_kind(Capsule(type="system", outcome={"status": "success", "result": result}), "key.rotate")
        forge(ledger, "keys", thief, at=LONG_AGO, draft=draft)
    forge(ledger, CHAIN, thief, at=LONG_AGO)
    verdict = ledger.verify()
    assert codes_at(verdict) >= {("KEY_RETIRED", "keys", 2), ("KEY_RETIRED", "keys", 3), ("KEY_RETIRED", CHAIN, 2)}


def test_a_retired_key_cannot_retire_the_one_that_replaced_it(ledger: Ledger, aver_home: Path) -> None:
    from aver.capsule.aver_block import of_kind

    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    current = ledger.keys.ring().active("ledger").fingerprint
    result = {"fingerprint": thief.fingerprint, "replaces": current, "heads": {}}
    draft = of_kind(Capsule(type="system", outcome={"status": "success", "result": result}), "key.rotate")
    forge(ledger, "keys", thief, at=LONG_AGO, draft=draft)
    assert codes_at(ledger.verify()) == {("KEY_RETIRED", "keys", 2)}


def test_history_before_a_rotation_cannot_be_rewritten_with_the_old_key(ledger: Ledger, aver_home: Path) -> None:
    """The rotation recorded the heads: a chain rewritten up to the same length has another record there."""
    for _ in range(3):
        ledger.append(CHAIN, Capsule(type="tool"))
    ledger.append("demo.second", Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append("demo.second", Capsule(type="tool"))
    attacker = unguarded(ledger)
    number = attacker.execute("SELECT chain FROM chains WHERE name = ?", (CHAIN,)).fetchone()[0]
    attacker.execute("DELETE FROM records WHERE chain = ?", (number,))
    attacker.execute("UPDATE chains SET count = 0, head = NULL WHERE chain = ?", (number,))
    for length in range(3):
        verdict = ledger.verify()
        assert verdict.status == "failed", f"{CHAIN} rewritten to {length} records"
        assert verdict.first_bad.place.chain == CHAIN
        forge(ledger, CHAIN, thief, at=LONG_AGO)
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert verdict.first_bad.place.chain == CHAIN


def test_a_chain_of_before_a_rotation_that_vanished_is_missed(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.keys.rotate("ledger")
    ledger.append("demo.second", Capsule(type="tool"))
    attacker = unguarded(ledger)
    number = attacker.execute("SELECT chain FROM chains WHERE name = ?", (CHAIN,)).fetchone()[0]
    attacker.execute("DELETE FROM records WHERE chain = ?", (number,))
    attacker.execute("DELETE FROM chains WHERE chain = ?", (number,))
    code, chain, _ = first_bad(ledger.verify())
    assert (code, chain) == ("CHAIN_MISSING", CHAIN)


def test_many_chains_at_a_rotation_are_listed_in_a_blob(ledger: Ledger, aver_home: Path) -> None:
    for index in range(120):
        ledger.append(f"many.{index}", Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append("many.0", Capsule(type="tool"))
    assert ledger.verify().status == "verified"
    assert "blob" in list(ledger.read("keys"))[1].to_dict()["outcome"]["result"]["heads"]
    forge(ledger, "many.7", thief, at=LONG_AGO)
    assert first_bad(ledger.verify()) == ("KEY_RETIRED", "many.7", 1)


def test_each_tenant_has_its_own_record_of_keys(aver_home: Path) -> None:
    with open_ledger(tenant="one") as one, open_ledger(tenant="two") as two:
        one.append(CHAIN, Capsule(type="tool"))
        two.append(CHAIN, Capsule(type="tool"))
        thief = stolen(aver_home)
        one.keys.rotate("ledger")
        one.append(CHAIN, Capsule(type="tool"))
        two.append(CHAIN, Capsule(type="tool"))
        assert one.verify().status == two.verify().status == "verified"
        forge(two, CHAIN, thief, at=LONG_AGO)
        assert first_bad(two.verify()) == ("KEY_RETIRED", CHAIN, 2)
        assert one.verify().status == "verified"


def test_an_old_key_is_not_used_by_a_writer_that_lives_across_a_rotation(ledger: Ledger, aver_home: Path) -> None:
    old = ledger.append(CHAIN, Capsule(type="tool")).signed_by
    KeyStore(aver_home).rotate("ledger")
    new = ledger.append(CHAIN, Capsule(type="tool")).signed_by
    assert new != old
    assert ledger.verify().status == "verified"


WRITER = """
import sys
from aver import Capsule, open_ledger
with open_ledger() as ledger:
    for index in range(int(sys.argv[1])):
        ledger.append(sys.argv[2], Capsule(type="tool"))
"""


@pytest.mark.more
def test_rotation_by_another_process_while_writers_live(aver_home: Path) -> None:
    with open_ledger() as ledger:
        ledger.append("demo.start", Capsule(type="tool"))
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, "120", chain], env=os.environ.copy())
        for chain in ("demo.p1", "demo.p2", "demo.shared")
    ]
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with open_ledger() as mine:
                while not stop.is_set():
                    mine.append("demo.shared", Capsule(type="tool"))
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=write)
    thread.start()
    rotated = seen = 0
    try:
        with open_ledger() as watched:
            while rotated < 12 and any(writer.poll() is None for writer in writers):
                grown = watched.head("demo.shared").count
                if grown > seen:  # Each key gets to sign something before it is replaced.
                    seen = grown
                    KeyStore(aver_home).rotate("ledger")
                    rotated += 1
        exits = [writer.wait() for writer in writers]
    finally:
        stop.set()
        thread.join()
    assert not failures
    assert exits == [0, 0, 0]
    assert rotated > 3
    with open_ledger() as ledger:
        assert ledger.head("demo.p1").count == ledger.head("demo.p2").count == 120
        assert ledger.head("demo.shared").count > 120
        verdict = ledger.verify()
        assert verdict.status == "verified"
        assert len({record.signed_by for record in ledger.read("demo.shared")}) > 1


def test_a_forged_rotation_statement_does_not_make_a_strangers_key_ours(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    stranger = SeedSigner(bytes([5]) * 32)
    forge(ledger, CHAIN, stranger, at=LONG_AGO)
    verdict = ledger.verify()
    assert verdict.status == "qualified"
    assert verdict.check("signature").code == "UNKNOWN_SIGNER"
    assert canonical_bytes(list(ledger.read(CHAIN))[1].to_dict())


def test_a_rotation_record_cannot_be_replaced_by_the_old_keys_own(ledger: Ledger, aver_home: Path) -> None:
    """The thief cuts the rotation off `keys` and puts his own there, with the genuine statement and heads far ahead."""
    from aver.capsule.aver_block import of_kind

    ledger.append(CHAIN, Capsule(type="tool"))
    thief = stolen(aver_home)
    ledger.keys.rotate("ledger")
    ledger.append(CHAIN, Capsule(type="tool"))
    genuine = list(ledger.read("keys"))[1].to_dict()
    attacker = unguarded(ledger)
    number = attacker.execute("SELECT chain FROM chains WHERE name = 'keys'").fetchone()[0]
    attacker.execute("DELETE FROM records WHERE chain = ? AND sequence = 1", (number,))
    attacker.execute(
        "UPDATE chains SET count = 1, head = (SELECT hash FROM records WHERE chain = ?) WHERE chain = ?",
        (number, number),
    )
    draft = Capsule(
        type="system",
        authority={"chain": genuine["authority"]["chain"]},
        outcome={"status": "success", "result": {**genuine["outcome"]["result"], "heads": far(CHAIN)}},
    )
    forge(ledger, "keys", thief, at=LONG_AGO, draft=of_kind(draft, "key.rotate"))
    forge(ledger, CHAIN, thief, at=LONG_AGO)
    assert ledger.verify().status != "verified"
