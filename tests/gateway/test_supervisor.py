"""`aver gateway up`: all parts as child processes, which end together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aver.gateway.parts.supervisor import PartCommand, Supervisor
from support.apart import Town, open_town, write

PARTS = ("policy0", "policy1", "executor", "gateway")


class Running:
    """A running `aver gateway up`, whose words are read line by line."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aver", "gateway", "up", "--workspace", str(town.workspace)],
            env={**os.environ, "AVER_HOME": str(town.home)},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.words = ""
        self.children: dict[str, int] = {}

    def read_until(self, wanted: str) -> None:
        assert self.process.stderr is not None
        while wanted not in self.words:
            line = self.process.stderr.readline()
            assert line, self.words
            self.words += line
            if match := re.search(r"(\w+) starts as process (\d+)", line):
                self.children[match[1]] = int(match[2])

    def finish(self) -> int:
        assert self.process.stderr is not None
        self.words += self.process.stderr.read()
        return self.process.wait()


@contextmanager
def running(town: Town) -> Iterator[Running]:
    up = Running(town)
    try:
        up.read_until("all parts run")
        yield up
    finally:
        if up.process.poll() is None:
            up.process.terminate()
            up.finish()


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(processes: list[int]) -> None:
    while any(lives(process) for process in processes):
        time.sleep(0.02)


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with open_town() as opened:
        yield opened


@pytest.mark.more
def test_all_parts_run_answer_acts_and_end_with_a_signal(town: Town) -> None:
    """A part that is stopped does not keep the rest from ending."""
    with running(town) as up:
        assert up.children.keys() == set(PARTS)
        answer = town.client("gateway").post("/act", write(), {"Aver-Session": "s1"})
        assert answer["reason_code"] == "ALLOW"
        os.kill(up.children["policy0"], signal.SIGSTOP)
        up.process.send_signal(signal.SIGTERM)
        assert up.finish() == 0
        assert not any(lives(process) for process in up.children.values())
    assert not list((town.home / "gateway" / "run").glob("*.sock"))
    assert not [path for path in (town.home / "gateway" / "run").glob("*.lock") if ".sock." not in path.name]


@pytest.mark.more
def test_a_part_that_ends_at_once_is_told_and_ends_everything(town: Town) -> None:
    """Here the parts are commands that print something and end, so that no part has to be loaded."""
    told: list[str] = []
    commands = [PartCommand(part, ["--version"], town.client(part)) for part in ("executor", "gateway")]
    assert Supervisor(commands, told.append).run() == "executor"
    assert [line.partition(" ")[0] for line in told] == ["executor", "executor"]  # The door was not even started.
    assert "HAS ENDED, with exit code" in told[1]


@pytest.mark.more
@pytest.mark.parametrize("part", ["executor", "gateway"])
def test_a_part_that_dies_is_told_and_ends_the_rest(town: Town, part: str) -> None:
    with running(town) as up:
        os.kill(up.children[part], signal.SIGKILL)
        assert up.finish() == 3
        assert f"{part} (process {up.children[part]}) HAS ENDED, killed by signal 9" in up.words
        assert not any(lives(process) for process in up.children.values())


@pytest.mark.more
def test_no_part_outlives_a_supervisor_that_was_killed(town: Town) -> None:
    with running(town) as up:
        up.process.kill()
        up.finish()
        wait_for_end(list(up.children.values()))


@pytest.mark.more
def test_a_part_that_cannot_start_ends_everything(town: Town) -> None:
    path = town.directories.of("executor") / "program.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"balanced", b"strict"))
    try:
        up = Running(town)
        assert up.finish() == 3
    finally:
        path.write_bytes(whole)
    assert "was changed after it was pinned" in up.words
    assert "executor" in up.words
    assert "HAS ENDED" in up.words


@pytest.mark.more
def test_a_second_one_starts_nothing_and_leaves_the_first_alone(town: Town) -> None:
    with running(town) as first:
        second = Running(town)
        assert second.finish() == 3
        assert "runs already" in second.words
        assert "starts as process" not in second.words
        assert all(lives(process) for process in first.children.values())
        with town.open(session="beside") as gateway:
            assert gateway.act(write())["reason_code"] == "ALLOW"
