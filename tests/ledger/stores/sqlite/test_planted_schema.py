"""A ledger's file with anything in its schema that Aver did not put there: named, and never evaluated."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from aver import BadInput, Capsule, IntegrityError, open_ledger, verify
from aver.ledger.stores.sqlite import schema
from aver.ledger.stores.sqlite.schema import find_differences, find_foreign_objects
from support.aver_command import Aver, Ran
from support.tamper import first_bad

CHAIN = "demo.schema"
RAISES = "abs(-9223372036854775807 - 1)"
"""SQLite raises an error where it evaluates this. So a verdict without that error has not evaluated it."""


def aver(home: Path, *arguments: str) -> Ran:
    return Aver(home)(*arguments, stdin='{"type": "tool"}', AVER_HOME=str(home))


@pytest.fixture
def path(aver_home: Path) -> Path:
    with open_ledger() as ledger:
        ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(3)])
    return aver_home / "ledger.db"


def plant(path: Path, *statements: str, kind: str = "index", name: str = "evil", sql: str = "") -> None:
    """Run statements, and put a statement into the schema without running it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    if sql:
        # An empty tree, so that the object has a root page of its own.
        connection.execute("CREATE TABLE room (x)")
        connection.execute(
            "UPDATE sqlite_schema SET type = ?, name = ?, tbl_name = 'records', sql = ? WHERE name = 'room'",
            (kind, name, sql),
        )
    connection.close()


def replace_in_table(table: str, old: str, new: str) -> str:
    return f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') WHERE name = '{table}'"


PLANTED = {
    "partial index": {"sql": f"CREATE INDEX evil ON records (type) WHERE {RAISES} = type"},
    "expression index": {"sql": f"CREATE INDEX evil ON records ({RAISES} + sequence)"},
    "plain index": {"sql": "CREATE INDEX evil ON records (type)"},
    "index under the name of one of SQLite's tables": {
        "sql": f"CREATE INDEX sqlite_stat1 ON records (type) WHERE {RAISES} = type",
        "name": "sqlite_stat1",
    },
    "another table": {"sql": f"CREATE TABLE evil (x CHECK ({RAISES}))", "kind": "table"},
    "statistics with a condition": {
        "sql": f"CREATE TABLE sqlite_stat1(tbl,idx,stat CHECK ({RAISES}))",
        "kind": "table",
        "name": "sqlite_stat1",
    },
    "index replaced": {
        "statements": [replace_in_table("records_by_hash", "(hash)", f"(hash) WHERE {RAISES} = hash")],
    },
    "index over other columns": {"statements": [replace_in_table("records_by_id", "(id)", "(type)")]},
    "CHECK": {"statements": [replace_in_table("records", "BLOB NOT NULL", f"BLOB NOT NULL CHECK ({RAISES})")]},
    "DEFAULT": {"statements": [replace_in_table("chains", "DEFAULT 0", f"DEFAULT ({RAISES})")]},
    "collation": {
        "statements": [replace_in_table("chains", "name   TEXT NOT NULL", "name TEXT NOT NULL COLLATE RTRIM")]
    },
    "generated column": {
        "statements": [replace_in_table("records", "at           TEXT", f"at TEXT AS (CAST({RAISES} AS TEXT))")]
    },
    "view": {"statements": ["ALTER TABLE records RENAME TO kept", "CREATE VIEW records AS SELECT * FROM kept"]},
    "endless view": {
        "statements": [
            "ALTER TABLE chains RENAME TO kept",
            "CREATE VIEW chains AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
            " SELECT i AS chain, 'default' AS tenant, 'x' AS name, 1 AS count, '' AS head, 0 AS frozen, '' AS origin"
            " FROM n",
        ]
    },
    "virtual table": {"statements": ["CREATE VIRTUAL TABLE evil USING fts5(x)"]},
    "a view that calls itself a trigger": {
        "sql": f"CREATE VIEW evil AS SELECT {RAISES}",
        "kind": "trigger",
    },
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", PLANTED)
def test_what_aver_did_not_make_fails_the_verdict_and_is_refused_by_every_verb(path: Path, what: str) -> None:
    given = dict(PLANTED[what])
    plant(path, *given.pop("statements", ()), **given)
    verdicts = [verify(), verify(path), verify(CHAIN), verify(f"capsule://{CHAIN}/1")]
    for verdict in verdicts:
        assert first_bad(verdict)[0] == "STORE_DAMAGED"
        assert "overflow" not in str(verdict.to_dict())
    for create in (True, False):
        with pytest.raises((IntegrityError, BadInput)):
            open_ledger(create=create)
    said = aver(path.parent, "verify", "--json")
    assert said.code == 1
    assert json.loads(said.out)["status"] == "failed"
    for verb in (("log",), ("show", f"capsule://{CHAIN}/1"), ("seal", "-", "--chain", CHAIN)):
        ran = aver(path.parent, *verb)
        assert ran.code in (1, 2), ran.err
        assert "overflow" not in ran.err


def test_an_index_that_is_planted_while_the_ledger_is_open(path: Path) -> None:
    with open_ledger() as ledger:
        plant(path, sql=f"CREATE INDEX evil ON records (type) WHERE {RAISES} = type")
        verdict = ledger.verify()
        assert first_bad(verdict)[0] == "STORE_DAMAGED"
        assert "overflow" not in str(verdict.to_dict())
        with pytest.raises(IntegrityError, match="index evil"):
            ledger.append(CHAIN, Capsule(type="tool"))


def test_a_trigger_keeps_nobody_from_reading(path: Path) -> None:
    plant(path, f"CREATE TRIGGER evil AFTER INSERT ON records BEGIN SELECT {RAISES}; END")
    with open_ledger() as ledger:
        assert len(list(ledger.read(CHAIN))) == 3
        with pytest.raises(IntegrityError, match="trigger evil"):
            ledger.append(CHAIN, Capsule(type="tool"))
        assert first_bad(ledger.verify())[0] == "STORE_DAMAGED"


def test_the_schema_that_aver_makes_has_nothing_foreign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(path)
    assert find_foreign_objects(connection) == find_differences(connection) == []
    # The common case compares texts only, and makes no database to compare with.
    monkeypatch.setattr(schema, "_make_objects", lambda: pytest.fail("not needed"))
    assert find_foreign_objects(connection) == []
    connection.close()


@pytest.mark.parametrize("missing", ["INDEX records_by_id", "TRIGGER records_stay"])
def test_what_is_missing_keeps_nobody_from_reading(path: Path, missing: str) -> None:
    plant(path, f"DROP {missing}")
    with open_ledger() as ledger:
        assert len(list(ledger.read(CHAIN))) == 3
        assert ledger.verify().status == ("failed" if missing.startswith("INDEX") else "verified")


# --- the header


HEADERS = {
    "newer version": "PRAGMA user_version = 7",
    "no version": "PRAGMA user_version = 0",
    "negative version": "PRAGMA user_version = -1",
    "another program": "PRAGMA application_id = 7",
    "no id": "DROP TRIGGER the_ledger_stays; DELETE FROM ledger WHERE name = 'id'",
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_tampered_header_fails_the_verdict(path: Path, what: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(HEADERS[what])
    connection.close()
    for verdict in (verify(), verify(path), verify(path.parent), verify(CHAIN)):
        assert first_bad(verdict) == ("STORE_DAMAGED", None, None)
    for more in ((), (str(path),), (CHAIN,)):
        said = aver(path.parent, "verify", *more, "--json")
        assert said.code == 1, said.err
        assert json.loads(said.out)["first_bad"]["code"] == "STORE_DAMAGED"


@pytest.mark.parametrize("place", [0, 16, 18, 44, 100])
def test_a_header_of_noise_fails_the_verdict(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place : place + 16] = b"\xff" * 16
    path.write_bytes(raw)
    for more in ((), (str(path),)):
        said = aver(path.parent, "verify", *more, "--json")
        assert said.code == 1, said.err
        assert json.loads(said.out)["status"] == "failed"


def test_a_ledger_under_another_name_without_its_mark_is_still_one(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 0")
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    assert first_bad(verify(copy))[0] == "STORE_DAMAGED"


def test_a_head_row_without_records_is_remarked(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO chains (tenant, name) VALUES ('default', 'demo.empty')")
    connection.commit()
    connection.close()
    assert first_bad(verify()) == ("TRUNCATED", "demo.empty", 0)
