"""kill -9 under load: what was acknowledged is there, once, and the next start works."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.keys import KeyStore

WRITER = Path(__file__).with_name("writer.py")
WRITERS = 3


class Storm:
    """Rounds of writers that are killed, and what they had acknowledged until then."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.acknowledged: dict[str, str] = {}
        self.next = {f"w{number}": 0 for number in range(WRITERS)}

    def round(self) -> None:
        writers = {
            name: subprocess.Popen(
                [sys.executable, str(WRITER), name, str(first)], stdout=subprocess.PIPE, env=os.environ.copy()
            )
            for name, first in self.next.items()
        }
        try:
            for writer in writers.values():
                assert writer.stdout is not None
                if self.random.random() < 0.8:  # some are killed while they still start
                    writer.stdout.readline()
            time.sleep(self.random.uniform(0, 0.15))
        finally:
            for writer in writers.values():
                writer.kill()
        for name, writer in writers.items():
            output, _ = writer.communicate()
            self.note(name, output.decode())

    def note(self, name: str, output: str) -> None:
        lines = output.split("\n")[:-1]  # the last line may be torn
        for line in lines:
            if line.startswith("ack "):
                _, key, digest = line.split()
                assert self.acknowledged.setdefault(key, digest) == digest, "one key, two records"
                number = int(key.partition(":")[2])
                # Going back a little makes the next writer meet keys that were recorded but perhaps not acknowledged.
                self.next[name] = max(self.next[name], number - 3)

    def check(self, ledger: Ledger) -> None:
        stored: dict[str, str] = {}
        for chain in (name for name in ledger.chains() if name.startswith("storm.")):
            for record in ledger.read(chain):
                key = record.to_dict()["context"]["environment"]["aver"]["key"]
                assert key not in stored, f"{key} was recorded twice"
                stored[key] = record.hash
        lost = {key for key, digest in self.acknowledged.items() if stored.get(key) != digest}
        assert not lost
        verdict = ledger.verify()
        assert verdict.status == "verified", verdict.first_bad


def rage(rounds: int, seed: int) -> Storm:
    storm = Storm(seed)
    for number in range(rounds):
        storm.round()
        if number % 5 == 4 or number == rounds - 1:
            with open_ledger() as ledger:
                storm.check(ledger)
                ledger.append("storm.survivor", Capsule(type="tool"), key=f"survivor:{number}")
    return storm


def test_nothing_acknowledged_is_lost(aver_home: Path) -> None:
    storm = rage(int(os.environ.get("AVER_KILL_ROUNDS", "20")), seed=1)
    assert len(storm.acknowledged) > 100


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_a_long_storm(aver_home: Path) -> None:
    storm = rage(int(os.environ.get("AVER_KILL_ROUNDS", "500")), seed=2)
    assert len(storm.acknowledged) > 5_000


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
