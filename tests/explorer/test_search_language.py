"""One language of searches for `aver search` and for the page: both must keep to `search_queries.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from aver.clock import now
from aver.errors import BadInput
from aver.explorer.index import LedgerIndex
from aver.explorer.index.query import parse_query
from aver.ledger import Ledger, open_ledger
from aver.ledger.bundle import export_bundle
from support.agents import sample_session as sample
from support.node import run_page_sources
from support.page_verdicts import ask_library

TABLE = json.loads((Path(__file__).parent / "search_queries.json").read_text())
MAIN = f"claude-code.{sample.SESSION}"
LISTS = ("words", "path", "tool", "kind", "outcome", "ignored")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, Path]]:
    """A ledger with the records of the table and a session, and its home."""
    folder = tmp_path_factory.mktemp("searched")
    with open_ledger(folder / "ledger.db", home=folder / "home") as ledger:
        sample.rich(ledger, folder)
        for chain, drafts in TABLE["records"].items():
            ledger.append_many(chain, drafts)
        yield ledger, folder


@pytest.mark.parametrize("case", TABLE["understood"], ids=lambda case: case["query"])
def test_query_is_understood(case: dict[str, Any]) -> None:
    found = parse_query(case["query"]).to_dict()
    since = found.pop("since")
    assert found == {name: case.get(name, []) for name in LISTS}
    if "ago" in case:
        elapsed = datetime.fromisoformat(now()) - datetime.fromisoformat(since)
        assert elapsed.total_seconds() == pytest.approx(case["ago"], abs=60)
    else:
        assert since == case.get("since")


@pytest.mark.parametrize("case", TABLE["refused"], ids=lambda case: case["query"])
def test_query_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        parse_query(case["query"] * case.get("times", 1))
    assert str(refused.value) == case["words"]


def _hits(case: dict[str, Any]) -> list[str]:
    return [hit.replace("MAIN", MAIN) for hit in case["hits"]]


def test_index_finds_the_records(recorded: tuple[Ledger, Path]) -> None:
    ledger, folder = recorded
    index = LedgerIndex.in_home(folder / "home")
    assert index.catch_up(ledger).is_complete
    for case in TABLE["found"]:
        hits = index.search(ledger, case["query"], limit=500).hits
        found = [f"{hit.chain}/{hit.sequence}" for hit in hits if _is_listed(hit.chain)]
        assert sorted(found) == sorted(_hits(case)), case["query"]


@pytest.mark.more
def test_page_without_an_index_finds_the_records(recorded: tuple[Ledger, Path]) -> None:
    ledger, folder = recorded
    export_bundle(ledger, folder / "bundle")
    asked = [case["query"] for case in TABLE["found"]]
    answers = ask_library(folder / "bundle", [{"type": "search", "words": query} for query in asked])
    for case, answer in zip(TABLE["found"], answers, strict=True):
        found = [f"{hit['chain']}/{hit['row']['sequence']}" for hit in answer["hits"] if _is_listed(hit["chain"])]
        assert sorted(found) == sorted(_hits(case)), case["query"]
        assert not answer["isCut"]


def _is_listed(chain: str) -> bool:
    return chain == MAIN or chain in TABLE["records"]


@pytest.mark.more
def test_page_finds_what_the_index_finds_in_every_chain(recorded: tuple[Ledger, Path]) -> None:
    """All words of the records, and the conditions, in all chains: those of keys, blobs and subagents, too."""
    ledger, folder = recorded
    export_bundle(ledger, folder / "whole")
    index = LedgerIndex.in_home(folder / "home")
    assert index.catch_up(ledger).is_complete
    words = ["key", "the", "a*", "sum*", "total", "return", "1 2", "kind:key", "kind:call", "tool:task", "outcome:ok"]
    answers = ask_library(folder / "whole", [{"type": "search", "words": query} for query in words])
    for query, answer in zip(words, answers, strict=True):
        ours = {(hit.chain, str(hit.sequence)) for hit in index.search(ledger, query, limit=500).hits}
        assert {(hit["chain"], hit["row"]["sequence"]) for hit in answer["hits"]} == ours, query


@pytest.mark.more
def test_page_understands_and_refuses_the_same() -> None:
    run_page_sources("--test", "tests/query.test.mjs")
