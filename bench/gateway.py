"""The gateway's rows of `make bench`: acts, embedded and apart, and the verification of their records.

    python bench/gateway.py             these rows alone, some minutes
    python bench/gateway.py --long      compares act 100 of a session with act 10,000, not with act 1,000

An act writes a small file: PREVIEW, COMMIT, effect, outcome. The floor is the work that no gateway could leave out: the
decision with its PREVIEW, the mark and the outcome are one durable append each, and two policy servers decide.

The CPU of parts that run apart is the sum of all processes, from `/proc`, in ticks of 10 ms.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from measuring import Line, table
from sample import sample

import aver
from aver.agents.registry import provide_known_agents
from aver.gate.action import Facts
from aver.gate.ask import load_gate
from aver.gate.decide import decide
from aver.gateway.acts.visit import Door
from aver.gateway.embedded_parts import open_embedded
from aver.gateway.gated_action import build_action
from aver.gateway.gateway import Gateway
from aver.gateway.request import BoundRequest
from aver.gateway.settings import read_gateway_settings
from aver.verdict.examiner import Examiner
from support.apart import ALL, open_town

ACTS = 20
"""Acts that are timed together."""

EARLY, LATE, LATEST = 100, 1000, 10_000
"""The acts of one session whose times are compared: the first with the second, or with the third."""

AROUND = 50
"""Acts before each of them that are timed with it."""

APART_ACTS = 1000
"""Acts after which the memory of each part is read."""

JUDGED_ACTS = 200
"""Acts whose records are verified."""

MEMORY_MAX = 100
"""Megabytes that a part may have resident."""

CHAIN = "bench.floor"
INPUTS = {"relpath": "notes.txt", "content": "one line\n"}
DIFF = "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+one line\n"


class Times(NamedTuple):
    """Seconds of one piece of work."""

    wall: float
    cpu: float


def bench_gateway(directory: Path, rounds: int, *, last: int = LATE) -> list[Line]:
    provide_known_agents()
    numbers = count()

    def build_act() -> dict[str, Any]:
        inputs = {**INPUTS, "relpath": f"notes{next(numbers)}.txt"}
        return {"intent_id": "WriteWorkspaceFile", "inputs": inputs, "constraints": {}, "caller": "bench"}

    with _open_gateway(directory) as gateway:

        def act(session: str = "bench") -> None:
            _require_allowed(gateway.act(build_act(), door=Door(session=session)))

        act()
        return [
            *_bench_act(gateway, act, rounds),
            *_bench_growth(lambda: act("growth"), last),
            *_bench_judging(gateway, lambda: act("judged"), rounds),
            *_bench_apart(act, build_act, rounds),
        ]


@contextmanager
def _open_gateway(directory: Path) -> Iterator[Gateway]:
    workspace = directory / "gateway-work"
    workspace.mkdir(parents=True)
    with aver.open_ledger(directory / "gateway.db", home=directory / "gateway-home") as ledger:
        settings = read_gateway_settings(ledger.config)
        with open_embedded(ledger, settings, workspace=str(workspace), session="bench", close=lambda: None) as gateway:
            yield gateway


def _bench_act(gateway: Gateway, act: Callable[[], None], rounds: int) -> Iterable[Line]:
    """An act beside the floor."""
    ledger, workspace = gateway.ledger, gateway.workspace
    gate = load_gate(ledger.config, workspace, ledger)
    request = BoundRequest.bind("WriteWorkspaceFile", caller="bench", session="floor", inputs=INPUTS)
    action = build_action(request, action_id="a_floor", workspace=workspace, diff=DIFF)
    facts = Facts(now=aver.clock.now())

    def floor() -> None:
        for _ in range(3):
            ledger.append(CHAIN, sample())
        for _ in range(2):
            decide(action, facts, gate)

    bare, ours = _take_turns(rounds, floor, act)
    yield _compare("PREVIEW + COMMIT, embedded", bare.wall, ours.wall, "floor", 1.5)
    yield _compare("  the same, CPU", bare.cpu, ours.cpu, "floor", 1.5)


def _bench_growth(act: Callable[[], None], last: int) -> Iterable[Line]:
    """A late act of a session beside an early one."""
    times = [_time(act, 1) for _ in range(last)]
    early, late = ([each.cpu for each in times[at - AROUND : at]] for at in (EARLY, last))
    words = f"  act {last:,} of a session beside act {EARLY}, CPU"
    yield _compare(words, statistics.median(early), statistics.median(late), "", 1.2)


def _bench_judging(gateway: Gateway, act: Callable[[], None], rounds: int) -> Iterable[Line]:
    """Judging acts again by their records, beside the verification of these records."""
    for _ in range(JUDGED_ACTS):
        act()
    ledger = gateway.ledger
    judge = [each for each in ledger.examiners if "evidence" in each.checks]

    def verify(*chains: str, examiners: Sequence[Examiner] = ()) -> None:
        for chain in chains:
            found = ledger.verify(chain, examiners=examiners)
            if found.status == "failed":
                raise SystemExit(f"the acts do not verify: {found.findings}")

    acts, decisions = "gateway.judged", "gate.judged"
    records, alone, judged = _take_turns(
        rounds,
        lambda: verify(acts, decisions),
        lambda: verify(acts),
        lambda: verify(acts, examiners=judge),
        times=1,
        read_cpu=lambda: time.process_time() + sum(os.times()[2:4]),  # A long chain is verified by helpers, too.
    )
    words = "  judging an act again beside verifying its records, CPU"
    yield _compare(words, records.cpu / JUDGED_ACTS, (judged.cpu - alone.cpu) / JUDGED_ACTS, "", 2)


def _bench_apart(embedded: Callable[[], None], build_act: Callable[[], dict[str, Any]], rounds: int) -> Iterable[Line]:
    """An act through four processes beside an embedded one, and the memory of these processes."""
    with open_town() as town:
        town.start(*ALL, "gateway")
        door = town.client("gateway")
        processes = {part: process.pid for part, process in town.processes.items()}

        def apart() -> None:
            _require_allowed(door.post("/act", build_act(), {"Aver-Session": "bench"}))

        def read_cpu() -> float:
            return time.process_time() + sum(map(_read_cpu, processes.values()))

        apart()
        ours, four = _take_turns(rounds, embedded, apart, read_cpu=read_cpu)
        yield _compare("act through four processes beside an embedded one", ours.wall, four.wall, "", 4)
        yield _compare("  the same, CPU of all processes", ours.cpu, four.cpu, "", 4)
        for _ in range(APART_ACTS - rounds * ACTS - 1):
            apart()
        memory = {part: _read_memory(pid) for part, pid in processes.items()}
    told = ", ".join(f"{part} {used:.0f}" for part, used in memory.items())
    words = f"  MB of each part after {APART_ACTS:,} acts"
    yield Line(words, "–", told, "–", f"{max(memory.values()):.0f} MB", f"≤ {MEMORY_MAX} MB")


def _take_turns(
    rounds: int,
    *works: Callable[[], None],
    times: int = ACTS,
    read_cpu: Callable[[], float] = time.process_time,
) -> list[Times]:
    """The median times of each work. They take turns, so that a slow spell of the machine hits all alike."""
    found = [[_time(work, times, read_cpu) for work in works] for _ in range(rounds)]
    return [Times(*map(statistics.median, zip(*each, strict=True))) for each in zip(*found, strict=True)]


def _time(work: Callable[[], None], times: int, read_cpu: Callable[[], float] = time.process_time) -> Times:
    wall, cpu = time.perf_counter(), read_cpu()
    for _ in range(times):
        work()
    return Times((time.perf_counter() - wall) / times, (read_cpu() - cpu) / times)


def _compare(words: str, bare: float, ours: float, name: str, target: float) -> Line:
    ratio = f"{ours / bare:.2f} x {name}".rstrip()
    return Line(words, f"{bare * 1e3:.2f} ms", f"{ours * 1e3:.2f} ms", "–", ratio, f"≤ {target:g} x")


def _require_allowed(answer: dict[str, Any]) -> None:
    if answer["reason_code"] != "ALLOW":
        raise SystemExit(f"the act was refused: {answer['summary']}")


def _read_cpu(process: int) -> float:
    """The CPU seconds of a process. Its name, which may hold spaces, ends with the last parenthesis."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_memory(process: int) -> float:
    """The megabytes that a process has resident."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(table(bench_gateway(Path(name), 5, last=LATEST if "--long" in sys.argv else LATE)))
