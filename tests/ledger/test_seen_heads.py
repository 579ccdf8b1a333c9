"""Remembered heads: the meta chain, `seen.json`, trusted heads and checkpoints find what was cut or put back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Capsule, Head, Ledger, NotFound, open_ledger
from aver.keys import Statement
from aver.ledger.checkpoint import Checkpoint, check_ledger_checkpoints, make_checkpoint
from aver.ledger.meta_chain import read_meta_heads, sweep
from aver.ledger.seen_heads import check_heads
from aver.verdict import Tally, conclude
from support.tamper import codes_at, first_bad, unguarded

pytestmark = pytest.mark.both_stores

CHAIN = "demo.memory"


def fill(ledger: Ledger, chain: str = CHAIN, count: int = 3) -> list[str]:
    return [ledger.append(chain, Capsule(type="tool")).hash for _ in range(count)]


def cut(ledger: Ledger, chain: str, length: int) -> None:
    """Remove a chain's tail and put its head row right."""
    attacker = unguarded(ledger)
    number = attacker.execute("SELECT chain FROM chains WHERE name = ?", (chain,)).fetchone()[0]
    attacker.execute("DELETE FROM records WHERE chain = ? AND sequence >= ?", (number, length))
    head = attacker.execute(
        "SELECT hash FROM records WHERE chain = ? AND sequence = ?", (number, length - 1)
    ).fetchone()
    attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (length, head and head[0], number))
    if not length:
        attacker.execute("DELETE FROM chains WHERE chain = ?", (number,))
    attacker.close()


# --- meta


def test_closing_a_chain_records_its_head(ledger: Ledger) -> None:
    hashes = fill(ledger)
    entry = ledger.close_chain(CHAIN)
    assert entry.to_dict()["outcome"]["result"] == {
        "kind": "conversation_seal",
        "tool": "demo",
        "session_id": "memory",
        "head_hash": hashes[-1],
        "capsule_count": 3,
    }
    assert ledger.close_chain(CHAIN) == entry
    assert ledger.head("meta").count == 1
    fill(ledger, count=1)
    assert ledger.close_chain(CHAIN) != entry
    assert {head.chain: head.count for head in read_meta_heads(ledger)} == {CHAIN: 4}


def test_growth_is_normal(ledger: Ledger) -> None:
    fill(ledger)
    ledger.close_chain(CHAIN)
    fill(ledger, count=2)
    fill(ledger, "demo.new")
    verdict = ledger.verify()
    assert verdict.status == "verified"
    assert verdict.check("meta").status == "passed"
    assert "grown" in verdict.check("meta").reason
    assert verdict.check("meta").count == 1


@pytest.mark.parametrize("length", [1, 2])
def test_a_cut_tail(ledger: Ledger, length: int) -> None:
    fill(ledger)
    ledger.close_chain(CHAIN)
    cut(ledger, CHAIN, length)
    verdict = ledger.verify()
    assert first_bad(verdict) == ("TRUNCATED", CHAIN, length)
    assert verdict.first_bad.proof["remembered"]["count"] == 3
    assert verdict.first_bad.proof["actual"]["count"] == length


def test_a_deleted_chain(ledger: Ledger) -> None:
    fill(ledger)
    ledger.close_chain(CHAIN)
    cut(ledger, CHAIN, 0)
    code, chain, _ = first_bad(ledger.verify())
    assert (code, chain) == ("CHAIN_MISSING", CHAIN)


def test_a_fork(ledger: Ledger) -> None:
    """The tail cut off and grown anew with the right key: as long as before, but another chain."""
    fill(ledger)
    ledger.close_chain(CHAIN)
    cut(ledger, CHAIN, 1)
    fill(ledger, count=2)
    assert first_bad(ledger.verify()) == ("ROLLBACK", CHAIN, 2)
    fill(ledger, count=5)
    verdict = ledger.verify()
    assert first_bad(verdict) == ("ROLLBACK", CHAIN, 2)
    assert verdict.first_bad.proof["remembered"]["hash"] != verdict.first_bad.proof["actual"]["hash"]


def test_a_sweep_records_all_that_changed(ledger: Ledger) -> None:
    for index in range(5):
        fill(ledger, f"demo.{index}", 1)
    (entry,) = sweep(ledger)
    heads = entry.to_dict()["outcome"]["result"]["heads"]
    assert {name: head["count"] for name, head in heads.items()} == {**{f"demo.{i}": 1 for i in range(5)}, "keys": 1}
    assert sweep(ledger) == []
    fill(ledger, "demo.2", 1)
    (entry,) = sweep(ledger)
    assert entry.to_dict()["outcome"]["result"]["heads"].keys() == {"demo.2"}
    assert ledger.verify().status == "verified"
    cut(ledger, "demo.3", 0)
    cut(ledger, "demo.2", 1)
    assert {(code, chain) for code, chain, _ in codes_at(ledger.verify())} == {
        ("CHAIN_MISSING", "demo.3"),
        ("TRUNCATED", "demo.2"),
    }


def test_a_sweep_over_very_many_chains(ledger: Ledger) -> None:
    for index in range(1_100):
        with ledger.store.transaction() as transaction:  # empty head rows: the sweep need not know
            transaction.add_chain("default", f"many.{index}")
    fill(ledger)
    entries = sweep(ledger)
    assert len(entries) == 2
    assert all(len(entry.canonical) < 256 * 1024 for entry in entries)


def test_a_damaged_entry_does_not_hide_the_others(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, "demo.second")
    ledger.close_chain("demo.second")
    ledger.close_chain(CHAIN)
    unguarded(ledger).execute(
        "UPDATE records SET canonical = x'7b7d' WHERE sequence = 0"
        " AND chain = (SELECT chain FROM chains WHERE name = 'meta')"
    )
    cut(ledger, CHAIN, 1)
    assert codes_at(ledger.verify()) == {("SCHEMA_INVALID", "meta", 0), ("TRUNCATED", CHAIN, 1)}


def test_chains_that_cannot_be_closed(ledger: Ledger) -> None:
    fill(ledger)
    ledger.close_chain(CHAIN)
    with pytest.raises(BadInput):
        ledger.close_chain("meta")
    with pytest.raises(NotFound):
        ledger.close_chain("demo.none")
    assert ledger.close_chain("keys").chain == "meta"
    assert ledger.verify().status == "verified"


# --- seen.json


def test_an_older_copy_is_a_rollback_with_both_heads_as_proof(ledger: Ledger) -> None:
    fill(ledger)
    sweep(ledger)
    attacker = unguarded(ledger)
    backup = attacker.contents()
    with open_ledger() as newer:
        fill(newer)
        sweep(newer)
        assert newer.verify().status == "verified"
    attacker.put_back(backup)
    with open_ledger() as old:
        verdict = old.verify()
        assert verdict.status == "failed"
        finding = next(f for f in verdict.findings if f.code == "ROLLBACK")
        assert finding.place.chain == "meta"
        assert (finding.proof["remembered"]["count"], finding.proof["actual"]["count"]) == (2, 1)
        assert old.verify().status == "failed"  # it was not taken for the newest


def test_another_copy_of_the_same_length_is_a_rollback(ledger: Ledger) -> None:
    fill(ledger)
    attacker = unguarded(ledger)
    backup = attacker.contents()
    with open_ledger() as newer:
        sweep(newer)
        assert newer.verify().status == "verified"
    attacker.put_back(backup)
    with open_ledger() as other:
        fill(other)
        sweep(other)
        assert ("ROLLBACK", "meta", 0) in codes_at(other.verify())


def test_a_meta_chain_that_vanished_is_a_rollback(ledger: Ledger) -> None:
    fill(ledger)
    sweep(ledger)
    assert ledger.verify().status == "verified"
    cut(ledger, "meta", 0)
    assert {code for code, _, _ in codes_at(ledger.verify())} == {"ROLLBACK"}


def test_what_was_never_seen_is_not_checked_and_what_failed_is_not_noted(ledger: Ledger, aver_home: Path) -> None:
    fill(ledger)
    sweep(ledger)
    assert ledger.verify().check("rollback").status == "not_checked"
    seen = json.loads((aver_home / "seen.json").read_text())
    assert [Head.from_dict(head) for head in seen] == [ledger.head("meta")]
    fill(ledger)
    sweep(ledger)
    unguarded(ledger).execute("UPDATE records SET signature = '' WHERE sequence = 2")
    assert ledger.verify().status == "failed"
    assert json.loads((aver_home / "seen.json").read_text()) == seen


def test_lower_levels_are_not_noted(ledger: Ledger, aver_home: Path) -> None:
    fill(ledger)
    sweep(ledger)
    for level in ("structural", "content"):
        assert ledger.verify(level=level).status == "qualified"
    assert not (aver_home / "seen.json").exists()


@pytest.mark.parametrize("content", [b"", b"x", b"{}", b"[1]", b'[{"ledger":1}]', b"\xff", b"[" * 1000])
def test_a_damaged_memory_qualifies_instead_of_hiding(ledger: Ledger, aver_home: Path, content: bytes) -> None:
    fill(ledger)
    sweep(ledger)
    (aver_home / "seen.json").write_bytes(content)
    verdict = ledger.verify()
    assert verdict.status == "qualified"
    assert verdict.check("rollback").status == "not_checked"
    assert (aver_home / "seen.json").read_bytes() == content


def test_ledgers_and_tenants_are_remembered_apart(aver_home: Path, new_ledger_url: Callable[[], str]) -> None:
    for url, tenant in ((None, "a"), (None, "b"), (new_ledger_url(), "a")):
        with open_ledger(url, tenant=tenant) as ledger:
            fill(ledger)
            sweep(ledger)
            assert ledger.verify().status == "verified"
    assert len(json.loads((aver_home / "seen.json").read_text())) == 3


# --- since


def test_since_a_trusted_head_only_what_came_after_is_judged(ledger: Ledger) -> None:
    fill(ledger, count=4)
    head = ledger.head(CHAIN)
    assert ledger.verify(CHAIN, since=head).status == "empty"
    fill(ledger, count=2)
    verdict = ledger.verify(CHAIN, since=head)
    assert verdict.status == "verified"
    assert verdict.records == 2


def test_since_finds_truncation_and_forks(ledger: Ledger) -> None:
    fill(ledger, count=4)
    head = ledger.head(CHAIN)
    cut(ledger, CHAIN, 2)
    assert first_bad(ledger.verify(CHAIN, since=head)) == ("TRUNCATED", CHAIN, 2)
    fill(ledger, count=2)
    assert first_bad(ledger.verify(CHAIN, since=head)) == ("ROLLBACK", CHAIN, 3)
    fill(ledger, count=5)
    assert first_bad(ledger.verify(CHAIN, since=head)) == ("ROLLBACK", CHAIN, 3)
    assert ledger.verify(CHAIN).status == "verified"


def test_since_finds_faults_after_it_and_not_before(ledger: Ledger) -> None:
    fill(ledger, count=3)
    head = ledger.head(CHAIN)
    fill(ledger, count=3)
    attacker = unguarded(ledger)
    where = "WHERE chain = (SELECT chain FROM chains WHERE name = ?) AND sequence = ?"
    attacker.execute(f"UPDATE records SET signature = '' {where}", (CHAIN, 1))
    assert ledger.verify(CHAIN, since=head).status == "verified"
    attacker.execute(f"UPDATE records SET signature = '' {where}", (CHAIN, 4))
    assert first_bad(ledger.verify(CHAIN, since=head)) == ("SIG_MISSING", CHAIN, 4)


@pytest.mark.parametrize("count", [5, 2**63, 2**70])
def test_since_a_head_that_lies_in_the_future(ledger: Ledger, count: int) -> None:
    fill(ledger)
    head = Head(ledger.id, "default", CHAIN, count, "0" * 64)
    assert first_bad(ledger.verify(CHAIN, since=head)) == ("TRUNCATED", CHAIN, 3)


def test_since_needs_the_very_chain(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, "demo.other")
    head = ledger.head(CHAIN)
    for wrong in ({"ledger": "x"}, {"tenant": "x"}, {"chain": "demo.other"}):
        with pytest.raises(BadInput):
            ledger.verify(CHAIN, since=Head.from_dict({**head.to_dict(), **wrong}))
    with pytest.raises(BadInput):
        ledger.verify(since=head)


# --- checkpoints


def checked(ledger: Ledger, statement: Any) -> Any:
    tally = Tally(records=1)
    check_ledger_checkpoints(ledger, [Checkpoint.from_statement(statement)], ledger.keys.ring(), tally)
    return conclude("checkpoint", tally)


def test_a_checkpoint_holds_the_ledger_to_what_it_was(ledger: Ledger) -> None:
    fill(ledger)
    statement = make_checkpoint(ledger)
    assert Statement.from_dict(json.loads(json.dumps(statement.to_dict()))) == statement
    assert checked(ledger, statement).status == "verified"
    fill(ledger)
    assert checked(ledger, statement).status == "verified"
    cut(ledger, CHAIN, 2)
    assert first_bad(checked(ledger, statement)) == ("TRUNCATED", CHAIN, 2)
    fill(ledger, count=4)
    assert first_bad(checked(ledger, statement)) == ("ROLLBACK", CHAIN, 2)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d["content"].update(at="2020"), "SIG_INVALID"),
        (lambda d: d["content"]["heads"][CHAIN].update(count=1), "SIG_INVALID"),
        (lambda d: d["content"]["heads"].pop(CHAIN), "SIG_INVALID"),
        (lambda d: d["content"].update(ledger="other"), "CHAIN_IDENTITY"),
        (lambda d: d["content"].update(tenant="other"), "CHAIN_IDENTITY"),
        (lambda d: d.update(signatures=[]), "SIG_MISSING"),
        (lambda d: d["signatures"][0].update(ed25519="0" * 128), "SIG_INVALID"),
    ],
)
def test_a_changed_checkpoint(ledger: Ledger, change: Any, code: str) -> None:
    fill(ledger)
    data = json.loads(json.dumps(make_checkpoint(ledger).to_dict()))
    change(data)
    verdict = checked(ledger, Statement.from_dict(data))
    assert verdict.status == "failed"
    assert verdict.first_bad.code == code


def test_a_checkpoint_with_impossible_heads(ledger: Ledger) -> None:
    fill(ledger)
    for head in ({"count": 2**80, "hash": "0" * 64}, {"count": 3, "hash": "0" * 64}):
        tally = Tally(records=1)
        remembered = [Head(ledger.id, "default", CHAIN, head["count"], head["hash"])]
        check_heads(ledger, remembered, tally, check="checkpoint", remembered="it")
        assert conclude("x", tally).status == "failed"


# --- levels


@pytest.mark.parametrize("level", ["structural", "content"])
def test_lower_levels_never_say_verified(ledger: Ledger, level: Any) -> None:
    fill(ledger)
    sweep(ledger)
    for chain in (None, CHAIN, "meta", "keys"):
        verdict = ledger.verify(chain, level=level)
        assert verdict.status == "qualified"
        assert verdict.level == level
        assert verdict.check("signature").status == "not_checked"


@pytest.mark.parametrize("changes", [{"chain": "\ud800"}, {"tenant": "\udfff"}, {"count": 2**70}], ids=str)
def test_a_remembered_head_that_no_file_can_hold(ledger: Ledger, changes: dict[str, object]) -> None:
    """The verdict names the file; it does not fail to be given."""
    ledger.append("demo.seen", Capsule(type="tool"))
    ledger.sweep()
    head = {"ledger": ledger.id, "tenant": "default", "chain": "meta", "count": 1, "hash": "0" * 64, **changes}
    (ledger.config.home / "seen.json").write_text(json.dumps([head]))
    verdict = ledger.verify()
    assert verdict.status == "qualified"
    assert verdict.check("rollback").status == "not_checked"
