"""Inputs that try to cost much more than their size: a failed verdict, in bounded memory of the judging process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.hostile_forms import FORMS, write_form
from support.memory_peaks import KNOWN, PEAK

pytestmark = pytest.mark.skipif(not KNOWN, reason="this system does not tell how much memory a process needed")

MEMORY_MAX = 512_000
"""Kilobytes that verifying an input of up to 100 MB may take, in the process itself and in each of its workers."""

QUICK_MEMORY_MAX = 200_000
"""The same for the small inputs that every test run has."""

SCRIPT = (
    PEAK
    + """
import json, resource, sys
from pathlib import Path
import aver
verdict = aver.verify(Path(sys.argv[1]), home=Path(sys.argv[2]))
workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([verdict.status, max(peak_kb(), workers), verdict.records]))
"""
)

EMPTY = {"line feeds", "line feeds for actions", "bundle of spaces"}
"""The forms in which there is nothing: no success either."""


def judge_apart(name: str, directory: Path, size: int) -> tuple[str, int, int]:
    """The status, the peak in kilobytes and the number of records of a form, judged in a process of its own."""
    path, _ = write_form(name, directory, size)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(directory / "home")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    status, peak, records = json.loads(done.stdout)
    return status, peak, records


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", FORMS)
def test_a_small_hostile_input_fails_in_bounded_memory(name: str, tmp_path: Path) -> None:
    size = 60_000 if name.startswith(".cap") else 3_000_000
    status, peak, _ = judge_apart(name, tmp_path, size)
    assert status == ("empty" if name in EMPTY else "failed")
    assert peak < QUICK_MEMORY_MAX


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_a_hostile_input_of_the_largest_size_fails_in_bounded_memory(name: str, tmp_path: Path) -> None:
    # A .cap of 12 MB unpacks to as much as one member may have.
    size = 12_000_000 if name.startswith(".cap") else 100_000_000
    status, peak, _ = judge_apart(name, tmp_path, size)
    assert status == ("empty" if name in EMPTY else "failed")
    assert peak < MEMORY_MAX


@pytest.mark.parametrize(
    "name", ["empty objects, one on each line", "bundle of empty objects", "database of empty records", "empty actions"]
)
def test_reading_stops_after_a_thousand_records_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    from aver import verify

    verdict = verify(write_form(name, tmp_path, 100_000).path, home=tmp_path / "home")
    assert verdict.status == "failed"
    assert verdict.records <= 1001
    last = next(one for one in verdict.findings if one.code == "NOT_READ")
    assert "the rest was not read" in last.words


def test_a_database_with_a_huge_hole_is_too_large(tmp_path: Path) -> None:
    import sqlite3

    path, pages = tmp_path / "capsules.db", 2**31 - 2
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("CREATE TABLE capsules (canonical TEXT, hash TEXT, signature TEXT, sequence INTEGER)")
    connection.commit()
    connection.close()
    with path.open("r+b") as file:
        file.seek(28)  # The header's number of pages.
        file.write(pages.to_bytes(4, "big"))
        try:
            file.truncate(pages * 512)
        except OSError:
            pytest.skip("this file system has no files with holes of a terabyte")
    script = f"{SCRIPT}\nprint([finding.words for finding in verdict.findings])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(tmp_path / "home")], capture_output=True, text=True, check=True
    )
    first, words = done.stdout.splitlines()
    status, peak, _ = json.loads(first)
    assert (status, peak < QUICK_MEMORY_MAX) == ("failed", True), peak
    assert "too large" in words
