"""`aver copy`: to a server and back, verified at the target, and what it says when it may not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from sqlite3 import connect

import pytest

from support.aver_command import Aver


@pytest.mark.more
def test_to_a_server_and_back(sealed: Aver, new_database: Callable[[], str]) -> None:
    sealed.seal(chain="notes.more")
    sealed("checkpoint", "--sweep")
    url = new_database()
    ran = sealed("copy", "--to", url)
    assert ran.code == 0, ran.err
    assert "copied 6 records in 4 chains" in ran.out
    assert "verified: ledger" in ran.out
    before = sealed("log", "--json", "-n", "99").json["records"]
    assert sealed("log", "--json", "-n", "99", "--ledger", url).json["records"] == before
    back = sealed("copy", "--ledger", url, "--to", "back.db", "--json")
    assert back.code == 0
    assert (back.json["records"], back.json["copied"]) == (6, 6)
    assert [verdict["status"] for verdict in back.json["tenants"]] == ["verified"]
    assert sealed("log", "--json", "-n", "99", "--ledger", "back.db").json["records"] == before


@pytest.mark.more
def test_again_it_goes_on(sealed: Aver, new_database: Callable[[], str]) -> None:
    url = new_database()
    sealed("copy", "--to", url)
    assert "copied 0 records in 2 chains, 4 were already there" in sealed("copy", "--to", url).out
    sealed.seal(chain="notes.more")
    assert sealed("copy", "--to", url, "--json").json["copied"] == 1


@pytest.mark.more
def test_each_tenant_has_its_verdict(sealed: Aver, new_database: Callable[[], str]) -> None:
    sealed("seal", "-", "--chain", "notes.x", "--tenant", "red", stdin='{"type": "tool"}')
    url = new_database()
    ran = sealed("copy", "--to", url, "--tenant", "red", "--json")
    assert [verdict["tenant"] for verdict in ran.json["tenants"]] == ["red"]
    ran = sealed("copy", "--to", url)
    assert ", tenant default, 4 records" in ran.out
    assert ", tenant red, 2 records" in ran.out


def test_another_ledger_is_left_alone(sealed: Aver, new_database: Callable[[], str]) -> None:
    url = new_database()
    other = {"AVER_HOME": str(sealed.directory / "other")}
    assert sealed("seal", "-", "--chain", "notes.x", "--ledger", url, stdin='{"type": "tool"}', **other).code == 0
    ran = sealed("copy", "--to", url, "--json")
    assert ran.code == 5
    assert ran.json["error"]["code"] == "OTHER_LEDGER"
    assert sealed("verify", "--ledger", url, **other).code == 0


def test_a_copy_that_was_written_to_is_refused(sealed: Aver, new_database: Callable[[], str]) -> None:
    url = new_database()
    sealed("copy", "--to", url)
    sealed("seal", "-", "--chain", "notes.today", "--ledger", url, stdin='{"type": "tool"}')
    ran = sealed("copy", "--to", url)
    assert ran.code == 5
    assert "not a beginning" in ran.err


def test_a_damaged_ledger_is_copied_and_its_verdict_is_failed(sealed: Aver) -> None:
    with closing(connect(sealed.home / "ledger.db")) as file, file:
        file.execute("DROP TRIGGER records_stay_as_they_are")
        file.execute("UPDATE records SET signature = '' WHERE sequence = 1")
    ran = sealed("copy", "--to", "copy.db")
    assert ran.code == 1
    assert "SIG_MISSING" in ran.out


def test_nowhere_to_copy_from_or_to(sealed: Aver) -> None:
    assert sealed("copy").code == 2
    assert sealed("copy", "--to", "copy.db", "--ledger", "nowhere.db").code == 2
    assert sealed("copy", "--to", "no/such/directory/copy.db").code == 2
    assert sealed("copy", "--to", "postgresql://127.0.0.1:1/x").code == 3
    assert sealed("copy", "--to", "copy.db", "--tenant", "nobody").code == 2
    assert sealed.listing().count("copy.db") <= 1
