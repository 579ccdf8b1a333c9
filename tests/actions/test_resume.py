"""What a crash, a full disk, another writer or a wrong clock leaves: nothing lost, nothing forked, nothing doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import AgentRuntime, IntegrityError, Unavailable
from support.many_cases import first_now
from support.runs import record_actions

ACTIONS = "actions.jsonl"


def text_of(directory: Path) -> bytes:
    return (directory / ACTIONS).read_bytes()


def held(directory: Path, count: int | None = None) -> AgentRuntime:
    """Open a run again, and hold its file to the ledger."""
    run = AgentRuntime(directory)
    lines = text_of(directory).splitlines()
    assert [json.loads(line)["action_id"] for line in lines] == [action.action_id for action in run.actions]
    assert count is None or len(lines) == count
    verdict = run.verify()
    assert verdict.status in ("qualified", "verified"), verdict.to_dict()
    assert verdict.first_bad is None
    return run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 5)
    run.close()
    return tmp_path / "run"


def test_a_run_goes_on(directory: Path) -> None:
    run = held(directory, 5)
    record_actions(run, 2)
    run.finalize()
    assert aver.verify(directory).status == "verified"
    run.close()


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_missing_lines_are_written_from_the_ledger(directory: Path, kept: int) -> None:
    whole = text_of(directory)
    (directory / ACTIONS).write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
    held(directory, 5).close()
    assert text_of(directory) == whole


def test_every_torn_end_is_mended(directory: Path) -> None:
    whole = text_of(directory)
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in (*range(last - 3, last + 4), *range(last, len(whole), 50), len(whole) - 1):
        (directory / ACTIONS).write_bytes(whole[:size])
        AgentRuntime(directory).close()
        assert text_of(directory) == whole, size


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"\n", b"\n\n\n", b"garbage", b"garbage\n", b"\0\n\0\n", b"{}\n", b"\xff" * 9]
)
@pytest.mark.parametrize("kept", [0, 2, 5])
def test_what_a_power_cut_leaves_behind_the_last_line(directory: Path, tail: bytes, kept: int) -> None:
    whole = text_of(directory)
    (directory / ACTIONS).write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]) + tail)
    held(directory, 5).close()
    assert text_of(directory) == whole


def test_a_file_that_was_removed_is_written_anew(directory: Path) -> None:
    whole = text_of(directory)
    (directory / ACTIONS).unlink()
    held(directory, 5).close()
    assert text_of(directory) == whole


@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_whole_line_that_says_something_else_is_no_accident(directory: Path, at: int) -> None:
    lines = text_of(directory).splitlines(keepends=True)
    lines[at] = lines[at].replace(b'"success":true', b'"success":false')
    changed = b"".join(lines)
    (directory / ACTIONS).write_bytes(changed)
    with pytest.raises(IntegrityError, match=f"line {at + 1} "):
        AgentRuntime(directory)
    assert text_of(directory) == changed
    assert aver.verify(directory).status == "failed"


def test_a_line_that_is_changed_while_the_run_goes_on(directory: Path) -> None:
    """The action is sealed all the same, and told as such; the run is not sealed on top of a file that was changed."""
    run = AgentRuntime(directory)
    (directory / ACTIONS).write_bytes(text_of(directory).replace(b'"success":true', b'"success":false', 2))
    record_actions(run, 1)
    assert isinstance(run.trouble, IntegrityError)
    with pytest.raises(IntegrityError):
        run.finalize()
    assert run.last_capsule is None
    (directory / ACTIONS).unlink()
    run.close()
    again = held(directory, 6)
    assert again.finalize()["verdict"] == "verified"
    again.close()


def test_lines_beyond_the_ledger_are_no_accident(directory: Path, tmp_path: Path) -> None:
    other = AgentRuntime(tmp_path / "other")
    record_actions(other, 1)
    other.close()
    with (directory / ACTIONS).open("ab") as file:
        file.write(text_of(tmp_path / "other"))
    with pytest.raises(IntegrityError):
        AgentRuntime(directory)
    assert aver.verify(directory).status == "failed"


def test_a_ledger_that_was_changed_stops_the_run(directory: Path, aver_home: Path) -> None:
    import sqlite3

    database = sqlite3.connect(aver_home / "ledger.db")
    for (name,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
        database.execute(f'drop trigger "{name}"')
    table = next(
        name
        for (name,) in database.execute("select name from sqlite_master where type = 'table'").fetchall()
        if "canonical" in {row[1] for row in database.execute(f'pragma table_info("{name}")')}
    )
    database.execute(f"update {table} set canonical = replace(canonical, 'step 2', 'step 9')")
    database.commit()
    database.close()
    with pytest.raises(IntegrityError):
        AgentRuntime(directory)


def test_links_in_the_place_of_files_are_not_followed(directory: Path, tmp_path: Path) -> None:
    (directory / ACTIONS).rename(tmp_path / "elsewhere")
    (directory / ACTIONS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        AgentRuntime(directory)
    (directory / ACTIONS).unlink()
    (directory / "run.json").rename(tmp_path / "run.json")
    (directory / "run.json").symlink_to(tmp_path / "run.json")
    with pytest.raises(aver.BadInput):
        AgentRuntime(directory)


# --- killed


WRITER = """
import sys
from aver import AgentRuntime
run = AgentRuntime(sys.argv[1])
while True:
    print(run.record_simple("command", "do", {}, "x" * 50, metadata={"pad": "y" * 500}), flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 20])
def test_a_killed_process_loses_nothing_it_was_told(tmp_path: Path, aver_home: Path, after: int) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    told = [writer.stdout.readline().strip() for _ in range(after)]
    writer.send_signal(signal.SIGKILL)
    told += writer.stdout.read().split()
    writer.wait()
    told = [receipt for receipt in told if len(receipt) == 64]
    run = held(tmp_path / "run")
    receipts = [json.loads(line)["receipt_hash"] for line in text_of(tmp_path / "run").splitlines()]
    assert receipts[: len(told)] == told
    assert len(receipts) <= len(told) + 1
    record_actions(run, 2)
    assert run.finalize()["verdict"] == "verified"
    run.close()


SEALER = """
import os, sys
from aver import AgentRuntime
import aver.actions.finalize as finalize
run = AgentRuntime(sys.argv[1])
step = int(sys.argv[2])
count = 0
def counted(function):
    def wrapper(*given, **named):
        global count
        count += 1
        if count > step:
            os.kill(os.getpid(), 9)
        return function(*given, **named)
    return wrapper
for name in ("open_replacement", "replace_file", "sign_statement", "pack_run"):
    setattr(finalize, name, counted(getattr(finalize, name)))
type(run._ledger).close_chain = counted(type(run._ledger).close_chain)
run.finalize()
"""


@pytest.mark.parametrize("step", first_now(range(8), 2))
def test_killed_while_sealing(directory: Path, step: int) -> None:
    done = subprocess.run([sys.executable, "-c", SEALER, str(directory), str(step)], check=False)
    assert done.returncode == -signal.SIGKILL
    run = AgentRuntime(directory)
    if run.last_capsule is None:
        run.finalize()
    run.close()
    assert aver.verify(directory).status == "verified"
    assert aver.verify(directory / "run.cap").status == "verified"


# --- several writers


def test_threads_share_a_runtime(tmp_path: Path) -> None:
    run = AgentRuntime(tmp_path / "run")
    threads = [threading.Thread(target=record_actions, args=(run, 10)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close()
    held(tmp_path / "run", 40).close()


def test_two_runtimes_in_one_process(tmp_path: Path) -> None:
    one, other = AgentRuntime(tmp_path / "run"), AgentRuntime(tmp_path / "run")
    assert one.run_id == other.run_id
    for _ in range(5):
        record_actions(one, 1)
        record_actions(other, 2)
    assert len(text_of(tmp_path / "run").splitlines()) == 15
    one.finalize()
    with pytest.raises(aver.Refused):
        record_actions(other, 1)
    assert aver.verify(tmp_path / "run").status == "verified"
    one.close()
    other.close()


@pytest.mark.more
def test_processes_on_one_run(tmp_path: Path, aver_home: Path) -> None:
    script = """
import sys
from aver import AgentRuntime
run = AgentRuntime(sys.argv[1])
for _ in range(25):
    print(run.record_simple("command", "do", {}, "out"))
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    receipts = [receipt for writer in writers for receipt in writer.communicate()[0].split()]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(set(receipts)) == 75
    run = held(tmp_path / "run", 75)
    assert {json.loads(line)["receipt_hash"] for line in text_of(tmp_path / "run").splitlines()} == set(receipts)
    assert run.finalize()["verdict"] == "verified"
    run.close()


# --- the disk and the clock


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_costs_no_action_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 2)
    full = os.open("/dev/full", os.O_RDWR)
    real = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda _, data, at: real(full, data, at))
        receipts = record_actions(run, 2)
    assert isinstance(run.trouble, Unavailable)
    assert run.action_count == 4
    os.close(full)
    receipts += record_actions(run, 1)
    assert run.trouble is None
    assert [json.loads(line)["receipt_hash"] for line in text_of(tmp_path / "run").splitlines()][2:] == receipts
    assert run.finalize()["verdict"] == "verified"
    run.close()


def test_a_write_that_stops_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 1)
    real, calls = os.pwrite, [0]

    def stopping(handle: int, data: bytes, at: int) -> int:
        calls[0] += 1
        if calls[0] > 1:
            raise OSError(28, "No space left on device")
        return real(handle, data[:100], at)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", stopping)
        record_actions(run, 1)
    assert run.trouble is not None
    record_actions(run, 1)
    run.close()
    held(tmp_path / "run", 3).close()


def test_a_ledger_that_cannot_be_written_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AgentRuntime(tmp_path / "run")
    record_actions(run, 1)

    def failing(*_: Any, **__: Any) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(run._ledger, "append", failing)
        with pytest.raises(Unavailable):
            record_actions(run, 1)
    assert run.action_count == len(text_of(tmp_path / "run").splitlines()) == 1
    record_actions(run, 1)
    run.close()
    held(tmp_path / "run", 2).close()


def test_a_clock_that_goes_backwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aver import clock

    times = iter(f"2026-05-{31 - number:02d}T09:00:00+00:00" for number in range(30))
    run = AgentRuntime(tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(clock, "now", lambda: next(times))
        record_actions(run, 5)
    stamps = [action.timestamp for action in run.actions]
    assert stamps == sorted(stamps, reverse=True)
    assert run.finalize()["verdict"] == "verified"
    run.close()


FILLER = """
import sys
from aver import AgentRuntime, Unavailable
try:
    run = AgentRuntime(sys.argv[1])
    for _ in range(2000):
        print(run.record_simple("command", "do", {}, "x", metadata={"pad": "y" * 2000}), flush=True)
except Unavailable as error:
    print("unavailable", flush=True)
"""


@pytest.mark.parametrize("size", ["300k", "700k", "1500k"])
def test_a_disk_that_fills_up(tmp_path: Path, aver_home: Path, size: str) -> None:
    """The ledger and the run on a disk that is soon full: what was told is there, and the run goes on later."""
    from support.faults.small_disk import enlarge, small_disk

    with small_disk(tmp_path / "disk", size):
        environment = {**os.environ, "AVER_HOME": str(tmp_path / "disk" / "home")}
        command = [sys.executable, "-c", FILLER, str(tmp_path / "disk" / "run")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        *told, last = done.stdout.split()
        assert last == "unavailable"
        enlarge(tmp_path / "disk", "64m")
        with aver.open_ledger(home=tmp_path / "disk" / "home") as ledger:
            run = AgentRuntime(tmp_path / "disk" / "run", ledger=ledger)
            receipts = [json.loads(line)["receipt_hash"] for line in text_of(tmp_path / "disk" / "run").splitlines()]
            assert receipts[: len(told)] == told
            assert len(receipts) <= len(told) + 1
            record_actions(run, 1)
            assert run.finalize()["verdict"] == "verified"
            run.close()
