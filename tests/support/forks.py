"""Children of a fork, and how they ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any


def in_child(work: Callable[[], Any]) -> int:
    """Run work in a forked child. It has a minute: a child that hangs on an inherited lock must not hang the tests."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def exit_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
