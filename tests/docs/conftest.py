"""An environment for commands from the documentation: a home of its own, and nothing from outside."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_NOT_OURS = ("AVER_", "PYTEST_", "MAKE", "MFLAGS")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """This Python's `aver` first; a new `AVER_HOME`; no settings of the machine's user."""
    home = tmp_path / "user"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "AVER_HOME": str(tmp_path / "aver-home"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A directory for what the commands write."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory
