"""A fault at every system call that changes a file: it fails with EIO or ENOSPC, or the process is killed at it.

Real children append, to one chain and to several at once, rotate a key and make a checkpoint, in a home of their own,
under `strace`, which makes the N-th `write`, `fsync`, `rename` and so on fail, or kills the process there. Long: N goes
from 1 until the child meets no fault any more. Otherwise: one N for each call, fault and deed, chosen by a fixed seed.

A call that fails here does not take place, and only one fails: a disk that stays full, and what a power cut does to
writes that were not yet on disk, are other tests' business (`test_disk_full`, `test_power_loss`).

After a fault that is not deadly the child tries once more what failed, in the same process, and must succeed.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import Capsule, open_ledger
from support.faults.aftermath import check
from support.faults.strace import CHANGING, DeedServer, Trial, fault, need_strace

pytestmark = pytest.mark.more

FAULTS = ("error=EIO", "error=ENOSPC", "signal=SIGKILL")
CASES = ("append", "together", "rotate", "checkpoint", "first use")


class Faults:
    """Trials of deeds in copies of one home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0
        self.server = DeedServer(directory)
        self._base = directory / "base"
        self._base.mkdir(mode=0o700)
        with open_ledger(self._base / "ledger.db", home=self._base) as ledger:
            for _ in range(3):
                ledger.append("fault.before", Capsule(type="tool"))

    def run(self, case: str, options: list[str]) -> tuple[Trial, Path]:
        """One trial in a fresh copy of the home; for a first use, in one that is not there yet."""
        self._count += 1
        home = self._directory / f"home.{self._count}"
        if case != "first use":
            shutil.copytree(self._base, home)
        return self.server.run("append" if case == "first use" else case, home, options), home

    def try_fault(self, case: str, call: str, what: str, number: int) -> bool:
        """Let the N-th call fail, and see that all is well. Whether the child met the fault at all."""
        trial, home = self.run(case, fault(call, what, number))
        if re.search(r'/said\.\d+".*\(INJECTED\)', trial.trace):
            return True  # It met the file in which the child tells the test what it does: no call of the deed.
        where = f"{case}: {what} at {call} number {number}"
        assert not trial.told("crashed"), f"{where}: {trial.told('crashed')}"
        if what.startswith("error"):
            assert trial.status == 0, where
            again = {line[1] for line in trial.told("failed")}
            assert again <= trial.acknowledged().keys(), f"{where}: not done at the second attempt either"
        home.mkdir(mode=0o700, exist_ok=True)
        try:
            check(home, trial.acknowledged())
        except Exception as error:
            raise AssertionError(f"{where}: {error}") from error
        shutil.rmtree(home)
        return trial.was_hit

    def calls(self, case: str) -> Counter[str]:
        """How often a deed makes each of the calls."""
        trial, home = self.run(case, ["-e", "trace=" + ",".join(f"?{call}" for call in CHANGING)])
        shutil.rmtree(home)
        return Counter(re.findall(r"^\d+ +(\w+)\(", trial.trace, re.MULTILINE))


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    need_strace()
    found = Faults(tmp_path_factory.mktemp("faults"))
    yield found
    found.server.stop()


@pytest.mark.parametrize("case", CASES)
def test_what_is_walked_over_is_what_matters(faults: Faults, case: str) -> None:
    """If this fails, Aver or SQLite changes files by other means than before, and the walk would miss them."""
    calls = faults.calls(case)
    assert calls["pwrite64"] > 10
    assert calls["fdatasync"] + calls["fsync"] > 5
    assert calls["openat"] > 5
    if case in ("rotate", "checkpoint"):
        assert calls["write"]
        assert calls["rename"] + calls["renameat"] + calls["renameat2"]


@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_one_of_each_call(faults: Faults, case: str, what: str) -> None:
    picker = random.Random(f"{case} {what}")
    for call, count in faults.calls(case).items():
        number = picker.randint(1, count)
        # How often a deed makes a call depends on the moment: a trial may make fewer of them than the count.
        while not faults.try_fault(case, call, what, number):
            assert number > 1, f"{call} was never hit"
            number //= 2


@pytest.mark.long
@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_every_call(faults: Faults, case: str, what: str) -> None:
    for call in faults.calls(case):
        number = 1
        while faults.try_fault(case, call, what, number):
            number += 1
        assert number > 1, f"{call} was never hit"
