"""A workspace, a run, and tools that count their calls: the same for every library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `workplace`
sys.path.append(str(Path(__file__).parent.parent / "gate" / "approvals"))  # for `approving`

from workplace import Workplace

from aver import AgentRuntime, Ledger


@pytest.fixture
def work(tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.setattr("aver.gate.approvals.rules.SYSTEM_FILE", tmp_path / "nothing" / "approvals.toml")
    place = tmp_path / "shop"
    place.mkdir()
    (place / "notes.txt").write_text("buy milk")
    run = AgentRuntime(tmp_path / "run", ledger=ledger, agent="tester", workspace=place)
    yield Workplace(place, run, ledger)
    run.close()
