"""The disk is full, from some point on and for good: at every step of everything that Aver writes.

A real process makes a home, a ledger and a key, appends, rotates, sweeps, writes a checkpoint and verifies: on a disk
(a small file system in memory) on which it can do this only so far; or where no file may become larger than so
many bytes. Sizes go up step by step, so that the end comes at another write each time. Then there is room again.

Long: every step of 4 KiB until there is room for all. Otherwise some sizes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.faults.aftermath import check
from support.faults.small_disk import enlarge, small_disk
from support.faults.strace import DeedServer, Trial

STEP = 4
"""KiB. A file system in memory gives room in pages of this size."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeedServer]:
    found = DeedServer(tmp_path_factory.mktemp("server"))
    yield found
    found.stop()


def on_a_disk_of(size: int, server: DeedServer, directory: Path) -> bool:
    """Whether a disk of so many KiB was enough."""
    disk = directory / f"disk.{size}"
    with small_disk(disk, f"{size}k"):
        trial = server.run("everything", disk / "home")
        enlarge(disk, "64m")
        return held(trial, disk / "home", f"a disk of {size} KiB")


def with_files_of(size: int, server: DeedServer, directory: Path) -> bool:
    """Whether files of so many KiB were enough."""
    home = directory / f"home.{size}"
    trial = server.run("everything", home, file_size=size * 1024)
    enough = held(trial, home, f"files of {size} KiB")
    shutil.rmtree(home)
    return enough


def held(trial: Trial, home: Path, where: str) -> bool:
    assert trial.status == 0, f"{where}: {trial.said}"
    assert not trial.told("crashed"), f"{where}: {trial.told('crashed')}"
    home.mkdir(mode=0o700, exist_ok=True)
    try:
        check(home, trial.acknowledged())
    except Exception as error:
        raise AssertionError(f"{where}: {error}; {trial.said}") from error
    return not trial.told("failed")


@pytest.mark.sample(4)
@pytest.mark.parametrize("size", [8, 44, 88, 136, 180, 220, 300, 400])
def test_a_disk_that_becomes_full(server: DeedServer, tmp_path: Path, size: int) -> None:
    on_a_disk_of(size, server, tmp_path)


@pytest.mark.sample(4)
@pytest.mark.parametrize("size", [8, 36, 60, 88, 100, 132, 160])
def test_files_that_cannot_grow(server: DeedServer, tmp_path: Path, size: int) -> None:
    with_files_of(size, server, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("limit", [on_a_disk_of, with_files_of])
def test_full_at_every_step(server: DeedServer, tmp_path: Path, limit: object) -> None:
    size, steps = 2 * STEP, 0
    while not limit(size, server, tmp_path):  # type: ignore[operator]
        size += STEP
        steps += 1
    assert steps > 15
