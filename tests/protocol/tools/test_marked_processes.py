"""The programs of a call bear its mark, and are ended by it when Aver's own process is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.protocol.tools.marked_processes import MARK, end_marked_processes, mark_processes
from aver.protocol.tools.processes import run_process, tool_environment
from aver.protocol.tools.tool import Limits

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a process's variables")

FIRST, SECOND = "0000aaaa-0000-4000-8000-000000000001", "0000aaaa-0000-4000-8000-000000000002"

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""
"""A program that starts another in a session of its own, says its number, and goes on."""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def start(code: str, mark: str) -> subprocess.Popen[str]:
    environment = {**os.environ, MARK: mark}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that ended and was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_program_of_a_call_bears_its_mark_and_no_other_does(tmp_path: Path) -> None:
    code = f"import os; print(os.environ.get({MARK!r}))"

    def run() -> bytes:
        argv, cwd = [sys.executable, "-c", code], str(tmp_path)
        return run_process(argv, cwd=cwd, environment=tool_environment(cwd), limits=Limits()).stdout

    with mark_processes(FIRST):
        assert run() == f"{FIRST}\n".encode()
    assert run() == b"None\n"


def test_all_processes_of_a_call_are_ended_and_those_of_another_go_on(started: list[subprocess.Popen[str]]) -> None:
    started += (start(FAMILY, FIRST), start("import time; print(0, flush=True); time.sleep(600)", SECOND))
    children = [int(process.stdout.readline()) for process in started if process.stdout]
    assert end_marked_processes(FIRST) == 2
    assert not is_alive(started[0].pid)
    assert not is_alive(children[0])
    assert is_alive(started[1].pid)
    assert end_marked_processes(FIRST) == 0


def test_a_process_does_not_end_itself(started: list[subprocess.Popen[str]]) -> None:
    """A command of a lost call may be the one that resumes the trace."""
    code = f"""
from aver.protocol.tools.marked_processes import end_marked_processes
print(end_marked_processes({FIRST!r}), flush=True)
"""
    started.append(start(code, FIRST))
    assert started[0].communicate(timeout=60)[0] == "0\n"
    assert started[0].returncode == 0
