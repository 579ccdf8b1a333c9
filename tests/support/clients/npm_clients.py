"""The clients themselves, from npm, kept between runs.

They are put below `AVER_CLIENTS_CACHE`, or else below the user's directory for caches, each version in a directory of
its own that appears only when it is whole. Versions are pinned: a test that fails does so because of us.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.real_home import real_environment, real_home

__all__ = ["CLAUDE_CODE", "CLINE", "CODEX", "CODEX_WITHOUT_HOOKS", "installed"]

CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.325"
CLINE = "cline@3.0.65"
CODEX = "@openai/codex@0.166.0"
CODEX_WITHOUT_HOOKS = "@openai/codex@0.123.0"
"""The last before hooks: it tells `notify` that a turn has ended."""

INSTALL_SECONDS = 900
"""How long npm may take for some hundred megabytes, before something is wrong."""

POSTINSTALL = "install.cjs"
"""Claude Code's own script that puts its program in place. npm is told to run none: some versions refuse to."""

_NO_REGISTRY = frozenset(
    {
        *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH"),
        *("ERR_SOCKET_TIMEOUT", "ENOTCACHED", "E401", "E403", "E502", "E503", "E504"),
    }
)
"""What npm says where there is no registry, or none that would serve us."""


def installed(package: str) -> Path:
    """The directory with the commands of a package. Skips the test where npm or the registry is missing."""
    place = _cache() / re.sub(r"[^a-z0-9.]+", "-", package).strip("-")
    with _held(place.with_name(f"{place.name}.lock")):
        if not place.is_dir():
            _install(package, place)
    return place / "node_modules" / ".bin"


def _cache() -> Path:
    if given := os.environ.get("AVER_CLIENTS_CACHE"):
        found = Path(given)
    else:
        found = Path(real_environment().get("XDG_CACHE_HOME") or real_home() / ".cache") / "aver-clients"
    found.mkdir(parents=True, exist_ok=True)
    return found


def _install(package: str, place: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip(f"{package} comes from npm, and there is no npm here")
    new = Path(tempfile.mkdtemp(dir=place.parent, prefix=".new-"))
    try:
        words = ["install", "--prefix", str(new), "--no-audit", "--no-fund", "--ignore-scripts", package]
        done = _run(npm, *words)
        if done.returncode:
            code = re.search(r"npm err(?:or|!) code (\S+)", done.stderr, re.IGNORECASE)
            if code is not None and code[1] in _NO_REGISTRY:
                pytest.skip(f"{package} cannot be fetched: npm says {code[1]}")
            pytest.fail(f"npm cannot install {package}: {done.stderr[-2000:]}")
        script = new / "node_modules" / package.rpartition("@")[0] / POSTINSTALL
        if script.is_file():
            _run(node, str(script)).check_returncode()
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, env=real_environment()
    )


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """A lock file, for workers that come at the same time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
