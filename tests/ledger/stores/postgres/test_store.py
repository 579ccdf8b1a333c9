"""Opening a ledger on a server: looking makes nothing, newer is refused, older is brought forward, all or nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import psycopg
import pytest

from aver import AverError, BadInput, Capsule, IntegrityError, Ledger, NotFound, Unavailable, open_ledger
from aver.ledger.ledger import list_tenants
from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.health import setup_sql
from support.postgres_servers import Server

CHAIN = "demo.opening"


@pytest.fixture
def bare(postgres: Server) -> Iterator[str]:
    """A database without anything in it."""
    database = postgres.database()
    yield postgres.url(database)
    postgres.drop(database)


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")}


def version_of(url: str) -> int:
    with psycopg.connect(url) as connection:
        return schema.read_version(connection)


def test_looking_leaves_no_traces(bare: str) -> None:
    with pytest.raises(NotFound, match="no ledger"):
        open_ledger(bare, create=False)
    with pytest.raises(NotFound):
        list_tenants(bare)
    assert "aver" not in schemas(bare)


def test_tables_that_nobody_has_named_are_no_ledger_yet(url: str) -> None:
    with pytest.raises(NotFound):
        open_ledger(create=False)
    with open_ledger() as ledger:
        assert ledger.verify().status == "empty"
        with open_ledger(create=False) as again:
            assert again.id == ledger.id


def test_what_psql_makes_is_what_aver_makes(bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute(setup_sql())
    with open_ledger(bare) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        assert ledger.store.schema_differences() == []
        assert ledger.verify().status == "verified"


FIRST_USE = """
import sys
from aver import Capsule, open_ledger
with open_ledger(sys.argv[1]) as ledger:
    print(ledger.id, ledger.append("demo.first", Capsule(type="tool")).hash)
"""


@pytest.mark.more
def test_processes_race_to_make_the_ledger(bare: str) -> None:
    """Tables, id, key, two chains and the first record: all made once."""
    command = [sys.executable, "-c", FIRST_USE, bare]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    outputs = [racer.communicate()[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 5
    assert len({ledger for ledger, _ in outputs}) == 1
    with open_ledger(bare) as ledger:
        assert sorted(record.hash for record in ledger.read("demo.first")) == sorted(digest for _, digest in outputs)
        assert ledger.verify().status == "verified"


def test_a_newer_schema_is_refused_and_left_alone(ledger: Ledger, url: str, owner: psycopg.Connection) -> None:
    owner.execute("INSERT INTO aver.schema_version (version) VALUES (%s)", (schema.VERSION + 1,))
    for create in (True, False):
        with pytest.raises(BadInput, match="newer"):
            open_ledger(url, create=create)
    assert version_of(url) == schema.VERSION + 1
    owner.execute("SET session_replication_role = replica")
    owner.execute("DELETE FROM aver.schema_version WHERE version > %s", (schema.VERSION,))


ADDED = "CREATE TABLE aver.labels (name text); ALTER TABLE aver.chains ADD COLUMN colour text;"


def next_version(monkeypatch: pytest.MonkeyPatch, *added: str) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, *added))
    monkeypatch.setattr(schema, "VERSION", len(schema.MIGRATIONS))


def test_an_older_ledger_is_brought_forward_and_loses_nothing(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_ledger(bare) as ledger:
        records = [ledger.append(CHAIN, Capsule(type="tool")) for _ in range(3)]
    next_version(monkeypatch, ADDED, "CREATE TABLE aver.more (x integer);")
    with open_ledger(bare, create=False) as older:
        assert list(older.read(CHAIN)) == records  # reading migrates nothing
    assert version_of(bare) == schema.VERSION - 2
    with open_ledger(bare) as newer:
        assert list(newer.read(CHAIN)) == records
        assert newer.append(CHAIN, Capsule(type="tool")).sequence == 3
    assert version_of(bare) == schema.VERSION


def test_a_migration_that_fails_changes_nothing(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_ledger(bare) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
    with monkeypatch.context() as patch:
        next_version(patch, ADDED + "CREATE TABLE aver.chains (x integer);")
        with pytest.raises(Unavailable):
            open_ledger(bare)
    assert version_of(bare) == schema.VERSION
    with open_ledger(bare) as same:
        assert same.store.schema_differences() == []
        assert same.verify().status == "verified"


@pytest.mark.parametrize("table", ["chains", "records", "blobs", "ledger"])
def test_a_view_in_the_place_of_a_table_is_not_opened(
    ledger: Ledger, url: str, owner: psycopg.Connection, table: str
) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    ledger.close()
    owner.execute(f"ALTER TABLE aver.{table} RENAME TO hidden")
    owner.execute(f"CREATE VIEW aver.{table} AS SELECT * FROM aver.hidden")
    with pytest.raises(IntegrityError, match=f"view {table}"):
        open_ledger(url)


def test_a_database_that_cannot_hold_every_text(postgres: Server) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(BadInput, match="LATIN1"):
            open_ledger(postgres.url("latin"))
    finally:
        postgres.drop("latin")


def test_a_database_or_server_that_is_not_there(postgres: Server) -> None:
    with pytest.raises(Unavailable, match="does not exist"):
        open_ledger(postgres.url("no_such_database"))
    for where in ("127.0.0.1:1", "no-such-host.invalid"):
        with pytest.raises(Unavailable, match=where.partition(":")[0]):
            open_ledger(f"postgresql://{where}/x")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://[/x",
        "postgresql://host:port/x",
        "postgresql://h/x?no_such_option=1",
        "postgresql://h/x?sslmode=maybe",
        "postgresql://h/%00",
        "postgresql://h/x\0",
        "postgresql://h/\ud800",
        "postgres://%zz",
    ],
    ids=ascii,
)
def test_a_url_that_cannot_be_understood(url: str) -> None:
    with pytest.raises(AverError):
        open_ledger(url)


def test_a_second_ledger_in_another_database(new_database: Callable[[], str]) -> None:
    with open_ledger(new_database()) as one, open_ledger(new_database()) as two:
        assert one.id != two.id
        one.append(CHAIN, Capsule(type="tool"), key="k")
        assert two.append(CHAIN, Capsule(type="tool"), key="k").sequence == 0
