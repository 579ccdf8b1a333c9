"""Programs run without a shell, within limits, and leave nothing behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from aver.protocol.tools.processes import run_process, tool_environment
from aver.protocol.tools.tool import Limits


def run(code: str, cwd: Path, *, given: bytes = b"", seconds: float = 30.0, output_max: int = 1 << 20):
    return run_process(
        [sys.executable, "-c", code],
        cwd=str(cwd),
        environment=tool_environment(str(cwd)),
        limits=Limits(seconds=seconds, output_max=output_max),
        given=given,
    )


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that ended and was not reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> bool:
    for _ in range(200):
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_program_gives_its_output_and_code(tmp_path: Path) -> None:
    end = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", tmp_path)
    assert (end.exit_code, end.stdout, end.stderr, end.cut, end.reason) == (3, b"out\n", b"err\n", (), "exited")


def test_nothing_expands_the_words(tmp_path: Path) -> None:
    words = ["$HOME", "*", "a; touch b", "`id`"]
    argv = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *words]
    end = run_process(argv, cwd=str(tmp_path), environment=tool_environment(str(tmp_path)), limits=Limits())
    assert end.stdout.decode().strip() == repr(words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.more
def test_a_silent_program_is_ended_with_its_children(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    end = run(code, tmp_path, seconds=2.0)
    assert (end.reason, end.exit_code) == ("timeout", None)
    assert wait_until_gone(int(end.stdout))


@pytest.mark.more
def test_a_child_that_is_left_behind_is_ended_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)"
    )
    end = run(code, tmp_path)
    assert (end.reason, end.exit_code) == ("exited", 0)
    assert wait_until_gone(int(end.stdout))


@pytest.mark.more
def test_a_program_that_ignores_the_first_signal_is_ended(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(600)"
    )
    end = run(code, tmp_path, seconds=1.0)
    assert end.reason == "timeout"
    assert wait_until_gone(int(end.stdout))


def test_output_is_cut_and_the_cut_is_named(tmp_path: Path) -> None:
    end = run("print('x' * 5000)", tmp_path, output_max=1000)
    assert (end.stdout, end.cut, end.exit_code) == (b"x" * 1000, ("stdout",), 0)


def test_a_flood_is_ended(tmp_path: Path) -> None:
    end = run("import sys\nwhile True: sys.stdout.write('x' * 65536)", tmp_path, output_max=1000)
    assert (end.reason, len(end.stdout), end.cut) == ("flood", 1000, ("stdout",))


@pytest.mark.more
def test_a_program_that_closes_its_streams_is_still_bounded(tmp_path: Path) -> None:
    end = run("import os, time; os.close(1); os.close(2); time.sleep(600)", tmp_path, seconds=1.0)
    assert end.reason == "timeout"


def test_a_program_gets_its_input_and_may_ignore_it(tmp_path: Path) -> None:
    big = b"y" * 300_000
    assert run("import sys; print(len(sys.stdin.buffer.read()))", tmp_path, given=big).stdout == b"300000\n"
    assert run("pass", tmp_path, given=big).exit_code == 0


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run("import os; os.kill(os.getpid(), 9)", tmp_path).exit_code == -9


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no program"):
        run_process(["no-such-program"], cwd=str(tmp_path), environment={"PATH": "/usr/bin"}, limits=Limits())


def test_tokens_and_settings_of_aver_stay_here(tmp_path: Path) -> None:
    given = {"PATH": "/usr/bin", "HOME": "/home/a", "GITHUB_TOKEN": "t", "AVER_HOME": "/x", "LD_PRELOAD": "/y.so"}
    found = tool_environment(str(tmp_path), given)
    assert found.keys() & given.keys() == {"PATH", "HOME"}


def test_a_program_in_the_workspace_does_not_take_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "ls"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), "bin", ".", "/usr/bin", "/bin"])
    environment = tool_environment(str(tmp_path), {"PATH": path})
    assert environment["PATH"] == "/usr/bin:/bin"
    end = run_process(["ls"], cwd=str(tmp_path), environment=environment, limits=Limits())
    assert end.stdout == b"bin\n"
