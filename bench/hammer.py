"""`python bench/hammer.py`: many writers at once, and how long each waits until its records are durable.

    python bench/hammer.py                                    4 processes, one chain, a throw-away SQLite ledger
    python bench/hammer.py --chains 32 --batch 32 --threads 8
    python bench/hammer.py --ledger postgresql://…/aver --processes 8
    python bench/hammer.py --sweep 0.5                        with a sweep of all heads every half second beside it

Each writer appends for as long as it is told to. At the end the chains must hold every record that was acknowledged
and no other, and the ledger must verify; otherwise the hammer says so and exits with 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from sample import sample

import aver
from aver.ledger.meta_chain import sweep


@dataclass(frozen=True, slots=True)
class Load:
    """What every writer is told."""

    ledger: str
    home: str
    threads: int
    chains: int
    batch: int
    seconds: float


def chain_of(writer: int, load: Load) -> str:
    return f"hammer.{writer % load.chains}"


def write(load: Load, process: int, ready: Any, reports: Any) -> None:
    """One process of writers: reports each wait, and how many records each chain got from it."""
    waits: list[float] = []
    written: dict[str, int] = {}
    guard = threading.Lock()
    with aver.open_ledger(load.ledger, home=Path(load.home)) as ledger:
        ready.wait()
        ends = time.perf_counter() + load.seconds

        def writer(number: int) -> None:
            chain, mine, count = chain_of(number, load), [], 0
            while time.perf_counter() < ends:
                drafts = [sample() for _ in range(load.batch)]
                began = time.perf_counter()
                ledger.append_many(chain, drafts)
                mine.append(time.perf_counter() - began)
                count += load.batch
            with guard:
                waits.extend(mine)
                written[chain] = written.get(chain, 0) + count

        threads = [
            threading.Thread(target=writer, args=(process * load.threads + index,)) for index in range(load.threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    reports.put((waits, written))


def sweep_beside(load: Load, every: float, stop: threading.Event) -> int:
    """Sweep the heads into the meta chain again and again; how often that was."""
    sweeps = 0
    with aver.open_ledger(load.ledger, home=Path(load.home)) as ledger:
        while not stop.wait(every):
            sweep(ledger)
            sweeps += 1
    return sweeps


def hammer(load: Load, processes: int, sweep_every: float | None) -> dict[str, Any]:
    context = get_context("spawn")
    ready, reports = context.Barrier(processes + 1), context.Queue()
    with aver.open_ledger(load.ledger, home=Path(load.home)) as ledger:
        before = {head.chain: head.count for head in ledger.heads()}
    workers = [context.Process(target=write, args=(load, index, ready, reports)) for index in range(processes)]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter()
    stop, swept = threading.Event(), [0]
    sweeper = threading.Thread(target=lambda: swept.append(sweep_beside(load, sweep_every or 1.0, stop)))
    if sweep_every:
        sweeper.start()
    heard = [reports.get() for _ in workers]
    spent = time.perf_counter() - began
    stop.set()
    for worker in workers:
        worker.join()
    if sweep_every:
        sweeper.join()
    waits = [wait for report, _ in heard for wait in report]
    written: dict[str, int] = {}
    for _, counts in heard:
        for chain, count in counts.items():
            written[chain] = written.get(chain, 0) + count
    with aver.open_ledger(load.ledger, home=Path(load.home)) as ledger:
        kept = all(ledger.head(chain).count == before.get(chain, 0) + count for chain, count in written.items())
        verdict = ledger.verify()
    return {
        "records": sum(written.values()),
        "records_per_second": round(sum(written.values()) / spent),
        "durable_ms": {**_spread(waits), "longest": _milli(max(waits))},
        "sweeps": swept[-1],
        "nothing_lost_or_doubled": kept,
        "verdict": verdict.status,
    }


def _spread(waits: Sequence[float]) -> dict[str, float]:
    hundredths = statistics.quantiles(waits, n=100)
    return {"p50": _milli(hundredths[49]), "p99": _milli(hundredths[98])}


def _milli(seconds: float) -> float:
    return round(seconds * 1000, 2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python bench/hammer.py", description="Many writers at once")
    parser.add_argument("--ledger", help="URL of the ledger (default: a new SQLite file that is thrown away)")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="writers in each process")
    parser.add_argument("--chains", type=int, default=1, help="chains that the writers are spread over")
    parser.add_argument("--batch", type=int, default=1, help="records in each append")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--sweep", type=float, help="seconds between two sweeps beside the writers")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "home"
        url = given.ledger or str(Path(directory) / "ledger.db")
        load = Load(url, str(home), given.threads, given.chains, given.batch, given.seconds)
        found = hammer(load, given.processes, given.sweep)
    if given.json:
        print(json.dumps(found))
    else:
        durable = found["durable_ms"]
        print(f"{found['records']} records, {found['records_per_second']}/s, {found['sweeps']} sweeps beside them")
        print(f"durable after p50 {durable['p50']} ms, p99 {durable['p99']} ms, longest {durable['longest']} ms")
        print(f"nothing lost or doubled: {found['nothing_lost_or_doubled']}; verdict: {found['verdict']}")
    return 0 if found["nothing_lost_or_doubled"] and found["verdict"] in ("verified", "qualified") else 1


if __name__ == "__main__":
    raise SystemExit(main())
