"""A stored trace and its workspace, for every test of verdicts on traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver import Ledger
from support.stored_traces import StoredTrace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tests.txt").write_text("x")
    return tmp_path / "work"


@pytest.fixture
def trace(ledger: Ledger, workspace: Path) -> StoredTrace:
    return StoredTrace(ledger, workspace)
