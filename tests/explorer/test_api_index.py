"""The routes that the index answers: sessions, search and counts; and the server with an index that fails."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from aver import Capsule, Ledger
from aver.explorer import index_keeper, live
from aver.explorer.index import LedgerIndex
from support.agents import sample_session as sample
from support.explorer_servers import API, ServedExplorer, serve

PHRASE = '"brown fox"'


def draft(text: str) -> Capsule:
    return Capsule(type="tool", outcome={"status": "success", "summary": text})


def wait_for_index(served: ServedExplorer) -> dict[str, Any]:
    while not (state := served.get("about")["index"])["complete"] or state["state"] != "ready":
        time.sleep(0.05)
    return dict(state)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_keeper, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)


def test_index_catches_up_and_answers(filled: Ledger, tmp_path: Path) -> None:
    sample.rich(filled, tmp_path)
    filled.append("claude-code.words", draft("the quick brown fox"))
    with serve(filled) as served:
        state = wait_for_index(served)
        assert state["records"] == state["of_records"] == served.get("chains")["records"]
        found = served.get(f"search?query={quote(PHRASE)}")
        assert [(hit["chain"], hit["sequence"]) for hit in found["hits"]] == [("claude-code.words", 0)]
        assert found["indexed"]["complete"] is True
        listed = served.get("sessions")
        assert [(row["title"], row["actions"]) for row in listed["sessions"]] == [("Round half up", 6)]
        assert listed["indexed"]["complete"] is True
        counts = served.get("counts?by=month")
        assert sum(bucket["records"] for bucket in counts["counts"]) > 0


def test_new_records_are_found_without_a_restart(filled: Ledger) -> None:
    with serve(filled) as served, served.live() as next_event:
        next_event()
        filled.append("claude-code.words", draft("a platypus"))
        while not served.get("search?query=platypus")["hits"]:
            time.sleep(0.05)
        while True:
            name, _, data = next_event()
            if name == "index" and data["records"] == data["of_records"] > 0:
                break


def test_lists_go_on_after_a_cursor(filled: Ledger) -> None:
    filled.append_many("demo.words", [draft(f"okapi {number}") for number in range(5)])
    with serve(filled) as served:
        wait_for_index(served)
        page = served.get("search?query=okapi&limit=2")
        found = [hit["sequence"] for hit in page["hits"]]
        while page["next"] is not None:
            page = served.get(f"search?query=okapi&limit=2&after={page['next']}")
            found += [hit["sequence"] for hit in page["hits"]]
        assert found == [4, 3, 2, 1, 0]
        assert served.get("sessions?sort=actions&order=ascending")["sessions"] == []


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "query",
    [
        *("search", "search?query=", "search?query=%00", "search?query=since:never", "search?query=x&after=x"),
        *("sessions?sort=hash", "sessions?order=up", "sessions?since=never", "sessions?limit=0", "sessions?after=AAAA"),
        *("counts?by=week", "counts?until=never", "counts?after=e30", "counts?x=1", f"search?query={'x' * 1001}"),
    ],
)
def test_wrong_questions_are_refused(filled: Ledger, query: str) -> None:
    with serve(filled) as served:
        wait_for_index(served)
        assert served.ask(API + query).status == 400


def test_index_that_fails_leaves_the_rest_alone(filled: Ledger, aver_home: Path) -> None:
    (aver_home / "index.db").mkdir()
    with serve(filled) as served:
        for path in ("sessions", "search?query=x", "counts"):
            answer = served.ask(API + path)
            assert (answer.status, answer.document["code"]) == (503, "INDEX_UNAVAILABLE")
            assert answer.document["advice"]
        while (state := served.get("about")["index"])["state"] != "failed":
            time.sleep(0.05)
        assert "index.db" in state["problem"]
        assert served.get("chains")["total"]
        assert served.ask(f"{API}chains/codex.two/records").status == 200


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chains_1 SET count = 'x'",
        "UPDATE chains_1 SET cut = 9223372036854775807",
        "UPDATE records_1 SET sequence = x'ff00'",
        "UPDATE sessions_1 SET chains = 'x'",
        "UPDATE sessions_1 SET figures = '[1'",
        "DROP TABLE records_1",
    ],
)
def test_index_with_values_of_other_types_is_reported(
    filled: Ledger, aver_home: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.rich(filled, tmp_path)
    LedgerIndex.in_home(aver_home).catch_up(filled)
    with closing(sqlite3.connect(aver_home / "index.db")) as database, database:
        database.execute(damage)
    monkeypatch.setattr(index_keeper.IndexKeeper, "_catch_up", lambda keeper: True)  # It would mend some of them.
    with serve(filled) as served:
        answers = [served.ask(API + path) for path in ("sessions", "search?query=round", "counts")]
    assert {answer.status for answer in answers} <= {200, 503}
    failed = [answer.document["code"] for answer in answers if answer.status == 503]
    assert failed
    assert set(failed) == {"INDEX_UNAVAILABLE"}
