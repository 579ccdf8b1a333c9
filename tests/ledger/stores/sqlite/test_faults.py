"""Faults around a ledger's file: it is moved away, a commit fails, a process dies, a signal interrupts a caller."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import aver.ledger.stores.sqlite.connections as connections
from aver import Capsule, Exists, Ledger, Sealed, Unavailable, open_ledger, verify
from aver.errors import OutcomeUnknown
from aver.files.locks import find_lock_holder, open_lock_file, try_lock
from aver.ledger.formats import open_subject
from aver.ledger.stores.protocol import NotALedger

pytestmark = pytest.mark.sqlite

CHAIN = "demo.faults"


def draft() -> Capsule:
    return Capsule(type="tool")


@pytest.fixture
def ledger(aver_home: Path) -> Iterator[Ledger]:
    with open_ledger() as opened:
        opened.append(CHAIN, draft())
        yield opened


# --- the file goes away


def delete(path: Path) -> None:
    path.rename(path.with_suffix(".kept"))


def replace_by_copy(path: Path) -> None:
    path.rename(path.with_suffix(".kept"))
    shutil.copyfile(path.with_suffix(".kept"), path)


@pytest.mark.parametrize("fault", [delete, replace_by_copy])
def test_no_record_goes_into_a_file_that_is_gone(
    ledger: Ledger, aver_home: Path, fault: Callable[[Path], None]
) -> None:
    path = aver_home / "ledger.db"
    fault(path)
    for _ in range(3):
        with pytest.raises(Unavailable, match="while this process had it open"):
            ledger.append(CHAIN, draft())
    for look in (ledger.verify, lambda: list(ledger.read(CHAIN)), lambda: ledger.head(CHAIN)):
        with pytest.raises(Unavailable, match="while this process had it open"):
            look()  # type: ignore[operator]
    path.with_suffix(".kept").replace(path)
    assert ledger.append(CHAIN, draft()).sequence == 1
    assert ledger.verify().status == "verified"


def test_no_record_goes_into_a_log_that_is_gone(ledger: Ledger, aver_home: Path) -> None:
    log = aver_home / "ledger.db-wal"
    log.rename(log.with_suffix(".kept"))
    with pytest.raises(Unavailable, match=r"ledger\.db-wal was deleted or moved away"):
        ledger.append(CHAIN, draft())
    log.with_suffix(".kept").rename(log)
    assert ledger.append(CHAIN, draft()).sequence == 1


def test_a_file_that_goes_away_during_a_transaction(ledger: Ledger, aver_home: Path) -> None:
    path = aver_home / "ledger.db"
    with pytest.raises(Unavailable, match="while this process had it open"), ledger.store.transaction():
        path.rename(path.with_suffix(".kept"))
    path.with_suffix(".kept").rename(path)
    assert ledger.head(CHAIN).count == 1


# --- a commit fails


class FailingConnection(sqlite3.Connection):
    """Fails in COMMIT as if the disk did: before the commit, or after it."""

    fault = ""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and FailingConnection.fault and self.in_transaction and self.total_changes:
            fault, FailingConnection.fault = FailingConnection.fault, ""
            if fault == "after":
                super().execute(sql)
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *arguments)


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_commit_that_fails_is_called_unknown(aver_home: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        connections.sqlite3, "connect", lambda *given, **named: connect(*given, factory=FailingConnection, **named)
    )
    with open_ledger() as ledger:
        ledger.append(CHAIN, draft())
        FailingConnection.fault = fault
        with pytest.raises(OutcomeUnknown, match="not known whether") as caught:
            ledger.append(CHAIN, draft(), key="once")
        assert "same key" in caught.value.advice
        assert "nothing was recorded" not in str(caught.value)
        if fault == "after":
            with pytest.raises(Exists):
                ledger.append(CHAIN, draft(), key="once")
        else:
            ledger.append(CHAIN, draft(), key="once")
        assert ledger.head(CHAIN).count == 2
        assert ledger.verify().status == "verified"


# --- a process dies


DYING_PARENT = """
import os, signal, sys, time
import aver
ledger = aver.open_ledger()
ledger.append("demo.faults", aver.Capsule(type="tool"))
child = os.fork()
if child == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdin.read()  # Lives until the test closes this end.
    os._exit(0)
with ledger.store.transaction():
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_does_not_keep_the_lock_of_a_parent_that_died(aver_home: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", DYING_PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    try:
        child = int(parent.stdout.readline())
        assert parent.wait() == -signal.SIGKILL
        os.kill(child, 0)  # It lives.
        (aver_home / "config.toml").write_text("lock_timeout = 2\n")
        with open_ledger() as ledger:
            assert ledger.append(CHAIN, draft()).sequence == 1
    finally:
        parent.stdin.close()


def test_the_message_names_the_process_that_has_the_lock(ledger: Ledger, aver_home: Path) -> None:
    lock = open_lock_file(aver_home / "ledger.db.lock")
    assert find_lock_holder(lock) is None
    assert try_lock(lock)
    try:
        (aver_home / "config.toml").write_text("lock_timeout = 0.05\n")
        with open_ledger() as other, pytest.raises(Unavailable, match=f"process {os.getpid()} has held"):
            other.append(CHAIN, draft())
    finally:
        os.close(lock)


# --- signals


class Alarm(Exception):
    """Raised by a signal's handler, as a program's own time limit is."""


@pytest.mark.more
def test_a_signal_in_any_line_leaves_the_queue_working(ledger: Ledger) -> None:
    """Threads append while a timer interrupts the main thread. Every caller gets an answer, and it is true."""
    kept: list[str] = []
    lost: list[str] = []
    stop = threading.Event()

    def work(thread: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            key = f"t{thread}-{number}"
            try:
                ledger.append(CHAIN, draft(), key=key)
                kept.append(key)
            except OutcomeUnknown:
                pass
            except Alarm:  # It struck while the main thread sealed this record for this thread.
                lost.append(key)

    def interrupt(*_: object) -> None:
        raise Alarm

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    before = signal.signal(signal.SIGALRM, interrupt)
    for thread in threads:
        thread.start()
    try:
        for number in range(150):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + (number % 40) * 0.0002)
            try:
                for step in range(20):
                    ledger.append(CHAIN, draft(), key=f"main-{number}-{step}")
                    kept.append(f"main-{number}-{step}")
            except Alarm:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
        stop.set()
        for thread in threads:
            thread.join()
    assert len(kept) > 20  # On a busy machine the alarm often strikes before the first append is done.
    for key in kept:
        assert isinstance(ledger.get(key), Sealed)
    for key in lost:
        assert ledger.get(key) is None
    assert ledger.verify().status == "verified"


# --- a newer version


def test_nothing_is_written_to_a_ledger_that_a_newer_version_has_taken_over(ledger: Ledger, aver_home: Path) -> None:
    with closing(sqlite3.connect(aver_home / "ledger.db", isolation_level=None)) as newer:
        (version,) = newer.execute("PRAGMA user_version").fetchone()
        newer.execute(f"PRAGMA user_version = {version + 1}")
        for _ in range(2):
            with pytest.raises(NotALedger, match=r"newer Aver.*nothing was recorded"):
                ledger.append(CHAIN, draft())
        with pytest.raises(NotALedger, match="newer Aver"):
            open_ledger()
        assert newer.execute("SELECT count(*) FROM records WHERE chain <> 1").fetchone() == (1,)
        newer.execute(f"PRAGMA user_version = {version}")
    assert ledger.append(CHAIN, draft()).sequence == 1
    assert ledger.verify().status == "verified"


# --- locks of SQLite


OTHER_WRITER = """
import aver
with aver.open_ledger() as ledger:
    ledger.append("demo.faults", aver.Capsule(type="tool"))
"""


@pytest.mark.parametrize("look", ["open", "verify", "read the beginning"])
def test_looking_at_the_file_does_not_drop_the_locks_of_an_open_ledger(
    ledger: Ledger, aver_home: Path, look: str
) -> None:
    """Another process that closes the ledger must not take this one for gone, and remove its log."""
    path = aver_home / "ledger.db"
    for number in range(3):
        if look == "open":
            with open_ledger() as second:
                second.head(CHAIN)
        elif look == "verify":
            assert verify(path).status == "verified"
        else:
            assert open_subject(path) is not None
        subprocess.run([sys.executable, "-c", OTHER_WRITER], check=True)
        assert ledger.append(CHAIN, draft()).sequence == 2 * number + 2
    with open_ledger() as after:
        assert after.head(CHAIN).count == 7
