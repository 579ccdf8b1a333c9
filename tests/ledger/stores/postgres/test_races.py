"""Writers at the same time, in several processes: on one chain, on new chains, on many in different orders."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

from aver import Capsule, Entry, Exists, Ledger, Refused, Unavailable, open_ledger
from aver.capsule.draft import prepare_draft
from aver.clock import new_id
from aver.ledger.append import AppendPart, AppendRequest
from aver.ledger.stores.protocol import ExpectedWrites

ALL_OVER = """
import os, random, sys, threading
from aver import Capsule, open_ledger
number = int(sys.argv[1])
picker = random.Random(number)
with open_ledger() as ledger:
    def work(lane):
        for index in range(12):
            chain = f"race.{picker.randrange(6)}" if index % 3 else f"race.new-{index}"
            sealed = ledger.append(chain, Capsule(type="tool"), key=f"{number}:{lane}:{index}")
            os.write(1, f"{sealed.hash}\\n".encode())
    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


@pytest.mark.more
def test_many_chains_in_any_order_and_chains_that_come_into_being(url: str) -> None:
    """Each commit takes what waits: several chains, old and new, in an order that nobody chose. None wait for ever."""
    with open_ledger() as ledger:
        ledger.append("race.0", Capsule(type="tool"))
        before = deadlocks(url)
        writers = [
            subprocess.Popen([sys.executable, "-c", ALL_OVER, str(number)], stdout=subprocess.PIPE, text=True)
            for number in range(4)
        ]
        hashes = [digest for writer in writers for digest in writer.communicate()[0].split()]
        assert [writer.returncode for writer in writers] == [0] * 4
        assert len(set(hashes)) == 4 * 6 * 12
        stored = [
            record.hash for chain in ledger.chains() if chain.startswith("race.") for record in ledger.read(chain)
        ]
        assert sorted(stored[1:] + stored[:1]) == sorted([*hashes, next(ledger.read("race.0")).hash])
        assert ledger.verify().status == "verified"
        assert deadlocks(url) == before


CROSSED = """
import sys
from aver import Capsule, Entry, open_ledger
order = sys.argv[1].split(",")
with open_ledger() as ledger:
    for _ in range(60):
        for record in ledger.append_together([Entry(chain, Capsule(type="tool")) for chain in order]):
            print(record.hash)
"""


@pytest.mark.more
def test_calls_that_name_the_same_chains_in_other_orders_do_not_deadlock(url: str) -> None:
    """Chains that exist, and some that come into being: each call locks all of its chains in the one order."""
    with open_ledger() as ledger:
        ledger.append_together([Entry(f"race.{each}", Capsule(type="tool")) for each in "ab"])
        before = deadlocks(url)
        orders = ["race.a,race.b,race.c", "race.c,race.b,race.a", "race.b,race.c,race.a", "race.a,race.c,race.b"]
        callers = [
            subprocess.Popen([sys.executable, "-c", CROSSED, order], stdout=subprocess.PIPE, text=True)
            for order in orders
        ]
        hashes = [digest for caller in callers for digest in caller.communicate()[0].split()]
        assert [caller.returncode for caller in callers] == [0] * 4
        assert len(set(hashes)) == 4 * 60 * 3
        assert [ledger.head(f"race.{each}").count for each in "abc"] == [241, 241, 240]
        assert ledger.verify().status == "verified"
        assert deadlocks(url) == before


def deadlocks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def test_two_ledgers_that_lock_the_same_new_chains(ledger: Ledger, url: str) -> None:
    """The other one has locked chains that do not exist, makes them, and goes: ours finds them made."""
    ledger.append("demo.old", Capsule(type="tool"))
    locked, go = threading.Event(), threading.Event()
    counts: list[int] = []

    def other() -> None:
        with (
            open_ledger(url) as theirs,
            theirs.store.transaction(ExpectedWrites("default", frozenset({"demo.new"}))) as transaction,
        ):
            locked.set()
            go.wait()
            transaction.add_chain("default", "demo.new")

    def ours() -> None:
        expected = ExpectedWrites("default", frozenset({"demo.new", "demo.old"}))
        with ledger.store.transaction(expected) as transaction:
            row = transaction.chain("default", "demo.new")
            counts.append(-1 if row is None else row.count)

    threads = [threading.Thread(target=other), threading.Thread(target=ours)]
    threads[0].start()
    locked.wait()
    threads[1].start()
    time.sleep(0.1)  # by then it waits
    go.set()
    for thread in threads:
        thread.join()
    assert counts == [0]


@pytest.mark.more
def test_one_key_in_two_chains(ledger: Ledger, url: str) -> None:
    """Neither chain's lock covers it: the server's index does, and the second comes again and finds the first."""
    ledger.append("demo.a", Capsule(type="tool"))
    ledger.append("demo.b", Capsule(type="tool"))
    for round_ in range(10):
        results: list[object] = [None] * 6
        start = threading.Barrier(6)

        def work(
            number: int,
            key: str = f"race{round_}",
            into: list[object] = results,
            start: threading.Barrier = start,
        ) -> None:
            with open_ledger(url) as mine:
                start.wait()
                try:
                    into[number] = mine.append(f"demo.{'ab'[number % 2]}", Capsule(type="tool"), key=key).hash
                except Exists as exists:
                    into[number] = exists

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = [result for result in results if isinstance(result, str)]
        assert len(won) == 1
        assert all(result.record.hash == won[0] for result in results if isinstance(result, Exists))
    assert ledger.verify().status == "verified"


def test_keys_crossed_between_two_chains(ledger: Ledger, url: str) -> None:
    """Two batches with the same keys the other way round wait for each other. The server ends one; it comes again."""
    ledger.append("demo.a", Capsule(type="tool"))
    ledger.append("demo.b", Capsule(type="tool"))
    keys = [f"k{number}" for number in range(40)]
    start = threading.Barrier(2)
    results: dict[str, list[str]] = {}

    def work(chain: str, order: list[str]) -> None:
        with open_ledger(url) as mine:
            start.wait()
            records = mine.append_many(chain, [Capsule(type="tool") for _ in order], keys=order)
            results[chain] = [record.hash for _, record in sorted(zip(order, records, strict=True))]

    threads = [
        threading.Thread(target=work, args=("demo.a", keys)),
        threading.Thread(target=work, args=("demo.b", keys[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results["demo.a"] == results["demo.b"]
    assert ledger.verify().status == "verified"


@pytest.mark.more
def test_one_id_in_two_chains(ledger: Ledger, url: str) -> None:
    ledger.append("demo.a", Capsule(type="tool"))
    ledger.append("demo.b", Capsule(type="tool"))
    for _ in range(5):
        taken = new_id()
        outcomes: list[str] = []
        start = threading.Barrier(4)

        def work(
            number: int, taken: str = taken, outcomes: list[str] = outcomes, start: threading.Barrier = start
        ) -> None:
            with open_ledger(url) as mine:
                start.wait()
                try:
                    mine.append(f"demo.{'ab'[number % 2]}", Capsule(type="tool", id=taken))
                    outcomes.append("written")
                except Refused as refused:
                    outcomes.append(refused.code)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["ID_TAKEN", "ID_TAKEN", "ID_TAKEN", "written"]


def test_a_taken_id_refuses_its_own_caller_alone(ledger: Ledger) -> None:
    """The server refuses the whole transaction; done again with ids looked up, all others of the group are written."""
    taken = ledger.append("demo.a", Capsule(type="tool"))
    drafts = {name: prepare_draft(Capsule(type="tool", id=name)) for name in (new_id(), taken.id, new_id())}
    parts = [AppendPart("demo.b", [draft]) for draft in drafts.values()]
    group = [AppendRequest([part], ledger.signer(), refuse_existing=True) for part in parts]
    ledger._appender._write_batch(group)
    assert [request.failure and request.failure.code for request in group] == [None, "ID_TAKEN", None]
    written = [request.result[0].hash for request in group if request.result]
    assert [record.hash for record in ledger.read("demo.b")] == written
    assert ledger.verify().status == "verified"


def test_waiting_for_a_chain_is_bounded_and_others_are_free(
    ledger: Ledger, url: str, aver_home: Path, owner: psycopg.Connection
) -> None:
    for chain in ("demo.held", "demo.free"):
        ledger.append(chain, Capsule(type="tool"))
    (aver_home / "config.toml").write_text("lock_timeout = 0.3\n")
    with owner.transaction(), open_ledger() as impatient:
        owner.execute("SELECT FROM aver.chains WHERE name = 'demo.held' FOR UPDATE")
        with pytest.raises(Unavailable, match=r"locked a chain .* for 0\.3 seconds"):
            impatient.append("demo.held", Capsule(type="tool"))
        assert impatient.append("demo.free", Capsule(type="tool")).sequence == 1
        assert impatient.head("demo.held").count == 1  # reading waits for nobody
        assert impatient.verify().status == "verified"
    assert ledger.append("demo.held", Capsule(type="tool")).sequence == 1


def test_writers_of_different_chains_do_not_wait_for_each_other(ledger: Ledger, url: str) -> None:
    for chain in ("demo.a", "demo.b"):
        ledger.append(chain, Capsule(type="tool"))
    with open_ledger(url) as other:
        with other.transaction("demo.a") as (_, append):
            append("demo.a", prepare_draft(Capsule(type="tool")))
            assert ledger.append("demo.b", Capsule(type="tool")).sequence == 1
    assert ledger.head("demo.a").count == 2


def test_a_writer_that_vanished_holds_nobody_up(ledger: Ledger, aver_home: Path) -> None:
    """Killed inside its transaction, with a chain locked."""
    ledger.append("demo.a", Capsule(type="tool"))
    script = """
import os, sys
from aver import open_ledger
from aver.ledger.stores.protocol import ExpectedWrites
with open_ledger() as ledger, ledger.store.transaction(ExpectedWrites("default", frozenset({"demo.a"}))):
    print("locked", flush=True)
    sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ.copy()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    process.kill()
    process.wait()
    assert ledger.append("demo.a", Capsule(type="tool")).sequence == 1
