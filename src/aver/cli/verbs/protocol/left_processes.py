"""Finds commands of a trace that still run although the Aver process that started them is gone.

A killed Aver cannot end its command. `resume` seals `OUTCOME_UNKNOWN` for such a call. The command itself may go on in
the workspace, beside the next one. Linux alone tells which processes run (`/proc`). Elsewhere nothing is found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

PROCESSES = Path("/proc")


class LeftProcess(NamedTuple):
    """A process that runs the command of a call which was given up."""

    pid: int
    argv: tuple[str, ...]


def find_left_processes(session: ProtocolSession, processes: Path = PROCESSES) -> list[LeftProcess]:
    """Find the processes that run, in the session's workspace, a command whose call was given up."""
    given_up = []
    for intent in session.fold.intents.values():
        argv = intent.payload["arguments"].get("argv")
        if intent.code == "OUTCOME_UNKNOWN" and isinstance(argv, list) and argv:
            given_up.append([str(word) for word in argv])
    if not given_up:
        return []
    root = os.path.realpath(session.workspace)
    running = _list_processes(processes, root)
    return [each for each in running if any(_is_same_command(each.argv, argv) for argv in given_up)]


def _list_processes(processes: Path, root: str) -> Iterator[LeftProcess]:
    """Yield the processes that work in a directory. Those of other users cannot be read, and are left out."""
    try:
        names = os.listdir(processes)
    except OSError:
        return
    for name in filter(str.isdecimal, names):
        try:
            directory = os.readlink(processes / name / "cwd")
            words = (processes / name / "cmdline").read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        if words and (directory == root or directory.startswith(f"{root}{os.sep}")):
            yield LeftProcess(int(name), tuple(words.removesuffix("\0").split("\0")))


def _is_same_command(running: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a process was started by these words. It may have its program by the whole path."""
    return os.path.basename(running[0]) == os.path.basename(argv[0]) and list(running[1:]) == list(argv[1:])
