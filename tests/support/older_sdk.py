"""SDK 1.x of MCP, in an environment of its own: ours has SDK 2.x."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.real_home import real_environment


def install_older_sdk(place: Path) -> Path:
    """Make an environment with SDK 1.x, and return its Python. Skips the test where it cannot be installed."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = place / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "mcp>=1.26,<2"]
    got = subprocess.run(install, capture_output=True, text=True, env=real_environment())
    if got.returncode:
        pytest.skip(f"SDK 1.x cannot be installed here: {got.stderr[-200:]}")
    return python
