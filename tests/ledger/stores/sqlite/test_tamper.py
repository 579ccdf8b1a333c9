"""A ledger's file made to show one thing to a verifier and another to those who read or write it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aver import BadInput, Blob, Capsule, IntegrityError, Ledger, Unavailable, open_ledger, verify
from aver.ledger.stores.sqlite.connections import ROW_MAX
from aver.ledger.stores.sqlite.schema import PAGE_SIZE
from support.tamper import codes_at, first_bad, unguarded

CHAIN = "demo.store"


@pytest.fixture
def path(aver_home: Path) -> Path:
    """A closed ledger with four records."""
    with open_ledger() as ledger:
        for _ in range(4):
            ledger.append(CHAIN, Capsule(type="tool"))
    return aver_home / "ledger.db"


# --- names, places and programs


UNDOING = """CREATE TRIGGER {name} AFTER UPDATE ON chains WHEN NEW.count > OLD.count
BEGIN DELETE FROM records WHERE chain = NEW.chain AND sequence >= OLD.count;
UPDATE chains SET count = OLD.count, head = OLD.head WHERE chain = NEW.chain; END"""


@pytest.mark.parametrize("name", ["undoing", "sqlite_stat1", "sqlite_sequence"])
def test_a_trigger_that_undoes_appends(path: Path, name: str) -> None:
    """Also under a name that SQLite gives to tables of its own."""
    connection = sqlite3.connect(path, isolation_level=None)
    for guard in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {guard[0]}")
    connection.execute("PRAGMA writable_schema = ON")
    row = ("trigger", name, "chains", 0, UNDOING.format(name=name))
    connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    connection.execute("PRAGMA schema_version = 99")
    connection.close()
    with open_ledger() as ledger:
        assert first_bad(ledger.verify())[0] == "STORE_DAMAGED"
        assert first_bad(ledger.verify(CHAIN))[0] == "STORE_DAMAGED"
        with pytest.raises(IntegrityError, match="trigger"):
            ledger.append(CHAIN, Capsule(type="tool"))


def test_analysed_tables_are_sqlites_own_and_harmless(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("ANALYZE")
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'").fetchone() == (1,)
    connection.close()
    with open_ledger() as ledger:
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 4
        assert ledger.verify().status == "verified"


def test_records_stored_between_their_places(path: Path) -> None:
    """In the right order, and at no place at which anyone would find them."""
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        number = attacker.execute("SELECT chain FROM chains WHERE name = ?", (CHAIN,)).fetchone()[0]
        attacker.execute(f"UPDATE records SET sequence = sequence / 10.0 WHERE chain = {number} AND sequence > 0")
        assert codes_at(ledger.verify()) == {("COLUMN_MISMATCH", CHAIN, place) for place in (1, 2, 3)}
        assert ledger.get(f"capsule://{CHAIN}/1") is None
        attacker.close()


@pytest.mark.parametrize("name", ["CAST(name AS BLOB)", "name || char(0) || 'x'"], ids=["bytes", "nul"])
def test_a_chain_that_looks_as_if_it_had_its_name(path: Path, name: str) -> None:
    """Who appends would not find it and begin the chain anew; so it must not pass as the chain."""
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.execute(f"UPDATE chains SET name = {name} WHERE name = ?", (CHAIN,))
        assert ledger.head(CHAIN).count == 0
        assert CHAIN not in ledger.chains()
        assert first_bad(ledger.verify())[0] == "CHAIN_IDENTITY"
        attacker.close()


def test_a_chain_hidden_under_bytes_that_look_like_its_tenant(path: Path) -> None:
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.execute("UPDATE chains SET tenant = CAST(tenant AS BLOB) WHERE name = ?", (CHAIN,))
        assert first_bad(ledger.verify())[0] == "STORE_DAMAGED"
        attacker.close()


def test_records_left_of_a_tenant_whose_chains_were_deleted(path: Path) -> None:
    with open_ledger(tenant="bob") as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        attacker = unguarded(ledger)
        assert verify(path).status == "verified"
        attacker.execute("DELETE FROM chains WHERE tenant = 'bob'")
        assert first_bad(verify(path))[0] == "STORE_DAMAGED"
        attacker.close()


# --- files beside it


def hot_journal(old: bytes) -> bytes:
    """A rollback journal that makes SQLite put these pages back before anything else."""
    pages = [old[at : at + PAGE_SIZE] for at in range(0, len(old), PAGE_SIZE)]
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", len(pages), 0, len(pages), 512, PAGE_SIZE)
    journal = head.ljust(512, b"\0")
    for number, page in enumerate(pages, 1):
        checksum = sum(page[at] for at in range(PAGE_SIZE - 200, 0, -200))
        journal += struct.pack(">I", number) + page + struct.pack(">I", checksum)
    return journal


def test_a_journal_that_would_take_the_ledger_back(path: Path) -> None:
    """A reader would not see what the next append would do: lose all records since."""
    old = path.read_bytes()
    with open_ledger() as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
    journal = path.with_name("ledger.db-journal")
    journal.write_bytes(hot_journal(old))
    for create in (True, False):
        with pytest.raises(IntegrityError, match="older state"):
            open_ledger(create=create)
    journal.unlink()
    with open_ledger() as ledger:
        ledger.verify()
        journal.write_bytes(hot_journal(old))
        with pytest.raises(IntegrityError, match="older state"):
            ledger.append(CHAIN, Capsule(type="tool"))
        journal.write_bytes(b"")
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 5


def test_no_journal_ever_lies_beside_a_ledger(path: Path, tmp_path: Path) -> None:
    """Which is why one that does is not ours: a ledger has its log from its creation on."""
    new = tmp_path / "new.db"
    open_ledger(new).close()
    assert new.read_bytes()[18:20] == b"\x02\x02"


def test_a_directory_that_is_a_ledger_and_a_bundle(path: Path, tmp_path: Path) -> None:
    from aver.ledger.bundle import export_bundle

    with open_ledger() as ledger:
        bundle = export_bundle(ledger, tmp_path / "bundle").path
    assert verify(bundle).status == "verified"
    shutil.copy(path, bundle / "ledger.db")
    with pytest.raises(BadInput, match="and also"):
        verify(bundle)
    asked = subprocess.run([sys.executable, "-m", "aver", "verify", str(bundle)], capture_output=True, check=False)
    assert asked.returncode == 2
    assert b"and also" in asked.stderr


# --- the lock


def test_one_file_by_two_names_has_one_lock(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    (path.parent / "config.toml").write_text("lock_timeout = 0.2")
    with open_ledger() as ledger, open_ledger(link) as other:
        assert other.append(CHAIN, Capsule(type="tool")).sequence == 4
        with ledger.store.transaction(), pytest.raises(Unavailable, match="lock"):
            other.append(CHAIN, Capsule(type="tool"))
    assert not link.with_name("link.db.lock").exists()


def test_a_ledger_is_made_where_a_link_leads(tmp_path: Path) -> None:
    link, real = tmp_path / "link.db", tmp_path / "real.db"
    link.symlink_to(real)
    with open_ledger(link) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
    assert link.is_symlink()
    with open_ledger(real, create=False) as ledger:
        assert ledger.verify().status == "verified"


def test_a_lock_that_was_replaced_is_not_held_by_two(path: Path) -> None:
    (path.parent / "config.toml").write_text("lock_timeout = 0.2")
    with open_ledger() as ledger, open_ledger() as other:
        ledger.append(CHAIN, Capsule(type="tool"))
        path.with_name("ledger.db.lock").unlink()
        with other.store.transaction(), pytest.raises(Unavailable, match="lock"):
            ledger.append(CHAIN, Capsule(type="tool"))
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 5


def test_what_a_killed_creation_left_behind_is_in_nobodys_way(aver_home: Path) -> None:
    """In a container the next process may well have the same number."""
    aver_home.mkdir(mode=0o700)
    left = [aver_home / f".ledger.db.{os.getpid()}.new{ending}" for ending in ("", "-journal", "-wal")]
    left.append(aver_home / ".ledger.db.1.new")
    for file in left:
        file.write_bytes(b"half a ledger")
    with open_ledger() as ledger:
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 0
        assert ledger.verify().status == "verified"
    assert not [file for file in left if file.exists()]


# --- sizes


@pytest.mark.parametrize("column", ["canonical", "signature", "session"])
def test_a_record_beyond_all_bounds_is_not_read(path: Path, column: str) -> None:
    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.execute(f"UPDATE records SET {column} = zeroblob({ROW_MAX + 1}) WHERE sequence = 2")
        assert first_bad(ledger.verify()) == ("SCHEMA_INVALID", CHAIN, 2)
        attacker.close()


def test_a_blob_of_the_largest_size_is_verified(ledger: Ledger) -> None:
    """Larger than any record may be."""
    blob = Blob(bytes(ROW_MAX + 1))
    ledger.append(CHAIN, Capsule(type="tool", outcome={"result": blob.reference}), blobs=[blob])
    assert ledger.verify().status == "verified"
    assert ledger.blob(blob.digest) == blob.data


def test_large_records_are_read_few_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = ledger.append_many(CHAIN, [Capsule(type="tool", outcome={"result": "x" * 9000}) for _ in range(25)])
    monkeypatch.setattr("aver.ledger.ledger.SLICE_BYTES", 40_000)
    asked = []
    rows = ledger.store.read_rows
    monkeypatch.setattr(ledger.store, "read_rows", lambda *place: asked.append(place) or rows(*place))
    assert list(ledger.read(CHAIN)) == sealed
    assert len(asked) == 5


@pytest.mark.parametrize(
    "blob",
    [Blob("text"), Blob(b"x", "\ud800"), Blob(b"x", 5), Blob(b"x" * 11)],
    ids=["text", "half", "number", "large"],
)  # type: ignore[arg-type]
def test_a_blob_that_cannot_be_stored_fails_its_own_append_only(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, blob: Blob
) -> None:
    """Not those that share its commit: they wait until the first one is written, and go together."""
    ledger.append(CHAIN, Capsule(type="tool"))
    monkeypatch.setattr("aver.capsule.blobs.BLOB_MAX", 10)
    said: list[str] = []

    def append(*blobs: Blob) -> None:
        try:
            said.append(f"ok {ledger.append(CHAIN, Capsule(type='tool'), blobs=blobs).sequence}")
        except BadInput:
            said.append("refused")

    with ledger.store.transaction():
        threads = [threading.Thread(target=append, args=args) for args in [(), (blob,), (), ()]]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["ok 1", "ok 2", "ok 3", "refused"]


@pytest.mark.parametrize("name", ["../outside", "a\x00b", "/tmp/outside", ".hidden"], ids=repr)
def test_the_name_of_a_chain_does_not_lead_an_export_elsewhere(path: Path, tmp_path: Path, name: str) -> None:
    from aver.ledger.bundle import export_bundle

    with open_ledger() as ledger:
        attacker = unguarded(ledger)
        attacker.execute("UPDATE chains SET name = ? WHERE name = ?", (name, CHAIN))
        attacker.close()
        with pytest.raises(BadInput):
            export_bundle(ledger, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("chain", [CHAIN, "keys", "meta"])
def test_a_head_row_that_claims_more_records_than_can_be_counted(path: Path, tmp_path: Path, chain: str) -> None:
    """Reading ends where the records do; it does not count to there."""
    from aver.ledger.bundle import export_bundle

    with open_ledger() as ledger:
        ledger.close_chain(CHAIN)
        there = len(list(ledger.read(chain)))
        attacker = unguarded(ledger)
        attacker.execute("UPDATE chains SET count = ? WHERE name = ?", (2**62, chain))
        attacker.close()
        assert len(list(ledger.read(chain))) == there
        assert first_bad(ledger.verify()) == ("SEQUENCE_GAP", chain, there)
        export_bundle(ledger, tmp_path / "bundle")


@pytest.mark.parametrize("place", ["", "x", b"1", 1.5], ids=repr)
def test_a_record_that_is_stored_at_no_place_is_not_looked_up(path: Path, place: object) -> None:
    with open_ledger() as ledger:
        record = next(ledger.read(CHAIN, 1))
        attacker = unguarded(ledger)
        attacker.execute("UPDATE records SET sequence = ? WHERE id = ?", (place, record.id))
        attacker.close()
        for name in (record.id, record.hash, f"capsule://{record.id}"):
            verdict = verify(name, ledger=ledger)
            assert first_bad(verdict)[0] == "COLUMN_MISMATCH"
            assert "no sequence number" in str(verdict.first_bad)
        assert ledger.verify().status == "failed"


def test_a_copy_that_another_program_made_is_written_to(path: Path, tmp_path: Path) -> None:
    """It has no log yet."""
    copy = tmp_path / "copy.db"
    connection = sqlite3.connect(path)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    assert copy.read_bytes()[18:20] == b"\x01\x01"
    with open_ledger(copy) as ledger:
        assert ledger.verify().status == "verified"
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 4
        assert ledger.verify().status == "verified"
