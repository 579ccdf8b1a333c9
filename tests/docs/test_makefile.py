"""The Makefile explains itself, and says clearly what it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.doc_pages import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

TARGETS = {
    *("demo", "test", "test-more", "test-all", "test-clients", "test-browser", "web", "lint"),
    *("bench", "bench-agentdojo", "bench-tools", "fuzz", "clean"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Whoever runs the tests may do so from another make, whose flags are not meant for this one.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=checkout, env=alone, capture_output=True, text=True, check=False)


def interpreter(checkout: Path, script: str) -> Path:
    path = checkout / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_without_a_target_it_lists_them(checkout: Path) -> None:
    assert set(re.findall(r"^make (\S+)", make(checkout).stdout, re.MULTILINE)) == TARGETS


def test_the_demo_has_what_its_last_command_needs(checkout: Path) -> None:
    """It ends with `aver serve`, which needs the extra `explorer`."""
    assert '--editable ".[explorer]"' in make(checkout, "-n", "demo", "PYTHON=python3").stdout


@pytest.mark.parametrize("target", sorted(TARGETS - {"clean"}))
def test_an_old_python_is_refused(checkout: Path, target: str) -> None:
    old = interpreter(checkout, 'case "$1" in -V) echo "Python 3.9.2";; *) exit 1;; esac')
    done = make(checkout, target, f"PYTHON={old}")
    assert done.returncode != 0
    assert "Aver needs Python 3.11 or newer" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_not_there_is_named(checkout: Path) -> None:
    done = make(checkout, "demo", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "there is no no-such-python" in done.stderr


def test_without_chromium_it_is_said_first(checkout: Path) -> None:
    """Before anything is installed: the tests of a browser are left out by name, or the target fails."""
    (checkout / "tests" / "explorer").mkdir(parents=True)
    (checkout / "tests" / "explorer" / "test_x_in_browser.py").write_text("pytestmark = pytest.mark.browser\n")
    old = interpreter(checkout, "exit 1")
    for target, words in (("test-all", "left out: explorer/test_x_in_browser.py"), ("test-browser", "Error 1")):
        done = make(checkout, target, f"PYTHON={old}", "CHROMIUM=")
        first, second, *_ = done.stderr.splitlines()
        assert first.startswith("make: there is no Chromium (Debian: apt-get install chromium;")
        assert words in first + second
        assert done.returncode != 0
    assert '-m "not browser"' in make(checkout, "-n", "test-all", "CHROMIUM=").stdout
    assert '-m "not browser"' not in make(checkout, "-n", "test-all", "CHROMIUM=/opt/chrome").stdout


def test_half_an_environment_is_removed(checkout: Path) -> None:
    broken = interpreter(checkout, 'case "$1" in -m) mkdir -p .venv/bin; touch .venv/bin/python; exit 1;; esac')
    done = make(checkout, "demo", f"PYTHON={broken}")
    assert done.returncode != 0
    assert "cannot make a virtual environment" in done.stderr
    assert not (checkout / ".venv").exists()
