"""What was held back: each deed once, whatever number of records tell of it; the index and the page count alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.clock import new_id
from aver.explorer.index import LedgerIndex
from aver.ledger.bundle import export_bundle
from support.bundles import draft
from support.page_verdicts import ask_library
from support.shop_ledger import MAIN, write_shop_ledger

NUMBERS = count()


def say(kind: str, status: str, deed: str = "", *, mode: str = "enforce", session: str = "s1") -> tuple[str, Capsule]:
    """The chain and the capsule of a record about a deed. Each has a later time than the one before."""
    content = draft(f"{kind} {deed}").to_dict()
    content |= {"id": new_id(), "type": "tool" if kind == "call" else "system"}
    moment = datetime(2026, 5, 31, 9, tzinfo=UTC) + timedelta(seconds=next(NUMBERS))
    content["trigger"] |= {"correlation_id": deed or None, "timestamp": moment.isoformat()}
    refs = {"refs": {"decision": new_id()}} if kind == "call" and deed else {}
    content["context"] |= {"session_id": session, "environment": {"aver": {"kind": kind, **refs}}}
    content["outcome"] |= {"status": status, "result": {"mode": mode}}
    return f"{kind.partition('.')[0]}.one", Capsule.from_dict(content)


SKIPPED = ("gate.decision", "blocked")
ASKED = ("gate.decision", "pending")
REQUEST = ("approval.request", "pending")
DENIED = ("approval.decision", "blocked")
APPROVED = ("approval.decision", "success")
USED = ("approval.use", "success")
PASSED = ("gate.decision", "success")
REFUSED_CALL = ("call", "blocked")
CALL = ("call", "success")
FAILED_CALL = ("call", "failure")
PREVIEW = ("act.preview", "pending")
REFUSED_PREVIEW = ("act.preview", "blocked")
REFUSED_COMMIT = ("act.outcome", "blocked")
DONE = ("act.outcome", "success")

CASES: dict[str, tuple[tuple[tuple[str, str], ...], int]] = {
    "a rule refused it, and its call tells so, too": ((SKIPPED, REFUSED_CALL), 1),
    "a rule refused an act": ((SKIPPED, REFUSED_PREVIEW), 1),
    "a person refused the call in the client": ((REFUSED_CALL,), 1),
    "a person refused the request": ((ASKED, REQUEST, DENIED), 1),
    "an approval never came": ((ASKED, REQUEST), 1),
    "an approval came, and the call took place": ((ASKED, REQUEST, APPROVED, USED, PASSED, CALL), 0),
    "the client asked, and the call ran": ((ASKED, CALL), 0),
    "the client asked, and the call failed": ((ASKED, FAILED_CALL), 0),
    "a preview that nobody confirmed": ((ASKED, PREVIEW), 1),
    "an act that was done": ((PASSED, DONE), 0),
    "a second commit was refused": ((PASSED, DONE, REFUSED_COMMIT), 1),
    "a call that took place": ((PASSED, CALL), 0),
}


def held_by_index(ledger: Ledger, place: Path) -> tuple[dict[str, int], list[tuple[str, int]]]:
    with LedgerIndex(place) as index:
        index.catch_up(ledger)
        page = index.counts(ledger, limit=500)
    days = {entry["start"]: entry["held"] for entry in page.counts if entry["held"]}
    return days, [(each["chain"], each["sequence"]) for each in page.held]


def held_by_page(ledger: Ledger, place: Path) -> tuple[dict[str, int], list[tuple[str, int]]]:
    export_bundle(ledger, place)
    [answer] = ask_library(place, [{"type": "activity"}])
    days = {day["day"]: day["blocked"] for day in answer["days"] if day["blocked"]}
    return days, [(each["chain"], int(each["row"]["sequence"])) for each in answer["denials"]]


@pytest.mark.parametrize(("records", "held"), CASES.values(), ids=CASES.keys())
def test_each_deed_counts_once_in_any_order_of_its_records(
    ledger: Ledger, tmp_path: Path, records: tuple[tuple[str, str], ...], held: int
) -> None:
    orders = list(permutations(records))[:6]
    for number, order in enumerate(orders):
        for kind, status in order:
            chain, capsule = say(kind, status, f"deed{number}")
            ledger.append(chain, capsule)
    days, places = held_by_index(ledger, tmp_path / "index.db")
    assert days == ({"2026-05-31": held * len(orders)} if held else {})
    assert len(places) == min(held * len(orders), 8)


def test_records_that_share_no_id_count_apart(ledger: Ledger, tmp_path: Path) -> None:
    plain = [say(*REFUSED_CALL), say(*REFUSED_CALL), say(*SKIPPED), say(*SKIPPED), say("audit.outcome", "blocked", "d")]
    # An event about the whole trace has the trace's id. The end of a trace and an observed decision hold nothing back.
    plain += [say("protocol.proposal_reviewed", "blocked", "t", session="t") for _ in range(2)]
    plain += [say("protocol.session_aborted", "blocked", "t", session="t"), say(*SKIPPED, "o", mode="observe")]
    for chain, capsule in plain:
        ledger.append(chain, capsule)
    assert held_by_index(ledger, tmp_path / "index.db")[0] == {"2026-05-31": 7}


@pytest.mark.more
def test_the_page_counts_as_the_index_does(ledger: Ledger, tmp_path: Path) -> None:
    for number, (records, _) in enumerate(CASES.values()):
        for kind, status in records:
            chain, capsule = say(kind, status, f"deed{number}")
            ledger.append(chain, capsule)
    for chain, capsule in (say(*REFUSED_CALL), say(*SKIPPED, "o", mode="observe"), say(*SKIPPED)):
        ledger.append(chain, capsule)
    found = held_by_index(ledger, tmp_path / "index.db")
    assert found == held_by_page(ledger, tmp_path / "bundle")
    assert sum(found[0].values()) == sum(held for _, held in CASES.values()) + 2


@pytest.mark.more
def test_a_rich_ledger_is_counted_alike(tmp_path: Path) -> None:
    with write_shop_ledger(tmp_path / "shop") as shop:

        def deed_at(chain: str, sequence: int) -> str:
            [record] = shop.read(chain, sequence, sequence + 1)
            shared = record.to_dict()["trigger"]["correlation_id"]
            return str(shared) if shared and chain != f"claude-code.{MAIN}" else f"{chain}/{sequence}"

        (days, places), (page_days, page_places) = (
            held_by_index(shop, tmp_path / "index.db"),
            held_by_page(shop, tmp_path / "bundle"),
        )
        assert days == page_days
        # Of the records of one second, either may stand for the deed.
        assert {deed_at(*place) for place in places} == {deed_at(*place) for place in page_places}
    # Four refusals, and three deeds for which an approval never came.
    assert (sum(days.values()), len(places)) == (7, 7)


@pytest.mark.more
def test_the_last_deed_is_the_newest_of_any_chain(ledger: Ledger, tmp_path: Path) -> None:
    def last(name: str) -> Any:
        export_bundle(ledger, tmp_path / name)
        return ask_library(tmp_path / name, [{"type": "activity"}])[0]["last"]

    for number, (kind, status) in enumerate((CALL, PASSED, DONE, APPROVED, ("turn", "success"))):
        chain, capsule = say(kind, status, f"deed{number}")
        ledger.append(chain, capsule)
        ledger.append("gate.settings", say("gate.change", "success")[1])  # The ledger's own records are no deeds.
        newest = last(str(number))
        assert (newest["chain"], newest["row"]["kind"]) == (chain, kind)
