"""A PostgreSQL server that dies while the Explorer shows its ledger, and comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aver import Capsule
from aver.config import load_config
from aver.explorer import live
from aver.ledger.ledger import open_configured_ledger
from support.explorer_servers import API, serve
from support.postgres_servers import Server, started

pytestmark = pytest.mark.more


@pytest.fixture
def database() -> Iterator[Server]:
    own = started(fsync="off")
    yield own
    own.remove()


def test_server_outlives_its_store(database: Server, aver_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.1)
    config = replace(load_config(ledger=database.url(database.lend())), lock_timeout=1.0)
    with open_configured_ledger(config) as ledger:
        ledger.append("demo.first", Capsule(type="tool"))
        with serve(ledger) as served:
            with served.live() as next_event:
                last_id = next_event()[1]
                database.kill()
                with pytest.raises((EOFError, ValueError, OSError)):  # noqa: PT012 - there may be other events first
                    while True:
                        next_event()
            for path in ("chains", "chains/demo.first/records", "live", "approvals"):
                answer = served.ask(API + path)
                assert (answer.status, answer.document["code"]) == (503, "UNAVAILABLE"), path
                assert "password" not in answer.document["message"]
                assert answer.document["advice"]
            assert served.ask("/").status == 200
            assert served.get("about")["ledger"] == ledger.id
            database.start()
            while served.ask(f"{API}chains").status == 503:
                time.sleep(0.1)
            ledger.append("demo.first", Capsule(type="tool"))
            with served.live(last_id) as next_event:
                name, _, data = next_event()
            assert (name, [chain["count"] for chain in data["changed"]]) == ("heads", [2])
