"""A PostgreSQL server killed, restarted and cut off under load: nothing acknowledged lost, nothing doubled."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import Blob, Capsule, Exists, Ledger, Unavailable, open_ledger
from support.faults.small_disk import enlarge, small_disk
from support.faults.storm import WRITER, Storm, rage, rounds_wanted
from support.postgres_servers import Server, new_place, own, started
from support.postgres_wire import FAULTS, Fault, Wire

pytestmark = pytest.mark.more

CHAIN = "demo.fault"


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """One that syncs what it acknowledges, and is ours to kill."""
    server = started(fsync="on", max_connections="50", log_min_messages="fatal")
    yield server
    server.remove()


@pytest.fixture
def url(own_server: Server, aver_home: Path) -> Iterator[str]:
    aver_home.mkdir(mode=0o700)
    database = own_server.database()
    yield own_server.url(database)
    own_server.drop(database)


def test_writers_killed_under_load(url: str) -> None:
    rounds = rounds_wanted(6)
    storm = rage(url, rounds=rounds, seed=11)
    assert len(storm.acknowledged) > 5 * rounds


@pytest.mark.long
def test_writers_killed_under_load_in_a_long_storm(url: str) -> None:
    rounds = rounds_wanted(500)
    storm = rage(url, rounds=rounds, seed=12)
    assert len(storm.acknowledged) > 10 * rounds


def server_rage(server: Server, url: str, *, rounds: int, seed: int) -> Storm:
    """Writers at work while the server is killed and started again. They ride it out; then they are ended, too."""
    storm = Storm(url, seed)
    with open_ledger(url) as ledger:
        ledger.append("storm.0", Capsule(type="tool"), key="first")
    for _ in range(rounds):
        writers = {
            name: subprocess.Popen(
                [sys.executable, str(WRITER), name, str(first)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "AVER_LEDGER": url},
            )
            for name, first in storm.next.items()
        }
        try:
            for writer in writers.values():
                assert writer.stdout is not None
                writer.stdout.readline()
            time.sleep(storm.random.uniform(0.05, 0.3))
            server.kill()
            time.sleep(storm.random.uniform(0, 0.2))
            server.start()
            time.sleep(storm.random.uniform(0.3, 1.5))  # reconnecting is tried after a second
        finally:
            for writer in writers.values():
                writer.kill()
        for name, writer in writers.items():
            storm.note(name, writer.communicate()[0].decode())
        with open_ledger(url) as ledger:
            storm.check(ledger)
    return storm


@pytest.mark.long
def test_the_server_killed_and_restarted_under_load(own_server: Server, url: str) -> None:
    storm = server_rage(own_server, url, rounds=3, seed=13)
    assert len(storm.acknowledged) > 30


@pytest.mark.long
def test_the_server_killed_and_restarted_again_and_again(own_server: Server, url: str) -> None:
    storm = server_rage(own_server, url, rounds=40, seed=14)
    assert len(storm.acknowledged) > 400


def test_an_append_rides_out_a_restart(own_server: Server, url: str) -> None:
    with open_ledger(url) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        own_server.kill()
        starting = threading.Timer(0.5, own_server.start)
        starting.start()
        sealed = ledger.append(CHAIN, Capsule(type="tool"))
        starting.join()
        assert sealed.sequence == 1
        own_server.stop()
        own_server.start()
        assert ledger.append(CHAIN, Capsule(type="tool")).sequence == 2
        assert ledger.verify().status == "verified"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "calamity", [pytest.param("the server is killed", marks=pytest.mark.long), "the network is parted"]
)
def test_in_mid_commit(own_server: Server, url: str, aver_home: Path, fault: Fault, calamity: str) -> None:
    """The commit or its answer is lost, and then all is away for a while. The caller gets its record, which is there
    once; whoever tries again by the key meets that one."""
    (aver_home / "config.toml").write_text("lock_timeout = 6\n")
    database = url.partition("?")[0].rpartition("/")[2]

    def strike() -> None:
        wire.happened.wait()
        if calamity == "the server is killed":
            own_server.kill()
            own_server.start()
        else:
            wire.is_down = True
            wire.cut()
            time.sleep(0.3)
            wire.is_down = False

    with Wire(own_server.socket) as wire, open_ledger(own_server.url(database, **wire.options)) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        striking = threading.Thread(target=strike)
        striking.start()
        wire.strike(fault)
        sealed = ledger.append(CHAIN, Capsule(type="tool"), key="k")
        striking.join()
        with pytest.raises(Exists) as caught:
            ledger.append(CHAIN, Capsule(type="tool"), key="k")
        assert caught.value.record.hash == sealed.hash
    with open_ledger(url) as ledger:
        assert [record.hash for record in ledger.read(CHAIN)][1:] == [sealed.hash]
        assert ledger.verify().status == "verified"


def test_a_server_that_stays_away(own_server: Server, url: str, aver_home: Path) -> None:
    (aver_home / "config.toml").write_text("lock_timeout = 1\n")
    with open_ledger(url) as ledger:
        ledger.append(CHAIN, Capsule(type="tool"))
        own_server.kill()
        try:
            with pytest.raises(Unavailable, match="cannot be used") as caught:
                ledger.append(CHAIN, Capsule(type="tool"), key="k")
            assert "nothing was recorded" in caught.value.advice
            with pytest.raises(Unavailable):
                open_ledger(url)
        finally:
            own_server.start()
        assert ledger.get("k") is None
        assert ledger.append(CHAIN, Capsule(type="tool"), key="k").sequence == 1


def test_the_servers_disk_is_full(own_server: Server, aver_home: Path) -> None:
    """Appends fail and say so; what was acknowledged is there, and with room again the next one works."""
    aver_home.mkdir(mode=0o700)
    place = new_place().parent
    disk = place / "disk"
    with small_disk(disk, "24m"):
        own(disk)
        own_server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        own_server.execute("CREATE DATABASE crowded TABLESPACE small")
        try:
            with open_ledger(own_server.url("crowded")) as ledger:
                acknowledged: list[str] = []
                with pytest.raises(Unavailable) as caught:
                    fill(ledger, acknowledged)
                assert "free some space on the server; nothing was recorded" in caught.value.advice
                assert [record.hash for record in ledger.read(CHAIN)] == acknowledged != []
                enlarge(disk, "64m")
                acknowledged.append(ledger.append(CHAIN, Capsule(type="tool")).hash)
                assert [record.hash for record in ledger.read(CHAIN)] == acknowledged
                assert ledger.verify().status == "verified"
        finally:
            own_server.drop("crowded")
            own_server.execute("DROP TABLESPACE small")
    shutil.rmtree(place)


def fill(ledger: Ledger, acknowledged: list[str]) -> None:
    """Append large records, many more than there is room for."""
    for _ in range(100):
        blob = Blob(os.urandom(500_000))
        draft = Capsule(type="tool", outcome={"result": blob.reference})
        acknowledged.append(ledger.append(CHAIN, draft, blobs=[blob]).hash)


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.long)])
def test_the_line_cut_at_random_under_load(own_server: Server, url: str, aver_home: Path, rounds: int) -> None:
    """Several threads append while the line is cut, or swallows, again and again. What returned is there, once."""
    (aver_home / "config.toml").write_text("lock_timeout = 1\n")
    picker = random.Random(rounds)
    database = url.partition("?")[0].rpartition("/")[2]
    acknowledged: dict[str, str] = {}
    unknown: set[str] = set()
    stop = threading.Event()
    with Wire(own_server.socket) as wire:
        with open_ledger(own_server.url(database, **wire.options)) as ledger:
            ledger.append(CHAIN, Capsule(type="tool"))

            def work(lane: int) -> None:
                number = 0
                while not stop.is_set():
                    key = f"{lane}:{number}"
                    try:
                        sealed = ledger.append(f"demo.{lane % 2}", Capsule(type="tool"), key=key)
                        acknowledged[key] = sealed.hash
                    except Unavailable:
                        unknown.add(key)
                    number += 1

            threads = [threading.Thread(target=work, args=(lane,)) for lane in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(rounds):
                fault = picker.choice(["cut before", "cut after", "hold the commit", "lose the answer", None])
                if fault is None:
                    wire.cut()
                else:
                    wire.strike(fault)  # type: ignore[arg-type]
                    wire.happened.wait(5)
                time.sleep(picker.uniform(0, 0.3))
            stop.set()
            for thread in threads:
                thread.join()
    with open_ledger(url) as ledger:
        check(ledger, acknowledged, unknown)
    assert len(acknowledged) > 10


def check(ledger: Ledger, acknowledged: dict[str, str], unknown: set[str]) -> None:
    stored: dict[str, str] = {}
    for chain in ("demo.0", "demo.1"):
        for record in ledger.read(chain):
            key = record.to_dict()["context"]["environment"]["aver"]["key"]
            assert key not in stored, f"{key} was recorded twice"
            stored[key] = record.hash
    assert acknowledged.items() <= stored.items()
    assert stored.keys() - acknowledged.keys() <= unknown
    assert ledger.verify().status == "verified"
