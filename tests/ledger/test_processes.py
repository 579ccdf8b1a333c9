"""Several processes at once: nothing lost, nothing doubled, over forks as well."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Exists, Ledger, open_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from support.forks import exit_of, in_child

pytestmark = pytest.mark.both_stores

CHAIN = "demo.processes"

WRITER = """
import sys
from aver import Capsule, open_ledger
with open_ledger() as ledger:
    for index in range(int(sys.argv[1])):
        print(ledger.append("demo.processes", Capsule(type="tool")).hash)
"""


@pytest.mark.more
def test_four_processes_on_one_chain(aver_home: Path) -> None:
    """They also race for making the home, the ledger and the first key."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, "500"], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
        )
        for _ in range(4)
    ]
    outputs = [writer.communicate()[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0, 0]
    hashes = [digest for output in outputs for digest in output]
    assert len(hashes) == len(set(hashes)) == 2_000
    with open_ledger() as ledger:
        stored = [record.hash for record in ledger.read(CHAIN)]
        assert sorted(stored) == sorted(hashes)
        assert ledger.head(CHAIN).count == 2_000
        verdict = ledger.verify()
        assert verdict.status == "verified"
        assert len({record.signed_by for record in ledger.read(CHAIN)}) == 1


RACER = """
import sys
from aver import Capsule, Exists, open_ledger
with open_ledger() as ledger:
    for index in range(100):
        try:
            print("won", ledger.append("demo.race", Capsule(type="tool"), key=f"key{index}").hash)
        except Exists as exists:
            print("lost", exists.record.hash)
"""


def test_processes_racing_for_keys(aver_home: Path) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER], stdout=subprocess.PIPE, text=True, env=os.environ.copy())
        for _ in range(3)
    ]
    outputs = [[line.split() for line in racer.communicate()[0].splitlines()] for racer in racers]
    for index in range(100):
        results = [output[index] for output in outputs]
        assert sorted(word for word, _ in results) == ["lost", "lost", "won"]
        assert len({digest for _, digest in results}) == 1
    with open_ledger() as ledger:
        assert ledger.head("demo.race").count == 100


def test_a_forked_child_appends_while_its_parent_does(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))

    def work() -> None:
        for _ in range(50):
            ledger.append(CHAIN, Capsule(type="tool"))

    children = [in_child(work) for _ in range(2)]
    work()
    assert [exit_of(child) for child in children] == [0, 0]
    assert ledger.head(CHAIN).count == 151
    assert ledger.verify().status == "verified"


@pytest.mark.more
def test_forking_while_other_threads_append(ledger: Ledger) -> None:
    """At the moment of a fork some thread leads a commit; the child must not wait for a thread it does not have."""
    ledger.append(CHAIN, Capsule(type="tool"))
    stop = threading.Event()
    written = [0, 0, 0]

    def write(number: int) -> None:
        while not stop.is_set():
            ledger.append(CHAIN, Capsule(type="tool"))
            list(ledger.read(CHAIN, 0, 5))
            written[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()

    def work() -> None:
        for _ in range(5):
            ledger.append(CHAIN, Capsule(type="tool"))
        assert ledger.head(CHAIN).count >= 6

    try:
        statuses = [exit_of(in_child(work)) for _ in range(15)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * 15
    assert ledger.head(CHAIN).count == 1 + sum(written) + 75
    assert ledger.verify().status == "verified"


def test_a_parent_that_closes_does_not_throw_away_what_its_child_commits(ledger: Ledger) -> None:
    """SQLite's locks are not inherited: closing the last connection removes the log that the child still writes."""
    ledger.append(CHAIN, Capsule(type="tool"))
    ready, go = os.pipe(), os.pipe()

    def work() -> None:
        for _ in range(5):
            ledger.append(CHAIN, Capsule(type="tool"))
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        for _ in range(5):
            ledger.append(CHAIN, Capsule(type="tool"))

    child = in_child(work)
    os.read(ready[0], 1)
    assert ledger.head(CHAIN).count == 6
    ledger.close()
    os.write(go[1], b"x")
    assert exit_of(child) == 0
    with open_ledger() as again:
        assert again.head(CHAIN).count == 11
        assert again.verify().status == "verified"


@pytest.mark.more
def test_a_child_that_exits_does_not_harm_its_parent(ledger: Ledger) -> None:
    ledger.append(CHAIN, Capsule(type="tool"))
    for _ in range(5):
        assert exit_of(in_child(lambda: list(ledger.read(CHAIN)))) == 0
        assert exit_of(in_child(ledger.close)) == 0
        ledger.append(CHAIN, Capsule(type="tool"))
    assert ledger.head(CHAIN).count == 6
    assert ledger.verify().status == "verified"


def test_a_child_knows_what_its_parent_recorded(ledger: Ledger) -> None:
    first = ledger.append(CHAIN, Capsule(type="tool"), key="k")

    def work() -> None:
        with pytest.raises(Exists) as caught:
            ledger.append(CHAIN, Capsule(type="tool"), key="k")
        assert caught.value.record == first

    assert exit_of(in_child(work)) == 0


@pytest.mark.more
def test_verification_while_others_write(ledger: Ledger, aver_home: Path) -> None:
    """A verdict is about what was there when it began; writers at work are no fault."""
    ledger.append(CHAIN, Capsule(type="tool"))
    writer = subprocess.Popen([sys.executable, "-c", WRITER, "600"], stdout=subprocess.DEVNULL, env=os.environ.copy())
    verdicts = []
    while writer.poll() is None:
        verdicts.append(ledger.verify().status)
    assert writer.returncode == 0
    assert set(verdicts) == {"verified"}
    assert ledger.verify().records == 602


@pytest.mark.parametrize("event", ["import", "rotate"])
def test_a_verification_during_an_import_or_a_rotation(
    event: str, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process comes first, right before the verification fixes which records it will judge."""
    ledger.append("demo.own", Capsule(type="tool"))
    with open_ledger(tmp_path / "other.db", home=tmp_path / "other") as other:
        other.append("demo.other", Capsule(type="tool"))
        export_bundle(other, tmp_path / "bundle")
        [key] = other.keys.ring().entries
    ledger.keys.trust(key)
    chains, waiting = type(ledger.store).chains, [event]

    def happen(store: Any, tenant: str) -> Any:
        if store is ledger.store and waiting:
            waiting.clear()
            if event == "import":
                import_bundle(ledger, tmp_path / "bundle")
            else:
                ledger.keys.rotate("ledger")
                ledger.append("gate.s1", Capsule(type="tool"))
        return chains(store, tenant)

    monkeypatch.setattr(type(ledger.store), "chains", happen)
    verdict = ledger.verify()
    assert not waiting
    assert (verdict.status, verdict.findings) == ("verified", ())
