"""Marks the processes of a call, so that they can be found and ended after Aver's own process is gone.

A killed Aver cannot end its command. The command goes on, and would share the workspace with the next attempt. So each
program of a call has the variable `AVER_EXECUTION` with the id of the call's start, and its children inherit it. Who
gives the call up ends every process that still has it.

    with mark_processes(start.id):
        run_process(…)                      the program has AVER_EXECUTION=<id>
    end_marked_processes(start.id)          later, elsewhere: how many were ended

Linux alone shows the variables of a process (`/proc`), and those of one's own processes only. A process that has
dropped the variable, or that runs as another user, is not found. Elsewhere nothing is found, and nothing is ended.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from aver.log import debug

MARK = "AVER_EXECUTION"
"""The variable. It is no setting: no program of Aver reads it from its own environment."""

PROCESSES = Path("/proc")

END_SECONDS = 5.0
"""How long Aver looks for marked processes and waits for their end. The kernel needs milliseconds."""

_EXECUTION: ContextVar[str] = ContextVar("execution", default="")


@contextmanager
def mark_processes(execution: str) -> Iterator[None]:
    """Have the programs that this thread starts meanwhile marked as those of an execution."""
    token = _EXECUTION.set(execution)
    try:
        yield
    finally:
        _EXECUTION.reset(token)


def build_mark() -> dict[str, str]:
    """Return the variable of the execution whose programs this thread starts; empty where it is none."""
    execution = _EXECUTION.get()
    return {MARK: execution} if execution else {}


def end_marked_processes(execution: str) -> int:
    """End every process that bears the mark of an execution, and wait until they are gone. Returns how many."""
    if not hasattr(os, "pidfd_open"):
        return 0
    wanted, ended, until = f"{MARK}={execution}".encode(), 0, time.monotonic() + END_SECONDS
    # Again, because a process may have started another before it ended.
    while time.monotonic() < until:
        with ExitStack() as stack:
            found = list(_open_marked(wanted, stack))
            if not found:
                break
            ended += sum(_end(handle) for handle in found)
            for handle in found:
                _wait(handle, until)
    debug("protocol", "%s processes of the call %s were ended", ended, execution)
    return ended


def _open_marked(wanted: bytes, stack: ExitStack) -> Iterator[int]:
    """Yield a handle of each process with the variable. Each is closed with `stack`."""
    try:
        names = [name for name in os.listdir(PROCESSES) if name.isdecimal() and int(name) != os.getpid()]
    except OSError:
        return
    for name in names:
        # A number may stand for another process soon. The handle, which is opened first, never does.
        with suppress(OSError):
            handle = os.pidfd_open(int(name))
            stack.callback(os.close, handle)
            if wanted in (PROCESSES / name / "environ").read_bytes().split(b"\0"):
                yield handle


def _end(handle: int) -> bool:
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError as error:  # It has ended by itself, or is not ours to end.
        debug("protocol", "a process of a lost call is not ended: %s", error.strerror)
        return False
    return True


def _wait(handle: int, until: float) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll(max(0.0, until - time.monotonic()) * 1000)
