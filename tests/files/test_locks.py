"""Locks by `flock`: who excludes whom, for how long a waiter waits, and what a replaced lock file means."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from aver.errors import Unavailable
from aver.files.locks import (
    Pace,
    is_same_file,
    lock,
    lock_directory,
    open_lock_file,
    try_lock,
    unlock,
    wait_until,
)


def test_exclusive_excludes_all_and_shared_excludes_exclusive(tmp_path: Path) -> None:
    one, two = open_lock_file(tmp_path / "lock"), open_lock_file(tmp_path / "lock")
    try:
        assert try_lock(one)
        assert not try_lock(two)
        assert not try_lock(two, shared=True)
        unlock(one)
        assert try_lock(two, shared=True)
        assert try_lock(one, shared=True)
        assert not try_lock(one)
    finally:
        os.close(one)
        os.close(two)


def test_waiting_ends_when_the_holder_lets_go_or_time_is_up(tmp_path: Path) -> None:
    one, two = open_lock_file(tmp_path / "lock"), open_lock_file(tmp_path / "lock")
    try:
        lock(one)
        with pytest.raises(BlockingIOError):
            lock(two, timeout=0)
        timer = threading.Timer(0.05, unlock, (one,))
        timer.start()
        lock(two, timeout=30)
        timer.join()
        assert not try_lock(one)
    finally:
        os.close(one)
        os.close(two)


def test_an_attempt_is_made_even_without_time_and_pauses_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait_until(lambda: True, -1, Pace(1, 1))
    pauses: list[float] = []
    monkeypatch.setattr("aver.files.locks.time.sleep", pauses.append)
    answers = iter([False] * 5 + [True])
    assert wait_until(lambda: next(answers), 60, Pace(0.5, 2))
    assert pauses == [0.5, 1, 2, 2, 2]


def test_a_lock_file_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic|regular"):
            open_lock_file(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_is_locked_as_such(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        with lock_directory(tmp_path):
            assert not try_lock(other)
        assert try_lock(other)
    finally:
        os.close(other)
    for name in ("link", "missing"):
        with pytest.raises(Unavailable), lock_directory(tmp_path / name):
            pass


def test_a_lock_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    handle = open_lock_file(tmp_path / "lock")
    try:
        assert is_same_file(tmp_path / "lock", handle)
        (tmp_path / "lock").unlink()
        assert not is_same_file(tmp_path / "lock", handle)
        (tmp_path / "lock").touch()
        assert not is_same_file(tmp_path / "lock", handle)
    finally:
        os.close(handle)
