"""`python bench/growth.py`: does a long ledger cost more per record than a short one?

    python bench/growth.py                          10^3 to 10^6 records, ten minutes
    python bench/growth.py --most 100000            stop earlier
    python bench/growth.py --plot docs/growth.svg   also draw it

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
from collections.abc import Iterator, Sequence
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
    given = parser.parse_args()
    print("| records | append one by one, µs | batched, µs | floor, batched, µs | verify, µs |\n|---|---|---|---|---|")
    points = []
    for point in measured(given.max_with):
        points.append(point)
        print(f"| {point.records} | {' | '.join(f'{micro:.0f}' for micro in point[1:])} |", flush=True)
    if given.plot:
        given.plot.write_text(plot(points), encoding="utf-8")


if __name__ == "__main__":
    main()
