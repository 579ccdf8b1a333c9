"""The page judges a live ledger as Aver does: the same status, and the same codes at the same places."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.capsule.sealed import Sealed
from aver.verdict import Verdict
from support.browser_pages import key_of
from support.explorer_servers import ServedExplorer, serve
from support.page_verdicts import PYTHON_ALONE, ROOT, find_node
from support.tamper import Attacker, unguarded

SCRIPT = ROOT / "web" / "tests" / "judge_ledger.mjs"


def judge_live(served: ServedExplorer, *chains: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """The page's verdict on a served ledger, from Node."""
    command = [find_node(), "--no-warnings", str(SCRIPT), f"http://localhost:{served.port}", served.server.token]
    done = subprocess.run([*command, *chains, "--", *keys], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


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
