"""What a stolen old key can still do where less is known than in a whole ledger: in one chain, one record, a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, Sealed, SeedSigner, verify
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import SEAL_KEYS, seal_content
from aver.keys import Statement, sign_statement
from aver.ledger.bundle import export_bundle
from aver.ledger.checkpoint import PURPOSE, Checkpoint, check_ledger_checkpoints, make_checkpoint
from aver.ledger.meta_chain import build_import_entry
from aver.verdict import Tally, Verdict, conclude
from aver.verdict.record import column_values, imported_column_values
from support.tamper import first_bad, unguarded

CHAIN = "demo.elsewhere"
LONG_AGO = "2020-01-01T00:00:00+00:00"
FAR_AHEAD = "2099-01-01T00:00:00+00:00"


@pytest.fixture
def thief(ledger: Ledger, aver_home: Path) -> SeedSigner:
    """Holds the ledger's first key, which was replaced when the chain had three records."""
    for _ in range(3):
        ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close_chain(CHAIN)
    stolen = SeedSigner((aver_home / "keys" / "ledger.0.key").read_bytes())
    ledger.keys.rotate("ledger")
    ledger.append("demo.after", Capsule(type="tool"))
    return stolen


def loose(signer: SeedSigner, count: int = 3, at: str = LONG_AGO) -> list[Sealed]:
    """A chain of capsules that no ledger has appended."""
    records: list[Sealed] = []
    for sequence in range(count):
        link = records[-1].hash if records else None
        records.append(
            seal_content(Capsule(type="tool", sequence=sequence, previous_hash=link).to_dict(), signer, at=at)
        )
    return records


def put(ledger: Ledger, chain: str, records: list[Sealed], *, frozen: bool) -> None:
    """Write records behind the ledger's back."""
    attacker = unguarded(ledger)
    attacker.execute("INSERT INTO chains (tenant, name) VALUES (?, ?) ON CONFLICT DO NOTHING", (ledger.tenant, chain))
    number, count = attacker.execute("SELECT chain, count FROM chains WHERE name = ?", (chain,)).fetchone()
    columns_of = imported_column_values if frozen else column_values
    for place, record in enumerate(records, count):
        content = record.to_dict()
        columns = columns_of(content, content["context"]["environment"].get("aver"))
        seal = [getattr(record, key) for key in SEAL_KEYS]
        attacker.execute(
            "INSERT INTO records (chain, sequence, tenant, id, type, kind, key, session, at, canonical, hash,"
            " signature, signature_pq, signed_at, signed_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, place, ledger.tenant, *columns, record.canonical, *seal),
        )
    attacker.execute(
        "UPDATE chains SET count = ?, head = ?, frozen = ?, origin = ? WHERE chain = ?",
        (count + len(records), records[-1].hash, int(frozen), chain if frozen else None, number),
    )
    attacker.close()


def test_a_chain_declared_imported_by_the_old_key(ledger: Ledger, thief: SeedSigner) -> None:
    """Its entry in `meta` is beyond the old key's time, also for those who verify the chain or a record alone."""
    records = loose(thief)
    meta = ledger.head("meta")
    entry = prepare_draft(build_import_entry("demo.evil", "demo.evil", "a/b", 3, records[-1].hash)).seal(
        thief, at=LONG_AGO, sequence=meta.count, previous_hash=meta.hash, chain={}
    )
    put(ledger, "demo.evil", records, frozen=True)
    put(ledger, "meta", [entry], frozen=False)
    assert first_bad(ledger.verify())[0] == "KEY_RETIRED"
    assert first_bad(ledger.verify("demo.evil"))[:2] == ("CHAIN_IDENTITY", "demo.evil")
    assert first_bad(verify(records[1].id, ledger=ledger))[:2] == ("CHAIN_IDENTITY", "demo.evil")


def test_a_capsule_that_was_never_appended_is_no_record_of_the_ledger(ledger: Ledger, thief: SeedSigner) -> None:
    """Not even if our own key has sealed it, and its chain calls itself imported."""
    with ledger.signer().hold() as signer:
        (record,) = loose(signer, 1)
    put(ledger, "demo.planted", [record], frozen=True)
    assert verify(record).status == "verified"
    assert first_bad(verify(record.id, ledger=ledger))[:2] == ("CHAIN_IDENTITY", "demo.planted")


def test_one_chain_does_not_hold_where_the_keys_chain_does_not(ledger: Ledger, thief: SeedSigner) -> None:
    """Without the rotation in it, nothing would tell an auditor until where the old key was good."""
    keys = [entry.key for entry in ledger.keys.ring().entries]
    assert ledger.verify(CHAIN, keys=keys).status == "verified"
    attacker = unguarded(ledger)
    number = attacker.execute("SELECT chain FROM chains WHERE name = 'keys'").fetchone()[0]
    attacker.execute("UPDATE records SET canonical = 'x' WHERE chain = ? AND sequence = 1", (number,))
    attacker.close()
    place = ("SCHEMA_INVALID", "keys", 1)
    assert first_bad(ledger.verify(CHAIN, keys=keys)) == place
    assert first_bad(verify(f"capsule://{CHAIN}/1", ledger=ledger, keys=keys)) == place


def test_a_loose_capsule_of_the_old_key_is_qualified_however_old_it_says_it_is(thief: SeedSigner) -> None:
    (record,) = loose(thief, 1)
    verdict = verify(record.to_sealed_dict())
    assert verdict.status == "qualified"
    assert "only times were compared" in verdict.check("keys").reason


@pytest.mark.parametrize("block", [None, {"v": 1}, {"at": 7}, {"at": None}, {"at": FAR_AHEAD}], ids=repr)
def test_a_loose_capsule_of_the_old_key_that_hides_its_time(thief: SeedSigner, block: Any) -> None:
    environment = {} if block is None else {"aver": block}
    content = Capsule(type="tool", context={"environment": environment}).to_dict()
    sealed = seal_content(content, thief, at=FAR_AHEAD)
    assert verify(sealed.to_sealed_dict()).status == "failed"


def test_a_bundle_without_its_keys_chain(ledger: Ledger, thief: SeedSigner, tmp_path: Path) -> None:
    """Leaving out the chain that tells how far the old key was good does not make its forgery good."""
    head = ledger.head(CHAIN)
    forged = prepare_draft(Capsule(type="tool")).seal(
        thief, at=LONG_AGO, sequence=head.count, previous_hash=head.hash, chain={}
    )
    bundle = export_bundle(ledger, tmp_path / "bundle").path
    index = json.loads((bundle / "index.json").read_bytes())
    file = bundle / f"{CHAIN}.json"
    chain = json.loads(file.read_bytes())
    seal = {key: getattr(forged, key) for key in SEAL_KEYS}
    chain["capsules"].append({**seal, "canonical": forged.canonical.decode()})
    summary = next(one for one in index["chains"] if one["id"] == CHAIN)
    for claim in (chain, summary):
        claim.update(length=4, head_hash=forged.hash)
    index["capsule_count"] += 1
    file.write_text(json.dumps(chain))
    (bundle / "index.json").write_text(json.dumps(index))
    assert first_bad(verify(bundle)) == ("KEY_RETIRED", CHAIN, 3)
    (keys,) = (one for one in index["chains"] if one["id"] == "keys")
    index["chains"].remove(keys)
    index.update(chain_count=index["chain_count"] - 1, capsule_count=index["capsule_count"] - keys["length"])
    (bundle / "index.json").write_text(json.dumps(index))
    assert verify(bundle).status == "failed"  # The signed heads list both.
    (bundle / "head.json").unlink()
    (bundle / "keys.json").unlink()
    for claim in (chain, summary):
        claim.update(ended_at=forged.signed_at, signed_by=sorted({*claim["signed_by"], forged.signed_by}))
    file.write_text(json.dumps(chain))
    (bundle / "index.json").write_text(json.dumps(index))
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    assert "only times were compared" in verdict.check("keys").reason


def held_to(ledger: Ledger, statement: Statement) -> Verdict:
    tally = Tally(records=1)
    check_ledger_checkpoints(ledger, [Checkpoint.from_statement(statement)], ledger.keys.ring(), tally)
    return conclude("checkpoint", tally)


def test_a_checkpoint_by_a_key_that_had_ended(ledger: Ledger, thief: SeedSigner) -> None:
    content = dict(make_checkpoint(ledger).content)
    assert held_to(ledger, sign_statement(PURPOSE, {**content, "at": LONG_AGO}, (thief,))).status == "verified"
    forged = held_to(ledger, sign_statement(PURPOSE, {**content, "at": FAR_AHEAD}, (thief,)))
    assert first_bad(forged)[0] == "KEY_RETIRED"


def test_a_strangers_file_with_our_ledgers_id_is_not_held_against_ours(ledger: Ledger, tmp_path: Path) -> None:
    from aver import open_ledger

    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close_chain(CHAIN)
    home = tmp_path / "stranger"
    home.mkdir(mode=0o700)
    with open_ledger(home / "ledger.db", home=home) as stranger:
        attacker = unguarded(stranger)
        attacker.execute("UPDATE ledger SET value = ? WHERE name = 'id'", (ledger.id,))
        attacker.close()
    with open_ledger(home / "ledger.db", home=home) as stranger:
        stranger.append_many("a.first", [Capsule(type="tool") for _ in range(120)])
        for _ in range(3):
            stranger.append("a.second", Capsule(type="tool"))
            stranger.close_chain("a.second")
    assert verify(home / "ledger.db").status == "qualified"
    assert ledger.verify().status == "verified"
