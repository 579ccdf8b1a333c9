"""What the benches share: a line of the table, times taken in turns, writers that race each other, verifications."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

__all__ = ["TABLE_HEAD", "Line", "in_turns", "micro", "race", "table", "table_row", "timed", "verification"]


@dataclass
class Line:
    work: str
    floor: str
    aver: str
    peer: str
    ratio: str
    target: str


TABLE_HEAD = "| work | floor | Aver | qp-capsule | ratio | target |\n| --- | --- | --- | --- | --- | --- |"


def table_row(line: Line) -> str:
    return f"| {line.work} | {line.floor} | {line.aver} | {line.peer} | {line.ratio} | {line.target} |"


def table(lines: list[Line]) -> str:
    return "\n".join([TABLE_HEAD, *map(table_row, lines)])


def in_turns(rounds: int, *works: Callable[[], float]) -> list[float]:
    """The median of each work's time, the works taking turns so that a slow spell of the machine hits all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for index, work in enumerate(works):
            times[index].append(work())
    return [statistics.median(each) for each in times]


def timed(work: Callable[[], Any], times: int) -> Callable[[], float]:
    def once() -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - started) / times

    return once


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def race(writer: Any, *told: Any, processes: int = 4) -> tuple[float, list[Any]]:
    """Run writers at the same time; the seconds until all are done, and what each reported.

    A writer is called with its number, what all are told, a queue for its report and a barrier to wait at.
    """
    context = get_context("spawn")
    reports, start = context.Queue(), context.Barrier(processes + 1)
    workers = [
        context.Process(target=writer, args=(number, *told, reports, start), daemon=True) for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    heard = [reports.get() for _ in workers]
    spent = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return spent, heard


_VERIFY = """
import json, resource, sys, time
from importlib import import_module
from pathlib import Path
sys.path.insert(0, {bench!r})
import aver
which, floor, url, home = sys.argv[1:]
walk = import_module(floor).verify
with aver.open_ledger(url, home=Path(home), create=False) as ledger:
    public = bytes.fromhex(ledger.keys.ring().active("ledger").key.ed25519)
    ledger.store.chains("default")
    began, cpu = time.perf_counter(), time.process_time()
    if which == "floor":
        count = walk(url, "bench.chain", public)
    else:
        verdict = ledger.verify("bench.chain", level=which)
        count = verdict.records if verdict.status in ("verified", "qualified") else -1
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu += helpers.ru_utime + helpers.ru_stime
    status = Path("/proc/self/status").read_text()
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    print(json.dumps([count, wall, cpu, max(peak, helpers.ru_maxrss) / 1024]))
"""


def verification(which: str, floor: str, url: str, home: Path, records: int) -> tuple[float, float, float]:
    """Wall and CPU seconds of one verification in a process of its own, and the megabytes of its largest process.

    `which` is a level of verification, or `floor`: then the module of that name walks the chain.
    """
    script = _VERIFY.format(bench=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", script, which, floor, url, str(home)], check=True, stdout=subprocess.PIPE, text=True
    )
    count, wall, cpu, memory = json.loads(done.stdout)
    if count != records:
        raise SystemExit(f"{which} verified {count} of {records}")
    return wall, cpu, memory
