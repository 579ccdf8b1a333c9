"""A clock that goes backwards, stands still or leaps: records say what the clock said, and nothing hangs on it.

Real processes whose `aver.clock.now` was replaced before anything else was imported. The order of records is that of
their sequence numbers; what a retired key was good for is what the ledger has recorded, not what a clock said.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.keys import KeyStore

CHAIN = "clock.records"

CLOCKED = """
import sys
import aver.clock
times = iter(sys.argv[2:])
last = [next(times)]
def now():
    last[0] = next(times, last[0])
    return last[0]
aver.clock.now = now

from pathlib import Path
from aver import Capsule, KeyStore, open_ledger

home = Path(sys.argv[1])
with open_ledger() as ledger:
    for number in range(3):
        ledger.append("clock.records", Capsule(type="tool"), key=f"k{number}")
    ledger.close_chain("clock.records")
    KeyStore(home).rotate("ledger")
    print("rotated", ledger.verify().status)
    for number in range(3, 6):
        ledger.append("clock.records", Capsule(type="tool"), key=f"k{number}")
    print("recorded", ledger.verify().status)
    print("found", len(list(ledger.find(since="0000", until="9999-99"))))
"""

CLOCKS = {
    "backwards": [f"2026-01-{day:02}T00:00:00+00:00" for day in range(31, 0, -1)],
    "standing still": ["2026-01-01T00:00:00+00:00"],
    "back and forth": [f"20{20 + 7 * (step % 2)}-01-01T00:00:{step:02}+00:00" for step in range(60)],
    "long ago": [f"0001-01-01T00:00:{59 - step:02}.000001+00:00" for step in range(60)],
    "far ahead": ["9999-12-31T23:59:59.999999+00:00"],
}


@pytest.fixture(params=CLOCKS)
def told(request: pytest.FixtureRequest, aver_home: Path) -> dict[str, str]:
    """What a process with such a clock has told."""
    command = [sys.executable, "-c", CLOCKED, str(aver_home), *CLOCKS[request.param]]
    done = subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def check(ledger: Ledger, count: int) -> None:
    records = list(ledger.read(CHAIN))
    assert [record.sequence for record in records] == list(range(count))
    assert [record.hash for record in ledger.find(chain=CHAIN)] == [record.hash for record in records]
    for record in records:
        assert record.to_dict()["context"]["environment"]["aver"]["at"] == record.signed_at
    assert ledger.verify().status == "verified"


def test_records_are_in_order_whatever_their_times(told: dict[str, str]) -> None:
    assert told["recorded"] == "verified"
    assert told["found"] == "9"  # six, one in meta, two in keys
    with open_ledger() as ledger:
        check(ledger, 6)


@pytest.mark.parametrize("told", ["backwards", "standing still", "long ago", "far ahead"], indirect=True)
def test_a_rotation_that_is_not_recorded_yet_is_no_failure(told: dict[str, str]) -> None:
    """A key does not end before it came. Of a clock that leapt back in between, times alone cannot tell that."""
    assert told["rotated"] == "qualified"


def test_after_that_the_right_time_again(told: dict[str, str], aver_home: Path) -> None:
    with open_ledger() as ledger:
        for number in range(6, 9):
            assert ledger.append(CHAIN, Capsule(type="tool"), key=f"k{number}").sequence == number
        KeyStore(aver_home).rotate("ledger")
        ledger.append(CHAIN, Capsule(type="tool"))
        check(ledger, 10)
