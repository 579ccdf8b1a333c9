"""A workspace, a run, and tools that count their calls: the same for every library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import AgentRuntime, Ledger
from support.bare_machine import bare_machine
from support.workplace import Workplace

__all__ = ["bare_machine", "work"]


@pytest.fixture
def work(tmp_path: Path, ledger: Ledger) -> Iterator[Workplace]:
    place = tmp_path / "shop"
    place.mkdir()
    (place / "notes.txt").write_text("buy milk")
    run = AgentRuntime(tmp_path / "run", ledger=ledger, agent="tester", workspace=place)
    yield Workplace(place, run, ledger)
    run.close()
