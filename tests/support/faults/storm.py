"""kill -9 under load, for any store: writers that are killed, and what they had acknowledged until then.

    storm = rage("sqlite:///…", rounds=20, seed=1)
    storm = rage("sqlite:///…", rounds=20, seed=1, calls="together")

The store is named by a ledger URL, which the writers get in `AVER_LEDGER`; the keys are in `AVER_HOME`. All of a
round's writers are killed at once, at some moment after one of them has come so far. Every few rounds, and at the end,
everything that was acknowledged must be there once, no call may be there in part, the verdict must be `verified`, and
an append must work.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from aver import Capsule, Ledger, open_ledger
from support.faults.aftermath import partners

WRITER = Path(__file__).with_name("writer.py")
WRITERS = 3
ROUNDS_UNTIL_CHECK = 5
HEARD_MAX = 40
"""Acknowledgements that are waited for in a round, so that it does as much on a slow machine."""


class Storm:
    """Rounds of writers to one ledger."""

    def __init__(self, url: str, seed: int, calls: str = "single") -> None:
        self.random = random.Random(seed)
        self.acknowledged: dict[str, str] = {}
        self.next = {f"w{number}": 0 for number in range(WRITERS)}
        self._calls = calls
        self._environment = {**os.environ, "AVER_LEDGER": url}

    def verify_once(self) -> None:
        writers = {
            name: subprocess.Popen(
                [sys.executable, str(WRITER), name, str(first), self._calls],
                stdout=subprocess.PIPE,
                env=self._environment,
            )
            for name, first in self.next.items()
        }
        try:
            for writer in writers.values():
                assert writer.stdout is not None
                if self.random.random() < 0.8:  # some are killed while they still start
                    writer.stdout.readline()
            heard = self.random.choice(sorted(writers))
            self.note(heard, self.hear(writers[heard]))
            time.sleep(self.random.uniform(0, 0.15))
        finally:
            for writer in writers.values():
                writer.kill()
        for name, writer in writers.items():
            output, _ = writer.communicate()
            self.note(name, output.decode())

    def hear(self, writer: subprocess.Popen[bytes]) -> str:
        """What a writer says until it has acknowledged so many, or has ended."""
        assert writer.stdout is not None
        wanted, lines = self.random.randint(0, HEARD_MAX), list[bytes]()
        while sum(line.startswith(b"ack ") for line in lines) < wanted and (line := writer.stdout.readline()):
            lines.append(line)
        return b"".join(lines).decode()

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
        chains = [name for name in ledger.chains() if name.startswith("storm.")]
        records = [record for chain in chains for record in ledger.read(chain)]
        for record in records:
            key = record.to_dict()["context"]["environment"]["aver"]["key"]
            assert key not in stored, f"{key} was recorded twice"
            stored[key] = record.hash
        torn = partners(records) - stored.keys()
        assert not torn, f"of calls that were written in part: {torn}"
        lost = {key for key, digest in self.acknowledged.items() if stored.get(key) != digest}
        assert not lost
        verdict = ledger.verify()
        assert verdict.status == "verified", verdict.first_bad


def rage(url: str, *, rounds: int, seed: int, calls: str = "single") -> Storm:
    """So many rounds on the ledger at a URL, which is made if it is not there. `calls` is how the writers append."""
    storm = Storm(url, seed, calls)
    for number in range(rounds):
        storm.verify_once()
        if number % ROUNDS_UNTIL_CHECK == ROUNDS_UNTIL_CHECK - 1 or number == rounds - 1:
            with open_ledger(url) as ledger:
                storm.check(ledger)
                ledger.append("storm.survivor", Capsule(type="tool"), key=f"survivor:{number}")
    return storm


def rounds_wanted(default: int) -> int:
    """How many rounds a test makes: `AVER_KILL_ROUNDS`, or as many as it says itself."""
    return int(os.environ.get("AVER_KILL_ROUNDS", str(default)))
