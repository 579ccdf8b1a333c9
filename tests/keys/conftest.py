"""What the tests of the key room share: a home, a store in it, and code run in a process of its own."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.keys import KeyStore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> KeyStore:
    return KeyStore(home, lock_timeout=20)


def _start(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def _finish(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def start() -> Callable[[Callable[[], None]], int]:
    """Start work in a forked process; returns its id."""
    return _start


@pytest.fixture
def finish() -> Callable[[int], int]:
    """Wait for a forked process; returns its exit status, negative if a signal ended it."""
    return _finish
