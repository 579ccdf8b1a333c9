"""A machine whose people have set nothing up: no approvers of their own, no desktop, no project of Claude Code.

A `conftest.py` that imports the fixture applies it to every test below its folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the machine's own settings and list of approvers in /etc, and the variables of its desktop."""
    monkeypatch.setattr("aver.config.SYSTEM_CONFIG", tmp_path / "nothing" / "config.toml")
    monkeypatch.setattr("aver.gate.approvals.rules.SYSTEM_FILE", tmp_path / "nothing" / "approvals.toml")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
