"""Ingest: what sealing a transcript costs, as ratios within one run on one machine.

    python bench/ingest.py                  10,000 records, then a transcript of 100,000, then a minute of idleness
    python bench/ingest.py --quick          fewer records, ten seconds

A transcript is one of Claude Code: half of its records call a tool, half of them bring the result, and a call with its
result becomes one capsule. It is held to the ledger's own batched append of as many capsules as it has records, and of
the very capsules that came of it.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Line, table

import aver
from aver.agents.claude_code.transcripts import ADAPTER
from aver.ingest.contract import TranscriptSource
from aver.ingest.seal import BATCH_SIZE, TranscriptFollower

SESSION = "5d2e8f30-7c11-4a52-9d3b-0a1b2c3d4e5f"
CHAIN = f"claude-code.{SESSION}"
OUTPUT = "".join(f"tests/test_totals.py::test_{number} PASSED\n" for number in range(20))
HUNK = {
    "oldStart": 7,
    "oldLines": 1,
    "newStart": 7,
    "newLines": 1,
    "lines": ["-    return x", "+    return half_up(x)"],
}


def lines(start: int, count: int) -> Iterator[str]:
    """Lines of a transcript: calls, each followed by its result; every fourth is an edit."""
    for number in range(start, start + count, 2):
        call = f"toolu_{number}"
        known = {"sessionId": SESSION, "cwd": "/work/shop", "gitBranch": "main", "version": "2.1.300"}
        at = f"2026-05-31T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
        if number % 8:
            name, given = "Bash", {"command": f"pytest -q tests/test_{number}.py", "description": "run the tests"}
            told: dict[str, Any] = {"stdout": OUTPUT, "stderr": "", "interrupted": False}
        else:
            name, given = "Edit", {"file_path": "/work/shop/a.py", "old_string": "x", "new_string": "half_up(x)"}
            told = {"filePath": "/work/shop/a.py", "structuredPatch": [HUNK]}
        usage = {"input_tokens": 4, "cache_read_input_tokens": 20110, "output_tokens": 96}
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        message = {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-4-8", "usage": usage}
        yield json.dumps(
            {
                "type": "assistant",
                "uuid": f"a-{number}",
                "timestamp": at,
                **known,
                "message": {**message, "content": [block]},
            }
        )
        result = {"type": "tool_result", "tool_use_id": call, "content": OUTPUT}
        answer = {"role": "user", "content": [result]}
        yield json.dumps(
            {"type": "user", "uuid": f"u-{number}", "timestamp": at, **known, "toolUseResult": told, "message": answer}
        )


def write(path: Path, start: int, count: int) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines(start, count))


def bench_sealing(directory: Path, records: int, rounds: int) -> list[Line]:
    path = directory / f"{SESSION}.jsonl"
    write(path, 0, records)
    source = TranscriptSource(tool="claude-code", session=SESSION, path=path)
    ours, floors, of_its_capsules = [], [], []
    for number in range(rounds):
        with aver.open_ledger(directory / f"ours{number}.db", home=directory / "home") as ledger:
            ledger.append("warm.up", aver.Capsule(type="tool"))
            follower = TranscriptFollower(ledger, ADAPTER, source)
            started = time.perf_counter()
            follower.step()
            ours.append(time.perf_counter() - started)
            contents = [record.to_dict() for record in ledger.read(CHAIN)]
        of_its_capsules.append(_appended(directory / f"capsules{number}.db", contents, len(contents)))
        floors.append(_appended(directory / f"records{number}.db", contents, records))
    path.unlink()
    own = f"{1e6 * min(ours) / records:.0f} µs a record"
    return [
        Line(name, f"{1e6 * min(times) / records:.0f} µs a record", own, "-", f"{_ratio(ours, times)} x append", bound)
        for name, times, bound in (
            (f"seal a transcript of {records:,} records", floors, "≤ 2 x"),
            (f"… to append its {len(contents):,} capsules alone", of_its_capsules, ""),
        )
    ]


def _appended(path: Path, contents: list[dict[str, Any]], count: int) -> float:
    """Seconds to append so many capsules like these, in batches."""
    drafts = [_draft(copy.deepcopy(content)) for content in itertools.islice(itertools.cycle(contents), count)]
    with aver.open_ledger(path, home=path.parent / "home") as ledger:
        ledger.append("warm.up", aver.Capsule(type="tool"))
        started = time.perf_counter()
        for at in range(0, count, BATCH_SIZE):
            ledger.append_many(CHAIN, drafts[at : at + BATCH_SIZE])
        return time.perf_counter() - started


def _ratio(ours: list[float], floors: list[float]) -> str:
    return f"{statistics.median(own / floor for own, floor in zip(ours, floors, strict=True)):.2f}"


def _draft(content: dict[str, Any]) -> aver.Capsule:
    del content["context"]["environment"]["aver"], content["id"], content["sequence"], content["previous_hash"]
    return aver.Capsule(**content)


def bench_growth(directory: Path, large: int) -> Line:
    """One more record, while watching, in a transcript that is short and in one that is long."""
    path = directory / f"{SESSION}.jsonl"
    source = TranscriptSource(tool="claude-code", session=SESSION, path=path)
    costs = {}
    with aver.open_ledger(directory / "growing.db", home=directory / "home") as ledger:
        follower = TranscriptFollower(ledger, ADAPTER, source)
        for size in (100, large):
            written = 0 if size == 100 else 200
            write(path, written, size - written)
            follower.step()
            times = []
            for number in range(50):
                write(path, size + 2 * number, 2)
                started = time.perf_counter()
                follower.step()
                times.append(time.perf_counter() - started)
            costs[size] = statistics.median(times)
    few, many = (f"{1e3 * costs[size]:.2f} ms" for size in (100, large))
    return Line(
        f"a new call at record 100 and {large:,}", few, many, "-", f"{costs[large] / costs[100]:.2f} x", "≈ 1 x"
    )


def bench_idle(directory: Path, seconds: float) -> Line:
    """What a watch costs that has nothing to do, with a hundred transcripts that do not change."""
    home = directory / "user"
    for number in range(100):
        path = home / ".claude" / "projects" / f"-work-{number}" / f"{SESSION[:-3]}{number:03}.jsonl"
        path.parent.mkdir(parents=True)
        write(path, 0, 20)
    environment = {**os.environ, "HOME": str(home), "AVER_HOME": str(directory / "idle")}
    watch = subprocess.Popen(
        [Path(sys.executable).with_name("aver"), "watch"], env=environment, stderr=subprocess.DEVNULL
    )
    time.sleep(5)
    before, started = _cpu_of(watch.pid), time.monotonic()
    time.sleep(seconds)
    share = (_cpu_of(watch.pid) - before) / (time.monotonic() - started)
    watch.terminate()
    watch.wait()
    return Line(f"a watch that is idle for {seconds:.0f} s", "-", f"{100 * share:.2f} % of a core", "-", "", "≤ 1 %")


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench_ingest(directory: Path, *, quick: bool) -> list[Line]:
    return [
        *bench_sealing(directory, 2_000 if quick else 10_000, 3 if quick else 5),
        bench_growth(directory, 5_000 if quick else 100_000),
        bench_idle(directory, 10 if quick else 60),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="aver-bench-"))
    try:
        print(table(bench_ingest(place, quick=given.quick)))
    finally:
        shutil.rmtree(place)
