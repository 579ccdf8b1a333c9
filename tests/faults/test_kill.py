"""kill -9 under load: what was acknowledged is there, once, and the next start works."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aver import Capsule, open_ledger
from aver.keys import KeyStore
from support.faults.storm import rage, rounds_wanted

pytestmark = pytest.mark.more


@pytest.mark.both_stores
def test_nothing_acknowledged_is_lost(new_ledger_url: Callable[[], str]) -> None:
    rounds = rounds_wanted(20)
    storm = rage(new_ledger_url(), rounds=rounds, seed=1)
    assert len(storm.acknowledged) > 5 * rounds


@pytest.mark.long
@pytest.mark.both_stores
def test_nothing_acknowledged_is_lost_in_a_long_storm(new_ledger_url: Callable[[], str]) -> None:
    rounds = rounds_wanted(500)
    storm = rage(new_ledger_url(), rounds=rounds, seed=2)
    assert len(storm.acknowledged) > 10 * rounds


FIRST_USE = """
from aver import Capsule, open_ledger
with open_ledger() as ledger:
    ledger.append("demo.first", Capsule(type="tool"))
"""


def test_killed_at_first_use_the_next_start_works(aver_home: Path) -> None:
    """Making the home, the ledger, the key and the first record: killed anywhere between."""
    picker = random.Random(3)
    for number in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", FIRST_USE], env={**os.environ, "AVER_HOME": str(aver_home / str(number))}
        )
        time.sleep(picker.uniform(0.03, 0.25))
        process.kill()
        process.wait()
        with open_ledger(home=aver_home / str(number)) as ledger:
            ledger.append("demo.first", Capsule(type="tool"))
            assert ledger.verify().status == "verified"
            assert ledger.head("demo.first").count <= 2


ROTATOR = """
import sys
from pathlib import Path
from aver import Capsule, KeyStore, open_ledger
with open_ledger() as ledger:
    while True:
        KeyStore(Path(sys.argv[1])).rotate("ledger")
        ledger.append("demo.rotated", Capsule(type="tool"))
"""


def test_killed_while_rotating_and_sealing(aver_home: Path) -> None:
    with open_ledger() as ledger:
        ledger.append("demo.rotated", Capsule(type="tool"))
    picker = random.Random(4)
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", ROTATOR, str(aver_home)], env=os.environ.copy())
        time.sleep(picker.uniform(0.15, 0.4))
        process.kill()
        process.wait()
        with open_ledger() as ledger:
            ledger.append("demo.rotated", Capsule(type="tool"))
            assert ledger.verify().status == "verified"
        assert KeyStore(aver_home).ring().active("ledger") is not None
