"""The file: which ones are ledgers, which are refused, and how an older one becomes a newer one."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from aver import AverError, BadInput, Capsule, Ledger, NotFound, Unavailable, open_ledger
from aver.ledger.stores.sqlite import schema

CHAIN = "demo.schema"


def test_looking_leaves_no_traces(aver_home: Path, tmp_path: Path) -> None:
    """`verify` on a mistyped path must not make a ledger and call it fine."""
    for path in (None, tmp_path / "typo.db"):
        with pytest.raises(NotFound):
            open_ledger(path, create=False)
    assert not aver_home.exists()
    assert not any(tmp_path.glob("*.db*"))


def test_the_file_is_for_its_owner_alone(ledger: Ledger, aver_home: Path) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    assert stat.S_IMODE(aver_home.stat().st_mode) == 0o700
    for name in ("ledger.db", "ledger.db-wal", "ledger.db.lock", "keyring.json"):
        assert stat.S_IMODE((aver_home / name).stat().st_mode) == 0o600, name


def test_a_fresh_ledger_is_empty_and_has_an_id(ledger: Ledger) -> None:
    assert len(ledger.id) == 36
    assert ledger.verify().status == "empty"
    assert ledger.chains() == []
    with open_ledger() as again:
        assert again.id == ledger.id


@pytest.mark.parametrize(
    "content", [b"", b"not a database", b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\xff" * 8192]
)
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises((BadInput, Unavailable)):
        open_ledger(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE capsules (id TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(BadInput):
        open_ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["", "sqlite:///", "a\x00b", "x" * 300, "no/such/directory/l.db", ".", "..", "/", "\ud800"]
)
def test_a_path_that_cannot_be_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AverError):
        open_ledger(name)


@pytest.mark.parametrize("url", ["postgresql://localhost/x", "http://x", "file:///x", "unix:///x"])
def test_a_url_that_is_not_opened_here(url: str) -> None:
    with pytest.raises(AverError):
        open_ledger(url)


def test_a_directory_is_not_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        open_ledger(tmp_path)


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def test_a_newer_schema_is_refused_and_left_alone(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close()
    path = ledger.store.path
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(BadInput, match="newer"):
            open_ledger(create=create)
    assert path.read_bytes() == before


ADDED = """
CREATE TABLE labels (
    name TEXT PRIMARY KEY
);
CREATE TRIGGER labels_stay BEFORE DELETE ON labels
BEGIN SELECT RAISE(ABORT, 'a label; is never deleted'); END;
ALTER TABLE chains ADD COLUMN colour TEXT;
"""


def next_version(monkeypatch: pytest.MonkeyPatch, *added: str) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *added))
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))


def test_an_older_ledger_is_brought_forward_and_loses_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [ledger.append(CHAIN, Capsule(type="tool")) for _ in range(3)]
    ledger.close()
    next_version(monkeypatch, ADDED, "CREATE TABLE more (x);\n")
    with open_ledger() as newer:
        assert list(newer.read(CHAIN)) == records
        assert newer.append(CHAIN, Capsule(type="tool")).sequence == 3
        assert newer.verify().status == "verified"
    assert version_of(ledger.store.path) == schema.VERSION
    with open_ledger() as again:
        assert again.head(CHAIN).count == 4


def test_a_migration_that_fails_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close()
    before = version_of(ledger.store.path)
    with monkeypatch.context() as patch:
        next_version(patch, ADDED + "CREATE TABLE chains (x);\n")
        with pytest.raises(Unavailable):
            open_ledger()
    assert version_of(ledger.store.path) == before
    with open_ledger() as same:
        assert same.verify().status == "verified"


def test_a_database_with_our_mark_and_nothing_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zero.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute("VACUUM")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(BadInput):
        open_ledger(path)
    assert path.read_bytes() == before


def test_the_triggers_keep_honest_programs_from_harm(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    connection = sqlite3.connect(ledger.store.path, isolation_level=None)
    for statement in (
        "UPDATE records SET signed_at = ''",
        "DELETE FROM records",
        "UPDATE chains SET count = 0",
        "UPDATE chains SET name = 'demo.x'",
        "UPDATE chains SET tenant = 'x'",
        "DELETE FROM chains",
        "UPDATE ledger SET value = 'x'",
        "DELETE FROM ledger",
        "INSERT INTO records SELECT NULL, chain, 0, tenant, hash, signature, signature_pq, signed_at, signed_by, id,"
        " type, kind, 'k', session, at, canonical FROM records",
        "REPLACE INTO records SELECT * FROM records",
    ):
        with pytest.raises(sqlite3.Error):
            connection.execute(statement)
    connection.close()
    assert ledger.verify().status == "verified"


def test_the_lock_file_may_be_removed_between_writes(ledger: Ledger, aver_home: Path) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close()
    for path in aver_home.glob("ledger.db.*"):
        path.unlink()
    with open_ledger() as again:
        assert again.append(CHAIN, Capsule(type="tool")).sequence == 1
