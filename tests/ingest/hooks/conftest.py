"""Modules that these tests share, and a machine whose people have set up nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for `hooked`
sys.path.insert(0, str(HERE.parents[1] / "gate" / "approvals"))  # for `approving`


@pytest.fixture(autouse=True)
def nobody_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aver.gate.approvals.rules.SYSTEM_FILE", tmp_path / "nothing" / "approvals.toml")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
