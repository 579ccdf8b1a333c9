"""`python bench/growth.py`: does a long ledger cost more per record than a short one?

    python bench/growth.py                          10^3 to 10^6 records, ten minutes
    python bench/growth.py --most 100000            stop earlier
    python bench/growth.py --plot docs/growth.svg   also draw it
    python bench/growth.py --listing 300000         only what it costs to list a little of a ledger of this size

One SQLite ledger grows, and beside it a floor: the same tables, filled by bare SQLite in the same batches. At every
third of a decade four things are timed: single durable appends, batches of them, the floor's batches, and one
verification of all of it with signatures, on all cores. Flat is the aim; the floor tells which slope is not ours.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import floor
from measuring import timed
from sample import sample

import aver

CHAIN, BATCH, SINGLES = "bench.growth", 500, 200
TIMED = 20
"""Batches whose median counts: the last ones before each point, when the ledger has nearly that size."""


class Point(NamedTuple):
    """Microseconds per record, when the ledger had this many."""

    records: int
    single: float
    batched: float
    floor: float
    verified: float


def sizes(most: int) -> list[int]:
    found = [round(10 ** (3 + third / 3)) for third in range(3 * 4)]
    return [*(size for size in found if size < most), most]


def measured(most: int) -> Iterator[Point]:
    with tempfile.TemporaryDirectory() as directory:
        bare = floor.Store(Path(directory) / "floor.db")
        with aver.open_ledger(Path(directory) / "ledger.db", home=Path(directory) / "home") as ledger:
            count = 0
            for size in sizes(most):
                ours, theirs = [], []
                while count < size:
                    some = min(BATCH, size - count)
                    drafts = [sample() for _ in range(some)]
                    contents = [draft.to_dict() for draft in drafts]
                    ours.append(timed(lambda fresh=drafts: ledger.append_many(CHAIN, fresh), 1)() / some)
                    theirs.append(timed(lambda fresh=contents: bare.append(fresh), 1)() / some)
                    count += some
                singles = [timed(lambda: ledger.append(CHAIN, sample()), 1)() for _ in range(SINGLES)]
                count += SINGLES
                verified = timed(lambda expected=count: _see_that_all_holds(ledger, expected), 1)() / count
                medians = (statistics.median(each) for each in (singles, ours[-TIMED:], theirs[-TIMED:]))
                yield Point(count, *(seconds * 1e6 for seconds in (*medians, verified)))
        bare.close()


def _see_that_all_holds(ledger: aver.Ledger, expected: int) -> None:
    verdict = ledger.verify(CHAIN)
    if verdict.status != "verified" or verdict.records != expected:
        raise SystemExit(f"{verdict.status} with {verdict.records} of {expected} records")


SMALL, LISTED, REPEATS = 1000, 10, 20
LISTINGS: dict[str, Callable[[aver.Ledger], object]] = {
    "the newest 10 records": lambda ledger: list(ledger.find_newest(limit=LISTED)),
    "the newest 10 of a type": lambda ledger: list(ledger.find_newest(type="tool", limit=LISTED)),
    "the newest 10 of a chain": lambda ledger: list(ledger.find_newest(chain=CHAIN, limit=LISTED)),
    "the oldest 10 records": lambda ledger: list(ledger.find(limit=LISTED)),
    "a record by its key": lambda ledger: ledger.get("key-7"),
    "the verdict on a chain of 10": lambda ledger: ledger.verify("bench.short"),
    "a sweep": lambda ledger: (ledger.append("bench.short", sample()), ledger.sweep()),
}
"""Work whose result is as large in a long ledger as in a short one."""


def listings(most: int) -> Iterator[tuple[str, float, float]]:
    """The CPU time of each piece of work, in milliseconds, in a ledger of `SMALL` records and in one of `most`."""
    found: dict[str, list[float]] = {name: [] for name in LISTINGS}
    for size in (SMALL, most):
        with tempfile.TemporaryDirectory() as directory:
            with aver.open_ledger(Path(directory) / "ledger.db", home=Path(directory) / "home") as ledger:
                for start in range(0, size, BATCH):
                    keys = [f"key-{number}" for number in range(start, start + BATCH)]
                    ledger.append_many(CHAIN, [sample() for _ in keys], keys=keys)
                ledger.append_many("bench.short", [sample() for _ in range(LISTED)])
                for name, work in LISTINGS.items():
                    times = []
                    for _ in range(REPEATS):
                        began = time.process_time()
                        work(ledger)
                        times.append(time.process_time() - began)
                    found[name].append(statistics.median(times) * 1000)
    for name, (small, large) in found.items():
        yield name, small, large


WIDTH, HEIGHT, LEFT, TOP = 640, 360, 64, 24
COLOURS = {"single": "#b45309", "batched": "#1d4ed8", "floor": "#9ca3af", "verified": "#047857"}
WORDS = {
    "single": "append, one by one",
    "batched": "append, batched by 500",
    "floor": "the same by bare SQLite",
    "verified": "verify, all cores",
}


def plot(points: Sequence[Point]) -> str:
    """The lines over the number of records, both axes logarithmic, as SVG."""
    low, high = 1.0, 3.5
    first, last = math.log10(points[0].records), math.log10(points[-1].records)

    def x(records: int) -> float:
        return LEFT + (math.log10(records) - first) / (last - first) * (WIDTH - LEFT - 24)

    def y(micro: float) -> float:
        return TOP + (high - math.log10(micro)) / (high - low) * (HEIGHT - TOP - 48)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for micro in (10, 100, 1000):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 24}" y1="{y(micro):.1f}" y2="{y(micro):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(micro) + 4:.1f}" text-anchor="end">{micro} µs</text>')
    for decade in range(math.ceil(first - 0.1), math.floor(last) + 1):
        at = max(x(10**decade), LEFT)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 28}" text-anchor="middle">10^{decade}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">records in the ledger</text>')
    for row, (name, colour) in enumerate(COLOURS.items()):
        line = " ".join(f"{x(point.records):.1f},{y(getattr(point, name)):.1f}" for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 12}" y="{y(45) + 18 * row:.1f}" fill="{colour}">{WORDS[name]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost per record as a ledger grows.")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--listing", type=int, metavar="RECORDS")
    given = parser.parse_args()
    if given.listing:
        print(f"| work | {SMALL} records, ms of CPU | {given.listing} records | ratio |\n|---|---|---|---|")
        for name, small, large in listings(given.listing):
            print(f"| {name} | {small:.2f} | {large:.2f} | {large / small:.2f} |", flush=True)
        return
    print("| records | append one by one, µs | batched, µs | floor, batched, µs | verify, µs |\n|---|---|---|---|---|")
    points = []
    for point in measured(given.most):
        points.append(point)
        print(f"| {point.records} | {' | '.join(f'{micro:.0f}' for micro in point[1:])} |", flush=True)
    if given.plot:
        given.plot.write_text(plot(points), encoding="utf-8")


if __name__ == "__main__":
    main()
