"""Full disks, files that may only be read, locks held by others: a clear error, and work goes on afterwards."""

from __future__ import annotations

import fcntl
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import AverError, Capsule, Unavailable, open_ledger
from support.faults.small_disk import enlarge, small_disk

CHAIN = "demo.disk"


def in_child(work: Callable[[], Any], *, prepare: Callable[[], Any] = lambda: None) -> str:
    """What work returns, or the class and text of what it raises, in a process of its own that may lose its rights."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            signal.alarm(60)
            try:
                prepare()
                said = f"ok {work()}"
            except BaseException as error:
                said = f"{type(error).__name__} {error}"
            os.write(into, said.encode()[:4000])
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, said
    return said


def append() -> int:
    with open_ledger() as ledger:
        return ledger.append(CHAIN, Capsule(type="tool", outcome={"result": "x" * 9000})).sequence


def fill() -> str:
    """Append until it fails; how many were acknowledged, and how it failed."""
    done = 0
    with open_ledger() as ledger:
        try:
            while done < 10_000:
                ledger.append(CHAIN, Capsule(type="tool", outcome={"result": "x" * 9000}))
                done += 1
        except Unavailable as error:
            assert ledger.verify().status == "verified"
            return f"{done} {error}"
    return f"{done} never failed"


def test_a_limit_on_file_size(aver_home: Path) -> None:
    import resource

    with open_ledger() as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    said = in_child(fill, prepare=limit)
    assert said.startswith("ok "), said
    done = int(said.split()[1])
    assert 5 < done < 200
    # The log could not be written at the end of a commit. Here nothing of it was kept, but only a recovery can tell.
    assert "cannot be used" in said or "not known whether" in said
    with open_ledger() as ledger:
        assert ledger.head(CHAIN).count == done + 1
        assert ledger.verify().status == "verified"
    assert append() == done + 1


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "2m"):
        monkeypatch.setenv("AVER_HOME", str(disk / "home"))
        said = in_child(fill)
        done = int(said.split()[1])
        assert done > 10
        assert "never failed" not in said
        with open_ledger() as ledger:
            assert ledger.head(CHAIN).count == done
            assert ledger.verify().status == "verified"
            with pytest.raises(Unavailable):
                ledger.append_many(CHAIN, [Capsule(type="tool", outcome={"result": "x" * 9000}) for _ in range(100)])
            assert ledger.head(CHAIN).count == done
        enlarge(disk, "16m")
        assert append() == done
        with open_ledger() as ledger:
            assert ledger.verify().status == "verified"


def test_a_disk_that_is_full_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "64k"):
        try:
            (disk / "ballast").write_bytes(b"x" * 60_000)
        except OSError:
            pass
        monkeypatch.setenv("AVER_HOME", str(disk / "home"))
        assert in_child(append).startswith("Unavailable")
        (disk / "ballast").unlink()
        enlarge(disk, "16m")
        assert append() == 0


# --- rights


def nobody(home: Path) -> Callable[[], None]:
    """Give the home to an ordinary user, and become that user: root may do anything and so shows nothing."""
    if os.geteuid() != 0:
        return lambda: None
    user = pwd.getpwnam("nobody")
    for path in [home, *home.rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)
    for parent in home.parents:
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)

    def become() -> None:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)

    return become


def prepared_home(aver_home: Path) -> None:
    with open_ledger() as ledger:
        for _ in range(3):
            ledger.append(CHAIN, Capsule(type="tool"))


def verdict() -> str:
    with open_ledger(create=False) as ledger:
        found = ledger.verify()
        return f"{found.status} {found.records} {len(list(ledger.read(CHAIN)))}"


def test_a_file_that_may_only_be_read(aver_home: Path) -> None:
    prepared_home(aver_home)
    become = nobody(aver_home)
    (aver_home / "ledger.db").chmod(0o400)
    said = in_child(append, prepare=become)
    assert said.startswith("Unavailable"), said
    assert "may only be read" in said
    assert in_child(verdict, prepare=become) == "ok verified 4 3"
    for path in aver_home.glob("ledger.db*"):  # SQLite gives its index the mode of the file
        path.chmod(0o600)
    assert in_child(append, prepare=become) == "ok 3"


def test_a_directory_that_may_only_be_read(aver_home: Path) -> None:
    prepared_home(aver_home)
    become = nobody(aver_home)
    for name in (".", "keys"):
        (aver_home / name).chmod(0o500)
    said = in_child(append, prepare=become)
    assert said.startswith("Unavailable"), said
    assert in_child(verdict, prepare=become) == "ok verified 4 3"
    for name in (".", "keys"):
        (aver_home / name).chmod(0o700)
    assert in_child(append, prepare=become) == "ok 3"


WRITE_ONCE = """
import sys, time
from aver import Capsule, open_ledger
with open_ledger(sys.argv[1]) as ledger:
    ledger.append("demo.disk", Capsule(type="tool"))
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_reader_without_rights_sees_what_is_written_meanwhile(aver_home: Path, tmp_path: Path) -> None:
    """It reads a quiet file as it lies; once someone writes, it must not go on showing yesterday's ledger."""
    if os.geteuid() != 0:
        pytest.skip("needs a second user who may write")
    prepared_home(aver_home)
    become = nobody(aver_home)
    for name in (".", "keys"):
        (aver_home / name).chmod(0o555)
    (aver_home / "ledger.db").chmod(0o444)
    done, go = os.pipe(), os.pipe()

    def work() -> str:
        with open_ledger(create=False) as ledger:
            before = ledger.head(CHAIN).count
            os.write(done[1], b"x")
            os.read(go[0], 1)
            try:
                return f"{before} {ledger.head(CHAIN).count}"
            except AverError as error:
                return f"{before} {type(error).__name__}"

    result: list[str] = []
    reader = threading.Thread(target=lambda: result.append(in_child(work, prepare=become)))
    reader.start()
    os.read(done[0], 1)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_ONCE, str(aver_home / "ledger.db")],
        env={**os.environ, "AVER_HOME": str(tmp_path / "writer")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"written\n"
    os.write(go[1], b"x")
    reader.join()
    writer.communicate()
    assert result[0] in ("ok 3 4", "ok 3 Unavailable")


def test_a_directory_that_may_not_be_entered(aver_home: Path) -> None:
    prepared_home(aver_home)
    become = nobody(aver_home)
    (aver_home).chmod(0o000)
    for work in (append, verdict):
        said = in_child(work, prepare=become)
        assert said.split()[0] in ("Unavailable", "BadInput", "NotFound"), said
    aver_home.chmod(0o700)
    assert in_child(append, prepare=become) == "ok 3"


def test_a_home_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir(mode=0o500)
    monkeypatch.setenv("AVER_HOME", str(blocked / "home"))
    become = nobody(blocked)
    said = in_child(append, prepare=become)
    assert said.startswith("Unavailable"), said
    assert "AVER_HOME" in said


def test_a_home_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv("AVER_HOME", str(home))
        with pytest.raises(AverError):
            append()


# --- locks


HOLDER = """
import fcntl, os, sys
handles = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in sys.argv[1:]]
for handle in handles:
    fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(*paths: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock, until the context ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, *map(str, paths)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield holder
    finally:
        holder.stdin.close()
        holder.wait()


@pytest.mark.parametrize("name", ["ledger.db.lock", "ledger.db.gate"])
def test_a_lock_held_by_another_process(aver_home: Path, name: str) -> None:
    prepared_home(aver_home)
    (aver_home / "config.toml").write_text("lock_timeout = 0.2\n")
    with open_ledger() as ledger:
        with held_elsewhere(aver_home / name):
            for _ in range(2):
                with pytest.raises(Unavailable) as caught:
                    ledger.append(CHAIN, Capsule(type="tool"))
                assert "lock" in str(caught.value)
                assert str(aver_home) in str(caught.value)
            assert ledger.head(CHAIN).count == 3
            assert ledger.verify().status == "verified"  # reading needs no lock
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 3
        assert ledger.verify().status == "verified"


class Interrupted(Exception):
    pass


def test_a_wait_that_was_interrupted_leaves_nothing_locked(aver_home: Path) -> None:
    """Ctrl-C while waiting for the lock: when it is free again, others can have it."""
    prepared_home(aver_home)
    said, go = os.pipe(), os.pipe()

    def work() -> str:
        def interrupt(*_: object) -> None:
            raise Interrupted

        signal.signal(signal.SIGUSR1, interrupt)
        with open_ledger() as ledger:
            os.read(go[0], 1)
            os.write(said[1], b"w")
            try:
                ledger.append(CHAIN, Capsule(type="tool"))
            except Interrupted:
                os.write(said[1], b"i")
                os.read(go[0], 1)  # stay alive, idle, with the ledger open
                return "interrupted"
        return "not interrupted"

    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            status = 0 if work() == "interrupted" else 2
        finally:
            os._exit(status)
    with held_elsewhere(aver_home / "ledger.db.lock"):
        os.write(go[1], b"x")
        assert os.read(said[0], 1) == b"w"
        time.sleep(0.2)  # by then it waits
        os.kill(child, signal.SIGUSR1)
        assert os.read(said[0], 1) == b"i"
    (aver_home / "config.toml").write_text("lock_timeout = 5\n")
    with open_ledger() as ledger:
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 3
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_file_left_behind_means_nothing(aver_home: Path) -> None:
    prepared_home(aver_home)
    for name in ("ledger.db.lock", "ledger.db.gate"):
        (aver_home / name).write_text("pid 1\n")
    holder_died = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(aver_home / "ledger.db.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder_died.stdout is not None
    holder_died.stdout.readline()
    holder_died.kill()
    holder_died.wait()
    assert append() == 3


def test_a_database_locked_by_another_program(aver_home: Path) -> None:
    """A program that does not know Aver's lock file, such as a database browser with an open transaction."""
    import sqlite3

    prepared_home(aver_home)
    other = sqlite3.connect(aver_home / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (aver_home / "config.toml").write_text("lock_timeout = 0.2\n")
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"
        with pytest.raises(Unavailable) as caught:
            ledger.append(CHAIN, Capsule(type="tool"))
        assert "locked" in str(caught.value)
        other.execute("ROLLBACK")
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 3
    other.close()


def test_the_lock_is_held_while_writing_and_not_otherwise(aver_home: Path) -> None:
    prepared_home(aver_home)
    with open_ledger() as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        handle = os.open(aver_home / "ledger.db.lock", os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(handle, fcntl.LOCK_UN)
        with ledger.store.transaction(), pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)
