"""Capsules judged by two processes: the same verdict as by one, whatever happens to the second."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.runs import Members, SealedRun, codes_of, edited_line, judged, lines_of, packed, with_true_manifest

JUDGE = """
import json, os, sys
import aver
from aver.actions import sliced
sliced.PARALLEL_FROM, sliced.SLICE = 1, int(sys.argv[1])
forks = []
real = os.fork
def fork():
    forks.append(real())
    if forks[-1] and sys.argv[2] == "killed":
        os.kill(forks[-1], 9)
    return forks[-1]
os.fork = fork
if sys.argv[2] == "none":
    def fork():
        raise OSError(11, "no more processes")
    os.fork = fork
found = []
for path in sys.argv[4:]:
    verdict = aver.verify(path, keys=[sys.argv[3]])
    found.append([verdict.status, verdict.records, [[f.check, f.code, str(f.place)] for f in verdict.findings]])
print(json.dumps([len(forks), found]))
"""


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
def cases(sealed_run: SealedRun, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    members = sealed_run.members
    variants = [members]
    for at in (1, 3, 4, 7, 11):
        variants += [cut(members, at), changed(members, at), unsigned(members, at)]
    variants.append({**members, "capsules.jsonl": members["capsules.jsonl"].replace(b'"outcome', b'"Outcome')})
    variants.append({**members, "capsules.jsonl": b"{}\n[]\n\xff\n" + members["capsules.jsonl"]})
    directory = tmp_path_factory.mktemp("cases")
    paths = []
    for number, variant in enumerate(variants):
        paths.append(directory / f"{number}.cap")
        paths[-1].write_bytes(packed(with_true_manifest(variant) if number else variant))
    return paths


@pytest.mark.parametrize("helper", ["alive", "killed", "none"])
@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_two_processes_say_what_one_says(sealed_run: SealedRun, cases: list[Path], size: int, helper: str) -> None:
    command = [sys.executable, "-c", JUDGE, str(size), helper, sealed_run.key.ed25519, *map(str, cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    forks, found = json.loads(done.stdout)
    assert forks == (0 if helper == "none" else len(cases))
    for path, (status, records, findings) in zip(cases, found, strict=True):
        alone = judged(path.read_bytes(), sealed_run)
        assert (status, records) == (alone.status, alone.records), path
        expected = {
            (one.check, one.code, str(one.place)) for one in alone.findings if one.check in ("content", "signature")
        }
        assert expected <= {tuple(one) for one in findings}
        assert bool(codes_of(alone)) == any(status == "failed" for status in [status])
    assert found[0][0] == "verified"


def test_a_helper_is_not_forked_beside_other_threads(sealed_run: SealedRun, cases: list[Path]) -> None:
    script = "import threading, time; threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n" + JUDGE
    command = [sys.executable, "-c", script, "3", "alive", sealed_run.key.ed25519, str(cases[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [0, [["verified", 17, []]]]
