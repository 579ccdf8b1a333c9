"""`python -m unittest discover` would find none of these tests, and call that a success. It fails here instead."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

WORDS = "these are tests for pytest; run: make test"


def load_tests(loader: unittest.TestLoader, *_: object) -> unittest.TestSuite:
    """Where unittest asks for the tests of a module. pytest does not call it."""
    raise RuntimeError(WORDS)


def test_unittest_fails_and_says_how_tests_are_run() -> None:
    """With the command of the gateway's RFC, §10."""
    command = [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-p", "test_*.py"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert WORDS in done.stderr
