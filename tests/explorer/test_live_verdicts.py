"""The page judges a live ledger as Aver does: the same status, and the same codes at the same places."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Capsule, Ledger
from aver.capsule.sealed import Sealed
from aver.ledger.bundle import export_bundle
from aver.verdict import Verdict
from support.browser_pages import key_of
from support.explorer_servers import ServedExplorer, serve
from support.node import run_page_sources
from support.page_verdicts import PYTHON_ALONE
from support.tamper import Attacker, unguarded

pytestmark = pytest.mark.more  # They run the sources of the page.

SCRIPT = "tests/judge_ledger.mjs"


def judge_live(served: ServedExplorer, *chains: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The page's verdict on a served ledger, from Node."""
    told = run_page_sources(SCRIPT, f"http://localhost:{served.port}", served.server.token, *chains, "--", *keys)
    verdict: dict[str, Any] = json.loads(told)
    return verdict


def list_live(served: ServedExplorer, chain: str, start: int, stop: int) -> dict[str, Any]:
    """The rows of a chain of a served ledger, from Node."""
    wanted = ["--rows", chain, str(start), str(stop)]
    told = run_page_sources(SCRIPT, f"http://localhost:{served.port}", served.server.token, *wanted)
    rows: dict[str, Any] = json.loads(told)
    return rows


def places_of(verdict: dict[str, Any]) -> set[tuple[str, str | None, int | None]]:
    """Each failure: its code and place. Claims of an index are left out: a ledger in Python has none."""
    return {
        (one["code"], one["place"]["chain"], one["place"]["sequence"])
        for one in verdict["findings"]
        if one["status"] == "failed" and one["check"] not in PYTHON_ALONE | {"index"}
    }


def draft(number: int) -> Capsule:
    return Capsule(type="tool", trigger={"source": "test", "request": f"step {number}"})


def flip(attacker: Attacker, records: list[Sealed]) -> None:
    changed = records[3].canonical.replace(b"step 3", b"step X")
    attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (changed, records[3].hash))


def unsign(attacker: Attacker, records: list[Sealed]) -> None:
    attacker.execute("UPDATE records SET signature = ? WHERE hash = ?", (records[4].signature, records[2].hash))


def exchange_texts(attacker: Attacker, records: list[Sealed]) -> None:
    """Two records have each other's text, and keep their own seals."""
    for one, other in ((records[4], records[5]), (records[5], records[4])):
        attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (other.canonical, one.hash))


def damage_last(attacker: Attacker, records: list[Sealed]) -> None:
    attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (b"{", records[-1].hash))


TAMPERINGS: dict[str, Callable[[Attacker, list[Sealed]], None]] = {
    "untouched": lambda attacker, records: None,
    "flip": flip,
    "unsign": unsign,
    "exchange": exchange_texts,
    "damage": damage_last,
}


@pytest.fixture
def ledger_of_two(ledger: Ledger) -> Ledger:
    ledger.append_many("ci.a", [draft(number) for number in range(8)])
    ledger.append_many("ci.b", [draft(number) for number in range(3)])
    ledger.close_chain("ci.b")
    return ledger


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", TAMPERINGS)
def test_live_verdict_is_that_of_aver(ledger_of_two: Ledger, name: str) -> None:
    attacker = unguarded(ledger_of_two)
    TAMPERINGS[name](attacker, list(ledger_of_two.read("ci.a")))
    attacker.close()
    ours: Verdict = ledger_of_two.verify()
    with serve(ledger_of_two) as served:
        theirs = judge_live(served, keys=(key_of(ledger_of_two),))
        one_chain = judge_live(served, "ci.a", keys=(key_of(ledger_of_two),))
    assert places_of(theirs) == places_of(ours.to_dict())
    assert theirs["status"] == ("verified" if name == "untouched" else "failed")
    assert (ours.status == "failed") == (theirs["status"] == "failed")
    assert theirs["records"] == ours.records
    # A chain by itself has the same findings as in the whole.
    assert places_of(one_chain) == {place for place in places_of(theirs) if place[1] == "ci.a"}


@pytest.mark.parametrize("lost", [(3, 4), (0,), (6, 7), (2, 5)], ids=str)
def test_lost_records_are_judged_as_in_a_bundle(ledger_of_two: Ledger, tmp_path: Path, lost: tuple[int, ...]) -> None:
    """Each record that is there is read once, and none is invented."""
    records = list(ledger_of_two.read("ci.a"))
    attacker = unguarded(ledger_of_two)
    for number in lost:
        attacker.execute("DELETE FROM records WHERE hash = ?", (records[number].hash,))
    attacker.close()
    export_bundle(ledger_of_two, tmp_path / "bundle")
    ours = aver.verify(tmp_path / "bundle", keys=[key_of(ledger_of_two)]).to_dict()
    with serve(ledger_of_two) as served:
        theirs = judge_live(served, keys=(key_of(ledger_of_two),))
    assert theirs["status"] == ours["status"] == "failed"
    assert theirs["records"] == ours["records"]
    of_head = {place for place in places_of(ours) if place[0] == "TRUNCATED"}  # A live ledger has no signed head.
    assert places_of(theirs) | of_head == places_of(ours)


def test_lost_records_are_rows_of_the_list(ledger_of_two: Ledger) -> None:
    records = list(ledger_of_two.read("ci.a"))
    attacker = unguarded(ledger_of_two)
    for number in (3, 4, 7):
        attacker.execute("DELETE FROM records WHERE hash = ?", (records[number].hash,))
    attacker.close()
    with serve(ledger_of_two) as served:
        listed = list_live(served, "ci.a", 2, 8)
    missing = "this record is missing"
    found = [(row["place"], row["sequence"], row["problem"]) for row in listed["rows"]]
    assert found == [(2, "2", ""), (3, "", missing), (4, "", missing), (5, "5", ""), (6, "6", ""), (7, "", missing)]


def test_unknown_keys_qualify(ledger_of_two: Ledger) -> None:
    with serve(ledger_of_two) as served:
        verdict = judge_live(served, keys=())
    assert verdict["status"] == "qualified"
    head = next(check for check in verdict["checks"] if check["name"] == "head")
    assert head["status"] == "not_checked"
    assert "hold back the newest records" in head["reason"]


def test_server_that_claims_more_than_it_gives_is_found(ledger_of_two: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    from aver.explorer import api

    read = api.read_records
    monkeypatch.setattr(api, "read_records", lambda ledger, name, start, stop: read(ledger, name, start, min(stop, 5)))
    with serve(ledger_of_two) as served:
        verdict = judge_live(served, keys=(key_of(ledger_of_two),))
    assert verdict["status"] == "failed"
    assert ("TRUNCATED", "ci.a", 5) in {
        (one["code"], one["place"]["chain"], one["place"]["sequence"]) for one in verdict["findings"]
    }


def test_records_that_came_later_are_not_judged(ledger_of_two: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of chains fixes the bound. A ledger that grows meanwhile is no alarm."""
    from aver.explorer import api

    read = api.read_records

    def read_and_grow(ledger: Ledger, name: str, start: int, stop: int | None) -> Any:
        ledger_of_two.append("ci.a", draft(99))
        return read(ledger, name, start, stop)

    monkeypatch.setattr(api, "read_records", read_and_grow)
    with serve(ledger_of_two) as served:
        verdict = judge_live(served, keys=(key_of(ledger_of_two),))
    assert verdict["status"] == "verified"
