"""`aver doctor` about a ledger on a PostgreSQL server, and the SQL it prints for its owner."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from support.aver_command import Aver
from support.postgres_servers import Server, program


@pytest.fixture
def bare(postgres: Server) -> Iterator[str]:
    database = postgres.database()
    yield database
    postgres.drop(database)


@pytest.mark.more
def test_from_nothing_to_a_ledger_in_good_health(aver: Aver, postgres: Server, bare: str) -> None:
    """The guide's way: the owner runs what is printed, and a member of the writers does the rest."""
    if postgres.data is None:
        pytest.skip("on a server that is not ours, roles may not be ours to make")
    owner = postgres.url(bare)
    before = aver("doctor", "--ledger", owner)
    assert before.code == 0
    assert "aver doctor --setup-sql" in before.out
    setup = aver("doctor", "--setup-sql").out
    command = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", owner]
    subprocess.run(command, input=setup.encode(), check=True, capture_output=True)
    with psycopg.connect(owner, autocommit=True) as connection:
        fsync = connection.execute("SHOW fsync").fetchone()
        connection.execute("CREATE ROLE carl LOGIN IN ROLE aver_writer")
        try:
            url = postgres.url(bare, user="carl")
            aver.environment["AVER_LEDGER"] = url
            aver.seal()
            ran = aver("doctor", "--json")
            problems = [report["words"] for report in ran.json["reports"] if report["status"] == "problem"]
            assert all("fsync" in words for words in problems)
            assert bool(problems) == (fsync == ("off",))
            assert ran.code == int(bool(problems))
            words = [report["words"] for report in ran.json["reports"]]
            assert "carl may add records, and cannot change them" in words
            assert "tables, indexes and guards are as Aver makes them" in words
            assert "tenant default: 2 records in 2 chains" in words
            again = aver("doctor", "--roles-sql").out
            subprocess.run(command, input=again.encode(), check=True, capture_output=True)
        finally:
            connection.execute("DROP OWNED BY carl; DROP ROLE carl")


def test_a_superuser_and_missing_guards_are_problems(sealed: Aver, postgres: Server, bare: str) -> None:
    url = postgres.url(bare)
    assert sealed("copy", "--to", url).code == 0
    postgres.execute("DROP TRIGGER records_stay ON aver.records", bare)
    ran = sealed("doctor", "--ledger", url)
    assert ran.code == 1
    assert "superuser" in ran.out
    assert "the guard records_stay is missing" in ran.out


def test_a_server_that_is_not_there(aver: Aver) -> None:
    ran = aver("doctor", "--ledger", "postgresql://127.0.0.1:1/x", "--json")
    assert ran.code == 1
    assert [report["subject"] for report in ran.json["reports"] if report["status"] == "problem"] == ["ledger"]


def test_the_sql_as_json_and_only_one_of_the_two(aver: Aver) -> None:
    assert aver("doctor", "--roles-sql", "--json").json["sql"] == aver("doctor", "--roles-sql").out
    assert aver("doctor", "--roles-sql", "--setup-sql").code == 2
