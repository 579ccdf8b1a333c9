"""Judging slices on all cores, by worker processes.

Threads do not serve: between two signature checks the interpreter's lock changes hands, and that costs more than it
gains. A worker is this module run by a Python of its own (so it does not matter how the calling program was
started); it is told once which ledger and rules, then gets slices and answers with tallies, both over its pipes.
Few records are judged right here. A worker that cannot be started, or dies, costs time and nothing else: its
slices are judged here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from aver.ledger.slices import Slice, judge_slice
from aver.verdict import Rules, Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["PARALLEL_FROM", "judge_slices"]

PARALLEL_FROM = 25_000
"""Fewer records than this are judged before a worker would have started."""

GC_THRESHOLD = 50_000
"""Objects after which a worker looks for cycles. What it reads has none: it is freed without looking."""


def judge_slices(ledger: Ledger, rules: Rules, slices: Iterator[Slice], total: int) -> Iterator[Tally]:
    """The tally of every slice, in the order of the slices; never more than a few of them at a time."""
    cores = os.cpu_count() or 1
    if total < PARALLEL_FROM or cores == 1 or not sys.executable:
        for row, begin, end in slices:
            yield judge_slice(ledger, rules, row, begin, end)
        return
    idle: SimpleQueue[_Worker] = SimpleQueue()
    workers = [_Worker(ledger, rules) for _ in range(cores)]
    for worker in workers:
        idle.put(worker)

    def judged(piece: Slice) -> Tally:
        worker = idle.get()
        try:
            return worker.judge(piece)
        finally:
            idle.put(worker)

    try:
        with ThreadPoolExecutor(cores, thread_name_prefix="aver-verify") as threads:
            running: deque[Future[Tally]] = deque()
            for piece in slices:
                running.append(threads.submit(judged, piece))
                if len(running) > 2 * cores:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
    finally:
        for worker in workers:
            worker.stop()


_WORKER_PROGRAM = "from aver.ledger.parallel import run_worker; run_worker()"


class _Worker:
    """One worker process; without it, the work is done here."""

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        self._ledger = ledger
        self._rules = rules
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *_python_flags(),
                    "-P",
                    "-c",
                    "from aver.ledger.parallel import run_worker; run_worker()",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._send((ledger.store.url, ledger.tenant, ledger.config.home, rules))
        except OSError:
            self.stop()

    def judge(self, piece: Slice) -> Tally:
        if self._process is not None and self._process.stdout is not None:
            try:
                self._send(piece)
                tally: Tally = _receive(self._process.stdout)
                return tally
            except (OSError, EOFError, pickle.UnpicklingError):
                self.stop()
        return judge_slice(self._ledger, self._rules, *piece)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.terminate()
            process.wait()

    def _send(self, message: Any) -> None:
        if self._process is None or self._process.stdin is None:
            raise EOFError
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()


def _python_flags() -> list[str]:
    """What keeps this Python from running other people's code, for the worker's too."""
    given = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    return [flag for flag, value in given.items() if value]


def _receive(pipe: IO[bytes]) -> Any:
    # Only ever what our own worker, or the process that started this worker, has written.
    return pickle.load(pipe)


def run_worker() -> None:
    """A worker's life: told what to verify, then slices until the pipe closes."""
    import gc

    from aver.ledger.ledger import open_ledger

    heard, said = sys.stdin.buffer, sys.stdout.buffer
    url, tenant, home, rules = _receive(heard)
    gc.set_threshold(GC_THRESHOLD)
    with open_ledger(url, tenant=tenant, home=Path(home), create=False) as ledger:
        while True:
            try:
                piece = _receive(heard)
            except EOFError:
                return
            pickle.dump(judge_slice(ledger, rules, *piece), said)
            said.flush()
