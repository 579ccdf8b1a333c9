"""Capsules judged by several processes: the same verdict as by one, no waiting for each other, bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.memory_peaks import KNOWN, PEAK
from support.runs import (
    Members,
    SealedRun,
    codes_of,
    edited_line,
    judged,
    lines_of,
    make_sealed_run,
    packed,
    with_true_manifest,
)

JUDGE = """
import json, os, subprocess, sys
import aver
from aver.verdict import parallel
parallel.CHAIN_PARALLEL_FROM, parallel.SLICE_RECORDS = 1, int(sys.argv[1])
os.cpu_count = lambda: 2
started = []
real = subprocess.Popen
def start(*given, **named):
    if sys.argv[2] == "none":
        raise OSError(11, "no more processes")
    if sys.argv[2] in ("dying", "babbling"):
        # It dies in the middle of an answer, or answers with something that is none.
        wrong = "b'\\x80\\x05\\x95'" if sys.argv[2] == "dying" else "b'cos\\nno_such\\n.' * 99"
        given[0][-1] = "import sys; sys.stdout.buffer.write(%s); sys.stdout.flush(); sys.stdin.buffer.read(9)" % wrong
    started.append(real(*given, **named))
    if sys.argv[2] == "killed":
        started[-1].kill()
    return started[-1]
subprocess.Popen = start
found = []
for path in sys.argv[4:]:
    verdict = aver.verify(path, keys=[sys.argv[3]])
    found.append([verdict.status, verdict.records, [[f.check, f.code, str(f.place)] for f in verdict.findings]])
print(json.dumps([len(started), found]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    return make_sealed_run(tmp_path_factory.mktemp("run"))


def cut(members: Members, at: int) -> Members:
    lines = lines_of(members, "capsules.jsonl")
    return {**members, "capsules.jsonl": b"".join([*lines[:at], *lines[at + 1 :]])}


def changed(members: Members, at: int) -> Members:
    lines = lines_of(members)
    lines[at] = edited_line(lines[at], lambda line: line["metadata"].update(description="other"))
    return {**members, "actions.jsonl": b"".join(lines)}


def unsigned(members: Members, at: int) -> Members:
    lines = lines_of(members, "capsules.jsonl")
    line = json.loads(lines[at])
    line["signature"] = line["signature"][::-1]
    lines[at] = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    return {**members, "capsules.jsonl": b"".join(lines)}


@pytest.fixture(scope="module")
def cases(run: SealedRun, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    members = run.members
    variants = [members]
    for at in (3, 11):
        variants += [cut(members, at), changed(members, at), unsigned(members, at)]
    variants.append({**members, "capsules.jsonl": members["capsules.jsonl"].replace(b'"outcome', b'"Outcome')})
    variants.append({**members, "capsules.jsonl": b"{}\n[]\n\xff\n" + members["capsules.jsonl"]})
    directory = tmp_path_factory.mktemp("cases")
    paths = []
    for number, variant in enumerate(variants):
        paths.append(directory / f"{number}.cap")
        paths[-1].write_bytes(packed(with_true_manifest(variant) if number else variant))
    return paths


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("size", "worker"), [(1, "alive"), (5, "alive"), (3, "killed"), (3, "none"), (3, "dying"), (3, "babbling")]
)
def test_several_processes_say_what_one_says(run: SealedRun, cases: list[Path], size: int, worker: str) -> None:
    command = [sys.executable, "-c", JUDGE, str(size), worker, run.key.ed25519, *map(str, cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    started, found = json.loads(done.stdout)
    assert started == (0 if worker == "none" else len(cases))
    for path, (status, records, findings) in zip(cases, found, strict=True):
        alone = judged(path.read_bytes(), run)
        assert (status, records) == (alone.status, alone.records), path
        expected = {
            (one.check, one.code, str(one.place)) for one in alone.findings if one.check in ("content", "signature")
        }
        assert expected <= {tuple(one) for one in findings}
        assert bool(codes_of(alone)) == (status == "failed")
    assert found[0][0] == "verified"


def with_many(members: Members, line: dict[str, object], count: int) -> Members:
    """The members of a run whose manifest claims many records, and whose capsules are all this line."""
    manifest = json.loads(members["manifest.json"])
    manifest["head"]["count"] = 100_000
    seal = json.loads(lines_of(members, "capsules.jsonl")[0])
    raw = json.dumps({**seal, **line}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    return with_true_manifest(
        {**members, "manifest.json": json.dumps(manifest).encode(), "capsules.jsonl": raw * count}
    )


@pytest.mark.more
def test_large_tallies_and_large_slices_do_not_wait_for_each_other(run: SealedRun, tmp_path: Path) -> None:
    """A worker's first answer is larger than a pipe holds, and so is the next slice."""
    key = json.dumps("\U0001f600" * 500, ensure_ascii=False)
    canonical = f'{{{key}:1,{key}:"{"x" * 8000}"}}'
    path = tmp_path / "hang.cap"
    path.write_bytes(packed(with_many(run.members, {"canonical": canonical}, 3000)))
    assert path.stat().st_size < 400_000
    script = "import sys, aver; print(aver.verify(sys.argv[1]).status)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "failed"


@pytest.mark.more
@pytest.mark.skipif(not KNOWN, reason="this system does not tell how much memory a process needed")
@pytest.mark.parametrize("size", [900_000, 8_000_000])
def test_long_lines_take_bounded_memory(run: SealedRun, tmp_path: Path, size: int) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    for name, data in with_many(run.members, {"canonical": "x" * size}, 120_000_000 // size).items():
        (directory / name).write_bytes(data)
    script = PEAK + "import sys, aver; verdict = aver.verify(sys.argv[1]); print(verdict.status, peak_kb())"
    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)], capture_output=True, text=True, check=True, timeout=120
    )
    status, peak = done.stdout.split()
    assert status == "failed"
    assert int(peak) < 180_000
