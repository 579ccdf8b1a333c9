"""`aver checkpoint`: the statement, closing chains, sweeping."""

from __future__ import annotations

import json

from running_aver import Aver

from aver import KeyStore
from aver.keys import Statement, check_statement


def test_a_statement_of_all_heads_signed_by_us(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--out", "heads.json")
    assert ran.code == 0
    assert "wrote heads.json: the heads of 2 chains" in ran.out
    statement = Statement.from_dict(json.loads((sealed.directory / "heads.json").read_text()))
    assert [result.outcome for result in check_statement(statement, KeyStore(sealed.home).ring())] == ["valid"]
    listed = sealed("log", "--json").json["chains"]
    assert statement.content["heads"] == {
        chain["chain"]: {"count": chain["records"], "hash": chain["head"]} for chain in listed
    }


def test_on_stdout(sealed: Aver) -> None:
    for arguments in ([], ["--out", "-"], ["--json"], ["--out", "-", "--json"]):
        assert sealed("checkpoint", *arguments).json["purpose"] == "checkpoint"


def test_closing_and_sweeping(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--close", "notes.today", "--sweep", "--out", "heads.json")
    assert "closed notes.today: recorded in meta, sequence 0" in ran.out
    assert "swept: 1 new record in meta" in ran.out
    kinds = [record["kind"] for record in sealed("log", "meta", "--json").json["records"]]
    assert kinds == ["chain.close", "checkpoint"]
    assert "2 chains held to it" in sealed("verify").out


def test_a_file_that_is_there_stays_and_nothing_is_recorded(sealed: Aver) -> None:
    (sealed.directory / "heads.json").write_text("last week's")
    ran = sealed("checkpoint", "--close", "notes.today", "--out", "heads.json")
    assert ran.code == 2
    assert (sealed.directory / "heads.json").read_text() == "last week's"
    assert [chain["chain"] for chain in sealed("log", "--json").json["chains"]] == ["keys", "notes.today"]


def test_a_chain_that_is_not_there(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--close", "notes.tomorrow", "--out", "heads.json")
    assert ran.code == 2
    assert not (sealed.directory / "heads.json").exists()


def test_a_tenant_without_chains(sealed: Aver) -> None:
    ran = sealed("checkpoint", "--tenant", "nobody")
    assert ran.code == 2
    assert "has no chains yet" in ran.err
