"""`aver mcp` before it serves: what it needs, and what it refuses. How it serves is in `tests/mcp`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.aver_command import Aver


def test_without_its_packages_it_says_what_to_install(aver: Aver) -> None:
    program = "import sys; sys.modules['mcp_types'] = None; from aver.cli.main import main; sys.exit(main(['mcp']))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=aver.directory, env=aver.environment
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "pip install 'aver-ledger[mcp]'" in ran.stderr


def test_what_cannot_be_served_is_told(aver: Aver) -> None:
    assert aver("mcp", "--workspace", aver.directory / "nowhere").code == 2
    assert aver("mcp", "--port", "80").code == 2
    assert aver("mcp", "--http", "--port", "70000").code == 2
    assert aver("mcp", "--wait", "soon").code == 2


@pytest.mark.more
def test_it_serves_nobody_and_leaves_nothing(aver: Aver) -> None:
    ran = aver("mcp")
    assert (ran.code, ran.out) == (0, "")
    assert aver.listing() == []
