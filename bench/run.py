"""`make bench`: the speed targets, each as a ratio to the floor and to the peer, in one run on one machine.

    python bench/run.py                 all rows, some minutes
    python bench/run.py --quick         fewer repetitions
    python bench/run.py --out FILE      also write the table as Markdown

Times on a shared machine wander by tens of per cent; ratios taken in turns within one run wander much less. No
row is a test: it prints, people judge.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import floor
import peer
from sample import sample

import aver

CHAIN = "bench.chain"


@dataclass
class Line:
    work: str
    floor: str
    aver: str
    peer: str
    ratio: str
    target: str


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


def bench_seal(directory: Path, rounds: int) -> Line:
    content = sample().to_dict()
    signer = aver.SeedSigner(bytes(range(32)))
    theirs, seal = peer.capsule(content), peer.sealer(directory)
    bare, ours, other = in_turns(
        rounds,
        timed(lambda: floor.seal(content), 500),
        timed(lambda: aver.seal(content, signer), 500),
        timed(lambda: seal.seal(theirs), 200),
    )
    return Line("seal, strict", micro(bare), micro(ours), micro(other), f"{ours / bare:.2f} x floor", "≤ 1.5 x")


def bench_append(directory: Path, rounds: int) -> Line:
    store = floor.Store(directory / "floor.db")
    with aver.open_ledger(directory / "one.db", home=directory / "home") as ledger:
        ledger.append(CHAIN, sample())
        bare, ours = in_turns(
            rounds,
            timed(lambda: store.append([sample().to_dict()]), 100),
            timed(lambda: ledger.append(CHAIN, sample()), 100),
        )
    store.close()
    stored, spent = peer.append(directory, [sample().to_dict() for _ in range(100)])
    return Line(
        "durable append, one by one",
        f"{1 / bare:.0f}/s",
        f"{1 / ours:.0f}/s",
        f"{stored / spent:.0f}/s",
        f"{bare / ours:.2f} x floor",
        "≥ 0.6 x",
    )


def bench_batch(directory: Path, rounds: int) -> Line:
    drafts = [sample() for _ in range(500)]
    content = drafts[0].to_dict()

    def batch(ledger: aver.Ledger) -> float:
        fresh = [sample() for _ in range(500)]
        started = time.perf_counter()
        ledger.append_many(CHAIN, fresh)
        return (time.perf_counter() - started) / 500

    with aver.open_ledger(directory / "batch.db", home=directory / "home") as ledger:
        batch(ledger)
        bare, ours = in_turns(rounds, timed(lambda: floor.seal(content), 500), lambda: batch(ledger))
    return Line(
        "durable append, batched by 500",
        f"{micro(bare)} (seal)",
        micro(ours),
        "–",
        f"{ours / bare:.2f} x seal floor",
        "≤ 3 x",
    )


def _floor_writer(path: str, appends: int, waits: Any, start: Any) -> None:
    store = floor.Store(Path(path))
    contents = [sample().to_dict() for _ in range(appends)]
    start.wait()
    spent = []
    for content in contents:
        began = time.perf_counter()
        store.append([content])
        spent.append(time.perf_counter() - began)
    waits.put(spent)


def _aver_writer(path: str, appends: int, waits: Any, start: Any) -> None:
    with aver.open_ledger(path, home=Path(path).parent / "home") as ledger:
        drafts = [sample() for _ in range(appends)]
        start.wait()
        spent = []
        for draft in drafts:
            began = time.perf_counter()
            ledger.append(CHAIN, draft)
            spent.append(time.perf_counter() - began)
        waits.put(spent)


def _peer_writer(path: str, appends: int, waits: Any, start: Any) -> None:
    contents = [sample().to_dict() for _ in range(appends)]
    start.wait()
    waits.put(peer.append(Path(path).parent, contents))


def _race(writer: Any, path: Path, appends: int, processes: int = 4) -> tuple[float, list[Any]]:
    """Run writers at the same time; the seconds until all are done, and what each reported."""
    context = get_context("spawn")
    waits, start = context.Queue(), context.Barrier(processes + 1)
    workers = [context.Process(target=writer, args=(str(path), appends, waits, start)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    reports = [waits.get() for _ in workers]
    spent = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return spent, reports


def bench_processes(directory: Path, rounds: int) -> list[Line]:
    appends = 250
    speeds: list[tuple[float, float]] = []
    worst: list[tuple[float, float]] = []
    for turn in range(max(rounds // 3, 1)):
        at = directory / f"race{turn}"
        at.mkdir()
        floor.Store(at / "floor.db").close()
        bare, bare_waits = _race(_floor_writer, at / "floor.db", appends)
        with aver.open_ledger(at / "aver.db", home=at / "home") as ledger:
            ledger.append("bench.first", sample())
        ours, our_waits = _race(_aver_writer, at / "aver.db", appends)
        with aver.open_ledger(at / "aver.db", home=at / "home") as ledger:
            if ledger.head(CHAIN).count != 4 * appends or ledger.verify().status != "verified":
                raise SystemExit("records were lost")
        speeds.append((4 * appends / bare, 4 * appends / ours))
        longest = []
        for waits in (bare_waits, our_waits):
            every = [wait for report in waits for wait in report]
            longest.append(max(every) / statistics.median(every))
        worst.append((longest[0], longest[1]))
    race = directory / "race-peer"
    race.mkdir()
    peer.append(race, [sample().to_dict()])
    spent, reports = _race(_peer_writer, race / "peer.db", 100)
    stored = sum(report[0] for report in reports)
    bare, ours = (statistics.median(each) for each in zip(*speeds, strict=True))
    return [
        Line(
            "4 processes, one chain, none lost",
            f"{bare:.0f}/s",
            f"{ours:.0f}/s",
            f"{stored / spent:.0f}/s, {100 - stored / 4:.0f} % lost",
            f"{ours / bare:.2f} x floor",
            "≥ 0.8 x",
        ),
        Line(
            "  longest wait / median wait",
            f"{statistics.median(w[0] for w in worst):.0f}",
            f"{statistics.median(w[1] for w in worst):.0f}",
            "–",
            "",
            "≤ 20",
        ),
    ]


_VERIFY = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, {bench!r})
import aver, floor
from aver.ledger.verify import verify_ledger
which, path, home = sys.argv[1:]
with aver.open_ledger(path, home=Path(home), create=False) as ledger:
    public = bytes.fromhex(ledger.keys.ring().active("ledger").key.ed25519)
    ledger.store.chains("default")
    began, cpu = time.perf_counter(), time.process_time()
    if which == "floor":
        count = floor.verify(Path(path), "bench.chain", public)
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


def _measured(which: str, path: Path, home: Path, records: int) -> tuple[float, float, float]:
    """Wall and CPU seconds of one verification in a process of its own, and the megabytes of its largest process."""
    import json

    script = _VERIFY.format(bench=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", script, which, str(path), str(home)], check=True, capture_output=True, text=True
    )
    count, wall, cpu, memory = json.loads(done.stdout)
    if count != records:
        raise SystemExit(f"{which} verified {count} of {records}")
    return wall, cpu, memory


def bench_verify(directory: Path, records: int, rounds: int) -> list[Line]:
    path, home = directory / "verify.db", directory / "home"
    with aver.open_ledger(path, home=home) as ledger:
        for start in range(0, records, 500):
            ledger.append_many(CHAIN, [sample() for _ in range(min(500, records - start))])
    measured: dict[str, list[tuple[float, float, float]]] = {"floor": [], "signature": []}
    for _ in range(rounds):
        for which, runs in measured.items():
            runs.append(_measured(which, path, home, records))
    bare = [statistics.median(column) for column in zip(*measured["floor"], strict=True)]
    ours = [statistics.median(column) for column in zip(*measured["signature"], strict=True)]
    few = 2000
    theirs = directory / "verify-peer"
    theirs.mkdir()
    peer.append(theirs, [sample().to_dict() for _ in range(few)])
    valid, spent = peer.verify(theirs)
    if not valid:
        raise SystemExit("the peer's own chain does not verify")
    return [
        Line(
            f"verify {records} with signatures: CPU",
            f"{bare[1]:.2f} s",
            f"{ours[1]:.2f} s",
            f"{spent / few * records:.1f} s (from {few})",
            f"{ours[1] / bare[1]:.2f} x floor",
            "≤ 1.25 x",
        ),
        Line(
            "  wall, all cores / one core",
            f"{bare[0]:.2f} s",
            f"{ours[0]:.2f} s",
            "",
            f"{ours[0] / bare[0]:.2f} x floor",
            "≤ 0.75 x",
        ),
        Line("  peak memory of the largest process", f"{bare[2]:.0f} MB", f"{ours[2]:.0f} MB", "", "", "≤ 100 MB"),
    ]


def table(lines: list[Line]) -> str:
    head = Line("work", "floor", "Aver", "qp-capsule", "ratio", "target")
    rule = Line("---", "---", "---", "---", "---", "---")
    return "\n".join(
        f"| {line.work} | {line.floor} | {line.aver} | {line.peer} | {line.ratio} | {line.target} |"
        for line in (head, rule, *lines)
    )


def machine() -> str:
    import sqlite3

    try:
        text = Path("/proc/cpuinfo").read_text()
        model = next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return (
        f"{os.cpu_count()} cores, {model}; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}; SQLite {sqlite3.sqlite_version}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and 10,000 records to verify")
    parser.add_argument("--only", choices=["seal", "append", "batch", "processes", "verify"])
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    rounds = 5 if options.quick else 15
    work = Path(__file__).parent.parent / "build"
    work.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=work))
    rows: dict[str, Callable[[], Line | list[Line]]] = {
        "seal": lambda: bench_seal(directory, rounds),
        "append": lambda: bench_append(directory, rounds),
        "batch": lambda: bench_batch(directory, rounds),
        "processes": lambda: bench_processes(directory, rounds),
        "verify": lambda: bench_verify(directory, 10_000 if options.quick else 100_000, 3),
    }
    lines: list[Line] = []
    try:
        for name, row in rows.items():
            if options.only in (None, name):
                print(f"{name} …", file=sys.stderr, flush=True)
                found = row()
                lines.extend(found if isinstance(found, list) else [found])
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    report = f"{machine()}\n\n{table(lines)}\n"
    print(report)
    if options.out:
        options.out.write_text(report)


if __name__ == "__main__":
    main()
