"""The store's lock: shared by signers, exclusive for changes, bounded, and right across threads and forks."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Unavailable
from aver.keys import KeyStore
from aver.keys.store_lock import StoreLock, get_store_lock

DIGEST = "ab" * 32


@pytest.fixture
def lock(tmp_path: Path) -> StoreLock:
    return get_store_lock(tmp_path)


class Elsewhere:
    """Another process that holds something until told to stop."""

    def __init__(self, start: Any, finish: Any, enter: Callable[[], Any]) -> None:
        self._finish = finish
        holds_read, holds_write = os.pipe()
        stop_read, self._stop = os.pipe()

        def work() -> None:
            os.close(self._stop)
            with enter():
                os.write(holds_write, b"x")
                os.read(stop_read, 1)

        self._child = start(work)
        os.close(holds_write)
        os.close(stop_read)
        assert os.read(holds_read, 1) == b"x"
        os.close(holds_read)

    def stop(self) -> None:
        os.close(self._stop)
        assert self._finish(self._child) == 0


def test_many_share(lock: StoreLock, tmp_path: Path, start: Any, finish: Any) -> None:
    other = Elsewhere(start, finish, lambda: StoreLock(tmp_path).hold_shared(5))
    holders = []
    with lock.hold_shared(0), lock.hold_shared(0):
        holders.append("twice here")
    with lock.hold_shared(0):
        holders.append("again")
    with pytest.raises(Unavailable), lock.hold_exclusive(0):
        holders.append("the other process had let go, so nothing was shared")
    other.stop()
    with lock.hold_exclusive(5):
        holders.append("alone")
    assert holders == ["twice here", "again", "alone"]


def test_exclusive_excludes_and_the_wait_is_bounded(lock: StoreLock, tmp_path: Path, start: Any, finish: Any) -> None:
    other = Elsewhere(start, finish, lambda: StoreLock(tmp_path).hold_exclusive(5))
    with pytest.raises(Unavailable, match=r"\.lock"), lock.hold_shared(0.05):
        pass
    with pytest.raises(Unavailable, match=r"\.gate"), lock.hold_exclusive(0.05):
        pass
    other.stop()
    with lock.hold_exclusive(1):
        pass
    with lock.hold_shared(0):
        pass


def test_a_holder_keeps_rotation_waiting_and_the_error_names_the_lock(home: Path, start: Any, finish: Any) -> None:
    KeyStore(home).create("ledger")
    other = Elsewhere(start, finish, lambda: KeyStore(home).signer().hold())
    with pytest.raises(Unavailable) as caught:
        KeyStore(home, lock_timeout=0.05).rotate("ledger")
    assert str(home / "keys" / ".lock") in str(caught.value)
    assert caught.value.advice
    assert KeyStore(home).signer().sign(DIGEST)
    other.stop()
    assert KeyStore(home).rotate("ledger").new.epoch == 1


def test_a_rotation_that_waits_holds_new_signers_off(lock: StoreLock, tmp_path: Path, start: Any, finish: Any) -> None:
    """Otherwise a steady stream of overlapping signers would keep it out for ever."""
    other = Elsewhere(start, finish, lambda: StoreLock(tmp_path).hold_shared(5))
    entered = threading.Event()

    def change() -> None:
        with lock.hold_exclusive(10):
            entered.set()

    waiting = threading.Thread(target=change)
    waiting.start()
    deadline = 500
    while deadline:
        deadline -= 1
        try:
            with lock.hold_shared(0):
                entered.wait(0.01)
        except Unavailable:
            break
    assert deadline, "the waiting change never shut the gate"
    assert not entered.is_set()
    other.stop()
    waiting.join()
    assert entered.is_set()
    with lock.hold_shared(1):
        pass


def test_a_thread_may_hold_again_while_a_change_waits(lock: StoreLock) -> None:
    changed = threading.Event()

    def change() -> None:
        with lock.hold_exclusive(10):
            changed.set()

    with lock.hold_shared(1):
        waiting = threading.Thread(target=change)
        waiting.start()
        for _ in range(20):
            with lock.hold_shared(0):
                assert not changed.wait(0.002)
    waiting.join()
    assert changed.is_set()


def test_one_threads_leaving_does_not_let_go_for_another(lock: StoreLock, tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with lock.hold_shared(1):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    with lock.hold_shared(1):
        pass
    with pytest.raises(Unavailable), lock.hold_exclusive(0.02):
        pass
    leave.set()
    thread.join()
    with lock.hold_exclusive(1):
        pass


def test_a_failed_exclusive_leaves_nothing_locked(lock: StoreLock) -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), lock.hold_exclusive(1):
            _ = 1 // 0
        with pytest.raises(ZeroDivisionError), lock.hold_shared(1):
            _ = 1 // 0


def test_a_killed_holder_lets_go(home: Path, start: Any, finish: Any) -> None:
    store = KeyStore(home)
    store.create("ledger")

    def die() -> None:
        with store.signer().hold():
            os._exit(9)

    assert finish(start(die)) == 9
    assert KeyStore(home, lock_timeout=1).rotate("ledger").new.epoch == 1


def test_a_child_forked_while_a_key_is_held_neither_keeps_nor_breaks_the_hold(
    home: Path, start: Any, finish: Any
) -> None:
    store = KeyStore(home, lock_timeout=1)
    signer = store.signer()
    hold = signer.hold()
    hold.__enter__()

    def child() -> None:
        hold.__exit__(None, None, None)
        assert signer.sign(DIGEST)
        with pytest.raises(Unavailable):
            KeyStore(home, lock_timeout=0.05).rotate("ledger")

    assert finish(start(child)) == 0
    with pytest.raises(Unavailable):
        Rotator(home, start, finish).expect_to_wait()
    hold.__exit__(None, None, None)
    lingering_read, lingering_write = os.pipe()
    child_id = start(lambda: print(os.read(lingering_read, 1)))
    store.rotate("ledger")
    os.write(lingering_write, b"x")
    assert finish(child_id) == 0
    os.close(lingering_read)
    os.close(lingering_write)


class Rotator:
    """Tries a rotation in another process, and raises here what it met there."""

    def __init__(self, home: Path, start: Any, finish: Any) -> None:
        self._home, self._start, self._finish = home, start, finish

    def expect_to_wait(self) -> None:
        def rotate() -> None:
            try:
                KeyStore(self._home, lock_timeout=0.05).rotate("ledger")
            except Unavailable:
                os._exit(3)

        if self._finish(self._start(rotate)) == 3:
            raise Unavailable("the other process had to wait")


@pytest.mark.more
def test_a_child_forked_while_other_threads_hold_can_sign_and_rotate(home: Path, start: Any, finish: Any) -> None:
    store = KeyStore(home, lock_timeout=5)
    signer = store.signer()
    end = threading.Event()

    def work() -> None:
        while not end.is_set():
            signer.sign(DIGEST)

    def child() -> None:
        before = signer.fingerprint
        new = store.rotate("ledger").new
        assert before != signer.fingerprint == new.fingerprint

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert finish(start(child)) == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert len(store.ring().entries) == 11


@pytest.mark.more
def test_all_stores_of_a_home_share_one_lock_and_close_it(home: Path) -> None:
    first, second = KeyStore(home), KeyStore(home / "keys" / "..")
    first.create("ledger")
    assert first.lock is second.lock
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    first.signer().sign(DIGEST)
    del first, second
    gc.collect()
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    assert KeyStore(home).signer().sign(DIGEST)


def test_lock_files_are_private_and_no_links(home: Path, tmp_path: Path) -> None:
    KeyStore(home).create("ledger")
    for name in (".lock", ".gate"):
        assert (home / "keys" / name).stat().st_mode & 0o777 == 0o600
    directory = tmp_path / "linked"
    directory.mkdir()
    (directory / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="lock"), StoreLock(directory).hold_shared(1):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_lock_files_that_were_removed_keep_nobody_apart(lock: StoreLock, tmp_path: Path) -> None:
    """Whoever locks next locks the new files, also where the old ones are still open."""
    with lock.hold_shared(0):
        pass
    for name in (".lock", ".gate"):
        (tmp_path / name).unlink()
    other = StoreLock(tmp_path)
    with other.hold_exclusive(0), pytest.raises(Unavailable):
        lock.share(0.05)
    with lock.hold_shared(0.05), pytest.raises(Unavailable), other.hold_exclusive(0.05):
        pass
