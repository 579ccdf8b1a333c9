"""CPU for inputs that try to cost much more than their size, beside SHA3-256 of the same bytes.

The forms are those of `tests/support/hostile_forms.py`. Each is verified in a process of its own. The CPU of a process
that verifies an input of one record is taken off, because starting Python does not depend on the input. A packed input
counts with its unpacked bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from measuring import Line

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.hostile_forms import FORMS, write_form

SIZE = 20_000_000
"""Bytes of each form."""

PACKED_SIZE = 500_000
"""Bytes of each form that is packed. It unpacks to two hundred times as many."""

TARGET = 50

_VERIFY = """
import json, resource, sys
from pathlib import Path
import aver
status = aver.verify(Path(sys.argv[1]), home=Path(sys.argv[2])).status
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([status, sum(one.ru_utime + one.ru_stime for one in used)]))
"""


def verify_apart(path: Path, home: Path) -> float:
    """The CPU seconds of a process that verifies an input, and of its workers. No hostile input may be accepted."""
    done = subprocess.run(
        [sys.executable, "-c", _VERIFY, str(path), str(home)], check=True, stdout=subprocess.PIPE, text=True
    )
    status, cpu = json.loads(done.stdout)
    if status not in ("failed", "empty"):
        raise SystemExit(f"{path} is {status}")
    return float(cpu)


def hash_seconds(size: int) -> float:
    data = bytes(1_000_000)
    began = time.process_time()
    for _ in range(20):
        hashlib.sha3_256(data).digest()
    return (time.process_time() - began) / 20_000_000 * size


def bench_hostile(directory: Path, *, quick: bool) -> list[Line]:
    lines = []
    for name in FORMS:
        place = directory / "hostile"
        place.mkdir()
        size = PACKED_SIZE if name.startswith(".cap") else SIZE // 4 if quick else SIZE
        path, read = write_form(name, place, size)
        small = place / "one.json"
        small.write_text("{}")
        bare = hash_seconds(read)
        start = min(verify_apart(small, place / "home") for _ in range(2))
        ours = max(verify_apart(path, place / "home") - start, 0.0)
        work = f"hostile input: {name}, {read / 1e6:.0f} MB"
        lines.append(
            Line(work, f"{bare:.2f} s (SHA3)", f"{ours:.2f} s", "–", f"{ours / bare:.1f} x SHA3", f"≤ {TARGET} x")
        )
        shutil.rmtree(place)
    return lines
